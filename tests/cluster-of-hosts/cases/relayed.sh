# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# relayed.sh - three homes that only dial out and a machine that can be reached, beside what the simulator says of the same file: the
# same pairs go through the directory, with the same bytes, and what `serve` passes on is that and little more. Throughput is printed and
# not judged, and so is what the server's line carried, by the kernel's count, before it cuts large segments into frames.

cat >gpus/slow.yaml <<END
name: slow
source: assumed for this test
flops: 1000 TFLOP/s
efficiency: 1
memory_bandwidth: 1000 GB/s
memory: 16 GB
overhead: 40 ms
END
line=$(python3 -c 'print(40 * 1448 / 1514)')
cat >homes.yaml <<END
name: three homes
source: assumed for this test
directory: rented
sites:
  rented: {machines: [{gpu: slow}], inside: {bandwidth: 9 Gbit/s, latency: 0.1 ms}}
  first: {machines: [{gpu: slow, up: $line Mbit/s, down: $line Mbit/s}], reach: out}
  second: {machines: [{gpu: slow, up: $line Mbit/s, down: $line Mbit/s}], reach: out}
  third: {machines: [{gpu: slow, up: $line Mbit/s, down: $line Mbit/s}], reach: out}
links:
  - {between: [rented, first], bandwidth: 950 Mbit/s, latency: 0.2 ms}
  - {between: [rented, second], bandwidth: 950 Mbit/s, latency: 0.2 ms}
  - {between: [rented, third], bandwidth: 950 Mbit/s, latency: 0.2 ms}
END
cat >wide.yaml <<END
name: wide
kind: mlp
activation: gelu
layers: {inputs: 1, hidden: 512, hidden_layers: 6, outputs: 1}
END
cp job.yaml kept.yaml
cat >job.yaml <<END
name: homes
seed: 5
model: {file: wide.yaml, stages: 2}
cluster: {topology: homes.yaml, allocation: {method: strided}}
schedule: {pipeline: 1f1b, global_batch: 256, microbatch: 64}
train: {arithmetic: real, optimizer: {name: adamw, lr: 1.0e-3}, until: {steps: 10}}
END
limit() { # limit RATE QUEUE: of the homes' lines, out and in
	local host
	for host in b1 b2 b3; do
		"$hosts/on.sh" "$host" tc qdisc replace dev eth0 root tbf rate "$1" burst 64kb latency "$2"
		tc qdisc replace dev "port-$host" root tbf rate "$1" burst 64kb latency "$2"
	done
}
on_line() { # of the server's host, so far: bytes out, as frames
	"$hosts/on.sh" a1 ip -s -j link show eth0 | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["stats64"]["tx"]["bytes"])'
}

limit 40mbit 20ms
before=$(on_line)
serves relayed
joins a2 a2 --worker 0
joins b1 b1 --worker 1 --listen 127.0.0.1:0
joins b2 b2 --worker 2 --listen 127.0.0.1:0
joins b3 b3 --worker 3 --listen 127.0.0.1:0
ends relayed
gather
carried=$(($(on_line) - before))
limit "$HOST_RATE" 20ms
check 'relayed: the homes, of which none can be reached, are relayed' grep -q 'skep: passed on [0-9]* bytes' relayed.err
check 'relayed: as the topology says' [ "$(grep -cE '^skep: (relayed workers|.* have connected)' relayed.err)" = 0 ]
run_skep sim job.yaml -q --db homes.db --json
check 'relayed: the bytes of the directory are those of the simulator' python3 - relayed.db homes.db relayed.err "$out" relayed.out "$carried" <<-'END'
	import json, re, sqlite3, sys
	def links(name):
	    rows = sqlite3.connect(name).execute("SELECT source, destination, traffic, bytes FROM links WHERE run = 1")
	    return {row[:3]: row[3] for row in rows if row[2] in ("pipeline", "sync")}
	real, simulated = links(sys.argv[1]), links(sys.argv[2])
	homes, directory = {1, 2, 3}, 4
	pairs = {key: n for key, n in real.items() if set(key[:2]) <= homes}
	assert pairs and not [key for key in simulated if set(key[:2]) <= homes], (real, simulated)
	for traffic in ("pipeline", "sync"):
	    for home in homes:
	        out = sum(n for (s, d, t), n in pairs.items() if s == home and t == traffic)
	        into = sum(n for (s, d, t), n in pairs.items() if d == home and t == traffic)
	        assert out == simulated.get((home, directory, traffic), 0), (home, traffic, out, simulated)
	        assert into == simulated.get((directory, home, traffic), 0), (home, traffic, into, simulated)
	straight = {key: n for key, n in simulated.items() if directory not in key[:2]}
	assert straight == {key: n for key, n in real.items() if key not in pairs}, (straight, real)
	relayed = sum(pairs.values())
	passed = int(re.search(r"passed on (\d+) bytes", open(sys.argv[3]).read()).group(1))
	assert 0 <= passed / relayed - 1 < 0.02, (passed, relayed)
	per_s = [json.load(open(name))["throughput_samples_per_s"] for name in (sys.argv[5], sys.argv[4])]
	with open("figures", "w") as file:
	    file.write(f"# relayed: {relayed} bytes, as simulated; serve passed on {100 * (passed / relayed - 1):.2f} % more, and "
	        f"its line carried {100 * (int(sys.argv[6]) / relayed - 1):.1f} % more, files and all\n"
	        f"# relayed: {per_s[0]:.1f} samples/s, simulated {per_s[1]:.1f}: {100 * (per_s[0] / per_s[1] - 1):+.1f} %\n")
END
cat figures
mv kept.yaml job.yaml
