#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# check.sh - `skep check`: its text and its --json tell the same facts, and its tables stand in columns.
set -u
. tests/cli/lib.sh
needs python3

cat >"$scratch/same.py" <<'END'
"""same.py TEXT JSON: each line of the text has its fact in the JSON and the other way round. A line begins with a word in column
2, with a phrase, or at the margin; one that is not listed here is an error, so whoever adds one has to say which fact it is."""
import json
import re
import sys

text, seen = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
network = seen.get("network", {"links": [], "sites": []})
plain = lambda link: ("window_bytes" not in link and not link["loss"] and not link["overhead_s"] and link["jitter"] == "none"
                      and link["streams"] == 1)
labels = {
    "model": True,
    "cluster": True,
    "type": True,
    "scaled": seen["compute_scale"] != 1,
    "network": any(not plain(link) for link in network["links"]) or bool(network["sites"]),
    "relayed": len(network.get("reach_out", [])) > 1,
    "churn": seen["trace"] is not None,
    "standby": bool(seen["standby"]),
    "left": bool(seen["machines_out"]),
    "scale": seen["scale"] is not None,
    "directory": seen["directory_lost_for_s"] is not None,
    "uncertain": seen["uncertain_figures"] is not None,
    "joins": "joins" in seen,
    "rebalance": "joins" in seen and seen["rebalance_s"] > 0,
    "price": seen["price_usd_per_h"] is not None,
    "freezes": seen["frozen_layers"] > 0,
    "experts": seen["experts"] is not None,
    "masks": seen["masking"] is not None,
    "images": seen["images"] is not None,
    "schedule": True,
    "pipelines": seen["pipelines"] is not None,
    "losses": seen["on_loss"] == "rerun",
    "updates": seen["delayed"],
    "periodic": seen["periodic"] is not None,
    "plan": seen["plan"] is not None,
    "found": seen["allocation"] not in ("contiguous", "strided", "random", "explicit"),
    "offload": seen["offload"] != "none",
    "tied": seen["tied_parameters"] > 0,
    "split": any(m["gpus_per_worker"] > 1 for m in seen["machines"]),
    "zero": seen["zero"] > 0,
    "codecs": seen["activation_compression"] != "none" or seen["reduction_compression"] != "none",
    "sync": seen["collective"] != "ring" or seen["collectives"] == "flows" or any(s["ring_segments"] > 1 for s in seen["stages"]),
    "overlap": seen["overlap"] is not None,
    "aggregate": seen["aggregate"] != "mean",
    "byzantine": seen["byzantine"] is not None,
    "data": seen["data"] is not None,
    "begins": seen["weights"] is not None,
    "tries": seen["candidates"] is not None,
    "law": seen["law"] is not None,
    "judged": seen["validate"]["every"] > 0,
    "steps": seen["optimizer"]["decay"] != "constant" or seen["optimizer"]["warmup"] > 0 or bool(seen["optimizer"]["clip_norm"]),
}
phrases = {
    "source: ": bool(seen["source"]),
    "every link is ": seen["extra_latency_s"] > 0,
    "every line carries ": seen["bandwidth_scale"] != 1,
    "worker's CPU": seen["threads"] > 1,
    "checkpoint every": seen.get("checkpoint_every", 0) > 0,
    "is merged as one": bool(seen["periodic"]) and seen["periodic"].get("group_size", 1) > 1,
    "is longer than the run": bool(seen["periodic"]) and seen["periodic"]["longer_than_run"],
    "left out: ": seen["trace_left_out"] > 0,
    "are none of the places here": seen["trace_unbound"],
    "while the next round is trained": seen["validate"]["beside"],
    "extrapolated: ": bool(seen["law"]) and seen["law"]["extrapolated"],
    "no backward pass in the first ": seen["frozen_stages"] > 0,
    "asked back": seen["patience_s"] > 0,
    "pass through the first-stage worker": seen["routing"] == "trainer",
    "chunks that follow each other": seen["collective"] in ("tree", "butterfly", "chain"),
    "goes round the ring in segments": any(stage["ring_segments"] > 1 for stage in seen["stages"]),
    "one flow per link": seen["collectives"] == "flows",
    "then as the price histories say": seen["price_changes"],
    "drawn by the seed from its law": seen["trace_law"] is not None,
    "the sequence too": any(m["sequence_parallel"] and m["gpus_per_worker"] > 1 for m in seen["machines"]),
}
margins = {
    "stage  layers": True,
    "memory of each GPU": bool(seen["memory"]),
    "per round: ": True,
    "per step: ": seen["periodic"] is not None,
    "noise ": seen["noise"] > 0,
    "compute by ": "compute" in seen,
    "uncertain ": seen["uncertainty"] is not None,
}
in_text = set(re.findall(r"^  (\w+) ", text, re.M))
assert in_text <= set(labels), "lines of the text that this test does not know: %s" % (in_text - set(labels))
for label, there in labels.items():
    assert (label in in_text) == there, "%s: text %s, JSON %s" % (label, label in in_text, there)
