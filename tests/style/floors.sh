#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# floors.sh BUILD - which folder may need which, by the symbols of the objects, and how full a folder may be: see floors.py.
set -u
. tests/tap.sh
needs nm python3

found=$(python3 tests/style/floors.py "${1:?usage: floors.sh BUILD}") && pass 'floors' || fail 'floors' "$found"
plan
