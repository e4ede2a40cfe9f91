#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh - quickstart as a plain user whose machine lacks a package: where root is out of reach it ends at once, with the line that
# root has to type. dpkg-query, apt-get and sudo are played.
set -u
. tests/cli/lib.sh
if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
	skip 'a plain user' 'it takes root to become one'
	plan
	exit
fi
mkdir -p "$scratch/lacks" "$scratch/asks" "$scratch/lets"
printf '#!/bin/sh\ncase "$*" in *libgsl-dev*) exit 1;; esac\necho installed\n' >"$scratch/lacks/dpkg-query"
printf '#!/bin/sh\necho "apt-get $*" >&2\n[ "$1" = --version ]\n' >"$scratch/lacks/apt-get"
printf '#!/bin/sh\n[ "$1" != -n ] || { echo "sudo: a password is required" >&2; exit 1; }\nread -r password\n' >"$scratch/asks/sudo"
printf '#!/bin/sh\n[ "$1" != -n ] || shift\n"$@"\n' >"$scratch/lets/sudo"
for tool in bash sh env id readlink dirname mktemp tail rm; do ln -s "$(command -v $tool)" "$scratch/lacks/$tool"; done
chmod -R a+rX "$scratch"
chmod a+x "$scratch"/*/*
chmod a+rx "$scratch" "$scratch"/..

ends() { # ends NAME FOLDER TEXT: quickstart with the programs of FOLDER, without a terminal, fails and says TEXT
	local status=0
	timeout 20 setpriv --reuid 65534 --regid 65534 --clear-groups env PATH="$2$scratch/lacks" HOME=/ TMPDIR=/tmp \
		bash "$root/quickstart" >"$scratch/said" 2>&1 </dev/null || status=$?
	if [ $status = 1 ] && grep -qF -- "$3" "$scratch/said"; then
		pass "$1"
	else
		fail "$1" "status $status: $(tail -n 5 "$scratch/said")"
	fi
}
line='As root: apt-get install -y --no-install-recommends libgsl-dev'
ends 'without sudo' '' "there is no sudo. $line"
ends 'where sudo asks for a password' "$scratch/asks:" "sudo asks for a password, with no terminal to type it. $line"
ends 'where sudo asks for none' "$scratch/lets:" 'apt-get update failed'
plan
