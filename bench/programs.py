#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""programs.py - writes workloads (umtrace) that were not recorded: how programs of many kinds use memory, by size

    bench/programs.py KIND [--iterations N] [--seed S] [--unmarked] > kind.umtrace

Solvers, factorisations, graphs, queries, training and inference, regular and not: sizes, kinds of operations and their
order are those of such programs; kernels are not modelled beyond their traffic and floating-point operations. The same
options give the same program.
"""
import argparse
import json
import random
import sys

MIB = 1 << 20


class Trace:
    """Writes events; knows the bytes of each tensor."""

    def __init__(self, out):
        self.out = out
        self.next = 0
        self.size = {}

    def put(self, **e):
        print(json.dumps(e, separators=(',', ':')), file=self.out)

    def alloc(self, size, name, role):
        t = self.next
        self.next += 1
        self.size[t] = size
        self.put(ev='alloc', t=t, bytes=size, name=name, role=role)
        return t

    def free(self, *ts):
        for t in ts:
            self.put(ev='free', t=t)

    def op(self, name, r, w, intensity=0, touched=None, flops=0, again=False):
        """intensity: floating-point operations for each byte moved, beside `flops`. again: may be launched again."""
        touched = touched or {}
        def size(u):
            return u[2] if isinstance(u, list) else touched.get(u, self.size[u])
        moved = sum(size(u) for u in r) + sum(size(u) for u in w)
        more = {'touched': {str(t): b for t, b in touched.items()}} if touched else {}
        if again:
            more['relaunch'] = w
        self.put(ev='op', name=name, r=r, w=w, flops=flops + int(moved * intensity), bytes=moved, **more)


class Program(Trace):
    """With sizes in MiB, and marks if these are wanted."""

    def __init__(self, out, kind, rng, marks):
        super().__init__(out)
        self.rng, self.marks = rng, marks
        self.n = 0
        self.put(umtrace=1, source='bench/programs.py', workload=kind)

    def iter(self, name=None):
        if self.marks:
            self.put(ev='iter', n=self.n, **({'name': name} if name else {}))
        self.n += 1

    def new(self, mib, name='x', role='act'):
        return self.alloc(max(int(mib * MIB), 256), name, role)

    def load(self, mib, name='w', role='param'):
        t = self.new(mib, name, role)
        self.op('copy_h2d', [], [t])
        return t

    def host(self, r=(), w=()):
        self.put(ev='host', name='host', r=list(r), w=list(w))


# --- solvers ---------------------------------------------------------------------------------------------------------

def multigrid(p, n):
    """V-cycles of 5 levels; every 8th iteration a full cycle."""
    levels = [300 / 8 ** k + 0.3 for k in range(5)]
    a = [p.load(7 * m, f'A{k}') for k, m in enumerate(levels)]
    x = [p.load(m, f'x{k}') for k, m in enumerate(levels)]
    b = [p.load(m, f'b{k}') for k, m in enumerate(levels)]
    r = [p.load(m, f'r{k}') for k, m in enumerate(levels)]
    def cycle(k):
        for _ in range(2):
            p.op('smooth', [a[k], b[k], x[k]], [x[k]])
        if k == 4:
            return
        p.op('residual', [a[k], b[k], x[k]], [r[k]])
        p.op('restrict', [r[k]], [b[k + 1]])
        p.op('zero', [], [x[k + 1]])
        cycle(k + 1)
        p.op('prolong', [x[k + 1], x[k]], [x[k]])
        p.op('smooth', [a[k], b[k], x[k]], [x[k]])
    for i in range(n):
        p.iter()
        if i % 8 == 7:
            for k in (3, 2, 1):
                cycle(k)
        cycle(0)


def cholesky(p, n):
    """Tiled right-looking factorisation, one panel an iteration: never repeats, shrinks."""
    tiles = 24
    t = {(i, j): p.load(8, f't{i}.{j}') for i in range(tiles) for j in range(i + 1)}
    for s in range(n):
        k = s % tiles
        p.iter()
        p.op('potrf', [t[k, k]], [t[k, k]], 200)
        for i in range(k + 1, tiles):
            p.op('trsm', [t[k, k], t[i, k]], [t[i, k]], 200)
        for i in range(k + 1, tiles):
            for j in range(k + 1, i + 1):
                p.op('gemm' if i != j else 'syrk', [t[i, k], t[j, k], t[i, j]], [t[i, j]], 200)


def gemm_ooc(p, n):
    """C = A B by tiles; the same each iteration, LRU's worst case."""
    t = 10
    a = [[p.load(8, 'A') for _ in range(t)] for _ in range(t)]
    b = [[p.load(8, 'B') for _ in range(t)] for _ in range(t)]
    c = [[p.load(8, 'C') for _ in range(t)] for _ in range(t)]
    for _ in range(n):
        p.iter()
        for i in range(t):
            for j in range(t):
                for k in range(t):
                    p.op('gemm', [a[i][k], b[k][j]] + ([c[i][j]] if k else []), [c[i][j]], 300)


