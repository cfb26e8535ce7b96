/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/standin.h"

#include "gpu/standin_table.h"
#include "inject/session.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct um_standin_table *real;
static struct um_standin_table ours;

static int launch_host(um_stream stream, const char *name, const struct um_announcement *what, void (*fn)(void *arg),
		       void *arg, void (*free_arg)(void *arg))
{
	struct um_inject_uses uses;

	if (um_session_active() && !um_session_captures(stream))
		atomic_fetch_add_explicit(&um_inject_counts.launches, 1, memory_order_relaxed);
	if (um_session_active() && um_session_pressed() && !um_session_captures(stream)) {
		um_inject_uses_init(&uses);
		for (uint32_t i = 0; i < what->n; i++)
			um_inject_use(&uses, (uintptr_t)what->touch[i].ptr, UMADV_ACCESS_UPDATE);
		if (uses.n)
			um_session_op(uses.device, stream, name, uses.at, uses.n);
	}
	return real->launch_host(stream, name, what, fn, arg, free_arg);
}

int um_standin_is(const char *name)
{
	return !strcmp(name, UM_STANDIN_NAME);
}

void *um_standin_wrap(void *table)
{
	const struct um_standin_table *t = table;

	if (t->version != UM_STANDIN_VERSION || t->size != sizeof *t)
		return table;
	pthread_mutex_lock(&lock);
	if (!real) {
		real = t;
		ours = *t;
		ours.launch_host = launch_host;
	}
	pthread_mutex_unlock(&lock);
	return &ours;
}
