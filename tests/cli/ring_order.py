#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ring_order.py - the order of a ring by its links, against all orders there are, and its time against a recurrence by hand.

    ring_order.py brute SKEP MODEL    random matrices, and random sites with shared lines: no order of up to 8 members is better
    ring_order.py many SKEP MODEL     larger rings: a good order, the same one each time, in a bounded time
    ring_order.py time LINE,LATENCY,BEGIN .. SEGMENTS   seconds that a ring of such hops takes: seconds of a chunk on the line, one
                                                        way, and when the sender begins
"""
import heapq
import itertools
import json
import random
import resource
import subprocess
import sys

EPSILON = 5e-9  # hops are rounded to ns


def check(skep):
    done = subprocess.run([skep, "check", "ring.yaml", "--json", "-q"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["stages"][0]["ring"]


def write_scenario(model, members):
    with open("ring.yaml", "w") as file:
        file.write(f"""name: a ring of {members}
seed: 1
model: {{file: {model}, stages: 1}}
cluster: {{topology: links.yaml}}
schedule: {{global_batch: {members}, microbatch: 1}}
sync: {{ring_order: links}}
train: {{arithmetic: none, until: {{steps: 1}}}}
""")


def write_matrix(name, rows):
    with open(name, "w") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in rows)


# Each ordered pair has its own Mbit/s and ms.
def write_pairs(rate, latency):
    write_matrix("rate.csv", rate)
    write_matrix("latency.csv", latency)
    with open("links.yaml", "w") as file:
        file.write(f"""name: pairs
