#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""follow.py ARCHITECTURE PREFIX - trains in PyTorch what test_transformer --write has written, and prints the losses.

The models are written out with plain tensor operations, the gradients and AdamW are PyTorch's. In double precision, unless a third
argument names another type (float32). A fourth one is the norm that clip_grad_norm_ cuts all gradients to.
"""
import math
import sys

import torch
import torch.nn.functional as F


def read(prefix, dtype):
    lines = open(prefix + ".txt").read().split("\n")
    keys = ("samples", "sequence", "hidden", "heads", "kv_heads", "feed", "blocks")
    shape = dict(zip(keys, map(int, lines[0].split())))
    raw = torch.frombuffer(bytearray(open(prefix + ".parameters", "rb").read()), dtype=torch.float32)
    tensors, decays, at = {}, {}, 0
    for line in lines[1:-1]:
        layer, name, rows, columns, decay = line.split()
        size = int(rows) * int(columns)
        value = raw[at:at + size].to(dtype).clone()
        value = value.reshape(int(rows), int(columns)) if int(rows) > 1 else value
        tensors[int(layer), name] = value.requires_grad_()
        decays[int(layer), name] = decay == "1"
        at += size
    assert at == len(raw)
    ids = torch.frombuffer(bytearray(open(prefix + ".ids", "rb").read()), dtype=torch.int32).long()
    return shape, tensors, decays, ids.reshape(-1, shape["samples"], shape["sequence"] + 1)


def attend(q, k, v):
    """[samples, heads, sequence, width] each, causal."""
    length = q.shape[-2]
    score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    score = score.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
    return F.softmax(score, -1) @ v


def split(x, heads):
    samples, length, width = x.shape
    return x.view(samples, length, heads, width // heads).transpose(1, 2)


def join(x):
    return x.transpose(1, 2).flatten(2)


def gpt2(s, p, ids):
    h = s["hidden"]
    x = p[0, "wte.weight"][ids] + p[0, "wpe.weight"]
    for l in range(1, s["blocks"] + 1):
        n = F.layer_norm(x, (h,), p[l, "ln_1.weight"], p[l, "ln_1.bias"])
        q, k, v = (n @ p[l, "attn.c_attn.weight"] + p[l, "attn.c_attn.bias"]).split(h, -1)
        a = join(attend(split(q, s["heads"]), split(k, s["heads"]), split(v, s["heads"])))
        x = x + a @ p[l, "attn.c_proj.weight"] + p[l, "attn.c_proj.bias"]
        n = F.layer_norm(x, (h,), p[l, "ln_2.weight"], p[l, "ln_2.bias"])
        n = F.gelu(n @ p[l, "mlp.c_fc.weight"] + p[l, "mlp.c_fc.bias"], approximate="tanh")
        x = x + n @ p[l, "mlp.c_proj.weight"] + p[l, "mlp.c_proj.bias"]
    last = s["blocks"] + 1
    return F.layer_norm(x, (h,), p[last, "ln_f.weight"], p[last, "ln_f.bias"]) @ p[last, "lm_head.weight"].T


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x):
    """Pairs are a half width apart, as Hugging Face has them."""
    length, width = x.shape[-2:]
    speed = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * speed
    cos, sin = (f(angle).to(x.dtype).repeat(1, 2) for f in (torch.cos, torch.sin))
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


def llama(s, p, ids):
    h, heads, kv_heads = s["hidden"], s["heads"], s["kv_heads"]
    kv = kv_heads * h // heads
    x = p[0, "embed_tokens.weight"][ids]
    for l in range(1, s["blocks"] + 1):
        n = rms_norm(x, p[l, "input_layernorm.weight"])
        q, k, v = (n @ p[l, "self_attn.qkv_proj.weight"]).split((h, kv, kv), -1)
        k, v = (split(each, kv_heads) for each in (k, v))
        k, v = (each.repeat_interleave(heads // kv_heads, 1) for each in (rotate(k), v))
        x = x + join(attend(rotate(split(q, heads)), k, v)) @ p[l, "self_attn.o_proj.weight"]
        n = rms_norm(x, p[l, "post_attention_layernorm.weight"])
        gate, up = (n @ p[l, "mlp.gate_up_proj.weight"]).chunk(2, -1)
        x = x + (F.silu(gate) * up) @ p[l, "mlp.down_proj.weight"]
    last = s["blocks"] + 1
    return rms_norm(x, p[last, "norm.weight"]) @ p[last, "lm_head.weight"].T


def main():
    architecture, prefix = sys.argv[1:3]
    dtype = getattr(torch, sys.argv[3] if len(sys.argv) > 3 else "float64")
    shape, tensors, decays, batches = read(prefix, dtype)
    groups = [{"params": [t for key, t in tensors.items() if decays[key] == wanted], "weight_decay": decay}
              for wanted, decay in ((True, 0.1), (False, 0.0))]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.99), eps=1e-8)
    steps, warmup, least = len(batches), 10, 0.1
    most = float(sys.argv[4]) if len(sys.argv) > 4 else None
    for step, ids in enumerate(batches):
        done = (step - warmup) / (steps - warmup)
        rate = (step + 1) / warmup if step < warmup else least + (1 - least) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * rate
        score = {"gpt2": gpt2, "llama": llama}[architecture](shape, tensors, ids[:, :-1])
        loss = F.cross_entropy(score.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        if most:
            torch.nn.utils.clip_grad_norm_(tensors.values(), most)
        optimizer.step()
        print("%.10f" % loss.item())


if __name__ == "__main__":
    main()
