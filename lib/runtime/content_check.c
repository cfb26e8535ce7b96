/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/content_check.h"

#include "base/hash.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct um_content_sum {
	uint64_t addr, bytes;
	struct um_tensor_id id;
	uint64_t iteration; /* of the relaunch */
	uint64_t sum[2]; /* before the drop, after the relaunch */
	unsigned n; /* kernels */
	atomic_uint done; /* of them, kernels that have run */
	char tensor[64], op[64]; /* op: empty until the relaunch */
};

/* The CPU may write meanwhile, in a program that breaks its promise. */
__attribute__((no_sanitize("thread"))) static uint64_t sum_of(uint64_t addr, uint64_t bytes)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)addr, *end = at + bytes;
	uint64_t h = bytes, word;

	for (; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
		memcpy(&word, at, sizeof word);
		h = um_hash_fold(h, word);
	}
	for (; at < end; at++)
		h = um_hash_fold(h, *at);
	return h;
}

/* Kernels of one stream run one after the other. */
static void compute(void *arg)
{
	struct um_content_sum *s = arg;
	unsigned n = atomic_load_explicit(&s->done, memory_order_relaxed);

	s->sum[n] = sum_of(s->addr, s->bytes);
	atomic_store_explicit(&s->done, n + 1, memory_order_release);
}

static int enqueue(struct um_content_sum *s, struct um_gpu *gpu, um_stream stream)
{
	const struct um_sim_kernel k = {.name = "checksum", .fn = compute, .arg = s};
	int code = gpu->api->simulation->run(gpu, stream, &k);

	s->n += !code;
	return code;
}

/* The record of a tensor that is dropped. NULL: there is none. */
static struct um_content_sum *find(const struct um_content_check *c, const struct um_tensor *t)
{
	for (size_t i = 0; i < c->sums.n; i++)
		if (c->sums.at[i]->id.v == t->id.v && !*c->sums.at[i]->op)
			return c->sums.at[i];
	return NULL;
}

void um_content_check_dropped(struct um_content_check *c, struct um_gpu *gpu, um_stream stream,
			      const struct um_tensor *t)
{
	struct um_content_sum *s = find(c, t) ? NULL : calloc(1, sizeof *s);

	if (!s)
		return; /* out of memory: the content is not compared */
	s->addr = t->addr;
	s->bytes = t->bytes;
	s->id = t->id;
	snprintf(s->tensor, sizeof s->tensor, "%s", t->name ? t->name : "(unnamed)");
	if (um_vec_push(&c->sums, s)) {
		free(s);
	} else if (enqueue(s, gpu, stream)) {
		c->sums.n--;
		free(s);
	}
}

void um_content_check_made(struct um_content_check *c, struct um_gpu *gpu, um_stream stream, const struct um_tensor *t,
			   const char *op, uint64_t iteration)
{
	struct um_content_sum *s = find(c, t);

	if (!s)
		return;
	snprintf(s->op, sizeof s->op, "%s", op);
	s->iteration = iteration;
	enqueue(s, gpu, stream); /* if the device refuses, the content is not compared */
}

void um_content_check_fini(struct um_content_check *c)
{
	for (size_t i = 0; i < c->sums.n; i++)
		free(c->sums.at[i]);
	um_vec_fini(&c->sums);
	um_vec_fini(&c->refused);
}

static uint64_t key_of(const char *op)
{
	char name[sizeof((struct um_content_sum *)0)->op];

	snprintf(name, sizeof name, "%s", op);
	return um_hash_str(name);
}

int um_content_check_refuses(const struct um_content_check *c, const char *op)
{
	uint64_t key = c->refused.n ? key_of(op) : 0;

	for (size_t i = 0; i < c->refused.n; i++)
		if (c->refused.at[i] == key)
			return 1;
	return 0;
}

static void log_wrong(const struct um_content_sum *s, struct um_notices *notices)
{
	um_notices_log(
		notices, UMADV_LOG_WARN,
		"check: in iteration %llu op '%s' was launched again and wrote other content to tensor '%s' than "
		"before: it is not launched again. Announce it by umadv_op, or declare all that it uses",
		(unsigned long long)s->iteration, s->op, s->tensor);
}

static void refuse(struct um_content_check *c, const char *op, struct um_notices *notices)
{
	if (um_content_check_refuses(c, op))
		return;
	if (um_vec_push(&c->refused, key_of(op)))
		notices->errors++;
	c->refuses_more = 1;
}

/* Is no more to come for this record? */
static int is_over(const struct um_content_sum *s, const struct um_registry *r)
{
	const struct um_tensor *t;

	if (atomic_load_explicit(&s->done, memory_order_acquire) != s->n)
		return 0;
	if (*s->op)
		return 1;
	for (t = um_registry_find(r, s->addr); t && t->id.v != s->id.v; t = t->parent)
		continue;
	return !t;
}

void um_content_check_report(struct um_content_check *c, const struct um_registry *r, struct um_notices *notices)
{
	size_t left = 0;

	for (size_t i = 0; i < c->sums.n; i++) {
		struct um_content_sum *s = c->sums.at[i];

		if (!is_over(s, r)) {
			c->sums.at[left++] = s;
			continue;
		}
		if (s->n == 2 && s->sum[0] != s->sum[1]) {
			c->wrong++;
			log_wrong(s, notices);
			refuse(c, s->op, notices);
		}
		free(s);
	}
	c->sums.n = left;
}
