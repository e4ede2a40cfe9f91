#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# jobs.sh - many jobs on one cluster (`skep jobs`), against figures by hand and a small simulation that shares nothing with it (jobs.py).
set -u
. tests/cli/lib.sh
needs python3 gnuplot

referee() { # referee NAME ARGUMENT...
	local name=$1
	shift
	check "$name" python3 "$root/tests/cli/jobs.py" "$@"
}

# A job takes 0.3 / n s for each of its 60 microbatches on n machines, and a step of 1 s.
place 1
place 8
printf 'name: one layer\nkind: given\ngiven:\n  microbatch: 1\n  layers:\n' >model.yaml
printf '    - {parameters: 1000, activations: 8 kB, forward: 100 ms, backward: 200 ms, step: 1 s}\n' >>model.yaml
cat >one.yaml <<'END'
name: one
seed: 1
model: {file: model.yaml, stages: 1}
cluster: {topology: place-1.yaml}
schedule: {global_batch: 60, microbatch: 1}
train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-1}, until: {steps: 10}}
END
shared() { # shared MACHINES RESTART JOBS [LINE ...]: shared.yaml
	local machines=$1 restart=$2 jobs=$3
	shift 3
	printf '%s\n' 'name: shared' "cluster: {topology: place-$machines.yaml, restart: $restart, checkpoint: 1000000 GB/s}" \
		"jobs: $jobs" "$@" >shared.yaml
}
figure() { # figure PYTHON: an expression of p, what was said of each policy, and j, its jobs
	python3 - "$out" "$1" <<-'END'
	import json, sys
	said = json.load(open(sys.argv[1]))
	p = {row["policy"]: row for row in said["policies"]}
	j = {row["policy"]: row.get("jobs") for row in said["policies"]}
	def near(a, b, part=1e-6): return abs(a - b) <= part * abs(b) + 1e-6
	assert eval(sys.argv[2]), [(k, {a: b for a, b in v.items() if a != "jobs"}) for k, v in p.items()] + [j]
	END
}
in_trace() { # in_trace ROW...: trace.csv
	printf '%s\n' arrival,duration,machines "$@" >trace.csv
}

# ---- by hand ----------------------------------------------------------------------------------------------------------------

in_trace 0,10,1 0,1,1 0,4,1
shared 1 '0 s' '{trace: trace.csv, types: [one.yaml]}' 'policies: [fifo, srtf]'
accepts 'three jobs on one machine' jobs shared.yaml --json --details
check 'first in, first out: 10, 11, 15' figure '[x["end_s"] for x in j["fifo"]] == [10, 11, 15] and near(p["fifo"]["completion_mean_s"], 12)'
check 'the shortest first: 15, 1, 5' figure '[round(x["end_s"], 6) for x in j["srtf"]] == [15, 1, 5] and near(p["srtf"]["completion_mean_s"], 7)'
check 'quantiles are ranks' figure 'near(p["fifo"]["completion_p50_s"], 11) and near(p["fifo"]["completion_p99_s"], 15)'
check 'a full machine' figure 'near(p["fifo"]["utilisation"], 1) and near(p["fifo"]["makespan_s"], 15)'
jain='(1 + 1/11 + 4/15) ** 2 / (3 * (1 + 1/11**2 + (4/15)**2))'
check "Jain's index by hand" figure "near(p['fifo']['jain'], $jain)"
check 'fair shares by hand' figure 'near(j["fifo"][0]["fair_s"], 30) and near(j["fifo"][1]["fair_s"], 32 / 11)'

in_trace 0,10,1 2,3,1
shared 1 '5 s' '{trace: trace.csv, types: [one.yaml]}' 'policies: [srtf]'
accepts 'a job is preempted' jobs shared.yaml --json --details
check 'and starts again with its restart: 2 + 3 + 5 + 8' figure '[round(x["end_s"], 5) for x in j["srtf"]] == [18, 5]'
check 'which is held and not useful' figure 'near(p["srtf"]["useful"], 13 / 18, 1e-4) and near(p["srtf"]["utilisation"], 1) and p["srtf"]["preemptions"] == 1'

# A job trains whole rounds.
accepts_whole() { # accepts_whole STEPS: of a job whose rounds have 40 steps
	sed "s/until: {steps: 10}/until: {steps: $1}/; s/^train:/sync: {method: diloco, every: 40}\n&/" one.yaml >whole.yaml
	shared 8 '10 s' '[{scenario: whole.yaml, machines: 2}]' 'policies: [fifo]'
	accepts "a job of $1 steps" jobs shared.yaml --json --details
	check 'ends with a round, of 40 steps: 9 s of passes and one step of its own' figure 'near(j["fifo"][0]["alone_s"], 400, 0.001)'
}
accepts_whole 40
accepts_whole 10