for phrase, there in phrases.items():
    assert (phrase in text) == there, "%s: text %s, JSON %s" % (phrase, phrase in text, there)
for begin, there in margins.items():
    assert any(line.startswith(begin) for line in text.split("\n")) == there, begin

def number(pattern, value):
    found = re.search(pattern, text)
    assert found and abs(float(found[1]) - value) <= 1e-5 * abs(value) + 1e-9, (pattern, found and found[1], value)

number(r"(\d+) layers? in", seen["layers"])
number(r"in (\d+) stages?\n", len(seen["stages"]))
number(r"(\d+) workers? and the directory", seen["workers"])
number(r"schedule +(\d+) sample", seen["samples_per_round"])
number(r"in (\d+) microbatch", seen["microbatches"])
number(r"microbatch(?:es)? of (\d+)", seen["samples_per_microbatch"])
number(r"(\d+) in flight", seen["in_flight"])
number(r"(\d+) rounds?\n", seen["rounds"])
if labels["price"]:
    number(r"price +([\d.]+) USD/h", seen["price_usd_per_h"])
if labels["scale"]:
    number(r"(\d+) to \d+ machines", seen["scale"]["min"])
    number(r"to (\d+) machines", seen["scale"]["max"])
    number(r"machines, (\d+) at the start", seen["scale"]["start"])
    number(r"start; what is said of a step is with those\n +(\d+)", seen["scale"]["kinds"][0]["machines"])
if labels["joins"]:
    number(r"in (\d+) chunks?;", seen["joins"]["chunks"])
if labels["pipelines"]:
    number(r"pipelines +(\d+)", seen["pipelines"]["count"])
    held = re.search(r"holds at most ([\d, ]+) micro", text)[1]
    assert [int(h) for h in held.split(",")] == seen["pipelines"]["held"], held
    names = {"gpipe": "gpipe: ", "1f1b": "1f1b: ", "interleaved": "interleaved: ", "pipedream": "pipedream: "}
    assert names[seen["pipelines"]["schedule"]] in text
    assert ("a barrier between all pipelines" in text) == seen["pipelines"]["barrier"]
    assert bool(re.search(r"^vstage +stage ", text, re.M)) == (seen["pipelines"]["chunks"] > 1) == ("vstages" in seen)
    if seen["pipelines"]["schedule"] == "pipedream":
        number(r"up to (\d+) rounds", seen["pipelines"]["open_rounds"])
    if waves := seen["pipelines"]["waves"]:
        number(r"a wave of (\d+) micro", waves["microbatches"])
        number(r"clock distance (\d+)", waves["distance"])
        number(r"lack at most (\d+) micro", waves["local_staleness"])
        number(r"(\d+) of each other one", waves["global_staleness"])
    elif seen["pipelines"]["schedule"] == "pipedream":
        versions = re.search(r"by stage, and ([\d, ]+)\n", text)[1]
        assert [int(v) for v in versions.split(",")] == seen["pipelines"]["versions"], versions
        stale = re.search(r"lack at most ([\d, ]+) steps", text)[1]
        assert [int(v) for v in stale.split(",")] == seen["pipelines"]["staleness"], stale
if labels["overlap"]:
    for row in seen["overlap"]:
        number(r"stage %d: (\d+) bucket" % row["stage"], row["buckets"])
if labels["data"]:
    number(r"(\d+) tokens in", seen["data"]["tokens"])
    number(r"(\d+) held out", seen["data"]["held_out_samples"])
    assert " is seen %.4g times over" % seen["data"]["times_seen"] in text
    times = seen["rounds"] * seen["samples_per_round"] / seen["data"]["training_samples"]
    assert abs(seen["data"]["times_seen"] / times - 1) < 1e-9, (seen["data"], times)
if phrases["goes round the ring in segments"]:
    segments = re.search(r"in segments, by stage: ([\d, ]+)\n", text)[1]
    assert [int(k) for k in segments.split(",")] == [stage["ring_segments"] for stage in seen["stages"]], segments
if labels["tied"]:
    number(r"table, (\d+) parameters", seen["tied_parameters"])
