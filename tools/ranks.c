/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c - plays the trace of a rank for each number of GPUs
 *
 * All ranks do the same at the same time, so that one of them is played. Its collectives do not use the link to the
 * host.
 */
#include "ranks.h"

#include "output.h"
#include "paint.h"
#include "table.h"
#include "tool.h"
#include "umadvise.h"

#include <errno.h>
#include <string.h>

#include "play/play_again.h"

#define SLOWER 10 /* per cent, unless --at-most-slower is given */

struct ranks {
	const struct play_args *args;
	const char *name;
	const struct um_trace *trace;
	uint64_t budget; /* of a GPU */
	double ring; /* bytes per second */
	UM_VEC(struct ranks_row) rows; /* by strategy, then by number of GPUs */
};

/* --- play --------------------------------------------------------------------------------------------------------- */

/* The device of each of `n` GPUs. */
static struct um_profile device_of(const struct ranks *k, unsigned n)
{
	struct um_profile p = k->args->profile;
	uint64_t sharing = k->args->per_link < n ? k->args->per_link : n;

	if (sharing > 1) {
		p.h2d /= (double)sharing;
		p.d2h /= (double)sharing;
	}
	return p;
}

static int play(struct ranks *k, const struct um_trace *t, const struct um_profile *device, struct ranks_row *row)
{
	char label[80];
	struct play_progress progress;
	struct um_play_options o = {.profile = device,
				    .budget = k->budget,
				    .strategy = row->strategy,
				    .iterations = k->args->iterations,
				    .plan_ms = (unsigned)k->args->plan_ms,
				    .evict = k->args->evict,
				    .pattern = k->args->pattern ? k->args->pattern - 1 : 0,
				    .recompute = um_play_strategy_plans(row->strategy) && k->args->recompute,
				    .progress = play_progress_show,
				    .user = &progress};
	struct um_play_result r;
	int err;

	snprintf(label, sizeof label, "%s on %u GPUs", um_play_strategy_name(row->strategy), row->n);
	play_progress_begin(&progress, k->name, label);
	err = o.recompute ? um_play_again(t, &o, &r) : um_play(t, &o, &r);
	play_progress_end(&progress);
	row->in_core_ns = r.in_core_ns;
	row->ns = r.steady_ns;
	row->gpu_hours = (double)row->ns * row->n * RANKS_STEPS / 3.6e12;
	if (err)
		tool_say(k->args->verb, "%s: %s", k->args->traces[0], *r.why ? r.why : umadv_strerror(err));
	um_play_result_fini(&r);
	return err ? play_exit_of(err) : TOOL_DONE;
}

/* A row of `n` GPUs for each strategy. 0 or an exit code. */
static int play_ranks(struct ranks *k, unsigned n, enum um_play_strategy strategy)
{
	struct ranks_row row = {.n = n, .strategy = strategy};
	struct um_profile device = device_of(k, n);
	struct um_shard_options o = {n, k->ring, &device};
	struct um_trace *t = NULL;
	int err = um_shard(k->trace, &o, &t, &row.ring), code;

	if (err) {
		tool_say(k->args->verb, "%s: %s", k->args->traces[0],
			 err == -EINVAL ? "no operation uses a tensor with the role input or act: nothing can be "
					  "divided among GPUs"
					: umadv_strerror(err));
		return err == -EINVAL ? TOOL_REFUSED : play_exit_of(err);
	}
	row.peak = um_trace_peak_bytes(t);
	code = play(k, t, &device, &row);
	if (!code && um_vec_push(&k->rows, row))
		code = TOOL_INTERNAL;
	um_trace_free(t);
	return code;
}

