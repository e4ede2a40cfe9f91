#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same.py OLD_TREE OLD_BUILD NEW_TREE NEW_BUILD - does the new code do what the old code did, bit by bit?

Runs every scenario that OLD_TREE ships, variants of some, its stories and some seeds of chaos with the programs of both builds,
each in its own tree with its own files, and compares all that they say: the digest, the JSON, each row of the database (losses,
times, operations, notes), each transcript. One line for each case; exit status 1 if one differs.

    --only PATTERN   those cases whose name contains it; may be given several times
    --list           name the cases
    --no-digest      leave out digests: for a change of what is hashed
    --jobs N         so many at a time (default: one per core)
    --keep FOLDER    write what was compared there: NAME.old and NAME.new, for diff

What the old build said is kept in OLD_BUILD/same, and taken from there as long as program, tree and this file are the same.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

# ---- names that have changed since ----------------------------------------------------------------------------------

# Old name: new name. None: there is no such thing any more.
RENAMED_KEYS = {
    "cluster.trace.heard_after": "cluster.trace.detection_delay",
    "cluster.byzantine.lie": "cluster.byzantine.attack",
    "schedule.patience": "schedule.reissue_timeout",
    "schedule.chunks": "schedule.model_chunks",
    "sync.mean": "sync.mean_inner_steps",
    "sync.parts": "sync.group_size",
    "train.maths": "train.arithmetic",
    "train.schedule.least": "train.schedule.min_ratio",
    "train.init.keep": "train.init.select",
}  # of scenarios, as in --set: "train.until.steps": "train.stop.steps", also of whole groups
RENAMED_OPTIONS = {"--keep": "--write-checkpoints"}  # of commands
RENAMED_FIELDS = {
    "lives": "incarnations",
    "lives.born_s": "incarnations.started_s",
    "runs.maths": "runs.arithmetic",
    "runs.slices": "runs.vstages",
    "lie": "attack",
    "parts": "group_size",
}  # of JSON; columns and tables of the database, which are "TABLE" or "TABLE.COLUMN"
RENAMED_VALUES = {
    "moved": "migrated",
    "merged": "outer_updated",
    "unkept": "checkpoint_failed",
    "candidate_out": "candidate_dropped",
    "candidate_kept": "candidate_chosen",
    "take": "copy_grad",
    "give": "copy_result",
    "fold": "add_to_result",
    "keep": "init_result",
    "offer": "pack_part",
    "collect": "unpack_part",
    "inner": "inner_step",
    "pseudo": "pseudo_grad",
    "tie_give": "copy_tied",
    "tie_take": "store_tied",
}  # of text in either: kinds of notes, names of traffic
RENAMED_FILES = {
    f"tests/cluster/stories/{old}.txt": f"tests/cluster/stories/{new}.txt"
    for old, new in {
        "candidate-out": "candidate-dropped",
        "founded-anew": "stage-restored",
        "founded-from-checkpoint": "stage-restored-from-checkpoint",
        "nobody-comes": "no-worker-joins",
        "patience-queue": "reissue-queue",
        "patience-silence": "reissue-silence",
        "patience-trainer": "reissue-trainer",
        "promise-kept": "eager-all-reduce",
        "promise-off": "eager-cancelled",
    }.items()
}  # scenarios and stories, by their paths in the tree
RENAMED_WORDS = [
    *((rf"\b(has done|begins|drops) {old}\b", rf"\1 {new}")
      for old, new in {"take": "copy_grad", "give": "copy_result", "fold": "add_to_result", "keep": "init_result",
                       "offer": "pack_part", "collect": "unpack_part", "inner": "inner_step", "pseudo": "pseudo_grad",
                       "tie_give": "copy_tied", "tie_take": "store_tied"}.items()),
    *((rf"\b{old}\b +", f"{new:<9} ")
      for old, new in {"TURN": "DRAIN", "PASSED": "FORWARDS_DONE", "BACK": "BARRIER_LIFTED", "TAKEN": "CHUNK_ACK",
                       "KEEP": "CHECKPOINT", "UNKEPT": "CHECKPOINT_FAILED", "MERGE": "OUTER_UPDATE",
                       "SETTLE": "CLOSE_ROUND", "WHO": "LIST_PEERS"}.items()),
]  # in transcripts: (regular expression, replacement), in this order
ADDED_FIELDS = set()  # which only the new code has

# ---- what is not compared -------------------------------------------------------------------------------------------

