#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# sources.sh - what a scenario is read from is in its list of files (base/files/files.h), because who opens them notes them there: readers open
# files through base/ alone, and hand on the list with every diagnosis that they make beside the caller's.
set -u
. tests/tap.sh

readers=(scenarios models/read models/corpus models/weights models/layers topologies/read topologies/gpu topologies/churn topologies/network)
# sources.c reads again, for the database, what a scenario has read.
opens=$(grep -rnE '\b(fopen|open|open64|openat|mmap|freopen)\(' --include='*.c' "${readers[@]}" | grep -vE '^scenarios/read/sources.c:')
[ -z "$opens" ] && pass 'readers open files through base/' || fail 'readers open files through base/' "$opens"

# check_real() and the layers of a model open nothing.
clear=$(grep -rnE 'struct skep_diag [a-z]+ = \{0\}|\(struct skep_diag\)\{' --include='*.c' "${readers[@]}" |
	grep -vE '^(scenarios/read/scenario.c:[0-9]+:	struct skep_diag error|models/layers/(masked_)?head.c:)')
[ -z "$clear" ] && pass 'diagnoses of readers are skep_diag_beside()' || fail 'diagnoses of readers are skep_diag_beside()' "$clear"
plan