source: Assumed for this test.
directory: 0
matrix: {{bandwidth: rate.csv, bandwidth_unit: Mbit/s, latency: latency.csv, latency_unit: ms}}
machines: [{{count: {len(rate)}, gpu: v100}}]
""")


def draw_pairs(rng, members, coarse):
    def row(of_few, most):
        return [[rng.choice(of_few) if coarse else rng.randint(1, most) for _ in range(members)] for _ in range(members)]
    return row([5, 10, 20, 100], 1000), row([1, 5, 20], 100)


def pairs_pace(order, rate, latency, size):
    hops = [latency[a][b] * 1e-3 + 8 * size / (rate[a][b] * 1e6) for a, b in zip(order, order[1:] + order[:1])]
    return max(hops), sum(hops)


# Sites whose machines differ, some with an uplink; links between sites of their own for each pair of machines, or shared.
def draw_sites(rng, members, sites):
    of = list(range(sites)) + [rng.randrange(sites) for _ in range(members - sites)]
    of.sort()
    own = [(rng.choice([20, 50, 200]), rng.choice([20, 50, 100])) for _ in of]
    uplink = [(rng.choice([10, 30]), rng.choice([10, 30])) if rng.random() < 0.5 else None for _ in range(sites)]
    link = {pair: (rng.choice([5, 10, 40, 100]), rng.choice([1, 10, 30]), rng.random() < 0.6)
            for pair in itertools.combinations(range(sites), 2)}
    with open("links.yaml", "w") as file:
        file.write("name: sites\nsource: Assumed for this test.\ndirectory: s0\nsites:\n")
        for site in range(sites):
            machines = ", ".join(f"{{gpu: v100, up: {own[i][0]} Mbit/s, down: {own[i][1]} Mbit/s}}"
                                 for i in range(members) if of[i] == site)
            file.write(f"  s{site}:\n    machines: [{machines}]\n    inside: {{bandwidth: 1000 Mbit/s, latency: 1 ms}}\n")
            if uplink[site]:
                file.write(f"    uplink: {uplink[site][0]} Mbit/s\n    downlink: {uplink[site][1]} Mbit/s\n")
        file.write("links:\n")
        for (a, b), (rate, ms, shared) in link.items():
            file.write(f"  - {{between: [s{a}, s{b}], bandwidth: {rate} Mbit/s, latency: {ms} ms, shared: {str(shared).lower()}}}\n")
    return of, own, uplink, link


def sites_pace(order, of, own, uplink, link, size):
    hops, crossings = list(zip(order, order[1:] + order[:1])), {}
    for a, b in hops:
        for line in ((of[a], of[b]), (of[a], "out"), (of[b], "in")):
            crossings[line] = crossings.get(line, 0) + (of[a] != of[b])
    times = []
    for a, b in hops:
        p, q, rate, ms = of[a], of[b], min(own[a][0], own[b][1], 1000), 1
        if p != q:
            line, ms, shared = link[min(p, q), max(p, q)]
            rate = min(rate, line / crossings[p, q] if shared else line)
            rate = min(rate, uplink[p][0] / crossings[p, "out"] if uplink[p] else rate)
            rate = min(rate, uplink[q][1] / crossings[q, "in"] if uplink[q] else rate)
        times.append(ms * 1e-3 + 8 * size / (rate * 1e6))
    return max(times), sum(times)


# All orders that begin with member 0; `pace` of one is (slowest hop, sum).
def compare(ring, members, pace, sums):
    assert ring["exact"] and sorted(ring["order"]) == list(range(members)), ring
    own = pace(ring["order"])
    assert abs(own[0] - ring["slowest"]["step_s"]) < EPSILON and abs(own[1] - ring["round_s"]) < 8 * EPSILON, (own, ring)
    assert abs(pace(list(range(members)))[0] - ring["roster_step_s"]) < EPSILON, ring
    best = min(pace([0, *rest]) for rest in itertools.permutations(range(1, members)))
    assert own[0] < best[0] + EPSILON, (best, own)
    least = min(s for w, s in (pace([0, *rest]) for rest in itertools.permutations(range(1, members))) if w < best[0] + EPSILON)
    assert not sums or own[1] < least + 8 * EPSILON, (least, own)


def brute(skep, model):
    for seed in range(16):
        rng = random.Random(seed)
        members = 2 + seed % 7
        rate, latency = draw_pairs(rng, members, seed % 2)
        write_pairs(rate, latency)
        write_scenario(model, members)
        ring = check(skep)
        compare(ring, members, lambda order: pairs_pace(order, rate, latency, ring["chunk_bytes"]), True)
    for seed in range(24):
        rng = random.Random(100 + seed)
        members = 4 + seed % 5
        drawn = draw_sites(rng, members, 2 + seed % 3)
        write_scenario(model, members)
        ring = check(skep)
        compare(ring, members, lambda order: sites_pace(order, *drawn, ring["chunk_bytes"]), False)


# Of all programs that this one has started.
def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Twelve have an exact answer; of more none is worse than the roster, and hidden sites are found.
def many(skep, model):
    for members in (12, 13, 40):
        rng = random.Random(members)
        drawn = draw_sites(rng, members, 4)
        write_scenario(model, members)
        ring = check(skep)
        own, roster = (sites_pace(order, *drawn, ring["chunk_bytes"]) for order in (ring["order"], list(range(members))))
        assert own <= roster and ring == check(skep) and ring["exact"] == (members == 12), (own, roster)
    for members, sites, seconds in ((60, 5, 10), (1024, 8, 60)):
        rate = [[1000 if i % sites == j % sites else 10 for j in range(members)] for i in range(members)]
        latency = [[1 if i % sites == j % sites else 50 for j in range(members)] for i in range(members)]
        write_pairs(rate, latency)
        write_scenario(model, members)
        began = processor_s()
        ring = check(skep)
        took = processor_s() - began
        order = ring["order"]
        crossings = sum(a % sites != b % sites for a, b in zip(order, order[1:] + order[:1]))
        assert sorted(order) == list(range(members)) and crossings == sites, crossings
        assert took < seconds, took


# Segment j of chunk c is at link l when it has come from l - 1 and those before it have left: as in sums.py, each link by itself.
def ring_time(links, segments):
    n, free, last = len(links), [0.0] * len(links), 0.0
    queue = [(links[c][2], 0, j, c) for c in range(n) for j in range(segments)]
    heapq.heapify(queue)
    while queue:
        ready, hop, j, c = heapq.heappop(queue)
        line_s, latency_s, _ = links[(c + hop) % n]
        free[(c + hop) % n] = last = max(ready + latency_s, free[(c + hop) % n]) + line_s / segments
        if hop + 1 < 2 * (n - 1):
            heapq.heappush(queue, (max(last, links[(c + hop + 1) % n][2]), hop + 1, j, c))
    return max(free)


def main():
    if sys.argv[1] == "time":
        print("%.6f" % ring_time([tuple(map(float, link.split(","))) for link in sys.argv[2:-1]], int(sys.argv[-1])))
    else:
        {"brute": brute, "many": many}[sys.argv[1]](*sys.argv[2:])


main()
