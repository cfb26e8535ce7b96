/* SPDX-License-Identifier: Apache-2.0
 *
 * planted.h - small programs on the simulated GPU, each exported and read back as a report
 *
 * A program is a function that is called before the iterations, and one that is called in each of them. What they do,
 * they do by the functions below.
 */
#ifndef UM_TESTS_PLANTED_H
#define UM_TESTS_PLANTED_H

#include "sim/sim.h"
#include "play/player.h"
#include "report/report.h"
#include "tap.h"

#define MIB (1ull << 20)
#define BLOCK (2 * MIB)
#define ITERATIONS 6
#define KERNEL_NS 2000000ull
#define TENSORS 8

struct tensor {
	const char *name;
	char *at;
	uint64_t exported, bytes; /* its address as the export has it */
};

/* The program, who watches it, and what it has. */
extern struct program {
	struct um_activity_sink sink;
	struct um_activity_sink *writer;
	struct um_gpu *gpu;
	struct tensor tensor[TENSORS];
	unsigned n;
	uint64_t op, allocated; /* the last allocation's address, as it was told */
	um_stream side;
	int speechless; /* says nothing of tensors, ops and hints */
	int faultless; /* recorded without page faults */
} p;

/* What was read back: until forget(). */
extern struct um_report report;
extern struct um_capture capture;

struct um_activity said(enum um_activity_kind kind);
void feed(const struct um_activity *a);
struct tensor *name(const char *what, char *at, uint64_t exported, uint64_t bytes);
void *managed(uint64_t bytes);
struct tensor *tensor(const char *what, uint64_t mib);
void use(const struct tensor *t, uint64_t off, uint64_t bytes, unsigned access);
void op(const char *what);
void launch(const char *what, const struct um_touch *touch, uint32_t n);
void kernel_on(const char *what, const struct tensor *t, uint64_t off, uint64_t bytes, unsigned access);
void kernel(const char *what, const struct tensor *t, unsigned access);
void hint(enum um_hint_kind kind, const struct tensor *t, int error, int64_t at);
int prefetch_on(const struct tensor *t, uint64_t bytes, um_stream stream);
void prefetch(const struct tensor *t);
void send_home(const struct tensor *t);
void cpu(const struct tensor *t, uint64_t bytes);
void forget(void);
void say(void);
/* `tensor_name` NULL: of any. */
const struct um_finding *found(enum um_reason reason, const char *tensor_name);
void play(uint64_t capacity, void (*setup)(void), void (*iteration)(void));
struct um_hint_row hints_of(const char *tensor_name);
void workload(const char *trace, enum um_play_strategy strategy, double ratio);
void planted_begin(void);
void planted_end(void);

/* A run that waits for prefetches though all were asked for in time has a finding that says so, and no other. */
static inline void none_found(const char *what)
{
	size_t others = 0;

	for (size_t i = 0; i < report.findings.list.n; i++)
		others += report.findings.list.at[i].reason != UM_REASON_WAITED;
	if (!is_u64(others, 0, "the only findings are waits: %s", what))
		say();
	forget();
}

static inline void none_in_workload(const char *trace, enum um_play_strategy strategy, double ratio)
{
	char text[128];

	workload(trace, strategy, ratio);
	snprintf(text, sizeof text, "%s, %s, %.2fx", trace, um_play_strategy_name(strategy), ratio);
	none_found(text);
}

#endif