static int play_all(struct ranks *k)
{
	unsigned most = (unsigned)k->args->ranks;
	int code = TOOL_DONE;

	for (unsigned s = 0; s < k->args->n_strategies; s++)
		for (unsigned n = 1; n <= most && !code; n = n < most && 2 * n > most ? most : 2 * n)
			code = play_ranks(k, n, k->args->strategies[s]);
	if (!code && most > 1 && !k->rows.at[k->rows.n - 1].ring.buckets)
		tool_say(k->args->verb,
			 "note: %s has no gradients (role grad) that are read after the backward pass: nothing is "
			 "reduced",
			 k->args->traces[0]);
	return code;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static double slower(const struct ranks *k)
{
	return k->args->slower >= 0 ? k->args->slower : SLOWER;
}

/* The row with the fewest GPUs of a strategy that is fast enough, or NULL. */
static const struct ranks_row *fewest(const struct ranks *k, enum um_play_strategy s)
{
	for (size_t i = 0; i < k->rows.n; i++) {
		const struct ranks_row *r = &k->rows.at[i];

		if (r->strategy == s && (double)r->ns <= (double)r->in_core_ns * (1 + slower(k) / 100))
			return r;
	}
	return NULL;
}

/* The row of one GPU with the same strategy. */
static const struct ranks_row *single(const struct ranks *k, const struct ranks_row *r)
{
	while (r > k->rows.at && r->n > 1)
		r--;
	return r;
}

static const struct table_column columns[] = {
	{"strategy", 1, 1},	 {"GPUs", 0, 1},       {"needs MiB", 0, 1},  {"x memory", 0, 1},
	{"all-reduce ms", 0, 1}, {"exposed ms", 0, 1}, {"in core ms", 0, 1}, {"step ms", 0, 1},
	{"x core", 0, 1},	 {"x one GPU", 0, 1},  {"GPU-h", 0, 1},
};

static void add_cells(const struct ranks *k, struct table *t, const struct ranks_row *r)
{
	table_cell(t, "%s", um_play_strategy_name(r->strategy));
	table_cell(t, "%u", r->n);
	table_cell(t, "%.1f", (double)r->peak / 1048576.0);
	table_cell(t, "%.2f", (double)r->peak / (double)k->budget);
	table_cell(t, "%.3f", (double)r->ring.collective_ns / 1e6);
	table_cell(t, "%.3f", (double)r->ring.exposed_ns / 1e6);
	table_cell(t, "%.3f", (double)r->in_core_ns / 1e6);
	table_cell(t, "%.3f", (double)r->ns / 1e6);
	table_cell(t, "%.3f", r->in_core_ns ? (double)r->ns / (double)r->in_core_ns : 0);
	table_cell(t, "%.2f", r->ns ? (double)single(k, r)->ns / (double)r->ns : 0);
	table_cell(t, "%.4g", r->gpu_hours);
}

static void make_title(const struct ranks *k, char *to, size_t size)
{
	snprintf(to, size, "%s on %s%llu GPUs (%s) with %.1f MiB each; gradients in a ring of %.4g GB/s",
		 tool_text(k->name), k->args->ranks > 1 ? "1 to " : "", (unsigned long long)k->args->ranks,
		 k->args->profile.name, (double)k->budget / 1048576.0, k->ring / 1e9);
}

static int write_table(const struct ranks *k, FILE *to)
{
	struct table t = {.columns = columns, .n = sizeof columns / sizeof *columns};
	char title[256];

	make_title(k, title, sizeof title);
	fprintf(to, "%s%s; GPU-h: of %d steps%s\n", paint(PAINT_HEADING), title, RANKS_STEPS, paint(PAINT_OFF));
	for (size_t i = 0; i < k->rows.n; i++)
		add_cells(k, &t, &k->rows.at[i]);
	if (table_write(&t, to))
		return TOOL_INTERNAL;
	for (unsigned i = 0; i < k->args->n_strategies; i++) {
		const char *name = um_play_strategy_name(k->args->strategies[i]);
		const struct ranks_row *r = fewest(k, k->args->strategies[i]);

		if (r)
			table_wrapf(to, 0, 2,
				    "%s: %u GPU%s %s the fewest whose step takes at most %g %% longer than "
				    "with all data resident",
				    name, r->n, r->n > 1 ? "s" : "", r->n > 1 ? "are" : "is", slower(k));
		else
			table_wrapf(to, 0, 2,
				    "%s: on no number of GPUs does a step take at most %g %% longer than with "
				    "all data resident",
				    name, slower(k));
	}
	return TOOL_DONE;
}

static int write_csv(const struct ranks *k, FILE *to)
{
	fputs("trace,profile,strategy,gpus,budget_bytes,peak_bytes,ring_bytes_per_s,reduced_bytes,collective_ns,"
	      "exposed_ns,in_core_ns,steady_ns,gpu_hours\r\n",
	      to);
	for (size_t i = 0; i < k->rows.n; i++) {
		const struct ranks_row *r = &k->rows.at[i];

		tool_csv(to, k->name);
		fputc(',', to);
		tool_csv(to, k->args->profile.name);
		fprintf(to, ",%s,%u,%llu,%llu,%.17g,%llu,%llu,%llu,%llu,%llu,%.17g\r\n",
			um_play_strategy_name(r->strategy), r->n, (unsigned long long)k->budget,
			(unsigned long long)r->peak, k->ring, (unsigned long long)r->ring.reduced_bytes,
			(unsigned long long)r->ring.collective_ns, (unsigned long long)r->ring.exposed_ns,
			(unsigned long long)r->in_core_ns, (unsigned long long)r->ns, r->gpu_hours);
	}
	return TOOL_DONE;
}

static json_t *json_rows(const struct ranks *k)
{
	json_t *rows = json_array();

	for (size_t i = 0; rows && i < k->rows.n; i++) {
		const struct ranks_row *r = &k->rows.at[i];
		json_t *row =
			json_pack("{s:s,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:b}", "strategy",
				  um_play_strategy_name(r->strategy), "gpus", (int)r->n, "peak_bytes",
				  (json_int_t)r->peak, "reduced_bytes", (json_int_t)r->ring.reduced_bytes,
				  "collective_ns", (json_int_t)r->ring.collective_ns, "exposed_ns",
				  (json_int_t)r->ring.exposed_ns, "in_core_ns", (json_int_t)r->in_core_ns, "steady_ns",
				  (json_int_t)r->ns, "gpu_hours", r->gpu_hours, "fewest", fewest(k, r->strategy) == r);

		if (!row || json_array_append_new(rows, row)) {
			json_decref(rows);
			return NULL;
		}
	}
	return rows;
}

static int write_json(const struct ranks *k, FILE *to)
{
	json_t *doc =
		json_pack("{s:s,s:s,s:s,s:I,s:f,s:i,s:f,s:o*}", "schema", "umranks/1", "trace", k->name, "profile",
			  k->args->profile.name, "budget_bytes", (json_int_t)k->budget, "ring_bytes_per_s", k->ring,
			  "steps", RANKS_STEPS, "at_most_slower", slower(k) / 100, "rows", json_rows(k));
	int err = tool_json(to, doc, JSON_REAL_PRECISION(17));

	json_decref(doc);
	return err ? TOOL_INTERNAL : TOOL_DONE;
}

static int write_rows(const struct ranks *k)
{
	struct tool_output file;
	char title[256];
	int code = tool_output_open(&file, k->args->verb, k->args->output), failed;

	if (code)
		return code;
	code = k->args->format == FORMAT_JSON  ? write_json(k, file.to)
	       : k->args->format == FORMAT_CSV ? write_csv(k, file.to)
					       : write_table(k, file.to);
	failed = tool_output_close(&file, !code);
	code = failed ? failed : code;
	if (code || !k->args->svg)
		return code;
	make_title(k, title, sizeof title);
	return ranks_svg_write(k->args->svg, title, k->rows.at, k->rows.n);
}

int ranks_main(const struct play_args *a)
{
	struct ranks k = {.args = a, .ring = a->ring > 0 ? a->ring : a->profile.h2d};
	int code = TOOL_DONE;
	struct um_trace *t = play_args_trace(a, a->traces[0], &code);

	if (!t)
		return code;
	k.trace = t;
	k.name = um_trace_header(t)->workload;
	k.name = k.name && *k.name ? k.name : a->traces[0];
	k.budget = play_args_budget(a, t, a->n_ratios ? a->ratios[0] : 0);
	code = play_all(&k);
	if (!code)
		code = write_rows(&k);
	um_vec_fini(&k.rows);
	um_trace_free(t);
	return code;
}
