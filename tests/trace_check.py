# SPDX-License-Identifier: Apache-2.0
"""trace_check.py FILE: is it a trace as Perfetto and chrome://tracing want it? Says what is in it, as JSON.

Checked by the rules of the trace event format, and by what viewers do with what breaks them: an event has its keys,
slices of a lane nest or lie apart (else they are dropped), the two ends of an arrow lie in slices and point ahead,
to the operation that the hint names, every process and lane has a name, counters are numbers."""
import bisect
import gzip
import json
import sys

KEYS = {"X": {"pid", "tid", "ts", "dur", "name", "cat", "args"}, "i": {"pid", "tid", "ts", "s", "name", "cat", "args"},
        "C": {"pid", "ts", "name", "args"}, "M": {"pid", "ts", "name", "args"},
        "s": {"pid", "tid", "ts", "name", "cat", "id"}, "f": {"pid", "tid", "ts", "name", "cat", "id", "bp"}}


def fail(why, event=None):
    sys.exit("%s: %s%s" % (sys.argv[1], why, "" if event is None else ": " + json.dumps(event)))


def need(truth, why, event):
    if not truth:
        fail(why, event)


def number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def ns(us):
    return round(us * 1000)


def load(path):
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    doc = json.loads(data.decode("utf-8"))
    need(set(doc) == {"traceEvents", "displayTimeUnit"}, "keys of the file", list(doc))
    need(doc["displayTimeUnit"] == "ns", "displayTimeUnit", doc["displayTimeUnit"])
    return doc["traceEvents"]


def check_event(e):
    need(e.get("ph") in KEYS, "an unknown phase", e)
    need(KEYS[e["ph"]] <= set(e), "a key is missing", e)
    need(set(e) <= KEYS[e["ph"]] | {"ph", "tid"}, "a key too many", e)
    need(isinstance(e["name"], str) and isinstance(e.get("cat", ""), str), "a name", e)
    for key in "ts", "dur":
        if key in e:
            need(number(e[key]) and e[key] >= 0, key, e)
            need(int(e[key] * 1000) == ns(e[key]), "%s: who cuts sees another nanosecond" % key, e)
    for key in "pid", "tid":
        if key in e:
            need(isinstance(e[key], int) and e[key] > 0, key, e)
    if e["ph"] == "C":
        need(e["args"] and all(number(v) and v >= 0 for v in e["args"].values()), "a counter", e)
    if e["ph"] == "M":
        need(e["name"] in ("process_name", "thread_name"), "metadata", e)
        need(e["args"].get("name"), "no name", e)


def check_lanes(lanes):
    """In order of time, of equal times in the order of the file: each slice ends before what it lies in."""
    for slices in lanes.values():
        slices.sort(key=lambda e: ns(e["ts"]))
        stack = []
        for e in slices:
            begin, end = ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])
            while stack and stack[-1] <= begin:
                stack.pop()
            need(not stack or end <= stack[-1], "partly over the slice before it", e)
            stack.append(end)


def check_arrows(arrows, lanes):
    begins = {lane: [ns(e["ts"]) for e in slices] for lane, slices in lanes.items()}

    def inside(e):
        lane, t = (e["pid"], e["tid"]), ns(e["ts"])
        k = bisect.bisect_right(begins.get(lane, []), t) - 1
        need(k >= 0, "an arrow's end in no slice", e)
        s = lanes[lane][k]
        need(t < ns(s["ts"]) + ns(s["dur"]) or t == ns(s["ts"]), "an arrow's end in no slice", e)
        return s

    for ends in arrows.values():
        need(sorted(ends) == ["f", "s"], "an arrow has two ends", ends)
        s, f = ends["s"], ends["f"]
        need(f["bp"] == "e" and s["name"] == f["name"] and s["cat"] == f["cat"], "an arrow's ends differ", f)
        need(ns(s["ts"]) <= ns(f["ts"]), "an arrow points back", f)
        hint, op = inside(s), inside(f)
        need(hint["args"]["op"] == op["args"]["op"], "an arrow to another operation", op)
        yield hint, op, ns(f["ts"]) - ns(s["ts"])


def main():
    events = load(sys.argv[1])
    lanes, names, used, arrows, counters = {}, {}, {}, {}, {}
    for e in events:
        check_event(e)
        where = (e["pid"], e.get("tid", 0))
        if e["ph"] == "M":
            need((e["name"] == "thread_name") == ("tid" in e), "whose name", e)
            need(where not in names, "two names", e)
            names[where] = e["args"]["name"]
            continue
        used[where] = used[(e["pid"], 0)] = e
        if e["ph"] == "X":
            lanes.setdefault(where, []).append(e)
        elif e["ph"] in "sf":
            need(isinstance(e["id"], int) and e["ph"] not in arrows.setdefault(e["id"], {}), "an id", e)
            arrows[e["id"]][e["ph"]] = e
        elif e["ph"] == "C":
            for series, value in e["args"].items():
                counters.setdefault("%s %s" % (e["name"], series), []).append((ns(e["ts"]), value))
    need(not set(used) - set(names), "no name", [used[w] for w in set(used) - set(names)][:1])
    need(len({t for p, t in names if t}) == len([1 for p, t in names if t]), "a lane's number twice", None)
    check_lanes(lanes)
    drawn = list(check_arrows(arrows, lanes))
    moved = {}
    for e in events:
        if e.get("cat") == "migration":
            key = next(n for w, n in names.items() if w == (e["pid"], e["tid"])).split(" (")[0]
            moved[key] = moved.get(key, 0) + e["args"]["bytes"]
    json.dump({
        "slices": {c: sum(e.get("cat") == c for e in events if e["ph"] in "Xi") for c in
                   ("range", "call", "op", "hint", "kernel", "copy", "fault", "migration")},
        "faults": sum(e["args"]["faults"] for e in events if e.get("cat") == "fault" and e["ph"] == "X"),
        "cpu_faults": sum(e["args"]["faults"] for e in events if e.get("cat") == "fault" and e["ph"] == "i"),
        "named": sum(e["args"].get("op_name") == e["name"] for e in events if e.get("cat") == "kernel"),
        "moved": moved, "names": sorted(set(names.values())),
        "arrows": sorted([s["name"], f["name"], lead] for s, f, lead in drawn),
        "counters": {n: {"last": sorted(p)[-1][1], "most": max(v for _, v in p), "points": len(p)}
                     for n, p in counters.items()},
    }, sys.stdout)


main()
