/* SPDX-License-Identifier: Apache-2.0
 *
 * devices.c - a program for each device, as coroutines: each runs until another one has to go first
 */
#include "play/devices.h"

#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES ((size_t)16 << 20)

struct group;

struct program {
	struct group *group;
	struct um_play_options o;
	struct um_play_result *out;
	struct um_sim_turns turns;
	struct um_profile profile;
	ucontext_t context;
	void *stack;
	int err, ended;
};

struct group {
	const struct um_trace *trace;
	struct program *program;
	unsigned n, now; /* the program that runs */
	ucontext_t caller;
};

/* The next program that has not ended; the caller if there is none. */
static void go_on(struct group *g)
{
	struct program *from = &g->program[g->now];

	for (unsigned i = 1; i <= g->n; i++) {
		unsigned next = (g->now + i) % g->n;

		if (g->program[next].ended)
			continue;
		if (next == g->now)
			return;
		g->now = next;
		swapcontext(&from->context, &g->program[next].context);
		return;
	}
	setcontext(&g->caller);
}

static void yield(void *user)
{
	go_on(user);
}

/* makecontext passes integers only. */
static void run(unsigned high, unsigned low)
{
	struct program *p = (struct program *)(uintptr_t)((uint64_t)high << 32 | low);

	p->err = um_play(p->group->trace, &p->o, p->out);
	p->ended = 1;
	go_on(p->group);
}

static int prepare(struct group *g, unsigned i, const struct um_play_options *o, const struct um_play_devices *how)
{
	struct program *p = &g->program[i];
	unsigned first = i / how->per_link * how->per_link, sharing = how->n - first;
	struct um_sim_options so = {.profile = o->profile,
				    .capacity = o->device_bytes ? o->device_bytes : o->budget,
				    .in_core = o->strategy == UM_PLAY_INFINITE,
				    .beside = i ? g->program[0].o.gpu : NULL};
	uint64_t address = (uintptr_t)p;

	sharing = sharing < how->per_link ? sharing : how->per_link;
	so.link = sharing > 1 ? first / how->per_link + 1 : 0;
	p->group = g;
	p->turns = (struct um_sim_turns){yield, g};
	p->profile = *o->profile;
	p->profile.link_devices = sharing;
	p->o = *o;
	p->o.profile = &p->profile;
	p->o.watch = NULL;
	p->o.opened = NULL;
	p->o.gpu = NULL;
	if (i) {
		p->o.save_plan = NULL;
		p->o.planned = NULL;
		p->o.progress = NULL;
	}
	p->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->stack == MAP_FAILED) {
		p->stack = NULL;
		return -ENOMEM;
	}
	if (getcontext(&p->context) || um_sim_open(&p->o.gpu, &so))
		return -ENOMEM;
	p->context.uc_stack.ss_sp = p->stack;
	p->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&p->context, (void (*)(void))run, 2, (unsigned)(address >> 32), (unsigned)address);
	um_sim_take_turns(p->o.gpu, &p->turns);
	return 0;
}

int um_play_on_devices(const struct um_trace *trace, const struct um_play_options *o, const struct um_play_devices *how,
		       struct um_play_result *out)
{
	struct group g = {.trace = trace, .n = how->n};
	int err = 0;

	memset(out, 0, how->n * sizeof *out);
	g.program = calloc(how->n, sizeof *g.program);
	if (!g.program)
		return -ENOMEM;
	for (unsigned i = 0; i < how->n && !err; i++) {
		g.program[i].out = &out[i];
		err = prepare(&g, i, o, how);
	}
	if (!err)
		swapcontext(&g.caller, &g.program[0].context);
	for (unsigned i = 0; i < how->n; i++) {
		struct program *p = &g.program[i];

		if (!p->ended && p->o.gpu) /* another one was not opened */
			p->o.gpu->api->close(p->o.gpu);
		if (p->stack)
			munmap(p->stack, STACK_BYTES);
		err = err ? err : p->err;
	}
	free(g.program);
	return err;
}
