# SPDX-License-Identifier: Apache-2.0
"""graph.py WHAT ... - a referee for graphs of `skep plan --graph`, which it reads by itself.

  run GRAPH DATABASE   every operation of the graph is in the run, at the same nanoseconds, and the run has no other ones up to there
  causes GRAPH         what each node waits for has ended when it begins, operations of a lane do not overlap
  span GRAPH           nanoseconds from the first pass's begin to the last pass's end
  passes A B           both have the same passes and steps on the same workers at the same times
  gathered GRAPH N     each forward pass after the first round's reads what the step of its own worker has made of the parameters, and
                       all shards of them that the N - 1 others have; and what goes out of a worker, what its step has made
  dot FILE WORKERS     it is written in the language of graphviz, with a cluster for each worker and the directory; arrows join
                       what is declared
  edit GRAPH OUT WHAT  changes it: see edits below
"""
import json
import re
import sqlite3
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def ops_of(graph):
    return [o for o in graph["operations"] if o["kind"] not in ("send", "decision", "leave", "join")]


def run(path, database):
    graph = read(path)
    until = graph["until_ns"]
    rows = sqlite3.connect(database).execute("SELECT worker, round, stage, microbatch, kind, lane, begin_s, end_s FROM ops")
    stages = 1 + max(p.get("stage", 0) for p in graph["places"])
    real = sorted((w, l, round(b * 1e9), round(e * 1e9), k, r, s, m) for w, r, s, m, k, l, b, e in rows if e * 1e9 <= until + 0.5)
    planned = sorted(
        (int(o["place"].split()[1]), o["lane"], o["begin_ns"], o["end_ns"], o["kind"], o["round"], o["stage"] % stages,
         o.get("microbatch", o.get("number")))
        for o in ops_of(graph) if "end_ns" in o and o["end_ns"] <= until)
    # In round numbers microbatch is only told of passes.
    passes = ("forward", "backward", "recompute")
    cut = lambda row: row if row[4] in passes else row[:7]  # noqa: E731
    # What ends at the very instant of the cut may be on either side of it.
    real, planned = ([cut(r) for r in side if r[3] < until] for side in (real, planned))
    if sorted(real) != sorted(planned):
        only = sorted(set(real) ^ set(planned))
        print("run has %d, graph %d; first that differ:" % (len(real), len(planned)), only[:4])
        return 1
    print("%d operations" % len(planned))
    return 0 if planned else 1


def makers_of(graph):
    makers = {}
    for o in graph["operations"]:
        for t in o.get("writes", []) + o.get("adds", []):
            makers.setdefault(t, []).append(o["id"])
    return makers


def causes(path):
    graph = read(path)
    by_id = {o["id"]: o for o in graph["operations"]}
    makers, lanes = makers_of(graph), {}
    for o in graph["operations"]:
        if "end_ns" not in o:
            continue
        waits = o.get("after", []) + [m for t in o.get("reads", []) for m in makers.get(t, [])]
        waits += [o["follows"]] if "follows" in o else []
        for other in waits:
            if by_id[other].get("end_ns", 1 << 62) > o["begin_ns"]:
                print(o["id"], "begins before", other, "ends")
                return 1
        if "lane" in o:
            lanes.setdefault((o["place"], o["lane"]), []).append((o["begin_ns"], o["end_ns"]))
    for lane, spans in lanes.items():
        spans.sort()
        if any(a[1] > b[0] for a, b in zip(spans, spans[1:])):
            print(lane, "does two at a time")
            return 1
    return 0


def gathered(path, members):
    graph, seen = read(path), 0
    by_id, makers = {o["id"]: o for o in graph["operations"]}, makers_of(graph)
    for o in ops_of(graph):
        reads = [by_id[m] for t in o.get("reads", []) for m in makers.get(t, [])]
        steps, shards = (sorted((m for m in reads if m["kind"] == kind), key=lambda m: m["id"]) for kind in ("step", "store_shard"))
        version = o["round"] - (o["kind"] == "forward")
        if o["kind"] not in ("forward", "copy_shard") or version < 0:
            continue
        own = [m for m in ops_of(graph) if m["kind"] == "store_shard" and m["place"] == o["place"] and m["round"] == version]
        right = [(m["place"], m["round"]) for m in steps] == [(o["place"], version)]
        if o["kind"] == "forward":
            right = right and shards == sorted(own, key=lambda m: m["id"]) and len(own) >= int(members) - 1
        if not right:
            print(o["id"], "reads what is made by", [m["id"] for m in reads])
            return 1
        seen += 1
    return 0 if seen > 0 else 1


