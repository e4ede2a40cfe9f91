#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# autoscale.sh - machines that a simulated run asks for and gives back (cluster.scale), against figures by hand. A round of 60
# microbatches of 300 ms and a step of 1 s takes 18 / n + 1 s with n machines, and a little for messages.
set -u
. tests/cli/lib.sh
needs python3

ln -s "$root/topologies/gpus" gpus
printf 'name: one layer\nkind: given\ngiven:\n  microbatch: 1\n  layers:\n' >model.yaml
printf '    - {parameters: 1000, activations: 8 kB, forward: 100 ms, backward: 200 ms, step: 1 s}\n' >>model.yaml
printf 'time,price\n0,0.36\n100,0.72\n' >prices.csv
cat >topology.yaml <<'END'
name: twelve in one place
source: assumed for this test
directory: here
sites:
  here:
    machines: [{count: 12, gpu: v100, prices: {file: prices.csv}}]
    inside: {bandwidth: 100 Gbit/s, latency: 0.01 ms}
END
cat >scaled.yaml <<'END'
name: scaled
seed: 1
model: {file: model.yaml, stages: 1}
cluster:
  topology: topology.yaml
  scale: {policy: price, share: 71 %, start: 2, period: 1 s, cool_down: 20 s, boot: 3 s}
schedule: {global_batch: 60, microbatch: 1}
directory: {heartbeat: 100 ms, timeout: 400 ms}
train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-1}, until: {steps: 60}}
END
cat >deadline.yaml <<'END'
name: in time
seed: 1
model: {file: model.yaml, stages: 1}
cluster:
  topology: topology.yaml
  scale: {policy: deadline, deadline: 400 s, start: 2, period: 1 s, cool_down: 20 s, boot: 3 s}
schedule: {global_batch: 60, microbatch: 1}
directory: {heartbeat: 100 ms, timeout: 400 ms}
train: {arithmetic: none, optimizer: {name: sgd, lr: 1.0e-1}, until: {steps: 100}}
END
trace() { # trace FILE ROW...
	local file=$1
	shift
	printf '%s\n' '# skep trace: who is there when. A row is seconds,join|leave|refused|end,name,gpu,zone' \
		'# unit: seconds since the trace began' '# source: assumed for this test' "$@" 100000,end >"$file"
}

cat >look.py <<'END'
"""The newest run of a database: what was asked for, who was there, what it cost."""
import json, sqlite3, sys

class Run:
    def __init__(self, db, summary):
        self.db = sqlite3.connect(db)
        self.run = self.db.execute("SELECT max(id) FROM runs").fetchone()[0]
        self.said = json.load(open(summary))
        self.end = self.said["time_s"]
        self.scaled = self.notes("scaled", "time_s, stage, microbatch, value")
        self.lives = self.db.execute(
            "SELECT worker, started_s, ended_s FROM incarnations WHERE run = ? ORDER BY started_s, worker", (self.run,)).fetchall()

    def notes(self, kind, columns):
        return self.db.execute(f"SELECT {columns} FROM notes WHERE run = ? AND kind = ? ORDER BY time_s",
                               (self.run, kind)).fetchall()

    def wanted(self):
        return [row[2] for row in self.scaled]

    def hours(self):
        return sum(ended - started for _, started, ended in self.lives) / 3600

    def usd(self):
        """By hand, of prices.csv: 0.36 USD/h until 100 s, then 0.72."""
        def paid(t):
            return (0.36 * min(t, 100) + 0.72 * max(0, t - 100)) / 3600
        return sum(paid(ended) - paid(started) for _, started, ended in self.lives)

def near(is_, should, by=1e-9):
    assert abs(is_ - should) <= by * max(1, abs(should)), (is_, should)
END

simulate() { # simulate NAME ARGUMENT...: $out has the summary, NAME.db the run
	local name=$1
	shift
	rm -f "$name.db"
	"$skep" sim "$@" --json --db "$name.db" -q >"$out" 2>"$err" || fail "$name: it is simulated" "$(cat "$err")"
}

