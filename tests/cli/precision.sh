#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# precision.sh - the type that passes are timed in, through `skep check`, `sim` and `run`: which one a GPU gets where nothing is said, and what
# follows from it for times, memory and bytes, against formulas by hand. And how far times may be off: what seeds draw of it.
set -u
. tests/cli/lib.sh
needs python3 sqlite3
mpi_environment

# fp32: 10 TFLOP/s at 0.5; bf16: 80 TFLOP/s at 0.25, which is four times as fast. No pass waits for memory.
mkdir gpus
for kind in new old; do
	peaks='{bf16: 80 TFLOP/s}' efficiencies='{bf16: 0.25}'
	[ $kind = new ] || peaks='{fp16: 20 TFLOP/s}' efficiencies='{fp16: 0.9}'
	cat >gpus/$kind.yaml <<-END
	name: $kind
	source: Assumed for this test.
	flops: 10 TFLOP/s
	efficiency: 0.5
	memory_bandwidth: 10000000 GB/s
	memory: 16 GB
	overhead: 0 s
	peaks: $peaks
	efficiencies: $efficiencies
	END
done

# A block: 24 s h^2 + 4 s^2 h FLOPs a sample, 12 h^2 + 13 h parameters. Two stages of two blocks, and the head in the second.
h=256 s=128 vocabulary=1000 microbatch=4 microbatches=8
cat >model.yaml <<END
name: four blocks
kind: transformer
transformer: {hidden: $h, sequence: $s, blocks: 4, heads: 4, vocabulary: $vocabulary}
END
flop=$((microbatch * 2 * (24 * s * h * h + 4 * s * s * h)))
parameters=$((2 * (12 * h * h + 13 * h)))

scenario() { # scenario GPU... : makes scenario.yaml, one machine of each kind in turn, two for each stage
	{
		printf 'name: four\nsource: Assumed for this test.\ndirectory: here\nsites:\n  here:\n    machines:\n'
		printf '    - {gpu: %s}\n' "$@"
		printf '    inside: {bandwidth: 10 Gbit/s, latency: 0 s}\n'
	} >topology.yaml
	cat >scenario.yaml <<-END
	name: four blocks
	seed: 1
	model: {file: model.yaml, stages: 2, cut: [2, 3]}
	cluster: {topology: topology.yaml, allocation: {method: strided}}
	schedule: {global_batch: $((microbatch * microbatches)), microbatch: $microbatch}
	sync: {chunks: 1}
	train: {arithmetic: none, optimizer: {name: adamw, lr: 1.0e-4}, until: {steps: 1}}
	END
}

says() { # says NAME PATTERN ARGUMENT...: what `skep check` says of the type
	local name=$1 pattern=$2
	shift 2
	run_skep check scenario.yaml "$@"
	check "$name" grep -qE "^  type      $pattern" "$out"
}

# ---- in mixed precision -------------------------------------------------------------------------------------------------

scenario new new new new
says 'bf16 where a GPU has it' 'bf16 on new \(mixed precision: .*2 bytes.*\), as such GPUs train; cluster.compute.type: fp32 for another'

# Seconds of a forward pass of stage 0, bytes of the pipeline, bytes of reductions.
simulated() { # simulated ARGUMENT...
	rm -f runs.db
	run_skep sim scenario.yaml -q --json --db runs.db "$@"
	sqlite3 runs.db "SELECT printf('%.9f', avg(end_s - begin_s)) FROM ops WHERE kind = 'forward' AND stage = 0"
	python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["bytes_pipeline"], r["bytes_sync"])' <"$out"
}

# Each microbatch sends activations and gradients, each member of a ring of two sends two halves in one piece; 96 bytes are a message's header.
head_parameters=$((vocabulary * h + 2 * h))
by_hand() { # by_hand BYTES RATE
	awk "BEGIN { printf \"%.9f\n\", $flop / $2 }"
	echo "$((2 * microbatches * (96 + microbatch * s * h * $1)))" \
		"$((2 * (4 * 96) + 2 * $1 * (parameters + parameters + head_parameters)))"
}

same() { # same NAME SEEN WANTED
	if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "seen: $2"$'\n'"by hand: $3"; fi
}

same 'bf16: time and bytes' "$(simulated)" "$(by_hand 2 20e12)"
same 'fp32: time and bytes' "$(simulated --set cluster.compute.type=fp32)" "$(by_hand 4 5e12)"
says 'as the file says' 'fp32 \(.*fp32\), as cluster.compute.type says' --set cluster.compute.type=fp32

# AdamW: 2 for the weights, 2 for each of two accumulators, 4 for the master copy and 8 for the moments.
run_skep check scenario.yaml --json
columns='import json, sys; m = json.load(sys.stdin)["memory"][0]; print(*(int(m[k + "_bytes"]) for k in ("weights", "gradients", "optimizer")))'
same 'memory in mixed precision' "$(python3 -c "$columns" <"$out")" "$((2 * parameters)) $((4 * parameters)) $((12 * parameters))"
run_skep check scenario.yaml --json --set cluster.compute.type=fp32
same 'memory in fp32' "$(python3 -c "$columns" <"$out")" "$((4 * parameters)) $((8 * parameters)) $((8 * parameters))"

# What periodic sync reduces is in fp32.
same 'DiLoCo reduces differences of master copies' "$(simulated --set sync.method=diloco --set sync.every=2 --set train.until.steps=2 | awk 'NR == 2 { print $2 }')" \
	"$(by_hand 4 1 | awk 'NR == 2 { print $2 }')"

