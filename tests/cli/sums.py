#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# sums.py KIND MEMBERS BYTES CHUNKS BIT_PER_S LATENCY_S - how long an all-reduce takes in a star that is idle otherwise, in seconds, by
# hand. Each member has one line out and one line in; a line serves the messages for one member in order, and those for several
# share it alike.
import heapq
import math
import sys


# Segments or chunks that each go from member to member: a link serves them in the order in which they came to it.
#   arrival(link, k) = max(ready(k) + latency, arrival(link, k - 1)) + bytes / rate
def passed_on(ways, line_s, latency_s):
    free, last = {}, 0.0
    queue = [(0.0, 0, k, way) for k, way in enumerate(ways)]
    while queue:
        ready, hop, k, way = heapq.heappop(queue)
        free[way[hop]] = max(ready + latency_s, free.get(way[hop], 0.0)) + line_s
        last = max(last, free[way[hop]])
        if hop + 1 < len(way):
            heapq.heappush(queue, (free[way[hop]], hop + 1, k, way))
    return last


# Reduce-scatter, then all-gather: the chunk of each member makes 2 (n - 1) hops, in segments.
def ring(n, size, segments, rate, latency):
    ways = [[(c + hop) % n for hop in range(2 * (n - 1))] for c in range(n) for _ in range(segments)]
    return passed_on(ways, size / n / segments / rate, latency)


# The sum grows from the first member to the last, which sends what is whole to the first and so on to the last but one.
def chain(n, size, chunks, rate, latency):
    return passed_on([[hop % n for hop in range(2 * (n - 1))]] * chunks, size / chunks / rate, latency)


# Each line has the pieces for all others to send, and then its sums: of each chunk when all pieces of it have come.
def butterfly(n, size, chunks, rate, latency):
    chunk = (n - 1) / n * size / chunks / rate
    gone = chunks * chunk
    for k in range(chunks):
        gone = max(gone, (k + 1) * chunk + latency) + chunk
    return gone + latency


def parameter_server(n, size, _, rate, latency):
    return 2 * (latency + (n - 1) * size / rate)


def all_to_all(n, size, _, rate, latency):
    return latency + (n - 1) * size / rate


# n = 2^k: up the binomial tree, and down, where each child is sent to when the one before has said that it has it.
def reduce_broadcast(n, size, _, rate, latency):
    k = round(math.log2(n))
    return 2 * k * (latency + size / rate) + (k - 1) * latency


# n = 2^k: halves, quarters .., and back.
def halving_doubling(n, size, _, rate, latency):
    return 2 * round(math.log2(n)) * latency + 2 * (n - 1) / n * size / rate


# n = 2^(d + 1) - 1: two children send and are sent to, and say so.
def tree(n, size, chunks, rate, latency):
    pair = 2 * size / chunks / rate
    return 2 * ((round(math.log2(n + 1)) - 1) * (latency + pair) + (chunks - 1) * (2 * latency + pair))


KINDS = {"ring": ring, "chain": chain, "butterfly": butterfly, "parameter-server": parameter_server, "all-to-all": all_to_all,
         "reduce-broadcast": reduce_broadcast, "halving-doubling": halving_doubling, "tree": tree}


def main():
    kind, members, size, chunks, rate, latency = sys.argv[1:]
    print("%.6f" % KINDS[kind](int(members), int(size), int(chunks), float(rate) / 8, float(latency)))


main()
