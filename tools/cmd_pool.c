/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_pool.c - umadvise pool: what allocators make of a recorded workload
 *
 * The workload is played through the library with enough memory; its births and frees, with the addresses that the
 * library chose, are what the other pools are compared on.
 */
#include "output.h"
#include "paint.h"
#include "play_args.h"
#include "pool_svg.h"
#include "table.h"
#include "tool.h"
#include "umadvise.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "play/trace_period.h"

#define POOLS 16

struct pool_args {
	unsigned pools[POOLS], n_pools;
	uint64_t iterations;
	int format;
	const char *svg, *output;
};

static const char *pool_name(unsigned i)
{
	const struct um_pool_policy *p = um_pool_policy_at(i);

	return p ? p->name : NULL;
}

static const char *read_pools(void *args, const char *text)
{
	struct pool_args *a = args;

	a->n_pools = 0;
	for (const char *end; text; text = *end ? end + 1 : NULL) {
		unsigned i = 0, k = 0;

		end = text + strcspn(text, ",");
		while (pool_name(i) &&
		       (strncmp(pool_name(i), text, (size_t)(end - text)) != 0 || pool_name(i)[end - text] != '\0'))
			i++;
		if (!pool_name(i))
			return text;
		while (k < a->n_pools && a->pools[k] != i)
			k++;
		if (k == a->n_pools && k < POOLS)
			a->pools[a->n_pools++] = i;
	}
	return NULL;
}

/* A workload that was played. */
struct workload {
	const char *path, *name;
	struct um_trace *trace;
	struct um_pool_calls calls;
	struct um_pool_window before, last;
	size_t period; /* iterations */
	uint64_t elsewhere;
	int planned; /* a plan was followed in the last period */
};

/* Plays long enough that the last period and the one before it are steady. 0 or an exit code. */
static int play(struct workload *w, const struct pool_args *a)
{
	struct um_profile device = *um_profile_find("v100");
	struct um_trace_period period = {0};
	struct play_progress progress;
	struct um_play_result r = {0};
	int err = um_trace_period_find(w->trace, &period);

	if (!err) {
		w->period = period.period;
		um_trace_period_fini(&period);
	}
	device.capacity = 2 * um_trace_peak_bytes(w->trace) + (1ull << 30);
	struct um_play_options o = {.profile = &device,
				    .budget = device.capacity,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = a->iterations > 4 * w->period ? a->iterations : 4 * w->period,
				    .watch = &w->calls.sink,
				    .progress = play_progress_show,
				    .user = &progress};

	play_progress_begin(&progress, w->name, "lookahead");
	if (!err)
		err = um_play(w->trace, &o, &r);
	play_progress_end(&progress);
	if (!err && r.iterations.n)
		err = um_pool_calls_windows(&w->calls, w->period, &w->before, &w->last);
	w->planned = !err && r.iterations.n;
	for (size_t i = 0; i < w->period && w->planned; i++) {
		const struct um_play_iteration *it = &r.iterations.at[r.iterations.n - 1 - i];

		w->elsewhere += it->elsewhere;
		w->planned = it->hinted;
	}
	if (err)
		tool_say("pool", "%s: %s", w->path, *r.why ? r.why : umadv_strerror(err));
	um_play_result_fini(&r);
	return err ? play_exit_of(err) : TOOL_DONE;
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
	{"pool", 1, 1},	   {"footprint MiB", 0, 1}, {"x alive", 0, 1},	  {"reserved MiB", 0, 1},
	{"x alive", 0, 1}, {"steps", 0, 1},	    {"most steps", 0, 1}, {"elsewhere", 0, 0},
};

struct output {
	FILE *to;
	int format;
	int n; /* workloads or rows so far */
	json_t *rows;
};

static double mib(uint64_t bytes)
{
	return (double)bytes / 1048576.0;
}

static double over(uint64_t bytes, uint64_t alive)
{
	return alive ? (double)bytes / (double)alive : 0;
}

static void add_row(struct table *t, const char *pool, const struct um_pool_figures *f)
{
	table_cell(t, "%s", pool);
	table_cell(t, "%.1f", mib(f->blocks));
	table_cell(t, "%.4f", over(f->blocks, f->alive));
	table_cell(t, "%.1f", mib(f->reserved));
	table_cell(t, "%.4f", over(f->reserved, f->alive));
	if (f->steps) {
		table_cell(t, "%.1f", (double)f->steps / (double)(f->births + f->frees));
		table_cell(t, "%llu", (unsigned long long)f->most_steps);
	} else {
		table_cell(t, "-");
		table_cell(t, "-");
	}
	table_cell(t, "%llu", (unsigned long long)f->elsewhere);
}

