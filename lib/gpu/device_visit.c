/* SPDX-License-Identifier: Apache-2.0
 *
 * device_visit.c - keeps context and last error around every CUDA call; fork, exit and sticky errors
 *
 * The overhead of a visit: a load of two flags, cuCtxGetCurrent, and with a shared runtime cudaPeekAtLastError; all of
 * them read thread-local memory.
 *
 * The program's last error: a failed call of the runtime would overwrite it, and it cannot be restored. So while an
 * error of the program is pending, the driver's twin of the call is made instead, which does not touch it; otherwise
 * the error of our own failed call is cleared.
 */
#include "gpu/device_state.h"

#include <pthread.h>
#include <stdlib.h>

static atomic_int process_gone;

static void process_ends(void)
{
	atomic_store_explicit(&process_gone, 1, memory_order_relaxed);
}

/* Handlers run last in, first out: this one was registered after the driver's own and runs before the driver is torn
 * down. A second fork in the child finds the flag set. */
static void watch(void)
{
	pthread_atfork(NULL, NULL, process_ends);
	atexit(process_ends);
}

void um_process_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch);
}

int um_process_gone(void)
{
	return atomic_load_explicit(&process_gone, memory_order_relaxed);
}

/* A code below it is sticky only as the result of a call of ours: a pending one may belong to another context. */
#define DEVICE_CODES 214

#define CODE(name, number) number,
static int is_sticky(int err)
{
	static const short codes[] = {UM_END_CODES(CODE) UM_END_CODES_13(CODE)};

	if (!err || err == UM_CUDA_NOT_READY)
		return 0;
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i] == err)
			return 1;
	return 0;
}

static void note(struct um_device *d, int err)
{
	int none = 0;

	if (is_sticky(err))
		atomic_compare_exchange_strong(&d->lost, &none, err);
}

int um_device_gone(struct um_device *d)
{
	return um_process_gone() || atomic_load_explicit(&d->lost, memory_order_relaxed) ? UM_CUDA_LOST : 0;
}

/* Makes our context current, if it is not. */
static int context_in(struct um_visit *v)
{
	struct um_device *d = v->device;
	void *current = NULL;
	int err = d->cu.ctx_current(&current);

	if (err || current == d->context)
		return err;
	err = d->cu.ctx_push(d->context);
	v->pushed = !err;
	return err;
}

int um_visit_begin(struct um_visit *v, struct um_gpu *gpu, enum um_visit_kind kind)
{
	struct um_device *d = um_device_of(gpu);
	int err, pending;

	if (um_device_gone(d))
		return UM_CUDA_LOST;
	*v = (struct um_visit){.device = d, .calls = &d->driver, .capture_mode = -1};
	err = context_in(v);
	if (err) {
		note(d, err);
		return err;
	}
	if (d->info.via == UM_VIA_RUNTIME) {
		pending = d->rt.peek_error();
		if (pending >= DEVICE_CODES && is_sticky(pending)) {
			note(d, pending);
			return um_visit_end(v, UM_CUDA_LOST);
		}
		if (!pending)
			v->calls = &d->runtime;
	}
	if (kind == UM_VISIT_UNSAFE && d->cu.capture_mode) {
		v->capture_mode = UM_CAPTURE_RELAXED;
		if (d->cu.capture_mode(&v->capture_mode))
			v->capture_mode = -1;
	}
	return UM_CUDA_OK;
}

int um_visit_stream_code(struct um_visit *v, int err)
{
	int device;

	if (err == UM_CUDA_CONTEXT_IS_DESTROYED && !v->device->cu.ctx_device(&device))
		return UM_CUDA_INVALID_HANDLE;
	return err;
}

int um_visit_stream(struct um_visit *v, struct um_gpu *gpu, um_stream stream, enum um_visit_kind kind)
{
	int status = 0, err = um_visit_begin(v, gpu, kind);

	if (err)
		return err;
	/* Also for our own streams, which never capture: telling them apart would cost as much as the query. */
	err = v->calls->stream_capturing(stream, &status);
	if (!err && !status)
		return UM_CUDA_OK;
	err = um_visit_end(v, um_visit_stream_code(v, err));
	return !err || err == UM_CUDA_CAPTURE_IMPLICIT ? UM_CUDA_CAPTURING : err;
}

int um_visit_end(struct um_visit *v, int err)
{
	struct um_device *d = v->device;
	void *ours;

	note(d, err);
	if (err && v->calls == &d->runtime && !is_sticky(err))
		d->rt.last_error();
	if (v->capture_mode >= 0)
		d->cu.capture_mode(&v->capture_mode);
	if (v->pushed)
		d->cu.ctx_pop(&ours);
	return err;
}
