/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checking.h"

#include "base/hash.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u /* the granularity of detected accesses */

struct live_tensor {
	uint64_t addr, bytes;
	char name[64];
};

struct um_checked_tensors {
	unsigned refs; /* guarded by the context's lock */
	uint64_t next_id, n; /* of the registry: the same tensors live while both are the same */
	struct live_tensor at[]; /* by address, inner ones after outer ones */
};

struct finding {
	uint64_t addr, bytes;
	const struct live_tensor *tensor; /* NULL: memory of no tensor */
	int declared, written;
};

struct um_checked_run {
	void (*fn)(void *arg);
	void *arg;
	struct um_checked_tensors *tensors;
	UM_VEC(struct finding) findings;
	atomic_int done;
	char op[64];
};

static void tensors_put(struct um_checked_tensors *t)
{
	if (t && --t->refs == 0)
		free(t);
}

static struct um_checked_tensors *tensors_new(const struct um_registry *r)
{
	struct um_checked_tensors *t = malloc(sizeof *t + r->n * sizeof t->at[0]);
	size_t n = 0;

	if (!t)
		return NULL;
	for (struct um_tree_node *node = um_tree_first(&r->live); node && n < r->n; node = um_tree_next(node)) {
		const struct um_tensor *x = um_tree_entry(node, struct um_tensor, node);

		t->at[n] = (struct live_tensor){.addr = x->addr, .bytes = x->bytes};
		snprintf(t->at[n++].name, sizeof t->at[0].name, "%s", x->name ? x->name : "(unnamed)");
	}
	t->refs = 1;
	t->next_id = r->next_id;
	t->n = n;
	return t;
}

/* The innermost tensor at `addr`, or NULL; the result is the same up to `*end`. */
static const struct live_tensor *tensor_at(const struct um_checked_tensors *t, uint64_t addr, uint64_t *end)
{
	const struct live_tensor *in = NULL;

	for (uint64_t i = 0; i < t->n; i++) {
		const struct live_tensor *x = &t->at[i];

		if (x->addr > addr) {
			*end = x->addr < *end ? x->addr : *end;
			break;
		}
		if (addr - x->addr < x->bytes)
			in = x;
	}
	if (in && in->addr + in->bytes < *end)
		*end = in->addr + in->bytes;
	return in;
}

static void add(struct um_checked_run *run, const struct finding *f)
{
	for (size_t i = 0; i < run->findings.n; i++) {
		const struct finding *was = &run->findings.at[i];

		if (was->tensor == f->tensor && was->declared == f->declared && was->written == f->written)
			return;
	}
	if (um_vec_push(&run->findings, *f))
		return; /* out of memory: the finding is not logged */
}

/* Splits pages at the ends of tensors. A part smaller than a page counts only if there is no larger one. */
static void on_stray(void *arg, const struct um_sim_stray *s)
{
	struct um_checked_run *run = arg;
	struct finding small = {0};
	uint64_t end, stop;
	int large = 0;

	if (!s) {
		atomic_store_explicit(&run->done, 1, memory_order_release);
		return;
	}
	end = s->addr + s->bytes;
	for (uint64_t at = s->addr; at < end; at = stop) {
		struct finding f = {.addr = at, .declared = s->declared, .written = s->written};

		stop = end;
		f.tensor = tensor_at(run->tensors, at, &stop);
		f.bytes = stop - at;
		if (f.bytes >= PAGE) {
			add(run, &f);
			large = 1;
		} else if (f.tensor && !small.tensor) {
			small = f;
		}
	}
	if (!large && small.tensor)
		add(run, &small);
}

static void run_checked(void *arg)
{
	struct um_checked_run *run = arg;

	run->fn(run->arg);
}

void um_checking_open(struct um_checking *c, struct um_gpu *gpu, struct um_notices *notices)
{
	c->on = gpu->api->simulation->checks(gpu);
	if (!c->on)
		um_notices_log(notices, UMADV_LOG_INFO,
			       "check: this system does not show a process its page tables, so "
			       "what kernels touch is not compared with what ops declare");
}

static void run_free(struct um_checked_run *run)
{
	tensors_put(run->tensors);
	um_vec_fini(&run->findings);
	free(run);
}

void um_checking_fini(struct um_checking *c, struct um_notices *notices)
{
	um_checking_report(c, notices);
	for (size_t i = 0; i < c->runs.n; i++)
		run_free(c->runs.at[i]);
	for (size_t i = 0; i < c->ops.n; i++)
		free(c->ops.at[i].name);
	tensors_put(c->tensors);
	um_vec_fini(&c->runs);
	um_vec_fini(&c->ops);
	um_vec_fini(&c->logged);
}