# The number of a run, clocks of the host, and which code ran where.
LEFT_OUT = {"run_id", "wall_s", "cpu_s", "done_per_s", "peak_MiB", "load", "cores", "processor", "compiler", "version"}
LEFT_OUT_TABLES = {"sqlite_sequence", "sources"}  # the second: the files as they were read, each tree's own
LEFT_OUT_COLUMNS = {
    *("runs." + name for name in ("version", "host", "pid", "started", "path", "text", "wall_s")),
    *("sweeps." + name for name in ("version", "started", "path", "identity")),
    "sweep_runs.identity",  # of the code as well
}

# ---- cases ----------------------------------------------------------------------------------------------------------

NONE = "train.maths=none"
STEPS = "train.until.steps="
WARM = "train.schedule.warmup=1"
# Shipped scenarios that take long in full: what they are run with instead. Where the arithmetic is what takes long, they are run
# in full without it as well.
REDUCED = {
    "scenarios/async.yaml": [[STEPS + "40"], [NONE]],
    "scenarios/bench-executor.yaml": [[STEPS + "1"], [NONE]],
    "scenarios/byzantine.yaml": [[STEPS + "100"]],
    "scenarios/diloco-sweep-1m.yaml": [[STEPS + "4", WARM, "sync.every=2", "train.validate.microbatches=4"], [NONE]],
    "scenarios/diloco-sweep.yaml": [[STEPS + "40", WARM], [NONE]],
    "scenarios/diloco-by-stage.yaml": [[STEPS + "30", WARM], [NONE]],
    "scenarios/diloco-periods.yaml": [[STEPS + "30", WARM], [NONE]],
    "scenarios/diloco.yaml": [[STEPS + "30", WARM], [NONE]],
    "scenarios/plan-1024.yaml": [[STEPS + "4"]],
    "scenarios/gossip.yaml": [[STEPS + "40"], [NONE]],
    "scenarios/rebalancing.yaml": [[STEPS + "200"]],
    "scenarios/resnet.yaml": [[STEPS + "8", WARM], [NONE, "train.validate=null"]],
    "scenarios/shakespeare.yaml": [[STEPS + "16", WARM], [NONE]],
    "scenarios/swarm-400-t4.yaml": [[STEPS + "60"]],
    "scenarios/swarm-64-learns.yaml": [[STEPS + "2", WARM], [NONE, STEPS + "100"]],
    "scenarios/three-spot.yaml": [[STEPS + "16", WARM], [NONE, "train.target_loss=null"]],
    "scenarios/to-a-target-diloco.yaml": [[STEPS + "30", WARM]],
    "scenarios/to-a-target.yaml": [[STEPS + "30", WARM]],
}

