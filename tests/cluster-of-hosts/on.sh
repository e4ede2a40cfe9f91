#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# on.sh HOST COMMAND... - runs a command on a host of up.sh.
set -eu
pid=$(cat "$HOSTS/$1.pid")
shift
exec nsenter --target "$pid" --net --uts -- "$@"
