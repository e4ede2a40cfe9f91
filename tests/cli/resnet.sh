#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# resnet.sh - residual networks from the command line: what check says and what passes take, in closed form; losses, with each sync and
# schedule; images in files; running averages where passes read older parameters; runs that go on; what is refused.
set -u
. tests/cli/lib.sh
needs python3

model=$root/models/tiny-resnet.yaml
place 3
cat >job.yaml <<-END
	name: resnet
	seed: 1
	model: {file: $model, stages: 3}
	cluster: {topology: place-3.yaml, allocation: {method: strided}}
	schedule: {global_batch: 16, microbatch: 4}
	train:
	  data: {corpus: images}
	  optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
	  until: {steps: 4}
END
sed 's/microbatch: 4}/microbatch: 1}/' job.yaml >one.yaml
cat >bottleneck.yaml <<-END
	name: bottleneck
	kind: resnet
	resnet: {blocks: [1, 1], channels: 4, image: 16, classes: 10, block: bottleneck, shortcut: projected, stem: large}
END

# ---- costs, by hand -----------------------------------------------------------------------------------------------------------------

checked_alone --set model.stages=1 --set "model.file=$root/models/resnet20.yaml"

cat >by-hand.py <<'END'
import json, math
said = json.load(open("check.json"))
weights = [(27, 16, 32)] + [(9 * 16, 16, 32)] * 6                   # in k^2, out, side
weights += [(9 * 16, 32, 16)] + [(9 * 32, 32, 16)] * 5
weights += [(9 * 32, 64, 8)] + [(9 * 64, 64, 8)] * 5
channels = sum(out for _, out, _ in weights)
parameters = sum(inner * out for inner, out, _ in weights) + 2 * channels + 64 * 10 + 10
assert parameters == 269722 == said["parameters"] == said["trained_parameters"], (said["parameters"], parameters)
assert said["images"] == {"side": 32, "classes": 10, "running_averages": 2 * channels}, said["images"]
products = sum(inner * out * side * side for inner, out, side in weights) + 640
stage, = said["stages"]
assert stage["parameters"] == parameters + 2 * channels, stage["parameters"]
forward = 4 * 2 * products / 1e12
assert math.isclose(stage["forward_s"], forward, rel_tol=1e-3), (stage["forward_s"], forward)
assert math.isclose(stage["backward_s"], 2 * forward, rel_tol=1e-3), (stage["backward_s"], forward)
END
check 'parameters, and times of passes, by hand' python3 by-hand.py
accepts 'check' check job.yaml
check 'says what a norm takes' grep -q 'each batch norm takes the 4 samples of a microbatch; running averages: 240 numbers' "$out"
accepts 'ResNet-50' check "$root/scenarios/resnet.yaml" --json -q --set "model.file=$root/models/resnet50.yaml" --set train.arithmetic=none \
	--set train.validate=null
check 'has the parameters of torchvision' grep -q '"parameters":25557032' "$out"
accepts 'simulated by its cost' sim "$root/scenarios/resnet.yaml" -q --db loss.db --set "model.file=$root/models/resnet50.yaml" \
	--set train.arithmetic=none --set train.validate=null --set train.until.steps=20

# ---- losses -------------------------------------------------------------------------------------------------------------------------

loss() { # loss [ARGUMENT...]: of the last round
	"$skep" sim job.yaml --db "$scratch/loss.db" --json -q "$@" 2>"$err" | sed 's/.*"final_loss":\([^,]*\).*/\1/'
}
near() { # near A B: equal within 1e-5
	python3 -c 'import sys; a, b = map(float, sys.argv[1:]); assert abs(a - b) < 1e-5, (a, b)' "$@"
}
one=$(loss)
check 'the loss is a number' awk -v l="$one" 'BEGIN { exit !(l > 0.5 && l < 6) }' </dev/null
first=$(loss --set train.until.steps=1)
check 'the cut does not change the first one' test "$(loss --set model.stages=1 --set train.until.steps=1)" = "$first"
check 'nor do threads change the last one' test "$(loss --set cluster.threads=2)" = "$one"
check 'nor recomputed activations, but for the order of sums' near "$(loss --set schedule.checkpoint_activations=true)" "$one"
check 'nor does a validation, but for that' near "$(loss --set 'train.validate={every: 2, microbatches: 2}')" "$one"
check 'another seed has another one' test "$(loss --seed 2)" != "$one"
check 'a norm takes its microbatch' test "$(loss --set schedule.microbatch=8 --set train.until.steps=1)" != "$first"
trains() { # trains NAME OPTION...
	local name=$1 found
	shift
	found=$(loss "$@")
	check "$name" awk -v l="$found" 'BEGIN { exit !(l > 0.3 && l < 8) }' </dev/null
}
diloco='sync={method: diloco, every: 2, outer: {optimizer: nesterov, lr: 0.7, momentum: 0.5}}'
trains 'rounds of two steps' --set "$diloco" --set model.stages=1
trains 'a fragment at a time' --set 'sync={method: streaming, every: 3, fragments: 3, overlap_steps: 1, mixing: 0.5}' --set model.stages=1
trains 'gossip' --set model.stages=1 --set 'sync={method: gossip, every: 2}'
trains 'asynchronous merges' --set model.stages=1 --set 'sync={method: async, every: 2}'
trains 'shards of the optimizer' --set sync.zero=1 --set model.stages=1 --set schedule.global_batch=12
trains 'delayed updates' --set sync.delayed=true
trains 'without a flush' --set schedule.pipeline=pipedream --set schedule.global_batch=4
trains 'LAMB, clipped' --set 'train.optimizer={name: lamb, lr: 0.01, clip_norm: 0.5}'
trains 'int8 everywhere' --set schedule.compression=int8 --set sync.compression=int8
trains 'bottlenecks with projections' --set model.file=bottleneck.yaml

