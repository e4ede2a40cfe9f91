# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# lib_pair.sh - a model of given times in two stages, on two machines with a thin line between them, whose times can be told by hand:
# few.yaml. eight.yaml has four machines at each end, and a line that is not thin. To be sourced behind lib.sh.

cat >pair.yaml <<-'END'
	name: two machines
	source: Assumed for this test.
	directory: a
	sites:
	  a: {machines: [{gpu: v100}], inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}}
	  b: {machines: [{gpu: t4}], inside: {bandwidth: 10 Gbit/s, latency: 0.1 ms}}
	links: [{between: [a, b], bandwidth: 80 Mbit/s, latency: 10 ms, shared: true}]
	END
sed 's/{gpu/{count: 4, gpu/; s/ 80 Mbit/ 10000 Mbit/' pair.yaml >eight.yaml
cat >halves.yaml <<-'END'
	name: two layers
	kind: given
	given: {microbatch: 4, layers: [{count: 2, parameters: 1000000, activations: 4 MB, forward: 10 ms, backward: 20 ms, step: 2 ms}]}
	END
cat >few.yaml <<-'END'
	name: few
	seed: 1
	model: {file: halves.yaml, stages: 2}
	cluster: {topology: pair.yaml}
	schedule: {pipeline: swarm, global_batch: 16, microbatch: 4}
	train: {arithmetic: none, until: {steps: 20}}
	END