looks() { # looks WHAT NAME: python on stdin, which has `run`
	{ printf 'import sys\nsys.path.insert(0, ".")\nfrom look import *\nrun = Run(sys.argv[1], sys.argv[2])\n'; cat; } >check.py
	check "$1" python3 check.py "$2.db" "$out"
}

# ---- by price -------------------------------------------------------------------------------------------------------------

# Machine n brings 18 / (18 + n) of the mean of those before: 0.71 with n = 7.35. No size beyond twice the largest that was tried.
simulate price scaled.yaml
looks 'by price it asks for 4, and then for 7' price <<'END'
assert run.wanted() == [4, 7], run.scaled
assert run.said["scalings"] == 2 and run.said["returned"] == 0 and run.said["joins"] == 5, run.said
assert run.said["preemptions"] == 0 and run.said["lost"] == 0
END
looks 'a machine lives from its request and the boot to the end, and costs what prices were then' price <<'END'
first, second = run.scaled
assert [w for w, _, _ in run.lives] == list(range(7)), run.lives
for worker, started, ended in run.lives:
    near(started, 0 if worker < 2 else (first if worker < 4 else second)[0] + 3)
    near(ended, run.end, 1e-4) # it hears of the end a moment later
near(run.said["cost_usd"], run.usd())
END
looks 'the run takes what its rounds take by hand' price <<'END'
# Rounds with 2, 4 and 7 machines; in that in which a machine comes it works from the next one on.
closed = [t for (t,) in run.db.execute("SELECT closed_s FROM rounds WHERE run = ? ORDER BY round", (run.run,))]
took = [b - a for a, b in zip([0] + closed, closed)]
# 60 microbatches over 7 machines: one has 9 of them.
near(took[0], 9, 0.001) # no step is behind it
near(took[1], 10, 0.001)
near(took[-1], 9 * 0.3 + 1, 0.001)
END

# From ten: with one size measured a line is assumed, so twelve are asked for; then it is known that machine 11 brings 18 / 29 = 0.62,
# less than nine tenths of the share, 0.639, and machine 10 brings 18 / 28 = 0.643.
simulate fewer scaled.yaml --set cluster.scale.start=10
looks 'from ten it asks for twelve, and keeps ten' fewer <<'END'
assert run.wanted() == [12, 10], run.scaled
assert run.said["returned"] == 2 and run.said["preemptions"] == 0 and run.said["lost"] == 0, run.said
END
looks 'one that is given back costs until it has left' fewer <<'END'
left = dict(run.notes("left", "peer, time_s"))
told = dict(run.notes("returned", "peer, time_s"))
assert sorted(left) == sorted(told) == [10, 11], (left, told)
for worker, started, ended in run.lives:
    near(ended, left.get(worker, run.end), 1e-3)
    if worker in left:
        assert told[worker] < left[worker] < told[worker] + 2 * (6 * 0.3 + 1), (told, left) # at the end of the next round
near(run.said["cost_usd"], run.usd())
END

# ---- by deadline ----------------------------------------------------------------------------------------------------------

