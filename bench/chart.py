# SPDX-License-Identifier: Apache-2.0
"""chart.py - the drawing of bench/strategies: four figures, a line for each strategy

in    rows in order (typed), names of the strategies
out   SVG, self-contained; sizes are such that it can be read at 1280 pixels and at half of that

A line has the range of all cases (thin), the middle half of them (thick), and the mean (a dot, and in figures): the
geometric one of times, the arithmetic one of shares.
"""

from math import ceil, exp, floor, log, log10
from xml.sax.saxutils import escape

import tables

WIDTH, LABEL, PLOT, VALUE, GAP, LEFT = 980, 186, 290, 62, 26, 14
ROW, TITLE, AXIS, TOP = 25, 34, 30, 70
INK, SOFT, RULE, OURS, OTHERS = '#1a1a1a', '#555555', '#dddddd', '#0b5cad', '#555555'


class Panel:
    def __init__(self, title, better, figure, is_log):
        self.title, self.better, self.figure, self.is_log = title, better, figure, is_log
        self.values = {}

    def feed(self, name, row, alone):
        value = self.figure(row, alone)
        if value is not None:
            self.values.setdefault(name, []).append(value)

    def mean(self, name):
        v = self.values[name]
        return exp(sum(map(log, v)) / len(v)) if self.is_log else sum(v) / len(v)

    def scale(self):
        """(least, most, ticks)"""
        every = [v for some in self.values.values() for v in some] or [1]
        if not self.is_log:
            return linear_scale(max(every))
        return log_scale(min(every), max(every))


def linear_scale(most):
    step = 10 ** floor(log10(max(most, 1) / 4))
    step *= next(k for k in (1, 2, 2.5, 5, 10) if most / (step * k) <= 5)
    n = max(ceil(most / step), 1)
    return 0, n * step, [k * step for k in range(n + 1)]


def log_scale(least, most):
    """From a round number to a round number, with as many in between as can be told apart."""
    for steps in ((1, 1.1, 1.2, 1.3, 1.5, 1.7, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.2, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3),
                  (1,)):
        ticks = [float(f'{s}e{k}') for k in range(-4, 7) for s in steps]
        low = max((t for t in ticks if t <= least * 1.0005), default=ticks[0])
        high = min((t for t in ticks if t >= most * 0.9995 and t > low), default=ticks[-1])
        inside = [t for t in ticks if low <= t <= high]
        gap = min(log(b / a) for a, b in zip(inside, inside[1:])) / log(high / low)
        if gap * PLOT >= 34:
            return low, high, inside
    return low, high, [low, high]


def quarter(values, share):
    """Between the nearest two."""
    some = sorted(values)
    at = share * (len(some) - 1)
    i = int(at)
    return some[i] + (some[min(i + 1, len(some) - 1)] - some[i]) * (at - i)


def number(value):
    return f'{value:.2g}' if value < 0.095 else f'{value:.2f}' if value < 10 else f'{value:.0f}'


def text(x, y, words, anchor='start', size=15, fill=INK, weight='normal'):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def line(x1, y1, x2, y2, stroke, width):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" stroke-width="{width}"/>'


def draw_panel(panel, names, left, top):
    least, most, ticks = panel.scale()

    def at(value):
        if panel.is_log:
            return left + PLOT * log(max(value, least) / least) / log(most / least)
        return left + PLOT * value / most
    bottom = top + TITLE + ROW * len(names)
    out = [text(left, top + 14, panel.title, weight='bold'),
           text(left + PLOT + VALUE, top + 14, panel.better, 'end', 13, SOFT)]
    for tick in ticks:
        out.append(line(at(tick), top + TITLE - 8, at(tick), bottom, RULE, 1))
        out.append(text(at(tick), bottom + 16, f'{tick:g}', 'middle', 13, SOFT))
    for i, name in enumerate(names):
        y, colour = top + TITLE + ROW * i + ROW / 2, OURS if name == tables.OURS else OTHERS
        values = panel.values.get(name)
        if not values:
            out.append(text(left + PLOT + VALUE, y + 5, '-', 'end', 14, SOFT))
            continue
        mean = panel.mean(name)
        out.append(line(at(min(values)), y, at(max(values)), y, colour, 2))
        out.append(line(at(quarter(values, 0.25)), y, at(quarter(values, 0.75)), y, colour, 8))
        out.append(f'<circle cx="{at(mean):.1f}" cy="{y:.1f}" r="6" fill="#ffffff" stroke="{colour}" '
                   'stroke-width="3"/>')
        out.append(text(left + PLOT + VALUE, y + 5, number(mean), 'end', 14, INK,
                        'bold' if name == tables.OURS else 'normal'))
    return out


def draw_labels(names, top):
    for i, name in enumerate(names):
        y = top + TITLE + ROW * i + ROW / 2 + 5
        ours = name == tables.OURS
        size = min(15, 15 * 20 / len(name))  # a longer name than any now is made to fit
        yield text(LEFT + LABEL - 14, y, name, 'end', round(size, 1), OURS if ours else INK,
                   'bold' if ours else 'normal')


def over_alone(key):
    def figure(row, alone):
        return 100 * key(row) / key(alone) if alone and key(alone) else None
    return figure


def document(rows, names):
    cases = tables.by_case(rows)
    panels = [Panel('Time over the lower bound', 'less is better', lambda row, _: row['x_bound'], True),
              Panel('Times as fast as on-demand', 'more is better', lambda row, _: row['x_on_demand'], True),
              Panel("Faults, % of on-demand's", 'less is better', over_alone(lambda row: row['faults']), False),
              Panel("Bytes, % of on-demand's", 'less is better', over_alone(tables.copied), False)]
    for case in cases.values():
        for name, row in case.items():
            for panel in panels:
                panel.feed(name, row, case.get('on-demand'))
    first = panels[0] if panels[0].values else panels[1]
    sign = 1 if first is panels[0] else -1
    order = sorted(names, key=lambda name: sign * first.mean(name) if name in first.values else float('inf'))
    height = TITLE + ROW * len(order) + AXIS + GAP
    total = TOP + 2 * height
    count = '1 case' if len(cases) == 1 else f'{len(cases)} cases'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" '
           'font-family="Helvetica, Arial, sans-serif">',
           f'<title>Strategies side by side: {count}</title>',
           f'<rect width="{WIDTH}" height="{total}" fill="#ffffff"/>',
           text(LEFT, 28, f'Strategies side by side: a steady iteration, {count}', size=20, weight='bold'),
           text(LEFT, 50, 'Dot and figure: the mean. Thick: the middle half of the cases. Thin: all of them.', size=14,
                fill=SOFT)]
    for i, panel in enumerate(panels):
        top = TOP + height * (i // 2)
        if i % 2 == 0:
            out += draw_labels(order, top)
        out += draw_panel(panel, order, LEFT + LABEL + (PLOT + VALUE + GAP) * (i % 2), top)
    return '\n'.join(out + ['</svg>']) + '\n'
