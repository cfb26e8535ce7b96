/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c - cuStream functions
 *
 * A handle represents a stream of the simulator. The legacy default stream and each thread's own have handles without
 * being created.
 */
#include "standin/report.h"
#include "standin/work.h"

static UM_VEC(struct um_stream_handle *) streams;
static UM_VEC(struct um_stream_handle *) destroyed; /* handles to give out again, the latest last */
static uint64_t last_id = 2; /* 1 and 2 are the default streams */
static struct um_stream_handle legacy[UM_SIM_DEVICES_MAX];
/* created at first use; in `streams` permanently */
static _Thread_local struct um_stream_handle *own[UM_SIM_DEVICES_MAX];

static struct um_stream_handle *legacy_of(int device)
{
	struct um_stream_handle *s = &legacy[device];

	if (!s->id) {
		s->sim = UM_LEGACY_STREAM;
		s->id = device ? ++last_id : 1;
		s->of = um_standin_device(device);
	}
	return s;
}

static struct um_stream_handle *own_make(int device)
{
	struct um_stream_handle *s = calloc(1, sizeof *s);

	if (!s || um_vec_push(&streams, s)) {
		free(s);
		return NULL;
	}
	s->sim = UM_THREAD_STREAM;
	s->id = device ? ++last_id : 2;
	s->of = um_standin_device(device);
	return own[device] = s;
}

static struct um_stream_handle *find(void *handle)
{
	int device = um_standin_context_device();

	if (!handle || handle == UM_LEGACY_STREAM)
		return legacy_of(device);
	if (handle == UM_THREAD_STREAM)
		return own[device] ? own[device] : own_make(device);
	for (size_t i = 0; i < streams.n; i++)
		if (streams.at[i] == handle && streams.at[i]->sim != UM_THREAD_STREAM)
			return streams.at[i];
	return NULL;
}

struct um_stream_handle *um_stream_find(void *handle)
{
	struct um_stream_handle *s = find(handle);

	if (s)
		um_standin_on(s->of);
	else
		um_standin_no_stream();
	return s;
}

um_stream um_standin_stream(void *stream, int *ok)
{
	struct um_stream_handle *s;
	um_stream sim = NULL;

	um_standin_lock();
	s = um_stream_find(stream);
	*ok = s != NULL;
	if (s)
		sim = s->sim;
	um_standin_unlock();
	return sim;
}

/* --- work ------------------------------------------------------------------------------------------------------- */

void um_work_keep(const struct um_work *w)
{
	if (w->kind == UM_WORK_KERNEL)
		um_launch_get(w->launch);
	else if (w->kind == UM_WORK_RECORD || w->kind == UM_WORK_WAIT)
		((struct um_cuda_event *)w->event)->refs++;
}

void um_work_drop(const struct um_work *w)
{
	if (w->kind == UM_WORK_KERNEL)
		um_launch_put(w->launch);
	else if (w->kind == UM_WORK_RECORD || w->kind == UM_WORK_WAIT)
		um_cuda_event_put(w->event);
}

static int copy_run(struct um_gpu *gpu, um_stream stream, const struct um_work *w, int wait)
{
	const struct um_sim_copy c = {.to = w->copy.to,
				      .from = w->copy.from,
				      .to_pitch = w->copy.to_pitch,
				      .from_pitch = w->copy.from_pitch,
				      .bytes = w->copy.bytes,
				      .rows = w->copy.rows};

	return um_sim_copy(gpu, stream, &c, wait);
}

static int set_run(struct um_gpu *gpu, um_stream stream, const struct um_work *w)
{
	const struct um_sim_set s = {.at = w->set.at,
				     .pitch = w->set.pitch,
				     .width = w->set.width,
				     .rows = w->set.rows,
				     .value = w->set.value,
				     .size = w->set.size};

	return um_sim_set(gpu, stream, &s);
}

int um_work_run(um_stream stream, const struct um_work *w, int wait)
{
	struct um_gpu *gpu = um_standin()->gpu;
	int err = UM_CUDA_INVALID_VALUE;

	switch (w->kind) {
	case UM_WORK_KERNEL:
		err = um_launch_run(w->launch, stream);
		um_launch_put(w->launch);
		return err;
	case UM_WORK_COPY:
		return copy_run(gpu, stream, w, wait);
	case UM_WORK_SET:
		return set_run(gpu, stream, w);
	case UM_WORK_HOST:
		return um_standin_call(stream, w->host.fn, w->host.arg);
	case UM_WORK_RECORD:
		err = gpu->api->cudaEventRecord(gpu, ((struct um_cuda_event *)w->event)->sim, stream);
		break;
	case UM_WORK_WAIT:
		err = gpu->api->cudaStreamWaitEvent(gpu, stream, ((struct um_cuda_event *)w->event)->sim, 0);
		break;
	}
	um_standin_lock();
	um_cuda_event_put(w->event);
	um_standin_unlock();
	return err;
}

