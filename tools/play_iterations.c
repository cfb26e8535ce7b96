/* SPDX-License-Identifier: Apache-2.0 */
#include "play_iterations.h"

#include "tool.h"

#include <string.h>

#define KINDS 16 /* rows; the last one is for all further kinds */

const struct table_column play_kind_columns[PLAY_KIND_COLUMNS] = {
	{"strategy", 1, 1}, {"kind", 1, 1},    {"met", 0, 1},	      {"hinted", 0, 1},
	{"helped", 0, 0},   {"time ms", 0, 1}, {"x on-demand", 0, 0},
};

int play_iteration_helped(const struct um_play_result *r, const struct um_play_result *on_demand, size_t i)
{
	if (!on_demand || i >= on_demand->iterations.n)
		return -1;
	return r->iterations.at[i].ns < on_demand->iterations.at[i].ns;
}

void play_iteration_cells(struct table *t, const struct um_play_result *r, const struct um_play_result *on_demand,
			  size_t i)
{
	int helped = play_iteration_helped(r, on_demand, i);

	for (int k = 0; k < UM_HINT_SOURCES; k++)
		table_cell(t, "%llu", (unsigned long long)r->iterations.at[i].by.hints[k]);
	table_cell(t, "%s", helped < 0 ? "-" : helped ? "yes" : "no");
}

void play_iteration_sums(struct table *t, const struct um_play_result *r, const struct um_play_result *on_demand)
{
	size_t helped = 0;

	for (size_t i = 0; i < r->iterations.n; i++)
		helped += play_iteration_helped(r, on_demand, i) > 0;
	for (int k = 0; k < UM_HINT_SOURCES; k++)
		table_cell(t, "-");
	if (on_demand)
		table_cell(t, "%zu of %zu", helped, r->iterations.n);
	else
		table_cell(t, "-");
}

void play_iteration_csv(FILE *to, const struct um_play_result *r, const struct um_play_result *on_demand, size_t i)
{
	const struct um_play_iteration *it = &r->iterations.at[i];
	int helped = play_iteration_helped(r, on_demand, i);

	fprintf(to, "%zu,%llu,%llu,%llu,%s", i, (unsigned long long)it->ns, (unsigned long long)it->faults,
		(unsigned long long)it->stall_ns,
		helped < 0 ? ""
		: helped   ? "1"
			   : "0");
	for (int k = 0; k < UM_HINT_SOURCES; k++)
		fprintf(to, ",%llu", (unsigned long long)it->by.hints[k]);
	for (int k = 0; k < UM_HINT_SOURCES; k++)
		fprintf(to, ",%llu", (unsigned long long)it->by.prefetch_bytes[k]);
	fprintf(to, ",%llu,%llu", (unsigned long long)it->h2d_bytes, (unsigned long long)it->d2h_bytes);
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

static int same_kind(const struct um_play_iteration *a, const struct um_play_iteration *b)
{
	if (a->name && b->name)
		return strcmp(a->name, b->name) == 0;
	return !a->name && !b->name && a->kind == b->kind;
}

/* The first iteration of that kind. */
static size_t first_of(const struct um_play_result *r, size_t i)
{
	size_t first = 0;

	while (!same_kind(&r->iterations.at[first], &r->iterations.at[i]))
		first++;
	return first;
}

/* The number of the kind, counted from 1 in order of appearance. */
static unsigned number_of(const struct um_play_result *r, size_t i)
{
	size_t first = first_of(r, i);
	unsigned n = 1;

	for (size_t k = 0; k < first; k++)
		n += first_of(r, k) == k;
	return n;
}

static void kind_name(char *to, size_t size, const struct um_play_result *r, size_t i)
{
	const char *name = r->iterations.at[i].name;

	if (name)
		snprintf(to, size, "%s", name);
	else
		snprintf(to, size, "#%u", number_of(r, i));
}

json_t *play_iteration_json(const struct um_play_result *r, const struct um_play_result *on_demand, size_t i)
{
	const struct um_play_iteration *it = &r->iterations.at[i];
	int helped = play_iteration_helped(r, on_demand, i);
	const uint64_t *hints = it->by.hints, *bytes = it->by.prefetch_bytes;
	char kind[80];

	kind_name(kind, sizeof kind, r, i);
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:I}", "n", (json_int_t)i,
			 "first_op", (json_int_t)it->first_op, "ns", (json_int_t)it->ns, "faults",
			 (json_int_t)it->faults, "stall_ns", (json_int_t)it->stall_ns, "h2d_bytes",
			 (json_int_t)it->h2d_bytes, "d2h_bytes", (json_int_t)it->d2h_bytes, "kind", kind, "helped",
			 helped < 0 ? json_null() : json_boolean(helped), "scheduled",
			 (json_int_t)hints[UM_HINT_SCHEDULED], "predicted", (json_int_t)hints[UM_HINT_PREDICTED],
			 "announced", (json_int_t)hints[UM_HINT_ANNOUNCED], "scheduled_bytes",
			 (json_int_t)bytes[UM_HINT_SCHEDULED], "predicted_bytes", (json_int_t)bytes[UM_HINT_PREDICTED],
			 "announced_bytes", (json_int_t)bytes[UM_HINT_ANNOUNCED]);
}

struct kind {
	size_t first;
	uint64_t met, hinted, helped, ns, on_demand_ns;
};

static void add_row(struct table *t, const char *strategy, const struct um_play_result *r, const struct kind *k,
		    int others, int known)
{
	char name[80];

	kind_name(name, sizeof name, r, k->first);
	table_cell(t, "%s", strategy);
	table_cell(t, "%s", others ? "others" : tool_text(name));
	table_cell(t, "%llu", (unsigned long long)k->met);
	table_cell(t, "%llu", (unsigned long long)k->hinted);
	if (known)
		table_cell(t, "%llu", (unsigned long long)k->helped);
	else
		table_cell(t, "-");
	table_cell(t, "%.3f", (double)k->ns / (double)k->met / 1e6);
	if (known && k->on_demand_ns)
		table_cell(t, "%.3f", (double)k->ns / (double)k->on_demand_ns);
	else
		table_cell(t, "-");
}

void play_kinds(struct table *t, const char *strategy, const struct um_play_result *r,
		const struct um_play_result *on_demand)
{
	struct kind kinds[KINDS] = {{0}};
	unsigned n = 0;

	if (on_demand && r->iterations.at == on_demand->iterations.at)
		return; /* it is no faster than itself */
	for (size_t i = 0; i < r->iterations.n; i++) {
		const struct um_play_iteration *it = &r->iterations.at[i];
		unsigned number = number_of(r, i), at = number < KINDS ? number - 1 : KINDS - 1;
		struct kind *k = &kinds[at];

		if (!k->met)
			k->first = i;
		n = number > n ? number : n;
		k->met++;
		k->hinted += it->hints != 0;
		k->helped += play_iteration_helped(r, on_demand, i) > 0;
		k->ns += it->ns;
		if (on_demand && i < on_demand->iterations.n)
			k->on_demand_ns += on_demand->iterations.at[i].ns;
	}
	for (unsigned i = 0; n > 1 && i < KINDS && kinds[i].met; i++)
		add_row(t, strategy, r, &kinds[i], i == KINDS - 1 && n > KINDS, on_demand != NULL);
}