def span(path):
    passes = [o for o in ops_of(read(path)) if o["kind"] in ("forward", "backward") and o["round"] == 0]
    print(max(o["end_ns"] for o in passes) - min(o["begin_ns"] for o in passes))
    return 0


def passes(path, other):
    kinds = ("forward", "backward", "step")
    first, second = (sorted((o["place"], o["kind"], o["stage"], o["round"], o.get("microbatch", 0), o["begin_ns"], o["end_ns"])
                            for o in ops_of(read(p)) if o["kind"] in kinds and "end_ns" in o) for p in (path, other))
    if first != second:
        print(sorted(set(first) ^ set(second))[:4])
    return 0 if first and first == second else 1


def dot(path, workers):
    with open(path, encoding="utf-8") as file:
        text = "\n".join(line for line in file.read().split("\n") if not line.startswith("#"))
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?\.?\d[\d.]*|->|[{}\[\]=;,]', text)
    left = re.sub(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|-?\.?\d[\d.]*|->|[{}\[\]=;,]|\s', "", text)
    at, declared, used, clusters = 0, set(), set(), 0

    def take(expected):
        nonlocal at
        assert tokens[at] == expected, (tokens[at:at + 5], expected)
        at += 1

    def attributes():
        nonlocal at
        take("[")
        while tokens[at] != "]":
            take_name()
            take("=")
            take_name()
            if tokens[at] == ",":
                at += 1
        take("]")

    def take_name():
        nonlocal at
        assert re.fullmatch(r'".*"|[A-Za-z_0-9.-]+', tokens[at], re.S), tokens[at]
        at += 1
        return tokens[at - 1]

    def statements():
        nonlocal at, clusters
        take("{")
        while tokens[at] != "}":
            name = take_name()
            if name == "subgraph":
                clusters += take_name().startswith("cluster_")
                statements()
                continue
            if tokens[at] == "=":
                at += 1
                take_name()
            elif tokens[at] == "->":
                at += 1
                used.update((name, take_name()))
                attributes()
            else:
                declared.update([name] if name not in ("node", "edge") else [])
                attributes()
            take(";")
        take("}")

    assert left == "", left[:40]
    take("digraph")
    take_name()
    statements()
    assert at == len(tokens)
    assert used and used <= declared, used - declared
    assert clusters == int(workers) + 1, clusters
    return 0


def edit(path, out, what, *words):
    graph = read(path)
    ops = {o["id"]: o for o in graph["operations"]}
    tensors = {t["id"]: t for t in graph["tensors"]}
    if what == "slower":  # KIND STAGE FACTOR: all passes of this kind in this stage take so many times as long
        for o in ops_of(graph):
            if o["kind"] == words[0] and o["stage"] == int(words[1]):
                o["ns"] *= int(words[2])
    elif what == "after":  # A B: A comes after B
        ops[words[0]].setdefault("after", []).append(words[1])
    elif what == "free":  # A: A waits for nothing of another operation or message
        ops[words[0]].pop("after", None)
    elif what == "larger":  # WORD FACTOR: what messages of this name carry
        for name, tensor in tensors.items():
            if name.startswith(words[0]) and name.endswith(":data"):
                tensor["bytes"] *= int(words[1])
    elif what in ("move", "move-keeping"):  # A B: all that is at A goes to B, and takes as long as there, or as it did
        for o in graph["operations"]:
            for key in ("place", "from", "to"):
                o[key] = words[1] if o.get(key) == words[0] else o.get(key)
                if o[key] is None:
                    del o[key]
        for o in ops_of(graph) if what == "move-keeping" else []:
            del o["timed_on"]
        for tensor in tensors.values():
            if tensor.get("place") == words[0]:
                tensor["place"] = words[1]
    elif what == "set":  # ID KEY JSON
        thing = ops.get(words[0]) or tensors.get(words[0]) or graph
        thing[words[1]] = json.loads(words[2])
    elif what == "drop":  # ID KEY
        (ops.get(words[0]) or tensors.get(words[0]) or graph).pop(words[1])
    elif what == "delete":  # ID
        graph["operations"] = [o for o in graph["operations"] if o["id"] != words[0]]
    elif what == "twice":  # ID
        graph["operations"].append(ops[words[0]])
    else:
        raise SystemExit("no such edit: " + what)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(graph, file, indent=0)
    return 0


if __name__ == "__main__":
    sys.exit({"run": run, "causes": causes, "gathered": gathered, "span": span, "passes": passes, "dot": dot, "edit": edit}
             [sys.argv[1]](*sys.argv[2:]))
