#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mixtral.py PREFIX [BALANCE Z] - trains what test_transformer --write mixtral has written as a MixtralForCausalLM of
transformers, and prints the losses of the next tokens, without what the router adds to them.

Gradients and AdamW are PyTorch's. The load balance is load_balancing_loss_func of transformers on each block by itself, times BALANCE;
the router z loss of a block is the mean of the squared log sum exp of its scores, times Z. In single precision, which is what the
model computes its norms and its router in anyhow.
"""
import math
import sys

import torch
import transformers
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from follow import read

COUNT, PER_TOKEN = 8, 2


def weights(s, p):
    """By the names that files of a Mixtral have; skep keeps [in][out], and products of the same input side by side."""
    width, last = s["hidden"] // s["heads"], s["blocks"] + 1
    yield "model.embed_tokens.weight", p[0, "embed_tokens.weight"]
    yield "model.norm.weight", p[last, "norm.weight"]
    yield "lm_head.weight", p[last, "lm_head.weight"]
    for l in range(s["blocks"]):
        block, name = {n: t for (b, n), t in p.items() if b == l + 1}, f"model.layers.{l}."
        for norm in ("input_layernorm.weight", "post_attention_layernorm.weight"):
            yield name + norm, block[norm]
        qkv = block["self_attn.qkv_proj.weight"].T.split([n * width for n in (s["heads"], s["kv_heads"], s["kv_heads"])])
        for part, weight in zip("qkv", qkv):
            yield f"{name}self_attn.{part}_proj.weight", weight
        yield name + "self_attn.o_proj.weight", block["self_attn.o_proj.weight"].T
        yield name + "block_sparse_moe.gate.weight", block["block_sparse_moe.gate.weight"].T
        ups = block["block_sparse_moe.experts.w13.weight"].view(COUNT, s["hidden"], 2 * s["feed"])
        downs = block["block_sparse_moe.experts.w2.weight"].view(COUNT, s["feed"], s["hidden"])
        for e in range(COUNT):
            yield f"{name}block_sparse_moe.experts.{e}.w1.weight", ups[e, :, :s["feed"]].T
            yield f"{name}block_sparse_moe.experts.{e}.w3.weight", ups[e, :, s["feed"]:].T
            yield f"{name}block_sparse_moe.experts.{e}.w2.weight", downs[e].T


def load(s, p):
    config = transformers.MixtralConfig(
        vocab_size=256, hidden_size=s["hidden"], intermediate_size=s["feed"], num_hidden_layers=s["blocks"],
        num_attention_heads=s["heads"], num_key_value_heads=s["kv_heads"], max_position_embeddings=s["sequence"],
        num_local_experts=COUNT, num_experts_per_tok=PER_TOKEN, rms_norm_eps=1e-5, rope_theta=10000.0,
        attn_implementation="eager")
    named = {name: weight.contiguous() for name, weight in weights(s, p)}
    model, info = transformers.MixtralForCausalLM.from_pretrained(
        None, config=config, state_dict=named, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    assert sum(x.numel() for x in model.parameters()) == sum(x.numel() for x in p.values())
    return model.float().train()


def main():
    balance, z = (float(x) for x in sys.argv[2:4]) if len(sys.argv) > 2 else (0, 0)
    shape, tensors, _, batches = read(sys.argv[1], torch.float32)
    tensors = {name: tensor.detach() for name, tensor in tensors.items()}
    model = load(shape, tensors)
    groups = [{"params": [p for n, p in model.named_parameters() if ("norm" not in n) == wanted], "weight_decay": decay}
              for wanted, decay in ((True, 0.1), (False, 0.0))]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.99), eps=1e-8)
    steps, warmup, least = len(batches), 10, 0.1
    for step, ids in enumerate(batches):
        done = (step - warmup) / (steps - warmup)
        rate = (step + 1) / warmup if step < warmup else least + (1 - least) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * rate
        out = model(ids[:, :-1], output_router_logits=True)
        loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), ids[:, 1:].flatten())
        whole = loss
        for scores in out.router_logits:
            whole = whole + balance * load_balancing_loss_func((scores,), COUNT, PER_TOKEN)
            whole = whole + z * scores.logsumexp(-1).square().mean()
        optimizer.zero_grad()
        whole.backward()
        optimizer.step()
        print("%.10f" % loss.item())


main()
