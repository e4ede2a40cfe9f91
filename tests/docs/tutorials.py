#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tutorials.py [PAGE...] [--without PAGE...] - runs what the tutorials (docs/tutorials/*.md) show, in a copy of the folders that
they use.

A YAML block behind "Write this as `FILE`" is written to that file. Each line `$ COMMAND` of a console block is run and has to
succeed; each word of four letters and more that the block shows as its output has to be in what the command says, so that a
column, a metric or a message that has another name now is found. What check, sim, plan and sweep say is the same on every machine: of
these each line that is shown has to be a line of theirs, digits included, but for the number of a run and how long it took here; `…`
in a line stands for what is left out.

A comment before a block, `<!-- test: with ARGUMENTS -->`, makes its commands cheaper, so that digits are not compared; `<!-- test: words
only, WHY -->` leaves out the digits alone, `<!-- test: not run, WHY -->` the commands.
What needs MPI or gnuplot is skipped without. Speaks the Test Anything Protocol."""
import argparse
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page  # noqa: E402

SKEP = os.path.abspath(os.environ.get("SKEP", "build/skep"))
HAS_MPI = os.environ.get("SKEP_HAS_MPI", "yes") == "yes" and shutil.which("mpirun")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")

count, failed = 0, 0


def tell(good, name, why=""):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", count, name))
    for line in why.split("\n")[:60] if not good else []:
        print("#   " + line)
    sys.stdout.flush()


def commands(block):
    """(command, lines that its output has)"""
    found = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line.strip():
            found[-1][1].append(line)
    return found


def words(lines):
    return set(re.findall(r"[A-Za-z]{4,}", "\n".join(lines)))


def is_same_everywhere(command):
    return re.match(r"(build/)?skep (check|sim|plan|sweep|jobs|(topology|trace) stats) ", command) and "--budget" not in command


def plain(line):
    """Without what is of this machine and this database, and with one blank between words."""
    line = re.sub(r"^(run|sweep) \d+:", r"\1:", line.strip())
    line = re.sub(r"^simulated +in [\d.]+ s:", "simulated:", line)
    return re.sub(r"\s+", " ", line)


def stale(lines, said):
    """The lines of these that are none of what was said."""
    there = [plain(line) for line in said.split("\n")]
    shown = [(line, re.escape(plain(line)).replace("…", ".*")) for line in lines]
    return [line for line, pattern in shown if not any(re.fullmatch(pattern, other) for other in there)]


def lacks(command):
    """What this machine lacks for the command, or None."""
    if not HAS_MPI and re.search(r"mpirun|skep (run|probe|compare|replay|calibrate)", command):
        return "no MPI"
    if "skep plot" in command and not shutil.which("gnuplot"):
        return "no gnuplot"
    return None


def execute(command, folder):
    """A probe that other work on this machine delays too much says so and writes nothing: it is asked again."""
    for _ in range(4):
        ran = subprocess.run(["bash", "-c", command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=300)
        if "skep probe" not in command or ran.returncode != 1 or "bandwidth not known" not in ran.stderr:
            break
    return ran


def run_block(name, block, folder):
    notes = [note[len("test: "):] for note in block.notes if note.startswith("test: ")]
    more = " ".join(note[len("with "):] for note in notes if note.startswith("with "))
    in_words = any(note.startswith("words only") for note in notes)
    if any(note.startswith("not run") for note in notes):
        return
    for command, lines in commands(block):
        lack = lacks(command)
        if lack:
            tell(True, "%s: %s # SKIP %s" % (name, command.replace("#", ""), lack))
            continue
        cheaper = more and re.search(r"skep (sim|run|sweep|probe)", command)
        if cheaper:
            command += " " + more
        ran = execute(command, folder)
        said = ran.stdout + ran.stderr
        missing = sorted(words(lines) - words([said]))
        missing += stale(lines, said) if is_same_everywhere(command) and not cheaper and not in_words else []
        why = "exit status %d\n%s" % (ran.returncode, said) if ran.returncode else "not in what it says:\n" + "\n".join(missing) + "\n---\n" + said
        tell(ran.returncode == 0 and not missing, "%s: %s" % (name, command), why)


def written(path, block):
    """The file that the text before a YAML block says to write, or None."""
    before = open(path, encoding="utf-8").read().split("\n")[: block.line - 2]
    while before and not before[-1]:
        before.pop()
    paragraph = []
    while before and before[-1]:
        paragraph.insert(0, before.pop())
    match = re.search(r"Write this as `([\w.-]+)`", " ".join(paragraph))
    return match and match[1]


def follow(path):
    with tempfile.TemporaryDirectory() as folder:
        for needed in ("scenarios", "topologies", "models"):
            shutil.copytree(needed, os.path.join(folder, needed))
        os.mkdir(folder + "/build")
        os.symlink(SKEP, folder + "/build/skep")
        for block in page.blocks(path):
            if block.language == "yaml":
                file = written(path, block)
                tell(bool(file), "%s says where to write its YAML" % block.place)
                if file:
                    with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                        out.write(block.text)
            elif block.language == "console":
                run_block(os.path.basename(path), block, folder)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("pages", nargs="*")
    arguments.add_argument("--without", nargs="+", default=[])
    asked = arguments.parse_args()
    for tutorial in asked.pages or sorted(set(glob.glob("docs/tutorials/*.md")) - set(asked.without)):
        follow(tutorial)
    print("1..%d" % count)
    sys.exit(1 if failed else 0)
