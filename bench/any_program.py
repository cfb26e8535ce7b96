#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""any_program.py - simulates programs of random structure, and names those that hints slow down

    bench/any_program.py UMADVISE FIRST LAST [--unmarked] [--rich] [--oversubscribe RATIO]
    bench/any_program.py --write SEED [--unmarked] [--rich] > program.umtrace

A program has weights, state and input buffers in turn, and one to four kinds of iterations, in a fixed or a random
order. A kind is a random sequence of operations on these and on tensors of its own, with or without a backward pass.
With --rich programs are those of rich_program.py.
Profile and memory follow from the seed, or memory from --oversubscribe: below 1 all tensors fit. Each line: the seed,
profile, oversubscription; the sum of the iterations from the third one on, over the faster of on-demand and
prefetch-on-use; how many of them take more than 1.1 times the faster one; page faults of an iteration in the second
half. `behind`: that sum is above 1.02.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import rich_program
from programs import Program
from rich_program import ITERATIONS

PROFILES = ('v100', 'a100', 'h100')
RATIOS = ('1.2', '1.3', '1.5', '2', '3')


class Memory:
    """The tensors that all iterations share, by kind: uses name them as (kind, number)."""

    def __init__(self, p):
        r = p.rng
        self.scale = r.choice((4, 20, 60, 200))
        self.p = p
        self.shared = {
            'weight': [p.load(self.mib(), 'weight') for _ in range(r.randint(2, 24))],
            'state': [p.load(self.mib(), 'state', 'other') for _ in range(r.randint(0, 8))],
            'grad': [p.load(self.mib(), 'grad', 'grad') for _ in range(3)],
        }
        self.rings = []
        for _ in range(r.choice((0, 0, 1, 2))):
            mib = self.mib()
            self.rings.append([p.load(mib, 'input', 'input') for _ in range(r.randint(2, 6))])

    def mib(self):
        return self.scale * self.p.rng.choice((0.05, 0.3, 1, 1, 1, 2, 4))

    def find(self, use, n, own):
        kind, number = use[:2]
        if kind == 'own':
            return own[number]
        if kind == 'input':
            return self.rings[number][n % len(self.rings[number])]
        return self.shared[kind][number]


def forward(p, m, kind, order, steps):
    """Appends a random sequence of operations. The numbers of its own tensors that are alive at its end."""
    r = p.rng
    alive, born = [], 0
    states, births = len(m.shared['state']), r.random()
    for i in range(r.randint(3, 30)):
        reads = [('weight', order[i % len(order)])] if r.random() < 0.8 else []
        if alive and r.random() < 0.8:
            reads.append(('own', r.choice(alive[-3:])))
        if states and r.random() < 0.3:
            reads.append(('state', r.randrange(states)))
        if m.rings and i < 3 and r.random() < 0.7:
            reads.append(('input', r.randrange(len(m.rings))))
        writes = []
        if r.random() < 0.3 + 0.6 * births:
            writes.append(('own', born, m.mib()))
            alive.append(born)
            born += 1
        if states and r.random() < 0.25:
            writes.append(('state', r.randrange(states)))
        if r.random() < 0.1:
            writes.append(('weight', r.randrange(len(order))))
        name = f'kind{kind}_op{r.randrange(6)}' if r.random() < 0.5 else f'op{i % 9}'
        if reads or writes:
            steps.append(('op', name, reads, writes, r.choice((0, 1, 1, 3))))
        if alive and r.random() < 0.4:
            steps.append(('free', alive.pop(r.randrange(len(alive)))))
        if states and r.random() < 0.02:
            steps.append(('host', ('state', r.randrange(states)), r.random() < 0.3))
    return alive


def make_kind(p, m, kind):
    r = p.rng
    order = list(range(len(m.shared['weight'])))
    if r.random() < 0.5:
        r.shuffle(order)
    steps = []
    alive = forward(p, m, kind, order, steps)
    backward = r.random() < 0.5
    for t in reversed(alive):
        if backward:
            w = ('weight', order[t % len(order)])
            steps.append(('op', f'backward{kind}', [('own', t), w], [w if r.random() < 0.5 else ('grad', t % 3)], 2))
        steps.append(('free', t))
    return steps