# ---- images in files ----------------------------------------------------------------------------------------------------------------

python3 - <<'END'
import random
random.seed(1)
def write(name, records, side):
    with open(name, "wb") as file:
        for i in range(records):
            file.write(bytes([i % 10]) + random.randbytes(3 * side * side))
write("a_1.bin", 30, 16)
write("a_2.bin", 20, 16)
write("held.bin", 8, 16)
write("cifar.bin", 4, 32)
open("cut.bin", "wb").write(open("a_2.bin", "rb").read()[:-1])
raw = bytearray(open("a_2.bin", "rb").read())
raw[7 * (1 + 3 * 256)] = 10
open("class.bin", "wb").write(raw)
END
file=(--set 'train.data={corpus: images, file: "a_*.bin", validation: held.bin}' --set 'train.validate={every: 2, microbatches: 2}')
accepts 'images of two files' check job.yaml "${file[@]}"
check 'says how many' grep -q '50 images to train on, 8 held out, in 3 files;' "$out"
trains 'they are trained on' "${file[@]}"
refuses 'more than is held out' 'what is held out is enough for 2 of 4 samples' check job.yaml "${file[@]}" \
	--set train.validate.microbatches=3
read_from() { # read_from FILE: an option
	printf 'train.data={corpus: images, file: %s}' "$1"
}
refuses 'a file that is cut short' 'has 15379 bytes, which are no whole number of records of 769' check job.yaml --set "$(read_from cut.bin)"
refuses 'images of another size' 'has 12292 bytes, which are no whole number of records of 769' check job.yaml --set "$(read_from cifar.bin)"
refuses 'a class too many' 'image 7 \(from 0\) is of class 10, but the model knows 10' check job.yaml --set "$(read_from class.bin)"
refuses 'no such file' 'train.data.file: none.bin: no such file' check job.yaml --set "$(read_from none.bin)"

# ---- running averages ---------------------------------------------------------------------------------------------------------------

# Each microbatch has the same four images, and the rate is so small that nothing else moves: running averages come to what these four
# have, whatever version the passes read. Differences from an older version swing to 1e6 within these steps.
python3 - <<'END'
import random
random.seed(1)
images = b"".join(bytes([i % 2]) + random.randbytes(3 * 4 * 4) for i in range(4))
open("four.bin", "wb").write(images)
open("four-judged.bin", "wb").write(images)
END
cat >deep.yaml <<-END
	name: deep
	kind: resnet
	resnet: {blocks: [14], channels: 4, image: 4, classes: 2, norm_momentum: 0.5}
END
sed 's/momentum: 0.5/momentum: 1/' deep.yaml >at-once.yaml
place 16
cat >still.yaml <<-END
	name: still
	seed: 1
	model: {file: deep.yaml, stages: 16}
	cluster: {topology: place-16.yaml, allocation: {method: strided}}
	schedule: {global_batch: 4, microbatch: 4}
	train:
	  data: {corpus: images, file: four.bin, validation: four-judged.bin}
	  optimizer: {name: sgd, lr: 1.0e-9}
	  until: {steps: 150}
