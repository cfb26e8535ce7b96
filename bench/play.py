# SPDX-License-Identifier: Apache-2.0
"""play.py - what bench/strategies and bench/papers share: the tool, devices, one play

in    traces (umtrace files), devices (built-in names or profile files), how much memory
out   a row for each play: figures of the steady iteration, or why there are none

Everything is asked of `umadvise simulate` and `umadvise plan`; nothing is computed here that they know.
"""

import argparse
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

FIGURES = ('budget_bytes', 'steady_ns', 'planned_ns', 'in_core_ns', 'faults', 'h2d_bytes', 'd2h_bytes', 'stall_ns',
           'hints', 'peak_resident_bytes')


class Refused(Exception):
    """One line for the user."""


class Arguments(argparse.ArgumentParser):
    """What is wrong with them is one line, too."""

    def error(self, message):
        raise Refused(message)


class TimeLimit(Exception):
    pass


class Tool:
    """umadvise. Calls may come from several threads; stop() ends what runs."""

    def __init__(self, path, limit):
        self.path, self.limit = path, limit
        self.lock, self.running, self.stopped = threading.Lock(), set(), False
        if not os.access(path, os.X_OK):
            raise Refused(f'{path}: no tool there; build it, or name it with UMADVISE')

    def run(self, args):
        """(exit status, standard output, standard error)"""
        with self.lock:
            if self.stopped:
                raise KeyboardInterrupt
            child = subprocess.Popen([self.path, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
            self.running.add(child)
        try:
            out, err = child.communicate(timeout=self.limit)
        except subprocess.TimeoutExpired:
            raise TimeLimit from None
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()
            with self.lock:
                self.running.discard(child)
        return child.returncode, out, err

    def stop(self):
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.kill()

    def strategies(self):
        code, out, err = self.run(['simulate', '--list-strategies'])
        if code:
            raise Refused(f'{self.path}: does not tell its strategies: {last_line(err)}')
        return out.split()


def tool_path():
    return os.environ.get('UMADVISE') or os.path.join(TOP, 'build', 'plain', 'tools', 'umadvise')


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else 'it says nothing'


def trace_name(path):
    name = os.path.basename(path)
    for end in ('.gz', '.umtrace'):
        name = name.removesuffix(end)
    return name


def named(items, name_of, what):
    """{name: item}; two of one name would be one row."""
    out = {}
    for item in items:
        name = name_of(item)
        if name in out:
            raise Refused(f'two {what} are called {name}')
        out[name] = item
    return out


def listed_device(name):
    """Lines of a profile for a built-in device, from the table of doc/profiles.md; None: no such device."""
    with open(os.path.join(TOP, 'doc', 'profiles.md'), encoding='utf-8') as f:
        rows = [[cell.strip(' `') for cell in line.strip(' |\n').split('|')] for line in f if line.startswith('|')]
    keys = next(row for row in rows if row[:2] == ['name', 'capacity'])
    values = next((row for row in rows if row[0] == name and len(row) == len(keys)), None)
    return values and [f'{key} = {value}' for key, value in zip(keys, values)]


def ideal_profile(profile, folder):
    """Writes `profile` with duplex 1 and eta 1 into `folder`; the file's name."""
    lines = listed_device(profile)
    if not lines:
        try:
            with open(profile, encoding='utf-8') as f:
                lines = f.read().splitlines()
        except (OSError, UnicodeDecodeError) as e:
            raise Refused(f'{profile}: neither a device nor a profile that can be read ({e})') from None
    lines = [line for line in lines if line.split('=')[0].strip() not in ('duplex', 'duplex_evict', 'eta')]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, profile_name(profile) + '.profile')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines + ['duplex = 1', 'eta = 1']) + '\n')
    return path


def profile_name(profile):
    return os.path.basename(profile).removesuffix('.profile')


def failed(status, note=''):
    return {'status': status, 'note': note}


def simulate(tool, trace, args, strategy, more=()):
    """A row: status, note and what of FIGURES there is; `bound_ns` where --bound is in `more`."""
    try:
        code, out, err = tool.run(['simulate', trace, *args, *more, '--strategy', strategy, '--no-recompute',
                                   '--format', 'csv'])
    except TimeLimit:
        return failed('time limit', f'{tool.limit:g} s')
    rows = list(csv.DictReader(io.StringIO(out)))
    if code or len(rows) != 1:
        said = last_line(err)
        return failed('does not fit' if ' alone needs ' in said else 'failed', said.split(': ', 2)[-1])
    row = {key: int(rows[0][key]) if rows[0].get(key) else None for key in FIGURES + ('bound_ns',)}
    if row['steady_ns'] is None:
        return failed('no plan', 'not modelled on this device')
    # A scheme that makes no plan says so, and the driver is alone: those figures are on-demand's.
    said = [line for line in err.splitlines() if f', {strategy}: ' in line and 'no plan' in line]
    row['status'] = 'no plan' if said and not row['hints'] else 'ok'
    row['note'] = said[-1].split(f', {strategy}: ', 1)[1] if said and not row['hints'] else ''
    if '--bound' in more and ' bound' in err:  # that it is not what it could be
        row['note'] = last_line(err).split(': ', 1)[-1]
    return row


def own_bound(tool, trace, args):
    """What the planner itself proves, without the linear program; None where there is no plan."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, 'a.umplan')
        try:
            code, _, _ = tool.run(['plan', trace, *args, '-o', path])
        except TimeLimit:
            return None
        if code:
            return None
        with open(path, encoding='utf-8') as f:
            return json.loads(f.readline()).get('bound_ns')


def bound(tool, trace, args, more=()):
    """A row whose steady_ns is the bound."""
    row = simulate(tool, trace, args, 'infinite', ['--bound', *more])
    own = row['status'] == 'time limit'
    if own:
        row = {'status': 'ok', 'bound_ns': own_bound(tool, trace, args)}
    if row['status'] != 'ok':
        return row
    if not row['bound_ns']:
        return failed('time limit' if own else 'no plan', f'{tool.limit:g} s' if own else 'nothing is planned')
    return {'status': 'ok', 'steady_ns': row['bound_ns'],
            'note': f"the planner's own bound: the linear program takes over {tool.limit:g} s" if own else row['note']}


def interrupt(_signal, _frame):
    raise KeyboardInterrupt


def guarded(name, main):
    """Exit status of main(); what the user did wrong is one line. To be told to end is to be interrupted."""
    signal.signal(signal.SIGTERM, interrupt)
    try:
        main()
    except (Refused, OSError) as e:
        print(f'{name}: {e}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f'\n{name}: stopped', file=sys.stderr)
        return 130
    return 0
