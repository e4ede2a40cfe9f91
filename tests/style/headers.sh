#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# headers.sh - every header compiles alone: as C17 with gcc and clang, and what other programs may include (core/ and
# models/) also as C++17.
set -u
. tests/tap.sh

warnings='-Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE -I.'
mpi=$(pkg-config --cflags ompi-c 2>/dev/null | sed 's/-I/-isystem /g')
cblas=$(pkg-config --cflags openblas 2>/dev/null)

alone() { # alone COMPILER LANGUAGE STANDARD HEADER
	# shellcheck disable=SC2086
	printf '#include "%s"\n' "$4" | "$1" -x "$2" -std="$3" $warnings $mpi $cblas -fsyntax-only -
}

# Each header is a file of its own for the compiler all the same: those of $together, as C17. gcc's driver takes 64 of them at a time.
# clang takes longer to start than to compile a header, and its front end takes many files, each by itself, in one process. It is
# told what clang itself tells it.
all_alone() { # all_alone COMPILER
	local header number=0
	local -a sources=()
	for header in "${together[@]}"; do
		sources+=("$scratch/$((number++)).c")
		printf '#include "%s"\n' "$header" >"${sources[-1]}"
	done
	if [ "$1" = gcc ]; then
		# shellcheck disable=SC2086
		printf '%s\0' "${sources[@]}" | xargs -0 -P 4 -n 64 gcc -std=c17 $warnings $mpi $cblas -fsyntax-only 2>"$scratch/said"
		return
	fi
	# shellcheck disable=SC2086
	eval "set -- $(clang -### -std=c17 $warnings $mpi $cblas -fsyntax-only "${sources[0]}" 2>&1 | tail -n 1)"
	[ "${*: -1}" = "${sources[0]}" ] && "${@:1:$# - 1}" "${sources[@]}" 2>"$scratch/said"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for compiler in gcc clang; do
	together=()
	if ! command -v "$compiler" >/dev/null; then
		skip "C17 with $compiler" "$compiler is not installed"
		continue
	fi
	for header in $(headers); do
		if [[ $header == *mpi* ]] && [ -z "$mpi" ]; then
			skip "$header as C17 with $compiler" 'the headers of Open MPI are not installed'
			continue
		fi
		if [[ $header == exec/tcp/* ]] && ! pkg-config --exists openssl; then
			skip "$header as C17 with $compiler" 'the headers of OpenSSL are not installed'
			continue
		fi
		together+=("$header")
	done
	[ ${#together[@]} -gt 0 ] || continue
	if all_alone "$compiler"; then
		for header in "${together[@]}"; do pass "$header as C17 with $compiler"; done
	else # one by one, to tell which
		for header in "${together[@]}"; do check "$header as C17 with $compiler" alone "$compiler" c c17 "$header"; done
	fi
done
for compiler in g++ clang++; do
	if ! command -v "$compiler" >/dev/null; then
		skip "C++17 with $compiler" "$compiler is not installed"
		continue
	fi
	for header in core/skep.h core/record.h models/read/model.h models/device/device.h; do
		check "$header as C++17 with $compiler" alone "$compiler" c++ c++17 "$header"
	done
done
plan
