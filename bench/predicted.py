#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""predicted.py - the predicted time of an iteration under the library's plan, beside the time played

    bench/predicted.py BUILD-FOLDER [--profiles v100,a100,h100] [--ratios 1.5,2] [TRACE...]

Plays recorded workloads (default: those of tests/data), a generated three-layer MLP and the example cg, and prints a
table in Markdown. Programs whose iterations are not all alike have no plan for the whole: they are listed without a
ratio if no iteration followed a plan. Ends with 1 if a ratio is outside its bar: 10 % for workloads, 25 % for the
others. Python 3, no packages.
"""
import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRACES = ("alexnet_b200 cg_laplace3d cifar_vgg16_b100 dlrm gpt2_small lstm_lm resnet50 stencil_slabs "
          "transformer_varlen vgg16").split()


def mlp(path):
    """Trains three layers; weights, gradients, momentum and activations take 12 MiB."""
    width, batch = 512, 512
    size = {"weight": 4 * width * width, "act": 4 * batch * width}
    events, t = [{"umtrace": 1, "source": "bench/predicted.py", "workload": "mlp3"}], 0
    names = {}

    def alloc(name, size_of, role):
        nonlocal t
        events.append({"ev": "alloc", "t": t, "bytes": size[size_of], "name": name, "role": role})
        names[name] = t
        t += 1

    def op(name, reads, writes, flops):
        events.append({"ev": "op", "name": name, "r": [names[n] for n in reads], "w": [names[n] for n in writes],
                       "flops": flops, "bytes": 3 * size["act"]})

    for i in range(3):
        alloc(f"w{i}", "weight", "param")
        alloc(f"m{i}", "weight", "optim")
        alloc(f"g{i}", "weight", "grad")
        alloc(f"a{i}", "act", "act")
    product = 2 * batch * width * width
    for n in range(8):
        events.append({"ev": "iter", "n": n})
        for i in range(3):
            op("forward", [f"w{i}"] + ([f"a{i - 1}"] if i else []), [f"a{i}"], product)
        for i in (2, 1, 0):
            op("backward", [f"w{i}", f"a{i}"], [f"g{i}"], 2 * product)
        for i in range(3):
            op("update", [f"w{i}", f"m{i}", f"g{i}"], [f"w{i}", f"m{i}"], 0)
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(e) + "\n" for e in events)


def simulate(tool, path, profiles, ratios):
    """Rows of one workload: profile, ratio, predicted, played, last iteration (ns)."""
    for profile in profiles:
        run = subprocess.run([tool, "simulate", path, "--profile", profile, "--oversubscribe", ratios, "--strategy",
                              "lookahead", "--no-recompute", "-f", "csv"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=False)
        for row in csv.DictReader(run.stdout.splitlines()):
            yield (profile, row["oversubscribe"], int(row["planned_ns"] or 0), int(row["played_ns"] or 0),
                   int(row["steady_ns"]))


def example(path):
    """The same of a program, from its run log."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        subprocess.run([path], env=dict(os.environ, UMADVISE_RUN_LOG=log), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        plan = played = 0
        with gzip.open(log, "rt", encoding="utf-8") as lines:
            for line in lines:
                event = json.loads(line)
                plan, played = event.get("plan_ns", plan), event.get("played_ns", played)
    yield ("v100", "1.5", plan, played, played)


def main():
    """Prints the table."""
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("build")
    args.add_argument("--profiles", default="v100,a100,h100")
    args.add_argument("--ratios", default="1.5,2")
    args.add_argument("traces", nargs="*")
    args = args.parse_args()
    tool = os.path.join(args.build, "tools", "umadvise")
    paths = args.traces or [os.path.join(TOP, "tests", "data", f"{n}.umtrace.gz") for n in TRACES]
    profiles, bad, worst = args.profiles.split(","), 0, 0.0

    print("| workload | device | memory | predicted ms | played ms | ratio |\n| --- | --- | --- | --- | --- | --- |")

    def table(name, rows, bar):
        nonlocal bad, worst
        for profile, ratio, planned, played, steady in rows:
            quotient = planned / played if played else 0
            cells = [f"{planned / 1e6:.3f}", f"{played / 1e6:.3f}", f"{quotient:.3f}"]
            if not played:
                cells = ["-", f"{steady / 1e6:.3f}", "-"]
            else:
                worst = max(worst, abs(quotient - 1))
                bad += abs(quotient - 1) > bar
            print("| " + " | ".join([name, profile, f"1/{ratio}"] + cells) + " |", flush=True)

    for path in paths:
        table(os.path.basename(path).split(".")[0], simulate(tool, path, profiles, args.ratios), 0.10)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mlp3.umtrace")
        mlp(path)
        table("mlp3", simulate(tool, path, profiles, args.ratios), 0.25)
    program = os.path.join(args.build, "examples", "cg")
    if os.path.exists(program):
        table("examples/cg", example(program), 0.25)
    print(f"\nOutside their bars: {bad}. Largest distance from 1: {worst:.3f}.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
