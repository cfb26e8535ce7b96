#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pytorch_model.py - trains or uses a small model with PyTorch, and knows of no library

    bench/pytorch_model.py PROGRAM fp32|bf16 [STEPS]

gpt: a language model of 4 layers of width 512, LayerNorm, GELU. llama: the same with RMSNorm, rotary positions, 8 heads
that share 4 keys, SiLU. accumulate: llama, 4 batches for each step, and an evaluation every 5 steps. hf: the same with
the Llama of Hugging Face. lora: llama, frozen, with adapters of rank 8. generate: llama continues prompts by a cache
of keys and values that grows. vit, mixer: classify images by patches, without convolutions. Batches are 8 sequences of
256 tokens, or 16 images; AdamW. bf16: autocast. The last line has the times of the steps in ms, by events of CUDA.
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 4096, 512, 8, 4, 256, 8
ACCUMULATED, EVALUATED = 4, 5            # batches of a step, steps between evaluations
PROMPTS, PROMPT, GENERATED = 64, 128, 16
IMAGES, SIDE, PATCH, CLASSES = 16, 224, 16, 1000
RANK = 8


def feed(width, inner):
    return nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))


class Gpt(nn.Module):
    class Block(nn.Module):
        def __init__(self, causal=True):
            super().__init__()
            self.causal = causal
            self.norm_a, self.norm_f = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.feed = feed(WIDTH, 4 * WIDTH)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
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

        def forward(self, x, cos, sin, cache):
            def heads(y):
                return y.view(*y.shape[:2], -1, WIDTH // HEADS).transpose(1, 2)

            def turn(y):
                low, high = y.chunk(2, -1)
                return y * cos + torch.cat((-high, low), -1) * sin

            def share(y):
                return y.repeat_interleave(HEADS // Llama.KEYS, 1)

            y = self.norm_a(x)
            q, k, v = turn(heads(self.q(y))), turn(heads(self.k(y))), heads(self.v(y))
            if cache is not None:
                if cache:
                    k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
                cache[:] = k, v
            a = F.scaled_dot_product_attention(q, share(k), share(v), is_causal=x.shape[1] > 1)
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

    def forward(self, tokens, caches=(), start=0):
        x = self.tokens(tokens)
        cos, sin = (y[start:start + tokens.shape[1]].type_as(x) for y in (self.cos, self.sin))
        for block, cache in zip(self.blocks, caches or [None] * LAYERS):
            x = block(x, cos, sin, cache)
        return self.head(self.norm(x))


class Lora(nn.Module):
    """A frozen linear layer and its adapter."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.low = nn.Linear(layer.in_features, RANK, bias=False)
        self.high = nn.Linear(RANK, layer.out_features, bias=False)
        nn.init.zeros_(self.high.weight)

    def forward(self, x):
        return self.layer(x) + self.high(self.low(x))


def adapted():
    model = Llama().requires_grad_(False)
    for block in model.blocks:
        block.q, block.v = Lora(block.q), Lora(block.v)
    return model


class HuggingFace(nn.Module):
    def __init__(self):
        from transformers import LlamaConfig, LlamaForCausalLM
        super().__init__()
        self.model = LlamaForCausalLM(LlamaConfig(
            vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
            num_key_value_heads=Llama.KEYS, intermediate_size=Llama.FEED, max_position_embeddings=LENGTH))

    def forward(self, tokens):
        return self.model(tokens, use_cache=False).logits


class Images(nn.Module):
    """Classifies images by blocks on their patches."""

    def __init__(self, block):
        super().__init__()
        self.patches = nn.Linear(3 * PATCH * PATCH, WIDTH)
        self.places = nn.Parameter(torch.zeros((SIDE // PATCH) ** 2, WIDTH))
        self.blocks = nn.Sequential(*(block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, images):
        x = images.unfold(2, PATCH, PATCH).unfold(3, PATCH, PATCH).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        return self.head(self.norm(self.blocks(self.patches(x) + self.places)).mean(1))


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_t, self.norm_c = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.tokens, self.channels = feed((SIDE // PATCH) ** 2, WIDTH // 2), feed(WIDTH, 4 * WIDTH)

    def forward(self, x):
        x = x + self.tokens(self.norm_t(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm_c(x))


def predict(model):
    """The loss of a batch of text."""
    batch = torch.randint(VOCABULARY, (BATCH, LENGTH + 1)).to('cuda')
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def classify(model):
    """The loss of a batch of images."""
    images, labels = torch.randn(IMAGES, 3, SIDE, SIDE).to('cuda'), torch.randint(CLASSES, (IMAGES,)).to('cuda')
    return F.cross_entropy(model(images), labels)


def training(model, autocast, loss, batches=1, evaluated=0):
    """A step of training."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)

    def step(n):
        for _ in range(batches):
            with autocast:
                part = loss(model) / batches
            part.backward()
        optimizer.step()
        optimizer.zero_grad()
        if evaluated and n % evaluated == evaluated - 1:
            with torch.no_grad(), autocast:
                part = loss(model)
        return part
    return step


def generation(model, autocast):
    """A step continues a batch of prompts."""
    @torch.no_grad()
    def step(_):
        tokens, caches = torch.randint(VOCABULARY, (PROMPTS, PROMPT)).to('cuda'), [[] for _ in range(LAYERS)]
        for n in range(GENERATED):
            with autocast:
                logits = model(tokens, caches, PROMPT + n - 1 if n else 0)
            tokens = logits[:, -1:].argmax(-1)
        return tokens
    return step


PROGRAMS = {
    'gpt': (Gpt, training, predict),
    'llama': (Llama, training, predict),
    'accumulate': (Llama, training, predict, ACCUMULATED, EVALUATED),
    'hf': (HuggingFace, training, predict, ACCUMULATED, EVALUATED),
    'lora': (adapted, training, predict),
    'generate': (Llama, generation),
    'vit': (lambda: Images(lambda: Gpt.Block(causal=False)), training, classify),
    'mixer': (lambda: Images(Mixer), training, classify),
}


def main():
    kind, dtype = sys.argv[1:3]
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    torch.manual_seed(0)
    create, program, *settings = PROGRAMS[kind]
    autocast = torch.autocast('cuda', torch.bfloat16, enabled=dtype == 'bf16')
    step = program(create().to('cuda'), autocast, *settings)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    marks[0].record()
    for n in range(steps):
        step(n)
        marks[n + 1].record()
    torch.cuda.synchronize()
    print('steps', *(f'{a.elapsed_time(b):.3f}' for a, b in zip(marks, marks[1:])))


if __name__ == '__main__':
    main()
