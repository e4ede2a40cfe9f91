#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# thin_lines.py KIND STAGES MODEL_CHUNKS MICROBATCHES BYTES BIT_PER_S LATENCY_S [RECOMPUTED] - how long the passes of a fixed pipeline take, in seconds,
# by hand: each worker makes its passes in the order that the papers give; a pass begins when the one before it has ended and
# what it needs has arrived; a line from one worker to another serves one message at a time, in order:
#   arrival(k) = max(end of pass k + latency, arrival(k - 1)) + bytes / rate
# Forward passes take 18 ms, backward passes 36 ms, for each of eight blocks. RECOMPUTED: `false`; `true`: a backward pass begins
# with the forward pass, but in the last stage; `all`: in all of them.
import sys

FORWARD_S, BACKWARD_S, BLOCKS = 0.018, 0.036, 8


def gpipe(stage, stages, chunks, microbatches):
    del stage, stages, chunks
    return [("f", 0, m) for m in range(microbatches)] + [("b", 0, m) for m in range(microbatches)]


def one_f_one_b(stage, stages, chunks, microbatches):
    del chunks
    ahead = min(microbatches, stages - 1 - stage)
    order = [("f", 0, m) for m in range(ahead)]
    for m in range(microbatches - ahead):
        order += [("f", 0, ahead + m), ("b", 0, m)]
    return order + [("b", 0, m) for m in range(microbatches - ahead, microbatches)]


# Narayanan et al. 2021: groups of as many microbatches as there are stages go through one chunk after the other.
def interleaved(stage, stages, chunks, microbatches):
    all_passes = chunks * microbatches

    def nth(k, backward):
        chunk = k % (stages * chunks) // stages
        microbatch = k // (stages * chunks) * stages + k % stages
        return ("b", chunks - 1 - chunk, microbatch) if backward else ("f", chunk, microbatch)

    ahead = min(all_passes, 2 * (stages - 1 - stage) + (chunks - 1) * stages)
    order = [nth(k, False) for k in range(ahead)]
    for k in range(all_passes - ahead):
        order += [nth(ahead + k, False), nth(k, True)]
    return order + [nth(k, True) for k in range(all_passes - ahead, all_passes)]


def span(order_of, stages, chunks, microbatches, message_s, latency_s, recomputed):
    order = [order_of(s, stages, chunks, microbatches) for s in range(stages)]
    last = stages * chunks - 1  # virtual stage
    scale = BLOCKS / stages / chunks
    arrived, line, free, at = {}, {}, [0.0] * stages, [0] * stages
    for m in range(microbatches):
        arrived["f", 0, m] = 0.0
    moved = True
    while moved:
        moved = False
        for s in range(stages):
            while at[s] < len(order[s]):
                kind, chunk, m = order[s][at[s]]
                v = chunk * stages + s
                if (kind, v, m) not in arrived:
                    break
                again = recomputed == "all" or (recomputed == "true" and v < last)
                backward_s = BACKWARD_S + (FORWARD_S if again else 0)
                free[s] = max(free[s], arrived[kind, v, m]) + scale * (FORWARD_S if kind == "f" else backward_s)
                at[s] += 1
                moved = True
                if kind == "f" and v == last:
                    arrived["b", v, m] = free[s]
                    continue
                to = v + 1 if kind == "f" else v - 1
                if to < 0:
                    continue
                way = s, to % stages
                line[way] = max(free[s] + latency_s, line.get(way, 0.0)) + message_s
                arrived[kind, to, m] = line[way]
    assert all(at[s] == len(order[s]) for s in range(stages))
    return max(free)


def main():
    kind, numbers = sys.argv[1], sys.argv[2:]
    stages, chunks, microbatches = (int(n) for n in numbers[:3])
    size, rate, latency_s = (float(n) for n in numbers[3:6])
    recomputed = numbers[6] if len(numbers) > 6 else "false"
    order_of = {"gpipe": gpipe, "1f1b": one_f_one_b, "interleaved": interleaved}[kind]
    print("%.6f" % span(order_of, stages, chunks, microbatches, 8 * size / rate, latency_s, recomputed))


main()