TWO = "scenarios/two-datacentres.yaml"
DIRECT = [STEPS + "20"]
# What no shipped scenario does.
VARIANTS = {
    "no arithmetic": [STEPS + "50", NONE],
    "wiring throughput": [*DIRECT, "schedule.wiring=throughput"],
    "wiring latency": [*DIRECT, "schedule.wiring=latency"],
    "routing": [*DIRECT, "schedule.routing=trainer"],
    "fp16": [*DIRECT, "schedule.compression=fp16", "sync.compression=fp16"],
    "int8": [*DIRECT, "schedule.compression=int8", "sync.compression=int8"],
    "e3m0": [*DIRECT, "sync.compression=e3m0"],
    "periodic": [*DIRECT, "sync.method=diloco", "sync.every=4"],
    "periodic by share, delayed": [*DIRECT, "sync.method=diloco", "sync.every=auto", "sync.mean=4", "sync.delayed=true",
                                   "schedule.wiring=throughput"],
    "all-to-all, trimmed": [*DIRECT, "model.stages=2", "sync.collective=all-to-all", "sync.aggregate=trimmed-mean"],
    "butterfly, zeno": [*DIRECT, "model.stages=2", "sync.collective=butterfly", "sync.aggregate=zeno"],
    **{name: [*DIRECT, "model.stages=2", "sync.collective=" + name]
       for name in ("parameter-server", "reduce-broadcast", "halving-doubling", "tree", "hierarchical")},
    "recomputed": [*DIRECT, "schedule.checkpoint_activations=true"],
    "another network": [*DIRECT, "cluster.topology=topologies/two-datacentres-wan.yaml"],
    "flows": [*DIRECT, "cluster.topology=topologies/two-datacentres-wan.yaml", NONE, "simulate.collectives=flows"],
    "random allocation": [*DIRECT, "cluster.allocation.method=random"],
    "products by table": [STEPS + "5", NONE, "cluster.compute={predictor: table, type: fp16}"],
    "products by formula": [STEPS + "5", NONE, "cluster.compute={predictor: analytic, type: fp16}"],
}
OTHERS = [
    ("scenarios/baselines/gpipe.yaml", "barrier", [STEPS + "10", "schedule.barrier=true"]),
    ("scenarios/baselines/gpipe.yaml", "recomputed", [STEPS + "10", "schedule.checkpoint_activations=true"]),
    ("scenarios/opt-350m.yaml", "laws of layers", ["cluster.compute={predictor: regression}"]),
]
PLANS = [  # scenario, options
    ("scenarios/two-datacentres.yaml", []),
    ("scenarios/preempted.yaml", []),
    ("scenarios/opt-350m.yaml", []),
    ("scenarios/churn.yaml", []),
    ("scenarios/t4-a100-both.yaml", []),
    ("scenarios/two-datacentres.yaml", ["--confirm", "2", "--set", NONE, "--pareto", "--set",
                                        "plan.search={schedule.microbatch: [16, 64, 256], schedule.wiring: [uniform, latency]}"]),
    ("scenarios/plan-world.yaml", ["--set", "plan.search={schedule.microbatch: [2]}"]),
]
SWEEPS = [
    ("scenarios/two-datacentres.yaml", ["--vary", "schedule.microbatch=32,64", "--vary", "schedule.wiring=uniform,latency",
                                        "--seeds", "1,2", "--set", STEPS + "5"]),
    ("scenarios/square-cube.yaml", ["--vary", "model.file=models/square-cube-768.yaml,models/square-cube-12288.yaml"]),
]
CHAOS = {
    "swarms": ["--seeds", "1..600"],
    "fixed pipelines": ["--fixed", "--seeds", "1..300"],
    "periodic sync": ["--periodic", "--seeds", "1..300"],
    "without waiting": ["--async", "--seeds", "1..150"],
    "candidates": ["--trial", "--seeds", "1..60"],
    "resumed": ["--resumed", "--seeds", "1..300"],
    "resumed pipelines": ["--resumed", "--fixed", "--seeds", "1..100"],
}
# Begun first, lest one of them be left alone at the end.
LONG = ["plan plan-world", "sim swarm-64", "sim bench-executor", "sim diloco-sweep-1m", "sim plan-1024", "sim swarm-400",
        "sim shakespeare", "sim to-a", "sim three-spot", "sim async"]


class Failed(Exception):
    """A program that did not do its work."""


