/* SPDX-License-Identifier: Apache-2.0
 *
 * event.c - cuEvent functions
 *
 * An event that was last recorded on a capturing stream represents a position in that capture and nothing else.
 */
#include "standin/report.h"
#include "standin/work.h"

static UM_VEC(struct um_cuda_event *) events;

#define FLAG_DISABLE_TIMING 2u
#define FLAGS_ALL 7u /* blocking synchronization, no timing, interprocess */

static struct um_cuda_event *dead;

void um_cuda_event_put(struct um_cuda_event *e)
{
	if (--e->refs)
		return;
	if (e->capture)
		um_capture_put(e->capture);
	um_vec_fini(&e->last);
	e->next = dead;
	dead = e;
}

void um_events_reap(void)
{
	struct um_cuda_event *e, *next;

	um_standin_lock();
	e = dead;
	dead = NULL;
	um_standin_unlock();
	for (; e; e = next) {
		next = e->next;
		e->of->gpu->api->cudaEventDestroy(e->of->gpu, e->sim);
		free(e);
	}
}

struct um_cuda_event *um_event_get(void *handle)
{
	struct um_cuda_event *e = NULL;

	um_standin_lock();
	for (size_t i = 0; i < events.n && !e; i++)
		if (events.at[i] == handle)
			e = events.at[i];
	if (e)
		e->refs++;
	um_standin_unlock();
	return e;
}

um_event_handle um_standin_event(void *handle)
{
	um_event_handle sim = NULL;

	um_standin_lock();
	for (size_t i = 0; i < events.n && !sim; i++)
		if (events.at[i] == handle)
			sim = events.at[i]->sim;
	um_standin_unlock();
	return sim;
}

static void event_done(struct um_cuda_event *e)
{
	um_standin_lock();
	um_cuda_event_put(e);
	um_standin_unlock();
}

UM_CALL(cuEventCreate, void **out, unsigned flags)
{
	int err = um_standin_enter(__func__);
	struct um_gpu *gpu;
	struct um_cuda_event *e;

	if (err || !out || flags & ~FLAGS_ALL)
		return err ? err : UM_CUDA_INVALID_VALUE;
	gpu = um_standin()->gpu;
	e = calloc(1, sizeof *e);
	if (!e)
		return UM_CUDA_NO_MEMORY;
	e->refs = 1;
	e->of = um_standin();
	err = gpu->api->cudaEventCreateWithFlags(gpu, &e->sim, flags & FLAG_DISABLE_TIMING);
	if (err) {
		free(e);
		return err;
	}
	um_standin_lock();
	err = um_vec_push(&events, e) ? UM_CUDA_NO_MEMORY : UM_CUDA_OK;
	if (err)
		um_cuda_event_put(e);
	um_standin_unlock();
	um_events_reap();
	if (!err)
		*out = e;
	return err;
}

UM_CALL(cuEventDestroy_v2, void *event)
{
	int err = um_standin_enter(__func__), found = 0;

	if (err)
		return err;
	um_standin_lock();
	for (size_t i = 0; i < events.n && !found; i++)
		if (events.at[i] == event) {
			events.at[i] = events.at[--events.n];
			found = 1;
		}
	if (found)
		um_cuda_event_put(event);
	um_standin_unlock();
	um_events_reap();
	return found ? UM_CUDA_OK : UM_CU_INVALID_HANDLE;
}

/* Only a stream of its own device records an event. */
static int is_recordable(void *stream, const struct um_cuda_event *e)
{
	struct um_stream_handle *s;

	um_standin_lock();
	s = um_stream_find(stream);
	um_standin_unlock();
	return !s || s->of == e->of; /* no such stream: another error */
}

static int put_on(void *stream, void *event, enum um_work_kind kind)
{
	struct um_cuda_event *e = um_event_get(event);

	if (!e)
		return UM_CU_INVALID_HANDLE;
	if (kind == UM_WORK_RECORD && !is_recordable(stream, e)) {
		event_done(e);
		return UM_CU_INVALID_HANDLE;
	}
	return um_work_do(stream, &(struct um_work){.kind = kind, .event = e}, 0);
}

