/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_spy.c - a tool that NVTX attaches to: writes what is marked
 *
 *     NVTX_INJECTION64_PATH=...  this library
 *     NVTX_SPY=FILE              where to: a line each, NS THREAD WHAT; unset: the tool does not attach
 *
 * WHAT is `domain N NAME`, `mark N TEXT`, `start N ID TEXT`, `end N ID`, `push N TEXT` or `pop N`, N being the domain's
 * number. By itself, with the few declarations that a tool needs, so that it also stands for a tool that was built with
 * another version.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const char *message;
};

struct callbacks {
	size_t size;
	int (*table)(int module, void (****slots)(void), unsigned *n);
};

enum { CALLBACKS = 1, CORE2 = 5, MARK = 1, START = 2, END = 3, PUSH = 4, POP = 5, CREATE = 12 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static uint64_t domains, ranges;

static void begin(void)
{
	struct timespec t;

	pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_MONOTONIC, &t);
	fprintf(out, "%" PRIu64 " %d ", (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, (int)gettid());
}

static void end(void)
{
	fputc('\n', out);
	fflush(out);
	pthread_mutex_unlock(&lock);
}

static void *domain_create(const char *name)
{
	uint64_t n;

	begin();
	n = ++domains;
	fprintf(out, "domain %" PRIu64 " %s", n, name);
	end();
	return (void *)(uintptr_t)n;
}

static void domain_mark(void *domain, const struct attributes *a)
{
	begin();
	fprintf(out, "mark %" PRIuPTR " %s", (uintptr_t)domain, a->message_type == 1 ? a->message : "(no text)");
	end();
}

static uint64_t range_start(void *domain, const struct attributes *a)
{
	uint64_t id;

	begin();
	id = ++ranges;
	fprintf(out, "start %" PRIuPTR " %" PRIu64 " %s", (uintptr_t)domain, id,
		a->message_type == 1 ? a->message : "(no text)");
	end();
	return id;
}

static void range_end(void *domain, uint64_t id)
{
	begin();
	fprintf(out, "end %" PRIuPTR " %" PRIu64, (uintptr_t)domain, id);
	end();
}

static int range_push(void *domain, const struct attributes *a)
{
	begin();
	fprintf(out, "push %" PRIuPTR " %s", (uintptr_t)domain, a->message_type == 1 ? a->message : "(no text)");
	end();
	return 0;
}

static int range_pop(void *domain)
{
	begin();
	fprintf(out, "pop %" PRIuPTR, (uintptr_t)domain);
	end();
	return 0;
}

static void put(void (***slots)(void), unsigned n, unsigned id, void (*function)(void))
{
	if (id < n && slots[id])
		*slots[id] = function;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*get)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*get)(uint32_t id))
{
	const struct callbacks *c = get(CALLBACKS);
	const char *path = getenv("NVTX_SPY");
	void (***slots)(void);
	unsigned n;

	if (!path || !c || !c->table(CORE2, &slots, &n))
		return 0;
	out = fopen(path, "a");
	if (!out)
		return 0;
	put(slots, n, MARK, (void (*)(void))domain_mark);
	put(slots, n, START, (void (*)(void))range_start);
	put(slots, n, END, (void (*)(void))range_end);
	put(slots, n, PUSH, (void (*)(void))range_push);
	put(slots, n, POP, (void (*)(void))range_pop);
	put(slots, n, CREATE, (void (*)(void))domain_create);
	return 1;
}
