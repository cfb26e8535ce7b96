#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch_model.py - trains a language model with PyTorch, and knows of no library

    bench/pytorch_model.py gpt|llama fp32|bf16 [STEPS]

gpt: 4 layers of width 512, LayerNorm, GELU. llama: 4 layers of width 512, RMSNorm, rotary positions, 8 heads that share
4 keys, SiLU. 8 sequences of 256 tokens, AdamW. bf16: autocast. The last line has the times of the steps in ms, by
events of CUDA.
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 4096, 512, 8, 4, 256, 8


class Gpt(nn.Module):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_f = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
            return x + self.feed(self.norm_f(x))

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Gpt.Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Llama(nn.Module):
    KEYS, FEED = 4, 1376

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDTH))

        def forward(self, x):
            f = x.float()
            return self.weight * (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            narrow = WIDTH // HEADS * Llama.KEYS
            self.norm_a, self.norm_f = Llama.Norm(), Llama.Norm()
            self.q, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
            self.k, self.v = nn.Linear(WIDTH, narrow, bias=False), nn.Linear(WIDTH, narrow, bias=False)
            self.gate, self.up = nn.Linear(WIDTH, Llama.FEED, bias=False), nn.Linear(WIDTH, Llama.FEED, bias=False)
            self.down = nn.Linear(Llama.FEED, WIDTH, bias=False)

        def forward(self, x, cos, sin):
            def heads(y):
                return y.view(*y.shape[:2], -1, WIDTH // HEADS).transpose(1, 2)

            def turn(y):
                low, high = y.chunk(2, -1)
                return y * cos + torch.cat((-high, low), -1) * sin

            def share(y):
                return y.repeat_interleave(HEADS // Llama.KEYS, 1)

            y = self.norm_a(x)
            q, k, v = turn(heads(self.q(y))), turn(heads(self.k(y))), heads(self.v(y))
            a = F.scaled_dot_product_attention(q, share(k), share(v), is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(x.shape))
            y = self.norm_f(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def __init__(self):
        super().__init__()
        size = WIDTH // HEADS
        angle = torch.outer(torch.arange(LENGTH).float(), 10000 ** (-torch.arange(0, size, 2) / size)).repeat(1, 2)
        self.register_buffer('cos', angle.cos())
        self.register_buffer('sin', angle.sin())
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Llama.Block() for _ in range(LAYERS))
        self.norm, self.head = Llama.Norm(), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, self.cos.type_as(x), self.sin.type_as(x))
        return self.head(self.norm(x))


def main():
    kind, dtype = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    torch.manual_seed(0)
    model = {'gpt': Gpt, 'llama': Llama}[kind]().to('cuda')
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for step in range(steps):
        batch = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).to('cuda')
        with torch.autocast('cuda', torch.bfloat16, enabled=dtype == 'bf16'):
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        marks[step + 1].record()
    torch.cuda.synchronize()
    print('steps', *(f'{a.elapsed_time(b):.3f}' for a, b in zip(marks, marks[1:])))


main()
