#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# late.py - could the late iterations of programs of programs.py have been avoided without knowledge of the future?
#
#     bench/late.py PROGRAM... [--each]
#
# An iteration is late if lookahead takes more than 1.10 times the faster one of on-demand and prefetch-on-use. Beside
# it: the blocks that an LRU would copy to the device in it, and those that the optimal offline choice would (Belady:
# the block whose next use is last), each with the same memory, from the first op on, with the blocks of freed tensors
# gone. `nobody`: the optimal choice copies more than 1.10 times what the faster strategy does; `future`: only LRU
# does; `online`: neither does. UMADVISE names the tool (default: build/plain/tools/umadvise).

import argparse
import collections
import heapq
import json
import os
import subprocess
import tempfile

import programs

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.environ.get('UMADVISE') or os.path.join(TOP, 'build', 'plain', 'tools', 'umadvise')
BLOCK, LATE, SKIPPED, ITERATIONS, NEVER = 2 << 20, 1.10, 2, 24, 1 << 60
BASELINES = ('on-demand', 'prefetch-on-use')


def read(path):
    """([(freed, blocks)] by op or free, numbers of those with which iterations begin)"""
    first, size, steps, begins, n = {}, {}, [], [], 0

    def blocks(use):
        t, off, length = (use, 0, size[use]) if isinstance(use, int) else use
        return range(first[t] + off // BLOCK, first[t] + (off + length - 1) // BLOCK + 1)

    with open(path, encoding='utf-8') as f:
        for e in map(json.loads, f):
            if e.get('ev') == 'alloc':
                first[e['t']], size[e['t']] = n, e['bytes']
                n += -(-e['bytes'] // BLOCK)
            elif e.get('ev') == 'iter':
                begins.append(len(steps))
            elif e.get('ev') == 'free':
                steps.append((True, set(blocks(e['t']))))
            elif e.get('ev') == 'op':
                steps.append((False, {b for u in e['r'] + e['w'] for b in blocks(u)}))
    return steps, begins


def copied(steps, begins, capacity, optimal):
    """Blocks copied to the device in each iteration."""
    after, following = [None] * len(steps), {}
    for i in range(len(steps) - 1, -1, -1):
        if not steps[i][0]:
            after[i] = {b: following.get(b, NEVER) for b in steps[i][1]}
            following.update(dict.fromkeys(steps[i][1], i))
    resident, seen, heap, out, now = {}, set(), [], [0] * len(begins), -1
    for i, (freed, blocks) in enumerate(steps):
        while now + 1 < len(begins) and begins[now + 1] <= i:
            now += 1
        if freed:
            for b in blocks:
                resident.pop(b, None)
            continue
        for b in blocks:
            out[now] += now >= 0 and b in seen and b not in resident
            resident[b] = after[i][b] if optimal else -i
            heapq.heappush(heap, (-resident[b], b))
        seen |= blocks
        used = []
        while len(resident) > capacity and heap:
            rank, b = heapq.heappop(heap)
            if resident.get(b) != -rank:
                continue
            if b in blocks:
                used.append((rank, b))
            else:
                del resident[b]
        for entry in used:
            heapq.heappush(heap, entry)
    return out


def play(path, profile, ratio):
    argv = [TOOL, 'simulate', path, '--profile', profile, '--oversubscribe', ratio, '--iterations', str(ITERATIONS),
            '--per-iteration', '-f', 'json', '--strategy', ','.join((*BASELINES, 'lookahead'))]
    p = subprocess.run(argv, capture_output=True, text=True, check=True)
    return {r['strategy']: r for r in json.loads(p.stdout)['runs']}


def late_ones(path, profile, ratio):
    """[(iteration, time over the faster one, which is that, class, prefetch-on-use is late, blocks)]"""
    runs = play(path, profile, ratio)
    steps, begins = read(path)
    capacity = runs['lookahead']['budget_bytes'] // BLOCK
    best, lru = (copied(steps, begins, capacity, optimal) for optimal in (True, False))
    rows = []
    for i in range(SKIPPED, ITERATIONS):
        at = {s: r['iterations'][i] for s, r in runs.items()}
        faster = min(BASELINES, key=lambda s: at[s]['ns'])
        if at['lookahead']['ns'] <= LATE * at[faster]['ns']:
            continue
        limit = LATE * (at[faster]['h2d_bytes'] // BLOCK)
        kind = 'nobody' if best[i] > limit else 'future' if lru[i] > limit else 'online'
        rows.append((i, at['lookahead']['ns'] / at[faster]['ns'], faster, kind,
                     at['prefetch-on-use']['ns'] > LATE * at[faster]['ns'],
                     [at[s]['h2d_bytes'] // BLOCK for s in (faster, 'lookahead')] + [lru[i], best[i]]))
    return rows


def main():
    p = argparse.ArgumentParser(description='Explains late iterations.')
    p.add_argument('programs', nargs='+', choices=programs.KINDS, metavar='PROGRAM')
    p.add_argument('--each', action='store_true', help='also show each late iteration')
    o = p.parse_args()
    print('| program | late | nobody | future | online | prefetch-on-use late, too |\n|---|---|---|---|---|---|')
    for kind in o.programs:
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, kind + '.umtrace')
            with open(path, 'w', encoding='utf-8') as f:
                programs.write(f, kind, ITERATIONS)
            cases = [(pr, r) for pr in ('v100', 'a100', 'h100') for r in ('1.5', '2')]
            rows = [(pr, r, *x) for pr, r in cases for x in late_ones(path, pr, r)]
        n = collections.Counter(x[5] for x in rows)
        print(f'| {kind} | {len(rows)} | {n["nobody"]} | {n["future"]} | {n["online"]} | {sum(x[6] for x in rows)} |')
        for pr, r, i, ratio, faster, why, _, blocks in rows if o.each else []:
            print(f'    {pr} {r} iteration {i}: {ratio:.2f} x {faster}, {why}; blocks in {faster} {blocks[0]}, '
                  f'lookahead {blocks[1]}, LRU {blocks[2]}, optimal {blocks[3]}')


if __name__ == '__main__':
    main()
