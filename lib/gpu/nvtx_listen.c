/* SPDX-License-Identifier: Apache-2.0
 *
 * nvtx_listen.c - the injection interface of NVTX 3, with the few declarations that a tool needs
 *
 * Names are in lists that grow at the head by compare and swap. A later entry of a handle hides earlier ones, so
 * handles may be used again.
 */
#include "gpu/nvtx_listen.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define PATH_VARIABLE "NVTX_INJECTION64_PATH"
#define NEXT_VARIABLE "UMADVISE_NVTX_NEXT"
#define PATTERN_VARIABLE "UMADVISE_ITERATION"
#define INIT "InitializeInjectionNvtx2"
#define INIT_EXTENSION "InitializeInjectionNvtxExtension"
#define NAME_BYTES 256
#define MOST_NAMES 256 /* greatest number of different names of iterations */
#define STRING_LISTS 256u

_Atomic uint64_t um_nvtx_marks;
const struct um_nvtx_follower *um_nvtx_follower;

/* --- NVTX's side -------------------------------------------------------------------------------------------------- */

typedef void (*function)(void);
typedef const void *(*get_table)(uint32_t id);

struct callbacks {
	size_t size;
	int (*table)(int module, function ***slots, unsigned *n);
};

struct attributes { /* the first members of nvtxEventAttributes_t, versions 1 and 2 */
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} message;
};

enum { TABLE_CALLBACKS = 1 };
enum { MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { ASCII = 1, WIDE = 2, REGISTERED = 3 };
enum { NOT_TRACKED = -2 }; /* the level of a push without a tool */

enum slot {
	START_EX,
	START_A,
	START_W,
	PUSH_EX,
	PUSH_A,
	PUSH_W,
	DOMAIN_START,
	DOMAIN_PUSH,
	STRING_A,
	STRING_W,
	DOMAIN_A,
	DOMAIN_W,
	POP, /* from here on: for the follower */
	DOMAIN_POP,
	SLOTS
};

/* --- names -------------------------------------------------------------------------------------------------------- */

struct named {
	struct named *next;
	const void *handle;
	char text[];
};

static struct named *_Atomic domains, *_Atomic strings[STRING_LISTS], *_Atomic names;
static struct named *_Atomic last_name;
static atomic_uint n_names;
static const char *pattern; /* NULL: no range is an iteration */

static void narrow(char *to, size_t size, const wchar_t *from)
{
	size_t n = 0;

	for (; from && *from && n + 1 < size; from++)
		to[n++] = *from > 0 && *from < 128 ? (char)*from : '?';
	to[n] = 0;
}

/* NULL: no memory. `handle` NULL: the entry is its own handle. */
static struct named *add(struct named *_Atomic *list, const void *handle, const char *text)
{
	size_t n = strlen(text) + 1;
	struct named *e = malloc(sizeof *e + n);

