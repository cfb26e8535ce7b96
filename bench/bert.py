#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# bert.py - writes a umtrace of an encoder in training, layer by layer as PyTorch runs it without fused attention: by
# default BERT-large, sequences of 384 tokens, 8 a step, Adam
#
#     bench/bert.py > bert_large.umtrace
#     bench/bert.py --same-dropout > bert_large_dropout.umtrace
#
# Sizes are fp32's; `flops` and `bytes` are those of the matrix products and of what an operation touches. Operations of
# the forward pass may be launched again, dropouts only where they keep their seed (--same-dropout).

import argparse
import sys

from programs import Trace

WORD = 4


class Encoder:
    """One training step: what the backward pass of an operation needs is kept until then."""

    def __init__(self, x, o):
        self.x, self.o = x, o
        self.rows = o.batch * o.tokens
        self.scores = o.batch * o.heads * o.tokens * o.tokens
        self.weights = []
        self.grads = {}

    def weight(self, name, *shape):
        n = WORD
        for side in shape:
            n *= side
        self.weights.append(self.x.alloc(n, name, "param"))
        return self.weights[-1]

    def act(self, words, name="act"):
        return self.x.alloc(words * WORD, name, "act")

    def put(self, name, r, words, again=True, flops=0):
        """An operation of the forward pass; its outputs."""
        w = [self.act(n, name) for n in words]
        self.x.op(name, r, w, flops=flops, again=again)
        return w

    def linear(self, a, w, b, n_in, n_out):
        return self.put("addmm", [a, w, b], [self.rows * n_out], flops=2 * self.rows * n_in * n_out)[0]

    def dropout(self, a, words):
        """Its output, and a mask of a byte a word."""
        return self.put("native_dropout", [a], [words, words // WORD], self.o.same_dropout)

    def norm(self, a, w, b):
        return self.put("native_layer_norm", [a, w, b], [self.rows * self.o.hidden, self.rows, self.rows])

    def back(self, name, r, words, flops=0):
        w = self.x.alloc(words * WORD, name, "act")
        self.x.op(name, r, [w], flops=flops)
        return w

    def grad(self, name, r, w, flops=0):
        self.grads[w] = self.x.alloc(self.x.size[w], "grad", "grad")
        self.x.op(name, r, [self.grads[w]], flops=flops)

    def linear_back(self, g, a, w, b, n_in, n_out):
        flops = 2 * self.rows * n_in * n_out
        below = self.back("mm", [g, w], self.rows * n_in, flops)
        self.grad("mm", [g, a], w, flops)
        self.grad("sum", [g], b)
        return below

    def norm_back(self, g, a, stats, w, b):
        below = self.x.alloc(self.x.size[a], "native_layer_norm_backward", "act")
        out = [below]
        for p in (w, b):
            self.grads[p] = self.x.alloc(self.x.size[p], "grad", "grad")
            out.append(self.grads[p])
        self.x.op("native_layer_norm_backward", [g, a, *stats, w], out)
        return below

    def make_layer(self):
        h = self.o.hidden
        p = {}
        for name, n_in, n_out in (("q", h, h), ("k", h, h), ("v", h, h), ("o", h, h), ("up", h, 4 * h),
                                  ("down", 4 * h, h)):
            p[name] = (self.weight(name, n_in, n_out), self.weight(name + ".bias", n_out), n_in, n_out)
        for name in ("norm1", "norm2"):
            p[name] = (self.weight(name, h), self.weight(name + ".bias", h))
        return p

    def forward(self, p, a):
        """What the backward pass of the layer needs, and the layer's output."""
        x, n, h = self.x, self.rows * self.o.hidden, self.o.hidden
        product = 2 * self.rows * self.o.tokens * h
        s = {"in": a}
        heads = []
        for name in "qkv":
            y = self.linear(a, *p[name])
            heads.append(self.put("clone", [y], [n])[0])
            x.free(y)
        s["q"], s["k"], s["v"] = heads
        y = self.put("bmm", [s["q"], s["k"]], [self.scores], flops=product)[0]
        z = self.put("div", [y], [self.scores])[0]
        x.free(y)
        y = self.put("add", [z, self.mask], [self.scores])[0]
        x.free(z)
        s["soft"] = self.put("_softmax", [y], [self.scores])[0]
        x.free(y)
        s["drop"], s["mask1"] = self.dropout(s["soft"], self.scores)
        y = self.put("bmm", [s["drop"], s["v"]], [n], flops=product)[0]
        s["heads"] = self.put("clone", [y], [n])[0]
        x.free(y)
        y = self.linear(s["heads"], *p["o"])
        z, s["mask2"] = self.dropout(y, n)
        x.free(y)
        s["sum1"] = self.put("add", [a, z], [n])[0]
        x.free(z)
        s["norm1"], *s["stats1"] = self.norm(s["sum1"], *p["norm1"])
        s["up"] = self.linear(s["norm1"], *p["up"])
        s["gelu"] = self.put("gelu", [s["up"]], [4 * n])[0]
        y = self.linear(s["gelu"], *p["down"])
        z, s["mask3"] = self.dropout(y, n)
        x.free(y)
        s["sum2"] = self.put("add", [s["norm1"], z], [n])[0]
        x.free(z)
        y, *s["stats2"] = self.norm(s["sum2"], *p["norm2"])
        return s, y

    def backward(self, p, s, g):
        """The gradient of the layer's input."""
        x, n, h = self.x, self.rows * self.o.hidden, self.o.hidden
        product = 2 * self.rows * self.o.tokens * h
        g2 = self.norm_back(g, s["sum2"], s["stats2"], *p["norm2"])
        x.free(g, s["sum2"], *s["stats2"])
        y = self.back("native_dropout_backward", [g2, s["mask3"]], n)
        z = self.linear_back(y, s["gelu"], *p["down"])
        x.free(y, s["mask3"], s["gelu"])
        y = self.back("gelu_backward", [z, s["up"]], 4 * n)
        x.free(z, s["up"])
        z = self.linear_back(y, s["norm1"], *p["up"])
        x.free(y, s["norm1"])
        y = self.back("add", [g2, z], n)
        x.free(g2, z)
        g1 = self.norm_back(y, s["sum1"], s["stats1"], *p["norm1"])
        x.free(y, s["sum1"], *s["stats1"])
        y = self.back("native_dropout_backward", [g1, s["mask2"]], n)
        z = self.linear_back(y, s["heads"], *p["o"])
        x.free(y, s["mask2"], s["heads"])
        gv = self.back("bmm", [s["drop"], z], n, product)
        y = self.back("bmm", [z, s["v"]], self.scores, product)
        x.free(z, s["drop"], s["v"])
        z = self.back("native_dropout_backward", [y, s["mask1"]], self.scores)
        x.free(y, s["mask1"])
        y = self.back("_softmax_backward_data", [z, s["soft"]], self.scores)
        x.free(z, s["soft"])
        z = self.back("div", [y], self.scores)
        x.free(y)
        gq = self.back("bmm", [z, s["k"]], n, product)
        gk = self.back("bmm", [z, s["q"]], n, product)
        x.free(z, s["k"], s["q"])
        for name, part in zip("qkv", (gq, gk, gv)):
            y = self.linear_back(part, s["in"], *p[name])
            x.free(part)
            z = self.back("add", [g1, y], n)
            x.free(g1, y)
            g1 = z
        return g1

    def step(self, layers, words, decoder):
        x, n = self.x, self.rows * self.o.hidden
        ids = x.alloc(self.rows * 8, "ids", "input")
        self.mask = x.alloc(self.o.batch * self.o.tokens * WORD, "attention mask", "input")
        x.op("copy_h2d", [], [ids])
        x.op("copy_h2d", [], [self.mask])
        a = self.put("embedding", [words, ids], [n])[0]
        first = a
        saved = []
        for p in layers:
            s, a = self.forward(p, a)
            saved.append(s)
        y = self.linear(a, *decoder)
        g = self.back("loss", [y, ids], self.rows * decoder[3])
        x.free(y)
        y = self.linear_back(g, a, *decoder)
        x.free(g, a)
        g = y
        for p, s in zip(reversed(layers), reversed(saved)):
            g = self.backward(p, s, g)
            if s["in"] != first:
                x.free(s["in"])
        self.grad("embedding_backward", [g, ids], words)
        x.free(g, first, ids, self.mask)

    def update(self, moments):
        for w in self.weights:
            m, v = moments[w]
            self.x.op("adam", [w, self.grads[w], m, v], [w, m, v])
            self.x.free(self.grads.pop(w))


def main():
    a = argparse.ArgumentParser(description="writes a umtrace of an encoder in training")
    a.add_argument("--layers", type=int, default=24)
    a.add_argument("--hidden", type=int, default=1024)
    a.add_argument("--heads", type=int, default=16)
    a.add_argument("--tokens", type=int, default=384, help="in a sequence")
    a.add_argument("--batch", type=int, default=8, help="sequences")
    a.add_argument("--words", type=int, default=30522, help="of the vocabulary")
    a.add_argument("--same-dropout", action="store_true", help="dropouts keep their seed and may be launched again")
    a.add_argument("--iterations", type=int, default=3)
    o = a.parse_args()
    x = Trace(sys.stdout)
    x.put(umtrace=1, source="bench/bert.py", workload="bert")
    e = Encoder(x, o)
    words = e.weight("words", o.words, o.hidden)
    layers = [e.make_layer() for _ in range(o.layers)]
    decoder = (e.weight("decoder", o.hidden, 2), e.weight("decoder.bias", 2), o.hidden, 2)
    moments = {w: (x.alloc(x.size[w], "m", "optim"), x.alloc(x.size[w], "v", "optim")) for w in e.weights}
    for w in e.weights:
        x.op("copy_h2d", [], [w])
        x.op("zeros_like", [], list(moments[w]))
    for i in range(o.iterations):
        x.put(ev="iter", n=i)
        e.step(layers, words, decoder)
        e.update(moments)


main()
