#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# export_scale.py - compares `umadvise report` with scans of the same tables
#
#     bench/export_scale.py FILE RUNS UMADVISE
#
# Runs both in turn, RUNS times each; the fastest of each counts.
import os
import subprocess
import sys
import time

TABLES = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": 'start "end" globalTid correlationId nameId',
    "CUPTI_ACTIVITY_KIND_KERNEL": 'start "end" globalPid deviceId streamId correlationId shortName demangledName',
    "CUPTI_ACTIVITY_KIND_MEMCPY": 'start "end" globalPid deviceId streamId correlationId bytes copyKind migrationCause '
                                  'virtualAddress',
    "NVTX_EVENTS": 'start "end" globalTid eventType text textId domainId',
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": 'start "end" globalPid deviceId address numberOfPageFaults faultAccessType',
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "start globalPid address",
}


def run(command, text):
    begun = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    child.stdin.write(text.encode())
    child.stdin.close()
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit("failed: %s" % " ".join(command))
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    file, runs, umadvise = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    shell = ["sqlite3", file]
    what = {
        "count(*)": (shell, "".join("SELECT count(*) FROM %s;" % t for t in TABLES)),
        "count(*), start >= 0": (shell, "".join("SELECT count(*) FROM %s WHERE start >= 0;" % t for t in TABLES)),
        "columns": (shell, "".join("SELECT %s FROM %s;" % (", ".join("total(%s)" % c for c in columns.split()), t)
                                   for t, columns in TABLES.items())),
        "report": ([umadvise, "report", file, "-q", "--iteration", "Train step *"], ""),
        "report, what repeats": ([umadvise, "report", file, "-q", "--iteration", "repetition"], ""),
    }
    best = {}
    for _ in range(runs):
        for name, (command, text) in what.items():
            took = run(command, text)
            best[name] = [min(pair) for pair in zip(best.get(name, took), took)]
    print("%-22s %9s %9s %9s" % ("", "time s", "cpu s", "MiB"))
    for name, took in best.items():
        print("%-22s %9.2f %9.2f %9.0f" % (name, *took))


main()
