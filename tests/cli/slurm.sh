#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# slurm.sh - `skep slurm`: scripts that bash and sbatch can read, with the tasks and GPUs of the scenario; what is typed stays words.
set -u
. tests/cli/lib.sh
needs python3

said() { # said REGEX FILE
	grep -qE -- "$1" "$2"
}

# What sbatch would read: every option is one that it has, with a value of its kind, and all stand in front of the first command.
readable() { # readable FILE
	bash -n "$1" && python3 - "$1" <<'END' || return
import re, sys
word = r"[A-Za-z0-9_.,-]+"
kinds = {"job-name": word, "ntasks": r"\d+", "nodes": r"\d+", "ntasks-per-node": r"\d+", "cpus-per-task": r"\d+",
	"time": r"\d+-[0-2]\d:[0-5]\d:00", "partition": word, "gpus-per-task": word + r":1", "array": r"1-\d+",
	"output": r"[a-zA-Z%-]+\.log", "open-mode": "append", "requeue": None, "no-requeue": None}
commands = False
for line in open(sys.argv[1]).read().splitlines()[1:]:
	commands = commands or (line != "" and line[0] != "#")
	if not line.startswith("#SBATCH"):
		continue
	assert not commands, line
	for option in line.split()[1:]:
		name, equals, value = option.lstrip("-").partition("=")
		if option == "hetjob":
			continue
		assert option.startswith("--") and name in kinds, option
		assert value == "" if kinds[name] is None else re.fullmatch(kinds[name], value), option
END
	# A Slurm that is up also says whether it would take it; elsewhere its commands are missing or reach nothing.
	! timeout 2 sinfo >/dev/null 2>&1 || sbatch --test-only "$1" 2>&1 | grep -qE 'to start at|Requested node configuration|invalid partition|[Ii]nvalid generic resource'
}

two=$root/scenarios/two-datacentres.yaml
accepts 'a run' slurm "$two" --set train.until.steps=20 --partition cpu,long --time '90 min'
cp "$out" run.sbatch
check 'can be read' readable run.sbatch
check 'a task for each worker and the directory' said '^#SBATCH --ntasks=9$' run.sbatch
check 'limit' said '^#SBATCH --time=0-01:30:00$' run.sbatch
check 'partition' said '^#SBATCH --partition=cpu,long$' run.sbatch
check 'command' said "^exec srun --mpi=pmix skep run $two --set train.until.steps=20\$" run.sbatch

limit() { # limit OPTION..: what is left to Slurm to end
	"$skep" slurm "$two" --device cuda --set train.arithmetic=none "$@" | sed -n 's/^#SBATCH --time=//p'
}
whole=$(limit --set 'sync={method: diloco, every: 4000}' --set train.until.steps=4000)
check 'a limit for rounds' test -n "$whole"
check 'which are whole' test "$(limit --set 'sync={method: diloco, every: 4000}' --set train.until.steps=500)" = "$whole"

split=$root/scenarios/tensor-parallel.yaml
accepts 'ranks that share stages' slurm "$split" -o split
check 'as many tasks as a run has processes, and nothing to serve' sh -c 'ls split | tr "\n" " " | grep -qx "run.sbatch " &&
	grep -qx "#SBATCH --ntasks=10" split/run.sbatch'
refuses 'to serve them' 'only .skep run. starts 2 processes for a worker: take --kind run' slurm "$split" --kind serve
refuses 'them on GPUs' 'a stage that 2 ranks share trains on CPUs alone: leave out --device cuda' slurm "$split" --device cuda

accepts 'with GPUs' slurm "$two" --device cuda --per-node 1
cp "$out" gpus.sbatch
check 'can be read' readable gpus.sbatch
check 'a component for the directory and each two alike' test "$(grep -c '^#SBATCH hetjob' gpus.sbatch)" = 4
check 'their types' test "$(grep -o 'gpus-per-task=.*' gpus.sbatch | tr '\n' ' ')" = \
	'gpus-per-task=t4:1 gpus-per-task=v100:1 gpus-per-task=t4:1 gpus-per-task=v100:1 '
check 'nodes' said '^#SBATCH --nodes=2 --ntasks-per-node=1$' gpus.sbatch
check 'one world of all of them' said '^exec srun --mpi=pmix --het-group=0-4 skep run .* --device cuda$' gpus.sbatch

# What a user typed reaches the program as it is: with a program that prints its words in place of srun.
mkdir bin "it's \$here"
printf '#!/bin/sh\nprintf "[%%s]" "$@"\n' >bin/srun
chmod +x bin/srun
cp "$two" "it's \$here/a b.yaml"
ln -s "$root/topologies" "$root/models" .
accepts 'names with quotes' slurm "it's \$here/a b.yaml" --set 'name="x; touch harm"' --seed 7 --db 'a "b".db'
check 'can be read' readable "$out"
check 'stay words' test "$(PATH=$PWD/bin:$PATH bash "$out")" = \
	'[--mpi=pmix][skep][run][it'\''s $here/a b.yaml][--set][name="x; touch harm"][--seed][7][--db][a "b".db]'
check 'and do nothing' test ! -e harm

