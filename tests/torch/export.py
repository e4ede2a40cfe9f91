# SPDX-License-Identifier: Apache-2.0
#
# export.py - what skep exports is what `transformers` takes it for: a GPT-2, a Llama, a Mixtral and a BERT are trained for a few steps, exported, and
# loaded there; nothing may be missing or left over, and the loss of the first batch of a run that begins with those weights must be
# the one that `transformers` computes for the same windows of the text. Needs Python with torch and transformers:
#
#     python3 tests/torch/export.py build/skep
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEXT = os.path.join(ROOT, "models/text/tinyshakespeare.txt")
M64 = (1 << 64) - 1
T, BATCH, SEED = 64, 8, 1


def mix(z):  # core/random.h
    z = (z + 0x9E3779B97F4A7C15) & M64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
    return z ^ z >> 31


def permute(key, n, i):  # models/corpus/tokens.c
    bits = 1
    while 1 << 2 * bits < n:
        bits += 1
    mask = (1 << bits) - 1
    while True:
        left, right = i >> bits, i & mask
        for r in range(6):
            left, right = right, left ^ (mix(mix((key + r) & M64) ^ right) >> 32 & mask)
        i = left << bits | right
        if i < n:
            return i


def first_batch():
    data = open(TEXT, "rb").read()
    windows = (len(data) - 1) // T
    windows -= round(windows * 0.1)
    key = mix(mix(mix(SEED)) ^ mix(0))  # stream of the data, epoch 0, training
    at = [permute(key, windows, i) * T for i in range(BATCH)]
    return torch.tensor([list(data[a:a + T + 1]) for a in at])


def masked(batch, vocabulary=257, token=256, predicted=10):  # models/corpus/masking.c
    ids, labels = batch[:, :-1].clone(), torch.full_like(batch[:, :-1], -100)
    for i in range(BATCH):
        key, left = mix(mix(mix(SEED)) ^ mix(mix(2 * i) ^ 0x6D61736B)), predicted
        for place in range(T):
            if (mix((key + 2 * place) & M64) >> 32) * (T - place) >> 32 >= left:
                continue
            left -= 1
            labels[i, place] = batch[i, place]
            bits = mix((key + 2 * place + 1) & M64)
            tenth = (bits >> 32) * 10 >> 32
            if tenth < 9:
                ids[i, place] = token if tenth < 8 else (bits & 0xFFFFFFFF) * vocabulary >> 32
    return ids, labels


def skep(*words):
    done = subprocess.run([SKEP, *words], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, words
    return done.stdout


def scenario(name, model, stages, more):
    with open(os.path.join(FOLDER, name), "w") as f:
        f.write(f"""name: export
seed: {SEED}
model: {{file: {model}, stages: {stages}}}
cluster: {{topology: {ROOT}/topologies/one-host.yaml}}
schedule: {{global_batch: {BATCH}, microbatch: {BATCH}}}
train:
  data: {{corpus: text, file: {TEXT}}}
  optimizer: {{name: adamw, lr: 0.01}}
{more}""")


def check(model):
    """Trained in two stages, exported, and begun with again, in one."""
    scenario("train.yaml", os.path.join(ROOT, "models", model), 2,
             f"  until: {{steps: 21}}\ncheckpoint: {{every: 20, to: kept-{model}}}\n")
    skep("run", "train.yaml", "-q")
    out = f"out-{model}"
    facts = json.loads(skep("export", "train.yaml", "-o", out, "--json"))
    path = os.path.join(FOLDER, out)
    bert = "bert" in model
    kind = transformers.AutoModelForMaskedLM if bert else transformers.AutoModelForCausalLM
    theirs, info = kind.from_pretrained(path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    assert sum(p.numel() for p in theirs.parameters()) == facts["parameters"], facts
    scenario("again.yaml", os.path.join(path, "config.json"), 1,
             f"  init: {{weights: {out}}}\n  until: {{steps: 1}}\n")
    run = json.loads(skep("sim", "again.yaml", "--json"))
    ours = run["final_loss"]
    ids, labels = masked(first_batch()) if bert else (first_batch()[:, :-1], first_batch()[:, 1:])
    with torch.no_grad():
        logits = theirs.eval()(ids).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).item()
    print(f"{model}: step {facts['step']}, loss of skep {ours:.7f}, of transformers {loss:.7f}")
    assert abs(ours - loss) < 1e-5 and loss < 4.5


SKEP = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as FOLDER:
    for name in ("tiny-gpt2.yaml", "tiny-llama.yaml", "tiny-mixtral.yaml", "tiny-bert.yaml"):
        check(name)
