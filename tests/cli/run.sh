#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - what `skep run` refuses before it starts anything.
set -u
. tests/cli/lib.sh

if [ "${SKEP_HAS_MPI:-yes}" = no ]; then
	refuses 'a build without MPI' 'built without MPI: apt-get install' run "${quick[@]}"
	accepts 'which still simulates' sim "${quick[@]}"
	plan
	exit
fi

refuses 'too few ranks' '-n 1: this scenario has 1 worker and needs 2 processes' run "${quick[@]}" -n 1
refuses 'too many ranks' '-n 3: this scenario has 1 worker and needs 2 processes' run "${quick[@]}" -n 3
refuses 'no ranks' '-n 0: expected a number of processes' run "${quick[@]}" -n 0
refuses 'negative ranks' '-n -2: expected a number of processes' run "${quick[@]}" -n -2
refuses 'negative spares' '--spares -1: expected a number of processes' run "${quick[@]}" --spares -1
run_skep run "${quick[@]}" --spares 0 -q --db "$scratch/spares.db"
if [ "$status" = 0 ]; then
	skip 'spares where MPI ends a run' 'this MPI survives the death of a process'
else
	refuses 'spares where MPI ends a run' 'takes Open MPI 5' run "${quick[@]}" --spares 2
fi
refuses 'a time scale without a trace' 'cluster.trace' run "${quick[@]}" --time-scale 0.1
refuses 'an unknown device' '--device tpu: expected one of cpu, cuda' run "${quick[@]}" --device tpu
if [ "${SKEP_HAS_CUDA:-no}" = no ]; then
	refuses 'a device that this build lacks' 'built without CUDA; install' run "${quick[@]}" --device cuda
elif [ -e /proc/driver/nvidia/version ]; then
	skip 'a device that this machine lacks' 'it has a GPU'
else
	refuses 'a device that this machine lacks' 'use --device cpu' run "${quick[@]}" --device cuda
fi
refuses 'a text without arithmetic' 'set train.arithmetic=real' run "$root/scenarios/diloco.yaml" --set train.arithmetic=none
sed -e 's/arithmetic: real/arithmetic: none/' -e '/^  data:/d' "$root/scenarios/shakespeare.yaml" >dataless.yaml
accepts 'a transformer without data is timed' check dataless.yaml
line=$(grep -n '^  arithmetic: none' dataless.yaml | cut -d: -f1)
refuses_at 'and has nothing to learn from for real' "dataless.yaml:$line:15" \
	'a real run trains, and tiny-gpt2 is a transformer, which learns from tokens; run with --set train.arithmetic=real --set train.data=' \
	run dataless.yaml
check 'starts nothing' test ! -e skep.db
refuses_at 'nor served' "dataless.yaml:$line:15" 'a real run trains' serve dataless.yaml
accepts 'with what it says' check dataless.yaml --set train.arithmetic=real --set train.data="{corpus: text, file: models/text/tinyshakespeare.txt}"
refuses 'arithmetic by --set is to blame' '^--set train.arithmetic=real: error: .*or take .--set train.arithmetic=none' \
	check dataless.yaml --set train.arithmetic=real
refuses 'a model by --set is to blame' '^--set model.file=models/tiny-gpt2.yaml: error: train.data.corpus' \
	check "${quick[@]}" --set model.file=models/tiny-gpt2.yaml
refuses 'also one of costs alone' '^--set model.file=models/opt-350m.yaml: error: train.arithmetic' \
	check "${quick[@]}" --set model.file=models/opt-350m.yaml
# Passes that are scaled in one world alone.
accepts 'passes of another scale' check "${quick[@]}" --set cluster.compute_scale=50
check 'are said to be' grep -q 'passes and steps take 50 times as long as those of square-mlp' "$out"
accepts 'a prediction with it' sim "${quick[@]}" --set cluster.compute_scale=50 -q --db scaled.db
accepts 'a run that knows nothing of it' run "${quick[@]}" --set cluster.compute_scale=50 --db scaled.db
check 'says so' grep -q 'compute_scale is 50, and a real run without --pace computes the model as it is' "$err"
accepts 'one that is paced' run "${quick[@]}" --set cluster.compute_scale=50 --pace --db scaled.db
check 'does not' test -z "$(grep compute_scale "$err")"
accepts 'the two are compared' compare 1 2 --db scaled.db
check 'and are said to be unlike' grep -q '^warning: passes of run 1 are 50 times as long as those of the model, of run 2 1 times' "$out"
accepts 'with the paced one' compare 1 3 --db scaled.db
check 'links are what is unlike' grep -q '^warning: run 3 was paced and not shaped' "$out"
check 'passes are not' test -z "$(grep compute_scale "$out")"
refuses 'a missing scenario' 'none.yaml' run none.yaml
ln -s "$root/topologies/gpus" gpus
sed 's/gpu: v100/gpu: v100, gpus: 2, inner: {bandwidth: 150 GB\/s, latency: 5 us}/' "$root/topologies/one-worker.yaml" >two-gpus.yaml
refuses 'two GPUs without a pace' 'splits its stage over 2 ranks: model square-mlp is no transformer .*; or run with --pace' \
	run "${quick[@]}" --set cluster.topology=two-gpus.yaml
