# SPDX-License-Identifier: Apache-2.0
"""What a crash of the machine leaves of a folder. The process stands still behind each rename, link, removal and fsync() (watch.h), and
what the disk may hold then is thought out: of a file what was there at its last fsync(), half of what came since, or all; of the names
in a folder those of its last fsync(), and any of these: all changes since, none, all but the last, the last alone, all but the first. A rename is
one change. Folders themselves stay. Each such state is then given to the command that goes on with it. Where a kept state and its name were
on the disk before the crash, there is one to go on from."""

import hashlib
import os
import shutil

import watch
import world

# What goes on where the command was.
ON = {'sim': 'sim', 'confirm': 'confirm', 'keeping': 'resuming', 'running': 'running on', 'exporting': 'exporting'}


class Crashes:
    def __init__(self, name, base):
        self.name, self.base, self.events = name, base, 0
        self.names, self.durable_names, self.pending = {}, {}, []  # path: inode; the changes of names in order
        self.durable = {}  # inode: bytes
        self.states = {}  # by a sum of the state: path: bytes
        self.owing = set()  # of these: those before which a kept state was on the disk

    def collect(self):
        """Calls the command, and returns how it ended."""
        self.folder = world.folder_of('crashes')
        shutil.copytree(self.base, self.folder, dirs_exist_ok=True)
        self.names = self.scan()
        self.durable_names = dict(self.names)
        self.durable = {number: self.bytes_of(path) for path, number in self.names.items()}
        try:
            end = watch.serve(self.name, self.folder, {'FAULTS_CRASHES': '1'}, self.handle)
            self.written = {path: self.bytes_of(path) for path in self.scan() if path == '/out.yaml' or path.startswith('/weights/')}
            self.usual = self.losses(world.call_whole(ON[self.name], self.folder, {'LD_PRELOAD': ''})[2])
            return end
        finally:
            shutil.rmtree(self.folder)

    def scan(self):
        found = {}
        for path in watch.files_below(self.folder):
            try:
                if not path.endswith('-shm'):
                    found[path[len(self.folder):]] = os.stat(path).st_ino
            except FileNotFoundError:
                pass
        return found

    def bytes_of(self, path):
        try:
            with open(self.folder + path, 'rb') as file:
                return file.read()
        except FileNotFoundError:
            return b''

    def handle(self, words, side):
        now = self.scan()
        change = {path: now.get(path) for path in {**self.names, **now} if now.get(path) != self.names.get(path)}
        self.names = now
        self.pending += [change] if change else []
        self.events += 1
        self.add_states()
        if int(words[2]) >= 0:
            self.settle('/proc/%s/fd/%s' % (words[1], words[2]))
        return 'n'

    def settle(self, opened):
        try:
            if not os.path.isdir(opened):
                self.durable[os.stat(opened).st_ino] = open(opened, 'rb').read()
                return
            folder = os.readlink(opened)[len(self.folder):] or '/'
        except FileNotFoundError:
            return
        for change in self.pending:
            for path in [p for p in change if os.path.dirname(p) == folder]:
                self.durable_names[path] = change.pop(path)
        self.pending = [change for change in self.pending if change]

    def add_states(self):
        content = {number: self.bytes_of(path) for path, number in self.names.items()}
        owes = any(path.endswith('.kept') and number and self.durable.get(number) and self.durable[number] == content.get(number, self.durable[number])
                   for path, number in self.durable_names.items())
        of = self.pending
        for changes in (of, [], of[:-1], of[-1:], of[1:]):
            names = dict(self.durable_names)
            for change in changes:
                names.update(change)
            for keeps in (lambda old, new: old, lambda old, new: new[:(len(old) + len(new)) // 2], lambda old, new: new):
                state = {}
                for path, number in names.items():
                    if number is not None:
                        old = self.durable.get(number, b'')
                        new = content.get(number, old)
                        state[path] = new if new == old else keeps(old, new)
                key = hashlib.sha256(repr(sorted((p, hashlib.sha256(b).digest()) for p, b in state.items())).encode()).digest()
                self.states.setdefault(key, state)
                if owes:
                    self.owing.add(key)

    def losses(self, printed):
        return [line for line in printed.splitlines() if 'final loss' in line]

    def judge(self, key):
        """(why it is broken or None, what was said)"""
        state = self.states[key]
        folder = world.folder_of('state')
        try:
            for path, content in state.items():
                os.makedirs(os.path.dirname(folder + path), exist_ok=True)
                open(folder + path, 'wb').write(content)
            half = [path for path in self.written if state.get(path, self.written[path]) != self.written[path]]
            why = 'half a file: %s' % half if half else world.broken_files(folder)
            status, said, printed = world.call_whole(ON[self.name], folder, {'LD_PRELOAD': ''})
            why = why or world.broken_end(status, said, False)
            if why is None and status != 0 and key in self.owing and 'has no checkpoint' in said:
                why = 'lost the state that was kept: %s' % said[-300:]
            if why is None and status == 0 and self.losses(printed) != self.usual:
                why = 'goes on to another result: %s' % self.losses(printed)
            return why or world.broken_files(folder), (status, said)
        finally:
            shutil.rmtree(folder)
