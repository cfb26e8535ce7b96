/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_sync.c - the program waits for a device: for its own work, not for the library's hints
 *
 * cuCtxSynchronize waits for all streams, so also for prefetches that are meant to run while the program goes on. The
 * library's streams are non-blocking: an event of the legacy default stream comes after the work of all others but
 * these. So the program waits for such an event, and for one in each of its own non-blocking streams. A stream of the
 * library's waits for these events, and the program for that stream: no stream of the program is used without the lock,
 * under which they are destroyed. The driver's function is called where the library has no streams, while anything
 * captures, and where work may be in a stream that is not known: also if the driver has a function in a new form.
 */
#include "inject/hook_sync.h"

#include "inject/driver.h"
#include "inject/session.h"
#include "inject/summary.h"

#include "base/vec.h"

#include <pthread.h>

#define NON_BLOCKING 1u
#define NO_TIMING 2u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
struct beside {
	void *stream, *context;
};
static UM_VEC(struct beside) beside; /* non-blocking streams of the program */
static int lost; /* there may be others, or work of destroyed ones */

static int created(int err, void *const *stream, unsigned flags)
{
	struct beside b = {.context = NULL};

	if (err || !stream || !(flags & NON_BLOCKING) || !um_session_active())
		return err;
	b.stream = *stream;
	if (um_real.cuCtxGetCurrent && um_real.cuCtxGetCurrent(&b.context))
		b.context = NULL;
	pthread_mutex_lock(&lock);
	if (!b.context || um_vec_push(&beside, b))
		lost = 1;
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	return created(UM_PASS(cuStreamCreate, (stream, flags)), stream, flags);
}

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	return created(UM_PASS(cuStreamCreateWithPriority, (stream, flags, priority)), stream, flags);
}

/* It belongs to another context than the current one. */
int cuGreenCtxStreamCreate(void **stream, void *context, unsigned flags, int priority)
{
	pthread_mutex_lock(&lock);
	lost = 1;
	pthread_mutex_unlock(&lock);
	return UM_PASS(cuGreenCtxStreamCreate, (stream, context, flags, priority));
}

void um_sync_ends(const void *stream, int idle)
{
	pthread_mutex_lock(&lock);
	for (size_t i = beside.n; i-- > 0;)
		if (beside.at[i].stream == stream)
			beside.at[i] = beside.at[--beside.n];
	lost |= !idle;
	pthread_mutex_unlock(&lock);
}

void um_sync_reset(void)
{
	pthread_mutex_lock(&lock);
	lost |= beside.n > 0; /* some may be of another device */
	um_vec_clear(&beside);
	pthread_mutex_unlock(&lock);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

/* The library's stream waits for what is in a stream of the program now. */
static int join(const struct um_injected *d, void *stream)
{
	return um_real.cuEventRecord(d->mark, stream) || um_real.cuStreamWaitEvent(d->stream, d->mark, 0);
}

/* 0, or an error: the driver should be asked. */
static int join_all(struct um_injected *d)
{
	int err;

	pthread_mutex_lock(&lock);
	err = lost || (!d->mark && um_real.cuEventCreate(&d->mark, NO_TIMING)) || join(d, UM_STREAM_LEGACY);
	for (size_t i = 0; i < beside.n && !err; i++)
		if (beside.at[i].context == d->context)
			err = join(d, beside.at[i].stream);
	pthread_mutex_unlock(&lock);
	return err;
}

/* `context` NULL: the current one. 1: the program's work in it is complete. */
static int wait_for_program(const void *context)
{
	struct um_injected *d = um_session_pressed() ? um_session_device() : NULL;
	void *current = NULL;

	if (!d || !um_session_helped(d) || !d->stream || !d->context || atomic_load(&um_session_state.captures) ||
	    um_summary_has_unhooked() || !um_real.cuEventCreate || !um_real.cuEventRecord ||
	    !um_real.cuStreamWaitEvent || !um_real.cuStreamSynchronize || !um_real.cuCtxGetCurrent ||
	    um_real.cuCtxGetCurrent(&current) || current != d->context || (context && context != current))
		return 0;
	return !join_all(d) && !um_real.cuStreamSynchronize(d->stream);
}

int cuCtxSynchronize(void)
{
	return wait_for_program(NULL) ? 0 : UM_PASS(cuCtxSynchronize, ());
}

int cuCtxSynchronize_v2(void *context)
{
	return wait_for_program(context) ? 0 : UM_PASS(cuCtxSynchronize_v2, (context));
}