class Side:
    """One tree with its build. What it is asked is in old names."""

    def __init__(self, tree, build, new):
        self.tree, self.new = pathlib.Path(tree).resolve(), new
        self.build = pathlib.Path(build).resolve()

    def program(self, name):
        for folder in (self.build, self.build / "tests"):
            if os.access(folder / name, os.X_OK) and (folder / name).is_file():
                return str(folder / name)
        raise Failed(f"there is no {name} in {self.build}")

    def path(self, old):
        return (RENAMED_FILES.get(old, old) if self.new else old)

    def words(self, arguments):
        """Options and the keys of --set and --vary, in this side's names."""
        if not self.new:
            return list(arguments)
        words = []
        for word in arguments:
            for old, renamed in RENAMED_KEYS.items():
                word = re.sub(rf"^{re.escape(old)}(?=[.=])|(?<=[{{, ]){re.escape(old)}(?=:)", renamed, word)
            words.append(RENAMED_OPTIONS.get(word, word))
        return words

    def run(self, name, *arguments):
        """What the program prints."""
        done = subprocess.run([self.program(name), *self.words(arguments)], cwd=self.tree, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=900, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
        if done.returncode != 0:
            raise Failed(f"{name} {' '.join(arguments)}: exit status {done.returncode}: {done.stderr.strip()[:300]}")
        return done.stdout


# ---- what was said, as lines that can be compared -------------------------------------------------------------------

def renamed(side, name, table=RENAMED_FIELDS):
    return name if side.new else table.get(name, name)


def value(side, it):
    """A number by its value, however it was written."""
    if isinstance(it, float) and it.is_integer() and abs(it) < 2**53 and (it or str(it) == "0.0"):
        return str(int(it))
    if isinstance(it, str):
        return json.dumps(renamed(side, it, RENAMED_VALUES))
    return repr(it)


def json_lines(side, options, it, where):
    if isinstance(it, dict):
        fields = {renamed(side, key): part for key, part in it.items()}
        for key in sorted(key for key in fields if key is not None):
            if key in LEFT_OUT or key in ADDED_FIELDS or (key == "digest" and options.no_digest):
                continue
            yield from json_lines(side, options, fields[key], f"{where}.{key}")
    elif isinstance(it, list):
        for number, part in enumerate(it):
            yield from json_lines(side, options, part, f"{where}[{number}]")
    else:
        yield f"{where}: {value(side, it)}"


def table_lines(side, options, database, table):
    """A line for each row, in the order of the table."""
    columns = {}
    for (old,) in database.execute(f"SELECT name FROM pragma_table_info('{table}')"):
        whole = f"{table}.{old}"
        name = renamed(side, whole)
        left_out = LEFT_OUT_COLUMNS | ADDED_FIELDS | ({f"{table}.digest"} if options.no_digest else set())
        if name is not None and whole not in left_out and name not in left_out:
            columns[name.split(".")[-1]] = old
    names = sorted(columns)
    where = f"database.{renamed(side, table)}"
    yield f"{where} has: {' '.join(names)}"
    query = f"SELECT {', '.join(columns[name] for name in names)} FROM {table}"
    for number, row in enumerate(database.execute(query)):
        if RENAMED_VALUES and not side.new:
            row = tuple(RENAMED_VALUES.get(cell, cell) if isinstance(cell, str) else cell for cell in row)
        yield f"{where}[{number}]: {row}"


def database_lines(side, options, path):
    with sqlite3.connect(path) as database:
        tables = {}
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            name = renamed(side, table)
            if name is not None and table not in LEFT_OUT_TABLES and name not in ADDED_FIELDS:
                tables[name] = table
        for name in sorted(tables):
            yield from table_lines(side, options, database, tables[name])


def transcript_lines(side, options, text):
    if options.no_digest:
        text = re.sub(r"\bdigest [0-9a-f]{16}\b", "digest", text)
    for pattern, replacement in [] if side.new else RENAMED_WORDS:
        text = re.sub(pattern, replacement, text)
    yield from text.splitlines()


# ---- kinds of cases: each makes lines -------------------------------------------------------------------------------

def settings(keys):
    return [word for key in keys for word in ("--set", key)]


def command(name, scenario, *arguments, database=False):
    """A command of skep that prints JSON, and may fill a database."""
    def lines(side, options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "skep.db")
            words = [name, *([side.path(scenario)] if scenario else []), *arguments, "--json", "-q"]
            said = side.run("skep", *words, *(["--db", path] if database else []))
            yield from json_lines(side, options, json.loads(said), "json")
            if database:
                yield from database_lines(side, options, path)
    return lines


def story(path):
    def lines(side, options):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "story.txt"
            copy.write_bytes((side.tree / side.path(path)).read_bytes())
            side.run("story", "--rewrite", str(copy))
            yield from transcript_lines(side, options, copy.read_text(encoding="utf-8").split("\n----\n", 1)[1])
    return lines


def chaos(arguments):
    return lambda side, options: transcript_lines(side, options, side.run("chaos", *arguments, "--jobs", "1"))


def scenarios_of(tree):
    for path in sorted((tree / "scenarios").rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if re.search(r"^cluster:", text, re.MULTILINE) and not re.search(r"^jobs:", text, re.MULTILINE):  # skep jobs has those
            yield path.relative_to(tree).as_posix()


def all_cases(tree):
    """(name, function that makes lines) of all that the tree ships."""
    for scenario in scenarios_of(tree):
        short = scenario.removeprefix("scenarios/").removesuffix(".yaml")
        yield f"check {short}", command("check", scenario)
        for keys in REDUCED.get(scenario, [[]]):
            name = f"sim {short}" + "".join(f", {key.removeprefix('train.')}" for key in keys)
            yield name, command("sim", scenario, *settings(keys), "--threads", "1", database=True)
    for scenario, name, keys in [(TWO, name, keys) for name, keys in VARIANTS.items()] + OTHERS:
        short = scenario.removeprefix("scenarios/").removesuffix(".yaml")
        yield f"sim {short}, {name}", command("sim", scenario, *settings(keys), "--threads", "1", database=True)
    for number, (scenario, words) in enumerate(PLANS):
        short = scenario.removeprefix("scenarios/").removesuffix(".yaml")
        yield f"plan {short}, {number}", command("plan", scenario, *words, "--jobs", "1")
    for number, (scenario, words) in enumerate(SWEEPS):
        short = scenario.removeprefix("scenarios/").removesuffix(".yaml")
        yield f"sweep {short}, {number}", command("sweep", scenario, *words, "--details", "--jobs", "1", database=True)
    yield "bench", command("bench", None, "small")
    for path in sorted((tree / "tests/cluster/stories").glob("*.txt")):
        yield f"story {path.stem}", story(path.relative_to(tree).as_posix())
    for name, arguments in CHAOS.items():
        yield f"chaos of {name}", chaos(arguments)


# ---- comparison -----------------------------------------------------------------------------------------------------

def checksum_of(side):
    """Of all that what the old side says can depend on."""
    total = hashlib.sha256(pathlib.Path(__file__).read_bytes())
    files = [pathlib.Path(side.program(name)) for name in ("skep", "story", "chaos")]
    for folder in ("scenarios", "models", "topologies", "tests/cluster/stories"):
        files += [path for path in sorted((side.tree / folder).rglob("*")) if path.is_file() and path.suffix not in (".c", ".h")]
    for path in files:
        total.update(str(path).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]


def said(side, options, name, lines, store):
    kept = store and store / (re.sub(r"[^A-Za-z0-9]+", "-", name) + (".no-digest" if options.no_digest else ""))
    if kept and kept.exists():
        return kept.read_text(encoding="utf-8")
    text = "\n".join(lines(side, options)) + "\n"
    if kept:
        whole = kept.with_name(f"{kept.name}.{threading.get_ident()}.part")
        whole.write_text(text, encoding="utf-8")
        whole.replace(kept)
    return text


def first_difference(old, new):
    """The first line that differs, and of a row the columns."""
    header = {}
    old, new = old.splitlines(), new.splitlines()
    for number in range(max(len(old), len(new))):
        was, now = (lines[number] if number < len(lines) else "(nothing)" for lines in (old, new))
        if " has: " in was:
            where, names = was.split(" has: ")
            header[where] = names.split()
        if was == now:
            continue
        row = re.match(r"(database\.\w+)\[\d+\]: (\(.*\))$", was)
        if row and now.startswith(was.split(":")[0] + ":"):
            pairs = zip(header[row[1]], *(eval(line.split(": ", 1)[1], {"inf": float("inf"), "nan": float("nan")}) for line in (was, now)))
            differing = [f"{name}: {a!r}, now {b!r}" for name, a, b in pairs if repr(a) != repr(b)]
            return f"{was.split(':')[0]} {'; '.join(differing)}"
        where = was.split(": ")[0] + ": "
        return f"{was[:200]}, now {now.removeprefix(where)[:200]}"
    return "no line"


def compare(case, old, new, options, store):
    name, lines = case
    began = time.monotonic()
    try:
        was, now = said(old, options, name, lines, store), said(new, options, name, lines, None)
    except (Failed, OSError, ValueError, sqlite3.Error, subprocess.TimeoutExpired) as error:
        return name, f"broken: {error}", time.monotonic() - began
    if options.keep:
        for text, end in ((was, "old"), (now, "new")):
            (options.keep / f"{name.replace('/', '-').replace(' ', '-')}.{end}").write_text(text, encoding="utf-8")
    return name, None if was == now else first_difference(was, now), time.monotonic() - began


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("old_tree", "old_build", "new_tree", "new_build"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-digest", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path)
    return parser.parse_args()


def main():
    options = read_options()
    old, new = Side(options.old_tree, options.old_build, False), Side(options.new_tree, options.new_build, True)
    cases = [case for case in all_cases(old.tree) if not options.only or any(part in case[0] for part in options.only)]
    if options.list:
        print("\n".join(name for name, _ in cases))
        return 0
    try:
        store = old.build / "same" / checksum_of(old)
        new.program("skep")
    except (Failed, OSError) as error:
        sys.exit(f"same.py: {error}")
    for folder in filter(None, (store, options.keep)):
        folder.mkdir(parents=True, exist_ok=True)
    cases.sort(key=lambda case: not case[0].startswith(tuple(LONG)))
    different = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(compare, case, old, new, options, store) for case in cases]):
            name, difference, seconds = done.result()
            different += difference is not None
            print(f"{'same     ' if difference is None else 'DIFFERENT'} {seconds:6.1f} s  {name}" +
                  (f"\n          {difference}" if difference else ""), flush=True)
    for path in sorted(set(scenarios_of(new.tree)) - {new.path(path) for path in scenarios_of(old.tree)}):
        print(f"new, with nothing to compare: {path}")
    print(f"{len(cases)} compared, {different} different")
    return 1 if different or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
