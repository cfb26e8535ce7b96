/* SPDX-License-Identifier: Apache-2.0
 *
 * report.c - writes the dry run's report
 *
 * The tables have the most expensive rows: by stall, then faults, then bytes, then order. Row 0 of the ledger counts in
 * the sums only.
 */
#include "standin/report.h"

#include "sim/ledger.h"
#include "io/file_name.h"
#include "io/out.h"
#include "standin/standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 10
#define EXACT 64 /* waits; later writes at each increase by a 64th */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char path[4096]; /* empty: no report */
static pid_t owner;
static uint64_t waits, next_wait;

struct row {
	size_t i;
	uint64_t stall_ns, faults, bytes;
};

/* Does `a` cost more than `b`? */
static int costs_more(const struct row *a, const struct row *b)
{
	if (a->stall_ns != b->stall_ns)
		return a->stall_ns > b->stall_ns;
	if (a->faults != b->faults)
		return a->faults > b->faults;
	return a->bytes > b->bytes;
}

/* Keeps the ROWS most expensive ones, in order. */
static void rank(struct row *top, size_t *n, const struct row *r)
{
	size_t i = *n;

	while (i && costs_more(r, &top[i - 1]))
		i--;
	if (i == ROWS)
		return;
	if (*n < ROWS)
		(*n)++;
	memmove(top + i + 1, top + i, (*n - i - 1) * sizeof *top);
	top[i] = *r;
}

static void key(struct um_out *o, const char *name)
{
	um_out_str(o, ",\n ");
	um_out_json_str(o, name);
	um_out_str(o, ": ");
}

static void number(struct um_out *o, const char *name, uint64_t x)
{
	key(o, name);
	um_out_u64(o, x);
}

static void text(struct um_out *o, const char *name, const char *s)
{
	key(o, name);
	um_out_json_str(o, s);
}

/* Inside a row. */
static void field(struct um_out *o, const char *name, uint64_t x)
{
	um_out_str(o, ", ");
	um_out_json_str(o, name);
	um_out_str(o, ": ");
	um_out_u64(o, x);
}

static void kernels(struct um_out *o, const struct um_ledger *l)
{
	struct row top[ROWS];
	size_t n = 0;

	for (size_t i = 1; i < l->kernel.n; i++) {
		const struct um_ledger_kernel *k = &l->kernel.at[i];

		rank(top, &n, &(struct row){i, k->stall_ns, k->faults, k->h2d_bytes + k->d2h_bytes});
	}
	key(o, "top_kernels");
	for (size_t i = 0; i < n; i++) {
		const struct um_ledger_kernel *k = &l->kernel.at[top[i].i];

		um_out_str(o, i ? ",\n  {\"name\": " : "[\n  {\"name\": ");
		um_out_json_str(o, k->name);
		field(o, "launches", k->launches);
		field(o, "computed", k->computed);
		field(o, "ns", k->ns);
		field(o, "stall_ns", k->stall_ns);
		field(o, "faults", k->faults);
		field(o, "h2d_bytes", k->h2d_bytes);
		field(o, "d2h_bytes", k->d2h_bytes);
		field(o, "remote_bytes", k->remote_bytes);
		field(o, "evictions", k->evictions);
		um_out_str(o, "}");
	}
	um_out_str(o, n ? "\n ]" : "[]");
}

/* The library's names of tensors in an allocation, if any. */
static void tensors(struct um_out *o, const struct um_ledger_memory *m)
{
	if (!m->names.n && !m->names_left_out)
		return;
	um_out_str(o, ", \"tensors\": [");
	for (size_t i = 0; i < m->names.n; i++) {
		um_out_str(o, i ? ", " : "");
		um_out_json_str(o, m->names.at[i]);
	}
	um_out_str(o, "]");
	if (m->names_left_out)
		um_out_str(o, ", \"more_tensors\": true");
}

static void allocations(struct um_out *o, const struct um_ledger *l)
{
	struct row top[ROWS];
	size_t n = 0;

	for (size_t i = 1; i < l->memory.n; i++) {
		const struct um_ledger_memory *m = &l->memory.at[i];

		rank(top, &n, &(struct row){i, m->stall_ns, m->faults + m->cpu_faults, m->h2d_bytes + m->d2h_bytes});
	}
	key(o, "top_allocations");
	for (size_t i = 0; i < n; i++) {
		const struct um_ledger_memory *m = &l->memory.at[top[i].i];

		um_out_str(o, i ? ",\n  {\"number\": " : "[\n  {\"number\": ");
		um_out_u64(o, top[i].i);
		field(o, "bytes", m->bytes);
		um_out_str(o, m->alive ? ", \"freed\": false" : ", \"freed\": true");
		field(o, "stall_ns", m->stall_ns);
		field(o, "faults", m->faults);
		field(o, "cpu_faults", m->cpu_faults);
		field(o, "h2d_bytes", m->h2d_bytes);
		field(o, "d2h_bytes", m->d2h_bytes);
		field(o, "evictions", m->evictions);
		tensors(o, m);
		um_out_str(o, "}");
	}
	um_out_str(o, n ? "\n ]" : "[]");
}