UM_CALL(cuEventRecord, void *event, void *stream)
{
	int err = um_standin_enter(__func__);

	return err ? err : put_on(stream, event, UM_WORK_RECORD);
}
UM_FORWARD(cuEventRecord_ptsz, (void *event, void *s), cuEventRecord(event, um_ptsz(s)))

UM_CALL(cuEventRecordWithFlags, void *event, void *stream, unsigned flags)
{
	int err = um_standin_enter(__func__);

	if (!err && flags)
		err = flags == 1 ? um_standin_unsupported("cuEventRecordWithFlags: external") : UM_CUDA_INVALID_VALUE;
	return err ? err : put_on(stream, event, UM_WORK_RECORD);
}
UM_FORWARD(cuEventRecordWithFlags_ptsz, (void *event, void *s, unsigned flags),
	   cuEventRecordWithFlags(event, um_ptsz(s), flags))

UM_CALL(cuStreamWaitEvent, void *stream, void *event, unsigned flags)
{
	int err = um_standin_enter(__func__);

	if (!err && flags)
		err = flags == 1 ? um_standin_unsupported("cuStreamWaitEvent: external") : UM_CUDA_INVALID_VALUE;
	return err ? err : put_on(stream, event, UM_WORK_WAIT);
}
UM_FORWARD(cuStreamWaitEvent_ptsz, (void *s, void *event, unsigned flags), cuStreamWaitEvent(um_ptsz(s), event, flags))

/* Begins a call on an event outside of captures. */
static int ask(void *event, int (*call)(struct um_gpu *gpu, um_event_handle event))
{
	struct um_cuda_event *e = um_event_get(event);
	int err;

	if (!e)
		return UM_CU_INVALID_HANDLE;
	err = e->capture ? UM_CU_CAPTURED_EVENT : call(e->of->gpu, e->sim);
	event_done(e);
	return err;
}

UM_CALL(cuEventQuery, void *event)
{
	int err = um_standin_enter(__func__);

	return err ? err : ask(event, um_standin()->gpu->api->cudaEventQuery);
}

UM_CALL(cuEventSynchronize, void *event)
{
	int err = um_standin_enter(__func__);

	return err ? err : um_report_sync(ask(event, um_standin()->gpu->api->cudaEventSynchronize));
}

UM_CALL(cuEventElapsedTime, float *ms, void *start, void *end)
{
	int err = um_standin_enter(__func__);
	struct um_cuda_event *a, *b;

	if (err)
		return err;
	a = um_event_get(start);
	b = um_event_get(end);
	if (!a || !b)
		err = UM_CU_INVALID_HANDLE;
	else if (a->capture || b->capture)
		err = UM_CU_CAPTURED_EVENT;
	else if (a->of != b->of)
		err = UM_CU_INVALID_HANDLE;
	else
		err = a->of->gpu->api->cudaEventElapsedTime(a->of->gpu, ms, a->sim, b->sim);
	/* Never recorded or without times: an invalid handle. */
	if (err == UM_CUDA_INVALID_VALUE && ms)
		err = UM_CU_INVALID_HANDLE;
	if (a)
		event_done(a);
	if (b)
		event_done(b);
	return err;
}
UM_FORWARD(cuEventElapsedTime_v2, (float *ms, void *start, void *end), cuEventElapsedTime(ms, start, end))

const struct um_entry um_event_entries[] = {
	{"cuEventCreate", 2000, cuEventCreate, NULL},
	{"cuEventDestroy", 4000, cuEventDestroy_v2, NULL},
	{"cuEventRecord", 2000, cuEventRecord, cuEventRecord_ptsz},
	{"cuEventRecordWithFlags", 11010, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz},
	{"cuStreamWaitEvent", 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz},
	{"cuEventQuery", 2000, cuEventQuery, NULL},
	{"cuEventSynchronize", 2000, cuEventSynchronize, NULL},
	{"cuEventElapsedTime", 2000, cuEventElapsedTime, NULL},
	{"cuEventElapsedTime", 12080, cuEventElapsedTime_v2, NULL},
	{0},
};
