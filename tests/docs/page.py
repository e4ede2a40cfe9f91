# SPDX-License-Identifier: Apache-2.0
"""page.py - what the tests of the documents read: the fenced blocks and tables of a page, and the YAML of its examples.

The YAML is the part of the language that the shipped files use: maps and lists in block or flow style, plain scalars on one
line, comments. Scalars stay text. It is parsed here so that a test can leave out one key and write the rest again."""
import re


class Block:
    """One fenced block: its language, its lines, and the line of the page (from 1) on which its text begins."""

    def __init__(self, page, line, language, lines, notes):
        self.page, self.line, self.language, self.lines, self.notes = page, line, language, lines, notes

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def place(self):
        return "%s:%d" % (self.page, self.line)


def blocks(page):
    """The fenced blocks of a page, in order. A block's notes are the HTML comments right before it."""
    found, notes, inside = [], [], None
    for number, line in enumerate(open(page, encoding="utf-8").read().split("\n"), 1):
        fence = re.match(r"```(\w*)", line)
        if inside is not None and fence:
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.lines.append(line)
        elif fence:
            inside, notes = Block(page, number + 1, fence[1], [], notes), []
        elif line.startswith("<!--"):
            notes = notes + [re.sub(r"<!--\s*|\s*-->", "", line)]
        elif line:
            notes = []
    return found


def keys(page):
    """The keys that the tables of a page describe: the code in the first cell of each row, of tables headed `key`."""
    found, wanted = [], False
    for line in open(page, encoding="utf-8"):
        if not line.startswith("|"):
            wanted = False
        elif line.startswith("| key "):
            wanted = True
        elif wanted and not line.startswith("| ---"):
            found += re.findall(r"`([^`]+)`", re.split(r"(?<!\\)\|", line)[1])
    return found


# ---- YAML ----------------------------------------------------------------------------------------------------------------


def bare(line):
    """A line without its comment."""
    return re.sub(r"(^|\s)#.*$", "", line).rstrip()


def flow(text, at=0):
    """The value in flow style at this place of the text, and where it ends."""
    while text[at] == " ":
        at += 1
    if text[at] in "{[":
        end, value = "}" if text[at] == "{" else "]", {} if text[at] == "{" else []
        at += 1
        while True:
            while text[at] in " ,":
                at += 1
            if text[at] == end:
                return value, at + 1
            if end == "]":
                item, at = flow(text, at)
                value.append(item)
            else:
                key = re.match(r"[^:\s]+", text[at:])[0]
                value[key], at = flow(text, text.index(":", at) + 1)
    if text[at] in "\"'":
        end = text.index(text[at], at + 1)
        return text[at + 1 : end], end + 1
    end = re.compile(r"[,\]}]|$").search(text, at).start()
    return text[at:end].strip(), end


def scalar(text):
    text = text.strip()
    return flow(text)[0] if text[:1] in ("{", "[", '"', "'") else text


def column(lines, at):
    """The column at which a line begins; -1 behind the last line."""
    return len(lines[at]) - len(lines[at].lstrip()) if at < len(lines) else -1


def whole(text, lines, at):
    """A value with the lines that it goes on in (open brackets, or a text behind `>-`), and the line behind them."""
    if text == ">-":
        indent, words = column(lines, at), []
        while column(lines, at) >= indent > 0:
            words.append(lines[at].strip())
            at += 1
        return " ".join(words), at
    while text.count("{") > text.count("}") or text.count("[") > text.count("]"):
        text, at = text + " " + lines[at].strip(), at + 1
    return scalar(text), at


def block(lines, at, indent):
    """The map or list whose lines begin at column `indent`, from line `at` on, and the line behind it."""
    value = [] if lines[at][indent] == "-" else {}
    while column(lines, at) == indent:
        line = lines[at][indent:]
        if isinstance(value, list):
            rest = line[1:].lstrip()
            inner = indent + len(line) - len(rest)
            if re.match(r"\w+:(\s|$)", rest):
                lines[at] = " " * inner + rest
                item, at = block(lines, at, inner)
            else:
                item, at = whole(rest, lines, at + 1)
            value.append(item)
            continue
        key, _, rest = line.partition(":")
        at += 1
        deeper = column(lines, at)
        if rest.strip():
            value[key], at = whole(rest.strip(), lines, at)
        elif deeper <= indent:
            value[key] = None
        elif lines[at].lstrip()[0] in "{[":
            value[key], at = whole(lines[at].strip(), lines, at + 1)
        else:
            value[key], at = block(lines, at, deeper)
    return value, at


def parse(text):
    lines = [line for line in map(bare, text.split("\n")) if line.strip()]
    value, end = block(lines, 0, 0) if lines else ({}, 0)
    if end < len(lines):
        raise ValueError("cannot parse: " + lines[end])
    return value


def write(value):
    """The value in flow style, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join("%s: %s" % (key, write(item)) for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    if value is None:
        return ""
    return '"%s"' % value if re.search(r"[,\[\]{}#&*!|>\"'%@`]|: |^[-?:]( |$)", value) else value


def leaves(value, path=()):
    """Each scalar, list and empty map of nested maps, with its path."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, path + (key,))
    else:
        yield path, value
