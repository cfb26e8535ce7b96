/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_ranges.c - the path is one text, to which a push appends; a pop cuts out what its push has appended
 *
 * A range that has no room in the path, or is deeper than DEPTH, is counted and has no text.
 *
 * A number at the end of an outermost range counts iterations, or names a layer. As long as it only grows, it counts,
 * and is left out.
 */
#include "inject/nvtx_ranges.h"

#include "base/hash.h"
#include "gpu/nvtx_listen.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 64u
#define PATH 1024u
#define NUMBERED 16u

struct range {
	const void *domain;
	unsigned bytes; /* of the path */
};

struct numbered { /* outermost ranges that differ in the number at their end */
	uint64_t hash; /* of the rest; 0: none */
	uint64_t latest;
	int returns; /* a number was not greater than the one before */
};

struct ranges {
	unsigned n, deeper; /* `deeper`: ranges beyond DEPTH */
	size_t end; /* of the path */
	struct range at[DEPTH];
	struct numbered numbered[NUMBERED]; /* by hash; the latest of equal remainder */
	char path[PATH];
};

static pthread_key_t key;

/* NULL: none, and no memory. */
static struct ranges *own(void)
{
	struct ranges *r = pthread_getspecific(key);

	if (r)
		return r;
	r = calloc(1, sizeof *r);
	if (r && pthread_setspecific(key, r)) {
		free(r);
		r = NULL;
	}
	return r;
}

/* Bytes of a text before the counters of emit_nvtx. */
static size_t constant_part(const char *text)
{
	static const char *const counters[] = {", seq = ", ", op_id = "};
	size_t n = strlen(text);

	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
		const char *at = strstr(text, counters[i]);

		n = at && (size_t)(at - text) < n ? (size_t)(at - text) : n;
	}
	return n;
}

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Bytes of the outermost range without the number at its end, if that counts. */
static size_t without_count(struct ranges *r, const char *text, size_t n)
{
	size_t end = n;
	uint64_t hash, value = 0;
	struct numbered *o;

	while (end && is_digit(text[end - 1]))
		end--;
	if (end == n)
		return n;
	hash = um_hash_bytes(text, end);
	for (size_t i = end; i < n; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	o = &r->numbered[hash % NUMBERED];
	if (o->hash != hash)
		*o = (struct numbered){hash, value, 0};
	else
		o->returns |= value <= o->latest;
	o->latest = value;
	if (o->returns)
		return n;
	while (end && text[end - 1] == ' ')
		end--;
	return end;
}

static void append(struct ranges *r, const char *text, size_t n)
{
	if (r->end)
		r->path[r->end++] = '/';
	memcpy(r->path + r->end, text, n);
	r->end += n;
	r->path[r->end] = 0;
}

static void push(const void *domain, const char *of, const char *text)
{
	struct ranges *r = own();
	size_t n = text ? constant_part(text) : 0, n_of = of && n ? strlen(of) : 0, before;

	if (!r || r->n == DEPTH) {
		if (r)
			r->deeper++;
		return;
	}
	before = r->end;
	if (!r->n && n)
		n = without_count(r, text, n);
	if (n + n_of + 3 <= PATH - before) {
		if (n_of)
			append(r, of, n_of);
		if (n)
			append(r, text, n);
	}
	r->at[r->n++] = (struct range){domain, (unsigned)(r->end - before)};
}

static void pop(const void *domain)
{
	struct ranges *r = pthread_getspecific(key);
	unsigned i = r && !r->deeper ? r->n : 0;
	size_t from = i ? r->end : 0;

	if (r && r->deeper)
		r->deeper--;
	while (i && r->at[i - 1].domain != domain)
		from -= r->at[--i].bytes;
	if (!i)
		return;
	i--;
	memmove(r->path + from - r->at[i].bytes, r->path + from, r->end + 1 - from);
	r->end -= r->at[i].bytes;
	memmove(&r->at[i], &r->at[i + 1], (r->n - i - 1) * sizeof *r->at);
	r->n--;
}

static const char *path(void)
{
	const struct ranges *r = pthread_getspecific(key);

	return r && r->end ? r->path + (*r->path == '/') : NULL;
}

void um_nvtx_ranges_keep(void)
{
	static const struct um_nvtx_follower follower = {push, pop, path};

	if (!pthread_key_create(&key, free))
		um_nvtx_follower = &follower;
}
