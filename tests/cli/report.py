# SPDX-License-Identifier: Apache-2.0
"""report.py PAGE DATABASE RUNS SECTION...: the page of `skep report` is well-formed HTML with these sections, refers to nothing outside
of itself, runs only its own script, and its data agree with the database. RUNS: numbers with commas between."""

import html.parser
import json
import re
import sqlite3
import sys

VOID = {"meta", "img", "br", "hr", "input", "link"}
REFERENCES = {"src", "href", "xlink:href", "action", "formaction", "data", "poster", "srcset", "background", "cite", "ping"}
HARMLESS = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names of languages, which no browser loads


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.sections, self.scripts, self.data, self.tags, self.attributes, self.texts = [], [], 0, [], {}, [], []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attributes += [(tag, key, value) for key, value in attrs]
        if tag == "section":
            self.sections.append(dict(attrs)["id"])
        if tag == "script" and dict(attrs).get("type") != "application/json":
            self.scripts += 1
        if tag not in VOID:
            self.open.append((tag, dict(attrs)))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, self.getpos(), self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        tag, attrs = self.open[-1] if self.open else ("", {})
        if tag == "script" and attrs.get("type") == "application/json":
            self.data.append(json.loads(data))
        elif tag not in ("script", "style"):
            self.texts.append(data)


def check_references(page, text):
    for tag, key, value in page.attributes:
        assert not key.startswith("on"), (tag, key, value)
        if key in REFERENCES:
            assert value.startswith("#") or (tag == "image" and value.startswith("data:image/png;base64,")), (tag, key, value[:80])
        for address in re.findall(r"[a-z]+://[^\s'\"]*", value or ""):
            assert address in HARMLESS, (tag, key, value[:80])
    assert not re.search(r"@import|url\((?!['\"]?#)", text), "a style refers to something outside"
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids)), sorted(name for name in set(ids) if ids.count(name) > 1)
    for tag, key, value in page.attributes:
        if key in ("href", "xlink:href") and value.startswith("#"):
            assert value[1:] in ids, value
    assert not {"iframe", "object", "embed", "img", "form", "base"} & set(page.tags), page.tags
    assert page.scripts == 1, page.scripts
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text and "@media print" in text


def check_frames(db, run, frames, dots):
    workers, end_s = db.execute("SELECT workers, time_s FROM runs WHERE id = ?", [run]).fetchone()
    count = frames["frames"]
    assert count > 0 and dots == workers == len(frames["did"]) == len(frames["busy"]) == len(frames["stages"]), (dots, workers)
    for did, busy in zip(frames["did"], frames["busy"]):
        assert len(did) == len(busy) == count and set(did) <= set("fbsrdix") and busy.isdigit(), did
    # What the frames carry is what the rounds had sent, and a worker computes as long as the run says.
    sent = db.execute("SELECT max(bytes_pipeline), max(bytes_sync) FROM rounds WHERE run = ?", [run]).fetchone()
    for total, rates in zip(sent, (frames["pipeline"], frames["sync"])):
        carried = sum(rates) * end_s / count
        assert abs(carried - total) <= 0.01 * total + end_s, (run, total, carried)
    away = db.execute(
        "SELECT total(? - alive) FROM (SELECT sum(ended_s - started_s) AS alive FROM incarnations WHERE run = ? AND worker < ?"
        " GROUP BY worker)", [end_s, run, workers]).fetchone()[0]
    drawn = sum(did.count("x") for did in frames["did"]) * end_s / count
    assert abs(drawn - away) <= 0.12 * away + 3 * end_s / count, (run, away, drawn)
    losses = [row[0] for row in db.execute("SELECT loss FROM rounds WHERE run = ? ORDER BY round", [run])]
    for _, number, loss in frames["losses"]:
        assert loss == losses[number] or abs(loss - losses[number]) < 1e-12, (number, loss, losses[number])


def main(path, database, runs, sections):
    raw = open(path, "rb").read()
    text = raw.decode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text), "a control character"
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == [], page.open
    assert page.sections == sections, page.sections
    check_references(page, text)
    shown = "".join(page.texts)
    db = sqlite3.connect(database)
    runs = [int(run) for run in runs.split(",") if run]
    for run in runs:
        name = db.execute("SELECT scenario FROM runs WHERE id = ?", [run]).fetchone()[0]
        visible = re.sub("\u202e", "\ufffd", re.sub("[\x00-\x1f]", lambda c: chr(0x2400 + ord(c[0])), name)).replace("\x7f", "\u2421")
        assert visible in shown, visible
    assert len(page.data) == (len(runs) if "machines" in sections else 0), len(page.data)
    dots = [text[at.start():].split("</svg>")[0].count('class="worker"') for at in re.finditer('<figure class="swarm">', text)]
    for run, frames, count in zip(runs, page.data, dots):
        check_frames(db, run, frames, count)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
