#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tables.py README.md...: a README whose tables name C files of its folder in their first cells names all of them somewhere in a
table, and none that is not there or in a folder below. A header goes with the source of its name; `plot_*.c` stands for
several, `.c` behind `name.h` for name.c. Prints what is missing or too much."""
import fnmatch
import os
import re
import sys

KINDS = ("c", "h", "cu", "cuh")
SOURCE = re.compile(r"^[^/]+\.(%s)$" % "|".join(KINDS))


def named(text):
    """The files that this part of a table names."""
    found = []
    for word in re.findall(r"`([^`\s]+)`", text):
        if re.fullmatch(r"\.[a-z]+", word) and found:
            word = re.sub(r"\.[a-z]+$", word, found[-1])
        found.append(word)
    return [word for word in found if SOURCE.search(word)]


def wrong(readme):
    folder = os.path.dirname(readme) or "."
    rows = [line for line in open(readme, encoding="utf-8") if line.startswith("|") and line.count("|") > 1]
    first = [name for row in rows for name in named(row.split("|")[1])]
    anywhere = [name for row in rows for name in named(row)]
    below = [name for _, _, names in os.walk(folder) for name in names]
    for name in sorted(filter(SOURCE.search, os.listdir(folder))) if first else []:
        stem = name.rsplit(".", 1)[0]
        pair = [stem + "." + kind for kind in KINDS if os.path.exists(os.path.join(folder, stem + "." + kind))]
        if not any(fnmatch.fnmatch(one, pattern) for one in pair for pattern in anywhere):
            yield "%s: no table names %s" % (readme, name)
    for pattern in first:
        if not any(fnmatch.fnmatch(name, pattern) for name in below):
            yield "%s: a table names %s, which is not there" % (readme, pattern)


if __name__ == "__main__":
    found = [text for path in sys.argv[1:] for text in wrong(path)]
    print("\n".join(found))
    sys.exit(1 if found else 0)
