/* SPDX-License-Identifier: Apache-2.0
 *
 * random_steps.c - what a thread of a random program does in a step, and what memory holds then
 */
#include "random_steps.h"
#include "fixture/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define STRIDE ((size_t)16 << 10) /* a word in so many bytes counts */
#define SPARSE 16 /* a table is looked up at one in so many of those */
#define RETRIES 20

void prog_wrong(struct prog *p, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&p->lock);
	if (!atomic_load(&p->wrong)) {
		va_start(ap, fmt);
		vsnprintf(p->why, sizeof p->why, fmt, ap);
		va_end(ap);
		atomic_store(&p->wrong, 1);
	}
	pthread_mutex_unlock(&p->lock);
}

/* `what` is done to a tensor. */
static void log_step(const struct prog_thread *w, const char *what, const struct prog_tensor *t, unsigned first,
		     unsigned n)
{
	if (w->p->tells)
		fprintf(stderr, "thread %d, iteration %d, step %d: %s tensor %d (kind %d) cells %u+%u %p+%zu\n", w->id,
			w->iteration, w->step, what, t->number, (int)t->kind, first, n, (const void *)t->at, t->bytes);
}

uint32_t prog_roll(uint64_t *dice, uint32_t n)
{
	return test_random(dice, n);
}

void prog_check(struct prog *p, int err, const struct prog_thread *w, const char *call)
{
	if (err)
		prog_wrong(p, "thread %d, iteration %d, step %d: %s: %d", w->id, w->iteration, w->step, call, err);
}

/* --- content ------------------------------------------------------------------------------------------------------ */

static char *cell_at(const struct prog_tensor *t, unsigned i)
{
	return t->at + t->bytes / t->n_cells / 4096 * 4096 * i;
}

static size_t cell_bytes(const struct prog_tensor *t, unsigned i, unsigned n)
{
	return (size_t)((i + n == t->n_cells ? t->at + t->bytes : cell_at(t, i + n)) - cell_at(t, i));
}

static uint64_t word(uint64_t version, size_t k)
{
	return (version ^ k) * 0x9e3779b97f4a7c15ull;
}

/* The next place to look at: each stride, and the last word. */
static size_t next_word(size_t k, size_t bytes, size_t stride)
{
	size_t last = bytes / 8 * 8 - 8;

	return k == last ? SIZE_MAX : k + stride > last ? last : k + stride;
}

static int holds(const char *at, size_t bytes, uint64_t version, int sparse, size_t *where)
{
	for (size_t k = 0; k != SIZE_MAX; k = next_word(k, bytes, sparse ? STRIDE * SPARSE : STRIDE))
		if (*(const uint64_t *)(const void *)(at + k) != word(version, k)) {
			*where = k;
			return 0;
		}
	return 1;
}

static void fill(char *at, size_t bytes, uint64_t version)
{
	for (size_t k = 0; k != SIZE_MAX; k = next_word(k, bytes, STRIDE))
		*(uint64_t *)(void *)(at + k) = word(version, k);
}

static void kernel(void *arg)
{
	const struct prog_job *j = arg;
	size_t k;

	for (unsigned i = 0; i < j->n; i++)
		if (j->part[i].want && !holds(j->part[i].at, j->part[i].bytes, j->part[i].want, j->part[i].sparse, &k))
			prog_wrong(j->p,
				   "thread %d, iteration %d, step %d: the kernel reads 0x%llx in tensor %d, cell %d, "
				   "byte %zu (%p)",
				   j->thread, j->iteration, j->step,
				   (unsigned long long)*(const uint64_t *)(const void *)(j->part[i].at + k),
				   j->part[i].number, j->part[i].cell, k, (const void *)(j->part[i].at + k));
	for (unsigned i = 0; i < j->n; i++)
		if (j->part[i].put)
			fill(j->part[i].at, j->part[i].bytes, j->part[i].put);
}

static int is_defined(const struct prog_tensor *t, unsigned first, unsigned n)
{
	int all = t->at != NULL;

	for (unsigned i = first; i < first + n; i++)
		all &= t->version[i] != 0;
	return all;
}