int um_work_do(void *stream, const struct um_work *w, int wait)
{
	struct um_stream_handle *s;
	um_stream sim = NULL;
	int err, captured = 0;

	um_standin_lock();
	s = um_stream_find(stream);
	err = s ? um_capture_guard(s) : UM_CU_INVALID_HANDLE;
	if (err) {
		um_work_drop(w);
	} else if (um_capture_of(s)) {
		captured = 1;
		err = um_capture_add(s, w);
	} else if (w->kind == UM_WORK_WAIT && ((struct um_cuda_event *)w->event)->capture) {
		captured = 1;
		err = um_capture_wait(s, w->event);
		um_work_drop(w);
	} else {
		sim = s->sim;
		if (w->kind == UM_WORK_RECORD)
			um_capture_mark(w->event, NULL);
	}
	um_standin_unlock();
	return err || captured ? err : um_work_run(sim, w, wait);
}

int um_work_submit(void *stream, const struct um_work *work)
{
	return um_work_do(stream, work, 0);
}

/* --- creation, attributes --------------------------------------------------------------------------------------- */

static struct um_stream_handle *handle_new(void)
{
	struct um_stream_handle *s = NULL;

	um_standin_lock();
	if (destroyed.n)
		s = destroyed.at[--destroyed.n];
	um_standin_unlock();
	return s ? memset(s, 0, sizeof *s) : calloc(1, sizeof *s);
}

static void handle_free(struct um_stream_handle *s)
{
	um_standin_lock();
	if (!um_standin()->reuse || um_vec_push(&destroyed, s))
		free(s);
	um_standin_unlock();
}

static int create(void **out, unsigned flags, int priority)
{
	struct um_gpu *gpu = um_standin()->gpu;
	struct um_stream_handle *s;
	int err;

	if (!out || flags > UM_STREAM_NON_BLOCKING)
		return UM_CUDA_INVALID_VALUE;
	s = handle_new();
	if (!s)
		return UM_CUDA_NO_MEMORY;
	err = gpu->api->cudaStreamCreateWithFlags(gpu, &s->sim, flags);
	if (err) {
		handle_free(s);
		return err;
	}
	s->of = um_standin();
	s->flags = flags;
	s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	um_standin_lock();
	s->id = ++last_id;
	err = um_vec_push(&streams, s) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
	um_standin_unlock();
	if (err) {
		gpu->api->cudaStreamDestroy(gpu, s->sim);
		handle_free(s);
		return err;
	}
	*out = s;
	return UM_CUDA_OK;
}

UM_CALL(cuStreamCreate, void **stream, unsigned flags)
{
	int err = um_standin_enter(__func__);

	return err ? err : create(stream, flags, 0);
}

UM_CALL(cuStreamCreateWithPriority, void **stream, unsigned flags, int priority)
{
	int err = um_standin_enter(__func__);

	return err ? err : create(stream, flags, priority);
}

UM_CALL(cuStreamDestroy_v2, void *stream)
{
	int err = um_standin_enter(__func__);
	struct um_stream_handle *s = NULL;
	struct um_gpu *gpu;
	um_stream sim;

	if (err)
		return err;
	um_standin_lock();
	for (size_t i = 0; i < streams.n; i++)
		if (streams.at[i] == stream && streams.at[i]->sim != UM_THREAD_STREAM) {
			s = streams.at[i];
			streams.at[i] = streams.at[--streams.n];
			break;
		}
	if (s)
		um_capture_leave(s);
	um_standin_unlock();
	if (!s)
		return UM_CU_INVALID_HANDLE;
	sim = s->sim;
	gpu = s->of->gpu;
	um_vec_fini(&s->last);
	handle_free(s);
	return gpu->api->cudaStreamDestroy(gpu, sim);
}

/* One property of a stream. */
enum fact { FLAGS, PRIORITY, ID, DEVICE };

static int fact(void *stream, enum fact which, uint64_t *out)
{
	struct um_stream_handle *s;

	um_standin_lock();
	s = um_stream_find(stream);
	if (s)
		*out = which == FLAGS	 ? s->flags
		       : which == ID	 ? s->id
		       : which == DEVICE ? (uint64_t)s->of->ordinal
					 : (uint64_t)(int64_t)s->priority;
	um_standin_unlock();
	return s ? UM_CUDA_OK : UM_CU_INVALID_HANDLE;
}

