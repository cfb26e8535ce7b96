#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mixed.py - writes a program (umtrace) whose iterations are those of several recorded workloads

    bench/mixed.py ORDER TRACE TRACE... [OPTION]... > mixed.umtrace

turns      one iteration of each in turn (a GAN, distillation)
often      five of the first to one of each other
odd        each --every-th one is of another than the first (evaluation between training steps)
phases     --every of one, then as many of the next
random     each of one that is chosen at random

The workloads share no tensor. What an iteration leaves (gradients, say) lives until its own workload's next one. The
same options give the same program.
"""

import argparse
import random
import sys

import vary

ORDERS = ('turns', 'often', 'odd', 'phases', 'random')
OFTEN = 5  # iterations of the first workload to one of another


def order(o, count):
    """Which workload each iteration is of."""
    rng, others = random.Random(o.seed), 0
    for n in range(o.iterations):
        if o.order == 'turns':
            yield n % count
        elif o.order == 'phases':
            yield n // o.every % count
        elif o.order == 'random':
            yield rng.randrange(count)
        else:
            every = OFTEN + 1 if o.order == 'often' else o.every
            other = n % every == every - 1
            yield 1 + others % (count - 1) if other else 0
            others += other


def write(o, out):
    works = [vary.Workload(t) for t in o.traces]
    writers = []
    for work in works:
        writers.append(vary.Writer(out, work, not o.unmarked, writers[0] if writers else None))
    templates = [vary.Template(work, len(work.iterations) - 1) for work in works]
    for w, x in zip(writers, templates):
        w.setup([x])
    for k in order(o, len(works)):
        writers[k].iteration(templates[k])


def options(argv):
    p = argparse.ArgumentParser(description='Writes a program whose iterations are those of several workloads.')
    p.add_argument('order', choices=ORDERS)
    p.add_argument('traces', nargs='+', metavar='TRACE')
    p.add_argument('--iterations', type=int, default=24, help='(24)')
    p.add_argument('--every', type=int, default=10, help='odd: which iterations; phases: how many (10)')
    p.add_argument('--unmarked', action='store_true', help='without marks of iterations')
    p.add_argument('--seed', type=int, default=0, help='(0)')
    o = p.parse_args(argv)
    if len(o.traces) < 2:
        p.error('two traces or more are needed')
    if o.every < 1:
        p.error(f'--every {o.every}: 1 or more is needed')
    return o


if __name__ == '__main__':
    write(options(sys.argv[1:]), sys.stdout)
