"""jobs.py WHAT ... - a referee of `skep jobs` that shares nothing with it: a queue of rigid jobs on machines that are alike.

    play POLICY MACHINES RESTART TRACE JSON  the same trace under one policy, event by event; ends have to agree to 2 us
    best TRACE JSON                          no schedule of one machine has a lower mean: all of them, second by second
    mm1 ARRIVAL SERVICE JSON                 the mean wait of M/M/1 lies in the interval that batches of the run give
"""
import csv
import functools
import json
import math
import sys


def jobs_of(path):
    return [(float(row["arrival"]), float(row["duration"]), int(row["machines"])) for row in csv.DictReader(open(path))]


def answers(path, policy):
    said = json.load(open(path))
    return next(p for p in said["policies"] if p["policy"] == policy)


class Job:
    def __init__(self, number, row):
        self.number, (self.arrival, self.left, self.machines) = number, row
        self.runs, self.first, self.held, self.idle, self.end = False, None, 0.0, 0.0, None  # idle: of its restart


def play(policy, machines, restart, rows, limits):
    """Event by event: who is first in line runs, as far as machines go."""
    waiting = [Job(i, row) for i, row in enumerate(rows)]
    present, now = [], 0.0

    def queue(job):
        return sum(job.held >= limit - 1e-9 for limit in limits)

    def key(job):
        if policy in ("fifo", "backfill"):
            return (not job.runs, job.arrival, job.number)
        if policy == "srtf":
            return (job.left, job.arrival, job.number)
        return (queue(job), math.inf if job.first is None else job.first, job.arrival, job.number)

    while waiting or present:
        times = [waiting[0].arrival] if waiting else []
        for job in present:
            if job.runs:
                times.append(now + job.idle + job.left)
                if policy == "las" and queue(job) < len(limits):
                    times.append(now + job.idle + (limits[queue(job)] - job.held) / job.machines)
        then = max(now, min(times))
        for job in present:
            if job.runs:
                pause = min(job.idle, then - now)
                job.held += (then - now - pause) * job.machines
                job.idle -= pause
                job.left -= then - now - pause
        now = then
        for job in [j for j in present if j.runs and j.left < 1e-7 and j.idle < 1e-7]:
            job.end = now
            present.remove(job)
        while waiting and waiting[0].arrival <= now + 1e-12:
            present.append(waiting.pop(0))
        free, chosen = machines, []
        for job in sorted(present, key=key):
            if job.machines <= free:
                free -= job.machines
                chosen.append(job)
            elif policy == "fifo":
                break
        for job in present:
            runs = job in chosen
            if runs and not job.runs:
                job.idle = 0.0 if job.first is None else restart
                job.first = now if job.first is None else job.first
            job.runs = runs
        for job in present:
            if job.end is None:
                ends[job.number] = job
    return [ends[i].end for i in range(len(rows))]


ends = {}


def best(rows):
    """The least sum of completion times on one machine, of whole seconds: every choice of every second."""
    @functools.lru_cache(None)
    def least(now, left):
        if not any(left):
            return 0
        there = [i for i, some in enumerate(left) if some and rows[i][0] <= now]
        if not there:
            return least(now + 1, left)
        tried = []
        for i in there:
            after = left[:i] + (left[i] - 1,) + left[i + 1:]
            tried.append((now + 1 - rows[i][0] if after[i] == 0 else 0) + least(now + 1, after))
        return min(tried)

    return least(0, tuple(int(row[1]) for row in rows))


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "play":
        policy, machines, restart, trace, said = arguments[:5]
        name = "fifo" if policy == "backfill" else policy
        theirs = [job["end_s"] for job in answers(said, name)["jobs"]]
        ours = play(policy, int(machines), float(restart), jobs_of(trace), [float(x) for x in arguments[5:]])
        worst = max(range(len(ours)), key=lambda i: abs(ours[i] - theirs[i]))
        assert abs(ours[worst] - theirs[worst]) < 2e-6, (worst, ours[worst], theirs[worst])
        assert len(ours) == len(theirs)
    elif what == "best":
        trace, said = arguments
        rows, jobs = jobs_of(trace), answers(said, "srtf")["jobs"]
        sum_s = sum(job["end_s"] - job["arrival_s"] for job in jobs)
        assert abs(sum_s - best(rows)) < 1e-5, (sum_s, best(rows))
    else:
        arrival, service, said = float(arguments[0]), float(arguments[1]), arguments[2]
        jobs = answers(said, "fifo")["jobs"]
        waits = [job["start_s"] - job["arrival_s"] for job in jobs][len(jobs) // 10:]
        size = len(waits) // 30
        means = [sum(waits[i * size:(i + 1) * size]) / size for i in range(30)]
        mean = sum(means) / 30
        half = 2.045 * math.sqrt(sum((m - mean) ** 2 for m in means) / 29 / 30)
        rho = service / arrival
        theory = rho / (1 - rho) * service
        print("mean wait %.3f +- %.3f, M/M/1 %.3f" % (mean, half, theory))
        assert abs(mean - theory) < half and half < 0.1 * theory, (mean, half, theory)


main()