UM_CALL(cuStreamGetFlags, void *stream, unsigned *flags)
{
	int err = um_standin_enter(__func__);
	uint64_t v;

	err = err ? err : !flags ? UM_CUDA_INVALID_VALUE : fact(stream, FLAGS, &v);
	if (!err)
		*flags = (unsigned)v;
	return err;
}
UM_FORWARD(cuStreamGetFlags_ptsz, (void *s, unsigned *flags), cuStreamGetFlags(um_ptsz(s), flags))

UM_CALL(cuStreamGetPriority, void *stream, int *priority)
{
	int err = um_standin_enter(__func__);
	uint64_t v;

	err = err ? err : !priority ? UM_CUDA_INVALID_VALUE : fact(stream, PRIORITY, &v);
	if (!err)
		*priority = (int)(int64_t)v;
	return err;
}
UM_FORWARD(cuStreamGetPriority_ptsz, (void *s, int *priority), cuStreamGetPriority(um_ptsz(s), priority))

UM_CALL(cuStreamGetId, void *stream, unsigned long long *id)
{
	int err = um_standin_enter(__func__);
	uint64_t v;

	err = err ? err : !id ? UM_CUDA_INVALID_VALUE : fact(stream, ID, &v);
	if (!err)
		*id = v;
	return err;
}
UM_FORWARD(cuStreamGetId_ptsz, (void *s, unsigned long long *id), cuStreamGetId(um_ptsz(s), id))

UM_CALL(cuStreamGetDevice, void *stream, int *device)
{
	int err = um_standin_enter(__func__);
	uint64_t v;

	err = err ? err : !device ? UM_CUDA_INVALID_VALUE : fact(stream, DEVICE, &v);
	if (!err)
		*device = (int)v;
	return err;
}
UM_FORWARD(cuStreamGetDevice_ptsz, (void *s, int *device), cuStreamGetDevice(um_ptsz(s), device))

int cuCtxGetCurrent(void **context);

UM_CALL(cuStreamGetCtx, void *stream, void **context)
{
	int err = um_standin_enter(__func__);
	uint64_t v;

	err = err ? err : !context ? UM_CUDA_INVALID_VALUE : fact(stream, ID, &v);
	return err ? err : cuCtxGetCurrent(context);
}
UM_FORWARD(cuStreamGetCtx_ptsz, (void *s, void **context), cuStreamGetCtx(um_ptsz(s), context))

UM_CALL(cuStreamGetCtx_v2, void *stream, void **context, void **green)
{
	if (green)
		*green = NULL;
	return cuStreamGetCtx(stream, context);
}
UM_FORWARD(cuStreamGetCtx_v2_ptsz, (void *s, void **context, void **green),
	   cuStreamGetCtx_v2(um_ptsz(s), context, green))

/* --- waiting ---------------------------------------------------------------------------------------------------- */

int um_stream_uncaptured(void *stream, um_stream *sim)
{
	struct um_stream_handle *s;
	int err;

	um_standin_lock();
	s = um_stream_find(stream);
	err = !s ? UM_CU_INVALID_HANDLE : um_capture_of(s) ? um_capture_break(s) : um_capture_guard(s);
	if (!err)
		*sim = s->sim;
	um_standin_unlock();
	return err;
}

UM_CALL(cuStreamQuery, void *stream)
{
	int err = um_standin_enter(__func__);
	um_stream sim;

	err = err ? err : um_stream_uncaptured(stream, &sim);
	return err ? err : um_sim_stream_query(um_standin()->gpu, sim);
}
UM_FORWARD(cuStreamQuery_ptsz, (void *s), cuStreamQuery(um_ptsz(s)))

UM_CALL(cuStreamSynchronize, void *stream)
{
	int err = um_standin_enter(__func__);
	um_stream sim;

	err = err ? err : um_stream_uncaptured(stream, &sim);
	if (!err)
		err = um_standin()->gpu->api->cudaStreamSynchronize(um_standin()->gpu, sim);
	return um_report_sync(err);
}
UM_FORWARD(cuStreamSynchronize_ptsz, (void *s), cuStreamSynchronize(um_ptsz(s)))

int um_context_sync(struct um_standin *s)
{
	int err;

	um_standin_lock();
	err = um_capture_any();
	um_standin_unlock();
	return err ? err : um_sim_sync(s->gpu);
}

/* --- host functions --------------------------------------------------------------------------------------------- */

UM_CALL(cuLaunchHostFunc, void *stream, void (*fn)(void *arg), void *arg)
{
	int err = um_standin_enter(__func__);

	if (err || !fn)
		return err ? err : UM_CUDA_INVALID_VALUE;
	return um_work_do(stream, &(struct um_work){.kind = UM_WORK_HOST, .host.fn = fn, .host.arg = arg}, 0);
}
UM_FORWARD(cuLaunchHostFunc_ptsz, (void *s, void (*fn)(void *), void *arg), cuLaunchHostFunc(um_ptsz(s), fn, arg))

