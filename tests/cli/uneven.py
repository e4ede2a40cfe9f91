#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# uneven.py WORKERS BLOCKS MICROBATCHES BYTES BIT_PER_S LATENCY_S - how long the passes of 1F1B take on stages of unequal numbers of
# workers, in seconds, by hand. WORKERS and BLOCKS: of each stage, with commas. Microbatch g is of worker g mod r of a stage of r;
# that one makes forward passes until it has as many as all workers from its stage on, for each of its stage and rounded up, then
# goes backwards and forwards in turn (PipeDream 2019, section 3.2). A line from one worker to another serves one message at a time:
#   arrival = max(end of the pass + latency, arrival before it on the line) + bytes / rate
# Forward passes take 18 ms for each block, backward passes 36 ms.
import sys

FORWARD_S, BACKWARD_S = 0.018, 0.036


def passes_of(workers, stage, nth, microbatches):
    own = list(range(nth, microbatches, workers[stage]))
    room = min(len(own), -(-sum(workers[stage:]) // workers[stage]))
    order = [("f", g) for g in own[: room - 1]]
    for i, g in enumerate(own):
        if i + room - 1 < len(own):
            order.append(("f", own[i + room - 1]))
        order.append(("b", g))
    return order


def span(workers, blocks, microbatches, message_s, latency_s):
    places = [(s, n) for s in range(len(workers)) for n in range(workers[s])]
    order = {p: passes_of(workers, *p, microbatches) for p in places}
    free, at = dict.fromkeys(places, 0.0), dict.fromkeys(places, 0)
    arrived, line = {("f", 0, g): 0.0 for g in range(microbatches)}, {}
    moved = True
    while moved:
        moved = False
        for s, n in places:
            while at[s, n] < len(order[s, n]):
                kind, g = order[s, n][at[s, n]]
                if (kind, s, g) not in arrived:
                    break
                takes = blocks[s] * (FORWARD_S if kind == "f" else BACKWARD_S)
                free[s, n] = max(free[s, n], arrived[kind, s, g]) + takes
                at[s, n] += 1
                moved = True
                if kind == "f" and s + 1 == len(workers):
                    arrived["b", s, g] = free[s, n]
                    continue
                to = s + 1 if kind == "f" else s - 1
                if to < 0:
                    continue
                way = (s, n, to, g % workers[to])
                line[way] = max(free[s, n] + latency_s, line.get(way, 0.0)) + message_s
                arrived[kind, to, g] = line[way]
    assert all(at[p] == len(order[p]) for p in places)
    return max(free.values())


def main():
    workers, blocks = ([int(n) for n in text.split(",")] for text in sys.argv[1:3])
    microbatches, size, rate, latency_s = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6])
    print(f"{span(workers, blocks, microbatches, 8 * size / rate, latency_s):.6f}")


main()
