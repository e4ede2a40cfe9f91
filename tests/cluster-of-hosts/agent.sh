#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# agent.sh HOST WORD... - what mpirun takes for ssh: the words are a line for the shell of that host.
set -eu
host=$1
shift
exec "$(dirname "$(readlink -f "$0")")/on.sh" "$host" sh -c "$*"
