#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""links.py FILE.md...: every link to a file of the tree leads to one, and every #anchor to a heading of it, written as web pages
of repositories write them: small letters, blanks as hyphens, no other punctuation. Links elsewhere are not followed. Prints
FILE:LINE of each that leads nowhere."""
import os
import re
import sys

LINK = re.compile(r"\]\(([^()\s]+)\)")


def anchors(path):
    found, seen = set(), {}
    for line in open(path, encoding="utf-8"):
        heading = re.match(r"#{1,6} +(.*)", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1].strip()).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        found.add("%s-%d" % (slug, seen[slug]) if seen[slug] else slug)
    return found


def astray(path):
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        if line.startswith("    "):
            continue
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(to):
                yield "%s:%d: %s: there is no such file" % (path, number, target)
            elif anchor and anchor not in anchors(to):
                yield "%s:%d: %s: there is no such heading" % (path, number, target)


if __name__ == "__main__":
    wrong = [text for path in sys.argv[1:] for text in astray(path)]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
