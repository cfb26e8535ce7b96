#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""umadvise.py - a table of `umadvise report`, as a report of `nsys stats`.

    nsys stats --report .../umadvise.py:table=ops:rows=20 run.nsys-rep
    nsys stats --report-dir .../umadvise/nsys --report umadvise run.sqlite

nsys imports this into its own interpreter; nsysstats comes with it. What the tables say is decided by the tool alone:
this runs it, and hands over what it writes as CSV. The tool is found in PATH, or by $UMADVISE.
"""
import csv
import io
import os
import subprocess

import nsysstats

TABLE = "umadvise_rows"
UNITS = (("_ns", ":dur_ns"), ("_bytes", ":mem_B"))


def title(key):
    """What nsys calls a column: it makes a unit of what follows the colon."""
    for end, unit in UNITS:
        if key == end[1:]:
            return "Time" + unit if end == "_ns" else "Size" + unit
        if key.endswith(end):
            return key[:-len(end)].replace("_", " ").capitalize() + unit
    return key.replace("_", " ").capitalize()


def quoted(text, mark):
    return mark + text.replace(mark, 2 * mark) + mark


def literal(text):
    """A value of SQL: nothing, a whole number, or a text."""
    if text == "":
        return "NULL"
    digits = text[1:] if text[0] == "-" else text
    return text if digits.isdigit() and digits.isascii() else quoted(text, "'")


class Umadvise(nsysstats.StatsReport):
    display_name = "Unified memory (umadvise)"
    usage = """{SCRIPT}[:table=<name>][:rows=<limit>][:iteration=<pattern>] -- Unified memory by umadvise

    table : summary (the default), iterations, ops, causes, ...: all that 'umadvise report --help-reports' lists
    rows : at most so many; 0, the default, is all
    iteration : NVTX ranges that are iterations, a shell pattern

    Needs the tool umadvise in PATH, or its path in the environment variable UMADVISE.
"""
    _arg_opts = [
        [["table"], {"type": str, "help": "a table of umadvise report", "default": "summary"}],
        [["rows"], {"type": int, "help": "rows at most", "default": 0}],
        [["iteration"], {"type": str, "help": "ranges that are iterations", "default": ""}],
    ]
    query = "SELECT * FROM temp." + TABLE

    def setup(self):
        failure = super().setup()
        if failure is not None:
            return failure
        args = self.parsed_args
        command = [os.environ.get("UMADVISE", "umadvise"), "report", self._export(), "--quiet", "--format", "csv",
                   "--report", "%s:rows=%d" % (args.table, args.rows)]
        if args.iteration:
            command += ["--iteration", args.iteration]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        except OSError as error:
            return "%s cannot be run: %s" % (command[0], error)
        rows = list(csv.reader(io.StringIO(done.stdout.decode("utf-8", "replace"))))
        if not rows:
            return done.stderr.decode("utf-8", "replace").strip() or "umadvise says nothing"
        self.statements = self._made(rows)
        return None

    def _export(self):
        return self.dbfile() if callable(self.dbfile) else self.dbfile

    @staticmethod
    def _made(rows):
        columns = ", ".join(quoted(title(key), '"') for key in rows[0])
        return ["CREATE TEMP TABLE %s (%s)" % (TABLE, columns)] + [
            "INSERT INTO temp.%s VALUES (%s)" % (TABLE, ", ".join(literal(text) for text in row)) for row in rows[1:]]


if __name__ == "__main__":
    Umadvise.Main()
