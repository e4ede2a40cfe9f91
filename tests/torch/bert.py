#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bert.py PREFIX - trains what test_transformer --write bert has written as a BertForMaskedLM of transformers, and prints the losses
of the masked tokens.

Attention, loss, gradients and AdamW are theirs and PyTorch's. In double precision, without dropout, and without a padding token: its row of
the table would have no gradient where it stands in for another one.
"""
import math
import sys

import torch
import transformers

from follow import read


def weights(s, p):
    """By the names that files of a BERT have; skep keeps [in][out], and queries, keys and values side by side."""
    h, last = s["hidden"], s["blocks"] + 1
    for (l, name), tensor in p.items():
        if l == 0:
            yield f"bert.{name}", tensor
        elif l == last:
            yield name, tensor.T if name.endswith("dense.weight") else tensor
        elif ".self.qkv." in name:
            for part, piece in zip(("query", "key", "value"), tensor.split(h, -1)):
                yield f"bert.encoder.layer.{l - 1}.{name.replace('qkv', part)}", piece.T if piece.dim() > 1 else piece
        else:
            yield f"bert.encoder.layer.{l - 1}.{name}", tensor.T if tensor.dim() > 1 else tensor


def load(s, p):
    config = transformers.BertConfig(
        vocab_size=257, hidden_size=s["hidden"], intermediate_size=s["feed"], num_hidden_layers=s["blocks"],
        num_attention_heads=s["heads"], max_position_embeddings=s["sequence"], hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, pad_token_id=None, attn_implementation="eager")
    model = transformers.BertForMaskedLM(config).double()
    named = {name: weight.contiguous() for name, weight in weights(s, p)}
    wrong = model.load_state_dict(named, strict=False)
    copies = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "bert.embeddings.position_ids"}
    assert set(wrong.missing_keys) <= copies and not wrong.unexpected_keys, wrong
    model.tie_weights()
    head = model.cls.predictions
    assert head.decoder.weight is model.bert.embeddings.word_embeddings.weight and head.decoder.bias is head.bias
    assert sum(x.numel() for x in model.parameters()) == sum(x.numel() for x in p.values())
    return model.train()


def main():
    shape, tensors, _, batches = read(sys.argv[1], torch.float64)
    model = load(shape, {name: tensor.detach() for name, tensor in tensors.items()})
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.99), eps=1e-8)
    steps, warmup, least = len(batches) // 2, 10, 0.1
    for step, (ids, labels) in enumerate(zip(batches[::2, :, :-1], batches[1::2, :, :-1])):
        done = (step - warmup) / (steps - warmup)
        rate = (step + 1) / warmup if step < warmup else least + (1 - least) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * rate
        loss = model(input_ids=ids, labels=labels.contiguous()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("%.10f" % loss.item())


main()