END
cat >same-states.py <<'END'
import struct, sys
folder, stages, version = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def numbers(folder, stage):
    kept = open(f"{folder}/stage-{stage}-version-{version}.kept", "rb").read()[96:]  # behind what says whose it is
    return struct.unpack(f"<{len(kept) // 4}f", kept)[: len(kept) // 8]              # without velocities
for stage in range(stages):
    flushed, found = numbers("flushed", stage), numbers(folder, stage)
    assert len(flushed) == len(found) >= 10
    parts = [abs(a - b) / (1 + abs(a)) for a, b in zip(flushed, found)]
    assert max(parts) < 1e-4, (stage, parts.index(max(parts)), max(parts))
END
still() { # still FOLDER OPTION...
	local folder=$1
	shift
	"$skep" sim still.yaml --db still.db -q --set "checkpoint={every: 1000, to: $folder}" --write-checkpoints "$@" >/dev/null 2>"$err"
}
still flushed
for weights in stashed newest vertical-sync predicted corrected; do
	still "$weights" --set schedule.pipeline=pipedream --set "schedule.weights=$weights"
	check "16 stages without a flush, $weights" python3 same-states.py "$weights" 16 150
done
waves=(--set model.stages=8 --set schedule.global_batch=32 --set train.until.steps=60)
rm -r flushed
still flushed "${waves[@]}"
still waves "${waves[@]}" --set schedule.pipeline=pipedream --set 'sync={method: wsp, distance: 1}'
check 'waves' python3 same-states.py waves 8 60
judged() { # judged OPTION...: the loss behind the last step, by running averages that go all of the way at once
	"$skep" sim still.yaml --db still.db --json -q --set model.file=at-once.yaml --set model.stages=2 \
		--set 'train.validate={every: 50, microbatches: 1}' "$@" 2>"$err" |
		sed 's/.*"final_validation_loss":\([^,]*\).*/\1/'
}
known=$(judged)
check 'judged' awk -v l="$known" 'BEGIN { exit !(l > 0.3 && l < 1) }' </dev/null
check 'behind delayed updates' near "$(judged --set sync.delayed=true)" "$known"
alone=(--set model.stages=1 --set cluster.topology=place-3.yaml --set schedule.global_batch=12)
for sync in '{zero: 1}' '{method: diloco, every: 2}' '{method: diloco, every: 2, delayed: true, mixing: 0.5}' \
	'{method: streaming, every: 3, fragments: 3, overlap_steps: 1, mixing: 0.5}' '{method: gossip, every: 2}' \
	'{collective: all-to-all, aggregate: zeno, trim: 1, rho: 0.001}' \
	'{collective: all-to-all, aggregate: trimmed-mean, trim: 1, delayed: true}'; do
	check "sync: $sync" near "$(judged "${alone[@]}" --set "sync=$sync")" "$known"
done

merged=$(judged "${alone[@]}" --set 'sync={method: async, every: 2}')
check 'asynchronous merges, a part of the way each' awk -v l="$merged" -v k="$known" 'BEGIN { exit !((l - k)^2 < 1e-8) }' </dev/null

rounded=$(judged --set model.file=deep.yaml "${alone[@]}" --set 'sync={compression: e3m0, delayed: true}')
check 'four bits' awk -v l="$rounded" -v k="$known" 'BEGIN { exit !((l - k)^2 < 1e-4) }' </dev/null

# ---- a run that goes on -------------------------------------------------------------------------------------------------------------

kept=(--set 'checkpoint={every: 2, to: kept}' --write-checkpoints)
whole=$(loss --set train.until.steps=8)
loss "${kept[@]}" --set train.until.steps=4 >/dev/null
check 'what was kept goes on to the same loss' test "$(loss "${kept[@]}" --set train.until.steps=8 --resume)" = "$whole"

# ---- what is refused ----------------------------------------------------------------------------------------------------------------

refuses_at 'a microbatch of one' one.yaml:5:42 'the batch norms of tiny-resnet take means over the samples of a microbatch' check one.yaml
refuses 'more stages than layers' '6 stages cannot be cut from the 5 layers' check job.yaml --set model.stages=6
refuses 'frozen layers' 'model.freeze: tiny-resnet has batch norms' check job.yaml --set model.freeze=1
refuses 'another corpus' '.quadratic. needs .*, and tiny-resnet is a ResNet, which learns from images' check job.yaml --set train.data=null
refuses 'images for another model' '.images. needs a model of .kind: resnet.' check job.yaml --set "model.file=$root/models/tiny-gpt2.yaml"
refuses 'points of images' 'unknown key .train.data.points.' check job.yaml --set train.data.points=5
refuses 'weights of a file' 'only models with an architecture' check job.yaml --set train.init.weights=held.bin
refuses 'a run without arithmetic' 'without arithmetic no images are read or made' run job.yaml --set train.arithmetic=none
refuses 'ranks that share a stage' 'model tiny-resnet is a ResNet, whose convolutions are not split' \
	run "$root/scenarios/tensor-parallel.yaml" --set "model.file=$model" --set 'train.data={corpus: images}' --set schedule.microbatch=2
bad() { # bad NAME REGEX KEYS
	printf 'name: bad\nkind: resnet\nresnet: {%s}\n' "$3" >bad.yaml
	refuses "$1" "$2" check job.yaml --set model.file=bad.yaml
}
bad 'no blocks' 'expected the number of blocks of each of 1 to 8 groups' 'blocks: [], channels: 8, image: 16, classes: 10'
bad 'a group without a block' 'expected a whole decimal number from 1' 'blocks: [1, 0], channels: 8, image: 16, classes: 10'
bad 'no image' 'image: expected a whole decimal number from 1 to 1024' 'blocks: [1], channels: 8, image: 0, classes: 10'
bad 'one class' 'classes: expected a whole decimal number from 2' 'blocks: [1], channels: 8, image: 16, classes: 1'
bad 'too wide' 'layer 0 makes .* numbers of an image' 'blocks: [1], channels: 4096, image: 1024, classes: 10'
bad 'another shortcut' 'shortcut: expected one of: padded, projected' 'blocks: [1], channels: 8, image: 16, classes: 10, shortcut: gated'
plan
