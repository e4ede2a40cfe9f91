#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# search.sh - values in plan.search: what is wrong by itself is refused where it stands, by all who read the scenario; what only does
# not go with something else is not.
set -u
. tests/cli/lib.sh

ln -s "$root/models" "$root/topologies" .
mine() { # mine LINE...: a scenario, my.yaml, with these lines in plan.search, the first of which is line 22
	sed '/^ *$/d; s/^ *#.*//; s/^name:.*/name: mine/' "$root/scenarios/two-datacentres.yaml" | grep -v '^$' >my.yaml
	local line
	{
		while [ "$(wc -l <my.yaml)" -lt 19 ]; do echo '#' >>my.yaml; done
		printf 'plan:\n  search:\n'
		for line in "$@"; do printf '    %s\n' "$line"; done
	} >>my.yaml
	first=$(($(wc -l <my.yaml) - $# + 1))
}
wrong() { # wrong NAME LINE COLUMN REGEX: of the lines in plan.search
	refuses_at "$1" "my.yaml:$((first + $2)):$3" "$4" check my.yaml
}

mine 'foo.bar: [1, 2]'
wrong 'an unknown key' 0 15 'plan.search: unknown key .foo.'
refuses 'by sim' 'plan.search: unknown key .foo.' sim my.yaml
refuses 'by run' 'plan.search: unknown key .foo.' run my.yaml
refuses 'by plan' 'plan.search: unknown key .foo.' plan my.yaml
mine 'schedule.fooo: [1, 2]' 'schedule.microbatch: [3, 5]'
wrong 'an unknown key beside values that cannot be' 0 21 'plan.search: unknown key .schedule.fooo.'
mine 'schedule.in_flight: [1, 1.5, 2]'
wrong 'no whole number' 0 29 'plan.search: schedule.in_flight: expected a whole decimal number from 1 to 4096, not .1\.5.'
for value in '"x"' -1 99999999999 '{a: 1}' '[1]'; do
	mine "schedule.in_flight: [1, $value]"
	wrong "in_flight $value" 0 29 'plan.search: schedule.in_flight: expected a whole decimal number'
done
mine 'schedule.wiring: [latency, speed]'
wrong 'a word that is none' 0 32 'plan.search: schedule.wiring: expected one of: uniform, throughput, latency'
mine 'cluster.extra_latency: [10 ms, 10]'
wrong 'a time without its unit' 0 36 'plan.search: cluster.extra_latency: expected a time with its unit'
mine 'cluster.topology: [topologies/two-datacentres.yaml, topologies/nope.yaml]'
wrong 'a file that is not there' 0 57 'plan.search: cluster.topology: no file .topologies/nope.yaml.'
echo 'bad: 1' >bad.yaml
mine 'cluster.topology: [topologies/two-datacentres.yaml, bad.yaml]'
wrong 'a file that is wrong' 0 57 'plan.search: bad.yaml:1:1: key .name. is missing'
mine 'cluster.topology: [models]'
wrong 'a folder' 0 24 'plan.search: .*is a directory: expected a file'
mine 'sync: [{method: step}, {method: diloco, every: 8, evry: 3}]'
wrong 'an unknown key in a group' 0 28 'plan.search: unknown key .sync.evry., did you mean .every.'
mine 'schedule: [{microbatch: 2, global_batch: 64}]' 'schedule.microbatch: [4, 8]'
wrong 'a group that has another free key' 0 16 'this value of schedule has schedule.microbatch, which is free by itself'
mine 'sync.outer.momentum: [0.5, 0.9]' 'sync: [{method: step}, {method: diloco, every: 8, outer: {momentum: 0.7}}]'
wrong 'the same, deeper' 1 28 'this value of sync has sync.outer.momentum, which is free by itself'
mine 'sync.method: [step, diloco]' 'sync.every: [4, 0]'
wrong 'a range that counts beside another value alone' 1 21 'plan.search: sync.every: expected a whole decimal number from 1'
mine 'sync.method: [step, diloco]' 'sync.every: [4, 8]' 'sync.outer.momentum: [0.5, 7]'
wrong 'the same of three keys' 2 32 'plan.search: sync.outer.momentum: expected a decimal number from 0'

# What may be: these are for the plan to leave out, with their reasons.
mine 'sync.method: [step, diloco]' 'sync.every: [4, 8]'
accepts 'a key that only one of the methods has' check my.yaml
mine 'sync.method: [step, diloco]' 'sync.every: [4, 8]' 'sync.outer.momentum: [0.5, 0.9]'
accepts 'the same of three keys' check my.yaml
mine 'schedule.microbatch: [3, 4]'
accepts 'what does not divide the batch' check my.yaml
accepts 'plan leaves it out' plan my.yaml --set train.arithmetic=none
check 'and counts it' grep -q '^1 cannot be, such as schedule.microbatch=3: schedule.global_batch: 2048 is not a multiple' "$out"
mine 'schedule.microbatch: [3]'
refuses_at 'no combination that can be' "my.yaml:$first:5" 'plan.search: no combination of these settings can be; the first: schedule.global_batch' \
	plan my.yaml --set train.arithmetic=none
search='plan.search={schedule.microbatch: [5]}'
refuses_at 'the same by --set' "--set $search" 'plan.search: no combination of these settings can be; the first: schedule.global_batch' \
	plan my.yaml --set train.arithmetic=none --set "$search"
mine 'model.stages: [4, 100]'
accepts 'more stages than layers' check my.yaml
mine 'sync: [{method: step}, {method: diloco, every: 8}]' 'sync.collective: [ring, butterfly]'
accepts 'a group and a key that it has not' check my.yaml
mine 'auto: true'
accepts 'auto' check my.yaml
for scenario in "$root"/scenarios/*.yaml; do
	grep -q '^ *search:' "$scenario" && accepts "${scenario##*/}" check "$scenario"
done

plan