struct callback {
	void *stream;
	void (*fn)(void *stream, int status, void *arg);
	void *arg;
};

static void callback_run(void *arg)
{
	struct callback *c = arg;

	c->fn(c->stream, UM_CUDA_OK, c->arg);
	free(c);
}

UM_CALL(cuStreamAddCallback, void *stream, void (*fn)(void *stream, int status, void *arg), void *arg, unsigned flags)
{
	int err = um_standin_enter(__func__);
	struct callback *c;
	um_stream sim;

	if (!err && (!fn || flags))
		err = UM_CUDA_INVALID_VALUE;
	err = err ? err : um_stream_uncaptured(stream, &sim); /* cannot be captured, because it runs once */
	if (err)
		return err;
	c = malloc(sizeof *c);
	if (!c)
		return UM_CUDA_NO_MEMORY;
	*c = (struct callback){stream, fn, arg};
	err = um_standin_call(sim, callback_run, c);
	if (err)
		free(c);
	return err;
}
UM_FORWARD(cuStreamAddCallback_ptsz, (void *s, void (*fn)(void *, int, void *), void *arg, unsigned flags),
	   cuStreamAddCallback(um_ptsz(s), fn, arg, flags))

/* --- values in memory ------------------------------------------------------------------------------------------- */

#define VALUE_NO_BARRIER 1u /* of writes: relaxed ordering has no effect */

static int value(void *stream, uint64_t addr, uint32_t v, unsigned flags, int write)
{
	struct um_gpu *gpu = um_standin()->gpu;
	um_stream sim;
	int err;

	if (!addr || (write ? flags & ~VALUE_NO_BARRIER : flags))
		return !addr || write ? UM_CUDA_INVALID_VALUE : um_standin_unsupported("cuStreamWaitValue: flags");
	err = um_stream_uncaptured(stream, &sim); /* not supported as a graph node */
	if (err)
		return err;
	if (write)
		return um_sim_write_value(gpu, sim, (uint32_t *)(uintptr_t)addr, v);
	return um_sim_wait_value(gpu, sim, (uint32_t *)(uintptr_t)addr, v);
}

UM_CALL(cuStreamWriteValue32_v2, void *stream, uint64_t addr, uint32_t v, unsigned flags)
{
	int err = um_standin_enter(__func__);

	return err ? err : value(stream, addr, v, flags, 1);
}
UM_FORWARD(cuStreamWriteValue32_v2_ptsz, (void *s, uint64_t addr, uint32_t v, unsigned flags),
	   cuStreamWriteValue32_v2(um_ptsz(s), addr, v, flags))

UM_CALL(cuStreamWaitValue32_v2, void *stream, uint64_t addr, uint32_t v, unsigned flags)
{
	int err = um_standin_enter(__func__);

	return err ? err : value(stream, addr, v, flags, 0);
}
UM_FORWARD(cuStreamWaitValue32_v2_ptsz, (void *s, uint64_t addr, uint32_t v, unsigned flags),
	   cuStreamWaitValue32_v2(um_ptsz(s), addr, v, flags))

const struct um_entry um_stream_entries[] = {
	{"cuStreamCreate", 2000, cuStreamCreate, NULL},
	{"cuStreamCreateWithPriority", 5050, cuStreamCreateWithPriority, NULL},
	{"cuStreamDestroy", 4000, cuStreamDestroy_v2, NULL},
	{"cuStreamGetFlags", 5050, cuStreamGetFlags, cuStreamGetFlags_ptsz},
	{"cuStreamGetPriority", 5050, cuStreamGetPriority, cuStreamGetPriority_ptsz},
	{"cuStreamGetId", 12000, cuStreamGetId, cuStreamGetId_ptsz},
	{"cuStreamGetDevice", 12080, cuStreamGetDevice, cuStreamGetDevice_ptsz},
	{"cuStreamGetCtx", 9020, cuStreamGetCtx, cuStreamGetCtx_ptsz},
	{"cuStreamGetCtx", 12050, cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz},
	{"cuStreamQuery", 2000, cuStreamQuery, cuStreamQuery_ptsz},
	{"cuStreamSynchronize", 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz},
	{"cuLaunchHostFunc", 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz},
	{"cuStreamAddCallback", 5000, cuStreamAddCallback, cuStreamAddCallback_ptsz},
	{"cuStreamWriteValue32", 8000, cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz},
	{"cuStreamWaitValue32", 8000, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz},
	{0},
};
