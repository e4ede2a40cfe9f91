#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torment.py - a real run whose worker processes are killed or frozen at random moments, and what has to hold afterwards.

    torment.py kill   SKEP SCENARIO RUNS KILLS [SEED]   KILLS SIGKILLs in each of RUNS runs; spares take the places
    torment.py freeze SKEP SCENARIO RUNS STOPS [SEED]   so many SIGSTOPs, each for longer than the directory's time-out

A run is fine if it ends in order, learns, counts each gradient once or reports it lost, and replays life by life with every
digest. A signal is survived if the run it fell into is fine. The last line gives both counts; exit status 0: all survived.
Works in the current folder, leaves the last run's database (torment.db) there.
"""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

DB = "torment.db"
MARK = "SKEP_TORMENT"
FROZEN_S = 2.5  # the scenario's time-out is 1 s
ROUNDS_BEFORE = 3


def processes(mark):
    """Own processes of the run, by MPI rank: others carry another mark."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = dict(x.split(b"=", 1) for x in f.read().split(b"\0") if b"=" in x)
        except OSError:
            continue
        if env.get(MARK.encode()) == mark.encode() and b"OMPI_COMM_WORLD_RANK" in env:
            found[int(env[b"OMPI_COMM_WORLD_RANK"])] = int(pid)
    return found


def ask(sql):
    try:
        with sqlite3.connect(f"file:{DB}?mode=ro", uri=True, timeout=10) as db:
            return db.execute(sql).fetchone()[0]
    except sqlite3.Error:
        return None


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Run:
    def __init__(self, skep, scenario, seed, spares):
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        command = [skep, "run", scenario, "--pace", "-q", "--json", "--seed", str(seed), "--db", DB]
        if spares is not None:
            command += ["--spares", str(spares)]
        env = dict(os.environ, **{MARK: self.mark})
        self.stdout, self.stderr = open("torment.out", "w+"), open("torment.err", "w+")
        self.process = subprocess.Popen(command, env=env, stdout=self.stdout, stderr=self.stderr)
        self.workers, self.signals = 0, 0

    def begin(self):
        """Waits until a few rounds are closed; False: the run has ended by then."""
        while self.process.poll() is None:
            rounds = ask("SELECT count(*) FROM rounds")
            if rounds and rounds >= ROUNDS_BEFORE:
                self.workers = ask("SELECT workers FROM runs ORDER BY id DESC LIMIT 1")
                return True
            time.sleep(0.02)
        return False

    def running(self):
        return self.process.poll() is None

    def end(self, limit):
        try:
            status = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        for pid in processes(self.mark).values():
            send(pid, signal.SIGCONT)
            if status is None:
                send(pid, signal.SIGKILL)
        if status is None:
            self.process.terminate()
            self.process.wait()
        return status


def kill(run, draw, count):
    """Seats go to the lowest spare, as in exec/loop/slots.c; now and then the newcomer dies too, while it downloads."""
    ranks = processes(run.mark)
    serving, spares = list(range(1, run.workers + 1)), sorted(r for r in ranks if r > run.workers)
    newest = None
    while run.signals < count and run.running():
        early = newest is not None and draw.random() < 0.3
        time.sleep(draw.uniform(0.01, 0.15) if early else draw.uniform(0.3, 1.1))
        victim = newest if early else draw.choice(serving)
        if not run.running() or not send(ranks[victim], signal.SIGKILL):
            break
        run.signals += 1
        serving.remove(victim)
        newest = spares.pop(0) if spares else None
        if newest is not None:
            serving.append(newest)


def freeze(run, draw, count):
    while run.signals < count and run.running():
        ranks = processes(run.mark)
        victim = draw.choice([r for r in ranks if 0 < r <= run.workers])
        if not send(ranks[victim], signal.SIGSTOP):
            break
        run.signals += 1
        time.sleep(FROZEN_S)
        send(ranks[victim], signal.SIGCONT)
        time.sleep(draw.uniform(0.3, 1.0))


def faults(skep, run, status, what, wanted):
    """What is wrong with a run that has ended, line by line."""
    one, wrong = ask, []
    if status != 0:
        return [f"exit status {status} after {run.signals} signals"]
    if run.signals < wanted:
        wrong.append(f"it ended after {run.signals} of {wanted} signals")
    if one("SELECT status FROM runs") != "done":
        wrong.append("its row does not say done")
    if one("SELECT counted + lost - issued FROM runs") != 0:
        wrong.append("counted + lost is not issued")
    for kind in ("pipeline", "sync"):  # the dead too have said what they sent
        if one(f"SELECT sum(bytes) FROM links WHERE traffic = '{kind}'") != one(f"SELECT bytes_{kind} FROM runs"):
            wrong.append(f"links and the run differ in bytes of {kind}")
    if one("SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'") != 0:
        wrong.append("v_ledger: a round and stage is broken")
    if one("SELECT count(*) FROM v_counted_once WHERE verdict <> 'kept'") != 0:
        wrong.append("v_counted_once: a gradient is not kept")
    first, last = (one(f"SELECT loss FROM rounds ORDER BY round {d} LIMIT 1") for d in ("", "DESC"))
    if not last < first / 10:
        wrong.append(f"the loss went from {first} to {last}")
    fenced = one("SELECT count(*) FROM notes WHERE kind = 'fenced'")
    if fenced == 0:  # not one for each: who dies before the directory has heard of it has nothing to lose
        wrong.append(f"{fenced} workers were fenced, {run.signals} had a signal")
    if one("SELECT count(*) FROM notes WHERE kind = 'joined'") == 0:
        wrong.append("nobody joined")
    replay = subprocess.run([skep, "replay", "1", "--json", "--db", DB], capture_output=True, text=True)
    verdict = json.loads(replay.stdout) if replay.stdout else {}
    if verdict.get("verdict") != "agrees" or not verdict.get("whole"):
        wrong.append(f"replay: {replay.stdout} {replay.stderr}")
    return wrong


def main():
    what, skep, scenario, runs, count = sys.argv[1:6]
    runs, count = int(runs), int(count)
    draw = random.Random(int(sys.argv[6]) if len(sys.argv) > 6 else 1)
    sent = survived = fine = 0
    for number in range(runs):
        for name in (DB, DB + "-wal", DB + "-shm"):
            if os.path.exists(name):
                os.remove(name)
        run = Run(skep, scenario, number + 1, count if what == "kill" else None)
        if run.begin():
            (kill if what == "kill" else freeze)(run, draw, count)
        wrong = faults(skep, run, run.end(120), what, count)
        sent += run.signals
        if wrong:
            run.stderr.seek(0)
            print(f"# run {number + 1}:", *wrong, sep="\n#   ")
            print("#   " + "#   ".join(run.stderr.readlines()[-15:]), flush=True)
        else:
            survived += run.signals
            fine += 1
    name = "SIGKILLs" if what == "kill" else "SIGSTOPs"
    print(f"{sent} {name}, {survived} survived, in {runs} runs of which {fine} were fine")
    return 0 if fine == runs else 1


if __name__ == "__main__":
    sys.exit(main())
