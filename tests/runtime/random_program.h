/* SPDX-License-Identifier: Apache-2.0
 *
 * random_program.h - a program made of a seed, which knows what every byte that it reads must be
 *
 * in    a seed, a strategy, a budget
 * out   the first wrong value or failed call, in words; sums over all programs
 *
 * One to three host threads with one or two streams each run a script, the same in every iteration (but for one, in
 * some programs): kernels, CPU reads and writes of managed memory, allocations, frees, dead and transient tensors,
 * parts adopted inside tensors, memory of the program's own. A tensor consists of cells; the host keeps the version of
 * each as of the calls made so far, and a kernel checks the versions that it reads before it writes new ones. A version
 * of 0 is undefined content. What is discarded is poisoned, so that a wrong discard shows.
 *
 * With hazards threads also do what can hang on a GPU, and a deadlock of the simulated GPU is wrong.
 *
 * Threads use tensors of their own, and shared ones that thread 0 updates while the others wait.
 */
#ifndef UM_TESTS_RANDOM_PROGRAM_H
#define UM_TESTS_RANDOM_PROGRAM_H

#include "runtime/context.h"

#include <pthread.h>
#include <stdatomic.h>

#define PROG_THREADS 3
#define PROG_TENSORS 10 /* of a thread */
#define PROG_SHARED 3
#define PROG_FIRST_SHARED 100 /* numbers of shared tensors */
#define PROG_CELLS 4
#define PROG_USES 3
#define PROG_STREAMS 2

enum prog_kind { PROG_PARAM, PROG_ACT, PROG_SCRATCH, PROG_DEAD, PROG_OWN, PROG_TABLE, PROG_KINDS };

struct prog_tensor {
	char *at; /* NULL: not alive */
	size_t bytes;
	enum prog_kind kind;
	unsigned n_cells;
	uint64_t version[PROG_CELLS]; /* 0: undefined */
	unsigned streams; /* bit i: used on the thread's stream i and not waited for */
	unsigned adopted; /* bit i: cell i is adopted as a part */
	int number; /* in its thread; shared ones from PROG_FIRST_SHARED on */
};

struct prog_use {
	struct prog_tensor *t;
	unsigned first, n; /* cells */
	unsigned access;
	int looks_up; /* only a little of it */
};

/* A kernel's copy of what it reads and writes. */
struct prog_job {
	struct prog_job *next; /* of the program's */
	struct prog *p;
	struct {
		char *at;
		size_t bytes;
		uint64_t want, put; /* 0: not read, not written */
		int number, cell, sparse;
	} part[PROG_USES * PROG_CELLS];
	unsigned n;
	int thread, iteration, step;
};

struct prog_thread {
	struct prog *p;
	pthread_t thread;
	int id;
	uint64_t dice, script;
	um_stream stream[PROG_STREAMS];
	unsigned n_streams;
	int late; /* the iteration that creates the second stream */
	struct prog_tensor t[PROG_TENSORS];
	unsigned n;
	unsigned steps;
	um_event_handle event;
	void *memory; /* of the device, for a while; NULL: none */
	int iteration, step;
	const char *volatile doing; /* for the watchdog */
};

struct prog_options;

/* What programs run on. CUDA error codes, if not said otherwise. */
struct prog_device {
	/* Fills gpu, which the context takes, and api. 0 or -errno. */
	int (*open)(struct prog *p, const struct prog_options *o);
	int (*launch)(struct prog *p, um_stream stream, const char *name, void (*fn)(void *job), struct prog_job *job);
	int (*touch)(struct prog *p, void *at, size_t bytes, unsigned access); /* by the CPU */
	int (*load)(struct prog *p); /* a module */
	int (*sync)(struct prog *p);
	void (*end)(struct prog *p); /* after the context was closed: frees what the program has left */
};

extern const struct prog_device prog_simulated; /* the simulated GPU, of which calls may fail (flaky_gpu.h) */

struct prog {
	uint64_t seed, dice;
	struct umadv *adv;
	const struct prog_device *device;
	struct um_gpu *gpu;
	const struct um_gpu_api *api; /* its calls do not fail */
	struct prog_thread thread[PROG_THREADS];
	unsigned n_threads, iterations;
	struct prog_tensor shared[PROG_SHARED];
	unsigned n_shared;
	int in_step; /* threads take turns, so that iterations are alike */
	int stray; /* the iteration that is not like the others; -1 none */
	int stops; /* the step of the last iteration at which the program ends; -1: its end */
	int tells;
	int cpu, parts, deads, updates_shared, announces_only;
	int limits; /* each iteration is allowed other hints */
	int hazards; /* threads also allocate, free, load modules, replace streams, launch kernels for the first time */
	pthread_barrier_t barrier;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t turned;
	int turn, active[PROG_THREADS];
	struct prog_job *jobs;
	_Atomic uint64_t versions;
	atomic_int wrong; /* something is, and said in why */
	char why[2000];
	struct um_activity_sink listener;
	unsigned failed; /* device calls */
};

struct prog_options {
	const struct prog_device *device; /* NULL: prog_simulated */
	const char *strategy;
	const char *profile;
	uint64_t budget, capacity; /* of hints; of the device */
	unsigned nth; /* see flaky_gpu.h */
	int by_chance;
	enum umadv_evict evict;
	enum umadv_plan_thread plan_thread;
	int listens;
	int limits;
	const char *hazards; /* of the simulated GPU (um_sim_hazards_parse), or NULL */
	int tells; /* each step and what the device does, on standard error */
};

/* 0, or 1: see p->why. `stats` are those before the context closes. */
int prog_run(struct prog *p, uint64_t seed, const struct prog_options *o, struct umadv_stats *stats);

/* What each thread of the program does at this moment, a line each. Any thread, also a signal's. */
void prog_say(const struct prog *p);

#endif