# What its scenario says: 18 / n + 1 s a step, and a little for messages.
shared 8 '10 s' '[{scenario: one.yaml, machines: 1}, {scenario: one.yaml, machines: 2, min: 1, max: 6, steps: 200}, {scenario: one.yaml, machines: 4, arrival: 100 s, steps: 100}]' \
	'policies: [fifo]'
accepts 'jobs of their own steps' jobs shared.yaml --json --details
check 'one machine: ten steps of 19 s' figure 'near(j["fifo"][0]["alone_s"], 190, 0.02)'
check 'two: 200 steps of 10 s' figure 'near(j["fifo"][1]["alone_s"], 2000, 0.02)'
check 'four: 100 steps of 5.5 s' figure 'near(j["fifo"][2]["alone_s"], 550, 0.02)'
# The second has six machines (4 s a step) until the third comes and takes four of the eight, then three until the first is done at 190,
# then four, which its restart is worth, until the third is done at 650; then six.
check 'and they share what is left' figure 'j["fifo"][1]["resizes"] >= 2 and j["fifo"][1]["end_s"] < 1250 and near(j["fifo"][2]["end_s"], 650, 0.02)'
cp "$out" elastic.json
sizes=$(for n in 1 2 3 4 5 6; do printf '{scenario: one.yaml, machines: %d, steps: 1, arrival: %d min}, ' $n $((10 * n)); done)
cp shared.yaml elastic.yaml
shared 8 '10 s' "[${sizes%, }]" 'policies: [fifo]'
accepts 'a step on each number of machines' jobs shared.yaml --json --details
check 'the second by hand: six machines, then what is left of eight' python3 - "$out" elastic.json <<'END'
import json, sys
step = {job["machines"]: job["alone_s"] for job in json.load(open(sys.argv[1]))["policies"][0]["jobs"]}
said = json.load(open(sys.argv[2]))["policies"][0]["jobs"]
first, third = said[0]["end_s"], said[2]["end_s"]
now, left, restart = 0.0, 200.0, 10.0
ends = []
def until(then, machines, pause):
    global now, left
    works = max(0.0, then - now - pause)
    left -= works / step[machines]
    now = then
until(100, 6, 0)      # the first has one machine
until(first, 3, restart)  # the third has four
until(third, 4, restart)
assert left > 0
end = now + restart + left * step[6]  # seven are free, and it can use six
assert abs(end - said[1]["end_s"]) < 1e-3, (end, said[1]["end_s"])
END
cp elastic.yaml shared.yaml
shared 8 '10000 s' "$(grep -o '\[{scenario.*' shared.yaml)" 'policies: [fifo]'
accepts 'a restart that is worth nothing' jobs shared.yaml --json --details
check 'is not taken to grow' figure 'j["fifo"][1]["resizes"] == 1'

# One host of two machines and four CPUs: in proportion two each. The first job needs three, and the second is content with one.
shared 8 '0 s' '{trace: trace.csv, types: [{name: hungry, scenario: one.yaml, sensitivity: {cpus: [1, 2, 3], memory: [0 B], throughput: [[1], [2], [3]]}}, {name: content, scenario: one.yaml, sensitivity: {cpus: [1], memory: [0 B], throughput: [[1]]}}]}' \
	'policies: [fifo, synergy]'
sed -i 's/^cluster: {/cluster: {host: {machines: 2, cpus: 4, memory: 100 GB}, /' shared.yaml
printf '%s\n' arrival,duration,machines,type 0,300,1,hungry 0,300,1,content >trace.csv
accepts 'CPUs by sensitivity' jobs shared.yaml --json --details
check 'in proportion both take what the trace says' figure '[round(x["end_s"], 5) for x in j["fifo"]] == [300, 300]'
check 'with synergy the first has three CPUs of the four: 200 s' figure '[round(x["end_s"], 5) for x in j["synergy"]] == [200, 300]'

# ---- against the referee ----------------------------------------------------------------------------------------------------

python3 - <<'END'
import random
for name, seed, jobs, most in (("many", 1, 300, 8), ("few", 2, 8, 1)):
    random.seed(seed)
    at = 0
    with open(name + ".csv", "w") as out:
        out.write("arrival,duration,machines\n")
        for _ in range(jobs):
            at += random.randint(0, 3) if most == 1 else random.expovariate(1 / 20)
            length = random.randint(1, 5) if most == 1 else random.expovariate(1 / 50)
            out.write("%.6f,%.6f,%d\n" % (at, length, random.choice([1, 1, 2, 4, most])))
