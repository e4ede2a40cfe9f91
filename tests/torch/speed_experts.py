#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speed_experts.py BENCH_MIXTURE THREADS [REPEATS] - forward and backward pass of a mixture of experts: the MixtralSparseMoeBlock of
transformers in PyTorch, and skep's in turns with it, both on so many threads. Milliseconds of both passes: median, least, and
processor time of all threads.

    python3 tests/torch/speed_experts.py build/tests/bench_mixture 2
"""
import statistics
import subprocess
import sys
import time

import torch
import transformers
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

BENCH, THREADS, REPEATS, TURNS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 10, 3
SHAPES = ((1024, 256, 512, 8, 2), (1024, 512, 1024, 8, 2), (2048, 512, 1024, 8, 1), (1024, 1024, 3584, 8, 2), (1024, 512, 256, 32, 4))


def block(tokens, hidden, feed, count, per_token, how):
    config = transformers.MixtralConfig(hidden_size=hidden, intermediate_size=feed, num_local_experts=count,
                                        num_experts_per_tok=per_token)
    config._experts_implementation = how
    made = MixtralSparseMoeBlock(config).train()
    for p in made.parameters():
        torch.nn.init.uniform_(p, -0.03, 0.03)
        p.grad = torch.zeros_like(p)
    x = torch.empty(1, tokens, hidden).uniform_(-1, 1).requires_grad_()
    at_out = torch.empty(1, tokens, hidden).uniform_(-1, 1)
    taken, processor = [], 0.0
    for i in range(REPEATS + 2):
        begun, spent = time.monotonic(), time.process_time()
        x.grad = None
        (x + made(x)).backward(at_out)
        if i >= 2:
            taken.append(1e3 * (time.monotonic() - begun))
            processor += 1e3 * (time.process_time() - spent)
    return statistics.median(taken), min(taken), processor / REPEATS


torch.set_num_threads(THREADS)
torch.manual_seed(1)
print(f"PyTorch {torch.__version__}, transformers {transformers.__version__}, {THREADS} threads: milliseconds, median (least, processor)")
for shape in SHAPES:
    for turn in range(TURNS):
        words = [BENCH, *map(str, shape), str(THREADS), str(REPEATS)]
        ours = [float(x) for x in subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.split()]
        line = ["skep %.1f (%.1f, %.1f)" % tuple(ours)]
        for how in ("eager", "grouped_mm"):
            theirs = block(*shape, how)
            line.append("%s %.1f (%.1f, %.1f): %.2f, %.2f times" % (how, *theirs, theirs[0] / ours[0], theirs[2] / ours[2]))
        print("tokens %d, hidden %d, feed %d, %d experts, %d per token: " % shape + "; ".join(line), flush=True)
