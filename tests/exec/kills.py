#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kills.py SKEP SCENARIO STEPS [--every MS] [--until MS] [--from MS]: a run in which one process is killed, again and again.

At each MS of the first 3 s (every 10 ms) of a run of its own a process of it gets SIGKILL: skep, who tidies up after it, mpirun or one of
the ranks, each in turn of those that are there by then. What must hold of every one: all its processes come to an end within 30 s, skep's
exit status is 0 only if all STEPS are committed and the run is `done` in the database, any other status of a skep that lives comes with
a sentence, the database is whole, and no folder is left in TMPDIR or /dev/shm. Prints a table with a row for each process that was killed, and
what went wrong; exit status 0 if nothing did. Works in the current folder."""
import argparse
import collections
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

LIMIT_S = 30


def below(own, root):
    """Names and numbers of the run's processes that are no zombies: all that have this TMPDIR."""
    of = {}
    for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
        try:
            words = open(f'/proc/{pid}/environ', 'rb').read().split(b'\0')
            program = os.path.basename(os.readlink(f'/proc/{pid}/exe'))
        except OSError:
            continue
        if f'TMPDIR={own}'.encode() not in words:
            continue
        rank = [w.split(b'=')[1].decode() for w in words if w.startswith(b'OMPI_COMM_WORLD_RANK=')]
        if pid == root:
            of[pid] = 'skep'
        elif rank:
            of[pid] = 'rank ' + rank[0]
        else:
            of[pid] = 'who tidies up' if program == 'skep' else 'mpirun'
    return of


def said_of_run(steps):
    """(the run's status, true if all steps are committed, what is wrong with the database)"""
    if not os.path.exists('kills.db'):
        return None, False, None
    db = sqlite3.connect('kills.db', timeout=10)
    try:
        whole = db.execute('PRAGMA integrity_check').fetchone()[0]
        row = db.execute('SELECT status, (SELECT count(*) FROM rounds WHERE run = runs.id) FROM runs').fetchone()
        return (row[0], row[1] == steps, None) if whole == 'ok' and row else (None, False, None if whole == 'ok' else whole)
    except sqlite3.OperationalError as error: # it was killed before it had made its tables
        return None, False, None if 'no such table' in str(error) else str(error)
    finally:
        db.close()


def once(given, at_s, turn):
    """(what was killed, what is wrong, how it ended)"""
    for name in os.listdir('.'):
        if name.startswith('kills.db'):
            os.remove(name)
    own = tempfile.mkdtemp(prefix='kills-')
    began = time.monotonic()
    skep = subprocess.Popen([given.skep, 'run', given.scenario, '-q', '--db', 'kills.db'], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, 'TMPDIR': own}, start_new_session=True)
    time.sleep(max(0, began + at_s - time.monotonic()))
    of = below(own, skep.pid)
    memory = ['/dev/shm/' + name for name in os.listdir(own) if name.startswith('skep-')]
    if skep.poll() is not None:
        victim = 'nobody: it had ended'
    else:
        pid = sorted(of)[turn % len(of)]
        victim = of[pid]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    try:
        _, said = skep.communicate(timeout=LIMIT_S)
        hangs = False
    except subprocess.TimeoutExpired:
        hangs, said = True, b''
    while not hangs and below(own, skep.pid) and time.monotonic() - began < at_s + LIMIT_S:
        time.sleep(0.02)
    hangs = hangs or bool(below(own, skep.pid))
    for pid in below(own, skep.pid) if hangs else []:
        os.kill(pid, signal.SIGKILL)
    if hangs:
        skep.wait()
    deadline = time.monotonic() + LIMIT_S
    left = lambda: os.listdir(own) + list(filter(os.path.exists, memory))
    while left() and time.monotonic() < deadline:
        time.sleep(0.02)
    status, (state, complete, broken) = skep.returncode, said_of_run(given.steps)
    wrong = ['hangs'] if hangs else []
    wrong += ['false success'] if (status == 0 or state == 'done') and not (state == 'done' and complete) else []
    wrong += ['no sentence'] if status not in (0, -9) and b'skep: ' not in said else []
    wrong += ['still running'] if status not in (0, -9) and state == 'running' else []
    wrong += ['database'] if broken else []
    wrong += ['folder left'] if left() else []
    shutil.rmtree(own)
    return victim, wrong, 'status %d, run %s, %r' % (status, state, said[-300:].decode(errors='replace')), status == 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('skep', type=os.path.abspath)
    parser.add_argument('scenario')
    parser.add_argument('steps', type=int)
    parser.add_argument('--every', type=int, default=10)
    parser.add_argument('--until', type=int, default=3000)
    parser.add_argument('--from', dest='first', type=int, default=10)
    given = parser.parse_args()
    rows, turn = collections.defaultdict(collections.Counter), 0
    for at_ms in range(given.first, given.until + 1, given.every):
        victim, wrong, how, done = once(given, at_ms / 1000, turn)
        turn += 1
        rows[victim]['kills'] += 1
        rows[victim]['done'] += done
        rows[victim].update(wrong)
        if wrong:
            print('at %d ms %s: %s (%s)' % (at_ms, victim, ', '.join(wrong), how), flush=True)
    columns = ['kills', 'done', 'hangs', 'false success', 'no sentence', 'still running', 'database', 'folder left']
    print('| killed | ' + ' | '.join(columns) + ' |')
    print('|---' * (len(columns) + 1) + '|')
    for victim in sorted(rows):
        print('| ' + ' | '.join([victim] + [str(rows[victim][c]) for c in columns]) + ' |')
    sys.exit(any(rows[v][c] for v in rows for c in columns[2:]))


main()