END
for restart in 0 7; do
	shared 8 "$restart s" '{trace: many.csv, types: [one.yaml]}' 'policies: [fifo, srtf, las]' 'las: {queues: [60 s, 300 s]}'
	accepts "300 jobs, a restart of $restart s" jobs shared.yaml --json --details
	for policy in fifo srtf las; do
		referee "$policy as the referee has it, a restart of $restart s" play $policy 8 $restart many.csv "$out" 60 300
	done
	accepts 'backfilling' jobs shared.yaml --json --details --policy fifo --set backfill=true
	referee "backfilling as the referee has it" play backfill 8 $restart many.csv "$out"
done
sed -i 's/,[0-9]*$/,1/; s/machines,1$/machines/; 1s/.*/arrival,duration,machines/' few.csv
shared 1 '0 s' '{trace: few.csv, types: [one.yaml]}' 'policies: [srtf]'
accepts 'eight jobs on one machine' jobs shared.yaml --json --details
referee 'no other order has a lower mean' best few.csv "$out"
shared 1 '0 s' '{draw: {count: 20000, interval: 10 s, duration: 6 s}, types: [one.yaml]}' 'policies: [fifo]' 'seed: 3'
accepts 'drawn jobs' jobs shared.yaml --json --details
referee 'wait as M/M/1 does' mm1 10 6 "$out"
cp "$out" first.json
accepts 'once more' jobs shared.yaml --json --details
check 'the same seed, the same run' bash -c "cmp <(sed 's/\"comparison\":[0-9]*//' '$out') <(sed 's/\"comparison\":[0-9]*//' first.json)"
accepts 'another seed' jobs shared.yaml --json --details --seed 4
check 'is another run' bash -c "! cmp -s '$out' first.json"

# ---- starving -----------------------------------------------------------------------------------------------------------------

{ echo arrival,duration,machines; echo 0,150,1; for ((i = 10; i < 1000; i += 40)); do echo "$i,40,1"; done; } >trace.csv
shared 1 '0 s' '{trace: trace.csv, types: [one.yaml]}' 'policies: [las]' 'las: {queues: [60 s]}'
accepts 'a long job among short ones' jobs shared.yaml --json --details
check 'starves' figure 'j["las"][0]["end_s"] > 1000'
accepts 'and with a promotion' jobs shared.yaml --json --details --set las.promote=3
check 'does not' figure 'j["las"][0]["end_s"] < 1000'
accepts 'a promotion after longer than clocks go' jobs shared.yaml --json --details --set las.promote=1e9
check 'is none' figure 'j["las"][0]["end_s"] > 1000'

# ---- tables of others ------------------------------------------------------------------------------------------------------------

# Made up in the form of pai_task_table.csv, which has no row of names: a job of two tasks, one that failed, one without a GPU.
cat >pai.csv <<'END'
b,worker,2.0,Terminated,1100.0,1400.0,600.0,29.296875,150.0,V100
a,ps,1.0,Terminated,990.0,1300.0,400.0,10.0,,MISC
a,worker,3.0,Terminated,1000.0,1200.0,600.0,29.296875,50.0,T4
a,evaluator,1.0,Terminated,1050.0,1300.0,600.0,29.296875,100.0,T4
c,worker,1.0,Failed,1150.0,1160.0,600.0,29.296875,100.0,T4
d,worker,1.0,Running,1150.0,,600.0,29.296875,100.0,T4
END
accepts "Alibaba's table of 2020" trace jobs pai.csv --json -o pai-jobs.csv
check 'is jobs by arrival' test "$(grep -v '^#' pai-jobs.csv | tr '\n' ' ')" = 'arrival,duration,machines,name 1000,300,4,a 1100,300,4,b '
check 'and says what is left out' grep -q '"jobs":2,"parts_of_gpus":2,"without_gpu":1,"not_ended":2,"outside":0' "$out"
accepts 'again, over its own file' trace jobs pai.csv --start '1050 s' -o pai-jobs.csv
check 'a part of it' test "$(grep -v '^#' pai-jobs.csv | tr '\n' ' ')" = 'arrival,duration,machines,name 50,300,4,b '
cat >openb.csv <<'END'
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,460,,LS,Running,0,900,100
p1,6000,12288,8,1000,,LS,Running,50,5000,60
p2,6000,12288,0,0,,LS,Running,55,700,60
p3,6000,12288,2,1000,,LS,Pending,70,800,
p4,6000,12288,2,1000,,LS,Succeeded,80,4800,90
END
accepts "Alibaba's table of 2023" trace jobs openb.csv -o openb-jobs.csv
check 'is jobs with their lengths' test "$(grep -v '^#' openb-jobs.csv | tr '\n' ' ')" = 'arrival,duration,machines,name 0,800,1,p0 80,4710,2,p4 '
shared 8 '0 s' '{trace: openb-jobs.csv, types: [one.yaml]}'
accepts 'which can be simulated' jobs shared.yaml --json --details
check 'to their ends' figure '[round(x["end_s"], 5) for x in j["fifo"]] == [800, 4790]'
sed 's/50,5000,60/50,40,60/' openb.csv >wrong.csv
refuses_at 'a pod that is deleted before its schedule' wrong.csv:3:37 'time goes backwards' trace jobs wrong.csv -o new.csv
printf 'a,b\n1,2\n' >wrong.csv
refuses_at 'another table' wrong.csv:1:1 'say --format' trace jobs wrong.csv -o new.csv
refuses 'over a file of others' 'is not what this command writes' trace jobs openb.csv -o one.yaml