if labels["freezes"]:
    number(r"freezes .*: of (\d+) parameters", seen["parameters"])
    number(r"freezes .* parameters (\d+) are trained", seen["trained_parameters"])
    assert seen["trained_parameters"] == sum(stage["trained_parameters"] for stage in seen["stages"])
if labels["aggregate"]:
    number(r"aggregate .* the (\d+) (?:least|with)", seen["left_out"])
if labels["byzantine"]:
    liars = re.search(r"byzantine workers? ([\d, ]+):", text)[1]
    assert [int(w) for w in liars.split(",")] == seen["byzantine"]["workers"], liars
    assert (": what goes into reductions is NaN" in text) == (seen["byzantine"]["attack"] == "nan")
if labels["steps"]:
    number(r"learning rate ([\d.e-]+)", seen["optimizer"]["learning_rate"])
if labels["periodic"]:
    number(r"a round is (\d+) inner", seen["periodic"]["inner_steps"])
    number(r"inner steps? of (\d+) sample", seen["samples_per_step"])
    number(r"outer optimizer \w+, lr ([\d.e-]+)", seen["periodic"]["outer_learning_rate"])
    assert "outer optimizer " + seen["periodic"]["outer_optimizer"] in text
    number(r"(\d+) microbatch(?:es)? a step", seen["periodic"]["microbatches_per_step"])
    number(r"up to (\d+) under way", seen["periodic"]["under_way"])
    between = re.search(r"up to ([\d.e+-]+) steps newer", text)
    assert (between is None) == (seen["pipelines"] is not None), "a fixed pipeline is empty before each step"
    between = float(between[1]) if between else 0
    assert abs(between - seen["periodic"]["steps_between_passes"]) <= 0.06 * between, between
    assert ("a smaller schedule.in_flight learns better" in text) == (seen["periodic"]["steps_between_passes"] >= 1)
if labels["zero"]:
    number(r"zero +stage (\d)", seen["zero"])
if phrases["every link is "]:
    number(r"every link is ([\d.]+) ms", 1e3 * seen["extra_latency_s"])
if phrases["every line carries "]:
    number(r"every line carries ([\d.e-]+) times", seen["bandwidth_scale"])
assert not re.search(r"(?<!, )\b1 (layers|stages|workers|rounds|chunks|samples|microbatches)\b", text), "a plural of one"
assert not re.search(r"[ \t]$", text, re.M), "blanks at the end of a line"

# Each table: the last column but text begins and ends where its head does.
for head in re.finditer(r"^stage  .*", text, re.M):
    rows = text[head.end() + 1:].split("\n")
    for row in rows[:next(i for i, line in enumerate(rows) if not re.match(r" +\d+  ", line))]:
        column = 0
        for word in re.finditer(r"\S+(?: \S+)*", head[0]):
            if not any(row[at:at + 1].strip() for at in (word.start(), word.end() - 1)):
                raise AssertionError("not under '%s': %s" % (word[0], row))
END

same() { # same NAME ARGUMENT...
	local name=$1
	shift
	accepts "check $name" check "$@"
	cp "$out" "$scratch/text"
	accepts "check --json $name" check "$@" --json
	check "check $name: text and JSON tell the same" python3 "$scratch/same.py" "$scratch/text" "$out"
}

