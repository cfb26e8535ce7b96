# SPDX-License-Identifier: Apache-2.0
"""tables.py - the document of bench/strategies: the table, and what follows from it

in    rows in order (typed), names of the strategies, the command that was given
out   Markdown
"""

from math import exp, log

OURS = 'lookahead'
NOT_PEERS = (OURS, 'infinite')
AHEAD = 1.01  # ahead of another: by more than that
INTEGERS = ('budget_bytes', 'steady_ns', 'planned_ns', 'in_core_ns', 'faults', 'h2d_bytes', 'd2h_bytes', 'stall_ns',
            'hints', 'peak_resident_bytes', 'bound_ns', 'on_demand_ns')
REALS = ('x_bound', 'planned_x_bound', 'x_on_demand', 'x_in_core')


def typed(row):
    """A row of the csv with numbers in it; None where there is none."""
    out = dict(row)
    out.update({key: int(row[key]) if row[key] else None for key in INTEGERS})
    out.update({key: float(row[key]) if row[key] else None for key in REALS})
    return out


def geomean(values):
    return exp(sum(map(log, values)) / len(values)) if values else None


def cell(value, form='.3f'):
    return '-' if value is None else format(value, form)


def ms(ns):
    return None if ns is None else ns / 1e6


def mib(count):
    return None if count is None else count / 2 ** 20


def case_of(row):
    return row['trace'], row['profile'], row['ratio']


def say(case):
    return f'{case[0]}, {case[1]}, {case[2]}x'


def by_case(rows):
    """{case: {strategy: row}} of what was played."""
    out = {}
    for row in rows:
        if row['status'] == 'ok':
            out.setdefault(case_of(row), {})[row['strategy']] = row
    return out


def best_peer(case, figure='steady_ns'):
    peers = [row for name, row in case.items() if name not in NOT_PEERS and row[figure]]
    return min(peers, key=lambda row: row[figure]) if peers else None


def table(rows):
    yield '| workload | device | x | strategy | ms | x bound | planned x bound | x on-demand | x in-core | faults ' \
          '| MiB in | MiB out |'
    yield '| --- ' * 12 + '|'
    for row in rows:
        if row['status'] in ('does not fit', 'not run'):
            continue
        head = f'| {row["trace"]} | {row["profile"]} | {row["ratio"]} | {row["strategy"]} '
        if row['status'] != 'ok':
            yield head + f'| {row["status"]} ' + '| - ' * 7 + '|'
            continue
        yield head + ''.join((
            f'| {cell(ms(row["steady_ns"]))} | {cell(row["x_bound"])} | {cell(row["planned_x_bound"])} ',
            f'| {cell(row["x_on_demand"], ".2f")} | {cell(row["x_in_core"])} | {cell(row["faults"], "d")} ',
            f'| {cell(mib(row["h2d_bytes"]), ".0f")} | {cell(mib(row["d2h_bytes"]), ".0f")} |'))


def worst(rows, key, most=True):
    some = [row for row in rows if row[key] is not None]
    if not some:
        return '-'
    row = (max if most else min)(some, key=lambda row: row[key])
    return f'{row[key]:.3f} ({say(case_of(row))})'


def share(rows, of, key):
    """Mean of a figure over on-demand's of the same case, in per cent."""
    parts = [key(row) / key(of[case_of(row)]) for row in rows if case_of(row) in of and key(of[case_of(row)])]
    return f'{100 * sum(parts) / len(parts):.1f} %' if parts else '-'


def copied(row):
    return row['h2d_bytes'] + row['d2h_bytes']


def overview(rows, names, cases):
    yield '| strategy | cases | x bound | worst | planned x bound | worst | x on-demand | least | x in-core ' \
          '| cases with faults | bytes, of on-demand |'
    yield '| --- ' * 11 + '|'
    alone = {key: case['on-demand'] for key, case in cases.items() if 'on-demand' in case}
    for name in names:
        asked = [row for row in rows if row['strategy'] == name and row['status'] != 'does not fit']
        ok = [row for row in asked if row['status'] == 'ok']
        mean = {key: geomean([row[key] for row in ok if row[key] is not None]) for key in REALS}
        yield (f'| {name} | {len(ok)} of {len(asked)} | {cell(mean["x_bound"])} | {worst(ok, "x_bound")} '
               f'| {cell(mean["planned_x_bound"])} | {worst(ok, "planned_x_bound")} '
               f'| {cell(mean["x_on_demand"], ".2f")} | {worst(ok, "x_on_demand", False)} '
               f'| {cell(mean["x_in_core"])} | {sum(bool(row["faults"]) for row in ok)} '
               f'| {share(ok, alone, copied)} |')


def behind(cases):
    """Where lookahead is behind another."""
    found = []
    for key, case in cases.items():
        if OURS not in case:
            continue
        ahead = sorted((row['steady_ns'], name) for name, row in case.items()
                       if name not in NOT_PEERS and row['steady_ns'] * AHEAD < case[OURS]['steady_ns'])
        if ahead:
            names = ', '.join(f'{n} {100 * case[OURS]["steady_ns"] / ns - 100:.1f} %' for ns, n in ahead)
            found.append(f'| {key[0]} | {key[1]} | {key[2]} | {names} |')
    n = sum(OURS in case for case in cases.values())
    yield f'{OURS} is behind another by more than 1 % in {len(found)} of {n} cases' + (':' if found else '.')
    if found:
        yield ''
        yield '| workload | device | x | ahead of it |'
        yield '| --- | --- | --- | --- |'
        yield from found


