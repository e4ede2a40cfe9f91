#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# published.sh - `skep published`: the figures that it prints as published are those of the papers, ours agree with a closed form,
# docs/published.md is what it writes, and wrong tables are refused with their place. How near ours are to the published ones is in that
# page, not here.
set -u
. tests/cli/lib.sh
needs python3

tables=$root/scenarios/papers/tables
quick=(gpipe dt-fm --tables "$tables")

# ---- which there are ------------------------------------------------------------------------------------------------

accepts 'a list' published --list --tables "$tables"
check 'names every table once' sh -c 'for f in "$2"/*.yaml; do
	[ "$(grep -c "^$(basename "$f" .yaml) " "$1")" = 1 ] || { echo "$f"; exit 1; }; done' - "$out" "$tables"
accepts 'the same as JSON' published --list --json --tables "$tables"
check 'tells which are slow' python3 -c 'import json, sys
seen = {e["name"]: e for e in json.load(open(sys.argv[1]))["experiments"]}
assert seen["swarm-rebalancing"]["slow"] and not seen["gpipe-tpu"]["slow"] and seen["gpipe-tpu"]["rows"] == 9, seen' "$out"
cp "$out" "$scratch/listed.json"
accepts 'no name' published --json --tables "$tables"
check 'is a list as well' cmp "$out" "$scratch/listed.json"
accepts 'for a person' published --tables "$tables"
check 'says how one is run, and all' grep -q '`skep published NAME` does one, and `skep published --all` every one' "$err"
refuses 'a page of nothing' '-o: a page of which experiments' published -o page.md --tables "$tables"
check 'nothing was run or left behind' test -z "$(ls -A)"

# ---- theirs and ours ------------------------------------------------------------------------------------------------

accepts 'two papers' published "${quick[@]}" --json --jobs 2
cp "$out" "$scratch/json"
check 'one object, with figures as the papers have them' python3 - "$out" <<'E2'
import json, sys
text = open(sys.argv[1]).read()
assert text.count("\n") == 1 and text.endswith("\n"), text
seen = json.loads(text)
assert list(seen) == ["experiments", "within", "outside"], list(seen)
rows = {(e["name"], r["row"]): (e, r) for e in seen["experiments"] for r in e["rows"]}
assert {name for name, _ in rows} == {"gpipe-gpu", "gpipe-tpu", "dt-fm"}, rows.keys()
# Huang et al. 2019, tables 2 and 3; Yuan et al. 2022, results/gpt3_xl_fp16.md.
for name, row, value in (("gpipe-tpu", "K = 4, M = 1", 1.07), ("gpipe-tpu", "K = 8, M = 4", 4.8), ("gpipe-tpu", "K = 2, M = 32", 1.8),
        ("gpipe-tpu", "K = 8, M = 32", 6.3), ("gpipe-gpu", "K = 4, M = 32", 1.8), ("gpipe-gpu", "K = 8, M = 32", 3.3),
        ("dt-fm", "one pipeline, 2 Gbit/s, 5 ms", 10.69), ("dt-fm", "one pipeline, 1 Gbit/s, 10 ms", 15.64),
        ("dt-fm", "two pipelines, 1 Gbit/s, 50 ms", 21.01)):
    assert rows[name, row][1]["published"] == value, (name, row, rows[name, row][1])
within = outside = 0
for experiment, row in rows.values():
    low, high, ours = row["published"], row["published_to"], row["ours"]
    assert ours > 0 and row["source"] and "arXiv" in experiment["paper"], row
    assert abs(row["ratio"] * low / ours - 1) < 1e-9, row
    inside = low * (1 - row["bar"]) <= ours <= high * (1 + row["bar"])
    assert row["within"] == (None if row["fitted"] else inside), row
    within += row["within"] is True
    outside += row["within"] is False
