#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# structure.py [--circles [-v]] [TREE] - the structure of the sources as a table
#
# Counts directories, the arrows that includes and calls draw between them, and circles of directories and of files.
# Calls are read off the text: a file that names a function or a table of another file depends on it. --circles prints
# upward arrows and circles instead, one per line, with -v the calls of each circle; tests/layers.sh checks that list.
import os
import re
import sys

ORDER = ("lib/base lib/kernel lib/arbiter lib/model lib/gpu lib/io lib/record lib/learn lib/plan lib/sim lib/devices "
         "lib/replay lib/runtime lib/inject "
         "tools/formats tools/play tools/pool tools/schemes tools/bound tools/probe tools/report standin tools").split()
# The order of a tree from before these directories had their present places.
OLDER = ("lib/base lib/model lib/gpu lib/io lib/record lib/learn lib/plan lib/peers lib/replay lib/probe lib/report "
         "lib/standin lib tools").split()


def strip(text):
    """Without comments and strings; lines stay lines."""
    pattern = r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    return re.sub(pattern, lambda m: '""' if m[0][0] != '/' else re.sub(r'[^\n]', '', m[0]) or ' ', text, flags=re.S)


class Tree:
    def __init__(self, root):
        self.root, self.text, self.include = root, {}, {}
        for top in ("lib", "tools", "standin"):
            for at, _, names in os.walk(os.path.join(root, top)):
                for name in names:
                    if name.endswith((".c", ".h")):
                        with open(os.path.join(at, name), encoding="utf-8") as f:
                            text = f.read()
                        path = os.path.relpath(os.path.join(at, name), root)
                        self.include[path] = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M)
                        self.text[path] = strip(text)
        self.dirs = sorted({os.path.dirname(p) for p in self.text})
        older = "lib" in self.dirs
        self.order = [d for d in (OLDER if older else ORDER) if d in self.dirs]
        self.order += [d for d in self.dirs if d not in self.order]

    def resolve(self, path, name):
        for at in (os.path.dirname(path), "lib", "tools", "standin", ""):
            to = os.path.normpath(os.path.join(at, name))
            if to in self.text:
                return to
        return None

    def includes(self):
        """Directory to directory, with one pair of files that draws the arrow."""
        arrows = {}
        for path in sorted(self.text):
            for name in self.include[path]:
                to = self.resolve(path, name)
                if to and os.path.dirname(to) != os.path.dirname(path):
                    arrows.setdefault((os.path.dirname(path), os.path.dirname(to)), (path, to))
        return arrows

    def definitions(self):
        where = {}
        for path, text in self.text.items():
            if not path.endswith(".c"):
                continue
            body = re.sub(r'^[ \t]*#.*(?:\\\n.*)*', '', text, flags=re.M)
            found = re.findall(r'^(?!static|typedef|extern|return|\t)[a-z][\w \t*]*?(\w+)\([^;{}]*\)\s*\n\{', body, re.M)
            found += re.findall(r'^(?!static|typedef|extern)(?:const |struct |u?int|char)[\w \t*]*?(\w+)(?:\[[^]]*\])* =',
                                body, re.M)
            if path.startswith("lib/inject/"):  # functions of the driver, which the stand-in has, too
                found = [name for name in found if not name.startswith("cu")]
            for name in found:
                where.setdefault(name, set()).add(path)
        return where

    def between(self):
        """Directory to directory by calls, with the two files and the name that is called."""
        return {(os.path.dirname(a), os.path.dirname(b)): (a, b, name) for (a, b), name in sorted(self.calls().items())
                if os.path.dirname(a) != os.path.dirname(b)}

    def calls(self):
        """File to file: who names what another file of the same program defines."""
        where, arrows = self.definitions(), {}
        for path, text in self.text.items():
            if path.endswith(".c"):
                for name in set(re.findall(r'(?<![\w.>])(?<!struct )(?<!enum )[A-Za-z_]\w+', text)):
                    if path in where.get(name, (path,)) or (path.startswith("lib/inject/") and name[:2] == "cu"):
                        continue
                    near = [p for p in where[name] if os.path.dirname(p) == os.path.dirname(path)]
                    for to in near or where[name]:
                        arrows.setdefault((path, to), name)
        return arrows


def circles(arrows):
    """Strongly connected components of more than one node (Tarjan, without recursion)."""
    to = {}
    for a, b in arrows:
        to.setdefault(a, []).append(b)
        to.setdefault(b, [])
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in sorted(to):
        if root in index:
            continue
        work = [(root, iter(sorted(to[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for n in rest:
                if n not in index:
                    index[n] = low[n] = len(index)
                    stack.append(n)
                    on.add(n)
                    work.append((n, iter(sorted(to[n]))))
                    break
                if n in on:
                    low[node] = min(low[node], index[n])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = set()
                    while node not in part:
                        part.add(stack.pop())
                    on -= part
                    if len(part) > 1:
                        found.append(sorted(part))
    return sorted(found)


def upward(tree, arrows):
    rank = {d: i for i, d in enumerate(tree.order)}
    return [(a, b) for a, b in sorted(arrows) if rank[a] < rank[b]]


def long_functions(tree, most):
    n = 0
    for path in tree.text:
        begin = 0
        with open(os.path.join(tree.root, path), encoding="utf-8") as f:
            for i, line in enumerate(f, 1):
                if line.startswith("{"):
                    begin = i
                elif line.startswith("}"):
                    n += bool(begin) and i - begin - 1 > most
                    begin = 0
    return n


def lines(tree, path):
    return tree.text[path].count("\n")


def exported(tree):
    with open(os.path.join(tree.root, "include/umadvise.h"), encoding="utf-8") as f:
        return len(set(re.findall(r'\b(umadv_\w+)\(', re.sub(r'^[ \t]*#.*(?:\\\n.*)*', '', strip(f.read()), flags=re.M))))


def report(tree):
    includes, calls, between = tree.includes(), tree.calls(), tree.between()
    files = circles(calls)
    rows = [("directories", len(tree.dirs)),
            ("include arrows", len(includes)),
            ("call arrows", len(between)),
            ("upward arrows", len(upward(tree, {**includes, **between}))),
            ("circles of directories", len(circles({**includes, **between}))),
            ("circles of files", len(files)),
            ("files in them", sum(len(f) for f in files)),
            ("functions over 60 lines", long_functions(tree, 60)),
            ("files over 400 lines", sum(lines(tree, p) > 400 for p in tree.text)),
            ("public functions", exported(tree)),
            ("lines", sum(lines(tree, p) for p in tree.text))]
    rows += [("  " + d, sum(lines(tree, p) for p in tree.text if os.path.dirname(p) == d)) for d in tree.order]
    for name, n in rows:
        print(f"{name:<24} {n:>6}")


def list_circles(tree):
    includes, calls, between = tree.includes(), tree.calls(), tree.between()
    for arrow in upward(tree, {**between, **includes}):
        print("upward:", *arrow, "by", *(includes.get(arrow) or between[arrow]))
    for c in circles({**includes, **between}):
        print("directories:", *c)
    for c in circles(calls):
        print("files:", *c)
        if "-v" in sys.argv:
            for (a, b), name in sorted(calls.items()):
                if a in c and b in c:
                    print("   ", a, "->", b, name)


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("-")]
    tree = Tree(args[0] if args else ".")
    if "--circles" in sys.argv:
        list_circles(tree)
    else:
        report(tree)


main()