def faulting(cases):
    """Where lookahead faults; a regular iteration should not."""
    some = [f'{say(key)} ({case[OURS]["faults"]})' for key, case in cases.items()
            if OURS in case and case[OURS]['faults']]
    if some:
        yield ''
        yield f'{OURS} faults in a steady iteration: ' + '; '.join(some) + '.'


def against_best(cases, chosen):
    """Lookahead against the best of the others there, and the most that anyone could have over them."""
    gains, most, planned = [], [], []
    for key, case in cases.items():
        peer, plan = best_peer(case), best_peer(case, 'planned_ns')
        if key[2] not in chosen or OURS not in case or not peer:
            continue
        gains.append(peer['steady_ns'] / case[OURS]['steady_ns'])
        if peer['bound_ns']:
            most.append(peer['steady_ns'] / peer['bound_ns'])
        if plan and case[OURS]['planned_ns']:
            planned.append(plan['planned_ns'] / case[OURS]['planned_ns'])
    if not gains:
        return
    yield (f'At {" and ".join(r + "x" for r in chosen)} the best of the others takes {geomean(gains):.3f} times as '
           f'long as {OURS} (geometric mean of {len(gains)} cases, from {min(gains):.3f} to {max(gains):.3f}).')
    if most:
        yield (f'A plan at the bound, which the driver\'s own costs are no part of, would have {geomean(most):.3f} '
               f'({len(most)} cases with a bound).')
    if planned:
        yield (f'By plans alone the best of the others takes {geomean(planned):.3f} times as long as {OURS} '
               f'({len(planned)} cases, from {min(planned):.3f} to {max(planned):.3f}).')


def against_peers(names, cases):
    yield '| strategy | cases | its time over that of lookahead | least | most | the same as planned |'
    yield '| --- ' * 6 + '|'
    for name in names:
        both = [(case[name], case[OURS]) for case in cases.values() if name in case and OURS in case]
        if name in NOT_PEERS or not both:
            continue
        played = [peer['steady_ns'] / ours['steady_ns'] for peer, ours in both]
        planned = [peer['planned_ns'] / ours['planned_ns'] for peer, ours in both
                   if peer['planned_ns'] and ours['planned_ns']]
        yield (f'| {name} | {len(both)} | {geomean(played):.3f} | {min(played):.3f} | {max(played):.3f} '
               f'| {cell(geomean(planned))} |')


def grouped(rows):
    """(trace, "v100 1.5x 2x, a100 2x")"""
    traces = {}
    for row in rows:
        traces.setdefault(row['trace'], {}).setdefault(row['profile'], []).append(row['ratio'] + 'x')
    for trace, devices in traces.items():
        yield trace, ', '.join(f'{device} {" ".join(some)}' for device, some in devices.items())


def not_played(rows):
    """What has no figures, and why."""
    groups, unfit = {}, {}
    for row in rows:
        if row['status'] == 'does not fit':
            unfit[case_of(row)] = row['note']
        elif row['status'] != 'ok':
            groups.setdefault((row['strategy'], row['status']), []).append(row)
    for (name, status), some in groups.items():
        # Why a scheme makes no plan differs by figures only: those are in the csv.
        why = ', '.join(sorted({row['note'] for row in some if status != 'no plan' and row['note']}))
        where = '; '.join(f'{trace} on {devices}' for trace, devices in grouped(some))
        yield f'- {name}, {status} ({len(some)}): {where}' + (f': {why}' if why else '')
    for case, why in unfit.items():
        yield f'- {say(case)}: does not fit: {why}'


def notes_on_bounds(cases):
    low = [f'{say(key)}, {name}' for key, case in cases.items() for name, row in case.items()
           if any(row[k] is not None and row[k] < 0.9995 for k in ('x_bound', 'planned_x_bound'))]
    if low:
        yield ''
        yield 'Below the bound, which can not be: ' + '; '.join(low) + '.'
    weak = {}
    for case in cases.values():
        row = next(iter(case.values()))
        if row['bound_note']:
            weak.setdefault(row['bound_note'], []).append(row)
    for note, some in weak.items():
        yield ''
        yield f'Bounds, {note} ({len(some)}): ' + '; '.join(f'{t} on {d}' for t, d in grouped(some)) + '.'


def document(rows, names, command, args):
    cases = by_case(rows)
    link = 'duplex 1 and eta 1' if args.link_ideal else 'the link as in the profile'
    out = ['# Strategies side by side', '',
           f'Steady iteration after {args.iterations} iterations on the simulated GPU, {link}. By', '',
           '    ' + command, '',
           '`x bound` is the time over a bound of the linear program on any plan; `planned` that of the plan alone, '
           'without', 'what the simulated driver adds. `x on-demand` and `x in-core`: how many times as fast as the '
           'driver alone, and as', 'long as with all data resident. The driver alone is shown with the pattern of '
           'faults that is kindest to it. The', 'summary is below the table.', '']
    out += list(table(rows)) + ['', '## Summary', '', 'Geometric means over the cases that were played:', '']
    out += list(overview(rows, names, cases)) + list(notes_on_bounds(cases))
    if OURS in names and len(names) > 1:
        out += [''] + list(behind(cases)) + list(faulting(cases))
        # What it must be best at is oversubscription by a half and by two; with other ratios, all of them.
        chosen = [r for r in args.ratios if r in ('1.5', '2')] or args.ratios
        best = list(against_best(cases, chosen))
        out += ([''] + best if best else []) + [''] + list(against_peers(names, cases))
    rest = list(not_played(rows))
    if rest:
        out += ['', '## Not played', ''] + rest
    return '\n'.join(out) + '\n'
