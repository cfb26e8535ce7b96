#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""table.py OUT SECONDS - what tests/gpu/run found: results.json, and a short table on standard output

Exits 1 if a check failed or a program did not end well.
"""

import datetime
import glob
import json
import os
import re
import statistics
import subprocess
import sys

MODES = ["in-core", "umadvise", "expert", "prefetch-on-use", "plain"]
# What of a simulation stands beside what was measured.
STRATEGY = {"in-core": "infinite", "umadvise": "lookahead", "prefetch-on-use": "prefetch-on-use", "plain": "on-demand"}


def read(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return default


def load(path):
    try:
        return json.loads(read(path))
    except ValueError:
        return None


def command(*args):
    try:
        done = subprocess.run(args, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def checks(out):
    """One entry a program: its checks, and how it ended."""
    found = []
    for path in sorted(glob.glob(os.path.join(out, "*.status"))):
        name = os.path.basename(path)[: -len(".status")]
        text = read(os.path.join(out, name + ".tap"))
        failed = re.findall(r"^not ok \d+ - (.*)", text, re.M)
        found.append(
            {
                "name": name,
                "status": int(read(path, "1")),
                "checks": len(re.findall(r"^(?:not )?ok \d+", text, re.M)),
                "skipped": len(re.findall(r"^ok \d+ .*# SKIP", text, re.M)),
                "failed": failed,
                "ok": not failed and int(read(path, "1")) == 0,
            }
        )
    return found


def speed(out):
    """Measured lines, each with its ratio to in-core, the simulation's time and how far that is off."""
    lines = [json.loads(line) for line in read(os.path.join(out, "speed.jsonl")).splitlines() if line.strip()]
    core = {line["work"]: line["median_ms"] for line in lines if line["mode"] == "in-core"}
    for line in lines:
        line["unplanned"] = 2 * line.get("hinted", 0) < line.get("iterations", 0)
        line["x_core"] = line["median_ms"] / core[line["work"]] if core.get(line["work"]) else None
        runs = (load(os.path.join(out, "simulate-%s.json" % line["work"])) or {}).get("runs", [])
        for run in runs:
            if run["strategy"] == STRATEGY.get(line["mode"]):
                line["simulated_ms"] = run["steady_ns"] / 1e6
                line["simulation_error"] = line["simulated_ms"] / line["median_ms"] - 1
    return lines


def programs(out):
    """Runs of programs that do not know of the library: the time of a step, of the second half of them."""
    found = []
    for line in read(os.path.join(out, "programs.jsonl")).splitlines():
        run = json.loads(line)
        steps = run["run"]["ms"]
        late = steps[len(steps) // 2 :]
        found.append(
            {
                "work": run["work"],
                "mode": run["mode"],
                "median_ms": statistics.median(late),
                "min_ms": min(late),
                "max_ms": max(late),
                "ms": steps,
                "digest": run["run"]["digest"],
            }
        )
    return found


def number(value, form):
    return form % value if value is not None else "-"


def print_table(results):
    print()
    for check in results["checks"]:
        state = "ok" if check["ok"] else "FAILED (status %d)" % check["status"]
        count = "%4d checks" % check["checks"] if check["checks"] else ""
        print("%-40s %-20s %s" % (check["name"], state, count))
    if results["speed"]:
        print()
        print("%-9s %-18s %10s %8s %10s %10s %8s" % ("work", "mode", "ms", "x core", "faults", "simulated", "error"))
    for work in dict.fromkeys(line["work"] for line in results["speed"]):
        lines = {line["mode"]: line for line in results["speed"] if line["work"] == work}
        for mode in MODES:
            line = lines.get(mode)
            if line:
                print(
                    "%-9s %-18s %10.3f %8s %10s %10s %8s"
                    % (
                        work,
                        mode + (" (no plan)" if line["unplanned"] else ""),
                        line["median_ms"],
                        number(line["x_core"], "%.2f"),
                        number(line.get("faults"), "%.0f"),
                        number(line.get("simulated_ms"), "%.3f"),
                        number(line.get("simulation_error") and 100 * line["simulation_error"], "%+.0f %%"),
                    )
                )
    if results["programs"]:
        print()
        print("%-14s %-18s %10s %10s %10s" % ("program", "mode", "ms", "least", "most"))
    for run in results["programs"]:
        print("%-14s %-18s %10.3f %10.3f %10.3f" % (run["work"], run["mode"], run["median_ms"], run["min_ms"], run["max_ms"]))
    print()
    device = results["device"]
    failed = [check["name"] for check in results["checks"] if not check["ok"]]
    print("%s, driver %s, CUDA %s, %s, %d s" % (
        device.get("device", "?"),
        results["driver"],
        results["cuda"],
        results["date"],
        results["seconds"],
    ))
    print("failed: " + ", ".join(failed) if failed else "all well")
    return 1 if failed else 0


def main():
    out, seconds = sys.argv[1], int(sys.argv[2])
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    device = load(os.path.join(out, "facts.json")) or {}
    version = device.get("cuda_driver", 0)
    results = {
        "schema": "umgpu/1",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "device": device,
        "driver": "stand-in"
        if device.get("standin")
        else command("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "?",
        "cuda": "%d.%d" % (version // 1000, version % 1000 // 10),
        "commit": command("git", "-C", top, "describe", "--always", "--dirty"),
        "seconds": seconds,
        "checks": checks(out),
        "speed": speed(out),
        "programs": programs(out),
        "moves": read(os.path.join(out, "moves.out")).splitlines(),
        "profile": read(os.path.join(out, "device.profile")) or None,
    }
    with open(os.path.join(out, "results.json"), "w", encoding="utf-8") as f:
        json.dump(results, f, indent=1)
        f.write("\n")
    sys.exit(print_table(results))


if __name__ == "__main__":
    main()
