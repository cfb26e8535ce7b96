#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""umplan_replay.py [--predicted] PLAN... - carries out a umplan by its definition (doc/umplan.md), apart from the library

For each file one line: the steady iteration's nanoseconds, bytes copied in and out, most bytes resident; or the first
thing that makes the plan unsound (exit status 1). With --predicted the header's predicted_ns and in_core_ns must agree
within one in a thousand. Written from the format's description alone, so that the library's own
proof has something to be measured against: ranges are split as they come, the queues are Python's, nothing is shared.
"""

import bisect
import gzip
import json
import sys
from collections import deque

TRANSIENT, UNMANAGED = 2, 8
CYCLES = 8

# What is known of a range: where its usable bytes are, and what they mean.
AWAY, COMING, HERE, LEAVING = range(4)
EMPTY, LIVE, LOST = range(3)  # never written (or declared dead); holds content; held content that a hint threw away


class Unsound(Exception):
    pass


class Ranges:
    """A slot's bytes: starts[i] is where the range with the value vals[i] begins; values are [where, content, fresh]."""

    def __init__(self, size, val):
        self.size = size
        self.starts, self.vals = [0], [val]

    def cut(self, at):
        if at >= self.size:
            return len(self.starts)
        i = bisect.bisect_right(self.starts, at) - 1
        if self.starts[i] != at:
            i += 1
            self.starts.insert(i, at)
            self.vals.insert(i, self.vals[i - 1])
        return i

    def each(self, lo, hi):
        """(index, bytes, value) of the ranges in [lo, hi), which is cut out first."""
        i, j = self.cut(lo), self.cut(hi)
        # Cutting at hi can only have added behind i.
        for k in range(i, j):
            end = self.starts[k + 1] if k + 1 < len(self.starts) else self.size
            yield k, end - self.starts[k], self.vals[k]

    def total(self, where):
        return sum(n for _, n, v in self.each(0, self.size) if v[0] == where)

    def frozen(self):
        out = []
        for s, v in zip(self.starts, self.vals):
            if not out or out[-1][1] != v:
                out.append((s, v))
        return tuple(out)


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as f:
        lines = [json.loads(line) for line in f if line.strip()]
    head = lines[0]
    if head.get("umplan") != 1:
        raise Unsound("not a umplan of version 1")
    slots = [e for e in lines[1:] if e["ev"] == "slot"]
    ops = [e for e in lines[1:] if e["ev"] == "op"]
    hints = [e for e in lines[1:] if e["ev"] == "hint"]
    n = len(ops)
    for i, s in enumerate(slots):
        stays = s["death"] < 0 if s["birth"] < 0 else 0 <= s["death"] <= s["birth"]
        s.setdefault("flags", 0)
        if "carry" not in s:
            s["carry"] = i if stays else None
        s["first"] = s["birth"] < 0 or s["death"] <= s["birth"]
        s["last"] = (s["death"] < 0 or s["death"] >= n) if s["birth"] < 0 else s["death"] <= s["birth"] or s["death"] >= n
        if s["birth"] >= 0 and s["death"] < 0:
            raise Unsound(f"slot {i} is born and never freed")
    return head, slots, ops, hints


def uses_of(op, slots):
    """{(slot, lo, hi): [reads, writes]}"""
    out = {}
    for key, k in (("r", 0), ("w", 1)):
        for x in op.get(key, []):
            s, off, size = x if isinstance(x, list) else (x, 0, slots[x]["bytes"])
            out.setdefault((s, off, off + size), [False, False])[k] = True
    return out


def far_of(head, hints):
    """{slot: (lo, hi)} of what stays on the host and is reached from there."""
    said = {"preferred_location": {}, "accessed_by": {}}
    for h in hints:
        if h["kind"] == "advise" and h["advice"] in said:
            said[h["advice"]][h["s"]] = (h["off"], h["off"] + h["bytes"])
    out = {}
    for s, (lo, hi) in said["accessed_by"].items():
        a, b = said["preferred_location"].get(s, (0, 0))
        if head.get("remote") and max(lo, a) < min(hi, b):
            out[s] = (max(lo, a), min(hi, b))
    return out