void prog_undefine(struct prog_tensor *t)
{
	memset(t->version, 0, sizeof t->version);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Device calls may fail: then there is no memory, for once. */
static void born(struct prog_thread *w, struct prog_tensor *t)
{
	static const enum umadv_role roles[] = {UMADV_PARAM, UMADV_ACT,	  UMADV_WORKSPACE,
						UMADV_GRAD,  UMADV_OTHER, UMADV_PARAM};
	struct umadv *adv = w->p->adv;
	void *at = NULL;
	int err = -ENOMEM;

	w->doing = "umadv_alloc";
	for (int i = 0; i < RETRIES && err == -ENOMEM; i++)
		err = umadv_alloc(adv, &at, t->bytes, "t", roles[t->kind]);
	if (!err && t->kind == PROG_SCRATCH)
		err = umadv_transient(adv, at);
	prog_check(w->p, err, w, "umadv_alloc");
	t->at = err ? NULL : at;
	t->streams = t->adopted = 0;
	prog_undefine(t);
	log_step(w, "alloc", t, 0, t->n_cells);
}

static void die(struct prog_thread *w, struct prog_tensor *t)
{
	w->doing = "umadv_free";
	log_step(w, "free", t, 0, t->n_cells);
	for (unsigned i = 0; i < t->n_cells; i++)
		if (t->adopted & 1u << i)
			prog_check(w->p, umadv_disown(w->p->adv, cell_at(t, i), cell_bytes(t, i, 1)), w,
				   "umadv_disown");
	prog_check(w->p, umadv_free(w->p->adv, t->at), w, "umadv_free");
	t->at = NULL;
}

/* Memory of the program's own. */
static void adopt(struct prog_thread *w, struct prog_tensor *t)
{
	void *at = NULL;
	int err = w->p->api->cudaMallocManaged(w->p->gpu, &at, t->bytes, 1);

	if (!err)
		err = umadv_adopt(w->p->adv, at, t->bytes, "own", UMADV_OTHER);
	prog_check(w->p, err, w, "umadv_adopt");
	t->at = at;
}

/* Waited for by whole iterations: no thread writes what others may use. */
static int is_shared(const struct prog_tensor *t)
{
	return t->number >= PROG_FIRST_SHARED;
}

/* Stream `s` of the thread goes on after everything that was launched on its other streams and touches these. */
static void order(struct prog_thread *w, unsigned s, struct prog_use *uses, unsigned n)
{
	const struct um_gpu_api *api = w->p->api;
	unsigned before = 0;
	int err = 0;

	for (unsigned i = 0; i < n; i++) {
		if (is_shared(uses[i].t))
			continue;
		before |= uses[i].t->streams & ~(1u << s);
		uses[i].t->streams = 1u << s;
	}
	for (unsigned i = 0; i < w->n_streams && !err; i++) {
		if (!(before & 1u << i))
			continue;
		err = api->cudaEventRecord(w->p->gpu, w->event, w->stream[i]);
		if (!err)
			err = api->cudaStreamWaitEvent(w->p->gpu, w->stream[s], w->event, 0);
	}
	prog_check(w->p, err, w, "cudaStreamWaitEvent");
}

void prog_wait(struct prog_thread *w, struct prog_tensor *t)
{
	w->doing = "cudaStreamSynchronize";
	for (unsigned i = 0; i < w->n_streams; i++)
		if (!t || t->streams & 1u << i)
			prog_check(w->p, w->p->api->cudaStreamSynchronize(w->p->gpu, w->stream[i]), w,
				   "cudaStreamSynchronize");
	if (t && !is_shared(t))
		t->streams = 0;
}

static struct prog_job *job_new(struct prog_thread *w, const struct prog_use *uses, unsigned n)
{
	struct prog *p = w->p;
	struct prog_job *j = calloc(1, sizeof *j);

	if (!j)
		abort();
	*j = (struct prog_job){.p = p, .thread = w->id, .iteration = w->iteration, .step = w->step};
	for (unsigned i = 0; i < n; i++)
		for (unsigned c = uses[i].first; c < uses[i].first + uses[i].n; c++) {
			struct prog_tensor *t = uses[i].t;
			uint64_t put = uses[i].access & UMADV_ACCESS_WRITE ? atomic_fetch_add(&p->versions, 1) + 1 : 0;

			j->part[j->n].at = cell_at(t, c);
			j->part[j->n].bytes = cell_bytes(t, c, 1);
			j->part[j->n].want = uses[i].access & UMADV_ACCESS_READ ? t->version[c] : 0;
			j->part[j->n].put = put;
			j->part[j->n].number = t->number;
			j->part[j->n].cell = (int)c;
			j->part[j->n++].sparse = uses[i].looks_up;
			if (put)
				t->version[c] = put;
		}
	pthread_mutex_lock(&p->lock);
	j->next = p->jobs;
	p->jobs = j;
	pthread_mutex_unlock(&p->lock);
	return j;
}

void prog_launch(struct prog_thread *w, unsigned s, struct prog_use *uses, unsigned n, int announce_only)
{
	static const char *const how[] = {"", "read", "write", "update"};
	static const char *const names[] = {"job a", "job b", "job c", "job d"};
	static const char *const kernels[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	struct prog_job *job = NULL;
	struct umadv_use u[PROG_USES];
	int err;

	for (unsigned i = 0; i < n; i++) {
		size_t bytes = cell_bytes(uses[i].t, uses[i].first, uses[i].n);

		log_step(w, how[uses[i].access], uses[i].t, uses[i].first, uses[i].n);
		u[i] = umadv_use_(cell_at(uses[i].t, uses[i].first), bytes,
				  uses[i].looks_up ? bytes / STRIDE / SPARSE * 8 : 0, uses[i].access);
	}
	if (!announce_only) {
		order(w, s, uses, n);
		job = job_new(w, uses, n);
	}
	w->doing = "umadv_op";
	err = umadv_op(w->p->adv, w->stream[s], names[w->step % 4], u, n);
	prog_check(w->p, err, w, "umadv_op");
	if (err || announce_only)
		return;
	w->doing = "launch";
	prog_check(w->p,
		   w->p->device->launch(w->p, w->stream[s], kernels[(w->step % 4 + w->iteration + w->id) % 10], kernel,
					job),
		   w, "launch");
}

/* --- steps of a script -------------------------------------------------------------------------------------------- */

static struct prog_tensor *pick(struct prog_thread *w)
{
	struct prog *p = w->p;

	if (p->n_shared && prog_roll(&w->dice, 4) == 0)
		return &p->shared[prog_roll(&w->dice, p->n_shared)];
	return &w->t[prog_roll(&w->dice, w->n)];
}

/* Something that the kernel may read. */
static unsigned add_read(struct prog_thread *w, struct prog_use *uses, unsigned n)
{
	struct prog_tensor *t = pick(w);
	unsigned whole = prog_roll(&w->dice, 3), first = prog_roll(&w->dice, t->n_cells);
	struct prog_use u = {t, whole ? 0 : first, whole ? t->n_cells : 1, UMADV_ACCESS_READ, t->kind == PROG_TABLE};

	for (unsigned i = 0; i < n; i++)
		if (uses[i].t == t)
			return n;
	if (!is_defined(t, u.first, u.n))
		return n;
	uses[n] = u;
	return n + 1;
}

static void compute(struct prog_thread *w, int announce_only)
{
	struct prog_tensor *t = &w->t[prog_roll(&w->dice, w->n)];
	unsigned how = prog_roll(&w->dice, 5), first = prog_roll(&w->dice, t->n_cells);
	unsigned s = prog_roll(&w->dice, PROG_STREAMS), n = 0;
	struct prog_use uses[PROG_USES], *u = &uses[0];

	if (!t->at && !announce_only)
		born(w, t);
	*u = (struct prog_use){t, 0, t->n_cells, UMADV_ACCESS_WRITE, 0};
	if (how == 0 || how == 1) {
		u->first = first;
		u->n = 1;
	}
	if ((how == 1 || how == 2 || how == 3) && is_defined(t, u->first, u->n))
		u->access = UMADV_ACCESS_UPDATE;
	if (!announce_only && t->at && t->kind != PROG_TABLE)
		n = 1;
	n = add_read(w, uses, n);
	n = add_read(w, uses, n);
	if (n)
		prog_launch(w, s % w->n_streams, uses, n, announce_only);
}

/* Every second program announces it. */
static void touch(struct prog_thread *w, char *at, size_t bytes, unsigned access)
{
	struct umadv_use use = umadv_use_(at, bytes, 0, access);

	if (w->p->seed % 2) {
		w->doing = "umadv_host";
		prog_check(w->p, umadv_host(w->p->adv, "cpu", &use, 1), w, "umadv_host");
	}
	w->doing = "CPU access";
	prog_check(w->p, w->p->device->touch(w->p, at, bytes, access), w, "CPU access");
}

static void cpu_read(struct prog_thread *w)
{
	struct prog_tensor *t = pick(w);
	unsigned c = prog_roll(&w->dice, t->n_cells);
	size_t k;

	if (!is_defined(t, c, 1))
		return;
	prog_wait(w, is_shared(t) ? NULL : t);
	log_step(w, "CPU read", t, c, 1);
	touch(w, cell_at(t, c), cell_bytes(t, c, 1), UM_READ);
	if (!atomic_load(&w->p->wrong) && !holds(cell_at(t, c), cell_bytes(t, c, 1), t->version[c], 0, &k))
		prog_wrong(w->p,
			   "thread %d, iteration %d, step %d: the CPU reads 0x%llx in tensor %d, cell %u, byte %zu",
			   w->id, w->iteration, w->step,
			   (unsigned long long)*(const uint64_t *)(const void *)(cell_at(t, c) + k), t->number, c, k);
}

/* Content that may be thrown away is for ops to write. */
static void cpu_write(struct prog_thread *w)
{
	struct prog_tensor *t = &w->t[prog_roll(&w->dice, w->n)];
	unsigned c = prog_roll(&w->dice, t->n_cells);

	if (!t->at || t->kind == PROG_SCRATCH || t->kind == PROG_TABLE || !is_defined(t, 0, t->n_cells))
		return;
	prog_wait(w, t);
	log_step(w, "CPU write", t, c, 1);
	touch(w, cell_at(t, c), cell_bytes(t, c, 1), UM_WRITE);
	t->version[c] = atomic_fetch_add(&w->p->versions, 1) + 1;
	if (!atomic_load(&w->p->wrong))
		fill(cell_at(t, c), cell_bytes(t, c, 1), t->version[c]);
}

static void end_content(struct prog_thread *w)
{
	struct prog_tensor *t = &w->t[prog_roll(&w->dice, w->n)];

	if (!t->at)
		return;
	if (t->kind == PROG_ACT) {
		die(w, t);
	} else if (t->kind == PROG_DEAD && !t->adopted && w->p->deads) {
		w->doing = "umadv_dead";
		log_step(w, "dead", t, 0, t->n_cells);
		prog_check(w->p, umadv_dead(w->p->adv, t->at), w, "umadv_dead");
		prog_undefine(t);
	}
}

static void toggle_part(struct prog_thread *w)
{
	struct prog_tensor *t = &w->t[prog_roll(&w->dice, w->n)];
	unsigned c = prog_roll(&w->dice, t->n_cells);
	int err;

	if (!t->at || t->n_cells == 1 || (t->kind == PROG_SCRATCH))
		return;
	w->doing = "umadv_adopt";
	log_step(w, t->adopted & 1u << c ? "disown" : "adopt", t, c, 1);
	err = t->adopted & 1u << c ? umadv_disown(w->p->adv, cell_at(t, c), cell_bytes(t, c, 1))
				   : umadv_adopt(w->p->adv, cell_at(t, c), cell_bytes(t, c, 1), "part", UMADV_OTHER);
	t->adopted ^= 1u << c;
	prog_check(w->p, err, w, "umadv_adopt");
}

/* --- what can hang on a GPU --------------------------------------------------------------------------------------- */

static void replace_stream(struct prog_thread *w)
{
	const struct um_gpu_api *api = w->p->api;
	unsigned i = prog_roll(&w->dice, w->n_streams);
	um_stream old = w->stream[i];

	if ((uintptr_t)old <= 2) /* a default stream */
		return;
	log_step(w, "destroy the stream of", &w->t[0], 0, i);
	w->doing = "umadv_forget_stream";
	prog_check(w->p, umadv_forget_stream(w->p->adv, old), w, "umadv_forget_stream");
	w->doing = "cudaStreamDestroy";
	prog_check(w->p, api->cudaStreamDestroy(w->p->gpu, old), w, "cudaStreamDestroy");
	prog_check(w->p, api->cudaStreamCreateWithFlags(w->p->gpu, &w->stream[i], w->script & 1), w,
		   "cudaStreamCreate");
}

/* Held from one such step to the next: a free comes between ops. */
static void device_memory(struct prog_thread *w)
{
	const struct um_gpu_api *api = w->p->api;
	int pinned = w->id & 1, err;

	w->doing = w->memory ? "cudaFree" : "cudaMalloc";
	if (w->memory) {
		err = pinned ? api->cudaFreeHost(w->p->gpu, w->memory) : api->cudaFree(w->p->gpu, w->memory);
		w->memory = NULL;
	} else {
		err = pinned ? api->cudaHostAlloc(w->p->gpu, &w->memory, MIB, 0)
			     : api->cudaMallocManaged(w->p->gpu, &w->memory, MIB, 1);
	}
	prog_check(w->p, err, w, w->doing);
}

static void hazard(struct prog_thread *w)
{
	struct prog *p = w->p;
	unsigned what = prog_roll(&w->dice, 7);

	if (what == 0)
		replace_stream(w);
	else if (what < 5)
		device_memory(w);
	else
		prog_check(p, p->device->load(p), w, w->doing = "a module's loading");
}

void prog_step(struct prog_thread *w)
{
	struct prog *p = w->p;
	unsigned what = prog_roll(&w->dice, 16);

	if (p->hazards && prog_roll(&w->dice, 6) == 0)
		hazard(w);
	if (what == 0 && p->cpu)
		cpu_read(w);
	else if (what == 1 && p->cpu)
		cpu_write(w);
	else if (what == 2 || what == 3 || what == 4)
		end_content(w);
	else if (what == 5 && p->parts)
		toggle_part(w);
	else
		compute(w, what == 6 && p->announces_only);
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

static size_t some_bytes(struct prog *p)
{
	size_t bytes = prog_roll(&p->dice, 3) ? (1 + prog_roll(&p->dice, 10)) * MIB / 2
					      : (16 + prog_roll(&p->dice, 1500)) * 1024ul;

	return bytes + prog_roll(&p->dice, 2) * 8 * prog_roll(&p->dice, 600);
}

void prog_make_tensor(struct prog_thread *w, struct prog_tensor *t, int number)
{
	struct prog *p = w->p;

	t->kind = (enum prog_kind)prog_roll(&p->dice, PROG_KINDS);
	if (t->kind == PROG_DEAD && prog_roll(&p->dice, 2))
		t->kind = PROG_ACT;
	t->bytes = some_bytes(p);
	t->n_cells = t->bytes > MIB / 2 ? 1 + prog_roll(&p->dice, PROG_CELLS) : 1;
	t->number = number;
	if (t->kind == PROG_ACT)
		return;
	if (t->kind == PROG_OWN)
		adopt(w, t);
	else
		born(w, t);
	if (!t->at || t->kind == PROG_SCRATCH || t->kind == PROG_DEAD)
		return;
	touch(w, t->at, t->bytes, UM_WRITE);
	for (unsigned c = 0; c < t->n_cells; c++) {
		t->version[c] = ++p->versions;
		fill(cell_at(t, c), cell_bytes(t, c, 1), t->version[c]);
	}
}

/* Everything has the version that it should have. */
void prog_check_content(struct prog *p)
{
	size_t where;

	for (unsigned i = 0; i < p->n_threads; i++)
		for (unsigned k = 0; k < p->thread[i].n; k++) {
			const struct prog_tensor *t = &p->thread[i].t[k];

			for (unsigned c = 0; c < t->n_cells && t->at && !atomic_load(&p->wrong); c++)
				if (t->version[c] &&
				    !holds(cell_at(t, c), cell_bytes(t, c, 1), t->version[c], 0, &where))
					prog_wrong(p, "at the end tensor %d is wrong in cell %u, byte %zu", t->number,
						   c, where);
		}
}
