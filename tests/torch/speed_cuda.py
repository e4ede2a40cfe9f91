#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed_cuda.py MODEL [SAMPLES [STEPS [compiled]]] - tokens a second of a GPT-2 in PyTorch on a GPU: what

    bench_cuda MODEL --samples SAMPLES --steps STEPS

does in skep. Autocast to bf16, flash attention through scaled_dot_product_attention, fused AdamW, a tied head; `compiled` puts the
model and its loss through torch.compile. MODEL is a file of models/ whose architecture is gpt2. Ids are drawn, since their
values cost nothing. Each step begins when the one before has been waited for, as in skep.
"""
import re
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WARM_UP = 5


def read(path):
    text = open(path, encoding="utf-8").read()
    assert "gpt2" in text, "only GPT-2 is written down here"
    number = lambda key: int(re.search(r"\b%s: (\d+)" % key, text).group(1))
    return {key: number(key) for key in ("hidden", "heads", "blocks", "sequence", "vocabulary")}


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def attend(self, x):
        samples, sequence, hidden = x.shape
        q, k, v = (part.view(samples, sequence, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(hidden, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(samples, sequence, hidden))

    def forward(self, x):
        x = x + self.attend(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.token, self.place = nn.Embedding(m["vocabulary"], m["hidden"]), nn.Embedding(m["sequence"], m["hidden"])
        self.blocks = nn.Sequential(*(Block(m["hidden"], m["heads"]) for _ in range(m["blocks"])))
        self.norm, self.head = nn.LayerNorm(m["hidden"]), nn.Linear(m["hidden"], m["vocabulary"], bias=False)
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)
        self.head.weight = self.token.weight

    def forward(self, ids, targets):
        scores = self.head(self.norm(self.blocks(self.token(ids) + self.place.weight)))
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def main():
    m = read(sys.argv[1])
    samples, steps = (int(a) for a in (sys.argv[2:4] + ["16", "20"][len(sys.argv[2:4]):]))
    compiled = "compiled" in sys.argv
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Model(m).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    run, taken = torch.compile(model) if compiled else model, []
    for step in range(WARM_UP + steps):
        ids = torch.randint(m["vocabulary"], (samples, m["sequence"] + 1))
        torch.cuda.synchronize()
        begin = time.monotonic()
        ids = ids.cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = run(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        torch.cuda.synchronize()
        if step >= WARM_UP:
            taken.append(time.monotonic() - begin)
    median = statistics.median(taken)
    print("PyTorch %s, %s, %s, %d x %d tokens: step %.2f ms median, %.2f least, %.2f most of %d; %.0f tokens/s; loss %.4f; "
        "%.1f GB at most" % (torch.__version__, torch.cuda.get_device_name(), "compiled" if compiled else "eager", samples,
        m["sequence"], 1e3 * median, 1e3 * min(taken), 1e3 * max(taken), steps, samples * m["sequence"] / median, loss.item(),
        torch.cuda.max_memory_allocated() / 1e9))


main()
