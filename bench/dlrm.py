#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# dlrm.py - writes a umtrace of a synthetic recommendation model in training: embedding tables in which each
# iteration looks up and updates a few rows, and dense layers on top
#
#     bench/dlrm.py > dlrm.umtrace
#     bench/dlrm.py --tables 26 --table-mib 512 --rows 65536 --iterations 4 > large.umtrace
#
# Sizes are fp32's; `flops` and `bytes` are those of the matrix products and of what an operation touches.

import argparse
import sys

from programs import MIB, Trace


def iteration(x, o, tables, layers):
    """Forward, backward, and the update of what was looked up."""
    rows = o.rows * o.dim * 4
    batch = o.rows
    act = batch * o.width * 4
    looked = []
    for i, t in enumerate(tables):
        e = x.alloc(rows, f"look-up{i}", "act")
        x.op("embedding", [t], [e], touched={t: rows})
        looked.append(e)
    acts = [x.alloc(act, "interaction", "act")]
    x.op("interact", looked, acts)
    for i, w in enumerate(layers):
        acts.append(x.alloc(act, f"layer{i}", "act"))
        x.op("linear", [acts[-2], w], [acts[-1]], flops=2 * batch * o.width * o.width)
    grad = x.alloc(act, "grad", "grad")
    x.op("loss", [acts[-1]], [grad])
    x.free(acts.pop())
    for w in reversed(layers):
        below, dw = x.alloc(act, "grad", "grad"), x.alloc(x.size[w], "weight-grad", "grad")
        x.op("linear_backward", [grad, acts[-1], w], [below, dw], flops=4 * batch * o.width * o.width)
        x.op("sgd", [w, dw], [w])
        x.free(grad, dw, acts.pop())
        grad = below
    for t, e in zip(tables, looked):
        x.op("embedding_update", [t, e, grad], [t], touched={t: rows})
        x.free(e)
    x.free(grad)


def main():
    p = argparse.ArgumentParser(description="Writes a umtrace of a made-up recommendation model in training.")
    p.add_argument("--tables", type=int, default=8, help="embedding tables (8)")
    p.add_argument("--table-mib", type=int, default=96, help="MiB of each (96)")
    p.add_argument("--rows", type=int, default=2048, help="rows looked up in each, and the batch (2048)")
    p.add_argument("--dim", type=int, default=64, help="numbers in a row (64)")
    p.add_argument("--layers", type=int, default=4, help="dense layers (4)")
    p.add_argument("--width", type=int, default=4096, help="their width (4096)")
    p.add_argument("--iterations", type=int, default=3, help="iterations (3)")
    o = p.parse_args()
    x = Trace(sys.stdout)
    x.put(umtrace=1, source="bench/dlrm.py", workload="dlrm", batch=o.rows, dtype="fp32")
    tables = [x.alloc(o.table_mib * MIB, f"table{i}", "param") for i in range(o.tables)]
    layers = [x.alloc(o.width * o.width * 4, f"layer{i}.weight", "param") for i in range(o.layers)]
    for n in range(o.iterations):
        x.put(ev="iter", n=n)
        iteration(x, o, tables, layers)


main()