def md(p, n):
    """Molecular dynamics: neighbour lists rebuilt every 10th step, written out every 7th."""
    x, v, f = (p.load(120, s) for s in 'xvf')
    types = p.load(40, 'types')
    cells = p.load(200, 'cells')
    nb = p.load(900, 'neighbours')
    for i in range(n):
        p.iter()
        p.op('integrate', [x, v, f], [x, v])
        if i % 10 == 0:
            p.op('bin', [x], [cells])
            p.op('build', [x, cells], [nb])
        p.op('force', [x, types, nb], [f], 8)
        p.op('integrate2', [v, f], [v])
        if i % 7 == 6:
            p.host(r=[x])


def amr(p, n):
    """Adaptive mesh: blocks are born and die every few steps; each step visits all in order."""
    rng = p.rng
    blocks = [(p.load(16, 'u'), p.load(16, 'v')) for _ in range(60)]
    for i in range(n):
        p.iter()
        blocks = [(b, a) for a, b in blocks]
        for k, (u, v) in enumerate(blocks):
            near = [blocks[(k + d) % len(blocks)][0] for d in (-1, 1)]
            p.op('step', [u] + near, [v], 4)
        if i % 3 == 2:
            for _ in range(4):
                if len(blocks) > 50 and rng.random() < 0.5:
                    u, v = blocks.pop(rng.randrange(len(blocks)))
                    p.free(u, v)
                else:
                    u, v = p.new(16, 'u'), p.new(16, 'v')
                    p.op('refine', [blocks[0][0]], [u])
                    p.op('refine', [blocks[0][0]], [v])
                    blocks.insert(rng.randrange(len(blocks)), (u, v))


def ode(p, n):
    """Adaptive Runge-Kutta: steps are rejected at random, then repeated."""
    rng = p.rng
    y = p.load(150, 'y')
    k = [p.load(150, f'k{i}') for i in range(6)]
    jac = p.load(500, 'coefficients')
    for _ in range(n):
        p.iter()
        for _try in range(3):
            for s in range(6):
                p.op('stage', [y, jac] + k[:s], [k[s]], 4)
            p.op('error', k + [y], [])
            if rng.random() < 0.7:
                break
        p.op('accept', k + [y], [y])


def fft_pde(p, n):
    """Spectral solver: four big fields, two of which exchange roles each step."""
    u = [p.load(256, f'u{i}') for i in range(3)]
    w = [p.load(256, f'w{i}') for i in range(3)]
    old = [p.load(256, f'o{i}') for i in range(3)]
    for _ in range(n):
        p.iter()
        for i in range(3):
            tmp = p.new(256, 'workspace', 'workspace')
            p.op('fft', [u[i]], [u[i], tmp], 4)
            p.free(tmp)
        for i in range(3):
            p.op('product', [u[(i + 1) % 3], u[(i + 2) % 3]], [w[i]])
        for i in range(3):
            p.op('advance', [u[i], w[i], old[i]], [u[i]])
        w, old = old, w


def coupling(p, n):
    """Fluid of two buffers in turn; after five of its steps, two sweeps of a solid with constant matrices."""
    now, then = ([p.load(50, f'{s}{i}') for i in range(20)] for s in 'fg')
    solid = [p.load(60, f's{i}') for i in range(12)]
    stiffness = [p.load(60, f'K{i}') for i in range(12)]
    face = p.load(8, 'interface')
    for i in range(n):
        p.iter()
        for k in range(20):
            p.op('flux', [now[k], now[(k + 1) % 20], face], [then[k]], 4)
        now, then = then, now
        if i % 5 == 4:
            p.op('transfer', [now[0], solid[0]], [face])
            for _sweep in range(2):
                for a, u in zip(stiffness, solid):
                    p.op('solve', [a, u, face], [u], 4)


