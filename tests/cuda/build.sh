#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh FOLDER - what can be said of a build with CUDA on a machine without a GPU: kernels for both generations are in it, it
# starts without any library of CUDA, and it says what is missing before it begins a run. On a GPU it checks the kernels instead.
set -u
. tests/tap.sh
needs ldd

folder=$1

has() { # has TEXT: it was linked in
	grep -qa -- "$1" "$folder/skep"
}

says() { # says TEXT: and nothing was begun
	local output status=0
	output=$("$folder/skep" run --device cuda scenarios/two-datacentres.yaml 2>&1) || status=$?
	[ "$status" = 2 ] && [[ $output == *"$1"* ]]
}

free_of_cuda() {
	! ldd "$folder/skep" | grep -qiE 'cublas|cudart|libcuda'
}

skips() { # skips PROGRAM: status 77
	local status=0
	"$folder/tests/cuda/$1" >/dev/null 2>&1 || status=$?
	[ "$status" = 77 ]
}

check 'kernels for compute capability 8.0' has 'sm_80'
check 'kernels for compute capability 9.0' has 'sm_90'
check 'no library of CUDA is needed to start' free_of_cuda
if [ -e /proc/driver/nvidia/version ]; then
	check 'kernels' "$folder/tests/cuda/check_kernels"
	check 'stages' "$folder/tests/cuda/check_stages"
else
	check 'it says that there is no driver' says 'use --device cpu'
	check 'checks of kernels are skipped' skips check_kernels
	check 'checks of stages are skipped' skips check_stages
fi
plan