# With n machines from the start to the end it takes 100 (18 / n + 1) s: 6 are just too few for 400 s, 7 are enough.
simulate deadline deadline.yaml
looks 'by deadline it is done in time, with about as many machines as it takes' deadline <<'END'
assert 330 < run.end < 400, run.end
assert run.wanted()[0] == 4 and 7 <= max(run.wanted()) <= 9, run.wanted()
near(run.said["cost_usd"], run.usd())
open("hours", "w").write(str(run.hours()))
END
for n in 6 7 12; do
	simulate "fixed-$n" deadline.yaml --set "cluster.scale={policy: deadline, deadline: 1 s, min: $n, max: $n}"
	looks "with $n from the start it takes as long as by hand" "fixed-$n" <<-END
	near(run.end, 100 * (-(-60 // $n) * 0.3 + 1), 0.02)
	assert (run.end < 400) == ($n > 6), run.end
	assert len(run.lives) == $n and run.said["scalings"] == 0
	END
done
looks 'and with fewer hours of machines than with as many as there are' fixed-12 <<'END'
assert float(open("hours").read()) < 0.9 * run.hours(), run.hours()
END

# ---- with a trace -----------------------------------------------------------------------------------------------------------

# Three are there; a fourth comes at 60 s. One of the two that the run has is taken at 31 s: the third takes its place at once, and
# one more that was asked for is had when it comes.
trace there.csv 0,join,a 0,join,b 0,join,c 31,leave,a 60,join,d
simulate trace scaled.yaml --set cluster.trace.file=there.csv --set cluster.scale.max=3 --set train.until.steps=20
looks 'what is taken away is replaced, and what was asked for is had when it is there' trace <<'END'
assert run.wanted() == [3], run.scaled
asked = run.scaled[0][0]
assert asked < 31
assert [w for w, _, _ in run.lives] == [0, 1, 2, 0], run.lives # the name d takes the first free place
starts = {i: started for i, (w, started, _) in enumerate(run.lives)}
near(starts[2], asked + 3)
near(starts[3], 60 + 3)
near(run.lives[0][2], 31)
near(run.said["cost_usd"], run.usd())
END
trace gone.csv 0,join,a 0,join,b 0,join,c 21,leave,c
simulate booting scaled.yaml --set cluster.trace.file=gone.csv --set cluster.scale.max=3 --set train.until.steps=4
looks 'a machine that is taken away while it boots never trains, and costs nothing' booting <<'END'
assert run.wanted() == [3] and 18 < run.scaled[0][0] < 21, run.scaled
assert [w for w, _, _ in run.lives] == [0, 1], run.lives
near(run.said["cost_usd"], run.usd())
END

# Twelve are there, two of which are given back at some 25 s. At 60 s two others are taken: those two are had again.
trace twelve.csv 0,join,a 0,join,b 0,join,c 0,join,d 0,join,e 0,join,f 0,join,g 0,join,h 0,join,i 0,join,j 0,join,k 0,join,l 60,leave,a 60,leave,b
simulate again scaled.yaml --set cluster.trace.file=twelve.csv --set cluster.scale.start=10 --set train.until.steps=40
looks 'a machine that was given back may be had again' again <<'END'
assert run.wanted()[:2] == [12, 10], run.scaled
twice = {w: [life[1] for life in run.lives if life[0] == w] for w in (10, 11)}
for starts in twice.values():
    assert len(starts) == 2, run.lives
    near(starts[1], 60 + 3)
near(run.said["cost_usd"], run.usd())
END

# ---- the same again, and what is said of it ----------------------------------------------------------------------------------

"$skep" sim scaled.yaml --json --db again.db -q >again 2>"$err"
"$skep" sim scaled.yaml --json --db again.db -q --seed 1 >"$out" 2>"$err"
check 'the same seed asks for the same' python3 -c 'import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert a["digest"] == b["digest"] and a["cost_usd"] == b["cost_usd"]' again "$out"
looks 'each gradient is counted once or reported lost' trace <<'END'
issued, counted, lost = run.db.execute("SELECT issued, counted, lost FROM runs WHERE id = ?", (run.run,)).fetchone()
assert issued == counted + lost and lost > 0, (issued, counted, lost)
END
"$skep" check scaled.yaml >"$out" 2>"$err"
check 'check says who may come' grep -q 'scale     by price: 1 to 12 machines, 2 at the start' "$out"
accepts 'check as JSON' check scaled.yaml --json
check 'limits that there are none of are null' grep -q '"deadline_s":null.*"budget_usd_per_h":null,"max_price_usd_per_h":null' "$out"
accepts 'check of a deadline' check deadline.yaml --json
check 'one that there is is a number' grep -q '"deadline_s":400,.*"budget_usd_per_h":null' "$out"
"$skep" sim scaled.yaml --db said.db >"$out" 2>"$err"
check 'and the summary what was asked for' grep -q '5 joined, 0 migrated; 0 given back, another number was wanted 2 times' "$out"

plan
