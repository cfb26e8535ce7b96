# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - first in the path of Python under `umadvise run`: loads umadvise.torch when torch is imported, and
umadvise.cupy when cupy is

Python looks for this name at its start. The file of this name that it would have found otherwise is run as well.
"""
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FRAMEWORKS = 'torch', 'cupy'


class Loader(importlib.abc.Loader):
    """Loads a framework as its own loader does, and the module of umadvise for it after it."""

    def __init__(self, finder, loader):
        self.finder, self.loader = finder, loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        try:
            importlib.import_module(f'umadvise.{self.finder.framework}').follow(module)
        except Exception:  # the program runs as without it
            pass


class Finder(importlib.abc.MetaPathFinder):
    """Finds a framework as the others do. It stays until that is loaded: a program may only ask whether it is there."""

    def __init__(self, framework):
        self.framework, self.asked = framework, False

    def find_spec(self, name, path=None, target=None):
        if name != self.framework or self.asked:
            return None
        self.asked = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.asked = False
        if spec and hasattr(spec.loader, 'exec_module'):
            spec.loader = Loader(self, spec.loader)
        return spec


def run_next():
    """Runs the next sitecustomize, as if this one were not there. Python reports its errors.

    It is sought in later folders only: one that runs the next one as well may be in an earlier one.
    """
    folders = [os.path.abspath(p) for p in sys.path]
    spec = importlib.machinery.PathFinder.find_spec('sitecustomize', sys.path[folders.index(HERE) + 1:])
    if spec and spec.loader:
        sys.modules['sitecustomize'] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


sys.meta_path[:0] = map(Finder, FRAMEWORKS)
run_next()