# --- graphs, tables --------------------------------------------------------------------------------------------------

def bfs(p, n):
    """Breadth-first search over partitions of edges: each level visits those that its frontier needs."""
    rng = p.rng
    parts = [p.load(48, f'edges{i}') for i in range(32)]
    dist, front = p.load(64, 'distance'), p.load(16, 'frontier')
    for _ in range(n):
        p.iter()
        for level, share in enumerate((0.05, 0.3, 0.9, 1, 0.5, 0.1)):
            for i, e in enumerate(parts):
                if rng.random() < share:
                    p.op('expand', [e, front, dist], [dist])
            p.op('compact', [dist], [front])


def pagerank(p, n):
    parts = [p.load(48, f'edges{i}') for i in range(32)]
    a, b = p.load(64, 'rank'), p.load(64, 'next')
    for _ in range(n):
        p.iter()
        p.op('fill', [], [b])
        for e in parts:
            p.op('spread', [e, a, b], [b])
        a, b = b, a


def hashjoin(p, n):
    """A query an iteration over random columns of a table; results have a random size."""
    rng = p.rng
    cols = [p.load(80, f'col{i}') for i in range(24)]
    for _ in range(n):
        p.iter(f'q{rng.randrange(5)}')
        some = rng.sample(cols, rng.randint(2, 5))
        table = p.new(rng.choice((64, 128, 256)), 'hash')
        p.op('build', [some[0]], [table])
        for c in some[1:]:
            out = p.new(rng.uniform(8, 64), 'out')
            p.op('probe', [table, c], [out], touched={table: p.size[table] // 4})
            p.op('aggregate', [out], [])
            p.free(out)
        p.free(table)


def kmeans(p, n):
    chunks = [p.load(64, f'points{i}') for i in range(30)]
    labels = [p.load(4, f'labels{i}') for i in range(30)]
    cent = p.load(1, 'centroids')
    for _ in range(n):
        p.iter()
        for c, l in zip(chunks, labels):
            p.op('assign', [c, cent], [l], 30)
        for c, l in zip(chunks, labels):
            p.op('update', [c, l, cent], [cent])


def zipf(p, n):
    """Random look-ups: tensor k is used with probability ~ 1/k."""
    rng = p.rng
    ts = [p.load(24, f't{i}') for i in range(100)]
    weight = [1 / (i + 1) for i in range(100)]
    for _ in range(n):
        p.iter()
        for t in rng.choices(ts, weight, k=120):
            p.op('look', [t], [], 2)


def uniform(p, n):
    rng = p.rng
    ts = [p.load(24, f't{i}') for i in range(100)]
    for _ in range(n):
        p.iter()
        for t in rng.choices(ts, k=120):
            p.op('look', [t], [t], 2)


# --- networks --------------------------------------------------------------------------------------------------------

def weights(p, layers, mib, optim=2):
    w = [p.load(mib, f'w{i}') for i in range(layers)]
    m = [[p.load(mib, f'm{i}.{k}', 'optim') for k in range(optim)] for i in range(layers)]
    return w, m


def forward(p, x, ws, mib, keep=True, intensity=120, name='layer'):
    acts = []
    for w in ws:
        y = p.new(mib, 'act')
        p.op(name, [x, w], [y], intensity)
        if not keep and acts:
            p.free(acts.pop())
        acts.append(y)
        x = y
    return acts


def backward(p, x, ws, acts, mib, intensity=240):
    """Frees the activations; returns gradients of the weights."""
    g = p.new(mib, 'grad_out')
    p.op('loss', [acts[-1]], [g])
    grads = []
    for i in reversed(range(len(ws))):
        gw = p.new(p.size[ws[i]] / MIB, 'grad', 'grad')
        gx = p.new(mib, 'grad_in')
        p.op('backward', [g, acts[i - 1] if i else x, ws[i]], [gw, gx], intensity)
        p.free(g, acts[i])
        g = gx
        grads.append(gw)
    p.free(g)
    return grads[::-1]


def adam(p, ws, ms, grads, free=True):
    for w, m, g in zip(ws, ms, grads):
        p.op('adam', [w, g] + m, [w] + m)
        if free:
            p.free(g)


def train(p, ws, ms, mib):
    x = p.load(mib, 'batch', 'input')
    acts = forward(p, x, ws, mib)
    adam(p, ws, ms, backward(p, x, ws, acts, mib))
    p.free(x)


def rl(p, n):
    """Reinforcement learning: 8 rollouts of a policy, then two updates of policy and value."""
    pol, pm = weights(p, 10, 12)
    val, vm = weights(p, 10, 12)
    buf = [p.load(16, f'replay{i}') for i in range(40)]
    at = 0
    for _ in range(n):
        p.iter()
        for _r in range(8):
            acts = forward(p, buf[at], pol, 4, keep=False)
            at = (at + 1) % 40
            p.op('store', acts, [buf[at]])
            p.free(*acts)
        for _u in range(2):
            b = p.rng.sample(buf, 6)
            x = p.new(96, 'minibatch')
            p.op('gather', b, [x])
            for ws, ms in ((pol, pm), (val, vm)):
                acts = forward(p, x, ws, 48)
                adam(p, ws, ms, backward(p, x, ws, acts, 48))
            p.free(x)


def diffusion(p, n):
    """Image generation: text encoder once, 6 steps of a U-Net with skips, decoder; batch varies by request."""
    enc = [p.load(30, f'enc{i}') for i in range(12)]
    down = [p.load(40, f'down{i}') for i in range(8)]
    up = [p.load(50, f'up{i}') for i in range(8)]
    dec = [p.load(20, f'dec{i}') for i in range(6)]
    for _ in range(n):
        p.iter()
        batch = p.rng.choice((1, 2, 2, 4))
        t = p.load(1, 'tokens', 'input')
        emb = forward(p, t, enc, 2 * batch, keep=False)[0]
        lat = p.new(4 * batch, 'latent')
        p.op('noise', [], [lat])
        for _s in range(6):
            x, skips = lat, []
            for w in down:
                y = p.new(16 * batch, 'h')
                p.op('down', [x, w, emb], [y], 200)
                skips.append(y)
                x = y
            for w in up:
                y = p.new(16 * batch, 'h')
                s = skips.pop()
                p.op('up', [x, w, s, emb], [y], 200)
                if x != s:
                    p.free(x)
                p.free(s)
                x = y
            p.op('denoise', [x, lat], [lat])
            p.free(x)
        out = forward(p, lat, dec, 48 * batch, keep=False)
        p.host(r=out)
        p.free(*out, lat, emb, t)


def speculative(p, n):
    """Decoding by a draft model and a target model; caches grow by what was accepted and restart."""
    draft = [p.load(8, f'd{i}') for i in range(8)]
    target = [p.load(60, f't{i}') for i in range(24)]
    caches = None
    for i in range(n):
        if i % 16 == 0:
            if caches:
                p.free(*caches)
            caches = [p.new(24, 'cache') for _ in target]
        p.iter()
        for _k in range(p.rng.randint(2, 6)):
            x = p.new(0.1, 'x')
            p.op('fill', [], [x])
            a = forward(p, x, draft, 0.1, keep=False, intensity=2)
            p.free(x, *a)
        x = p.new(0.5, 'x')
        p.op('fill', [], [x])
        for w, c in zip(target, caches):
            p.op('attend', [x, w, c], [x, c], 2, touched={c: min(p.size[c], (i % 16 + 1) * MIB * 3 // 2)})
        p.free(x)


def serving(p, n):
    """Continuous batching: requests come and go, each with a cache of its own."""
    rng = p.rng
    ws = [p.load(30, f'w{i}') for i in range(32)]
    live = []
    for _ in range(n):
        p.iter()
        while len(live) < 6 or (len(live) < 12 and rng.random() < 0.4):
            live.append([[p.new(rng.choice((2, 4, 8)), 'kv') for _ in range(8)], rng.randint(2, 10)])
            for c in live[-1][0]:
                p.op('prefill', [ws[0]], [c], 60)
        x = p.new(1, 'x')
        p.op('embed', [], [x])
        for i, w in enumerate(ws):
            p.op('linear', [x, w], [x], 4)
            if i % 4 == 3:
                p.op('attend', [x] + [r[0][i // 4] for r in live], [x], 2)
        p.free(x)
        for r in live:
            r[1] -= 1
        for r in [r for r in live if r[1] == 0]:
            p.free(*r[0])
            live.remove(r)


def depth(p, n):
    """Stochastic depth: each layer is left out with probability 0.2."""
    ws, ms = weights(p, 24, 10)
    for _ in range(n):
        p.iter()
        some = [i for i in range(24) if p.rng.random() > 0.2 or i == 0]
        train(p, [ws[i] for i in some], [ms[i] for i in some], 40)


def moco(p, n):
    """Contrastive learning: two encoders, one by gradient, one by momentum; a queue of keys."""
    q, qm = weights(p, 12, 16, 1)
    k, _ = weights(p, 12, 16, 0)
    queue = [p.load(8, f'queue{i}') for i in range(16)]
    for i in range(n):
        p.iter()
        x = p.load(40, 'batch', 'input')
        ka = forward(p, x, k, 40, keep=False)
        acts = forward(p, x, q, 40)
        p.op('contrast', [acts[-1], ka[0]] + queue, [acts[-1]])
        p.op('enqueue', ka, [queue[i % 16]])
        p.free(*ka)
        adam(p, q, qm, backward(p, x, q, acts, 40))
        for a, b in zip(k, q):
            p.op('momentum', [a, b], [a])
        p.free(x)


def curriculum(p, n):
    """The sequence length grows every 5th iteration."""
    ws, ms = weights(p, 16, 12)
    for i in range(n):
        p.iter()
        train(p, ws, ms, 16 + 8 * (i // 5))


def accumulate(p, n):
    """2 to 5 micro-batches, then a step."""
    ws, ms = weights(p, 16, 16)
    for _ in range(n):
        p.iter()
        grads = None
        for _k in range(p.rng.randint(2, 5)):
            x = p.load(32, 'batch', 'input')
            acts = forward(p, x, ws, 32)
            more = backward(p, x, ws, acts, 32)
            p.free(x)
            if grads:
                for a, b in zip(grads, more):
                    p.op('add', [a, b], [a])
                    p.free(b)
            else:
                grads = more
        adam(p, ws, ms, grads)


def epochs(p, n):
    """Epochs of 6 steps with an evaluation of 3 and a checkpoint."""
    ws, ms = weights(p, 16, 20)
    for i in range(n):
        p.iter('eval' if i % 10 > 5 else 'train')
        if i % 10 <= 5:
            train(p, ws, ms, 48)
        elif i % 10 < 9:
            x = p.load(96, 'batch', 'input')
            p.free(x, *forward(p, x, ws, 96, keep=False))
        else:
            p.host(r=ws)


def adapters(p, n):
    """Each batch uses one of 6 sets of adapters over one base model."""
    base = [p.load(40, f'b{i}') for i in range(24)]
    sets = [weights(p, 24, 4) for _ in range(6)]
    for _ in range(n):
        ws, ms = sets[p.rng.randrange(6)]
        p.iter()
        x = p.load(16, 'batch', 'input')
        acts, h = [], x
        for b, w in zip(base, ws):
            y = p.new(16, 'act')
            p.op('lora', [h, b, w], [y], 200)
            acts.append(y)
            h = y
        g = p.new(16, 'g')
        p.op('loss', [h], [g])
        for i in reversed(range(24)):
            gw, gx = p.new(4, 'gw', 'grad'), p.new(16, 'gx')
            p.op('lora_backward', [g, acts[i], base[i], ws[i]], [gw, gx], 300)
            p.free(g, acts[i])
            p.op('adam', [ws[i], gw] + ms[i], [ws[i]] + ms[i])
            p.free(gw)
            g = gx
        p.free(g, x)


def progressive(p, n):
    """Growing network: a layer is added every 6th iteration."""
    ws, ms = weights(p, 8, 20)
    for i in range(n):
        if i % 6 == 5:
            ws.append(p.load(20, 'w'))
            ms.append([p.load(20, 'm', 'optim') for _ in range(2)])
        p.iter()
        train(p, ws, ms, 40)


def exits(p, n):
    """Early exit: inference ends at a random layer."""
    ws = [p.load(40, f'w{i}') for i in range(40)]
    for _ in range(n):
        p.iter()
        for _q in range(4):
            x = p.load(4, 'x', 'input')
            p.free(x, *forward(p, x, ws[:p.rng.choice((10, 20, 30, 40))], 8, keep=False, intensity=20))


def huge(p, n):
    """One op of four uses more than the budget."""
    ts = [p.load(100, f't{i}') for i in range(12)]
    for _ in range(n):
        p.iter()
        for i in range(0, 12, 3):
            p.op('some', ts[i:i + 3], [ts[i]], 4)
        p.op('all', ts, [ts[0]], 4)


def giants(p, n):
    """Each op uses more than the budget."""
    a, b, c = (p.load(500, s) for s in 'abc')
    for _ in range(n):
        p.iter()
        p.op('ab', [a, b], [c], 4)
        p.op('bc', [b, c], [a], 4)
        p.op('ca', [c, a], [b], 4)


def triad(p, n):
    """Three arrays, each op uses all of them."""
    a, b, c = (p.load(400, s) for s in 'abc')
    for _ in range(n):
        p.iter()
        for _k in range(4):
            p.op('triad', [b, c], [a])


def slabs(p, n):
    """Ops on parts of two large arrays, alternately from the front and from the back."""
    a, b = p.load(1000, 'a'), p.load(1000, 'b')
    step = 50 * MIB
    for i in range(n):
        p.iter()
        order = range(20) if i % 2 == 0 else reversed(range(20))
        for k in order:
            p.op('sweep', [[a, k * step, step], [b, k * step, step]], [[b, k * step, step]])


def table(p, n):
    """Look-ups in tables by a Zipf law, then dense layers."""
    tables = [p.load(100, f'table{i}') for i in range(12)]
    ws, ms = weights(p, 6, 8)
    for _ in range(n):
        p.iter()
        outs = []
        for t in tables:
            if p.rng.random() < 0.8:
                o = p.new(8, 'look-up')
                p.op('embed', [t], [o], touched={t: p.rng.choice((2, 8, 24)) * MIB})
                outs.append((t, o))
        train(p, ws, ms, 16)
        for t, o in outs:
            p.op('update', [t, o], [t], touched={t: 8 * MIB})
            p.free(o)


def hyper(p, n):
    """Several small models trained in turn, in random order."""
    models = [weights(p, 6, 10) for _ in range(8)]
    for _ in range(n):
        ws, ms = models[p.rng.randrange(8)]
        p.iter()
        train(p, ws, ms, 30)


def roundrobin(p, n):
    """Several models, in a fixed order."""
    models = [weights(p, 6, 10) for _ in range(5)]
    for i in range(n):
        ws, ms = models[i % 5]
        p.iter()
        train(p, ws, ms, 30)


def inner(p, n):
    """Newton: an inner solver of a random number of steps in each iteration."""
    a = [p.load(60, f'A{i}') for i in range(16)]
    x, r, d, q = (p.load(40, s) for s in 'xrdq')
    for _ in range(n):
        p.iter()
        for b in a:
            p.op('assemble', [x], [b], 8)
        for _k in range(p.rng.randint(3, 7)):
            for b in a:
                p.op('spmv', [b, d], [q])
            p.op('dot', [d, q], [])
            p.op('axpy', [x, d], [x])
            p.op('axpy', [r, q], [r])
            p.op('xpay', [r, d], [d])
        p.op('newton', [x, r], [x])


def inputs(p, n):
    """Training from 4 input buffers in turn, each overwritten by the batch that it holds next."""
    ws, ms = weights(p, 12, 20)
    bufs = [p.load(64, f'buffer{i}', 'input') for i in range(4)]
    for i in range(n):
        p.iter()
        x = bufs[i % 4]
        p.op('copy_h2d', [], [x])
        acts = forward(p, x, ws, 40)
        adam(p, ws, ms, backward(p, x, ws, acts, 40))


def batches(p, n):
    """Training on 12 batches of a data set that stays in memory, in random order."""
    ws, ms = weights(p, 12, 20)
    data = [p.load(64, f'batch{i}', 'input') for i in range(12)]
    for _ in range(n):
        p.iter()
        x = data[p.rng.randrange(12)]
        acts = forward(p, x, ws, 40)
        adam(p, ws, ms, backward(p, x, ws, acts, 40))


def window(p, n):
    """Video: each iteration overwrites the oldest of 12 frames, aligns the latest 8, and shows the result."""
    frames = [p.load(64, f'frame{i}') for i in range(12)]
    ws = [p.load(20, f'w{i}') for i in range(10)]
    for i in range(n):
        p.iter()
        p.op('copy_h2d', [], [frames[i % 12]])
        y = p.new(64, 'aligned')
        p.op('align', [frames[(i - k) % 12] for k in range(8)], [y], 20)
        for w in ws:
            p.op('filter', [y, w], [y], 40)
        p.host(r=[y])
        p.free(y)


def critic(p, n):
    """Adversarial training: five steps of a critic, then one of a generator, whose forward pass begins alike."""
    g, gm = weights(p, 12, 20)
    d, dm = weights(p, 12, 14)
    for i in range(n):
        p.iter()
        z = p.load(8, 'noise', 'input')
        if i % 6 < 5:
            fake = forward(p, z, g, 24, keep=False)
            real = p.load(24, 'real', 'input')
            for x in (real, fake[0]):
                acts = forward(p, x, d, 24)
                adam(p, d, dm, backward(p, x, d, acts, 24))
            p.free(z, real, *fake)
            continue
        made = forward(p, z, g, 24)
        acts = forward(p, made[-1], d, 24)
        p.free(*backward(p, made[-1], d, acts, 24))
        adam(p, g, gm, backward(p, z, g, made, 24))
        p.free(z)


def supernet(p, n):
    """Architecture search: 20 layers, each with one of 4 candidates, of which each iteration draws one."""
    layers = [[weights(p, 1, 8, 1) for _ in range(4)] for _ in range(20)]
    for _ in range(n):
        path = [p.rng.choice(candidates) for candidates in layers]
        p.iter()
        train(p, [w[0] for w, _ in path], [m[0] for _, m in path], 32)


def bank(p, n):
    """Training that reads 8 of the 40 tensors of a memory bank, drawn anew, and overwrites one of them."""
    ws, ms = weights(p, 16, 16)
    kept = [p.load(8, f'bank{i}') for i in range(40)]
    for _ in range(n):
        p.iter()
        x = p.load(40, 'batch', 'input')
        acts = forward(p, x, ws, 40)
        drawn = p.rng.sample(kept, 8)
        for t in drawn:
            p.op('compare', [acts[-1], t], [acts[-1]], 20)
        p.op('remember', [acts[-1]], [drawn[0]])
        adam(p, ws, ms, backward(p, x, ws, acts, 40))
        p.free(x)


KINDS = {name: f for name, f in list(globals().items())
         if getattr(f, '__code__', None) and f.__code__.co_varnames[:f.__code__.co_argcount] == ('p', 'n')}
PERIODIC = ('multigrid', 'gemm_ooc', 'amr', 'ode', 'fft_pde', 'pagerank', 'kmeans', 'serving', 'curriculum', 'epochs',
            'adapters', 'huge', 'giants', 'triad', 'slabs', 'roundrobin', 'inner',
            'coupling')  # iterations are found without marks


def write(out, kind, iterations, seed=0, marks=True):
    KINDS[kind](Program(out, kind, random.Random(seed), marks), iterations)


def main():
    a = argparse.ArgumentParser(description='Writes workloads that were not recorded.')
    a.add_argument('kind', choices=[*KINDS, 'list'], help='a program, or list: their names')
    a.add_argument('--iterations', type=int, default=24, help='(24)')
    a.add_argument('--seed', type=int, default=0, help='of what is random (0)')
    a.add_argument('--unmarked', action='store_true', help='without marks of iterations')
    o = a.parse_args()
    if o.kind == 'list':
        print('\n'.join(KINDS))
    else:
        write(sys.stdout, o.kind, o.iterations, o.seed, not o.unmarked)


if __name__ == '__main__':
    main()