# ---- how sure a time is --------------------------------------------------------------------------------------------------

# One machine computes alone, so a run takes what its passes take: the plain time times exp(0.1 z), whose law is known.
for unsure in 0.1 0 2; do
	sed "s/^name: new/name: unsure/; s/^overhead:.*/&\nuncertainty: $unsure/" gpus/new.yaml >"gpus/unsure-$unsure.yaml"
done
scenario unsure-0.1
alone=(--set model.stages=1 --set 'model.cut=[5]' --set train.until.steps=2)
drawn=("${alone[@]}" --set cluster.compute.uncertainty=drawn --seeds 1..400)
run_skep sim scenario.yaml -q --json --db runs.db "${alone[@]}"
cp "$out" plain
run_skep sim scenario.yaml -q --json --db runs.db "${drawn[@]}"
check 'seeds draw times of the law that is said' python3 - plain "$out" <<-'END'
	import json, math, sys
	plain, drawn = json.load(open(sys.argv[1]))["time_s"], json.load(open(sys.argv[2]))["rows"][0]["time_s"]
	mean, ratio = math.exp(0.005), drawn["sd"] / drawn["mean"]
	assert drawn["runs"] == 400, drawn
	assert abs(drawn["mean"] / plain / mean - 1) < 4 * 0.1 / 20, (plain, drawn)
	assert abs(ratio / math.sqrt(math.exp(0.01) - 1) - 1) < 4 / math.sqrt(800), ratio
	for quantile, z in (("p5", -1.645), ("p95", 1.645)):
	    assert abs(math.log(drawn[quantile] / plain) / 0.1 - z) < 4 * 0.106, (quantile, drawn)
	END
sed -i 's/unsure-0.1/unsure-0/' topology.yaml
run_skep sim scenario.yaml -q --json --db runs.db "${drawn[@]}"
check 'a profile that is sure has one time' python3 - plain "$out" <<-'END'
	import json, sys
	plain, drawn = json.load(open(sys.argv[1]))["time_s"], json.load(open(sys.argv[2]))["rows"][0]["time_s"]
	assert drawn["sd"] == 0 and drawn["mean"] == plain, (plain, drawn)
	END
sed -i 's/unsure-0/unsure-2/' topology.yaml
refuses 'more than all of it' 'gpus/unsure-2.yaml:[0-9:]*.*uncertainty: expected a decimal number from 0 to 1' check scenario.yaml
refuses 'a model whose times are given' 'cluster.compute.uncertainty: the file of .* gives the times of its layers: leave it out' \
	check "$root/scenarios/pipedream.yaml" --set cluster.compute.uncertainty=drawn

# ---- pools of several kinds ---------------------------------------------------------------------------------------------

scenario old old old old
says 'no matrix units: fp32' 'fp32: no profile has a peak in bf16'
same 'fp32 by default' "$(simulated)" "$(by_hand 4 5e12)"
scenario new old new old
says 'one of them has fp32 alone' 'bf16 on new, fp32 on old \(parameters, messages and memory in fp32\)'
same 'messages in fp32' "$(simulated | tail -n 1)" "$(by_hand 4 5e12 | tail -n 1)"
refuses 'a type that one of them lacks' 'the profile of new has no peak of fp16; take `type: bf16`' \
	check scenario.yaml --set cluster.compute.type=fp16
for pair in v100:fp16 t4:fp16 a100-80:bf16 h100:bf16 rtx-3090:bf16 l4:bf16 titan-rtx:fp16 p100:fp32; do
	rm -rf gpus
	ln -s "$root/topologies/gpus" gpus
	scenario "${pair%:*}" "${pair%:*}"
	run_skep check scenario.yaml --json
	same "${pair%:*} in ${pair#*:}" "$(python3 -c 'import json, sys; print(*json.load(sys.stdin)["precision"]["types"].values())' <"$out")" "${pair#*:}"
done

# ---- with real arithmetic, and for real ---------------------------------------------------------------------------------

job real.yaml 1 2 2 2
run_skep check real.yaml
check 'real arithmetic is in fp32' grep -qE '^  type      fp32, in which train.arithmetic: real computes; .* fp16 on V100' "$out"
both() { # both ARGUMENT...: bytes of a simulated and of a real run
	for world in sim run; do
		run_skep $world real.yaml -q --json --db both.db "$@"
		python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["bytes_pipeline"], r["bytes_sync"])' <"$out"
	done
}
twice() { # twice NAME BYTES ARGUMENT...: pipeline bytes of two steps of 16 microbatches of 32 samples, each 64 numbers there and back
	local name=$1 wanted
	wanted="$((2 * 2 * 16 * (96 + 32 * $2 * width))) 0"
	shift 2
	same "$name" "$(both "$@")" "$wanted"$'\n'"$wanted"
}
width=$(sed -n 's/.*hidden: \([0-9]*\).*/\1/p' "$root/models/square-mlp.yaml")
if [ "${SKEP_HAS_MPI:-yes}" = no ]; then
	skip 'both worlds send as much' 'a build without MPI'
else
	twice 'real arithmetic: 4 bytes in both worlds' 4
	twice 'none: 2 bytes in both worlds' 2 --set train.arithmetic=none
	twice 'none, in fp32: 4 bytes in both worlds' 4 --set train.arithmetic=none --set cluster.compute.type=fp32
fi

plan
