#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Algorithm 2 of SWARM (Ryabinin et al. 2023) by the passes of a simulated run: who moves first, and where to.

    moves.py runs.db PERIOD_S      prints "worker stage", or "none", and by how much the choice is clear

Queues are found anew from the table of passes. A forward pass is ready when the one of the stage before has ended, in the first
stage when its worker may issue another microbatch; a backward pass when that of the stage after has ended, in the last stage its
own forward pass. What is ready and has not begun waits. A worker's queue is the mean of what waits at it from the start to its
last report before the first round ended. Links are so fast that they are left out.
"""
import collections
import sqlite3
import sys

def passes(db):
    forward, backward = {}, {}
    for worker, stage, microbatch, kind, begin, end in db.execute(
            "SELECT worker, stage, microbatch, kind, begin_s, end_s FROM ops"
            " WHERE round = 0 AND kind IN ('forward', 'backward')"):
        (forward if kind == "forward" else backward)[stage, microbatch] = (worker, begin, end)
    return forward, backward


def grants(db):
    """When each worker of the first stage may issue each of its microbatches."""
    issued = collections.defaultdict(list)
    for time, worker, count in db.execute(
            "SELECT time_s, peer, value FROM notes WHERE kind = 'issued' AND round = 0 ORDER BY rowid"):
        issued[worker] += [time] * count
    return issued


def waiting(forward, backward, issued, stages):
    """From when to when each pass waits, by worker."""
    waits = collections.defaultdict(list)
    for (stage, microbatch), (worker, begin, _) in forward.items():
        if stage > 0:
            waits[worker].append((forward[stage - 1, microbatch][2], begin))
    for (stage, microbatch), (worker, begin, _) in backward.items():
        before = forward[stage, microbatch] if stage == stages - 1 else backward[stage + 1, microbatch]
        waits[worker].append((before[2], begin))
    for owner, granted in issued.items():
        begins = sorted(begin for (stage, _), (worker, begin, _) in forward.items() if stage == 0 and worker == owner)
        waits[owner] += zip(granted, begins)
    return waits


def main():
    db, period = sqlite3.connect(sys.argv[1]), float(sys.argv[2])
    stages, = db.execute("SELECT stages FROM runs").fetchone()
    forward, backward = passes(db)
    ended = max(end for _, _, end in backward.values())
    until = ended // period * period
    stage_of = {worker: stage for (stage, _), (worker, _, _) in forward.items()}
    queue = {worker: sum(max(0.0, min(end, until) - min(begin, until)) for begin, end in spans) / until
             for worker, spans in waiting(forward, backward, grants(db), stages).items()}
    total = [sum(queue[w] for w in queue if stage_of[w] == s) for s in range(stages)]
    most, least = max(range(stages), key=total.__getitem__), min(range(stages), key=total.__getitem__)
    those = sorted((queue[w], w) for w in queue if stage_of[w] == least)
    second_most = max(t for s, t in enumerate(total) if s != most)
    second_least = min(t for s, t in enumerate(total) if s != least)
    clear = min(total[most] - second_most, second_least - total[least], those[1][0] - those[0][0])
    print(f"{those[0][1]} {most}")
    print(f"{clear:.4f}", file=sys.stderr)


main()
