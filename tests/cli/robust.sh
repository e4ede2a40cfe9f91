#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# robust.sh - compression, periodic sync and gathered gradients together, simulated: reductions move the bytes of their closed form,
# `skep check` knows them, liars change no decision, and what trims them out of pseudo-gradients learns.
set -u
. tests/cli/lib.sh
needs python3

place 6
cat >swarm.yaml <<-END
name: together
seed: 3
model: {file: $root/models/square-mlp.yaml, stages: 2}
cluster: {topology: place-6.yaml, allocation: {method: strided}, compute: {type: fp32}}
schedule: {global_batch: 96, microbatch: 16}
train: {arithmetic: none, optimizer: {name: adamw, lr: 2.0e-3}, until: {steps: 8}}
END

# With n members and V elements everybody sends n - 1 others all of it, once in H steps: n (n - 1) (codec(V) + 96) bytes, where
# codec(V) is 4V, 2V, V + 4 ceil(V / 64) and ceil(V / 2) + 4 ceil(V / 64); and 4 more for each part that says its weight.
closed_form() { # closed_form H CODEC AGGREGATE: of the run that was printed last, and of check
	python3 - "$out" planned.json "$@" <<-'END'
	import json, sys
	run, planned = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
	h, codec, aggregate = int(sys.argv[3]), sys.argv[4], sys.argv[5]
	scales = lambda v: 4 * -(-v // 64)
	coded = {"none": lambda v: 4 * v, "fp16": lambda v: 2 * v, "int8": lambda v: v + scales(v), "e3m0": lambda v: -(-v // 2) + scales(v)}
	each = lambda v: 3 * 2 * (coded[codec](v) + 96 + (4 if aggregate != "mean" else 0))
	right = sum(each(s["parameters"]) for s in planned["stages"])
	assert planned["bytes_sync_per_round"] == right, (planned["bytes_sync_per_round"], right)
	assert run["bytes_sync"] * h == right * 8 == right * run["steps"], (run["bytes_sync"], right, run["steps"])
	END
}
for h in 1 2 8; do
	for codec in none fp16 int8 e3m0; do
		for aggregate in mean trimmed-mean; do
			sync="collective: all-to-all, compression: $codec, aggregate: $aggregate"
			[ "$h" = 1 ] || sync="$sync, method: diloco, every: $h"
			"$SKEP" check swarm.yaml --json --set "sync={$sync}" >planned.json
			accepts "H = $h, $codec, $aggregate" sim swarm.yaml --json -q --set "sync={$sync}"
			check "H = $h, $codec, $aggregate: the closed form" closed_form "$h" "$codec" "$aggregate"
		done
	done
done

# Everything at once, with and without liars: the same decisions.
all='sync={collective: butterfly, method: diloco, every: 4, compression: e3m0, aggregate: trimmed-mean, outer: {optimizer: sgd}}'
learn() { # learn NAME OPTION ..
	accepts "$1" sim "$root/scenarios/byzantine.yaml" --json -q --db learn.db --set train.until.steps=80 "${@:2}"
}
learn 'liars, 4 bits, every 4 steps' --set "$all"
learn 'NaNs, the same' --set "$all" --set 'cluster.byzantine={workers: [3, 4], attack: nan}'
learn 'liars, a mean' --set "${all/trimmed-mean/mean}"
learn 'liars, where nobody waits' --set 'sync={collective: butterfly, method: async, every: 4, aggregate: trimmed-mean, outer: {momentum: 0.3}}'
apart() { # liars and others merge, each once; what three bring at a time is one step of all eleven
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("learn.db")
	losses = [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = 4 ORDER BY round")]
	ops = dict(db.execute("SELECT kind, count(*) FROM ops WHERE run = 4 GROUP BY kind"))
	assert all(0 <= loss < 1e3 for loss in losses) and losses[-1] < losses[0] / 8, losses
	assert db.execute("SELECT count(*) FROM v_counted_once WHERE run = 4 AND verdict <> 'kept'").fetchone()[0] == 0
	assert ops["step"] < 4 * ops["pseudo_grad"], ops # by themselves: six and five steps for each
	END
}
check 'so does one of several merges' apart
survived() {
	python3 - <<-'END'
	import sqlite3
	db = sqlite3.connect("learn.db")
	digest = lambda run: db.execute("SELECT digest FROM runs WHERE id = ?", (run,)).fetchone()[0]
	losses = lambda run: [r[0] for r in db.execute("SELECT loss FROM losses WHERE run = ? ORDER BY round", (run,))]
	assert digest(1) == digest(2) != digest(3), [digest(r) for r in (1, 2, 3)]
	for run in 1, 2:
	    assert all(0 <= loss < 1e3 for loss in losses(run)) and losses(run)[-1] < losses(run)[0] / 8, losses(run)
	assert not losses(3)[-1] < losses(3)[0], losses(3)
	END
}
check 'a trimmed mean learns, a mean does not' survived
plan