# A law's scenario: the line, and what the message says does it.
world=$root/scenarios/plan-world.yaml
line=$(grep -n '^  arithmetic: law' "$world" | cut -d: -f1)
refuses_at 'a law for real' "$world:$line:15" 'without any: --set train.arithmetic=none --set train.law=null --set train.until.loss=null --set plan=null; or' \
	run "$world"
accepts 'without it' check "$world" --set train.arithmetic=none --set train.law=null --set train.until.loss=null --set plan=null
accepts 'or with arithmetic' check "$world" --set train.arithmetic=real --set train.law=null --set plan=null \
	--set "train.data={corpus: text, file: $root/models/text/tinyshakespeare.txt}"
refuses 'a target without losses' 'train.target_loss: there is no loss to reach without .arithmetic: real. or .law.: take one of them, or leave this out \(--set train.target_loss=null\)' \
	check "$root/scenarios/three-spot.yaml" --set train.arithmetic=none
accepts 'taken away' check "$root/scenarios/three-spot.yaml" --set train.arithmetic=none --set train.target_loss=null
refuses 'a key that is none taken away' 'unknown key .train.targt_loss., did you mean .target_loss.' \
	check "${quick[@]}" --set train.targt_loss=null
refuses 'a group that is none' 'unknown key .foo.' check "${quick[@]}" --set foo.bar=null
refuses 'what has to be there' 'key .train. is missing' check "${quick[@]}" --set train=null
accepts 'what is not there anyway' check "${quick[@]}" --set sync.compression=null --set checkpoint=null
accepts 'taken away and put back' check "${quick[@]}" --set name=null --set name=again
check 'is there' grep -q '^again' "$out"
refuses 'null in quotes is a text' 'train.arithmetic: expected one of: .*not .null.' check "${quick[@]}" --set 'train.arithmetic="null"'
refuses 'ZeRO 3 for real' 'stage 3 is simulated alone' run "${quick[@]}" --set sync.zero=3 --pace
mkdir bin
plain=$skep
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$PWD/bin" "$plain" >"$scratch/poor"
chmod +x "$scratch/poor"
skep=$scratch/poor
refuses 'no mpirun' 'mpirun is not installed: apt-get install openmpi-bin' run "${quick[@]}"
skep=$plain
refuses 'a database in no folder' 'none/a.db' run "${quick[@]}" --db none/a.db
printf 'no database at all\n%s' "$(seq 1 2000)" >list.db
refuses 'a database that is none' 'list.db' run "${quick[@]}" --db list.db

# OpenBLAS, short of memory, would ask for it for ever. The limit leaves room for the program, not for a product; what sanitizers map
# has no room in it.
limited() { (ulimit -v "${kb:-300000}" && exec timeout 300 "$skep" "$@"); }
# With so little a thread of OpenBLAS is at it from the start, and the end of the program is not to wait for it.
for kb in 150000 180000; do
	if ! limited help >/dev/null 2>&1; then
		skip "no memory, $kb kB: ends" 'the program itself does not start in it'
		continue
	fi
	status=0
	limited sim "${quick[@]}" >"$out" 2>"$err" || status=$?
	check "no memory, $kb kB: ends" test "$status" = 1
	check "no memory, $kb kB: says so" grep -q '^skep: .*memory' "$err"
done
unset kb
if limited help >/dev/null 2>&1; then
	status=0
	limited sim "${quick[@]}" >"$out" 2>"$err" || status=$?
	if [ "$status" = 1 ] && grep -q '^skep: matrix products take up to [0-9]* MiB .*ulimit -v' "$err"; then
		pass 'no memory for products'
	else
		fail 'no memory for products' "$(seen)"
	fi
else
	skip 'no memory for products' 'the program itself does not start in 300 MB'
fi

# Where there is a disk of its own for it, of 1 MB.
small() { unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=1m none small && exec env TMPDIR="$PWD/small" "$@"' - "$@"; }
if [ "${SKEP_HAS_MPI:-}" = yes ] && small true 2>/dev/null; then
	status=0
	small "$skep" run "${quick[@]}" >"$out" 2>"$err" </dev/null || status=$?
	check 'a full disk for temporary files' test "$status" = 1 -a "$(grep -c . "$err")" = 1
	check 'is named, with what to do' grep -qE '^skep: the disk of .*/small/skep-.* is full: mpirun needs .* TMPDIR$' "$err"
else
	skip 'a full disk for temporary files' 'no MPI, or no disk of its own can be mounted here'
fi
plan
