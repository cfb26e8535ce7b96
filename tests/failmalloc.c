/* SPDX-License-Identifier: Apache-2.0
 *
 * failmalloc.c - a preloaded library that makes the n-th allocation of a process fail
 *
 *     UM_FAIL_AT=n             the n-th malloc, calloc, realloc, ... (counted from 1, from the start of the process)
 *                              fails with ENOMEM; none if unset
 *     UM_FAIL_COUNT_FILE=path  at exit the number of allocations that were asked for is written there
 *
 * A program may ask failmalloc_live() (declared weak) how many allocations are alive: what it makes and does not free
 * it leaks. tests/failmalloc.sh runs a command once for every n.
 *
 * The real functions are found by dlsym, which may itself allocate: until they are known memory comes from a small
 * arena that is never given back. A wrapper calls nothing but the real function, so no call comes back here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARENA_BYTES 65536

static _Alignas(64) unsigned char arena[ARENA_BYTES];
static size_t arena_used;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static void *(*real_memalign)(size_t, size_t);
static void (*real_free)(void *);

static atomic_ulong count; /* allocations asked for */
static atomic_long live; /* given and not freed */
static unsigned long fail_at; /* 0: never */
static int ready;

void *memalign(size_t align, size_t bytes);
long failmalloc_live(void);

/* POSIX wants functions out of dlsym by way of an object pointer. */
static void find(void *to, const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	memcpy(to, &fn, sizeof fn);
}

static void start(void)
{
	static int starting;
	const char *at;

	if (ready || starting)
		return;
	starting = 1;
	find(&real_malloc, "malloc");
	find(&real_calloc, "calloc");
	find(&real_realloc, "realloc");
	find(&real_posix_memalign, "posix_memalign");
	find(&real_aligned_alloc, "aligned_alloc");
	find(&real_memalign, "memalign");
	find(&real_free, "free");
	at = getenv("UM_FAIL_AT");
	fail_at = at ? strtoul(at, NULL, 10) : 0;
	ready = 1;
}

__attribute__((constructor)) static void begin(void)
{
	start();
}

/* The file is opened for adding, one line a process: a command may start others. */
__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("UM_FAIL_COUNT_FILE");
	char line[32];
	int fd, n;

	if (!path || !*path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0)
		return;
	n = snprintf(line, sizeof line, "%lu\n", (unsigned long)count);
	if (write(fd, line, (size_t)n) != n)
		unlink(path); /* no number rather than half of one */
	close(fd);
}

long failmalloc_live(void)
{
	return live;
}

static int in_arena(const void *p)
{
	uintptr_t at = (uintptr_t)p, lo = (uintptr_t)arena;

	return at >= lo && at < lo + ARENA_BYTES;
}

/* Only before the real functions are known: one thread, few calls. */
static void *from_arena(size_t bytes)
{
	void *p = arena + arena_used;

	bytes = (bytes + 63) / 64 * 64;
	if (bytes > ARENA_BYTES - arena_used)
		return NULL;
	arena_used += bytes;
	return p;
}

/* Is this the one? */
static int fails(void)
{
	if (++count != fail_at)
		return 0;
	errno = ENOMEM;
	return 1;
}

static void *given(void *p)
{
	live += p != NULL;
	return p;
}

void *malloc(size_t bytes)
{
	start();
	if (!ready)
		return from_arena(bytes);
	return fails() ? NULL : given(real_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
	start();
	if (!ready) /* the arena is zero and never used twice */
		return bytes && n > ARENA_BYTES / bytes ? NULL : from_arena(n * bytes);
	return fails() ? NULL : given(real_calloc(n, bytes));
}

void *realloc(void *p, size_t bytes)
{
	void *q;

	start();
	if (ready && fails())
		return NULL;
	if (ready && !in_arena(p)) {
		q = real_realloc(p, bytes);
		live += q && !p;
		live -= p && !q && bytes == 0;
		return q;
	}
	q = ready ? given(real_malloc(bytes)) : from_arena(bytes);
	if (q && p) {
		size_t most = (size_t)(arena + ARENA_BYTES - (unsigned char *)p);

		memcpy(q, p, bytes < most ? bytes : most); /* its size is not known, but it ends where the arena does */
	}
	return q;
}

void *reallocarray(void *p, size_t n, size_t bytes)
{
	if (bytes && n > SIZE_MAX / bytes) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, n * bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	int rc;

	start();
	if (!ready || fails())
		return ENOMEM;
	rc = real_posix_memalign(out, align, bytes);
	live += rc == 0;
	return rc;
}

void *aligned_alloc(size_t align, size_t bytes)
{
	start();
	return !ready || fails() ? NULL : given(real_aligned_alloc(align, bytes));
}

void *memalign(size_t align, size_t bytes)
{
	start();
	return !ready || fails() ? NULL : given(real_memalign(align, bytes));
}

void free(void *p)
{
	start();
	if (!p || in_arena(p) || !ready)
		return;
	live--;
	real_free(p);
}
