/* SPDX-License-Identifier: Apache-2.0
 *
 * hazard_report.c - says of a hang which call waits for which stream, and why that one does not go on
 */
#include "sim/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

struct text {
	char at[UM_SIM_HANG_TEXT];
	size_t n;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	size_t room = sizeof t->at - t->n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at + t->n, room, fmt, ap);
	va_end(ap);
	t->n += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void add_stream(struct text *t, const struct um_sim *sim, const struct um_sim_stream *s)
{
	add(t, "stream %u", s->serial);
	if (sim->hardware)
		add(t, " (hardware queue %u)", um_sim_queue_of(sim, s));
}

static const struct um_sim_stream *recorder(const struct um_sim *sim, const struct um_sim_record *r)
{
	for (const struct um_sim_stream *s = sim->streams; s; s = s->next)
		for (size_t i = s->first; i < s->queue.n; i++)
			if (s->queue.at[i].kind == UM_SIM_CMD_RECORD && s->queue.at[i].record == r)
				return s;
	return NULL;
}

static const struct um_sim_stream *writer(const struct um_sim *sim, const struct um_sim_cmd *wait)
{
	for (const struct um_sim_stream *s = sim->streams; s; s = s->next)
		for (size_t i = s->first; i < s->queue.n; i++)
			if (s->queue.at[i].kind == UM_SIM_CMD_WRITE_VALUE && s->queue.at[i].v.addr == wait->v.addr &&
			    (int32_t)(s->queue.at[i].v.value - wait->v.value) >= 0)
				return s;
	return NULL;
}

static void add_value(struct text *t, struct um_sim *sim, const struct um_sim_cmd *c)
{
	const struct um_sim_mem *m = um_sim_mem_find(sim, (uint64_t)(uintptr_t)c->v.addr);

	if (m)
		add(t, "m%u+%llu", m->serial, (unsigned long long)((uint64_t)(uintptr_t)c->v.addr - m->addr));
	else
		add(t, "%p", (void *)c->v.addr);
	add(t, " to be %u (it is %u)", c->v.value, __atomic_load_n(c->v.addr, __ATOMIC_ACQUIRE));
}

/* Why the stream's next command does not begin, and the stream that it waits for, or NULL. */
static const struct um_sim_stream *explain(struct text *t, struct um_sim *sim, const struct um_sim_stream *s)
{
	static const char *const names[] = {"kernel",	  "hint", "event record",  "event wait",       "value write",
					    "value wait", "mark", "host function", "asynchronous free"};
	const struct um_sim_cmd *c = um_sim_head(s);
	const struct um_sim_stream *o;

	if (!c) {
		add(t, " is idle");
		return NULL;
	}
	add(t, ": the %s", names[c->kind]);
	o = um_sim_order_blocker(sim, s, c);
	if (o) {
		add(t, " is ordered after ");
		return o;
	}
	o = um_sim_queue_blocker(sim, s, c);
	if (o) {
		add(t, " stands in the hardware queue behind ");
		return o;
	}
	if (c->kind == UM_SIM_CMD_WAIT_EVENT) {
		o = recorder(sim, c->record);
		add(t, o ? " waits for an event of " : " waits for an event that no stream records");
	} else if (c->kind == UM_SIM_CMD_WAIT_VALUE) {
		o = writer(sim, c);
		add(t, " waits for ");
		add_value(t, sim, c);
		add(t, o ? ", written by " : ", which no submitted command writes");
	}
	return o;
}

static void add_chain(struct text *t, struct um_sim *sim, const struct um_sim_stream *s)
{
	const struct um_sim_stream *seen[8];
	unsigned n = 0;

	while (s) {
		add_stream(t, sim, s);
		for (unsigned i = 0; i < n; i++)
			if (seen[i] == s) {
				add(t, ", a cycle");
				return;
			}
		if (n == sizeof seen / sizeof *seen)
			return;
		seen[n++] = s;
		s = explain(t, sim, s);
	}
}

static void add_waiter(struct text *t, struct um_sim *sim, const struct um_sim_waiter *w)
{
	static const char *const what[] = {
		"the driver's lock", "all work of the device", "room in the queue of ", "all work of the device", "",
		"an event of "};
	const struct um_sim_stream *s = w->record ? recorder(sim, w->record) : w->stream;

	if (w->lane)
		add(t, "%s of worker %s waits for %s", w->call, w->lane->worker->name, what[w->waits]);
	else
		add(t, "%s of %s %ld waits for %s", w->call, w->thread == getpid() ? "main thread" : "thread",
		    w->thread, what[w->waits]);
	if (s)
		add_chain(t, sim, s);
	if (sim->holder == w)
		add(t, "; it holds the driver's lock");
}

/* The first blocked stream is where a wait for the whole device ends. */
static const struct um_sim_stream *first_blocked(const struct um_sim *sim)
{
	const struct um_sim_stream *s = sim->streams;

	while (s && !um_sim_head(s))
		s = s->next;
	return s;
}

static void report(struct um_sim *sim, const struct text *t)
{
	sim->hangs++;
	if (!sim->hang.n) {
		memcpy(sim->hang.text, t->at, t->n + 1);
		sim->hang.n = t->n;
	}
	if (sim->opt.hazards.report)
		sim->opt.hazards.report(sim->opt.hazards.user, t->at);
}

void um_sim_report_deadlock(struct um_sim *sim)
{
	const struct um_sim_stream *s = first_blocked(sim);
	struct text t = {.n = 0};

	if (!um_sim_hazards_on(sim))
		return;
	add(&t, "deadlock");
	for (const struct um_sim_waiter *w = sim->waiters; w; w = w->next) {
		add(&t, w == sim->waiters ? ": " : "; ");
		add_waiter(&t, sim, w);
	}
	if (s) {
		add(&t, "; ");
		add_chain(&t, sim, s);
	}
	if (sim->holder && sim->lanes)
		add(&t, "; workers stand still");
	report(sim, &t);
}

/* CUDA may crash, or work on another stream. */
void um_sim_report_handle(struct um_sim *sim)
{
	struct text t = {.n = 0};

	if (!um_sim_hazards_on(sim))
		return;
	add(&t, "%s names a stream that does not exist or was destroyed", um_sim_call_name());
	report(sim, &t);
}

unsigned um_sim_hangs(struct um_gpu *gpu, char *text, size_t size)
{
	struct um_sim *sim = um_sim_of(gpu);
	unsigned n;

	pthread_mutex_lock(&sim->node->lock);
	n = sim->hangs;
	if (size)
		snprintf(text, size, "%s", sim->hang.text);
	pthread_mutex_unlock(&sim->node->lock);
	return n;
}
