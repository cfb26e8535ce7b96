/* SPDX-License-Identifier: Apache-2.0
 *
 * fail.c - calls that fail: those that UMADVISE_DRYRUN_FAIL injects, and those that the stand-in lacks
 */
#include "standin/standin.h"

#include <stdatomic.h>
#include <stdio.h>

/* --- injected faults ---------------------------------------------------------------------------------------------- */

const char *um_item_find(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (list && *list) {
		if (!strncmp(list, name, n) && (!list[n] || list[n] == ',' || list[n] == ':'))
			return list + n;
		list = strchr(list, ',');
		if (list)
			list++;
	}
	return NULL;
}

/* Calls so far of each name that has a rule. */
static UM_VEC(struct {
	char *name;
	unsigned long calls;
}) counted;

static unsigned long call_count(const char *name)
{
	size_t i;

	for (i = 0; i < counted.n; i++)
		if (!strcmp(counted.at[i].name, name))
			return ++counted.at[i].calls;
	if (um_vec_reserve(&counted, 1) || !(counted.at[i].name = strdup(name)))
		return 0;
	counted.n++;
	return counted.at[i].calls = 1;
}

int um_standin_fail(const char *name)
{
	const char *list = secure_getenv("UMADVISE_DRYRUN_FAIL"), *rule = list ? um_item_find(list, name) : NULL;
	unsigned long nth, calls;
	int code = 1;
	char *end;

	if (!rule || *rule != ':')
		return 0;
	nth = strtoul(rule + 1, &end, 10);
	if (*end == ':')
		code = (int)strtol(end + 1, NULL, 10);
	um_standin_lock();
	calls = call_count(name);
	um_standin_unlock();
	return !nth || calls == nth ? code : 0;
}

/* --- what is not there -------------------------------------------------------------------------------------------- */

int um_standin_unsupported(const char *what)
{
	static UM_VEC(char *) reported;
	char *copy;
	size_t i;

	um_standin_lock();
	for (i = 0; i < reported.n && strcmp(reported.at[i], what); i++)
		;
	if (i == reported.n) {
		fprintf(stderr, "umadvise: the stand-in driver does not support %s\n", what);
		copy = strdup(what);
		if (copy && um_vec_push(&reported, copy))
			free(copy);
	}
	um_standin_unlock();
	return UM_CUDA_NOT_SUPPORTED;
}

static _Thread_local const char *entered; /* the thread's latest call */
static _Atomic uint64_t calls;

int um_standin_enter(const char *name)
{
	int err = um_standin_fail(name);

	um_standin_on(NULL);
	entered = name;
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
	return err ? err : um_standin() ? UM_CUDA_OK : UM_CU_NOT_INITIALIZED;
}

uint64_t um_standin_calls(void)
{
	return atomic_load_explicit(&calls, memory_order_relaxed);
}

void um_standin_no_stream(void)
{
	struct um_standin *s = um_standin();

	if (!s || !s->destroyed)
		return;
	fprintf(stderr, "umadvise: hazard: %s names a stream that does not exist or was destroyed: CUDA may crash\n",
		entered ? entered : "a call");
	abort();
}
