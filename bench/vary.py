#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vary.py - writes variants of a recorded workload (umtrace) whose iterations differ

    bench/vary.py VARIANT TRACE [OPTION]... > variant.umtrace

plain      the last iteration, repeated
unmarked   the same without marks of iterations
odd        the same; each --every-th iteration also reads each tensor that lives across iterations, in an op of its own
ops        the same with --percent of its ops dropped, inserted, or exchanged with the next op, at random
grow       the same; tensors born in an iteration grow from half of their size to all of it
static     the same with all of their size
buckets    the same; tensors born in an iteration have one of four sizes, at random; with --group N the sizes of the
           first N iterations come again and again, and each N iterations are marked as one
alone      one iteration (--iteration) of the trace, repeated
recorded   the recorded iterations but for the first, again and again
random     ops that each read one tensor, chosen at random, without marks

A tensor that an iteration frees and an earlier one bore is one of its name that the repetition before left. The
same options give the same variant.
"""

import argparse
import gzip
import json
import random
import sys

BUCKETS = (0.25, 0.5, 0.75, 1)
EXTRA_OPS = 4  # kinds of inserted ops


class Workload:
    """A trace: header, events of set-up, events of each iteration."""

    def __init__(self, path):
        opened = gzip.open if open(path, 'rb').read(2) == b'\x1f\x8b' else open
        with opened(path, 'rt', encoding='utf-8') as f:
            self.header = json.loads(f.readline())
            events = [json.loads(line) for line in f]
        self.setup, self.iterations = [], []
        for e in events:
            if e['ev'] == 'iter':
                self.iterations.append([])
            else:
                (self.iterations[-1] if self.iterations else self.setup).append(e)
        self.alloc = {e['t']: e for e in events if e['ev'] == 'alloc'}


def used(e):
    """Ids of the tensors that an op uses."""
    return [u if isinstance(u, int) else u[0] for u in e['r'] + e['w']]


class Template:
    """An iteration that can be repeated: which tensors it bears, takes over, and leaves to its repetition."""

    def __init__(self, work, index):
        self.events = work.iterations[index]
        born = [e['t'] for e in self.events if e['ev'] == 'alloc']
        freed = [e['t'] for e in self.events if e['ev'] == 'free']
        own = set(born)
        touched = {t for e in self.events if e['ev'] in ('op', 'host') for t in used(e)} | set(freed)
        self.leaves = [t for t in born if t not in set(freed)]
        self.taken = [t for t in freed if t not in own]
        self.before = sorted(touched - own - set(self.taken))  # used, and not freed
        self.born = own


class Numbers:
    """Tensors and iterations of the written trace so far."""

    def __init__(self):
        self.tensors = self.iterations = 0

    def tensor(self):
        self.tensors += 1
        return self.tensors - 1

    def iteration(self):
        self.iterations += 1
        return self.iterations - 1


class Writer:
    """Plays templates one after the other; tensors get new ids. It goes on with the trace of the writer `beside`."""

    def __init__(self, out, work, marks=True, beside=None):
        self.out, self.work, self.marks = out, work, marks
        self.numbers = beside.numbers if beside else Numbers()
        self.id = {}  # of the trace: ours
        self.size = {}
        self.left = {}  # by the iteration before: {name: [(id, bytes)]}
        if not beside:
            self.put(dict(work.header, source='bench/vary.py'))

    def put(self, e):
        print(json.dumps(e, separators=(',', ':')), file=self.out)

    def mark(self):
        if self.marks:
            self.put({'ev': 'iter', 'n': self.numbers.iteration()})

    def bear(self, t, scale=1.0):
        e = self.work.alloc[t]
        self.id[t] = self.numbers.tensor()
        self.size[t] = max(int(e['bytes'] * scale), 1)
        self.put(dict(e, t=self.id[t], bytes=self.size[t]))

    def free(self, t):
        self.put({'ev': 'free', 't': self.id.pop(t)})

    def setup(self, templates):
        """Set-up without its ops; what the templates take over is born there, too."""
        freed = {e['t'] for e in self.work.setup if e['ev'] == 'free'}
        wanted = {t for x in templates for t in x.before}
        for e in self.work.setup:
            if e['ev'] == 'alloc' and (e['t'] not in freed or e['t'] in wanted):
                self.bear(e['t'])
        for x in templates:
            for t in x.before:
                if t not in self.id:
                    self.bear(t)

    def take_over(self, x):
        """What the template frees is what the iteration before left under this name, else born for it."""
        for t in x.taken:
            e = self.work.alloc[t]
            same = self.left.get(e.get('name'), [])
            if same:
                at = next((k for k, (_, size) in enumerate(same) if size == e['bytes']), 0)
                self.id[t], self.size[t] = same.pop(at)
            else:
                self.bear(t)
        for same in self.left.values():
            for t, _ in same:
                self.put({'ev': 'free', 't': t})
        self.left = {}

    def scaled(self, use, scale):
        """A use of a tensor; parts move with its size."""
        if isinstance(use, int):
            return self.id[use]
        t, off, size = use
        whole = self.size[t]
        if whole == self.work.alloc[t]['bytes']:
            return [self.id[t], off, size]
        off = min(int(off * scale), whole - 1)
        return [self.id[t], off, max(min(int(size * scale), whole - off), 1)]

    def op(self, e, born, scale):
        cost = scale if any(t in born for t in used(e)) else 1
        e = dict(e, r=[self.scaled(u, scale) for u in e['r']], w=[self.scaled(u, scale) for u in e['w']])
        e.pop('relaunch', None)
        e.pop('ws', None)
        if 'touched' in e:
            e['touched'] = {str(self.id[int(t)]): min(int(n), self.size[int(t)]) for t, n in e['touched'].items()}
        for key in ('flops', 'bytes', 'ns'):
            if key in e:
                e[key] = int(e[key] * cost)
        self.put(e)

    def iteration(self, x, events=None, scale=1.0, after=()):
        """A repetition of the template. `after`: ops behind its own."""
        self.take_over(x)
        self.mark()
        for e in events if events is not None else x.events:
            if e['ev'] == 'alloc':
                self.bear(e['t'], scale)
            elif e['ev'] != 'free':
                self.op(e, x.born, scale)
            elif e['t'] in self.id:
                self.free(e['t'])
        for e in after:
            self.op(e, (), 1)
        for t in x.leaves:
            self.left.setdefault(self.work.alloc[t].get('name'), []).append((self.id.pop(t), self.size[t]))


def changed(x, rng, share):
    """The template's events with ops dropped, inserted and exchanged."""
    out, recent, i, alive = [], [], 0, set(x.before) | set(x.taken)
    events = list(x.events)
    while i < len(events):
        e, i = events[i], i + 1
        if e['ev'] == 'alloc':
            alive.add(e['t'])
        if e['ev'] == 'free':
            alive.discard(e['t'])
        if e['ev'] != 'op' or rng.random() >= share:
            out.append(e)
            recent = (recent + used(e))[-40:] if e['ev'] == 'op' else recent
            continue
        kind = rng.randrange(3)
        if kind == 1:
            known = [t for t in recent if t in alive] or used(e)
            a, b = rng.choice(known), rng.choice(known)
            extra = {'ev': 'op', 'name': f'extra{rng.randrange(EXTRA_OPS)}', 'r': sorted({a, b}), 'w': [b]}
            out += [extra, e]
        elif kind == 2 and i < len(events) and events[i]['ev'] == 'op':
            out += [events[i], e]
            i += 1
    return out


