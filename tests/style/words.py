#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# words.py - finds words that docs/glossary.md gives up, and says what to write instead. Run from the root.
#
# A word of the table is looked for as a whole part of a name: `lap` is found in worker_lap and LAP_MAX, not in overlap. Where
# its last column names folders ("names in core"), only there. `prose` is looked for in comments, READMEs and shipped YAML as well. Exported
# functions without the prefix skep_ are found by the prototypes in headers of the product.
import os
import re
import sys

import tree

GLOSSARY = "docs/glossary.md"
PRODUCT = ("base", "core", "sim", "exec", "models", "topologies", "scenarios", "planning", "commands", "analysis", "sweeping", "asking")
TOKEN = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>\'(?:\\.|[^\'\\\n])+\')|'
                   r"(?P<word>[A-Za-z_][A-Za-z0-9_]*)", re.S)


def table():
    rows, on = [], False
    with open(GLOSSARY, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[:3] == ["not", "but", "where"]:
                on = True
            elif on and line.startswith("|") and len(cells) == 3 and not cells[0].startswith("---"):
                rows.append(cells)
    if not rows:
        print("error: no table of words in", GLOSSARY)
    return rows


class Words:
    def __init__(self, rows):
        self.prose, self.names, self.keys_only = {}, [], set()
        for old, new, where in rows:
            if where == "prose":
                self.prose[old] = new
            if where == "keys":
                self.keys_only.add(old)
            folders = re.findall(r"[a-z]+", where.partition(" in ")[2].replace(" and ", " "))
            self.names.append((old.lower().split("_"), new, tuple(folders)))
        self.in_prose = re.compile(r"\b(" + "|".join(self.prose) + r")\b", re.I) if self.prose else None
        self.first = {parts[0] for parts, _, _ in self.names}

    def in_name(self, name, path, key=False):
        """What to write in place of a part of the name; None if all of it is fine."""
        parts = [part for part in re.split(r"[_.\-]", name.lower()) if part]
        if not self.first.intersection(parts):
            return None
        folder = path.split("/")[0]
        for old, new, folders in self.names:
            if folders and folder not in folders or "_".join(old) in self.keys_only and not key:
                continue
            for at in range(len(parts) - len(old) + 1):
                if parts[at:at + len(old)] == old:
                    return f"`{'_'.join(old)}`: write {new}"
        return None


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def look_at_c(path, text, words):
    seen = set()
    for match in TOKEN.finditer(text):
        kind, token = match.lastgroup, match.group(0)
        if kind == "word" and token not in seen:
            seen.add(token)
            why = words.in_name(token, path)
            if why:
                print(f"names: {path}:{line_of(text, match.start())}: {token}: {why}")
        elif kind in ("comment", "string"):
            look_at_prose(path, token, words, line_of(text, match.start()))


def look_at_prose(path, text, words, line):
    for match in words.in_prose.finditer(text) if words.in_prose else ():
        word = match.group(0)
        print(f"prose: {path}:{line + text.count(chr(10), 0, match.start())}: {word}: write {words.prose[word.lower()]}")


def look_at_keys(path, text, words):
    """Keys of YAML files, and the columns of the database."""
    pattern = r"([A-Za-z_][\w-]*)\s*:(?=\s)" if path.endswith(".yaml") else r"^\s+([a-z_]+) (?:INTEGER|TEXT|REAL|BLOB)\b"
    for match in re.finditer(pattern, re.sub(r"(?m)(#|--).*$", "", text), re.M):
        why = words.in_name(match.group(1), path, True)
        if why:
            print(f"keys: {path}: {match.group(1)}: {why}")


def look_at_prototypes(path, text):
    for match in re.finditer(r"(?m)^(?!static|typedef|#|\s)[A-Za-z_][\w \t]*?[ *]([a-z_]\w*)\((?=[^*])", text):
        if not match.group(1).startswith("skep_"):
            print(f"exported: {path}:{line_of(text, match.start(1))}: {match.group(1)}: exported names begin with skep_")


def main():
    words = Words(table())
    for path in tree.files():
        if path == GLOSSARY or path == "CHANGELOG.md" or path.startswith(("tests/style/words", "tests/bad/renamed-", "tests/data/", "models/text/")):
            continue
        for part in path.split("/"):
            why = words.in_name(os.path.splitext(part)[0], path)
            if why:
                print(f"files: {path}: {why}")
        if not path.endswith((".c", ".h", ".cu", ".cuh", ".md", ".yaml", ".sql")):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        # The table of renamed keys has to name them.
        text = re.sub(r"struct skep_renamed \w+\[\] = \{.*?\n\};", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)
        if path.endswith((".c", ".h", ".cu", ".cuh")):
            look_at_c(path, text, words)
            if path.endswith(".h") and path.split("/")[0] in PRODUCT:
                look_at_prototypes(path, text)
        elif path.endswith(".md"):
            look_at_prose(path, text, words, 1)
        else:
            look_at_keys(path, text, words)
            if not path.startswith("tests/"):
                for number, line in enumerate(text.splitlines(), 1):
                    look_at_prose(path, line, words, number)


if __name__ == "__main__":
    sys.exit(main())
