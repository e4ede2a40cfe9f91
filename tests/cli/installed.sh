#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# installed.sh - a program that is installed finds its data beside itself, from any folder and wherever its prefix is moved to;
# `skep doctor` says what it has.
set -u
. tests/cli/lib.sh
needs python3 meson

said() { # said REGEX FILE
	grep -qE -- "$1" "$2"
}

build=$(dirname "$skep")
there=$scratch/there
if DESTDIR=$there meson install -C "$build" --no-rebuild >"$scratch/install" 2>&1; then
	pass 'meson install'
else
	fail 'meson install' "$(tail -5 "$scratch/install")"
fi
prefix=$(find "$there" -name bin -type d -printf '%h\n' | head -1)
for file in share/man/man1/skep.1 share/bash-completion/completions/skep.bash share/zsh/site-functions/_skep \
	share/fish/vendor_completions.d/skep.fish share/skep/models/text/tinyshakespeare.txt share/skep/topologies/LICENSES/NOTICE.txt \
	share/skep/topologies/gpus/tables/a100-fp16-products.csv share/skep/scenarios/papers/topologies; do
	check "$file" test -e "$prefix/$file"
done
check 'no source is installed' sh -c '! find "$1" -name "*.[ch]" | grep -q .' - "$there"

mv "$prefix" "$scratch/moved"
skep=$scratch/moved/bin/skep
export HOME=$scratch XDG_DATA_HOME=$scratch/none XDG_DATA_DIRS=$scratch/none
accepts 'a shipped scenario by its name' sim scenarios/one-worker.yaml --set train.until.steps=3 -q
cat >pool.yaml <<-END
name: mine
source: assumed for this test
directory: here
sites: {here: {machines: [{gpu: l4}, {gpu: t4}], inside: {bandwidth: 1 Gbit/s, latency: 0.1 ms}}}
END
sed 's,topologies/one-worker.yaml,pool.yaml,' "$root/scenarios/one-worker.yaml" >mine.yaml
accepts 'a scenario of our own with shipped GPUs and model' check mine.yaml --json
check 'has both kinds' said 'l4|L4' "$out"
accepts 'doctor' doctor --json
check 'finds the data beside it' python3 - "$out" "$scratch/moved/share/skep" <<'END'
import json, sys
found = {f["name"]: f for f in json.load(open(sys.argv[1]))["findings"]}
assert found["data"]["good"] and found["data"]["says"] == sys.argv[2], found["data"]
assert int(found["cores"]["says"]) >= 1 and "free" in found["memory"]["says"], found
assert found["database"]["good"] and found["database"]["says"].startswith("skep.db, "), found["database"]
assert found["libraft"]["good"] or "libraft-dev" in found["libraft"]["advice"], found["libraft"]
assert all(f["good"] or f["advice"] for f in found.values()), found
END

mv "$scratch/moved/share/skep" "$scratch/skep"
refuses 'without its data' '^scenarios/one-worker.yaml: error: cannot be opened' check scenarios/one-worker.yaml
XDG_DATA_DIRS=$scratch accepts 'but with XDG_DATA_DIRS' check scenarios/one-worker.yaml
accepts 'doctor without data' doctor
check 'says what to do' said '^ +no +data +no folder with models' "$out"
printf '#!/bin/sh\nPATH=%s exec %s "$@"\n' "$scratch" "$skep" >"$scratch/alone"
chmod +x "$scratch/alone"
skep=$scratch/alone accepts 'doctor without programs' doctor
check 'says how to get gnuplot' said '-> apt-get install gnuplot-nox' "$out"
TMPDIR=$scratch/none accepts 'doctor without TMPDIR' doctor
check 'says so' said '^ +no +TMPDIR .*cannot be written to' "$out"
check 'fish reads its completion' sh -c '! command -v fish >/dev/null || fish --no-execute "$1"' - \
	"$scratch/moved/share/fish/vendor_completions.d/skep.fish"
plan
