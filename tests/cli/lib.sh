# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# lib.sh - sourced by the command-line tests. Each test works in an empty folder of its own; what the program prints is kept
# outside of it, so that the folder shows what the program has made.

. tests/tap.sh

root=$PWD
skep=$(readlink -f "${SKEP:-build/skep}")
[ -x "$skep" ] || { echo "Bail out! there is no $skep"; exit 1; }
scratch=$(mktemp -d)
trap 'chmod -R u+rwx "$scratch"; rm -rf "$scratch"' EXIT
mkdir "$scratch/here"
cd "$scratch/here" || exit 1
out=$scratch/out err=$scratch/err status=0

# A run of a fraction of a second.
quick=("$root/scenarios/one-worker.yaml" --set train.until.steps=3)

# A topology of so many machines in one place, and beside it a link `gpus` to where it looks for its GPU.
small_model() { # makes small.yaml
	cat >small.yaml <<-'END'
	name: small
	kind: mlp
	activation: gelu
	layers: {inputs: 1, hidden: 40, hidden_layers: 3, outputs: 1}
	END
}

place() { # place WORKERS: makes place-WORKERS.yaml
	[ -e gpus ] || ln -s "$root/topologies/gpus" gpus
	cat >"place-$1.yaml" <<-END
	name: $1 in one place
	source: assumed for this test
	directory: here
	sites:
	  here:
	    machines: [{count: $1, gpu: v100}]
	    inside: {bandwidth: 10 Gbit/s, latency: 0.01 ms}
	END
}

# A job for so many machines in one place, which learns y = x^2.
job() { # job FILE SEED STEPS WORKERS STAGES
	place "$4"
	cat >"$1" <<-END
	name: $4 workers in $5 stages
	seed: $2
	model: {file: $root/models/square-mlp.yaml, stages: $5}
	cluster: {topology: place-$4.yaml, allocation: {method: strided}}
	schedule: {global_batch: 512, microbatch: 32}
	train: {arithmetic: real, optimizer: {name: adamw, lr: 3.0e-3}, until: {steps: $3}}
	END
}

# The same by plain descent, whose steps have a closed form, in two stages: swarm.yaml, for so many machines.
descent() { # descent NAME WORKERS BATCH STEPS
	place "$2"
	cat >swarm.yaml <<-END
	name: $1
	seed: 3
	model: {file: $root/models/square-mlp.yaml, stages: 2}
	cluster: {topology: place-$2.yaml, allocation: {method: strided}}
	schedule: {global_batch: $3, microbatch: 16}
	train: {optimizer: {name: sgd, lr: 2.0e-4}, until: {steps: $4}}
	END
}

# A GPU whose layers take what rows of a table say, for a model of that name: gpus/NAME.yaml.
measured() { # measured NAME MODEL ROW...
	local name=$1 model=$2
	shift 2
	mkdir -p gpus
	cat >"gpus/$name.yaml" <<-END
	name: $name
	source: Assumed for this test.
	flops: 10 TFLOP/s
	efficiency: 1
	memory_bandwidth: 100000 GB/s
	memory: 1000 GB
	overhead: 0 s
	tables: [{file: $name.csv, of: layers, model: $model, type: fp32, source: derived by hand}]
	END
	printf '%s\n' layer,tensor_parallel,microbatch,forward_us,backward_us,update_us,forward_flop,forward_bytes "$@" >"gpus/$name.csv"
}

steady() { # steady MODEL ROW...: gpus/steady.yaml
	measured steady "$@"
}

# One on which a block takes so many milliseconds for both passes, and nothing else takes time.
paced_gpu() { # paced_gpu NAME MODEL MS
	measured "$1" "$2" embedding,1,1,0.000001,0.000001,0.000001,1,1 \
		"block,1,1,$(($3 * 1000 / 3)),$(($3 * 2000 / 3)),0.000001,1000000,1000000" head,1,1,0.000001,0.000001,0.000001,1,1
}

# One that computes in no time, gpus/fast.yaml, and model.yaml of 64 MiB and 24 KiB: twice 4096 x 2048 weights, and biases.
only_links() {
	mkdir -p gpus
	cat >gpus/fast.yaml <<-END
	name: fast
	source: Assumed for this test.
	flops: 1000000 TFLOP/s
	efficiency: 1
	memory_bandwidth: 1000000 GB/s
	memory: 1000 GB
	overhead: 0 s
	END
	cat >model.yaml <<-END
	name: of-64-mib
	kind: mlp
	activation: gelu
	layers: {inputs: 4096, hidden: 2048, hidden_layers: 1, outputs: 4096}
	END
	bytes=67133440
}

# For runs over MPI. Those of two builds may go side by side (quickstart); a test that measures how fast something is waits until it is
# `alone`, and holds the others back. Who waits to be alone is not overtaken: all pass by the first lock, and it keeps that one meanwhile.
mpi_environment() { # mpi_environment [alone]
	exec 8<"$root/tests/cli/lib.sh" 9<"$root/tests/tap.sh"
	flock -w 600 8
	if [ "${1:-}" = alone ]; then flock -w 600 9; else flock -s -w 600 9; fi
	exec 8<&-
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	export ASAN_OPTIONS=detect_leaks=0 # MPI keeps memory to its end; the rest of the sanitizer watches
}

checked_alone() { # checked_alone ARGUMENT...: check.json is what `check` says of job.yaml on one machine of 1 TFLOP/s and nothing else
	mkdir only && cd only || exit 1
	only_links
	sed -i 's,^flops: .*,flops: 1 TFLOP/s,' gpus/fast.yaml
	cat >alone.yaml <<-END
	name: alone
	source: assumed for this test
	directory: a
	sites: {a: {machines: [{count: 1, gpu: fast}], inside: {bandwidth: 10 Gbit/s, latency: 0.01 ms}}}
	END
	run_skep check ../job.yaml --json -q --set cluster.topology=alone.yaml "$@"
	cp "$out" ../check.json
	cd .. || exit 1
}

