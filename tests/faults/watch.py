# SPDX-License-Identifier: Apache-2.0
"""Stands beside a process that stands still (watch.h), and looks at its files meanwhile.

Copies: each fault happens in a copy of the process, which shares open files with it. What the copy has done to the files of the
command's folder is judged apart, and undone before the process goes on. What is judged once is not judged again: by all bytes
whether files are whole, by what was said and the sizes of files whether the program goes on. A copy that ends with status 0 must
have printed and written what the command does without a fault, apart from how long it took, or say there what there was no memory for."""

import hashlib
import os
import re
import shutil
import socket
import subprocess

import world


def serve(name, folder, faults, handle):
    """Calls the command; handle(words) answers each line of its processes. Returns (status, what was said)."""
    side = world.folder_of('watch')
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(side + '/door')
    door.listen(64)
    door.settimeout(0.2)
    faults = {**faults, 'FAULTS_WATCH': side + '/door', 'FAULTS_SAID': side + '/copy', 'FAULTS_PRINTED': side + '/copy-printed'}
    with open(side + '/said', 'wb') as said, open(side + '/printed', 'wb') as printed:
        process = subprocess.Popen(world.words_of(name, folder), cwd=world.ROOT, env=world.environment(faults), stdout=printed, stderr=said)
    while True:
        try:
            line, _ = door.accept()
        except socket.timeout:
            if process.poll() is not None:
                break
            continue
        with line:
            line.send(handle(line.recv(1024).decode().split(), side).encode())
    said = open(side + '/said', errors='replace').read()
    door.close()
    shutil.rmtree(side)
    return process.returncode, said


def files_below(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]


class Files:
    """The files of a folder and those of a process that have no name, by bytes; and back."""

    def __init__(self, folder, side):
        self.folder, self.side, self.kept = folder, side, {}
        os.makedirs(side, exist_ok=True)

    def unnamed(self, process):
        at = '/proc/%d/fd' % process
        paths = [os.path.join(at, fd) for fd in os.listdir(at)]
        return [p for p in paths if os.readlink(p).startswith(self.folder) and os.readlink(p).endswith(' (deleted)')]

    def take(self, process):
        self.kept = {}
        for path in files_below(self.folder):
            number = os.stat(path).st_ino
            link = os.path.join(self.side, str(number))
            if not os.path.exists(link):
                os.link(path, link)
            self.kept[path] = (number, open(path, 'rb').read())
        for path in self.unnamed(process):
            self.kept[path] = (None, open(path, 'rb').read())

    def give_back(self):
        for path in files_below(self.folder):
            if path not in self.kept or os.stat(path).st_ino != self.kept[path][0]:
                os.unlink(path)
        for path, (number, content) in self.kept.items():
            if number is not None and not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.link(os.path.join(self.side, str(number)), path)
            with open(path, 'r+b') as file:
                if file.read() != content:
                    file.seek(0)
                    file.write(content)
                    file.truncate()


class Copies:
    """Tries each fault that chosen(fault) says yes to, in a copy; `broke` says which broke it and why, `other` which had no copy."""

    def __init__(self, name, base, killed, chosen):
        self.name, self.base, self.killed, self.chosen = name, base, killed, chosen
        self.broke, self.other, self.tried, self.refused, self.fault, self.process = [], [], 0, 0, None, None
        self.whole, self.going = {}, {}
        self.usual = self.result_of(*world.printed(name, base))

    def all(self, kind, faults):
        self.folder = world.folder_of('copies')
        shutil.copytree(self.base, self.folder, dirs_exist_ok=True)
        try:
            return serve(self.name, self.folder, {**faults, 'FAULTS_COPIES': kind}, self.handle)
        finally:
            shutil.rmtree(self.folder)

    def handle(self, words, side):
        if words[0] == 'try':
            return self.begin(words[1], int(words[2]), side)
        if words[0] == 'other':
            self.other += [words[1]] if self.chosen(words[1]) else []
        elif words[0] == 'ended':
            self.tried += 1
            self.refused += words[1] != '0'
            why = self.judge(int(words[1]), side)
            if why:
                self.broke.append((why, self.fault))
            self.files.give_back()
        return 'n'

    def begin(self, fault, process, side):
        if self.process is None:
            self.process, self.files = process, Files(self.folder, side + '/links')
        if process != self.process or not self.chosen(fault):
            return 'n'
        self.fault = fault
        self.files.take(process)
        return 'y'

    def result_of(self, printed, written):
        return re.sub(r' in [\d.]+ s\b', '', printed), written

    def other_result(self, printed):
        path = self.folder + '/out.yaml'
        printed, written = self.result_of(printed, open(path).read() if os.path.exists(path) else '')
        if not self.usual[0].endswith(printed) and not re.search('(not enough|out of) memory', printed):
            return 'printed: ' + next((p for p, u in zip(printed.splitlines()[::-1], self.usual[0].splitlines()[::-1]) if p != u), 'more')
        if written != self.usual[1] and not re.search('not enough memory', written):
            return 'written: ' + next((p for p, u in zip(written.splitlines(), self.usual[1].splitlines()) if p != u), 'less')
        return None

    def judge(self, status, side):
        said = open(side + '/copy', errors='replace').read()
        why = 'does not end' if status == -14 else world.broken_end(status, said, self.killed)
        if why is None and status == 0:
            why = self.other_result(open(side + '/copy-printed', errors='replace').read())
        left = {p: open(p, 'rb').read() for p in files_below(self.folder) if not p.endswith('-shm')}
        return why or self.judge_files(left, (status, re.sub(r'\d+', '0', said)))

    def judge_files(self, left, end):
        number = hashlib.sha256(repr(sorted((p, hashlib.sha256(b).digest()) for p, b in left.items())).encode()).digest()
        shape = (end, tuple(sorted((re.sub(r'\d+', '0', p), len(b)) for p, b in left.items())))
        if number in self.whole and shape in self.going:
            return self.whole[number] or self.going[shape]
        seen = world.folder_of('seen')
        try:
            for path, content in left.items():
                to = seen + path[len(self.folder):]
                os.makedirs(os.path.dirname(to), exist_ok=True)
                open(to, 'wb').write(content)
            if number not in self.whole:
                self.whole[number] = world.broken_files(seen)
            if self.whole[number] is None and shape not in self.going:
                self.going[shape] = world.goes_on(seen) if os.path.exists(seen + '/a.db') else None
            return self.whole[number] or self.going.get(shape)
        finally:
            shutil.rmtree(seen)
