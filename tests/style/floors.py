# SPDX-License-Identifier: Apache-2.0
"""floors.py BUILD: which floors the tree has, by the symbols of its objects.

A folder stands above the folders whose symbols it uses: there is no circle of folders. The folders of core/ and those of base/
count as one each: the parts of core/ need each other, and what base/ has in sub-folders is one floor. Files may need each other in
a circle of FILES_MAX at most. A folder holds code or data, not both, and at most CODE_MAX files of code. Prints one
line for each thing that is not so.
"""

import collections
import json
import os
import subprocess
import sys

import tree

FILES_MAX = 10
CODE_MAX = 25
CODE = (".c", ".h", ".cu", ".cuh")
ONE = ("core", "base")
DATA = (".yaml", ".csv", ".txt", ".json", ".bin")


def objects(build):
    """Source file and object of everything that is compiled for the program."""
    root = os.path.realpath(".")
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as commands:
        for entry in json.load(commands):
            source = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
            compiled = os.path.join(entry["directory"], entry.get("output", ""))
            source = os.path.relpath(source, root)
            made_for_tests = entry.get("output", "").startswith("tests/")
            if not source.startswith(("tests/", "..")) and not made_for_tests and os.path.isfile(compiled):
                yield source, compiled


def links(build):
    """For each source file the other files whose symbols it uses, with one of these symbols."""
    defined, wanted = {}, collections.defaultdict(set)
    source_of = {compiled: source for source, compiled in objects(build)}
    if not source_of:
        return {}
    # One nm for all objects: a process for each takes most of the time.
    table = subprocess.run(["nm", "-A", *source_of], capture_output=True, text=True, check=True).stdout
    for line in table.splitlines():
        compiled, _, symbol = line.partition(":")
        source, words = source_of[compiled], symbol.split()
        if len(words) == 3 and words[1] in "TDBRVWC":
            defined[words[2]] = source
        elif len(words) == 2 and words[0] == "U":
            wanted[source].add(words[1])
    return {
        source: {defined[name]: name for name in sorted(names) if defined.get(name, source) != source}
        for source, names in wanted.items()
    }


def circles(graph):
    """Strongly connected components of two nodes or more (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in list(graph):
        if node not in index:
            visit(node)
    return found


def floor_of(source):
    top = source.split("/")[0]
    return top if top in ONE else os.path.dirname(source)


def wrong_links(build):
    files = links(build)
    if not files:
        yield f"{build} has no objects: build it first"
    folders = collections.defaultdict(dict)
    for source, others in files.items():
        for other, name in others.items():
            if floor_of(source) != floor_of(other):
                folders[floor_of(source)][floor_of(other)] = f"{source} uses {name} of {other}"
    for circle in circles(folders):
        yield "a circle of folders: " + ", ".join(circle)
        for folder in circle:
            yield from (f"  {why}" for other, why in folders[folder].items() if other in circle)
    for circle in circles(files):
        if len(circle) > FILES_MAX:
            yield f"a circle of {len(circle)} files: " + ", ".join(circle)


def wrong_folders():
    code, data = collections.Counter(), collections.Counter()
    for path in tree.files():
        folder = os.path.dirname(path)
        if folder and not folder.startswith(("tests", "docs")):
            code[folder] += path.endswith(CODE)
            data[folder] += path.endswith(DATA)
    for folder in sorted(code):
        if code[folder] > CODE_MAX:
            yield f"{folder}: {code[folder]} files of code, more than {CODE_MAX}"
        if code[folder] > 0 and data[folder] > 0:
            yield f"{folder}: {code[folder]} files of code beside {data[folder]} of data"


def main():
    found = list(wrong_links(sys.argv[1])) + list(wrong_folders())
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
