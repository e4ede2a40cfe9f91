#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve_kills.py SKEP SCENARIO STEPS [--kills N | --minutes M] [--seed S] [--jobs J]: `skep serve` with three that join, killed.

In each of N (12) runs of the scenario, which keeps checkpoints, processes get SIGKILL at a moment that the seed draws: one that joins, as
it starts, while files come, in the first round or at any time, itself or the process that --stay watches over; or the server, before the
run or in it. Each is started again by the same command, the server with --resume, where it tells so with --resume=auto. The n-th run is
that of seed S + n.

What must hold of every one: the server comes to its end with 0 and with all STEPS counted, in one run or in several of which each goes
on where one before it has kept its states, or says that the run that was lost had reached its end; the ledger is kept; who joins ends
with 0, or with a sentence; nothing hangs; no row stays `running`, and no file is left but what is documented. Prints a table with a row
for each kind of kill, and what went wrong; exit status 0 if nothing did. Folders are below the current one; those in which something
went wrong stay."""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

LIMIT_S = 60
KINDS = ['joiner as it starts', 'joiner while files come', 'joiner in its first round', 'joiner at any time', 'server before the run',
         'server in the run', 'server and joiner', 'child of --stay', 'two joiners', 'server twice']
NAMES = ['a', 'b', 'c']
KNOWN = re.compile(r'(home/[abc]/)?kept/((run-[-0-9]+/)?stage-\d+-version-\d+\.kept(\.\d+-[0-9a-f]{16}\.new)?|files|scenario\.yaml)$|'
                   r'home/[abc]/cache/(blobs/[0-9a-f]{64}|runs/[0-9a-f]{16}-[0-9a-f]{16}/.*)$|[a-z]+\.(out|err|log)$|skep\.db$')


class Case:
    def __init__(self, given, seed):
        self.given, self.seed, self.random = given, seed, random.Random(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.stay = self.kind == 'child of --stay' or ('server' in self.kind and self.random.random() < 0.5)
        self.folder = os.path.abspath('kill-%d' % seed)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.own = os.path.join(self.folder, 'tmp')
        os.makedirs(self.own)
        self.joiner, self.server, self.port, self.ticket = {}, None, 0, None
        self.wrong, self.said_before, self.over = [], {}, False # over: the server was lost behind its last step
        self.began = time.monotonic()

    # ---- processes ----

    def start(self, words, name, folder, more={}):
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(self.folder, name)
        self.log(name + ' starts')
        with open(path + '.out', 'w') as out, open(path + '.err', 'a') as err:
            self.said_before[name] = err.tell()
            return subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                    env={**os.environ, 'TMPDIR': self.own, **more})

    def log(self, text):
        with open(os.path.join(self.folder, 'case.log'), 'a') as log:
            log.write('%7.3f %s\n' % (time.monotonic() - self.began, text))

    def said(self, name):
        """What it has said since it was started last."""
        with open(os.path.join(self.folder, name + '.err')) as err:
            err.seek(self.said_before.get(name, 0))
            return err.read()

    def all_said(self):
        """What has happened when, and the last that each has said."""
        texts = []
        for name in ['case.log'] + sorted(n for n in os.listdir(self.folder) if n.endswith('.err')):
            with open(os.path.join(self.folder, name)) as file:
                texts += ['%s: %s' % (name, line.rstrip()) for line in file.readlines()[-12:]]
        return '\n'.join(texts)

    def until(self, happens, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while not happens():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def serve(self, resume):
        words = [self.given.skep, 'serve', self.given.scenario, resume, '--pace', '--json', '--listen', '127.0.0.1:%d' % self.port,
                 '--db', os.path.join(self.folder, 'skep.db'), '--set', 'cluster.compute_scale=2000',
                 '--set', 'directory={heartbeat: 200 ms, timeout: 2 s}']
        self.server = self.start(words, 'server', self.folder)
        self.until(lambda: '--ticket' in self.said('server') or self.server.poll() is not None)
        line = re.search(r'join 127\.0\.0\.1:(\d+) --ticket (skep1-\S+)', self.said('server'))
        if line:
            self.port, self.ticket = int(line[1]), line[2]
        return line is not None

    def join(self, name):
        home = os.path.join(self.folder, 'home', name)
        words = [self.given.skep, 'join', '127.0.0.1:%d' % self.port, '--cache', os.path.join(home, 'cache')] + ['--stay'] * self.stay
        self.joiner[name] = self.start(words, name, home, {'SKEP_TICKET': self.ticket})

    def below(self):
        """Numbers of this run's processes that are no zombies: all that have its TMPDIR."""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir('/proc'))):
            try:
                if ('TMPDIR=' + self.own).encode() in open('/proc/%d/environ' % pid, 'rb').read().split(b'\0'):
                    found.append(pid)
            except OSError:
                pass
        return found

    def kill(self, process, name):
        self.log('kills ' + name)
        try:
            os.kill(process if isinstance(process, int) else process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not isinstance(process, int):
            process.wait()

    # ---- what is killed, and when ----

    def kill_server(self):
        if self.server.poll() is not None:
            return
        self.kill(self.server, 'server')
        time.sleep(self.random.uniform(0, 0.5))
        for resume in '--resume', '--resume=auto':
            # With --resume it may first wait for what machines have made, and refuse when nothing has come.
            if self.serve(resume) and (resume == '--resume=auto' or self.goes_on()):
                return
            self.over = 'has reached its end' in self.said('server')
            if self.over or '--resume=auto' not in self.said('server'):
                break
        self.wrong += [] if self.over else ['no way on']

    def goes_on(self):
        self.until(lambda: 'goes on behind' in self.said('server') or not self.mind())
        return 'goes on behind' in self.said('server')

    def kill_joiner(self, name):
        process = self.joiner[name]
        if self.kind == 'child of --stay':
            children = [pid for pid in self.below() if parent(pid) == process.pid]
            for pid in children:
                self.kill(pid, 'child of ' + name)
        elif process.poll() is None:
            self.kill(process, name)
            time.sleep(self.random.uniform(0, 0.5))
            self.join(name)

    def act(self):
        name, wait = self.random.choice(NAMES), self.random.random()
        has_begun = lambda: self.server.poll() is not None or 'has begun' in self.said(name)
        blobs = os.path.join(self.folder, 'home', name, 'cache', 'blobs')
        if self.kind == 'joiner while files come':
            self.until(lambda: os.path.isdir(blobs) and os.listdir(blobs))
            time.sleep(wait * 0.08)
        elif self.kind in ('joiner in its first round', 'server in the run', 'server and joiner', 'two joiners', 'server twice'):
            self.until(has_begun)
            time.sleep(wait * (0.2 if 'first' in self.kind else 2))
        else:
            time.sleep(wait * (0.3 if self.kind in KINDS[:1] else 0.5 if self.kind == 'server before the run' else 2.5))
        if 'server' in self.kind:
            self.kill_server()
        if 'server' not in self.kind or 'joiner' in self.kind:
            self.kill_joiner(name)
        if self.kind == 'two joiners':
            self.kill_joiner(NAMES[NAMES.index(name) - 1])
        if self.kind == 'server twice':
            time.sleep(self.random.random())
            self.kill_server()

    # ---- the run ----

    def mind(self):
        """Starts again who has ended because the server had; false: the server has ended."""
        if self.server.poll() is not None:
            return False
        for name, process in list(self.joiner.items()):
            if process.poll() is not None and process.returncode == 1:
                self.sentence(name)
                self.join(name)
        time.sleep(0.05)
        return True

    def sentence(self, name):
        if 'skep: ' not in self.said(name):
            self.wrong.append('no sentence')

    def run(self):
        if not self.serve('--resume=auto'):
            self.wrong.append('the server does not begin')
            return
        for name in NAMES:
            self.join(name)
        self.act()
        self.wrong += ['hangs'] if not self.until(lambda: not self.mind()) else []
        self.log('server has ended with %s' % self.server.returncode)
        self.end_joiners()
        left = self.below()
        self.wrong += ['process left'] if left else []
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.judge()

    def end_joiners(self):
        self.until(lambda: all(self.at_rest(n) for n in NAMES), 15)
        for name, process in self.joiner.items():
            if process.poll() is None and self.stay and 'tries again' in self.said(name):
                process.terminate() # nothing has told it that the run is done
                self.until(lambda: process.poll() is not None, 10)
            elif process.poll() is None:
                self.wrong.append('joiner hangs')
            elif process.returncode == 1:
                self.sentence(name)
            elif process.returncode != 0:
                self.wrong.append('joiner: status %d' % process.returncode)

    def at_rest(self, name):
        return self.joiner[name].poll() is not None or (self.stay and 'tries again' in self.said(name))

    # ---- what must hold ----

    def judge(self):
        if self.server.returncode != 0:
            self.wrong.append('server: status %s' % self.server.returncode)
        elif not self.over:
            run = json.load(open(os.path.join(self.folder, 'server.out')))
            self.wrong += ['not counted'] if run['issued'] != run['counted'] + run['lost'] else []
        db = sqlite3.connect(os.path.join(self.folder, 'skep.db'), timeout=10)
        state = dict(db.execute('SELECT id, status FROM runs'))
        rounds = collections.defaultdict(list)
        for run, number in db.execute('SELECT run, round FROM rounds ORDER BY run, round'):
            rounds[run].append(number)
        self.log('runs %s, rounds %s' % (state, {r: (n[0], n[-1]) for r, n in rounds.items()}))
        self.wrong += ['database'] if db.execute('PRAGMA integrity_check').fetchone()[0] != 'ok' else []
        self.wrong += ['ledger'] if db.execute("SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'").fetchone()[0] else []
        last = max(state, default=0)
        self.wrong += ['still running'] if not self.over and ('running' in state.values() or state.get(last) != 'done') else []
        whole = all(n == list(range(n[0], n[-1] + 1)) for n in rounds.values())
        steps = {n for numbers in rounds.values() for n in numbers}
        ends = self.over or rounds.get(last, [0])[-1] + 1 == self.given.steps
        # The round that was open when the server was killed may have been stepped by all and not recorded yet: workers that hold
        # what they have (--stay) then go on behind it, and it has no row, which the server says. No other one may be missing.
        open_ones = {n[0] - 1 for run, n in rounds.items() if self.stay and n[0] - 1 not in steps and n[0] - 2 in steps | {-1}}
        with open(os.path.join(self.folder, 'server.err')) as err:
            told = {int(n) for n in re.findall(r'before it had recorded round (\d+),', err.read())}
        self.wrong += ['silent gap'] if open_ones - told else []
        missing = set(range(self.given.steps)) - steps - open_ones
        self.wrong += ['steps missing'] if not whole or not ends or (not self.over and missing) else []
        db.close()
        found = [os.path.relpath(os.path.join(at, f), self.folder) for at, _, files in os.walk(self.folder) for f in files]
        left = [f for f in found if not KNOWN.match(f)] + ['tmp/' + f for f in os.listdir(self.own)]
        self.wrong += ['file left: ' + ' '.join(left)] if left else []


def parent(pid):
    try:
        return int(open('/proc/%d/stat' % pid).read().rsplit(')', 1)[1].split()[1])
    except OSError:
        return None


def one(given, seed):
    case = Case(given, seed)
    try:
        case.run()
    except Exception as error:
        case.wrong.append(repr(error))
    if not case.wrong:
        shutil.rmtree(case.folder)
    return case


def next_of(seeds, lock):
    with lock:
        return next(seeds, None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('skep', type=os.path.abspath)
    parser.add_argument('scenario', type=os.path.abspath)
    parser.add_argument('steps', type=int)
    parser.add_argument('--kills', type=int, default=12)
    parser.add_argument('--minutes', type=float)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--jobs', type=int, default=3)
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes if given.minutes else None
    rows, lock = collections.defaultdict(collections.Counter), threading.Lock()
    end = time.monotonic() + 60 * (given.minutes or 0)
    seeds = iter(range(given.seed, given.seed + (1 << 30 if given.minutes else given.kills)))

    def several(_):
        for seed in iter(lambda: next_of(seeds, lock), None):
            if given.minutes and time.monotonic() > end:
                return
            case = one(given, seed)
            with lock:
                rows[case.kind].update(runs=1, wrong=bool(case.wrong))
                if case.wrong:
                    print('seed %d, %s: %s (%s)\n%s' % (seed, case.kind, ', '.join(case.wrong), case.folder, case.all_said()), flush=True)
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(several, range(given.jobs)))
    print('| killed | runs | wrong |\n|---|---|---|')
    for kind in filter(rows.__contains__, KINDS):
        print('| %s | %d | %d |' % (kind, rows[kind]['runs'], rows[kind]['wrong']))
    sys.exit(any(row['wrong'] for row in rows.values()))


main()
