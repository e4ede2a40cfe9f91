# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# tap.sh - sourced by the shell tests: one line per check in the Test Anything Protocol, the plan at the end. A failed
# check does not end the script, so that one run shows everything that is wrong.

tap_count=0

tap_line() { # tap_line "ok"|"not ok" NAME
	tap_count=$((tap_count + 1))
	printf '%s %d - %s\n' "$1" "$tap_count" "$2"
}

pass() {
	tap_line ok "$1"
}

fail() { # fail NAME [WHAT WAS SEEN]
	tap_line 'not ok' "$1"
	[ $# -lt 2 ] || printf '%s\n' "$2" | head -n 40 | sed 's/^/#   /'
}

skip() { # skip NAME REASON
	tap_line ok "$1 # SKIP $2"
}

check() { # check NAME COMMAND...: passes if the command succeeds; its output is shown if it does not
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		pass "$name"
	else
		fail "$name" "$output"
	fi
}

# A test does not begin where a program that it uses is not installed. What a bare Debian has need not be named.
needs() { # needs PROGRAM...
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null && continue
		echo "Bail out! $program is not installed, and ${0##*/} needs it"
		exit 1
	done
}

plan() {
	echo "1..$tap_count"
}

# Every C file of the project, relative to its root, one a line.
c_files() {
	find . \( -path './build*' -o -path './.*' \) -prune -o -type f -name '*.[ch]' -print | sed 's,^\./,,' | LC_ALL=C sort
}

headers() {
	c_files | grep '\.h$'
}