for file in "$root"/scenarios/*.yaml "$root"/scenarios/{baselines,papers}/*.yaml; do
	same "${file#"$root/"}" "$file"
done
two=$root/scenarios/two-datacentres.yaml
same 'int8' "$two" --set schedule.compression=int8
same 'machines that stand by and that are out' "$two" \
	--set 'cluster.allocation={method: explicit, stage_of: [0, 1, 2, 3, unused, spare, 2, unused]}'
same 'reductions in fp16' "$two" --set sync.compression=fp16
same 'rerun' "$two" --set schedule.on_loss=rerun
same 'delayed' "$two" --set sync.delayed=true
same 'diloco' "$two" --set sync.method=diloco --set sync.every=1 --set sync.outer.optimizer=sgd
same 'diloco beside the backward pass' "$root/scenarios/overlap.yaml" --set sync.method=diloco --set sync.every=5
same 'streaming' "$two" --set sync.method=streaming --set sync.every=8 --set sync.fragments=4
same 'diloco by share' "$two" --set sync.method=diloco --set sync.every=auto --set sync.mean_inner_steps=8 --set sync.delayed=true
same 'async' "$root/scenarios/async.yaml" --set train.validate.every=4 --set 'checkpoint={every: 2, to: kept}'
same 'async, gathered' "$root/scenarios/byzantine.yaml" --set sync.method=async --set sync.every=4 --set sync.group_size=4
same 'settings that are free' "$two" --set 'plan={seeds: 2, search: {auto: true, schedule.microbatch: [32, 64]}}'
check 'which are listed, those that are written are not' python3 -c 'import json, sys
plan = json.load(open(sys.argv[1]))["plan"]
assert plan["objective"] == "throughput" and plan["seeds"] == 2 and plan["auto"] is True, plan
assert set(plan["search"]) == {"schedule.microbatch", "schedule.wiring", "schedule.in_flight"}, plan' "$out"
same 'a search for the allocation' "$two" --set cluster.allocation.method=genetic
check 'which is named' grep -qF 'by the search `genetic`' "$scratch/text"
same 'trainer' "$two" --set schedule.routing=trainer
same 'a tree' "$two" --set sync.collective=tree
same 'a butterfly' "$two" --set sync.collective=butterfly
same 'reductions in 4 bits' "$two" --set sync.compression=e3m0
same 'other blocks' "$two" --set schedule.compression=int8 --set schedule.compression_block=tensor \
	--set 'sync={compression: e3m0, compression_block: 128}'
check 'which are said' grep -qF 'travel as int8 with a scale for each message, what is reduced as e3m0 with a scale for 128 numbers' "$scratch/text"
check 'and in JSON' python3 -c 'import json, sys
seen = json.load(open(sys.argv[1]))
assert (seen["activation_compression_block"], seen["reduction_compression_block"]) == ("tensor", 128), seen' "$out"
same 'trimmed means' "$two" --set model.stages=2 --set sync.collective=all-to-all --set sync.aggregate=trimmed-mean --set 'sync.trim=40 %'
same 'scores' "$two" --set model.stages=2 --set sync.collective=butterfly --set sync.aggregate=zeno --set sync.rho=0.25
same 'a liar' "$two" --set 'cluster.byzantine={workers: [2], attack: noise, scale: 2}'
same 'flows' "$two" --set simulate.collectives=flows --set train.arithmetic=none
same 'a barrier' "$root/scenarios/baselines/gpipe.yaml" --set schedule.barrier=true
same 'longer links' "$two" --set 'cluster.extra_latency=3 ms'
same 'thinner lines' "$two" --set cluster.bandwidth_scale=0.25
same 'tied over stages' "$root/scenarios/shakespeare.yaml" --set "model.file=$root/tests/bad/model-tied.yaml"
same 'frozen, in part of a stage' "$root/scenarios/shakespeare.yaml" --set model.freeze=2 --set model.stages=2
same 'threads' "$two" --set cluster.threads=3
same 'noise' "$root/scenarios/opt-350m.yaml" --set cluster.compute.noise=0.05
same 'uncertain times' "$root/scenarios/opt-350m.yaml" --set cluster.compute.uncertainty=drawn
same 'uncertain times of rooflines' "$two" --set cluster.compute.uncertainty=drawn
same 'uncertain figures' "$root/scenarios/uncertain-links.yaml"
same 'uncertain figures, drawn' "$root/scenarios/uncertain-links.yaml" --set cluster.uncertainty=drawn
same 'nothing to draw' "$two" --set cluster.uncertainty=drawn
same 'checkpoints' "$two" --set checkpoint.every=5 --set checkpoint.to=kept
same 'price histories' "$two" --set "cluster.topology=$root/topologies/spot-mixed.yaml" --set 'cluster.price_start=30 d'
same 'wide area' "$two" --set "cluster.topology=$root/topologies/two-datacentres-wan.yaml"

# That the comparison can fail: a fact taken out of either side is missed.
check 'a fact that the JSON lacks is missed' sh -c 'sed "s/\"zero\":0/\"zero\":1/" "$1" >"$1.odd" && ! python3 "$2" "$3" "$1.odd"' - "$out" "$scratch/same.py" "$scratch/text"
check 'a line that nobody listed is missed' sh -c 'sed "2i\  surprise  yes" "$3" >"$3.odd" && ! python3 "$2" "$3.odd" "$1"' - "$out" "$scratch/same.py" "$scratch/text"
# A stage that several GPUs share is its products, in the shapes that each of them has.
accepts 'measured products of a stage that is split' check "$root/scenarios/papers/megatron.yaml" --set model.file="$root/models/megatron-7.5b.yaml" \
	--set cluster.topology="$root/scenarios/papers/topologies/dgx-4x32.yaml" --set cluster.tensor_parallel=4 --set cluster.compute.predictor=table
check 'come from the table' grep -qE '^ +0 +A100-SXM4-80 +176 ms +503 ms .*interpolated 72 %' "$out"

plan
