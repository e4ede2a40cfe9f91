#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# same_files.sh - ranks that do not mean the same do not train: each has a working folder of its own here, as if it were on a host of
# its own, and one of them has another corpus, topology or model in it. Nor does a run go on with the states of another corpus.
set -u
. tests/cli/lib.sh
needs python3 mpirun

mpi_environment
place 1
mkdir a && mv place-1.yaml a
cp -r gpus/ a/gpus && cp -r "$root/models/text/tinyshakespeare.txt" a/corpus.txt && cp "$root/models/tiny-gpt2.yaml" a/model.yaml
cat >a/text.yaml <<-'END'
	name: text
	seed: 1
	model: {file: model.yaml, stages: 1}
	cluster: {topology: place-1.yaml, allocation: {method: strided}}
	schedule: {global_batch: 8, microbatch: 4}
	train: {arithmetic: real, data: {corpus: text, file: corpus.txt}, optimizer: {name: adamw, lr: 1.0e-3}, until: {steps: 2}}
	END
cp -r a b

apart() { # apart ARGUMENT...: a rank in a, and one in b
	local program=(run text.yaml --set checkpoint.to="$PWD/kept" --set checkpoint.every=1 "$@")
	timeout 300 mpirun --oversubscribe -n 1 --wdir "$PWD/a" "$skep" "${program[@]}" : -n 1 --wdir "$PWD/b" "$skep" \
		"${program[@]}" >"$out" 2>"$err" </dev/null
	status=$?
}

names() { # names NAME FILE TEXT: no rank has trained, and rank 1, its host and the file are named
	check "$1: no run" [ "$status" != 0 ]
	check "$1: named" grep -q "rank 1 on $(hostname) has read another .*$2 than rank 0 ($3): all ranks need the same one" "$err"
}

apart -q --json
check 'copies of the same files will do' [ "$status" = 0 ]

printf X | dd of=b/corpus.txt bs=1 seek=5000 conv=notrunc 2>/dev/null
apart
names 'a letter of the corpus' corpus.txt '[0-9]* bytes here, [0-9]* there'
cp a/corpus.txt b && sed -i 's/10 Gbit/11 Gbit/' b/place-1.yaml
apart
names 'a line of the topology' place-1.yaml '[0-9]* bytes here, [0-9]* there'
cp a/place-1.yaml b && echo '# a word more' >>b/model.yaml
apart
names 'a comment of the model' model.yaml '[0-9]* bytes here, [0-9]* there'
cp a/model.yaml b

for folder in a b; do printf X | dd of=$folder/corpus.txt bs=1 seek=5000 conv=notrunc 2>/dev/null; done
apart --resume --set train.until.steps=3
check 'states of another corpus: refused' [ "$status" = 2 ]
check 'states of another corpus: named' grep -q 'corpus.txt: .*is not the data that the states in .*kept were learnt from' "$err"
cd a || exit 1
refuses 'simulated, too' 'is not the data that the states in' sim text.yaml --set checkpoint.to=../kept --set checkpoint.every=1 \
	--resume --set train.until.steps=3

# Nor with those of a run that began with other weights.
cp ../b/corpus.txt . && cp "$root"/tests/data/hf/gpt2/{config.json,model.safetensors} . && cp "$root/tests/data/hf/punctuation.txt" .
weighed=(text.yaml --set model.file=config.json --set train.data.file=punctuation.txt --set train.init.weights=model.safetensors
	--set checkpoint.to=weighed --set checkpoint.every=1 -q)
accepts 'begins with weights' run "${weighed[@]}"
accepts 'goes on beside its weights' run "${weighed[@]}" --resume --set train.until.steps=3
printf X | dd of=model.safetensors bs=1 seek=$(($(stat -c %s model.safetensors) - 2)) conv=notrunc 2>/dev/null
refuses 'states of other weights' 'model.safetensors: .*is not the file of weights that the states in .*weighed were learnt from.*put that one back' \
	run "${weighed[@]}" --resume --set train.until.steps=4
plan