static struct um_checked_op *op_of(struct um_checking *c, um_stream stream)
{
	for (size_t i = 0; i < c->ops.n; i++)
		if (c->ops.at[i].stream == stream)
			return &c->ops.at[i];
	return NULL;
}

void um_checking_op(struct um_checking *c, um_stream stream, const char *name)
{
	struct um_checked_op *op = op_of(c, stream);
	char *copy;

	if (op && op->name && strcmp(op->name, name) == 0)
		return;
	copy = strdup(name);
	if (op) {
		free(op->name);
		op->name = copy;
	} else if (um_vec_push(&c->ops, ((struct um_checked_op){stream, copy}))) {
		free(copy);
	}
}

struct um_checked_run *um_checking_launch(struct um_checking *c, const struct um_registry *r, um_stream stream,
					  struct um_sim_kernel *k)
{
	const struct um_checked_op *op = c->on && k->fn ? op_of(c, stream) : NULL;
	struct um_checked_run *run;

	if (!op || !op->name)
		return NULL;
	if (!c->tensors || c->tensors->next_id != r->next_id || c->tensors->n != r->n) {
		tensors_put(c->tensors);
		c->tensors = tensors_new(r);
	}
	run = c->tensors ? calloc(1, sizeof *run) : NULL;
	if (!run || um_vec_push(&c->runs, run)) {
		free(run);
		return NULL;
	}
	run->fn = k->fn;
	run->arg = k->arg;
	run->tensors = c->tensors;
	run->tensors->refs++;
	snprintf(run->op, sizeof run->op, "%s", op->name);
	k->fn = run_checked;
	k->arg = run;
	k->stray = on_stray;
	return run;
}

void um_checking_cancel(struct um_checking *c, struct um_checked_run *run)
{
	if (run) {
		c->runs.n--; /* the last one */
		run_free(run);
	}
}

/* Was this finding logged before? */
static int is_logged(struct um_checking *c, const struct um_checked_run *run, const struct finding *f)
{
	uint64_t h = um_hash_fold(um_hash_str(run->op), um_hash_str(f->tensor ? f->tensor->name : NULL));

	h = um_hash_u64(h, (uint64_t)f->declared << 1 | (uint64_t)f->written);
	for (size_t i = 0; i < c->logged.n; i++)
		if (c->logged.at[i] == h)
			return 1;
	return um_vec_push(&c->logged, h) != 0;
}

static void log_finding(struct um_notices *notices, const struct um_checked_run *run, const struct finding *f)
{
	const struct live_tensor *t = f->tensor;
	const char *verb = f->written ? "writes" : "reads";
	const char *remedy = f->written ? "UMADV_WRITE or UMADV_UPDATE" : "UMADV_READ";
	unsigned long long from = f->addr - (t ? t->addr : 0), to = from + f->bytes;

	if (!t)
		um_notices_log(notices, UMADV_LOG_WARN,
			       "check: op '%s' %s %llu bytes at 0x%llx, which belong to no live tensor", run->op, verb,
			       (unsigned long long)f->bytes, from);
	else if (f->declared)
		um_notices_log(notices, UMADV_LOG_WARN,
			       "check: op '%s' writes bytes [%llu, %llu) of tensor '%s', which it declares read: use "
			       "UMADV_UPDATE",
			       run->op, from, to, t->name);
	else
		um_notices_log(notices, UMADV_LOG_WARN,
			       "check: op '%s' %s bytes [%llu, %llu) of tensor '%s'%s, which it does not declare: add "
			       "%s",
			       run->op, verb, from, to, t->name,
			       f->bytes < PAGE ? " or another tensor in that page" : "", remedy);
}

void um_checking_report(struct um_checking *c, struct um_notices *notices)
{
	size_t left = 0;

	for (size_t i = 0; i < c->runs.n; i++) {
		struct um_checked_run *run = c->runs.at[i];

		if (!atomic_load_explicit(&run->done, memory_order_acquire)) {
			c->runs.at[left++] = run;
			continue;
		}
		for (size_t k = 0; k < run->findings.n; k++)
			if (!is_logged(c, run, &run->findings.at[k]))
				log_finding(notices, run, &run->findings.at[k]);
		run_free(run);
	}
	c->runs.n = left;
}