class Replay:
    def __init__(self, head, slots, ops, hints):
        self.far, self.remote = far_of(head, hints), head.get("remote")
        self.budget, self.h2d, self.d2h = head["budget"], head["h2d"], head["d2h"]
        self.slots, self.ops, self.n = slots, ops, len(ops)
        self.uses = [uses_of(o, slots) for o in ops]
        self.dead = [[x[0] if isinstance(x, list) else x for x in o.get("dead", [])] for o in ops]
        self.successor = {s["carry"]: i for i, s in enumerate(slots) if s["carry"] is not None}
        self.check_rules(hints)
        self.hints = hints
        self.discards = {}  # by the op that they wait for
        for h in hints:
            if h["kind"] == "discard":
                self.discards.setdefault(h["wait"], []).append(h)
        self.frees = [[] for _ in range(self.n + 1)]
        for i, s in enumerate(slots):
            if 0 <= s["death"] < self.n:
                self.frees[s["death"]].append(i)
            if s["last"] and i not in self.successor:
                self.frees[self.n].append(i)
        self.mem = [Ranges(s["bytes"], self.at_first(s)) for s in slots]
        # What a transient slot held does not count, not even before the first iteration.
        self.room = self.budget
        self.now = 0
        self.cycle = 0
        self.queue = {"prefetch": deque(), "evict": deque()}
        self.busy = {"prefetch": None, "evict": None}  # (end, slot, [(lo, hi)])

    @staticmethod
    def at_first(s):
        if s["first"] and not s["flags"] & TRANSIENT:
            return (AWAY, LIVE, True)
        return (AWAY, EMPTY, False)

    def alive(self, s, at):
        if s["birth"] < 0:
            return s["death"] < 0 or at < s["death"]
        if s["birth"] < s["death"]:
            return s["birth"] <= at < s["death"]
        return at >= s["birth"] or at < s["death"]

    def check_rules(self, hints):
        last = 0
        for i, h in enumerate(hints):
            at, after = h["at"], h["after"]
            if not last <= at < self.n:
                raise Unsound(f"hint {i}: at {at} out of order")
            last = at
            if not -1 <= after < at:
                raise Unsound(f"hint {i}: after {after}, at {at}")
            if h["kind"] == "advise":
                self.check_advice(h)
                continue
            if h["kind"] not in ("prefetch", "evict", "discard"):
                raise Unsound(f"hint {i}: kind {h['kind']}")
            s = self.slots[h["s"]]
            if h["bytes"] <= 0 or h["off"] < 0 or h["off"] + h["bytes"] > s["bytes"]:
                raise Unsound(f"hint {i}: out of slot {h['s']}")
            if s["flags"] & UNMANAGED or not self.alive(s, at):
                raise Unsound(f"hint {i}: slot {h['s']} is not alive")
            # A slot whose tensor replaces one of the iteration before: not before that one is gone.
            h["wait"] = after
            if s["birth"] >= 0 and s["death"] <= s["birth"] <= at and after < s["death"] - 1:
                if h["kind"] != "prefetch":
                    raise Unsound(f"hint {i}: slot {h['s']} is not alive")
                h["wait"] = s["death"] - 1

    def check_advice(self, h):
        for op, uses in zip(self.ops, self.uses):
            for (s, lo, hi), (_, writes) in uses.items():
                if s != h["s"] or lo >= h["off"] + h["bytes"] or h["off"] >= hi:
                    continue
                if h["advice"] == "read_mostly" and writes:
                    raise Unsound(f"slot {s} is read mostly, and written")
                if s in self.far and self.looked(op, s, lo, hi) >= hi - lo and self.common(s, lo, hi):
                    raise Unsound(f"slot {s} stays on the host, and is used as a whole")

    def common(self, s, lo, hi):
        a, b = self.far.get(s, (0, 0))
        return max(0, min(hi, b) - max(lo, a))

    def near(self, s, lo, hi):
        """The parts of a range that must be on the device."""
        a, b = self.far.get(s, (hi, hi))
        return [(x, y) for x, y in ((lo, min(hi, a)), (max(lo, b), hi)) if x < y]

    @staticmethod
    def looked(op, s, lo, hi):
        return min(op.get("touched", {}).get(str(s), hi - lo), hi - lo)

    def duration(self, op, uses):
        there = sum(self.looked(op, s, lo, hi) * self.common(s, lo, hi) / (hi - lo) for s, lo, hi in uses)
        return max(op["ns"], int(there * 1e9 / self.remote + 0.5)) if there else op["ns"]

    # --- hints ---

    def name_now(self, h, cycle):
        """The slot that the hint's tensor is now, None if it was freed meanwhile."""
        s, at = h["s"], h["at"]
        for c in range(cycle, self.cycle + 1):
            t = self.slots[s]
            if 0 <= t["death"] < self.n and (t["birth"] < 0 or at < t["birth"] or t["birth"] < t["death"]):
                if self.cycle > c or self.pos >= t["death"]:
                    return None
                return s
            if c < self.cycle:
                if s not in self.successor:
                    return None
                s, at = self.successor[s], -1
        return s

    def head_of(self, kind):
        """The next hint of an engine, if it may start: (hint, slot), slot None if there is nothing left to do."""
        if self.busy[kind] or not self.queue[kind]:
            return None
        cycle, h = self.queue[kind][0]
        if cycle == self.cycle and h["wait"] >= self.pos:
            return None
        return h, self.name_now(h, cycle)

    def try_evict(self):
        x = self.head_of("evict")
        if not x:
            return False
        h, s = x
        if s is None:
            self.queue["evict"].popleft()
            return True
        lo, hi, m, copied = h["off"], h["off"] + h["bytes"], self.mem[s], 0
        if self.running and any(u[0] == s and u[1] < hi and lo < u[2] for u in self.uses[self.pos]):
            self.note(f"op {self.pos}: slot {s} is evicted while it is used")
        for k, n, (where, content, fresh) in m.each(lo, hi):
            if where != HERE:
                continue
            if content == LIVE and not fresh and h.get("copy", True):
                m.vals[k] = (LEAVING, content, fresh)
                copied += n
            else:
                self.room += n
                m.vals[k] = (AWAY, LOST if content == LIVE and not fresh else content, fresh)
        self.out += copied
        if copied:
            self.busy["evict"] = [self.now + round(copied * 1e9 / self.d2h), s, lo, hi]
        else:
            self.queue["evict"].popleft()
        return True

    def try_prefetch(self):
        x = self.head_of("prefetch")
        if not x:
            return False
        h, s = x
        if s is None:
            self.queue["prefetch"].popleft()
            return True
        lo, hi, m = h["off"], h["off"] + h["bytes"], self.mem[s]
        need = copied = 0
        for _, n, (where, content, _) in m.each(lo, hi):
            if where == LEAVING:
                return False
            if where == AWAY:
                need += n
                copied += n if content == LIVE else 0
        if need > self.room:
            return False
        self.room -= need
        self.into += copied
        for k, _, (where, content, fresh) in m.each(lo, hi):
            if where == AWAY:
                m.vals[k] = (COMING if copied else HERE, content, fresh)
        if copied:
            self.busy["prefetch"] = [self.now + round(copied * 1e9 / self.h2d), s, lo, hi]
        else:
            self.queue["prefetch"].popleft()
        return True

    def finish(self, kind):
        _, s, lo, hi = self.busy[kind]
        m = self.mem[s]
        for k, n, (where, content, fresh) in m.each(lo, hi):
            if kind == "prefetch" and where == COMING:
                m.vals[k] = (HERE, content, fresh)
            elif kind == "evict" and where == LEAVING:
                self.room += n
                m.vals[k] = (AWAY, content, fresh or content == LIVE)
        self.busy[kind] = None
        self.queue[kind].popleft()

    # --- ops ---

    def note(self, text):
        if not self.wrong:
            self.wrong = text

    def missing(self):
        out = []
        for s, lo, hi in self.uses[self.pos]:
            if not self.slots[s]["flags"] & UNMANAGED:
                for a, b in self.near(s, lo, hi):
                    n = sum(n for _, n, v in self.mem[s].each(a, b) if v[0] != HERE)
                    if n:
                        out.append((s, a, b, n))
        return out

    def try_op(self):
        if self.running or self.pos >= self.n:
            return False
        missing = self.missing()
        if missing:
            if any(c < self.cycle or h["at"] <= self.pos for c, h in self.queue["prefetch"]):
                return False
            for s, lo, hi, n in missing:
                self.note(f"op {self.pos}: {n} bytes of slot {s} absent, none on their way")
                for k, size, (where, content, fresh) in self.mem[s].each(lo, hi):
                    if where == AWAY:
                        self.room -= size
                    self.mem[s].vals[k] = (HERE, content, fresh)
        if self.room < 0:
            self.note(f"op {self.pos}: over the budget by {-self.room}")
        for (s, lo, hi), (reads, _) in self.uses[self.pos].items():
            if reads and any(v[1] == LOST for _, _, v in self.mem[s].each(lo, hi)):
                self.note(f"op {self.pos} reads content of slot {s} that was thrown away")
        for (s, lo, hi), (_, writes) in self.uses[self.pos].items():
            if writes:
                for k, _, v in self.mem[s].each(lo, hi):
                    self.mem[s].vals[k] = (v[0], LIVE, False)
        for s in self.dead[self.pos]:
            self.forget(s)
        self.running = True
        self.op_end = self.now + self.duration(self.ops[self.pos], self.uses[self.pos])
        return True

    def forget(self, s):
        m = self.mem[s]
        for k, _, v in m.each(0, m.size):
            m.vals[k] = (v[0], EMPTY, False)

    def reach(self):
        """Between two ops: frees, and discards that waited for the op before."""
        for s in self.frees[self.pos]:
            m = self.mem[s]
            for k, n, (where, _, _) in m.each(0, m.size):
                if where in (HERE, COMING):
                    self.room += n
                m.vals[k] = (LEAVING if where == LEAVING else AWAY, EMPTY, False)
        for h in self.discards.get(self.pos - 1, []):
            m = self.mem[h["s"]]
            for k, n, (where, content, _) in m.each(h["off"], h["off"] + h["bytes"]):
                if where in (HERE, COMING):
                    self.room += n
                    where = AWAY
                m.vals[k] = (where, LOST if content != EMPTY else EMPTY, False)

    def iteration(self):
        self.wrong, self.into, self.out, self.pos, self.running = None, 0, 0, 0, False
        self.peak = self.budget - self.room
        begin = self.now
        for h in self.hints:
            if h["kind"] in self.queue:
                self.queue[h["kind"]].append((self.cycle, h))
        self.reach()
        while self.pos < self.n:
            while self.try_evict() or self.try_prefetch() or self.try_op():
                self.peak = max(self.peak, self.budget - self.room)
            ends = [b[0] for b in self.busy.values() if b] + ([self.op_end] if self.running else [])
            if not ends:
                raise Unsound(f"op {self.pos} waits for ever")
            self.now = min(ends)
            for kind in ("evict", "prefetch"):
                if self.busy[kind] and self.busy[kind][0] == self.now:
                    self.finish(kind)
            if self.running and self.op_end == self.now:
                self.running = False
                self.pos += 1
                self.reach()
        self.cycle += 1
        self.rename()
        return self.now - begin

    def rename(self):
        old = self.mem
        self.mem = list(old)
        for i, s in enumerate(self.slots):
            if s["carry"] is None:
                self.mem[i] = Ranges(s["bytes"], self.at_first(s))
            else:
                self.mem[i] = old[s["carry"]]
            if s["flags"] & TRANSIENT:
                self.forget(i)
        for b in self.busy.values():
            if b and b[1] in self.successor:
                b[1] = self.successor[b[1]]

    def state(self):
        lag = [(b[0] - self.now if b else 0, len(q)) for b, q in zip(self.busy.values(), self.queue.values())]
        return [m.frozen() for m in self.mem], lag

    def steady(self):
        before, last = self.state(), None
        for _ in range(CYCLES):
            ns = self.iteration()
            after = self.state()
            figures = (ns, self.into, self.out, self.peak)
            close = last and abs(last[0] - ns) <= ns / 10000 and last[1:3] == figures[1:3]
            if after == before or (close and after[0] == before[0] and not self.wrong):
                if self.wrong:
                    raise Unsound(self.wrong)
                return (max(ns, last[0]) if close else ns,) + figures[1:]
            before, last = after, figures
        raise Unsound(self.wrong or f"not steady after {CYCLES} iterations")


def agree(what, said, found):
    if abs(said - found) * 1000 > found:
        raise Unsound(f"{what} is {said}, found {found}")


def main(args):
    bad = 0
    for path in (a for a in args if a != "--predicted"):
        try:
            head, slots, ops, hints = read(path)
            ns, into, out, peak = Replay(head, slots, ops, hints).steady()
            if "--predicted" in args:
                agree("predicted_ns", head["predicted_ns"], ns)
                agree("in_core_ns", head["in_core_ns"], sum(o["ns"] for o in ops))
            print(f"{path}: sound, ns {ns}, h2d {into}, d2h {out}, peak {peak}")
        except Unsound as e:
            print(f"{path}: unsound: {e}")
            bad = 1
    return bad


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