def run_kind(p, m, steps, n, scale, dropped, intensity):
    """One iteration. `scale`: of the sizes of its own tensors; `dropped`: share of operations left out."""
    own = {}
    for step in steps:
        if step[0] == 'free':
            p.free(own[step[1]])
        elif step[0] == 'host':
            t = m.find(step[1], n, own)
            p.host([t], [t] if step[2] else [])
        else:
            _, name, reads, writes, times = step
            births = [w for w in writes if len(w) == 3]
            if not births and p.rng.random() < dropped:
                continue
            for _, number, mib in births:
                own[number] = p.new(mib * scale, 'own')
            uses = [list(dict.fromkeys(m.find(u, n, own) for u in side)) for side in (reads, writes)]
            p.op(name, *uses, intensity * times)


def write(out, seed, marks):
    rng = random.Random(seed)
    p = Program(out, f'any{seed}', rng, marks)
    m = Memory(p)
    intensity = rng.choice((0, 1, 10, 60, 200))
    kinds = [make_kind(p, m, k) for k in range(rng.choice((1, 1, 1, 2, 3, 4)))]
    order = rng.choice(('turns', 'turns', 'random', 'phases', 'odd', 'odd'))
    named = rng.random() < 0.4
    sizes = rng.choice(('fixed', 'fixed', 'fixed', 'grow', 'vary'))
    dropped = rng.choice((0, 0, 0, 0, 0.01, 0.05))
    reads_loss = rng.random() < 0.3
    for n in range(ITERATIONS):
        k = {'turns': n % len(kinds), 'random': rng.randrange(len(kinds)), 'phases': n // 5 % len(kinds),
             'odd': len(kinds) - 1 if n % 5 == 4 else 0}[order]
        p.iter(f'kind{k}' if named else None)
        scale = {'fixed': 1, 'grow': 0.5 + 0.5 * n / ITERATIONS, 'vary': rng.uniform(0.7, 1)}[sizes]
        run_kind(p, m, kinds[k], n, scale, dropped, intensity)
        if reads_loss:
            p.host([m.shared['grad'][0]])


def simulate(tool, path, profile, ratio):
    """The iterations' figures, by strategy; an error's text."""
    run = subprocess.run([tool, 'simulate', path, '--profile', profile, '--oversubscribe', ratio, '--per-iteration',
                          '--iterations', str(ITERATIONS), '--format', 'json',
                          '--strategy', 'on-demand,prefetch-on-use,lookahead'], capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    return {r['strategy']: r['iterations'] for r in json.loads(run.stdout)['runs']}


def compare(tool, seed, marks, write_program, wanted):
    """One line, and whether hints slow the program down."""
    rng = random.Random(seed)
    profile, ratio = rng.choice(PROFILES), wanted or rng.choice(RATIOS)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'any.umtrace')
        with open(path, 'w', encoding='utf-8') as out:
            write_program(out, seed, marks)
        runs = simulate(tool, path, profile, ratio)
    head = f'{seed:5} {profile} {ratio:3}'
    if isinstance(runs, str):
        return f'{head} {runs}', True
    ours, *others = ([i['ns'] for i in runs[s]] for s in ('lookahead', 'on-demand', 'prefetch-on-use'))
    sum_over = sum(ours[2:]) / max(min(sum(o[2:]) for o in others), 1)
    late = sum(a > 1.1 * min(b) for a, *b in list(zip(ours, *others))[2:])
    half = runs['lookahead'][len(ours) // 2:]
    faults = sum(i['faults'] for i in half) / max(len(half), 1)
    behind = sum_over > 1.02
    return f'{head} {sum_over:6.2f} {late:3} late {faults:8.0f} faults{"  behind" if behind else ""}', behind


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--write', type=int, metavar='SEED', help='write this program')
    parser.add_argument('--unmarked', action='store_true', help='without marks of iterations')
    parser.add_argument('--rich', action='store_true', help='programs of rich_program.py')
    parser.add_argument('--oversubscribe', metavar='RATIO', help='most bytes alive at once, over those of the device')
    parser.add_argument('tool', nargs='?', metavar='UMADVISE')
    parser.add_argument('first', nargs='?', type=int, metavar='FIRST')
    parser.add_argument('last', nargs='?', type=int, metavar='LAST')
    args = parser.parse_args()
    write_program = rich_program.write if args.rich else write
    if args.write is not None:
        write_program(sys.stdout, args.write, not args.unmarked)
        return 0
    if args.last is None:
        parser.error('UMADVISE, FIRST and LAST are wanted')
    behind = 0
    for seed in range(args.first, args.last + 1):
        line, is_behind = compare(args.tool, seed, not args.unmarked, write_program, args.oversubscribe)
        print(line, flush=True)
        behind += is_behind
    print(f'{behind} of {args.last - args.first + 1} programs behind')
    return 0


if __name__ == '__main__':
    sys.exit(main())