static void write_heading(struct output *o, const struct workload *w, const struct um_pool_figures *f)
{
	fprintf(o->to, "%s%s%s: %.1f MiB alive at most; %llu births and %llu frees in %s%s\n", o->n++ ? "\n" : "",
		paint(PAINT_HEADING), tool_text(w->name), mib(f->alive), (unsigned long long)f->births,
		(unsigned long long)f->frees, w->period == 1 ? "an iteration" : "the iterations that repeat",
		paint(PAINT_OFF));
}

static void write_csv(struct output *o, const struct workload *w, const char *pool, const struct um_pool_figures *f)
{
	if (!o->n++)
		fputs("trace,pool,alive_bytes,footprint_bytes,reserved_bytes,births,frees,elsewhere,steps,"
		      "most_steps\r\n",
		      o->to);
	tool_csv(o->to, w->name);
	fprintf(o->to, ",%s,%llu,%llu,%llu,%llu,%llu,%llu,", pool, (unsigned long long)f->alive,
		(unsigned long long)f->blocks, (unsigned long long)f->reserved, (unsigned long long)f->births,
		(unsigned long long)f->frees, (unsigned long long)f->elsewhere);
	if (f->steps)
		fprintf(o->to, "%llu,%llu\r\n", (unsigned long long)f->steps, (unsigned long long)f->most_steps);
	else
		fputs(",\r\n", o->to);
}

static int add_json(struct output *o, const struct workload *w, const char *pool, const struct um_pool_figures *f)
{
	json_t *row = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "trace", w->name, "pool", pool,
				"alive_bytes", (json_int_t)f->alive, "footprint_bytes", (json_int_t)f->blocks,
				"reserved_bytes", (json_int_t)f->reserved, "births", (json_int_t)f->births, "frees",
				(json_int_t)f->frees, "elsewhere", (json_int_t)f->elsewhere, "steps",
				f->steps ? json_integer((json_int_t)f->steps) : json_null(), "most_steps",
				f->steps ? json_integer((json_int_t)f->most_steps) : json_null());

	return !row || json_array_append_new(o->rows, row) ? -ENOMEM : 0;
}

/* The pools on one workload. 0 or an exit code. */
static int compare(const struct workload *w, const struct pool_args *a, struct output *o)
{
	struct table t = {.columns = columns, .n = sizeof columns / sizeof *columns};
	int err = 0, code = TOOL_DONE;

	for (unsigned i = 0; i < a->n_pools && !err && !code; i++) {
		const struct um_pool_policy *policy = um_pool_policy_at(a->pools[i]);
		struct um_pool_figures f;

		err = um_pool_compare(&w->calls, w->before, w->last, policy, &f);
		if (policy == &um_pool_library) {
			f.elsewhere = w->elsewhere;
			f.steps = w->planned ? f.steps : 0;
		}
		if (!err && o->format == FORMAT_CSV) {
			write_csv(o, w, policy->name, &f);
		} else if (!err && o->format == FORMAT_JSON) {
			err = add_json(o, w, policy->name, &f);
		} else if (!err) {
			if (!i)
				write_heading(o, w, &f);
			add_row(&t, policy->name, &f);
		}
		if (!err && a->svg && !i)
			code = pool_svg_write(a->svg, w->name, policy->name, &w->calls, w->last, &f);
		um_pool_figures_fini(&f);
	}
	if (!err && t.cells.n)
		err = table_write(&t, o->to);
	if (err)
		tool_say("pool", "%s: %s", w->path, umadv_strerror(err));
	return err ? TOOL_INTERNAL : code;
}

static int run_trace(const char *path, const struct pool_args *a, struct output *o)
{
	const struct play_args reading = {.verb = "pool"};
	struct workload w = {.path = path};
	int code = TOOL_DONE;

	w.trace = play_args_trace(&reading, path, &code);
	if (!w.trace)
		return code;
	w.name = um_trace_header(w.trace)->workload;
	if (!w.name || !*w.name)
		w.name = path;
	um_pool_calls_init(&w.calls);
	code = play(&w, a);
	if (!code)
		code = compare(&w, a, o);
	um_pool_calls_fini(&w.calls);
	um_trace_free(w.trace);
	return code;
}

