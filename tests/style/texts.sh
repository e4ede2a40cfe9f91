#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# texts.sh - texts are not cut into more pieces than they need (texts.py; what it finds `texts.py --fix` joins), and it finds one.
set -u
. tests/tap.sh
needs python3

check 'texts' python3 tests/style/texts.py $(c_files | grep -vE '^tests/|[.]cuh?$')
cut=$(mktemp)
printf '\tfail("a text that would "\n\t     "fit");\n' >"$cut"
check 'a text that was cut is found' sh -c '! python3 tests/style/texts.py "$1" >/dev/null' - "$cut"
python3 tests/style/texts.py --fix "$cut" >/dev/null
check 'and joined' grep -q 'fail("a text that would fit");' "$cut"
rm -f "$cut"
plan