assert (seen["within"], seen["outside"]) == (within, outside), seen
assert rows["gpipe-tpu", "K = 2, M = 1"][1]["ours"] == 1
E2
accepts 'tensor parallel' published megatron --tables "$tables" --json
check 'TFLOP/s a GPU are sequences a second by the equation of the paper' python3 - "$out" <<'E3'
import json, sys
rows = {r["row"]: r for e in json.load(open(sys.argv[1]))["experiments"] for r in e["rows"]}
# Narayanan et al. 2021, tables 1 and 2: hidden size, blocks, GPUs, TFLOP/s a GPU; equation (3) with sequences of 2048 and 51,200 tokens.
for name, h, l, n, rate in (("1.7B, 32 A100: tensor 1, pipeline 1", 2304, 24, 32, 137), ("3.6B, 64 A100: tensor 2, pipeline 1", 3072, 30, 64, 138),
        ("7.5B, 128 A100: tensor 4, pipeline 1", 4096, 36, 128, 142), ("18.4B, 256 A100: tensor 8, pipeline 1", 6144, 40, 256, 135),
        ("39.1B, 512 A100: tensor 8, pipeline 2", 8192, 48, 512, 138), ("145.6B, 1536 A100: tensor 8, pipeline 8", 12288, 80, 1536, 148),
        ("384 A100, microbatches of 4", 12288, 96, 384, 144), ("768 A100, microbatches of 2", 12288, 96, 768, 88),
        ("1536 A100, microbatches of 1", 12288, 96, 1536, 44)):
    a_sequence = 96 * 2048 * l * h * h * (1 + 2048 / (6 * h) + 51200 / (16 * l * h))
    assert abs(rows[name]["published"] / (n * rate * 1e12 / a_sequence) - 1) < 0.005, (name, rows[name], n * rate * 1e12 / a_sequence)
assert all(row["within"] is not False for name, row in rows.items() if "tensor" in name), rows
E3
accepts 'by one process' published "${quick[@]}" --json --jobs 1
check 'the same comes of it' cmp "$out" "$scratch/json"
accepts 'for a person' published "${quick[@]}"
check 'with columns, source and notes' sh -c 'grep -qE "^row +published +ours +ratio +bar +source$" "$1" &&
	grep -qE "^K = 8, M = 32 +6.3 +[0-9.]+ +[0-9.]+ +(within|outside) 10 % +table 2$" "$1" && grep -qE "^  \[1\] " "$1" &&
	grep -qE "^22 rows: [0-9]+ within their bar" "$1"' - "$out"

# Two islands of 9,970,638,080 parameters with 2 bytes each and H = 100 steps of 0.8 s: a ring of two sends the bytes of all parameters
# each way, so computing is half of the time at 8 x 2 x 9.97e9 / 80 s, and four fifths of it at four times that.
write() { # write NAME LINE...
	local name=$1
	shift
	{
		printf 'name: mine\ntitle: of my own\npaper: none\nscenario: %s\n' "$root/scenarios/papers/diloco-bandwidth.yaml"
		printf '%s\n' "$@"
	} >"$scratch/$name.yaml"
}
vary='vary: {key: cluster.bandwidth_scale, from: 0.1, to: 1000}'
write mine 'metric: least' 'bar: 5 %' "$vary" 'rows: [{name: halves, at: [50 %, 80 %], published: [1.9941, 7.9765]}]'
accepts 'a table of my own' published "$scratch/mine.yaml" --json
check 'agrees with its closed form' python3 -c 'import json, sys
rows = json.load(open(sys.argv[1]))["experiments"][0]["rows"]
assert [r["row"] for r in rows] == ["halves, 50 %", "halves, 80 %"] and all(r["within"] for r in rows), rows' "$out"

# ---- the page --------------------------------------------------------------------------------------------------------

accepts 'a page, and an object of the same runs' published swarm-large "${quick[@]}" -o page.md --json
check 'fast and slow ones together come to three quarters of their sum, and to more by delayed updates' python3 -c 'import json, sys
seen = {e["name"]: e["rows"] for e in json.load(open(sys.argv[1]))["experiments"]}
ours = {r["row"]: r["ours"] for r in seen["swarm-large"]}
assert 0.75 <= ours["both"] < 1 and 0.6 < ours["both, updates not delayed"] < ours["both"], ours' "$out"
check 'says where it is' grep -qx 'wrote page.md' "$err"
section() { # section FILE NAME
	sed -n "/^## $2\$/,/^## /{/^## /{/^## $2\$/!d};p}" "$1" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}