static int write_json(struct output *o)
{
	json_t *doc = json_pack("{s:s,s:O}", "schema", "umpool/1", "rows", o->rows);
	int err = tool_json(o->to, doc, 0);

	json_decref(doc);
	return err ? TOOL_INTERNAL : TOOL_DONE;
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct pool_args, field)

static const struct arg options[] = {
	ARG(ARG_READ, "pool", 0, 0, "P,...", .read = read_pools, .word = pool_name,
	    .expected = "umadvise, smartpool, best-fit, caching, first-fit or cuda-malloc",
	    .help = "the pools to compare (default: all): umadvise (the library), smartpool (the largest tensor first, "
		    "in advance), best-fit (cnmem), caching (PyTorch, TensorFlow), first-fit (SuperNeurons), "
		    "cuda-malloc"),
	ARG(ARG_COUNT, "iterations", 0, AT(iterations), "N", .least = 4, .most = 1e6, .expected = "a number",
	    .help = "iterations to play, at least four of those that repeat (default: 8)"),
	ARG(ARG_TEXT, "svg", 0, AT(svg), "FILE", .writes = 1,
	    .help = "also draw where the first pool places the tensors of an iteration; needs one trace"),
	ARG_FORMAT(AT(format), 0, "table json csv", "table (default), json or csv"),
	ARG_OUTPUT(AT(output), "write to FILE (-: standard output)"),
	ARG_LAST,
};

static int check(const struct pool_args *a, const struct args_found *found)
{
	if (!found->n)
		tool_say("pool", "no trace given: expected umtrace files");
	else if (a->svg && found->n > 1)
		tool_say("pool", "--svg: expected one trace");
	else
		return TOOL_DONE;
	return TOOL_USAGE;
}

static int run(int argc, char **argv)
{
	struct pool_args a = {.iterations = 8};
	struct args_found found;
	struct tool_output file;
	struct output o = {0};
	int code, failed, any = 0;

	for (unsigned i = 0; pool_name(i); i++)
		a.pools[a.n_pools++] = i;
	code = args_read(&verb_pool, &a, argc, argv, &found);
	if (code != ARGS_GO_ON)
		return code;
	code = check(&a, &found);
	if (!code)
		code = tool_output_open(&file, "pool", a.output);
	if (code)
		return code;
	o = (struct output){.to = file.to, .format = a.format, .rows = a.format == FORMAT_JSON ? json_array() : NULL};
	for (int i = 0; i < found.n && code != TOOL_INTERNAL; i++) {
		int one = run_trace(found.operands[i], &a, &o);

		any |= !one;
		code = one > code ? one : code;
	}
	if (o.rows && code != TOOL_INTERNAL && write_json(&o))
		code = TOOL_INTERNAL;
	json_decref(o.rows);
	failed = tool_output_close(&file, any && code != TOOL_INTERNAL);
	return failed ? failed : code;
}

const struct tool_verb verb_pool = {
	.name = "pool",
	.run = run,
	.what = "compare the library's places with other allocators on recorded workloads",
	.synopsis = "pool TRACE... [OPTION]...",
	.about = "Plays recorded workloads (umtrace) through the library with enough memory, and lets other allocators "
		 "answer the same births and frees. Figures are those of the last iteration, or of the last ones that "
		 "repeat together.\n"
		 "Columns: footprint, 2 MiB blocks that hold a tensor, the most at once: what managed memory needs, "
		 "since other blocks can be discarded; reserved, bytes taken from the device and not returned "
		 "(umadvise: blocks that hold a tensor at any time), which an allocator of device memory needs; x "
		 "alive, over the most bytes alive at once; steps, records of the pool that a birth or a free "
		 "examines: entries of tables and lists, nodes of trees; elsewhere, births that the plan did not "
		 "foresee.",
	.options = options,
	.tail = "cuda-malloc has no steps: each call is one of the driver's.\n\n"
		"Examples:\n"
		"  umadvise pool resnet50.umtrace.gz\n"
		"  umadvise pool *.umtrace.gz --pool umadvise,smartpool -f csv -o pool.csv\n"
		"  umadvise pool vgg16.umtrace.gz --pool umadvise --svg vgg16.svg\n",
};
