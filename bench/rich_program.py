# SPDX-License-Identifier: Apache-2.0
"""rich_program.py - programs of random structure with what programs.py's kinds are made of, for any_program.py --rich

Phases of iterations. In each, a random tree of loops, branches and scopes over operations on weights, on parts of
arrays, on look-up tables, on queues of tensors and caches that grow, on one to three streams, with accesses of the CPU.
"""
import random

from programs import MIB, Program

ITERATIONS = 20
DEPTH = 3  # of loops and scopes within each other


class Data:
    """What outlives an iteration."""

    def __init__(self, p, r):
        self.scale = r.choice((10, 40, 120))
        self.p, self.r = p, r
        self.weights = [p.load(self.mib(), 'weight') for _ in range(r.randint(2, 16))]
        self.arrays = [p.load(4 * self.mib(), 'array', 'other') for _ in range(r.randint(0, 3))]
        self.tables = [p.load(6 * self.mib(), 'table') for _ in range(r.choice((0, 0, 1, 2)))]
        self.queue, self.cache = [], []
        self.longest, self.most = r.randint(2, 6), r.randint(3, 20)

    def mib(self):
        return self.scale * self.r.choice((0.02, 0.3, 1, 1, 2))

    def new(self, name):
        return self.p.new(self.mib(), name)


class Step:
    """One statement of an iteration; what is random about it is drawn once, what varies in each iteration."""

    KINDS = ('op', 'op', 'op', 'op', 'part', 'table', 'queue', 'cache', 'host',
             'loop', 'loop', 'scope', 'scope', 'branch')
    FLAT = 9  # of these have no body

    def __init__(self, data, r, depth, streams):
        kinds = self.KINDS if depth else self.KINDS[:self.FLAT]
        self.kind = r.choice(kinds)
        self.name = f'{self.kind}{r.randrange(12)}'
        self.stream = r.randrange(streams)
        self.weights = r.sample(data.weights, min(len(data.weights), r.randint(1, 3)))
        self.writes = r.random() < 0.3
        self.mib, self.seed = data.mib(), r.random()
        self.times = r.randint(2, 6)
        self.varies = r.random() < 0.15
        self.share = r.choice((0.1, 0.5, 0.9))
        inner = self.kind in ('loop', 'scope', 'branch')
        self.body = [Step(data, r, depth - 1, streams) for _ in range(r.randint(1, 5))] if inner else []

    def op(self, p, r, w, **more):
        """An operation on this step's stream; the trace has no tensor twice on one side."""
        def size(u):
            return u[2] if isinstance(u, list) else more.get('touched', {}).get(u, p.size[u])
        moved = sum(map(size, r)) + sum(map(size, w))
        if 'touched' in more:
            more['touched'] = {str(t): b for t, b in more['touched'].items()}
        stream = {'stream': self.stream} if self.stream else {}
        p.put(ev='op', name=self.name, r=r, w=w, flops=int(moved * p.intensity), bytes=moved, **stream, **more)

    def run(self, p, d, n, local):
        """`local`: tensors of the enclosing scopes, the innermost last."""
        getattr(self, 'run_' + self.kind)(p, d, n, local)

    def inside(self, p, d, n, local):
        for step in self.body:
            step.run(p, d, n, local)

    def run_op(self, p, _, n, local):
        out = local[-1:] or self.weights[:1]
        reads = list(dict.fromkeys(self.weights + local[-2:]))
        self.op(p, reads, self.weights[:1] if self.writes else out)

    def run_part(self, p, d, n, local):
        if not d.arrays:
            return self.run_op(p, d, n, local)
        t = d.arrays[int(self.seed * len(d.arrays))]
        size = max(p.size[t] // self.times, 1)
        for k in range(self.times):
            part = [t, min(k * size, p.size[t] - size), size]
            self.op(p, [part, *local[-1:]], [part] if self.writes else local[-1:])

    def run_table(self, p, d, n, local):
        if not d.tables:
            return self.run_op(p, d, n, local)
        t = d.tables[int(self.seed * len(d.tables))]
        some = max(int(p.size[t] * self.share / 20), 1)
        self.op(p, [t], [t] if self.writes else local[-1:], touched={t: some})

    def run_queue(self, p, d, n, local):
        d.queue.append(p.new(self.mib, 'queued'))
        self.op(p, self.weights[:1], d.queue[-1:])
        while len(d.queue) > d.longest:
            old = d.queue.pop(0)
            self.op(p, [old], local[-1:])
            p.free(old)

    def run_cache(self, p, d, n, local):
        if not d.cache or p.rng.random() < 0.4:
            d.cache.append(p.new(self.mib, 'cached'))
            self.op(p, self.weights[:1], d.cache[-1:])
        while len(d.cache) > d.most:
            p.free(d.cache.pop(p.rng.randrange(len(d.cache))))
        self.op(p, p.rng.sample(d.cache, min(len(d.cache), 3)), local[-1:])

    def run_loop(self, p, d, n, local):
        for _ in range(p.rng.randint(1, self.times) if self.varies else self.times):
            self.inside(p, d, n, local)

    def run_scope(self, p, d, n, local):
        t = p.new(self.mib, 'local')
        self.op(p, self.weights[:1], [t])
        self.inside(p, d, n, local + [t])
        self.op(p, [t], self.weights[:1] if self.writes else [])
        p.free(t)

    def run_branch(self, p, d, n, local):
        if p.rng.random() < self.share if self.varies else n % self.times == 0:
            self.inside(p, d, n, local)

    def run_host(self, p, _, n, local):
        t = local[-1] if local else self.weights[0]
        some = p.size[t] if self.writes else min(p.size[t], int(self.share * MIB))
        p.host([[t, 0, some]])


def write(out, seed, marks):
    rng = random.Random(seed)
    p = Program(out, f'rich{seed}', rng, marks)
    p.intensity = rng.choice((0, 1, 10, 60, 200))
    data, streams = Data(p, rng), rng.choice((1, 1, 1, 2, 3))
    phases = [[Step(data, rng, DEPTH, streams) for _ in range(rng.randint(2, 8))] for _ in range(rng.choice((1, 1, 2)))]
    length = rng.choice((1, 5, 10))
    for n in range(ITERATIONS):
        p.iter()
        for step in phases[n // length % len(phases)]:
            step.run(p, data, n, [])
