/* SPDX-License-Identifier: Apache-2.0
 *
 * failmalloc.c - a preloaded library that makes the n-th allocation of a process fail
 *
 *     UM_FAIL_AT=n             the n-th malloc, calloc, realloc, ... (counted from 1, from the start of the process)
 *                              fails with ENOMEM; none if unset
 *     UM_FAIL_COUNT_FILE=path  at exit the number of allocations that were asked for is written there
 *     UM_FAIL_PICK_FILE=path   at exit the numbers of those that are worth failing, one a line: of all that the same
 *                              three callers, one in the other, ask for the first, 8th, 64th, 512th, ...
 *
 * A program may ask failmalloc_live() (declared weak) how many allocations are alive: what it makes and does not free
 * it leaks. tests/harness/failrun.c runs a command once for every number that was picked.
 *
 * What the loader asks for when a thread first uses the thread-local data of a library never fails: the C library ends
 * the process then, and no program can do anything about it.
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
#include <unwind.h>

#define ARENA_BYTES 65536
#define CHAINS 16384 /* a power of two */
#define FRAMES 5 /* pick(), malloc(), and three callers */
#define PICKS 65536

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

/* Chains of calls, hashed; and what was picked. Both under the lock; a chain for which there is no room is picked. */
static struct {
	uint64_t hash; /* 0: free */
	unsigned long n;
} chains[CHAINS];
static unsigned long n_chains, picks[PICKS], n_picks;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static int picking;

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
	picking = getenv("UM_FAIL_PICK_FILE") != NULL;
	ready = 1;
}

__attribute__((constructor)) static void begin(void)
{
	start();
}

/* The file is opened for adding: a command may start others. */
static void put(const char *path, const unsigned long *numbers, unsigned long n)
{
	char line[32];
	int fd, len;

	if (!path || !*path)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd < 0)
		return;
	while (n-- > 0) {
		len = snprintf(line, sizeof line, "%lu\n", *numbers++);
		if (write(fd, line, (size_t)len) != len) {
			unlink(path); /* no number rather than half of one */
			break;
		}
	}
	close(fd);
}

__attribute__((destructor)) static void end(void)
{
	unsigned long all = count;

	put(getenv("UM_FAIL_COUNT_FILE"), &all, 1);
	put(getenv("UM_FAIL_PICK_FILE"), picks, n_picks);
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

struct chain {
	uint64_t hash;
	int frames;
};

static _Unwind_Reason_Code add_caller(struct _Unwind_Context *context, void *chain)
{
	struct chain *c = chain;

	c->hash = (c->hash ^ (uint64_t)_Unwind_GetIP(context)) * 0x9e3779b97f4a7c15u;
	c->hash ^= c->hash >> 29;
	return ++c->frames < FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static int power_of_8(unsigned long n)
{
	while (n % 8 == 0)
		n /= 8;
	return n == 1;
}

/* The at-th allocation is asked for: is it worth failing? */
static void pick(unsigned long at)
{
	struct chain c = {1, 0};
	unsigned long times = 1;
	uint64_t hash;

	_Unwind_Backtrace(add_caller, &c);
	hash = c.hash + !c.hash;
	while (atomic_flag_test_and_set(&lock))
		;
	for (size_t i = hash % CHAINS; n_chains < CHAINS / 2; i = (i + 1) % CHAINS) {
		if (!chains[i].hash) {
			chains[i].hash = hash;
			n_chains++;
		}
		if (chains[i].hash == hash) {
			times = ++chains[i].n;
			break;
		}
	}
	if (power_of_8(times) && n_picks < PICKS)
		picks[n_picks++] = at;
	atomic_flag_clear(&lock);
}

extern void *__tls_get_addr(void *); /* the loader's; in no header */

static _Unwind_Reason_Code find_loader(struct _Unwind_Context *context, void *found)
{
	void *function = _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context));

	*(int *)found |= (uintptr_t)function == (uintptr_t)__tls_get_addr;
	return *(int *)found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static int for_thread_local_data(void)
{
	int found = 0;

	_Unwind_Backtrace(find_loader, &found);
	return found;
}

/* Is this the one? */
static int fails(void)
{
	unsigned long at = ++count;

	if (picking)
		pick(at);
	if (at != fail_at || for_thread_local_data())
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