# ---- the database ------------------------------------------------------------------------------------------------------------------

in_trace 0,10,1 2,3,1
shared 1 '5 s' '{trace: trace.csv, types: [one.yaml]}' 'policies: [fifo, srtf]'
sed 's/gpu: v100}/gpu: v100, price: 3.60 USD\/h}/' place-1.yaml >priced.yaml
accepts 'two policies' jobs shared.yaml --set cluster.topology=priced.yaml --json --details --db new.db
check 'a price by hand: 13 and 18 s of 3.60 USD/h' figure 'near(p["fifo"]["usd"], 0.013) and near(p["srtf"]["usd"], 0.018, 1e-4) and said["comparison"] == 1'
check 'are in the database' python3 - new.db <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
assert db.execute("SELECT id, comparison, policy, jobs FROM cluster_runs").fetchall() == [(1, 1, "fifo", 2), (2, 1, "srtf", 2)]
assert [round(x[0], 4) for x in db.execute("SELECT end_s FROM cluster_jobs ORDER BY cluster_run, job")] == [10, 13, 18, 5]
spans = [tuple(round(x, 4) for x in row) for row in db.execute("SELECT job, begin_s, end_s, machines FROM cluster_spans WHERE cluster_run = 2 ORDER BY begin_s")]
assert spans == [(0, 0, 2, 1), (1, 2, 5, 1), (0, 5, 18, 1)], spans
END
accepts 'a run in the same database' sim one.yaml --db new.db -q
accepts 'a picture' plot jobs --db new.db -o jobs.svg
check 'names the policies' bash -c "grep -q srtf jobs.svg && grep -q 'by when they are done' jobs.svg"
accepts 'of one comparison' plot jobs 1 --db new.db -o jobs.svg
accepts 'who had how many machines when' plot gantt --db new.db -o gantt.svg
check 'says the policies, the jobs and what a colour means' bash -c "grep -q 'srtf, mean' gantt.svg && grep -q '2 jobs on 1 machine' gantt.svg && grep -q machines gantt.svg"
# The axis goes from 0.16 to 0.9 of 1200 pixels and 1 % beyond the last end; a box for each span, none besides, and grey ones for stays.
check 'a box for each span, where it begins and ends' python3 - gantt.svg <<'END'
import re, sys
boxes = []
for color, points in re.findall(r"<polygon fill = '(rgb[^']*)' points = '([^']*)'", open(sys.argv[1]).read()):
    x = [float(point.split(",")[0]) for point in points.split()]
    if min(x) >= 191 and max(x) <= 1081:
        boxes.append((color.replace(" ", "") == "rgb(200,200,200)", min(x), max(x)))
def at(seconds):
    return 192 + 888 * seconds / (1.01 * 18)
spans = [(0, 10), (10, 13), (0, 2), (2, 5), (5, 18)]
dark = [box for box in boxes if not box[0]]
assert len(dark) == len(spans) and len(boxes) == len(spans) + 4, boxes
for begin, end in spans:
    assert any(abs(box[1] - at(begin)) < 1 and abs(box[2] - at(end)) < 1 for box in dark), (begin, end, dark)
END
refuses 'a gantt of none' 'comparison 7 is not in the database' plot gantt 7 --db new.db -o other.svg
refuses 'a gantt with axes' 'plot gantt and plot jobs take no option' plot gantt --x steps --db new.db -o other.svg
refuses 'of none' 'comparison 7 is not in the database' plot jobs 7 --db new.db -o other.svg
accepts 'runs alone' sim one.yaml --db runs.db -q
refuses 'a database without jobs' 'holds no jobs: .skep jobs FILE. writes some' plot jobs --db runs.db -o other.svg

