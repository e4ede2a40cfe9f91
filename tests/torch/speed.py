#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed.py THREADS [STEPS] - tokens a second of models/gpt2-256x4.yaml in PyTorch, 8 samples a step, AdamW: what

    bench_device models/gpt2-256x4.yaml --samples 8 --threads THREADS

does in skep. The model is written as PyTorch's users write it (linear layers with biases, one product for queries, keys and
values); ids are drawn, since their values cost nothing. Wall-clock medians, and processor time of all threads.
"""
import os
import statistics
import sys
import time

# Where PyTorch multiplies by OpenBLAS, as Debian's does, that takes a thread for each core beside PyTorch's own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
import torch.nn as nn
import torch.nn.functional as F

HIDDEN, HEADS, BLOCKS, SEQUENCE, VOCABULARY, SAMPLES, WARM_UP = 256, 8, 4, 128, 256, 8, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
        self.register_buffer("future", torch.ones(SEQUENCE, SEQUENCE).triu(1).bool())

    def attend(self, x):
        q, k, v = (part.view(SAMPLES, SEQUENCE, HEADS, -1).transpose(1, 2) for part in self.qkv(x).split(HIDDEN, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            score = (q @ k.transpose(-2, -1)) * (HIDDEN // HEADS) ** -0.5
            y = F.softmax(score.masked_fill(self.future, float("-inf")), dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(SAMPLES, SEQUENCE, HIDDEN))

    def forward(self, x):
        x = x + self.attend(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(SEQUENCE, HIDDEN)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.token(ids) + self.place.weight)))


def main():
    torch.set_num_threads(int(sys.argv[1]))
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    torch.manual_seed(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
    taken, processor = [], 0.0
    for step in range(WARM_UP + steps):
        ids = torch.randint(VOCABULARY, (SAMPLES, SEQUENCE + 1))
        begin, begun = time.monotonic(), time.process_time()
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= WARM_UP:
            taken.append(time.monotonic() - begin)
            processor += time.process_time() - begun
    median = statistics.median(taken)
    print("PyTorch %s, %d threads: step %.2f ms median, %.2f least; %.2f of processor time; %.0f tokens/s" % (
        torch.__version__, torch.get_num_threads(), 1e3 * median, 1e3 * min(taken), 1e3 * processor / steps,
        SAMPLES * SEQUENCE / median))


main()