printf 'checkpoint: {every: 5, to: kept}\n' | cat "$two" - >kept.yaml
accepts 'all into a folder' slurm kept.yaml -o jobs --spot-partition spot
check 'and says which' said '^wrote into jobs: run.sbatch, requeue.sbatch, serve.sbatch, join.sbatch$' "$err"
check 'there are four' test "$(echo jobs/*)" = 'jobs/join.sbatch jobs/requeue.sbatch jobs/run.sbatch jobs/serve.sbatch'
for file in jobs/*; do
	check "$file can be read" readable "$file"
done
check 'a requeued one goes on' said '^srun .* --resume=auto && exit$' jobs/requeue.sbatch

# With a time of grace a preempted run ends by itself, and Slurm requeues only a job that is still there.
requeued() { # requeued EXPECTED-STATUS STATUS-OF-SRUN PREEMPTION: what the script asks scontrol for
	mkdir -p fake
	printf '#!/bin/sh\nexit %s\n' "$2" >fake/srun
	printf '#!/bin/sh\necho "$*" >>asked\necho "   PreemptEligibleTime=2026-11-29T16:51:02 PreemptTime=%s"\n' "$3" >fake/scontrol
	chmod +x fake/*
	: >asked
	PATH=$PWD/fake:$PATH SLURM_JOB_ID=7 bash jobs/requeue.sbatch >/dev/null
	test $? = "$1" && grep -c "requeue 7" asked
}
check 'a preempted one is put back' test "$(requeued 1 1 2026-11-29T16:51:16)" = 1
check 'one that fails is not' test "$(requeued 1 1 None)" = 0
check 'one that is done is not' test "$(requeued 0 0 2026-11-29T16:51:16)" = 0
check 'serve begins with a worker of each stage' said '^exec skep serve kept.yaml --resume=auto --at-least 4$' jobs/serve.sbatch
check 'join is an array' said '^#SBATCH --array=1-8 .*--requeue$' jobs/join.sbatch
# Without the job that serves there is nothing to wait for; where squeue cannot tell, the task goes on.
joined() { # joined WORDS-OF-SQUEUE: what the first task does with a log that names a server
	printf '#!/bin/sh\necho "%s"\n' "$1" >fake/squeue
	printf '#!/bin/sh\necho "$*"\n' >fake/skep
	chmod +x fake/*
	echo '  skep join a:7 --ticket skep1-abc --stay' >serve-7.log
	PATH=$PWD/fake:$PATH timeout 10 bash jobs/join.sbatch 7
}
check 'a task joins' test "$(joined '7 cpu skep R')" = 'join a:7 --stay --farewell 5 s'
check 'also where squeue cannot tell' test "$(joined 'error: Unable to contact slurm controller')" = 'join a:7 --stay --farewell 5 s'
check 'but no job that is long done' test "$(joined 'slurm_load_jobs error: Invalid job id specified')" = 'job 7 is done'
check 'nor one that has just ended' test "$(joined '' | head -n 1)" = 'job 7 is done'
named=$("$skep" slurm --help | grep -oE 'out/[a-z0-9-]+\.sbatch')
accepts 'the example of its help' slurm "$root/scenarios/three-spot.yaml" --spot-partition spot -o out
check 'makes the script that it names' test -s "${named:-none}"
check 'on its partition' said '^#SBATCH --partition=spot$' jobs/join.sbatch
accepts 'once more' slurm kept.yaml -o jobs
accepts 'an array for each GPU' slurm kept.yaml --device cuda -o cuda
check 'two of them' test "$(echo cuda/join*)" = 'cuda/join-t4.sbatch cuda/join-v100.sbatch'
check 'four of each' said '^#SBATCH --array=1-4 ' cuda/join-v100.sbatch

# The array's tasks find server and ticket in the log of the job that serves: the last ones, of a run that was served again.
printf '#!/bin/sh\necho "$SKEP_TICKET" "$@"\n' >bin/skep
chmod +x bin/skep
printf '  skep join %s:7337 --ticket skep1-%s\n' n1 old n2 new >serve-12.log
printf '#!/bin/sh\necho "12 cpu skep R"\n' >bin/squeue
chmod +x bin/squeue
check 'join reads the log' test "$(PATH=$PWD/bin:$PATH timeout 20 bash jobs/join.sbatch 12)" = "skep1-new join n2:7337 --stay --farewell 5 s"
check 'join asks for the number' sh -c '! bash jobs/join.sbatch 2>"$1"' - "$err"
check 'and says so' said 'number of the job that serves' "$err"

rm -rf jobs
mkdir mine
echo 'echo mine' >mine/run.sbatch
refuses 'a file of others' 'mine/run.sbatch: .*--force' slurm "$two" -o mine
check 'is left' test "$(cat mine/run.sbatch)" = 'echo mine'
refuses 'requeue without checkpoints' 'add `checkpoint: ' slurm "$two" --kind requeue
check 'no folder is left of that' test ! -e none -a ! -e jobs
refuses 'and into a folder' 'add `checkpoint: ' slurm "$two" --kind requeue -o none
refuses 'an array of two GPUs' 'have t4 and v100: choose one with --gpu' slurm "$two" --kind join --device cuda
refuses 'a GPU that no worker has' '--gpu l4: no worker of the scenario has it; worker 0 has t4' slurm "$two" --kind join --gpu l4
refuses 'words of a partition' '--partition: expected names of partitions' slurm "$two" --partition 'a b'
refuses 'a line break' 'a line break in it' slurm "$two" --set $'name=a\nb'
refuses 'no such kind' "--kind: expected|kind.*expected" slurm "$two" --kind batch
plan
