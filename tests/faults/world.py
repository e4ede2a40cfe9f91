# SPDX-License-Identifier: Apache-2.0
"""What tests/faults/run calls with faults, how it calls it, and what must hold afterwards."""

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKEP = os.path.abspath(os.environ.get('SKEP', os.path.join(ROOT, 'build/skep')))
LIBRARY = os.path.abspath(os.environ.get('FAULTS', os.path.join(ROOT, 'build/tests/libfaults.so')))
QUICK = ['scenarios/one-worker.yaml', '--set', 'train.until.steps=2', '-q']
NO_LOSS = ['--set', 'train.arithmetic=none', '--jobs', '1', '-q', '-o', '{}/out.yaml']
KEEPS = ['scenarios/one-worker.yaml', '--set', 'checkpoint={every: 1, to: {}/kept}', '-q', '--db', '{}/a.db', '--set', 'train.until.steps=4']
GOES_ON = KEEPS + ['--set', 'train.until.steps=6', '--resume']
GPT = ['scenarios/tensor-parallel.yaml', '--set', 'train.until.steps=1', '--set', 'checkpoint={every: 1, to: {}/gpt}']

COMMANDS = {
    'check': ['check', 'scenarios/two-datacentres.yaml', '-q'],
    'sim': ['sim'] + QUICK + ['--db', '{}/a.db'],
    'plan': ['plan', 'scenarios/two-datacentres.yaml', '--set', 'train.until.steps=3'] + NO_LOSS,
    'few plan': ['plan', 'scenarios/two-stages.yaml', '--set', 'train.until.steps=1'] + NO_LOSS,
    'confirm': ['plan', 'scenarios/one-worker.yaml', '--set', 'train.until.steps=2', '--confirm', '2', '--db', '{}/a.db'] + NO_LOSS,
    'compare': ['compare', '1', '2', '--db', '{}/b.db'],
    'run': ['run'] + QUICK + ['--db', '{}/a.db'],
    'shared': ['run', 'scenarios/tensor-parallel.yaml', '--set', 'train.until.steps=2', '-q', '--db', '{}/a.db'],
    'keeping': ['sim', '--write-checkpoints'] + KEEPS,
    'resuming': ['sim', '--write-checkpoints'] + GOES_ON,
    'keeping gpt': ['sim', '--write-checkpoints', '-q', '--db', '{}/c.db'] + GPT,
    'exporting': ['export', '-o', '{}/weights'] + GPT,
    'running': ['run'] + KEEPS,
    'running on': ['run'] + GOES_ON,
}
# Of those the world: the ranks in which a fault can be, each alone.
RANKS = {'run': 2, 'shared': 4, 'running': 2, 'running on': 2}


def folder_of(what):
    """Of files in memory, where there are such."""
    return tempfile.mkdtemp(prefix='skep-faults-%s-' % what, dir='/dev/shm' if os.access('/dev/shm', os.W_OK) else None)


def words_of(name, folder):
    return [SKEP] + [w.replace('{}', folder, 1) if w.startswith('{}') else w.replace('{}/', folder + '/') for w in COMMANDS[name]]


def environment(faults):
    more = {'LD_PRELOAD': LIBRARY, 'OPENBLAS_NUM_THREADS': '1', 'ASAN_OPTIONS': 'verify_asan_link_order=0:detect_leaks=0'}
    more.update(OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
    # All ranks are on this host: Open MPI need not look for networks, and a rank that waits leaves the core to others.
    more.update(OMPI_MCA_pml='ob1', OMPI_MCA_btl='self,vader', OMPI_MCA_mpi_yield_when_idle='1')
    return {**os.environ, **more, **faults}


def call_whole(name, folder, faults, term_s=None):
    """(status, what was said, what was printed); None for the status: it had to be ended. term_s: SIGTERM after so long."""
    with subprocess.Popen(words_of(name, folder), cwd=ROOT, env=environment(faults), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            if term_s is not None:
                try:
                    process.wait(term_s)
                except subprocess.TimeoutExpired:
                    process.terminate()
            printed, said = process.communicate(timeout=120 if term_s is None else 15)
        except subprocess.TimeoutExpired:
            process.kill()
            return None, '', ''
    return process.returncode, said.decode(errors='replace'), printed.decode(errors='replace')


def call(name, folder, faults):
    return call_whole(name, folder, faults)[:2]


def printed(name, base):
    """What the command prints, and the file that it writes."""
    folder = folder_of('usual')
    shutil.copytree(base, folder, dirs_exist_ok=True)
    said = subprocess.run(words_of(name, folder), cwd=ROOT, env=environment({'LD_PRELOAD': ''}), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    written = open(folder + '/out.yaml').read() if os.path.exists(folder + '/out.yaml') else ''
    shutil.rmtree(folder)
    return said.stdout.decode(), written


def broken_database(path):
    if not os.path.exists(path):
        return None
    try:
        db = sqlite3.connect(path, timeout=5)
        sound = db.execute('PRAGMA integrity_check').fetchone()[0]
        twice = db.execute("SELECT count(*) FROM v_ledger WHERE verdict <> 'kept'").fetchone()[0]
        db.close()
        return None if sound == 'ok' and twice == 0 else 'the database: %s, %d rows not kept' % (sound, twice)
    except sqlite3.Error as error:
        return 'the database: %s' % error


def broken_files(folder):
    if os.path.exists(folder + '/out.yaml') and '\nname:' not in '\n' + open(folder + '/out.yaml').read():
        return 'half a file'
    return broken_database(folder + '/a.db')


def broken_end(status, said, killed):
    if status is None:
        return 'does not end'
    if killed and status in (-9, 137):
        return None
    if status < 0 or status > 2:
        return 'ended with %d: %s' % (status, said[-300:])
    if status and not re.search(r'skep: |error: ', said):
        return 'status %d without a sentence: %s' % (status, said[-300:])
    return None


def goes_on(folder, name='sim'):
    """Why the command does not do what it does without faults, on what they have left; None if it does."""
    status, said = call(name, folder, {'LD_PRELOAD': ''})
    return None if status == 0 else 'then %s: %s %s' % (name, status, said[-300:])


def attempt_slow(name, faults, base):
    """A disk that takes its time changes nothing, and keeps SIGTERM waiting no longer."""
    folder, faults = folder_of('slow'), dict(faults)
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        term_s = float(faults.pop('TERM_S')) if 'TERM_S' in faults else None
        status, said, _ = call_whole(name, folder, faults, term_s)
        if status != 0 and (term_s is None or status not in (-15, 143)):
            return 'ended with %s: %s' % (status, said[-300:])
        return broken_files(folder) or (goes_on(folder) if os.path.exists(folder + '/a.db') else None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attempt(name, faults, killed, base):
    """Why the fault broke the command or what it leaves, or None."""
    folder = folder_of('one')
    try:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        status, said = call(name, folder, faults)
        why = broken_end(status, said, killed) or broken_files(folder)
        if why is None and os.path.exists(folder + '/a.db'):
            why = goes_on(folder)
        return why
    finally:
        shutil.rmtree(folder, ignore_errors=True)