/* Launches of kernels, of those computed, and of copies and fills. */
static void launches(struct um_out *o, const struct um_ledger *l)
{
	uint64_t all = 0, computed = 0, xfers = 0;

	for (size_t i = 0; i < l->kernel.n; i++) {
		const struct um_ledger_kernel *k = &l->kernel.at[i];

		*(k->xfer ? &xfers : &all) += k->launches;
		computed += k->xfer ? 0 : k->computed;
	}
	number(o, "kernels", all);
	number(o, "kernels_computed", computed);
	number(o, "copies", xfers);
	number(o, "host_functions", l->calls);
}

struct work {
	struct um_out *out;
	const struct um_standin *device;
	int ended;
};

static void show(void *user, const struct um_tally *t, const struct um_ledger *l)
{
	const struct work *w = user;
	const struct um_standin *s = w->device;
	const struct um_ledger_kind *kind = l->kind;
	struct um_out *o = w->out;
	const char *cpu = secure_getenv("UMADVISE_DRYRUN_CPU");
	char version[16];

	snprintf(version, sizeof version, "%d.%d", s->version / 1000, s->version % 1000 / 10);
	um_out_str(o, "{\"schema\": \"umdryrun/1\"");
	text(o, "program", program_invocation_short_name);
	number(o, "pid", (uint64_t)owner);
	key(o, "ended");
	um_out_str(o, w->ended ? "true" : "false");
	if (um_standin_devices() > 1)
		number(o, "device", (uint64_t)s->ordinal);
	text(o, "profile", s->profile.name);
	number(o, "memory_bytes", s->gpu->caps.capacity);
	text(o, "cuda", version);
	text(o, "cpu", um_sim_follows(s->gpu) ? "on" : cpu && !strcmp(cpu, "off") ? "off" : "unknown");
	number(o, "device_ns", t->ns);
	launches(o, l);
	number(o, "managed_peak_bytes", kind[UM_SIM_MANAGED].peak_bytes);
	number(o, "device_peak_bytes", kind[UM_SIM_DEVICE].peak_bytes);
	number(o, "pinned_peak_bytes", kind[UM_SIM_PINNED].peak_bytes + kind[UM_SIM_REGISTERED].peak_bytes);
	number(o, "resident_peak_bytes", t->peak_data_bytes);
	number(o, "faults", t->faults);
	number(o, "batches", t->batches);
	number(o, "cpu_faults", t->cpu_faults);
	number(o, "h2d_bytes", t->h2d_bytes);
	number(o, "d2h_bytes", t->d2h_bytes);
	number(o, "copied_h2d_bytes", t->copied_h2d);
	number(o, "copied_d2h_bytes", t->copied_d2h);
	number(o, "remote_bytes", t->remote_bytes);
	number(o, "evictions", t->evictions);
	number(o, "stall_ns", t->stall_ns);
	number(o, "hints", t->hints);
	number(o, "hints_refused", t->refused);
	kernels(o, l);
	allocations(o, l);
}

/* Without a report, its reader prints an error. */
static void write_report(int ended)
{
	struct work w = {.ended = ended};
	int n = um_standin_devices(), err = 0;

	if (!n || um_out_open(&w.out, path, NULL))
		return;
	for (int d = 0; d < n && !err; d++) {
		w.device = um_standin_device(d);
		um_out_str(w.out, d == 0 ? "" : d == 1 ? ",\n \"more_devices\": [\n" : ",\n");
		err = um_sim_ledger_show(w.device->gpu, show, &w);
		um_out_str(w.out, d ? "}" : "");
	}
	um_out_str(w.out, n > 1 ? "]}\n" : "}\n");
	um_out_close(w.out, err == 0, NULL);
}

static int wanted(void)
{
	return path[0] && owner == getpid();
}

void um_report_open(void)
{
	pthread_mutex_lock(&lock);
	if (wanted())
		write_report(0);
	pthread_mutex_unlock(&lock);
}

int um_report_sync(int err)
{
	pthread_mutex_lock(&lock);
	if (wanted() && ++waits > next_wait) {
		next_wait = waits < EXACT ? waits : waits + waits / EXACT;
		write_report(0);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void name_file(const char *pattern)
{
	char *name = um_file_name(pattern);

	if (name && strlen(name) < sizeof path)
		strcpy(path, name);
	free(name);
}

/* An empty file shows that the library was loaded. */
__attribute__((constructor)) static void begin(void)
{
	const char *pattern = secure_getenv("UMADVISE_DRYRUN_OUT");
	struct um_out *out;

	if (!pattern || !*pattern)
		return;
	owner = getpid();
	name_file(pattern);
	if (path[0] && !um_out_open(&out, path, NULL))
		um_out_close(out, 1, NULL);
}

__attribute__((destructor)) static void end(void)
{
	if (!wanted())
		return;
	pthread_mutex_lock(&lock);
	write_report(1);
	path[0] = 0;
	pthread_mutex_unlock(&lock);
}
