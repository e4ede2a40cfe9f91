#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tables.py README.md...: what a README of a folder says of its files is so. Each C file that a table names in its first cell or
under "begin with" is there, in the folder, below, or by its path from
the root; a page with a table of folders names each
folder one step down that git knows.
Files are not listed one by one: their heads say what they are. Prints what is missing or too much."""
import fnmatch
import glob
import os
import re
import sys

import tree

SOURCE = re.compile(r"\.(c|h|cu|cuh)$")


def named(text):
    """The source files that this part of a table names; `.c` behind `name.h` is name.c."""
    found = []
    for word in re.findall(r"[`\[]([^`\]\s]+)[`\]]", text):
        if re.fullmatch(r"\.[a-z]+", word) and found:
            word = re.sub(r"\.[a-z]+$", word, found[-1])
        found.append(word)
    return [word for word in found if SOURCE.search(word)]


def folders_below(folder):
    """Folders one step down with files of the project; where it has none at all, as when this is tested, all of them."""
    paths = [os.path.relpath(path, folder) for path in tree.files(folder)]
    return sorted({path.split("/")[0] for path in paths if "/" in path and not path.startswith(".")})


def wrong(readme):
    folder = os.path.dirname(readme) or "."
    text = open(readme, encoding="utf-8").read()
    rows = [line.split("|") for line in text.split("\n") if line.startswith("|") and line.count("|") > 2]
    below = [os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names]
    for row in rows:
        for pattern in named(row[1]) + named(row[-2] if len(row) > 4 else ""):
            if not glob.glob(pattern) and not any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(os.path.basename(name), pattern) for name in below):
                yield "%s: a table names %s, which is not there" % (readme, pattern)
    for name in folders_below(folder) if re.search(r"^\| folder (or file )?\|", text, re.M) else []:
        if not re.search(r"\b%s/" % re.escape(name), text):
            yield "%s: says nothing of the folder %s/" % (readme, name)


if __name__ == "__main__":
    found = [text for path in sys.argv[1:] for text in wrong(path)]
    print("\n".join(found))
    sys.exit(1 if found else 0)