def write_random(w, x, n, rng):
    """Ops outside iterations, as many as in n repetitions."""
    alive = sorted(w.id)
    ops = sum(e['ev'] == 'op' for e in x.events)
    w.marks = False
    for _ in range(n):
        w.mark()
        for _ in range(ops):
            w.op({'ev': 'op', 'name': 'visit', 'r': [rng.choice(alive)], 'w': []}, (), 1)


def write(work, o, out):
    if o.variant == 'recorded':
        chosen = list(range(1, len(work.iterations)))
    else:
        chosen = [o.iteration if o.variant == 'alone' else len(work.iterations) - 1]
    templates = [Template(work, k) for k in chosen]
    w, x, rng = Writer(out, work, o.variant != 'unmarked'), templates[-1], random.Random(o.seed)
    across = [{'ev': 'op', 'name': 'moments', 'r': [t], 'w': []} for t in x.before]
    scales = [rng.choice(BUCKETS) for _ in range(o.group)]
    w.setup(templates)
    if o.variant == 'random':
        write_random(w, x, o.iterations, rng)
        return
    for n in range(o.iterations):
        if o.variant == 'odd':
            w.iteration(x, after=across if o.every and n % o.every == o.every - 1 else ())
        elif o.variant == 'ops':
            w.iteration(x, events=changed(x, rng, o.percent / 100))
        elif o.variant == 'grow':
            w.iteration(x, scale=0.5 + 0.5 * n / max(o.iterations - 1, 1))
        elif o.variant == 'buckets' and o.group:
            w.marks = n % o.group == 0
            w.iteration(x, scale=scales[n % o.group])
        elif o.variant == 'buckets':
            w.iteration(x, scale=o.scale or rng.choice(BUCKETS))
        else:
            w.iteration(templates[n % len(templates)])


def options(argv):
    p = argparse.ArgumentParser(description='Writes a variant of a recorded workload whose iterations differ.')
    p.add_argument('variant', choices=['plain', 'unmarked', 'odd', 'ops', 'grow', 'static', 'buckets', 'alone',
                                       'recorded', 'random'])
    p.add_argument('trace')
    p.add_argument('--iterations', type=int, default=24, help='(24)')
    p.add_argument('--every', type=int, default=10, help='odd: which iterations; 0: none (10)')
    p.add_argument('--percent', type=float, default=5, help='ops: how many change (5)')
    p.add_argument('--scale', type=float, default=0, help='buckets: this size alone')
    p.add_argument('--group', type=int, default=0, help='buckets: iterations marked as one; 0: none (0)')
    p.add_argument('--iteration', type=int, default=0, help='alone: which one (0)')
    p.add_argument('--seed', type=int, default=0, help='(0)')
    return p.parse_args(argv)


if __name__ == '__main__':
    given = options(sys.argv[1:])
    write(Workload(given.trace), given, sys.stdout)