for name in gpipe-gpu gpipe-tpu dt-fm swarm-large; do
	section page.md "$name" >"$scratch/new"
	section "$root/docs/published.md" "$name" >"$scratch/old"
	check "docs/published.md has $name as it is made: skep published --all -o docs/published.md" diff "$scratch/old" "$scratch/new"
done
# A C library that takes other instructions rounds exp() and log() differently, as another processor would.
GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-AVX2 accepts 'on another processor' published swarm-large --tables "$tables" -o other.md -q
section other.md swarm-large >"$scratch/new"
check 'are the same figures' diff "$scratch/old" "$scratch/new"
check 'the page of the documentation has every experiment' sh -c 'for f in "$2"/*.yaml; do
	grep -qx "## $(basename "$f" .yaml)" "$1" || { echo "$f"; exit 1; }; done' - "$root/docs/published.md" "$tables"
check 'whose overview adds up to its head' sh -c '
	head=$(sed -n "s/^\([0-9]* rows: .*\)/\1/p" "$1" | tr -cs "0-9" " ")
	sums=$(grep "^| \[" "$1" | awk -F" [|] " "{ a += \$2; b += \$3; c += \$4; d += \$5 } END { print a + b + c + d, a, b, c, d }")
	[ "$sums" = "${head% }" ] || { echo "$sums against $head"; false; }' - "$root/docs/published.md"
accepts 'it may be replaced' published gpipe-gpu --tables "$tables" -o page.md -q
rm page.md
echo mine >mine.md
refuses 'not what is mine' 'mine.md' published gpipe-gpu --tables "$tables" -o mine.md
rm mine.md

# ---- what is wrong ---------------------------------------------------------------------------------------------------

refuses 'an experiment that is not there' "^skep: there is no experiment 'gpip-tpu'; write a name .* dt-fm .*gpipe-tpu .*swarm-large" \
	published gpip-tpu --tables "$tables"
refuses 'no tables here' '^skep: scenarios/papers/tables holds no table: .*--tables' published
refuses 'a table that is not there' 'gone.yaml' published gone.yaml
wrong() { # wrong NAME LINE:COLUMN MESSAGE LINE...
	local name=$1 place=$2 message=$3
	shift 3
	write wrong "$@"
	refuses_at "$name" "$scratch/wrong.yaml:$place" "$message" published "$scratch/wrong.yaml"
}
wrong 'an unknown metric' 5:9 'metric: expected one of: throughput, step_time' 'metric: speed' 'bar: 5 %' 'rows: [{name: a, published: 1}]'
wrong 'an unknown key' 7:29 'unknown key .*publised' 'metric: passes' 'bar: 5 %' 'rows: [{name: a, note: why, publised: 1}]'
wrong 'a row without a figure' 7:8 'a row without `published` needs a `note`' 'metric: passes' 'bar: 5 %' 'rows: [{name: a}]'
wrong 'a run that is not there' 7:23 'there is no run `b`' 'metric: passes' 'bar: 5 %' 'rows: [{name: a, run: b, published: 1}]'
wrong 'a range without a key' 1:1 'key `vary` is missing' 'metric: least' 'bar: 5 %' 'rows: [{name: a, at: [50 %], published: [1]}]'
wrong 'levels without figures' 8:47 'a figure for each of the 2' 'metric: least' 'bar: 5 %' "$vary" \
	'rows: [{name: a, at: [50 %, 80 %], published: [1]}]'
wrong 'a change that is none' 7:24 'expected KEY=VALUE' 'metric: passes' 'bar: 5 %' 'rows: [{name: a, set: [steps], published: 1}]'
write wrong 'metric: passes' 'bar: 5 %' 'rows: [{name: a, set: [schedule.microbach=2], published: 1}]'
refuses 'a key that the scenario does not have' 'microbach' published "$scratch/wrong.yaml"
check 'is told with its table' grep -qF "skep: of $scratch/wrong.yaml" "$err"
accepts 'a slow one is left out' published swarm --list --tables "$tables"
plan
