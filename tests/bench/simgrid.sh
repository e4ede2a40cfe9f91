#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# simgrid.sh SKEP [long] - workload F in SimGrid and in skep, in turn, and how much faster skep is: median of three by
# processor time. By hand: needs g++ and libsimgrid-dev (or CPATH, LIBRARY_PATH and LD_LIBRARY_PATH to one). SimGrid runs with
# network/optim:Full, since its default is off by up to 0.13 % here, and without TCP's window and reverse traffic.
set -eu
skep=${1:?usage: simgrid.sh SKEP [long]}
cd "$(dirname "$(readlink -f "$0")")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
g++ -std=c++17 -O2 -I. -o "$scratch/simgrid" tests/bench/simgrid.cpp -lsimgrid

options=(--cfg=network/model:CM02 --cfg=network/optim:Full --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:0
	--log=root.thres:error)
sizes=('16 16 10' '16 64 10' '128 128 10' '128 512 10')
[ "${2:-}" != long ] || sizes+=('1024 1024 10' '1024 4096 2')

echo 'hosts slots each: makespan_s of SimGrid and skep, cpu_s of SimGrid and skep, ratio'
for size in "${sizes[@]}"; do
	read -r hosts slots each <<<"$size"
	for turn in 1 2 3; do
		"$scratch/simgrid" "$hosts" "$slots" "$each" "${options[@]}"
		"$skep" bench "F-$hosts" --json >"$scratch/$turn.json"
	done | sort -k 2 -n >"$scratch/peer"
	python3 - "$scratch" "$slots slots, $each flows each" "$size" <<-'END'
	import json, sys
	folder, parameters, size = sys.argv[1:]
	ours = [row for turn in "123" for row in json.load(open(f"{folder}/{turn}.json"))["rows"] if row["parameters"] == parameters]
	ours.sort(key=lambda row: row["cpu_s"])
	makespan, cpu_s = map(float, open(f"{folder}/peer").read().split("\n")[1].split())
	print(f"{size}: {makespan:.9f} {ours[1]['makespan_s']:.9f}  {cpu_s:.4f} {ours[1]['cpu_s']:.4f}  {cpu_s / ours[1]['cpu_s']:.0f}")
	END
done
