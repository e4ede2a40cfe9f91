#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pictures.sh - each kind of picture of one run, of a pair, of many and of long names: texts that can be read, legends that stay, units
# on the axes (pictures.py), and the same two runs that `compare` takes.
set -u
. tests/cli/lib.sh
needs python3
if ! command -v gnuplot >/dev/null; then
	skip 'pictures' 'gnuplot is not installed'
	plan
	exit
fi

drawn() { # drawn FILE KIND ARGUMENT... [-- ARGUMENT... of pictures.py]
	local file=$1 arguments=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do arguments+=("$1"); shift; done
	[ $# = 0 ] || shift
	accepts "$file: ${arguments[*]}" plot "${arguments[@]}" -o "$file.svg"
	if python3 "$root/tests/cli/pictures.py" "$file.svg" --units "$@" >"$scratch/why" 2>&1; then
		pass "$file can be read"
	else
		fail "$file can be read" "$(head -12 "$scratch/why")"
	fi
}

job mine.yaml 3 6 4 2
sed -i 's/gpu: v100/&, price: 2.5 USD\/h/' place-4.yaml
accepts 'a sweep' sweep mine.yaml --vary schedule.microbatch=16,32,64 --vary train.optimizer.lr=1e-3,2e-3 --seeds 1..2 -q # runs 1 to 12
for kind in accuracy cost matrix pareto throughput timeline utilisation; do
	drawn "$kind-one" "$kind" 1
done
drawn accuracy-many accuracy 1..12 -- --has '2 seeds, simulated, optimizer.lr 1e-3, microbatch 16'
drawn throughput-many throughput 1..12
drawn pareto-many pareto 1..12 -- --has 'microbatch 64'
drawn sweep-many sweep -- --has 'train.optimizer.lr 2e-3: 2 runs a point'
drawn cost-many cost 1..8 -- --has 'run 8, simulated'
drawn utilisation-many utilisation 1..4 -- --has 'run 4, simulated'

# Four scenarios with long names: every run keeps its line of the legend.
long='a long name that a user gave to a scenario to'
for i in 1 2 3 4; do
	sed "s/^name: .*/name: $long $i/" mine.yaml >"long-$i.yaml"
	accepts "long name $i" sim "long-$i.yaml" --set "train.optimizer.lr=${i}.0e-3" -q
done
for kind in accuracy cost throughput utilisation; do
	drawn "$kind-long" "$kind" 13..16 -- --has "run 13, simulated, $long" --has "run 16, simulated, $long"
done
drawn timeline-long timeline 16
drawn matrix-long matrix 16

# Runs 17 to 20 of one name: a pair of one text, then a pair of different ones. compare takes the first, and so do pictures.
for i in 17 18 19 20; do accepts "run $i" sim mine.yaml --set name=paired --set train.until.steps=$((i < 19 ? 5 : i - 12)) -q; done
python3 - <<'END'
import sqlite3
with sqlite3.connect("skep.db") as db:
    db.execute("UPDATE runs SET world = 'real' WHERE id IN (18, 20)")
END
accepts 'compare' compare --json
check 'takes runs 17 and 18' grep -q '"run_id":17.*"run_id":18' "$out"
for kind in accuracy cost utilisation; do
	drawn "$kind-pair" "$kind" -- --has 'run 17, simulated' --has 'run 18, real' --lacks 'run 20'
done

# Of a scenario, and of jobs on one cluster: three with names, and the sixty of the first hours of a day, under long names too.
for kind in complexity search; do
	drawn "$kind" "$kind" "$root/scenarios/two-datacentres.yaml"
done
cp -r "$root/scenarios" "$root/topologies" "$root/models" .
many=scenarios/shared/sixteen-v100.yaml
sed "s/^name: .*/name: $long 5/; s/{name: images/{name: $long 6/" "$many" >scenarios/shared/long.yaml
accepts 'three jobs' jobs scenarios/shared/three-jobs.yaml --db few.db -q
accepts 'sixty jobs' jobs "$many" --set 'jobs.end=4 h' --db many.db -q
accepts 'sixty jobs of long names' jobs scenarios/shared/long.yaml --set 'jobs.end=4 h' --policy fifo --db long.db -q
for kind in gantt jobs; do
	drawn "$kind-few" "$kind" --db few.db
	drawn "$kind-many" "$kind" --db many.db
	drawn "$kind-long" "$kind" --db long.db -- --has "$long 5"
done

# Laws over the losses that they are fitted to: of one choice of H, and of twelve under a long name. What losses a law made stands for
# losses of runs, so that no minutes are trained.
for h in 1 2 3 4 5 6 8 10 12 16 20 24; do
	accepts "losses at H = $h" sim scenarios/three-spot.yaml --set cluster.trace=null --set "sync.every=$h" --set train.until.steps=480 \
		--set train.arithmetic=law --set train.law.file=scenarios/laws/tiny-gpt2.yaml --db fit.db -q
done
python3 - "$long" <<'END'
import sqlite3, sys
with sqlite3.connect("fit.db") as db:
    db.execute("UPDATE runs SET arithmetic = 'real', scenario = ?", [sys.argv[1]])
END
drawn fit-one fit 1 --db fit.db -- --has 'H = 1, '
drawn fit-many fit 1..12 --db fit.db -- --has 'H = 24, ' --has 'thousand tokens'

# How well the two agree stands in the picture, as compare has it: here the real one is made a quarter longer.
python3 - <<'END'
import sqlite3
with sqlite3.connect("skep.db") as db:
    db.execute("UPDATE runs SET time_s = 1.25 * time_s WHERE id = 18")
END
drawn agreement accuracy 17 18 -- --has 'predicted ' --has ': +25.0 %'
drawn agreement-by-steps accuracy 17 18 --x steps -- --lacks predicted
drawn agreement-of-others accuracy 17 20 -- --lacks predicted
plan
