/* SPDX-License-Identifier: Apache-2.0
 *
 * A rectangle for each tensor: from its birth to its free, at its addresses. Addresses that no tensor of the iteration
 * has are left out, so that the arenas of a pool lie next to each other. What would not be seen is not drawn.
 */
#include "pool_svg.h"

#include "base/bisect.h"
#include "model/event.h"
#include "output.h"
#include "svg.h"
#include "tool.h"

#define MIB(b) ((double)(b) / 1048576.0)
#define LEFT 80.0
#define WIDE 1100.0
#define TOP 84.0
#define HIGH 560.0
#define THIN 0.15 /* pixels */

enum { PAGE_WIDE = 1200, PAGE_HIGH = 690, LONG = 8 }; /* LONG: from this share of the iteration on */

enum life { STAYS, CROSSES, LASTS, SHORT, LIVES };
static const char *const colours[LIVES] = {"#3366cc", "#e67300", "#8e5ac8", "#c9a400"};
static const char *const names[LIVES] = {"stays", "crosses the end", "long-lived", "short-lived"};

/* A range of blocks in use, and the blocks in use below it. */
struct part {
	uint64_t from, to, below;
};

struct drawing {
	FILE *to;
	const struct um_pool_calls *c;
	struct um_pool_window w;
	const struct um_pool_figures *f;
	UM_VEC(struct part) parts;
	uint64_t blocks; /* in use during the iteration */
	uint32_t first_op, ops;
};

static int is_shown(const struct drawing *d, const struct um_pool_tensor *t)
{
	return t->birth < d->w.to && t->death >= d->w.from;
}

static int by_from(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Finds the parts of the addresses. 0 or -ENOMEM. */
static int find_parts(struct drawing *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->c->tensors.n; i++) {
		const struct um_pool_tensor *t = &d->c->tensors.at[i];
		uint64_t at = d->f->addr[i];
		struct part p = {at / UM_BLOCK_BYTES, (at + t->bytes - 1) / UM_BLOCK_BYTES + 1, 0};

		if (is_shown(d, t) && um_vec_push(&d->parts, p))
			return -ENOMEM;
	}
	if (d->parts.n)
		qsort(d->parts.at, d->parts.n, sizeof *d->parts.at, by_from);
	for (size_t i = 0; i < d->parts.n; i++) {
		struct part p = d->parts.at[i];

		if (n && p.from <= d->parts.at[n - 1].to) {
			if (p.to > d->parts.at[n - 1].to)
				d->parts.at[n - 1].to = p.to;
			continue;
		}
		p.below = n ? d->parts.at[n - 1].below + d->parts.at[n - 1].to - d->parts.at[n - 1].from : 0;
		d->parts.at[n++] = p;
	}
	d->parts.n = n;
	d->blocks = n ? d->parts.at[n - 1].below + d->parts.at[n - 1].to - d->parts.at[n - 1].from : 0;
	return 0;
}

/* Bytes in use below an address. */
static uint64_t height_of(const struct drawing *d, uint64_t addr)
{
	size_t lo = 0;

	UM_BISECT(lo, d->parts.n, i, d->parts.at[i].to * UM_BLOCK_BYTES <= addr)
	return d->parts.at[lo].below * UM_BLOCK_BYTES + addr - d->parts.at[lo].from * UM_BLOCK_BYTES;
}

static double x_of(const struct drawing *d, uint32_t op)
{
	return LEFT + (d->ops ? WIDE * (double)(op - d->first_op) / d->ops : 0);
}

static double scale(const struct drawing *d, uint64_t bytes)
{
	return d->blocks ? HIGH * (double)bytes / ((double)d->blocks * UM_BLOCK_BYTES) : 0;
}

static enum life life_of(const struct drawing *d, const struct um_pool_tensor *t, uint32_t from, uint32_t to)
{
	if (t->birth < d->w.from)
		return t->death >= d->w.to ? STAYS : CROSSES;
	if (t->death >= d->w.to)
		return CROSSES;
	return (uint64_t)(to - from) * LONG > d->ops ? LASTS : SHORT;
}

