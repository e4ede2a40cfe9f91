#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that prose gives and the tree does not have, one a line, behind the kind and the file:

    file      NAME.c or NAME.h in a page, or in a comment
    message   a word in capitals in docs/protocol.md that ends no SKEP_ name
    field     plan->NAME in docs/protocol.md that core/plan.h lacks

Files of others are in OTHERS; a name with NAME in it stands for several.
"""
import re

import tree

OTHERS = {"llm.c", "sysexits.h", "version.h", "xla/service/gpu/model/matmul_interpolator_data.h"}
HISTORY = {"CHANGELOG.md", "docs/glossary.md"}  # which name what was

files = tree.files()
tails = {"/".join(path.split("/")[n:]) for path in files for n in range(path.count("/") + 1)}


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


def prose(path):
    text = read(path)
    return text if path.endswith(".md") else "\n".join(re.findall(r"/\*.*?\*/", text, re.S))


for path in files:
    if not path.endswith((".md", ".c", ".h", ".cu")) or path in HISTORY:
        continue
    for name in sorted(set(re.findall(r"(?<![\w/.<-])((?:[\w-]+/)*[\w-]+\.[ch])(?!\w)", prose(path)))):
        if name not in tails and name not in OTHERS and "NAME" not in name:
            print("file", path, name)

names = re.findall(r"\bSKEP_([A-Z0-9_]+)", "".join(read(path) for path in files if path.endswith((".c", ".h"))))
ends = {name.split("_", n)[-1] for name in set(names) for n in range(name.count("_") + 1)}
protocol = read("docs/protocol.md")
for word in sorted(set(re.findall(r"\b[A-Z][A-Z_]{3,}\b", protocol))):
    if re.sub("^SKEP_", "", word) not in ends:
        print("message", "docs/protocol.md", word)
plan = read("core/plan.h")
for field in sorted(set(re.findall(r"\bplan->(\w+(?:\.\w+)?)", protocol))):
    if not all(re.search(r"\b%s\b" % part, plan) for part in field.split(".")):
        print("field", "docs/protocol.md", "plan->" + field)
