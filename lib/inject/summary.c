/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/summary.h"

#include "inject/session.h"
#include "inject/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB 1048576.0

struct um_inject_counts um_inject_counts;
atomic_uint um_inject_reasons;

static struct umadv_stats total; /* of all contexts */
static char unhooked[64];
static atomic_int has_unhooked;

void um_summary_unhooked(const char *name)
{
	if (!atomic_exchange(&has_unhooked, 1))
		snprintf(unhooked, sizeof unhooked, "%s", name);
}

int um_summary_has_unhooked(void)
{
	return atomic_load(&has_unhooked);
}

void um_summary_keep(struct umadv *adv)
{
	struct umadv_stats s = {.struct_size = sizeof s};

	if (umadv_stats_get(adv, &s))
		return;
	total.iterations += s.iterations;
	total.ops += s.ops;
	total.hinted_iterations += s.hinted_iterations;
	total.hints_issued += s.hints_issued;
	total.hints_refused += s.hints_refused;
	total.prefetch_bytes += s.prefetch_bytes;
	total.evict_bytes += s.evict_bytes;
	total.plans += s.plans;
	total.budget_bytes += s.budget_bytes;
	total.bytes_live_peak += s.bytes_live_peak;
	total.limited_iterations += s.limited_iterations;
	if (s.plan_ns) {
		total.plan_ns = s.plan_ns;
		total.in_core_ns = s.in_core_ns;
	}
}

/* A share in percent, rounded down: 100 is all. */
static unsigned percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole) : 100;
}

struct text {
	char at[1000];
	size_t n;
};

static void say(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at + t->n, sizeof t->at - t->n, fmt, ap);
	va_end(ap);
	t->n = n < 0 || (size_t)n >= sizeof t->at - t->n ? sizeof t->at - 1 : t->n + (size_t)n;
}

/* What the hints did. */
static void say_hints(struct text *t)
{
	if (!total.hints_issued)
		return;
	say(t, "; %llu hints in %llu of %llu iterations, %.1f MiB prefetched", (unsigned long long)total.hints_issued,
	    (unsigned long long)total.hinted_iterations, (unsigned long long)total.iterations,
	    (double)total.prefetch_bytes / MIB);
	if (total.plans && total.plan_ns && total.in_core_ns)
		say(t, "; planned: %.2f x the time in memory", (double)total.plan_ns / (double)total.in_core_ns);
	if (atomic_load(&um_inject_counts.left_to_plan))
		say(t, "; %llu prefetches of the program left to the plan",
		    (unsigned long long)um_inject_counts.left_to_plan);
}

/* The first reason why there are no hints, or no plan. */
static void say_limit(struct text *t, const char *why, int fits)
{
	uint64_t budget = total.budget_bytes;

	if (*why)
		say(t, "; no hints: %s", why);
	else if (!total.bytes_live_peak)
		say(t, "; no hints: no allocation became managed memory");
	else if (fits)
		say(t, "; all of it fits in the budget of %.1f MiB", (double)budget / MIB);
	else if (!total.ops)
		say(t, "; no hints: no launch uses the memory that was seen");
	else if (!total.plans && total.plan_ns)
		say(t, "; the plan was ready too late to be followed");
	else if (!total.plans)
		say(t, "; no plan: no iterations were found that repeat");
	if (total.limited_iterations)
		say(t, "; fewer hints in %llu iterations, as they did not pay",
		    (unsigned long long)total.limited_iterations);
}

static void say_unseen(struct text *t)
{
	static const struct {
		enum um_inject_reason reason;
		const char *text;
	} texts[] = {
		{UM_REASON_LAYOUT, "the driver does not tell the parameters of kernels (12.4 does)"},
		{UM_REASON_GRAPH, "nodes of graphs that cannot be read"},
		{UM_REASON_POOL, "memory of pools of the program or of cuMemCreate stays as it is"},
		{UM_REASON_LIBRARY, "memory of a library for communication stays device memory"},
		{UM_REASON_IPC, "memory shared between processes has to be device memory: use --managed none, or a "
				"size"},
	};
	unsigned reasons = atomic_load(&um_inject_reasons);

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (reasons & texts[i].reason)
			say(t, "; %s", texts[i].text);
	if (atomic_load(&um_inject_counts.partial))
		say(t, "; %llu launches used more than %u tensors", (unsigned long long)um_inject_counts.partial,
		    UM_INJECT_USES);
	if (atomic_load(&um_inject_counts.refused_host))
		say(t, "; %llu allocations refused: they exceed the memory of device and host",
		    (unsigned long long)um_inject_counts.refused_host);
	if (atomic_load(&has_unhooked))
		say(t, "; this driver's form of %s is not known", unhooked);
}

void um_summary_write(const struct um_injected *devices, unsigned n, int fits)
{
	const struct um_inject_counts *c = &um_inject_counts;
	uint64_t launches = atomic_load(&c->launches), peak = atomic_load(&c->peak);
	const char *why = "";
	struct text t = {.n = 0};
	ssize_t written;

	for (unsigned i = 0; i < n; i++) {
		if (devices[i].adv)
			um_summary_keep(devices[i].adv);
		else if (devices[i].tried && !*why)
			why = devices[i].why;
	}
	if (um_settings_quiet())
		return;
	say(&t, "umadvise run: %s: seen %u %% of %.1f MiB and %u %% of %llu launches", program_invocation_short_name,
	    percent(atomic_load(&c->peak_seen), peak), (double)peak / MIB,
	    percent(launches - atomic_load(&c->launches_unseen), launches), (unsigned long long)launches);
	say_hints(&t);
	say_limit(&t, why, fits);
	say_unseen(&t);
	say(&t, "\n");
	t.at[t.n - 1] = '\n';
	written = write(STDERR_FILENO, t.at, t.n);
	(void)written;
}
