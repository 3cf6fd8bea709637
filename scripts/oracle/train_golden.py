#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reference losses and gradients of both transformer families, by PyTorch's autograd in float64.

Independent of the suite's own code: forward passes are written from the papers' formulas, every
gradient is autograd's. Weights, tokens and targets come from a hash that net_rig.h computes too,
so the files hold results alone. Needs torch (Debian: python3-torch); no test runs this.

    scripts/oracle/train_golden.py bench/train/testdata

writes golden_llama.bin and golden_gpt2.bin: little-endian, the loss (float64), then records of
{unit int32, name char[28], elements int32, elements * float32}. The loss is the sum over tokens,
the gradients are those of loss * (1 / tokens).
"""
import struct
import sys

import torch
import torch.nn.functional as F

MASK = (1 << 64) - 1
LLAMA = dict(family="llama", layers=2, hidden=16, heads=4, kv_heads=2, head_dim=8, ffn=24,
             vocab=53, positions=80, rope_base=10000.0, eps=1e-5, tied=False, seqs=2, seq=70)
GPT2 = dict(family="gpt2", layers=2, hidden=16, heads=2, kv_heads=2, head_dim=8, ffn=64,
            vocab=53, positions=80, rope_base=0.0, eps=1e-5, tied=True, seqs=2, seq=70)


def fnv(text):
    """FNV-1a, 64 bits."""
    h = 0xcbf29ce484222325
    for c in text.encode():
        h = (h ^ c) * 0x100000001b3 & MASK
    return h


def mix(x):
    """splitmix64's output function."""
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def weight(unit, name, *shape):
    """Multiples of powers of two that bf16 holds exactly: norms' weights in 1 +- 1/4, all others
    in +- 1/2."""
    seed = fnv(f"{unit}/{name}")
    n = 1
    for s in shape:
        n *= s
    norm = name.startswith("norm") and name.endswith(".weight")
    values = [1 + (mix(seed + i & MASK) % 65 - 32) / 128 if norm
              else (mix(seed + i & MASK) % 257 - 128) / 256 for i in range(n)]
    t = torch.tensor(values, dtype=torch.float64).reshape(shape)
    return t.requires_grad_()


def block_weights(m, unit):
    h, q, kv, f = m["hidden"], m["heads"] * m["head_dim"], m["kv_heads"] * m["head_dim"], m["ffn"]
    shapes = [("norm1", (h,)), ("attn.q", (q, h)), ("attn.k", (kv, h)), ("attn.v", (kv, h)),
              ("attn.o", (h, q)), ("norm2", (h,))]
    if m["family"] == "llama":
        shapes.append(("mlp.gate", (f, h)))
    shapes += [("mlp.up", (f, h)), ("mlp.down", (h, f))]
    w = {}
    for name, shape in shapes:
        w[name + ".weight"] = weight(unit, name + ".weight", *shape)
        if m["family"] == "gpt2":
            w[name + ".bias"] = weight(unit, name + ".bias", shape[0])
    return w


def root_weights(m):
    unit, h = m["layers"], m["hidden"]
    w = {"embed.weight": weight(unit, "embed.weight", m["vocab"], h)}
    if m["family"] == "gpt2":
        w["positions.weight"] = weight(unit, "positions.weight", m["positions"], h)
    w["norm_f.weight"] = weight(unit, "norm_f.weight", h)
    if m["family"] == "gpt2":
        w["norm_f.bias"] = weight(unit, "norm_f.bias", h)
    if not m["tied"]:
        w["head.weight"] = weight(unit, "head.weight", m["vocab"], h)
    return w


def norm(m, w, name, x):
    if m["family"] == "gpt2":
        return F.layer_norm(x, (m["hidden"],), w[name + ".weight"], w[name + ".bias"], m["eps"])
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m["eps"]) * w[name + ".weight"]


def rope(m, x):
    """Rotary positions on complex numbers: element i and i + d/2 of a head are one number."""
    d, s = m["head_dim"], x.shape[-2]
    z = torch.complex(x[..., :d // 2], x[..., d // 2:])
    freq = m["rope_base"] ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.outer(torch.arange(s, dtype=torch.float64), freq)
    z = z * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([z.real, z.imag], dim=-1)


def attention(m, w, x):
    def heads(name, n):
        y = F.linear(x, w[f"attn.{name}.weight"], w.get(f"attn.{name}.bias"))
        return y.view(m["seqs"], m["seq"], n, m["head_dim"]).transpose(1, 2)

    q, k, v = heads("q", m["heads"]), heads("k", m["kv_heads"]), heads("v", m["kv_heads"])
    if m["family"] == "llama":
        q, k = rope(m, q), rope(m, k)
    group = m["heads"] // m["kv_heads"]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    score = q @ k.transpose(-1, -2) / m["head_dim"] ** 0.5
    later = torch.ones(m["seq"], m["seq"], dtype=torch.bool).triu(1)
    p = score.masked_fill(later, float("-inf")).softmax(-1)
    o = (p @ v).transpose(1, 2).reshape(m["seqs"], m["seq"], -1)
    return F.linear(o, w["attn.o.weight"], w.get("attn.o.bias"))


def mlp(m, w, x):
    up = F.linear(x, w["mlp.up.weight"], w.get("mlp.up.bias"))
    if m["family"] == "llama":
        inner = F.silu(F.linear(x, w["mlp.gate.weight"])) * up
    else:
        inner = F.gelu(up, approximate="tanh")
    return F.linear(inner, w["mlp.down.weight"], w.get("mlp.down.bias"))


def golden(m, path):
    blocks = [block_weights(m, i) for i in range(m["layers"])]
    root = root_weights(m)
    tokens = m["seqs"] * m["seq"]
    token = torch.tensor([mix(fnv("tokens") + t & MASK) % m["vocab"] for t in range(tokens)])
    bits = [mix(fnv("targets") + t & MASK) for t in range(tokens)]
    target = torch.tensor([-1 if b % 7 == 0 else (b >> 8) % m["vocab"] for b in bits])

    x = root["embed.weight"][token].view(m["seqs"], m["seq"], -1)
    if m["family"] == "gpt2":
        x = x + root["positions.weight"][:m["seq"]]
    for w in blocks:
        x = x + attention(m, w, norm(m, w, "norm1", x))
        x = x + mlp(m, w, norm(m, w, "norm2", x))
    head = root["embed.weight"] if m["tied"] else root["head.weight"]
    logits = F.linear(norm(m, root, "norm_f", x), head).view(tokens, -1)
    loss = F.cross_entropy(logits, target, ignore_index=-1, reduction="sum")
    (loss / tokens).backward()

    with open(path, "wb") as out:
        out.write(struct.pack("<d", loss.item()))
        for unit, w in enumerate(blocks + [root]):
            for name, t in w.items():
                g = t.grad.reshape(-1).tolist()
                out.write(struct.pack(f"<i28si{len(g)}f", unit, name.encode(), len(g), *g))
    print(f"{path}: loss {loss.item():.12g} over {tokens} tokens")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: train_golden.py FOLDER")
    golden(LLAMA, sys.argv[1] + "/golden_llama.bin")
    golden(GPT2, sys.argv[1] + "/golden_gpt2.bin")


main()
