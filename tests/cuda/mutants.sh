#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# mutants.sh - can the checks of kernels fail? Breaks one line of a kernel after the other, in a copy, and runs the emulated checks on
# each: all must be noticed. Takes a minute or two; by hand, after changes to kernels or to the emulation.
set -u
cd "$(dirname "$0")/../.."
. tests/tap.sh
needs gcc

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
flags="-O1 -ffp-contract=off -D_GNU_SOURCE -I$scratch -I. -Itests/cuda -w"

# Once: all but the kernels.
for source in emulate emulate_lt; do
	g++ -std=c++17 $flags -c "tests/cuda/$source.cpp" -o "$scratch/$source.o" || exit 1
done
for source in tests/cuda/check_kernels tests/cuda/arrays tests/cuda/payloads models/layers/attention models/layers/norm models/layers/feed models/codec models/robust models/team \
	models/byzantine; do
	gcc -std=c17 $flags -DSKEP_REAL_DOUBLE -c "$source.c" -o "$scratch/${source//\//_}.o" || exit 1
done

noticed() { # noticed FILE EXPRESSION: of sed, which must change something
	local file=$1 expression=$2
	rm -rf "$scratch/models"
	mkdir -p "$scratch/models/cuda" "$scratch/bin"
	cp models/cuda/* "$scratch/models/cuda/" 2>/dev/null
	sed -i -E "$expression" "$scratch/models/cuda/$file"
	cmp -s "models/cuda/$file" "$scratch/models/cuda/$file" && { echo 'the mutation changes nothing'; return 1; }
	sed "s,\"models/cuda/\(.*\.cu\)\",\"$scratch/models/cuda/\1\"," tests/cuda/kernels.cpp >"$scratch/kernels.cpp"
	# shellcheck disable=SC2086
	g++ -std=c++17 $flags -c "$scratch/kernels.cpp" -o "$scratch/kernels.o" || return 1
	g++ "$scratch"/*.o -lopenblas -lm -lpthread -o "$scratch/bin/check" || return 1
	! timeout 120 "$scratch/bin/check" >/dev/null 2>&1
}

check 'attention: a later key is seen' noticed attention.cu 's/j > i \? -INFINITY/j > i + 1 ? -INFINITY/'
check 'attention: no barrier before tiles are loaded again' noticed attention.cu \
	's/(add_values<D>\(own, s, v, factor, o\);)/\1 continue;/'
check 'attention: what was summed is not scaled down' noticed attention.cu 's/o\[n\]\[e\] \*= factor/o[n][e] *= 0 * factor[0] + 1; \/\//'
check 'attention: tiles beyond the sequence are read' noticed tile.cuh 's/r < there && j < width\)/j < width)/'
check 'attention back: the sums along are left out' noticed attention_back.cu 's/dp\[n\]\[e\] - mean\[e \/ 2\]/dp[n][e]/'
check 'attention back: a query too many' noticed attention_back.cu 's/j <= query \+ i && i < there/j <= query + i + 1 \&\& i < there/'
check 'norm: the mean stays' noticed norm.cu 's/x\[j\] \* scale - offset\) \* weight/x[j] * scale) * weight/'
check 'norm: no barrier in the sums of slabs' noticed norm.cu '/room\[SLAB_ROWS \* COLUMNS \+ threadIdx.x\] = scaled;/{n;d}'
check 'cross-entropy: of one token less' noticed ends.cu 's/\/ tokens\)/\/ (tokens - 1))/'
check 'cross-entropy: scores are written before all have read' noticed ends.cu '/const float wanted/{n;d}'
check 'embedding: the first token of an id is left out' noticed ends.cu 's/int32_t i = first;/int32_t i = first + 1;/'
check 'step: no decay' noticed optimizer.cu 's/decay = s\.decay \* s\.w\[i\]/decay = 0/'
check 'codec: rounded the other way' noticed codec.cu 's/0x1.8p23f/0x1.8p22f/'
check 'codec: a scale of 128 steps' noticed codec.cu 's/__fdiv_rn\(largest, 127/__fdiv_rn(largest, 128/'
check 'codec: four bits of a neighbour too far' noticed codec.cu 's/other = own \+ half \/ EACH/other = own + half \/ EACH + 1/'
check 'step by turns: the buffer stays' noticed optimizer.cu 's/s\.last \? 0 : buffer/buffer/'
check 'mixing: twice the same part' noticed optimizer.cu 's/rest = 1 - mixing/rest = mixing/'
check 'tied table: a part that was not counted' noticed optimizer.cu 's/q > 0 \? b\[i\] \/ q : 0/b[i] \/ (q > 0 ? q : 1)/'
check 'tied table: products of either sign' noticed optimizer.cu 's/!\(product <= 0\)/product == product/'
check 'tied table: numbers that are none pass' noticed optimizer.cu 's/!\(product <= 0\)/product > 0/'
check 'aggregate: the vote after the one' noticed robust.cu 's/less <= place \&\& place < less \+ equal/less < place \&\& place <= less + equal/'
check 'aggregate: all that tie are left out' noticed robust.cu '/b\.lows -= low;/d'
check 'aggregate: votes that are no numbers stay' noticed robust.cu 's/below = above = more = 0;/;/; s/< FINITE_LEAST/< INT32_MIN/; s/> FINITE_MOST/> INT32_MAX/'
check 'zeno: another score' noticed robust.cu 's/- rho \* g\)/- g)/'
check 'zeno: of equal ones the last stay' noticed robust.cu 's/v < vote\)/v > vote)/'
check 'gelu: another curve' noticed feed.cu 's/GELU_B 0.044715f/GELU_B 0.05f/'
plan
