# SPDX-License-Identifier: Apache-2.0
"""expected.py SKEP ROOT - what `skep check` expects of a step, against what `skep sim` makes of it, on fifty pools drawn by a seed each:
16 to 1,024 machines in one to five sites of mixed GPUs, lines that all share, uplinks, windows, three allocations, four models, a
swarm or fixed pipelines. For expected.sh; writes one line for each: its number, expected over simulated, and what it is."""
import json
import os
import random
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

POOLS = 50
ROUNDS = 3
GPUS = ["t4", "v100", "a100-40", "rtx-3090", "l4"]
MODELS = {"transformer-32": [4, 8], "opt-350m": [2, 4, 8], "gpt2-124m": [2, 4]}


def workers_of(k):
    return round(16 * 64 ** (k / (POOLS - 1)))


def sizes(r, workers, sites):
    cuts = sorted(r.sample(range(1, workers), sites - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [workers])]


def site(r, name, count, types):
    nic = r.choice([1, 5, 10, 25])
    parts = [count] if count < 2 or r.random() < 0.5 else [count // 2, count - count // 2]
    machines = ", ".join(
        f"{{count: {n}, gpu: {r.choice(types)}, up: {nic} Gbit/s, down: {nic} Gbit/s}}" for n in parts
    )
    uplink = f", uplink: {r.choice([1, 2, 5, 10])} Gbit/s" if r.random() < 0.3 else ""
    inside = f"{{bandwidth: {nic} Gbit/s, latency: {r.choice([0.1, 0.5])} ms}}"
    return f"  {name}: {{machines: [{machines}], inside: {inside}{uplink}}}"


def topology(r, k):
    sites = r.randint(1, 5)
    types = r.sample(GPUS, r.randint(1, 3))
    text = [f"name: pool {k}", "source: Assumed, drawn for this test.", "directory: s0"]
    if r.random() < 0.6:
        text.append(f"window: {r.choice([1, 2, 4, 16])} MiB")
    text.append("sites:")
    text += [site(r, f"s{i}", n, types) for i, n in enumerate(sizes(r, workers_of(k), sites))]
    if sites > 1:
        text.append("links:")
    for i in range(sites):
        for j in range(i):
            text.append(
                f"  - {{between: [s{j}, s{i}], bandwidth: {r.choice([500, 1000, 2000, 5000, 10000])} Mbit/s, "
                f"latency: {r.choice([2, 5, 10, 20, 40, 70])} ms, shared: true}}"
            )
    return "\n".join(text) + "\n"


def scenario(r, k, root):
    model = r.choice(list(MODELS))
    stages = r.choice(MODELS[model])
    workers = workers_of(k)
    pipeline = r.choice(["swarm", "swarm", "swarm", "1f1b", "gpipe"])
    if workers % stages:
        pipeline = "swarm"
    order = "wiring: throughput" if pipeline == "swarm" else f"pipeline: {pipeline}"
    microbatch = r.choice([1, 2])
    batch = microbatch * max(1, workers // stages) * r.choice([4, 8, 16])
    return f"""name: pool {k}
seed: {k + 1}
model: {{file: {root}/models/{model}.yaml, stages: {stages}}}
cluster: {{topology: pool-{k}.yaml, allocation: {{method: {r.choice(["random", "strided", "contiguous"])}}}}}
schedule: {{{order}, global_batch: {batch}, microbatch: {microbatch}, checkpoint_activations: true,
  compression: {r.choice(["none", "fp16", "int8"])}}}
sync: {{method: step, collective: ring}}
train: {{arithmetic: none, until: {{steps: {ROUNDS}}}}}
"""


def told(skep, command, k, *options):
    done = subprocess.run([skep, command, f"scenario-{k}.yaml", "--json", "-q", *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"pool {k}: {done.stderr}")
    return json.loads(done.stdout)


def mean_step(db):
    """Of all rounds but the first, from one's end to the next one's."""
    with closing(sqlite3.connect(db)) as store:
        ends = [end for (end,) in store.execute("SELECT closed_s FROM rounds ORDER BY round")]
    assert len(ends) == ROUNDS, ends
    return (ends[-1] - ends[0]) / (ROUNDS - 1)


def compare(skep, root, k):
    r = random.Random(k)
    with open(f"pool-{k}.yaml", "w") as out:
        out.write(topology(r, k))
    with open(f"scenario-{k}.yaml", "w") as out:
        out.write(scenario(r, k, root))
    check = told(skep, "check", k)
    # Flows stand for the messages of large rings: they take as long, and far fewer events (sim/README.md).
    fused = ["--set", "simulate.collectives=flows"] if check["workers"] >= 100 else []
    told(skep, "sim", k, "--db", f"{k}.db", *fused)
    simulated = mean_step(f"{k}.db")
    e = check["expected"]
    return (
        f"{k} {e['step_s'] / simulated:.3f} {check['workers']} workers, {check['microbatches']} microbatches: "
        f"{e['step_s']:.4g} s expected (passes {e['passes_s']:.4g}, reductions {e['reduction_s']:.4g}), "
        f"{simulated:.4g} s simulated; {e['busiest']}"
    )


def main():
    skep, root = sys.argv[1:3]
    chosen = [int(k) for k in sys.argv[3:]] or range(POOLS)
    if not os.path.exists("gpus"):
        os.symlink(os.path.join(root, "topologies/gpus"), "gpus")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(lambda k: compare(skep, root, k), chosen):
            print(line, flush=True)


main()
