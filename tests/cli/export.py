# SPDX-License-Identifier: Apache-2.0
"""export.py timeline FILE DATABASE RUN | csv FILE DATABASE TABLE KEYS [RUNS]: what `skep export` wrote is what the database holds, and
trace events are such as Perfetto takes: named processes and threads, complete events that do not cross, pairs of begin and end."""

import collections
import csv
import json
import math
import sqlite3
import sys

NEEDED = {"X": {"ts", "dur", "tid"}, "M": {"args"}, "C": {"ts", "args"}, "i": {"ts", "s"}, "b": {"ts", "id", "cat"}, "e": {"ts", "id", "cat"}}
MEMBERSHIP = ("fenced", "left", "admitted", "joined", "migrated", "stage_empty", "stage_restarted", "checkpointed", "checkpoint_failed",
              "diverged", "stopped")


def check_form(events):
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    lanes = collections.defaultdict(list)
    for event in events:
        assert NEEDED[event["ph"]] <= set(event) and event["pid"] in processes, event
        assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0, event
        if event["ph"] == "X":
            assert (event["pid"], event["tid"]) in threads, event
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    for lane in lanes.values():
        lane.sort()
        for before, after in zip(lane, lane[1:]):
            assert before[1] <= after[0] + 0.002, (before, after)
    ends = collections.Counter((event["id"], event["ph"]) for event in events if event["ph"] in "be")
    assert all(ends[number, "b"] == ends[number, "e"] == 1 for number, _ in ends), ends


def timeline(path, database, run):
    trace = json.load(open(path, encoding="utf-8"))
    db = sqlite3.connect(database)
    events = trace["traceEvents"]
    check_form(events)
    scenario, workers, end_s = db.execute("SELECT scenario, workers, time_s FROM runs WHERE id = ?", [run]).fetchone()
    assert trace["otherData"]["scenario"] == scenario and trace["displayTimeUnit"] == "ms"
    drawn = collections.Counter()
    for event in events:
        if event["ph"] == "X" and event["cat"] != "life":
            drawn[event["pid"] - 1, event["name"], event["cat"], round(event["ts"]), event["args"]["round"]] += 1
    held = collections.Counter(
        (worker, kind, lane, round(begin * 1e6), number)
        for worker, kind, lane, begin, number in db.execute("SELECT worker, kind, lane, begin_s, round FROM ops WHERE run = ?", [run]))
    assert sum(held.values()) > 0 and abs(sum(drawn.values()) - sum(held.values())) == 0
    assert sum((held - drawn).values()) <= 0.01 * sum(held.values()), list((held - drawn))[:3]  # .5 us rounds either way
    lived = sum(event["dur"] for event in events if event["ph"] == "X" and event["cat"] == "life")
    alive = db.execute("SELECT total(ended_s - started_s) FROM incarnations WHERE run = ? AND worker < ?", [run, workers]).fetchone()[0]
    assert math.isclose(lived, alive * 1e6, rel_tol=1e-6), (lived, alive)
    notes = "SELECT count(*) FROM notes WHERE run = ? AND kind IN (%s)" % ",".join("?" * len(MEMBERSHIP))
    instants = [event for event in events if event["ph"] == "i"]
    assert len(instants) == db.execute(notes, [run, *MEMBERSHIP]).fetchone()[0]
    rounds = list(db.execute("SELECT closed_s, loss, bytes_pipeline FROM rounds WHERE run = ? ORDER BY round", [run]))
    assert len(rounds) == sum(event["ph"] == "b" for event in events) > 0
    losses = [event["args"]["value"] for event in events if event["name"] == "loss"]
    assert all(math.isclose(a, b, rel_tol=1e-8) for a, b in zip(losses, [row[1] for row in rounds if row[1] is not None], strict=True))
    rates = sorted((event["ts"], event["args"]["value"]) for event in events if event["name"] == "between stages (Mbit/s)")
    times = [ts / 1e6 for ts, _ in rates] + [rounds[-1][0]]
    sent = sum(rate * 125000 * (after - at) for (_, rate), at, after in zip(rates, times, times[1:]))
    assert math.isclose(sent, rounds[-1][2], rel_tol=1e-4), (sent, rounds[-1])
    assert end_s > 0


def table(path, database, name, keys, runs=""):
    db = sqlite3.connect(database)
    db.row_factory = sqlite3.Row
    rows = list(csv.DictReader(open(path, encoding="utf-8", newline="")))
    key = keys.split(",")
    where = f" WHERE {key[0]} IN ({runs})" if runs else ""
    held = list(db.execute(f"SELECT * FROM {name}{where} ORDER BY {keys}"))
    assert len(rows) == len(held) > 0, (len(rows), len(held))
    labels = {"name", "tags"} if name == "runs" else set()
    assert set(rows[0]) == set(held[0].keys()) - {"text", "pid"} | labels, list(rows[0])
    for row, expected in zip(rows, held):
        for column, cell in ((c, row[c]) for c in row if c not in labels):
            value = expected[column]
            if value is None:
                assert cell == "", (column, cell)
            elif isinstance(value, float):
                assert float(cell) == value, (column, cell, value)
            else:
                assert cell == str(value), (column, cell, value)


if __name__ == "__main__":
    {"timeline": timeline, "csv": table}[sys.argv[1]](*sys.argv[2:])
