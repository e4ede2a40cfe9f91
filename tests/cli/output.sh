#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# output.sh - what -o may write over: what skep itself has written, anything with --force, and never what the command reads.
set -u
. tests/cli/lib.sh

mkdir scenarios topologies models
cp "$root/scenarios/two-datacentres.yaml" scenarios/my.yaml
cp -r "$root/topologies/." topologies
cp -r "$root/models/." models
mine=(scenarios/my.yaml --set train.arithmetic=none --set train.until.steps=4)
net=$(sed -n 's/.*topology: \([^ ,]*\.yaml\).*/\1/p' scenarios/my.yaml)
data=$root/tests/data
echo 'precious: words' >mine.yaml
echo '0,join,node1' >mine.csv

same() { # same FILE SUM: it is what it was
	[ "$(md5sum <"$1")" = "$2" ]
}
keeps() { # keeps NAME FILE REGEX ARGUMENT...: the command is refused, and the file stays
	local sum file=$2
	sum=$(md5sum <"$file")
	refuses "$1" "$3" "${@:4}"
	check "$1: it stays" same "$file" "$sum"
}

# ---- plans ------------------------------------------------------------------------------------------------------------

[ -e "$net" ] || fail 'the topology of the scenario' "$net"
other='is there already, and is not what this command writes: take another name, or --force'
keeps 'the topology that is read' "$net" "^skep: $net: is there already" plan "${mine[@]}" -o "$net"
keeps 'the topology that is read, by force' "$net" "^skep: $net: $net is read by scenarios/my.yaml" plan "${mine[@]}" -o "$net" --force
keeps 'the topology under another name' "$net" "^skep: .*$net is read by" plan "${mine[@]}" -o "./$net" --force
keeps 'the scenario, by force' scenarios/my.yaml 'is the scenario itself' plan "${mine[@]}" -o scenarios/my.yaml --force
ln mine.yaml linked.yaml
keeps 'what somebody wrote' mine.yaml "^skep: mine.yaml: $other" plan "${mine[@]}" -o mine.yaml
sed 's/two-datacentres/islands/' "$net" >topologies/other.yaml
keeps 'a file in plan.search' topologies/other.yaml 'is one of the files in plan.search of scenarios/my.yaml' \
	plan "${mine[@]}" --set "plan.search={cluster.topology: [$net, topologies/other.yaml]}" -o topologies/other.yaml --force
: >empty.yaml
accepts 'over nothing' plan "${mine[@]}" -o empty.yaml -q
accepts 'over a plan' plan "${mine[@]}" -o empty.yaml -q
accepts 'over a file, by force' plan "${mine[@]}" -o mine.yaml -q --force
check 'it is a plan now' grep -q '^# Who serves which stage' mine.yaml
keeps 'a plan that is read' empty.yaml 'is the scenario itself' plan empty.yaml -o empty.yaml
check 'not its other name' grep -qx 'precious: words' linked.yaml

# ---- laws -------------------------------------------------------------------------------------------------------------

keeps 'a scenario as a law' linked.yaml "^skep: linked.yaml: $other" fit -o linked.yaml
keeps 'a plan as a law' empty.yaml "^skep: empty.yaml: $other" fit -o empty.yaml

# ---- traces -----------------------------------------------------------------------------------------------------------

drawn=(trace generate --like topologies/traces/aws-p3.csv --seed 1)
keeps 'a trace made by hand' mine.csv "^skep: mine.csv: $other" "${drawn[@]}" -o mine.csv
keeps 'a trace that skep did not write as it is' topologies/traces/small.csv "^skep: .*$other" "${drawn[@]}" -o topologies/traces/small.csv
keeps 'the trace to be like, by force' topologies/traces/aws-p3.csv 'is the trace, which this command reads' \
	"${drawn[@]}" -o topologies/traces/aws-p3.csv --force
keeps 'the trace that is imported, by force' mine.csv 'is the trace, which this command reads' trace import mine.csv -o mine.csv --force
accepts 'a trace' "${drawn[@]}" -o drawn.csv -q
accepts 'over a trace' "${drawn[@]}" -o drawn.csv -q
accepts 'over a trace by hand, by force' "${drawn[@]}" -o mine.csv -q --force
check 'it is the same as the other' cmp mine.csv drawn.csv
refuses 'by force where nothing is written' '^skep: trace stats does not take the option --force' trace stats mine.csv --force

# ---- topologies -------------------------------------------------------------------------------------------------------

measured=(topology import rtt "$data/planetlab-5.txt" --bandwidth '100 Mbit/s')
keeps 'a scenario as a topology' linked.yaml "^linked.yaml: error: $other" "${measured[@]}" -o linked.yaml
accepts 'a topology' "${measured[@]}" -o labs.yaml -q
accepts 'over a topology' "${measured[@]}" -o labs.yaml -q
echo '1,2' >labs-latency.csv
keeps 'a matrix of somebody' labs-latency.csv "^labs-latency.csv: error: $other" "${measured[@]}" -o labs.yaml
accepts 'over a matrix, by force' "${measured[@]}" -o labs.yaml -q --force
cp "$data/planetlab-5.txt" lab.yaml
keeps 'the file that is imported, by force' lab.yaml '^lab.yaml: error: is an operand, which this command reads' \
	topology import rtt lab.yaml --bandwidth '100 Mbit/s' -o lab.yaml --force
table=$root/topologies/regions/home-2019.csv
accepts 'peers' topology import regions "$table" --count 8 -o peers.yaml -q
accepts 'over peers and their table' topology import regions "$table" --count 8 -o peers.yaml -q
accepts 'stats takes them' topology stats peers.yaml
keeps 'the table that is imported, by force' peers-regions.csv 'is an operand, which this command reads' \
	topology import regions peers-regions.csv -o peers.yaml --force

# ---- pictures ---------------------------------------------------------------------------------------------------------

echo 'precious: words' >mine.png
keeps 'words as a picture' mine.png "^skep: mine.png: $other" plot complexity "${mine[@]}" -o mine.png
accepts 'a run' sim "${mine[@]}" -q
keeps 'words as a picture of a run' mine.png "^skep: mine.png: $other" plot timeline -o mine.png
cp skep.db skep.svg
keeps 'the database as a picture, by force' skep.svg 'is the database, which this command reads' plot timeline --db skep.svg -o skep.svg --force
if command -v gnuplot >/dev/null; then
	for ending in png svg pdf; do
		accepts "a picture, $ending" plot timeline -o "run.$ending"
		accepts "over a picture, $ending" plot timeline -o "run.$ending"
	done
	cp run.svg run.png
	keeps 'a picture of another format' run.png "$other" plot timeline -o run.png
	accepts 'over words, by force' plot timeline -o mine.png --force
fi

# ---- weights ----------------------------------------------------------------------------------------------------------

mkdir weights
echo '{}' >weights/config.json
keeps 'a model of somebody' weights/config.json '^skep: weights: has a model already that skep has not exported' \
	export scenarios/my.yaml -o weights
printf 'not weights of skep at all, but as long as their head is, and somewhat longer' >weights/model.safetensors
keeps 'weights of somebody' weights/model.safetensors '^skep: weights: has a model already' export scenarios/my.yaml -o weights
refuses 'a model of somebody, by force' 'no architecture' export scenarios/my.yaml -o weights --force

plan