# ---- as fast as check says ----------------------------------------------------------------------------------------------------------

# `arithmetic: real` is timed in fp32, here too, and what a job's `set` changes is timed as that.
printf '%s\n' 'name: shared' "cluster: {topology: $root/topologies/two-datacentres.yaml}" 'policies: [fifo]' \
	"jobs: [{scenario: $root/scenarios/two-datacentres.yaml, machines: 8}," \
	"  {scenario: $root/scenarios/two-datacentres.yaml, machines: 8, set: {train.arithmetic: none}}]" >types.yaml
accepts 'jobs with and without real arithmetic' jobs types.yaml --json --details
cp "$out" types.json
for arithmetic in real none; do
	accepts "what check expects of $arithmetic" check "$root/scenarios/two-datacentres.yaml" --set cluster.allocation.method=contiguous \
		--set train.arithmetic=$arithmetic --json
	mv "$out" $arithmetic.json
done
check 'a job takes as long as check says, in its own type' python3 - <<'END'
import json
jobs = [job["alone_s"] for job in json.load(open("types.json"))["policies"][0]["jobs"]]
alone = [json.load(open(name))["expected"]["time_s"] for name in ("real.json", "none.json")]
assert all(abs(a / b - 1) < 1e-9 for a, b in zip(jobs, alone)), (jobs, alone)
assert alone[0] > 1.2 * alone[1], alone
END

# ---- what is wrong ----------------------------------------------------------------------------------------------------------------

shared 8 '0 s' '[{scenario: one.yaml, machines: 9}]'
refuses_at 'a job larger than the cluster' shared.yaml:3:39 '9 machines, the cluster has 8: ask for fewer' jobs shared.yaml
shared 8 '0 s' '[{scenario: one.yaml, arrival: 10 s}, {scenario: one.yaml, arrival: 5 s}]'
refuses_at 'arrivals out of order' shared.yaml:3:75 'before the one above it, at 10 s: put jobs in order' jobs shared.yaml
shared 8 '0 s' '[{scenario: one.yaml, arrival: -5 s}]'
refuses_at 'an arrival before the start' shared.yaml:3:38 'arrival' jobs shared.yaml
shared 8 '0 s' '[one.yaml]' 'policies: [fifo, sjf]'
refuses_at 'an unknown policy' shared.yaml:4:18 'fifo, srtf, las, synergy' jobs shared.yaml
refuses 'an unknown policy as an option' '--policy sjf: not a policy: take fifo' jobs shared.yaml --policy sjf
shared 8 '0 s' '{trace: trace.csv, types: [one.yaml]}'
in_trace 5,1,1 4,1,1
refuses_at 'a trace out of order' trace.csv:3:1 'arrivals go backwards' jobs shared.yaml
in_trace -5,1,1
refuses_at 'a trace that begins too early' trace.csv:2:1 'expected' jobs shared.yaml
in_trace 5,1,9
refuses_at 'a trace of larger jobs' trace.csv:2:5 'more than the 8 machines of the cluster.*machines_max: 8' jobs shared.yaml
accepts 'which may be made smaller' jobs shared.yaml --set jobs.machines_max=8
printf 'arrival,machines\n0,1\n' >trace.csv
refuses 'a trace without durations' "no column 'duration'" jobs shared.yaml
shared 8 '0 s' '[{scenario: one.yaml, machines: 1, set: {model.stages: 2}}]'
refuses 'a job that cannot be' 'shared.yaml:3.*its scenario cannot be read: ' jobs shared.yaml
shared 8 '0 s' '[{scenario: one.yaml, machines: 1, steps: 4000000000}]'
refuses_at 'a job without an end' shared.yaml:3:8 'more than 10\^9 s: let it train fewer steps' jobs shared.yaml
shared 8 '0 s' '[{scenario: one.yaml, sensitivity: {cpus: [1], memory: [0 B], throughput: [[1]]}}]'
refuses 'a sensitivity without a host' 'add `host:' jobs shared.yaml
shared 8 '0 s' '[{scenario: one.yaml, set: {cluster.topology: place-1.yaml}}]'
refuses 'a topology of its own' 'jobs share cluster.topology of this file' jobs shared.yaml
refuses 'a scenario by itself' 'no `jobs`' jobs one.yaml
refuses 'no such file' 'one.yam' jobs one.yam
plan
