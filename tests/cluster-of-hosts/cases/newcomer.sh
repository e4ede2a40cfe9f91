# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# newcomer.sh - from `skep join` to the first counted gradient of a machine that was never there, beside what the simulator says of the
# same scenario with cluster.trace.admission: served. 40 MB of files travel over a line of $LINE (200 Mbit/s). The figures are printed;
# a quiet machine is needed.

head -c 40000000 /dev/urandom >book.txt
cat >model.yaml <<END
name: bytes
kind: transformer
transformer: {architecture: gpt2, hidden: 8, heads: 1, blocks: 2, sequence: 8, vocabulary: 256}
END
cp job.yaml kept.yaml
cp six.yaml kept-six.yaml
line=${LINE:-200}
sed -i "s/bandwidth: .*, latency/bandwidth: $(python3 -c "print($line * 1448 / 1514)") Mbit\/s, latency/" six.yaml
sed -i 's/^train: {/&data: {corpus: text, file: book.txt}, /; s/model: {.*/model: {file: model.yaml, stages: 2}/' job.yaml
for host in "${names[@]}"; do # out and in
	"$hosts/on.sh" "$host" tc qdisc replace dev eth0 root tbf rate "${line}mbit" burst 64kb latency 20ms
	tc qdisc replace dev "port-$host" root tbf rate "${line}mbit" burst 64kb latency 20ms
done

counted() { # of worker 5, since ...
	sqlite newcomer.db "SELECT min(time_s) FROM notes WHERE kind = 'counted' AND worker = 5 AND time_s > $1" | grep -v None
}

serves newcomer --at-least 5 --set train.until.steps=100000
for i in 0 1 2 3 4; do
	joins "w$i" "${names[i]}" --worker "$i"
done
awaits 'newcomer: the run begins' rounds 5
: >real
for i in 1 2 3 4 5; do
	at=$("$hosts/on.sh" a2 "$skep" status a1:7337 --ticket "$ticket" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["time_s"])')
	joins late b3 --cache "$scratch/cache-late-$i"
	awaits "newcomer: it counts" counted "$at" >/dev/null
	echo "$at $(counted "$at")" >>real
	kills KILL late
	unset 'joiner[late]'
	sleep 4
done
kill -TERM "$serve"
ends newcomer 143
gather
: >simulated
for i in 1 2 3 4 5; do
	at=$((4 + i)).$((2 * i))
	{
		for name in n0 n1 n2 n3 n4; do echo "0,join,$name"; done
		echo "$at,join,n5"
		echo '1000,end,'
	} >trace.csv
	rm -f sim.db
	run_skep sim job.yaml -q --db sim.db --set train.until.steps=150 --set 'cluster.trace={file: trace.csv, any_gpu: true, admission: served}'
	echo "$at $(sqlite sim.db "SELECT min(time_s) FROM notes WHERE kind = 'counted' AND worker = 5")" >>simulated
done
python3 - real simulated <<-'END'
	import statistics, sys
	mean = {}
	for name in sys.argv[1:]:
	    took = [float(b) - float(a) for a, b in (line.split() for line in open(name))]
	    mean[name] = statistics.median(took)
	    print(f"# newcomer: {name}", *(f"{t:.2f}" for t in took), "s")
	print(f"# newcomer: real / simulated {mean['real'] / mean['simulated']:.2f}, by medians")
END
mv kept.yaml job.yaml
mv kept-six.yaml six.yaml
