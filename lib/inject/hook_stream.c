/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_stream.c - streams that end or capture, contexts that end
 *
 * The context must not use a stream's handle after its end, and forgets a stream when its work is complete. A stream
 * that still works when the program destroys it is kept until it is idle: the program does not wait.
 */
#include "inject/driver.h"
#include "inject/functions.h"
#include "inject/hook_sync.h"
#include "inject/session.h"

#include "base/vec.h"

#include <pthread.h>

#define NOT_READY 600

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `ended` */
static UM_VEC(void *) ended; /* destroyed by the program, not idle yet */

static void forget(void *stream)
{
	for (int i = 0; i < UM_INJECT_DEVICES; i++)
		if (um_session_at(i)->adv)
			umadv_forget_stream(um_session_at(i)->adv, stream);
}

/* Takes an idle stream of the list. NULL: there is none. */
static void *take_idle(void)
{
	void *stream = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = ended.n; i-- > 0 && !stream;)
		if (um_real.cuStreamQuery(ended.at[i]) != NOT_READY) {
			stream = ended.at[i];
			ended.at[i] = ended.at[--ended.n];
		}
	pthread_mutex_unlock(&lock);
	return stream;
}

static int keep(void *stream)
{
	int err;

	pthread_mutex_lock(&lock);
	err = um_vec_push(&ended, stream);
	pthread_mutex_unlock(&lock);
	return err;
}

static int destroy(void *stream, int idle)
{
	um_sync_ends(stream, idle);
	return um_real.cuStreamDestroy_v2(stream);
}

/* Destroys it, or keeps it until it is idle. */
static int end(void *stream)
{
	int busy = um_real.cuStreamQuery(stream);

	if (busy == NOT_READY && um_ranges_any() && !keep(stream))
		return 0;
	if (!busy && um_ranges_any())
		forget(stream);
	return destroy(stream, !busy);
}

int cuStreamDestroy_v2(void *stream)
{
	void *idle;

	if (!um_driver_ready() || !um_session_active() || !um_real.cuStreamQuery || !um_real.cuStreamDestroy_v2 ||
	    !stream)
		return UM_PASS(cuStreamDestroy_v2, (stream));
	while ((idle = take_idle())) {
		forget(idle);
		destroy(idle, 1);
	}
	return um_session_captures(stream) ? destroy(stream, 0) : end(stream);
}

/* --- captures ----------------------------------------------------------------------------------------------------- */

static int began(int err)
{
	if (!err)
		um_session_capture(1);
	return err;
}

/* A capture that ended with an error has ended, unless it was not this stream's. */
static int finished(int err, void *stream, int was)
{
	if (was && !um_session_captures(stream))
		um_session_capture(-1);
	return err;
}

#define CAPTURE(suffix, on)                                                                                            \
	int cuStreamBeginCapture##suffix(void *stream)                                                                 \
	{                                                                                                              \
		return began(UM_PASS(cuStreamBeginCapture##suffix, (stream)));                                         \
	}                                                                                                              \
	int cuStreamBeginCapture_v2##suffix(void *stream, int mode)                                                    \
	{                                                                                                              \
		return began(UM_PASS(cuStreamBeginCapture_v2##suffix, (stream, mode)));                                \
	}                                                                                                              \
	int cuStreamBeginCaptureToGraph##suffix(void *stream, void *graph, const void *after, const void *edges,       \
						size_t n, int mode)                                                    \
	{                                                                                                              \
		return began(UM_PASS(cuStreamBeginCaptureToGraph##suffix, (stream, graph, after, edges, n, mode)));    \
	}                                                                                                              \
	int cuStreamEndCapture##suffix(void *stream, void **graph)                                                     \
	{                                                                                                              \
		int was = um_driver_ready() && um_session_captures(on);                                                \
                                                                                                                       \
		return finished(UM_PASS(cuStreamEndCapture##suffix, (stream, graph)), on, was);                        \
	}

CAPTURE(, stream)
CAPTURE(_ptsz, stream ? stream : (void *)2)

/* --- ends --------------------------------------------------------------------------------------------------------- */

/* Streams and kernels are gone, their handles may come back as others. `ordinal` -1: of this context. */
static void reset(int ordinal, const void *context)
{
	if (!um_session_active())
		return;
	pthread_mutex_lock(&lock);
	um_vec_clear(&ended);
	pthread_mutex_unlock(&lock);
	um_sync_reset();
	um_functions_forget();
	um_session_reset(ordinal, context);
}

int cuDevicePrimaryCtxReset(int device)
{
	reset(device, NULL);
	return UM_PASS(cuDevicePrimaryCtxReset, (device));
}

int cuDevicePrimaryCtxReset_v2(int device)
{
	reset(device, NULL);
	return UM_PASS(cuDevicePrimaryCtxReset_v2, (device));
}

int cuCtxDestroy_v2(void *context)
{
	reset(-1, context);
	return UM_PASS(cuCtxDestroy_v2, (context));
}