	if (!e)
		return NULL;
	memcpy(e->text, text, n);
	e->handle = handle ? handle : e;
	e->next = atomic_load(list);
	while (!atomic_compare_exchange_weak(list, &e->next, e))
		;
	return e;
}

static const char *find(struct named *_Atomic *list, const void *handle)
{
	struct named *e = atomic_load(list);

	while (e && e->handle != handle)
		e = e->next;
	return e ? e->text : NULL;
}

static struct named *_Atomic *list_of(const void *string)
{
	return &strings[((uintptr_t)string >> 4) % STRING_LISTS];
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

int um_nvtx_is_iteration(const char *is, const char *domain, const char *name)
{
	char whole[2 * NAME_BYTES];

	if (fnmatch(is, name, 0) == 0)
		return 1;
	if (!domain || !strchr(is, '/'))
		return 0;
	snprintf(whole, sizeof whole, "%s/%s", domain, name);
	return fnmatch(is, whole, 0) == 0;
}

static void keep_name(const char *text)
{
	char name[NAME_BYTES];
	size_t n;
	struct named *e = atomic_load(&names);

	snprintf(name, sizeof name, "%s", text);
	n = strlen(name);
	while (n && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	while (n && name[n - 1] == ' ')
		n--;
	name[n] = 0;
	while (e && strcmp(e->text, name) != 0)
		e = e->next;
	if (!e && atomic_fetch_add(&n_names, 1) < MOST_NAMES)
		e = add(&names, NULL, name);
	atomic_store(&last_name, n ? e : NULL);
}

const char *um_nvtx_mark_name(void)
{
	struct named *e = atomic_load(&last_name);

	return e ? e->text : NULL;
}

/* `pushed`: the calling thread is in the range until it pops it. `name` may be NULL. */
static void begins(const void *domain, const char *name, int pushed)
{
	const char *of = domain ? find(&domains, domain) : NULL;
	int iteration = name && pattern && um_nvtx_is_iteration(pattern, of, name);

	if (iteration) {
		keep_name(name);
		atomic_fetch_add(&um_nvtx_marks, 1);
	}
	if (pushed && um_nvtx_follower)
		um_nvtx_follower->push(domain, of, iteration ? NULL : name);
}

static void begins_wide(const void *domain, const wchar_t *name, int pushed)
{
	char text[NAME_BYTES];

	narrow(text, sizeof text, name);
	begins(domain, text, pushed);
}

static void begins_as(const void *domain, const struct attributes *a, int pushed)
{
	int named = a && a->size >= offsetof(struct attributes, message) + sizeof a->message;

	if (named && a->message_type == WIDE)
		begins_wide(domain, a->message.wide, pushed);
	else if (named && a->message_type == REGISTERED)
		begins(domain, find(list_of(a->message.registered), a->message.registered), pushed);
	else
		begins(domain, named && a->message_type == ASCII ? a->message.ascii : NULL, pushed);
}

/* --- our functions in NVTX's tables ------------------------------------------------------------------------------- */

static function next[SLOTS]; /* the other tool's; NULL: it has none */

#define NEXT(slot, type) ((type)next[slot])

static uint64_t start_ex(const struct attributes *a)
{
	begins_as(NULL, a, 0);
	return next[START_EX] ? NEXT(START_EX, uint64_t(*)(const struct attributes *))(a) : 0;
}

static uint64_t start_a(const char *name)
{
	begins(NULL, name, 0);
	return next[START_A] ? NEXT(START_A, uint64_t(*)(const char *))(name) : 0;
}

static uint64_t start_w(const wchar_t *name)
{
	begins_wide(NULL, name, 0);
	return next[START_W] ? NEXT(START_W, uint64_t(*)(const wchar_t *))(name) : 0;
}

static int push_ex(const struct attributes *a)
{
	begins_as(NULL, a, 1);
	return next[PUSH_EX] ? NEXT(PUSH_EX, int (*)(const struct attributes *))(a) : NOT_TRACKED;
}

static int push_a(const char *name)
{
	begins(NULL, name, 1);
	return next[PUSH_A] ? NEXT(PUSH_A, int (*)(const char *))(name) : NOT_TRACKED;
}

static int push_w(const wchar_t *name)
{
	begins_wide(NULL, name, 1);
	return next[PUSH_W] ? NEXT(PUSH_W, int (*)(const wchar_t *))(name) : NOT_TRACKED;
}

static uint64_t domain_start(const void *domain, const struct attributes *a)
{
	begins_as(domain, a, 0);
	return next[DOMAIN_START] ? NEXT(DOMAIN_START, uint64_t(*)(const void *, const struct attributes *))(domain, a)
				  : 0;
}

static int domain_push(const void *domain, const struct attributes *a)
{
	begins_as(domain, a, 1);
	return next[DOMAIN_PUSH] ? NEXT(DOMAIN_PUSH, int (*)(const void *, const struct attributes *))(domain, a)
				 : NOT_TRACKED;
}

static int pop(void)
{
	um_nvtx_follower->pop(NULL);
	return next[POP] ? NEXT(POP, int (*)(void))() : NOT_TRACKED;
}

static int domain_pop(const void *domain)
{
	um_nvtx_follower->pop(domain);
	return next[DOMAIN_POP] ? NEXT(DOMAIN_POP, int (*)(const void *))(domain) : NOT_TRACKED;
}

/* Without another tool the handle of a string is its entry in this library's lists, so that all lists are searched. */
static const void *keep_string(const void *handle, const char *text)
{
	struct named *e = add(handle ? list_of(handle) : &strings[0], handle, text ? text : "");

	if (!handle && e) {
		handle = e;
		add(list_of(handle), handle, e->text);
	}
	return handle;
}

static const void *string_a(const void *domain, const char *text)
{
	const void *handle = NULL;

	if (next[STRING_A])
		handle = NEXT(STRING_A, const void *(*)(const void *, const char *))(domain, text);
	return keep_string(handle, text);
}

static const void *string_w(const void *domain, const wchar_t *wide)
{
	const void *handle = NULL;
	char text[NAME_BYTES];

	narrow(text, sizeof text, wide);
	if (next[STRING_W])
		handle = NEXT(STRING_W, const void *(*)(const void *, const wchar_t *))(domain, wide);
	return keep_string(handle, text);
}

static const void *keep_domain(const void *handle, const char *name)
{
	struct named *e = add(&domains, handle, name ? name : "");

	return handle ? handle : e;
}

static const void *domain_a(const char *name)
{
	return keep_domain(next[DOMAIN_A] ? NEXT(DOMAIN_A, const void *(*)(const char *))(name) : NULL, name);
}

static const void *domain_w(const wchar_t *wide)
{
	char name[NAME_BYTES];

	narrow(name, sizeof name, wide);
	return keep_domain(next[DOMAIN_W] ? NEXT(DOMAIN_W, const void *(*)(const wchar_t *))(wide) : NULL, name);
}

static const struct {
	int module;
	unsigned id; /* in the module's table */
	function ours;
} slots[SLOTS] = {
	[START_EX] = {MODULE_CORE, 4, (function)start_ex},
	[START_A] = {MODULE_CORE, 5, (function)start_a},
	[START_W] = {MODULE_CORE, 6, (function)start_w},
	[PUSH_EX] = {MODULE_CORE, 8, (function)push_ex},
	[PUSH_A] = {MODULE_CORE, 9, (function)push_a},
	[PUSH_W] = {MODULE_CORE, 10, (function)push_w},
	[DOMAIN_START] = {MODULE_CORE2, 2, (function)domain_start},
	[DOMAIN_PUSH] = {MODULE_CORE2, 4, (function)domain_push},
	[STRING_A] = {MODULE_CORE2, 10, (function)string_a},
	[STRING_W] = {MODULE_CORE2, 11, (function)string_w},
	[DOMAIN_A] = {MODULE_CORE2, 12, (function)domain_a},
	[DOMAIN_W] = {MODULE_CORE2, 13, (function)domain_w},
	[POP] = {MODULE_CORE, 11, (function)pop},
	[DOMAIN_POP] = {MODULE_CORE2, 5, (function)domain_pop},
};

/* --- attaching ---------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `attached` and `next`, while tables are filled */
static char attached[SLOTS]; /* `next` is set */
static void *next_tool;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_next(void)
{
	const char *path = secure_getenv(NEXT_VARIABLE);

	pattern = secure_getenv(PATTERN_VARIABLE);
	if (pattern && !*pattern)
		pattern = NULL;
	if (path && *path)
		next_tool = dlopen(path, RTLD_LAZY);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(get_table get);
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(void *module);

/* The other tool's function of that name; NULL if the variable names this library. */
static void *next_function(const char *name, const void *ours)
{
	void *f;

	pthread_once(&once, load_next);
	f = next_tool ? dlsym(next_tool, name) : NULL;
	return f == ours ? NULL : f;
}

/* 1: the table belongs to this library's own ranges. */
static int is_own(get_table get)
{
	Dl_info theirs, ours;

	return dladdr((void *)(uintptr_t)get, &theirs) && dladdr((void *)(uintptr_t)InitializeInjectionNvtx2, &ours) &&
	       theirs.dli_fbase == ours.dli_fbase;
}

/* The slots of one library that uses NVTX; NULL: the library has no such slot, or it is not needed. */
static void find_slots(get_table get, function **out)
{
	const struct callbacks *c = get(TABLE_CALLBACKS);
	int needed = um_nvtx_follower ? SLOTS : POP;

	for (int i = 0; i < SLOTS; i++) {
		function **table = NULL;
		unsigned n = 0;

		out[i] = NULL;
		if (i < needed && c && c->size >= sizeof *c && c->table(slots[i].module, &table, &n) && slots[i].id < n)
			out[i] = table[slots[i].id];
	}
}

/* Puts this library's functions before the other tool's. `was`: content of the slot before that tool attached. If the
 * tool has different functions for each library, only those of the first library are replaced. */
static void put(function **slot, const function *was, int tool)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < SLOTS; i++) {
		function theirs = slot[i] && tool && *slot[i] != was[i] ? *slot[i] : NULL;

		if (!slot[i])
			continue;
		if (!attached[i])
			next[i] = theirs;
		attached[i] = 1;
		if (theirs == next[i])
			*slot[i] = slots[i].ours;
	}
	pthread_mutex_unlock(&lock);
}

int InitializeInjectionNvtx2(get_table get)
{
	void *tool = next_function(INIT, (void *)(uintptr_t)InitializeInjectionNvtx2);
	function *slot[SLOTS], was[SLOTS] = {NULL};
	int (*init)(get_table);
	int ok = 0;

	find_slots(get, slot);
	for (int i = 0; i < SLOTS; i++)
		was[i] = slot[i] ? *slot[i] : NULL;
	memcpy(&init, &tool, sizeof init);
	if (init)
		ok = init(get);
	if ((!pattern && !um_nvtx_follower) || is_own(get))
		return ok;
	put(slot, was, ok);
	return 1;
}

/* Passes NVTX's extensions (payloads, counters, memory) to the other tool; this library does not use them. */
int InitializeInjectionNvtxExtension(void *module)
{
	void *tool = next_function(INIT_EXTENSION, (void *)(uintptr_t)InitializeInjectionNvtxExtension);
	int (*init)(void *);

	memcpy(&init, &tool, sizeof init);
	return init ? init(module) : 0;
}

static void claim(void)
{
	const char *is = secure_getenv(PATTERN_VARIABLE), *before = secure_getenv(PATH_VARIABLE);
	char path[PATH_MAX];
	Dl_info ours;

	if ((!(is && *is) && !um_nvtx_follower) || !dladdr((void *)(uintptr_t)InitializeInjectionNvtx2, &ours) ||
	    !ours.dli_fname || !strstr(ours.dli_fname, ".so") || !realpath(ours.dli_fname, path))
		return;
	if (before && *before && !secure_getenv(NEXT_VARIABLE) && !strstr(before, "libumadvise.so") &&
	    strcmp(before, path) != 0)
		setenv(NEXT_VARIABLE, before, 0);
	setenv(PATH_VARIABLE, path, 1);
}

void um_nvtx_listen(void)
{
	static pthread_once_t claimed = PTHREAD_ONCE_INIT;

	pthread_once(&claimed, claim);
}