static void draw_tensor(const struct drawing *d, size_t i)
{
	const struct um_pool_tensor *t = &d->c->tensors.at[i];
	uint32_t from = t->birth < d->w.from ? d->first_op : d->c->calls.at[t->birth].op;
	uint32_t to = t->death >= d->w.to ? d->first_op + d->ops : d->c->calls.at[t->death].op;
	double x = x_of(d, from), wide = x_of(d, to) - x, high = scale(d, t->bytes);
	double y = TOP + HIGH - scale(d, height_of(d, d->f->addr[i])) - high;
	enum life life = life_of(d, t, from, to);

	if (high < THIN)
		return;
	fprintf(d->to,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>%s: %.3f MiB, ops %u "
		"to %u</title></rect>\n",
		x, y, wide > THIN ? wide : THIN, high, colours[life], names[life], MIB(t->bytes), from - d->first_op,
		to - d->first_op);
}

static void draw_head(const struct drawing *d, const char *workload, const char *pool)
{
	double x = LEFT;

	svg_begin(d->to, PAGE_WIDE, PAGE_HIGH);
	fprintf(d->to, "<text x=\"%g\" y=\"24\" font-size=\"16\">", LEFT);
	svg_text(d->to, workload);
	fprintf(d->to,
		", %s</text>\n<text x=\"%g\" y=\"44\">%.1f MiB alive at most, in %.1f MiB of blocks; %.1f MiB "
		"reserved</text>\n",
		pool, LEFT, MIB(d->f->alive), MIB(d->f->blocks), MIB(d->f->reserved));
	for (int i = 0; i < LIVES; i++, x += 130)
		fprintf(d->to,
			"<rect x=\"%g\" y=\"58\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%g\" y=\"68\">%s</text>\n",
			x, colours[i], x + 16, names[i]);
}

static void draw_axes(const struct drawing *d)
{
	double mib = MIB(d->blocks * UM_BLOCK_BYTES), step = svg_step(mib, 8), ops = svg_step(d->ops, 12);

	for (int i = 0; mib > 0 && i * step <= mib; i++) {
		double y = TOP + HIGH - HIGH * i * step / mib;

		fprintf(d->to,
			"<path d=\"M%g %.1fH%g\" stroke=\"#ddd\"/>"
			"<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g MiB</text>\n",
			LEFT, y, LEFT + WIDE, LEFT - 6, y + 4, i * step);
	}
	ops = ops < 1 ? 1 : ops;
	for (int i = 0; i * ops <= d->ops; i++)
		fprintf(d->to,
			"<path d=\"M%.1f %gv6\" stroke=\"#333\"/>"
			"<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s%g</text>\n",
			x_of(d, d->first_op + (uint32_t)(i * ops)), TOP + HIGH,
			x_of(d, d->first_op + (uint32_t)(i * ops)), TOP + HIGH + 20, i ? "" : "op ", i * ops);
}

int pool_svg_write(const char *path, const char *workload, const char *pool, const struct um_pool_calls *calls,
		   struct um_pool_window window, const struct um_pool_figures *figures)
{
	struct drawing d = {.c = calls, .w = window, .f = figures};
	struct tool_output file;
	int code = tool_output_open(&file, "pool", path), err;

	if (code)
		return code;
	d.to = file.to;
	d.first_op = window.from < window.to ? calls->calls.at[window.from].op : calls->ops;
	d.ops = calls->ops - d.first_op;
	err = find_parts(&d);
	if (!err) {
		draw_head(&d, workload, pool);
		draw_axes(&d);
		for (size_t i = 0; i < calls->tensors.n; i++)
			if (is_shown(&d, &calls->tensors.at[i]))
				draw_tensor(&d, i);
		fputs("</svg>\n", d.to);
	}
	um_vec_fini(&d.parts);
	code = tool_output_close(&file, !err);
	return err ? TOOL_INTERNAL : code;
}
