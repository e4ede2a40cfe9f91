# SPDX-License-Identifier: Apache-2.0
#
# make.py - makes what lies beside it: four tiny models as `transformers` saves them, drawn at random, and the logits that it computes
# for a line of tokens. Needs Python with torch, transformers and safetensors:
#
#     python3 tests/data/hf/make.py tests/data/hf
import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

T = 12


def draw(model, seed):
    """Weights of a size that makes every part of the model matter, norms and biases included."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            x = torch.randn(p.shape, generator=g)
            if p.dim() == 1 and ("ln" in name or "norm" in name.lower()) and name.endswith("weight"):
                p.copy_(1 + 0.2 * x)
            else:
                p.copy_(0.3 * x)


def write(model, folder, seed, **save):
    os.makedirs(folder, exist_ok=True)
    draw(model, seed)
    model.eval()
    model.save_pretrained(folder, safe_serialization=True, **save)
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
    vocabulary = model.config.vocab_size
    tokens = [(7 * t * t + 3 * t + 1) % vocabulary for t in range(T)]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
        loss = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(tokens[1:]))
    with open(os.path.join(folder, "logits.txt"), "w") as f:
        print(f"# transformers {transformers.__version__}, torch {torch.__version__}; mean loss of the next tokens "
              f"{loss.item():.9g}", file=f)
        print("# token, then the logits that follow it", file=f)
        for token, row in zip(tokens, logits):
            print(token, *(f"{x:.8g}" for x in row.tolist()), file=f)


root = sys.argv[1]
write(transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=48, n_positions=16, n_embd=16, n_layer=2, n_head=2)), os.path.join(root, "gpt2"), 1)
write(transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=48, hidden_size=16, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=32)), os.path.join(root, "llama"), 2, max_shard_size="12KB")
write(transformers.MixtralForCausalLM(transformers.MixtralConfig(
    vocab_size=48, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=32, num_local_experts=4, num_experts_per_tok=2, rope_theta=10000.0,
    output_router_logits=True, router_aux_loss_coef=0.02)), os.path.join(root, "mixtral"), 3)

write(transformers.BertForMaskedLM(transformers.BertConfig(
    vocab_size=48, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
    max_position_embeddings=16)), os.path.join(root, "bert"), 4)

# The same BERT as its first files were: gammas and betas, the tied head once more, and what tells whether sentences follow each other.
weights = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
           for k, v in load_file(os.path.join(root, "bert", "model.safetensors")).items()}
weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"].clone()
weights["cls.seq_relationship.weight"], weights["cls.seq_relationship.bias"] = torch.zeros(2, 16), torch.zeros(2)
weights["bert.pooler.dense.weight"], weights["bert.pooler.dense.bias"] = torch.zeros(16, 16), torch.zeros(16)
os.makedirs(os.path.join(root, "bert-old"), exist_ok=True)
save_file(weights, os.path.join(root, "bert-old", "model.safetensors"), metadata={"format": "pt"})

# The same GPT-2 as the first files of that kind were: no prefix, the masks of the attention beside the weights; and in halves.
weights = {k.removeprefix("transformer."): v for k, v in load_file(os.path.join(root, "gpt2", "model.safetensors")).items()}
for i in range(2):
    weights[f"h.{i}.attn.bias"] = torch.tril(torch.ones(16, 16, dtype=torch.bool)).view(1, 1, 16, 16)
os.makedirs(os.path.join(root, "gpt2-old"), exist_ok=True)
save_file({k: v.half() if v.is_floating_point() else v for k, v in weights.items()},
          os.path.join(root, "gpt2-old", "model.safetensors"), metadata={"format": "pt"})
