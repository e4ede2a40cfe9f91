# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# lib_model.sh - a small model that can be trained, $model, to be sourced behind lib.sh: job.yaml, named $name, trains it on three machines, and
# check.json is what check says of it in one stage on one GPU on which passes take FLOPs over 1e12 and nothing else, with 4 samples a
# microbatch.

place 3
python3 -c 'print("the quick brown fox jumps over the lazy dog. " * 40)' >corpus.txt
cat >job.yaml <<-END
	name: $name
	seed: 1
	model: {file: $model, stages: 1}
	cluster: {topology: place-3.yaml, allocation: {method: strided}}
	schedule: {global_batch: 8, microbatch: 4}
	train:
	  data: {corpus: text, file: corpus.txt}
	  optimizer: {name: adamw, lr: 3.0e-3}
	  until: {steps: 3}
END

checked_alone
