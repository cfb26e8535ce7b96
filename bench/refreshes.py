#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# refreshes.py - counts refreshes that eviction by the driver alone would need
#
#     umadvise plan TRACE --profile h100 -o x.umplan && bench/refreshes.py x.umplan
#
# The driver evicts the blocks that it served longest ago. Blocks that should stay must therefore be refreshed, by a
# prefetch that copies nothing. Prints refreshes per evicted block. Walks a plan's hints with the driver's list, four
# times; the last round counts. Blocks are counted from each slot's begin; freed and discarded blocks leave the list at
# once.

import gzip
import json
import sys
from collections import OrderedDict

BLOCK = 2 << 20


def blocks(slot, off, size):
    return [(slot, k) for k in range(off // BLOCK, (off + size + BLOCK - 1) // BLOCK)]


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    return lines[0], [[e for e in lines[1:] if e["ev"] == ev] for ev in ("slot", "op", "hint")]


class Driver:
    """Blocks in the order of service; which of them are to stay."""

    def __init__(self, room):
        self.room, self.list, self.refreshed, self.left = room, OrderedDict(), 0, 0

    def serve(self, block):
        if block in self.list:
            self.list.move_to_end(block)
        while len(self.list) >= self.room and block not in self.list and not all(self.list.values()):
            oldest = next(iter(self.list))
            if self.list[oldest]:
                self.list.move_to_end(oldest)
                self.refreshed += 1
            else:
                del self.list[oldest]
        self.list[block] = True

    def hint(self, h):
        for b in blocks(h["s"], h["off"], h["bytes"]):
            if h["kind"] == "prefetch":
                self.serve(b)
            elif h["kind"] == "discard":
                self.list.pop(b, None)
            elif b in self.list:
                self.left += self.list[b]
                self.list[b] = False


def touched(op, slots):
    for x in op["r"] + op["w"]:
        yield from blocks(*x) if isinstance(x, list) else blocks(x, 0, slots[x]["bytes"])


def main():
    for path in sys.argv[1:]:
        head, (slots, ops, hints) = read(path)
        driver = Driver(head["budget"] // BLOCK)
        freed, due = [set() for _ in range(len(ops) + 1)], [[] for _ in ops]
        for s in slots:
            if s["death"] >= 0:
                freed[s["death"]].add(s["s"])
        for h in hints:
            if h["kind"] in ("prefetch", "evict", "discard"):
                due[h["at"]].append(h)
        for _ in range(4):
            driver.refreshed = driver.left = 0
            for i, op in enumerate(ops + [None]):
                for b in [b for b in driver.list if b[0] in freed[i]] if freed[i] else []:
                    del driver.list[b]
                for h in due[i] if op else []:
                    driver.hint(h)
                for b in touched(op, slots) if op else []:
                    if not driver.list.get(b):
                        driver.serve(b)
        print(f"{path}: {driver.left} blocks leave, {driver.refreshed / max(driver.left, 1):.1f} refreshes for each")


main()