# What `ps` would tell, of which not every system has one. By the time at which they began: numbers begin again at some end.
children() { # children PID: its child processes, the oldest first
	grep -lx "PPid:[[:space:]]*$1" /proc/[0-9]*/status 2>/dev/null | sed 's,status$,stat,' | xargs -r cat 2>/dev/null |
		sed 's/(.*)/-/' | awk '{ print $22, $1 }' | sort -n -k 1,1 -k 2,2 | cut -d ' ' -f 2
}

# Two signals of one kind are one if the first has not been heard yet.
has_heard() { # has_heard PID: has it taken what it was sent? Waits for that, for a minute at most
	local i
	for i in $(seq 600); do
		grep -qsE '^(Sig|Shd)Pnd:[[:space:]]*0*[1-9a-f]' "/proc/$1/status" || return 0
		sleep 0.1
	done
	return 1
}

any_left() { # any_left PID...: is one of these still there, if only as a zombie?
	local pid
	for pid in "$@"; do
		[ ! -d "/proc/$pid" ] || return 0
	done
	return 1
}

# As skep at the user's prompt, but for the files that hold what it printed. Stops what does not come to an end, in SKEP_PATIENCE seconds.
run_skep() {
	status=0
	timeout -k 5 "${SKEP_PATIENCE:-300}" "$skep" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

seen() {
	printf 'exit status %d\nstdout: %s\nstderr: %s\n' "$status" "$(head -c 600 "$out")" "$(head -c 1500 "$err")"
}

# Bad input: exit status 2, nothing on stdout, a message, no trace in the folder, no crash of any kind.
refuses() { # refuses NAME REGEX ARGUMENT...
	local name=$1 regex=$2 before after
	shift 2
	before=$(ls -lA --time-style=full-iso)
	run_skep "$@"
	after=$(ls -lA --time-style=full-iso)
	if [ "$status" = 2 ] && [ ! -s "$out" ] && grep -qE -- "$regex" "$err" && [ "$before" = "$after" ]; then
		pass "$name"
	else
		fail "$name" "$(seen; diff <(echo "$before") <(echo "$after"))"
	fi
}

# Bad input in a file: also the place, and under it the line with a caret.
refuses_at() { # refuses_at NAME PLACE REGEX ARGUMENT...: PLACE is FILE:LINE:COLUMN
	local name=$1 place=$2 regex=$3
	shift 3
	refuses "$name" "$regex" "$@"
	if grep -qF -- "$place: error: " "$err" && grep -qE '^ *\^' "$err"; then
		pass "$name: place and caret"
	else
		fail "$name: place and caret" "expected $place"$'\n'"$(seen)"
	fi
}

# Exit status 0.
accepts() { # accepts NAME ARGUMENT...
	local name=$1
	shift
	run_skep "$@"
	if [ "$status" = 0 ]; then
		pass "$name"
	else
		fail "$name" "$(seen)"
	fi
}

# A run whose story has so many losses. On a busy machine a worker may be kept from its core for as long as the directory's time-out, and
# is lost as well: then once more, in three tries at most, with a database that is as it was.
loses() { # loses COUNT NAME ARGUMENT...: as accepts, of a run that says so in JSON
	local count=$1 name=$2 lost try
	shift 2
	rm -f before.db
	[ ! -e skep.db ] || cp skep.db before.db
	for try in 1 2 3; do
		run_skep "$@"
		lost=$(grep -o '"preemptions":[0-9]*' "$out" | cut -d : -f 2)
		[ "${lost:-0}" -gt "$count" ] && [ "$try" -lt 3 ] || break
		echo "# $name, try $try: $lost workers were lost"
		rm -f skep.db skep.db-*
		[ ! -e before.db ] || cp before.db skep.db
	done
	rm -f before.db
	if [ "$status" = 0 ]; then pass "$name"; else fail "$name" "$(seen)"; fi
}

# Root is let through file permissions; without this capability it is not.
bound_by_permissions() { # bound_by_permissions COMMAND...
	if [ "$(id -u)" != 0 ]; then
		"$@"
	else
		setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"
	fi
}

# Namespaces of our own to mount something in, as root or not; fails where the system does not let us.
with_mounts() { # with_mounts COMMAND...
	if [ "$(id -u)" = 0 ]; then
		unshare -m "$@"
	else
		unshare -rm "$@"
	fi
}

# model.yaml of eight blocks of 18 ms forward and 36 ms backward, whose activations are 8 MiB; gpus/steady.yaml takes that long.
eight_blocks() {
	steady eight-blocks embedding,1,1,0.000001,0.000001,0.000001,1,1 block,1,1,18000,36000,0.000001,1000000,1000000 \
		head,1,1,0.000001,0.000001,0.000001,1,1
	cat >model.yaml <<-END
	name: eight-blocks
	kind: transformer
	transformer: {hidden: 1024, sequence: 2048, blocks: 8, vocabulary: 2}
	END
}

# What the simulator records of scenario.yaml in runs.db: the seconds from the first of such operations to the end of the last.
spanned() { # spanned CONDITION OPTION...
	local condition=$1
	shift
	rm -f runs.db
	"$skep" sim -q scenario.yaml --db runs.db "$@" >"$out" 2>"$err" || cat "$err" >&2
	sqlite3 runs.db "SELECT printf('%.6f', max(end_s) - min(begin_s)) FROM ops WHERE $condition"
}

# The same from the first pass's begin to the last one's end.
passes_span() {
	spanned "kind IN ('forward', 'backward')"
}
