#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reference.py [PAGE...] - the reference of keys (docs/reference/*.md) against the program. Four things hold:

  * each example is accepted by `skep check` and, where it can be simulated, by `skep sim`;
  * a key that an example shows does something: without it the plan that `skep check` prints, the result of `skep sim`, or the
    exit status is another one. Each documented key is shown in some example in which it does;
  * each key that an example shows is documented, and so is each key that the program says it accepts beside it;
  * each key that the sources of the readers name is documented under some group.

An example begins with a comment that says what it is: `# on SCENARIO` is laid over that scenario; `# a topology, for SCENARIO`,
`# a model, for SCENARIO` and `# a GPU profile, for TOPOLOGY and SCENARIO` are whole files that the scenario is given, `# a file of jobs` is
one for `skep jobs`. Scenarios
are made short here (SHORT), unless the example says otherwise. `# on SCENARIO, refused: WHY` is one that the program refuses. Speaks the Test Anything Protocol."""
import concurrent.futures
import copy
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page  # noqa: E402

SKEP = os.path.abspath(os.environ.get("SKEP", "build/skep"))
SHORT = {
    "train.until.steps": "3",
    "train.arithmetic": "none",
    "train.schedule": "null",
    "schedule.global_batch": "512",
    "cluster.byzantine": "null",
}
# What `skep sim` says of a run that may differ between two equal ones.
OF_THE_RUN = ("run_id", "wall_s", "comparison")
# Keys whose effect neither `skep check` nor `skep sim` can show.
ELSEWHERE = {
    "cluster.threads": "threads of a real worker change its speed and no bit",
    "gpu: name": "what results call the kind of GPU",
    "topology: matrix.names": "what plots call the machines",
    "plan.search.auto": "part of plan.search, which the example has",
    "train.init.select": "one is all that can be kept",
}
# What these read is not described by people: loss models and configurations that programs have written, and data.
OTHER_FILES = ("law.c", "hf_config.c", "safetensors.c")

results = []


def tell(good, name, why=""):
    results.append(good)
    print("%s %d - %s" % ("ok" if good else "not ok", len(results), name))
    for line in why.split("\n")[:12] if why and not good else []:
        print("#   " + line)
    sys.stdout.flush()


# ---- one example ---------------------------------------------------------------------------------------------------------


class Example:
    """kind: scenario, topology, model or gpu; value: the parsed block; base: the scenario that it is tried with."""

    def __init__(self, block):
        self.block, self.value = block, page.parse(block.text)
        first = block.lines[0]
        patterns = (
            ("scenario", r"# on ([^\s,]+)(?:, refused: .*)?"),
            ("topology", r"# a topology, for (\S+)"),
            ("model", r"# a model, for (\S+)"),
            ("gpu", r"# a GPU profile, for (\S+) and (\S+)"),
            ("jobs", r"# a (file) of jobs"),
        )
        matches = [(kind, re.match(pattern + r"\s*$", first)) for kind, pattern in patterns]
        matches = [(kind, match.groups()) for kind, match in matches if match]
        if not matches:
            raise ValueError("the first line of the example says nothing of how it is to be tried: " + first)
        self.kind, names = matches[0]
        self.refused = ", refused: " in first
        self.base, self.topology = names[-1], names[0] if len(names) > 1 else None

    def sets(self, value, scratch):
        """The --set options that lay `value` over the base."""
        if self.kind == "scenario":
            found = dict((".".join(path), page.write(item)) for path, item in leaves(value))
        elif self.kind == "gpu":
            folder = tempfile.mkdtemp(dir=scratch)
            os.mkdir(folder + "/gpus")
            name = re.search(r"gpu: ([\w-]+)", open(self.topology).read())[1]
            write(folder + "/gpus/%s.yaml" % name, value)
            write(folder + "/topology.yaml", page.parse(open(self.topology).read()))
            found = {"cluster.topology": folder + "/topology.yaml"}
        else:
            path = tempfile.mktemp(suffix=".yaml", dir=scratch)
            write(path, value)
            if self.kind == "jobs":
                return {"file": path}
            found = {"cluster.topology" if self.kind == "topology" else "model.file": path}
        given = {"scenario": list(found), "model": ["train.arithmetic"]}.get(self.kind, [])
        if self.kind == "model":
            found["schedule.global_batch"] = "64"
        for key, item in SHORT.items():
            if not any(path == key or path.startswith(key + ".") for path in given):
                found.setdefault(key, item)
        return found

    def paths(self):
        """Each key of the example, as (path in the value, name in the reference)."""
        return list(keys_of(self.value, self.kind))


def leaves(value, path=()):
    if path in (("plan", "search"), ("cluster", "links"), ("cluster", "gpus")) or not (isinstance(value, dict) and value):
        yield path, value
        return
    for key, item in value.items():
        yield from leaves(item, path + (key,))


def keys_of(value, kind, path=(), name=""):
    """Paths of leaves, with their names: [] for any item of a list of maps, NAME for a site."""
    if kind == "scenario":
        yield from ((path, ".".join(path)) for path, _ in leaves(value))
    elif isinstance(value, dict) and value and name != "names[]" and not name.endswith(".set"):
        for key, item in value.items():
            word = "NAME" if name == "sites" else key
            yield from keys_of(item, kind, path + (key,), name + "." + word if name else word)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, item in enumerate(value):
            yield from keys_of(item, kind, path + (index,), name + "[]")
    else:
        yield path, name


def maps_of(value, path=(), name=""):
    """The maps of a value, with their names."""
    if isinstance(value, dict):
        if name != "sites" and not name.endswith(".set"):
            yield path, name
        for key, item in value.items():
            word = "NAME" if name == "sites" else key
            yield from maps_of(item, path + (key,), name + "." + word if name else word)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from maps_of(item, path + (index,), name + "[]")


LINK = "bandwidth|latency|shared|egress|streams|window|loss|mss|overhead|order|jitter|uncertainty"
# Machines and links are described in several places of a topology; the reference has them once.
SAME = (
    (r"^(sites\.NAME\.)?machines\[\](\.|$)", r"machine\2"),
    (r"^peers\.gpus\[\]\.(?!share$)", "machine."),
    (r"^peers\.(?=(gpu|price|pcie|host|inner)(\.|$))", "machine."),
    (r"^(links\[\]|sites\.NAME\.inside|fallback)\.(?=(%s)\b)" % LINK, "link."),
    (r"^(?=(streams|window|loss|mss|overhead|order|jitter)\b)", "link."),
)


# A job is described in a list of them, or as a type.
SAME_JOBS = ((r"^jobs(\.types)?\[\](\.|$)", r"job\2"),)


def reference_name(kind, name):
    for pattern, instead in {"topology": SAME, "jobs": SAME_JOBS}.get(kind, ()):
        name = re.sub(pattern, instead, name, count=1)
    return kind + ": " + name if kind != "scenario" else name


def write(path, value):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("%s: %s\n" % (key, page.write(item)) for key, item in value.items())


def at(value, path):
    for step in path:
        value = value[step]
    return value


def without(value, path):
    value = copy.deepcopy(value)
    del at(value, path[:-1])[path[-1]]
    return value


# ---- the program -----------------------------------------------------------------------------------------------------------


def skep(command, base, sets, scratch, more=()):
    if base == "file":  # of jobs, for which one command is enough
        base, sets, command, more = sets["file"], {}, "jobs", ["--details"]
    arguments = [SKEP, command, base, "--json"]
    if command in ("sim", "jobs"):
        arguments += ["--db", tempfile.mktemp(suffix=".db", dir=scratch)]
    for key, item in sets.items():
        arguments += ["--set", "%s=%s" % (key, item)]
    ran = subprocess.run(arguments + list(more), capture_output=True, text=True, timeout=300)
    return ran.returncode, ran.stdout, ran.stderr


def result(ran):
    """What a run said, without what may differ between two equal ones."""
    if ran[0] != 0:
        return ran[0], ran[2] if ran[0] == 2 else ""
    said = json.loads(ran[1])
    return {key: item for key, item in said.items() if key not in OF_THE_RUN}


class Trial:
    """An example with what the program says of it as it is; what it says without a key is asked later."""

    def __init__(self, example, scratch):
        self.example, self.scratch = example, scratch
        sets = example.sets(example.value, scratch)
        self.checked = skep("check", example.base, sets, scratch)
        self.simulated = skep("sim", example.base, sets, scratch) if self.checked[0] == 0 else self.checked

    def fewer(self, path):
        """The options without this key: a key of a scenario is taken away from its base as well."""
        example = self.example
        if example.kind != "scenario":
            return example.sets(without(example.value, path), self.scratch)
        sets = example.sets(example.value, self.scratch)
        sets[".".join(path)] = "null"
        return sets

    def matters(self, path):
        sets = self.fewer(path)
        checked = skep("check", self.example.base, sets, self.scratch)
        if result(checked) != result(self.checked):
            return True
        return result(skep("sim", self.example.base, sets, self.scratch)) != result(self.simulated)

    def accepted(self, path):
        """The keys that the program accepts in this map, from its answer to one that it does not."""
        example = self.example
        if example.kind == "scenario":
            sets = example.sets(example.value, self.scratch)
            sets[".".join(path + ("no_such_key",))] = "1"
        else:
            value = copy.deepcopy(example.value)
            at(value, path)["no_such_key"] = "1"
            sets = example.sets(value, self.scratch)
        said = re.search(r"unknown key .*accepted here: (.*)", skep("check", example.base, sets, self.scratch)[2])
        return said[1].split(", ") if said else []


# ---- all of them -----------------------------------------------------------------------------------------------------------


def try_example(block, scratch):
    """(block, why it cannot be used or "", names that do something, names that do not, names that are accepted)."""
    example = Example(block)
    trial = Trial(example, scratch)
    for ran in (trial.checked, trial.simulated):
        if ran[0] != (2 if example.refused else 0):
            return block, "exit status %d %s" % (ran[0], ran[2]), set(), set(), set()
    strong, weak, accepted = set(), set(), set()
    for path, name in example.paths():
        if trial.matters(path):
            strong.add(reference_name(example.kind, name))
            strong |= {reference_name(example.kind, name[: end.start()]) for end in re.finditer(r"\[\]|\.", name)}
        else:
            weak.add(reference_name(example.kind, name))
    groups = {path[:end] for path, _ in example.paths() for end in range(len(path))}
    places = dict(maps_of(example.value))
    for path in groups if example.kind == "scenario" else places:
        name = ".".join(path) if example.kind == "scenario" else places[path]
        accepted |= {reference_name(example.kind, name + "." * (name != "") + key) for key in trial.accepted(path)}
    return block, "", strong, weak, accepted


def named_in_sources():
    """Keys in calls of the reader, as FILE: KEY."""
    for path in glob.glob("scenarios/*/*.c") + glob.glob("topologies/*/*.c") + glob.glob("models/*/*.c"):
        if os.path.basename(path) in OTHER_FILES or path.startswith(("topologies/import/", "topologies/churn/")):
            continue
        text = open(path, encoding="utf-8").read()
        for call in re.findall(r"\b(?:skep_read_\w+|read_float|read_part)\(([^;]*?)\)", text, re.S):
            arguments = [part.strip() for part in call.split(",")]
            for part in arguments[2:3]:
                if re.fullmatch(r'"[a-z0-9_]+"', part):
                    yield path, part.strip('"')


def main(pages):
    documented, examples = {}, []
    for name in pages:
        kind = {"topologies": "topology: ", "gpus": "gpu: ", "models": "model: ", "jobs": "jobs: "}.get(os.path.basename(name)[:-3], "")
        documented.update((kind + key, name) for key in page.keys(name))
        examples += [block for block in page.blocks(name) if block.language == "yaml"]
    strong, weak, accepted = set(), set(), set()
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for block, why, does, does_not, known in pool.map(lambda block: try_example(block, scratch), examples):
            tell(not why, "%s does what it says" % block.place, why)
            strong |= does
            weak |= does_not
            accepted |= known
    for key, name in sorted(documented.items()):
        if key in ELSEWHERE:
            shown = any(key == other or key.startswith(other + ".") for other in strong | weak)
            tell(shown, "%s: %s is shown (%s)" % (name, key, ELSEWHERE[key]))
        else:
            tell(key in strong, "%s: %s does something" % (name, key),
                 "an example has it, but without it nothing is different" if key in weak else "no example has it")
    groups = {key[:end.start()] for key in documented for end in re.finditer(r"\.|\[\]", key)}
    missing = sorted((strong | weak | accepted) - set(documented) - groups)
    tell(not missing, "every key that the program accepts is documented", "\n".join(missing))
    words = {word for key in documented for word in re.split(r"[ .:\[\]]+", key)}
    missing = sorted({"%s: %s" % pair for pair in named_in_sources() if pair[1] not in words})
    tell(not missing, "every key that the readers name is documented", "\n".join(missing))
    print("1..%d" % len(results))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or sorted(glob.glob("docs/reference/*.md"))))
