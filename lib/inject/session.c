/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/session.h"

#include "inject/driver.h"
#include "inject/settings.h"

#include "gpu/device.h"
#include "runtime/context.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NON_BLOCKING 1u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards opening and closing */
static struct um_injected devices[UM_INJECT_DEVICES];
static atomic_int n_open;
struct um_session_state um_session_state;

/* --- contexts ----------------------------------------------------------------------------------------------------- */

/* The plan of the first device that has one. */
static void save_plan(const char *path)
{
	for (int i = 0; path && i < UM_INJECT_DEVICES; i++)
		if (devices[i].adv && !umadv_save_plan(devices[i].adv, path))
			return;
}

static void at_exit(void)
{
	if (atomic_exchange(&um_session_state.over, 1))
		return;
	save_plan(um_settings_plan());
	um_summary_write(devices, UM_INJECT_DEVICES, !atomic_load(&um_session_state.pressed));
}

static void in_child(void)
{
	um_ranges_end();
	atomic_store(&um_session_state.over, 1);
}

/* Does the program announce its ops by itself? */
static int has_own_api(void)
{
	return dlopen("libumadvise.so.0", RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static void find_standin(struct um_injected *d)
{
	void *table = NULL;
	int status = 0;

	if (um_real.cuGetProcAddress_v2(UM_STANDIN_NAME, &table, 13000, 0, &status) || !table)
		return;
	d->standin = table;
	if (d->standin->version != UM_STANDIN_VERSION || d->standin->size != sizeof *d->standin)
		d->standin = NULL;
}

static void begin_passive(struct um_injected *d)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	umadv_stats_get(d->adv, &stats);
	atomic_store(&d->budget, stats.budget_bytes);
	d->adv->sharing.passive = 1;
	d->adv->joint.somewhere = 1;
	if (um_settings_recorded())
		atomic_store(&um_session_state.pressed, 1);
	if (!um_real.cuStreamCreate || um_real.cuStreamCreate(&d->stream, NON_BLOCKING))
		d->stream = NULL;
}

/* Keeps the context, or the reason why there is none. */
static void take(struct um_injected *d, struct umadv *adv)
{
	struct umadv_caps caps = {.struct_size = sizeof caps};

	umadv_caps_get(adv, &caps);
	if (!caps.managed) {
		memcpy(d->why, caps.why, sizeof d->why);
		umadv_close(adv);
		return;
	}
	find_standin(d);
	um_context_know_stream_ends(adv); /* hook_stream.c */
	d->adv = adv;
	begin_passive(d);
	atomic_store(&um_session_state.only, d);
	if (atomic_fetch_add(&n_open, 1))
		atomic_fetch_or(&um_session_state.asks, UM_SESSION_SEVERAL);
	atomic_store_explicit(&d->open, 1, memory_order_release);
}

static void open_context(struct um_injected *d)
{
	size_t free_bytes = 0, total = 0;
	struct umadv *adv;
	int err;

	if (has_own_api()) {
		snprintf(d->why, sizeof d->why, "the program uses libumadvise by itself");
		return;
	}
	if (um_real.cuMemGetInfo_v2 && um_real.cuMemGetInfo_v2(&free_bytes, &total))
		free_bytes = total = 0;
	d->free_bytes = free_bytes;
	d->total_bytes = total;
	d->host_bytes = um_settings_host_bytes();
	if (um_real.cuCtxGetCurrent && um_real.cuCtxGetCurrent(&d->context))
		d->context = NULL;
	um_device_only_driver();
	err = umadv_open(&adv, NULL);
	if (err)
		snprintf(d->why, sizeof d->why, "no context: %s", umadv_strerror(err));
	else
		take(d, adv);
}

struct um_injected *um_session_device(void)
{
	static atomic_int watched;
	struct um_injected *d;
	int ordinal;

	if (!um_session_active() || !um_driver_ready() || um_real.cuCtxGetDevice(&ordinal) || ordinal < 0 ||
	    ordinal >= UM_INJECT_DEVICES)
		return NULL;
	d = &devices[ordinal];
	if (atomic_load_explicit(&d->open, memory_order_acquire))
		return d;
	pthread_mutex_lock(&lock);
	if (!d->tried && !atomic_load(&um_session_state.captures)) {
		d->tried = 1;
		d->ordinal = ordinal;
		open_context(d);
		if (!atomic_exchange(&watched, 1)) {
			pthread_atfork(NULL, NULL, in_child);
			atexit(at_exit); /* after the context's own: it runs first */
		}
	}
	pthread_mutex_unlock(&lock);
	return d->adv ? d : NULL;
}

struct um_injected *um_session_at(int i)
{
	return &devices[i];
}

void um_session_reset(int ordinal, const void *context)
{
	for (int i = 0; i < UM_INJECT_DEVICES; i++) {
		struct um_injected *d = &devices[i];
		struct umadv *adv;

		if (!d->tried || (ordinal >= 0 ? i != ordinal : !context || d->context != context))
			continue;
		um_ranges_drop(d);
		pthread_mutex_lock(&lock);
		adv = d->adv;
		atomic_fetch_sub(&n_open, adv != NULL);
		atomic_store(&d->open, 0);
		d->adv = NULL;
		d->stream = d->mark = NULL;
		d->tried = 0;
		atomic_fetch_sub(&um_inject_counts.live, atomic_load(&d->live));
		atomic_fetch_sub(&um_inject_counts.live_seen, atomic_load(&d->live_managed));
		atomic_store(&d->live, 0);
		atomic_store(&d->live_managed, 0);
		atomic_store(&d->small, 0);
		pthread_mutex_unlock(&lock);
		if (adv)
			um_summary_keep(adv);
		umadv_close(adv);
	}
}

/* --- allocations -------------------------------------------------------------------------------------------------- */

struct um_injected *um_session_place(uint64_t bytes, const void *caller)
{
	struct um_injected *d;

	if (bytes < um_settings_least() || !um_session_active())
		return NULL;
	if (atomic_load(&um_inject_reasons) & UM_REASON_IPC)
		return NULL;
	d = um_session_device();
	if (!d || !um_settings_excludes(caller))
		return d;
	atomic_fetch_or(&um_inject_reasons, UM_REASON_LIBRARY);
	return NULL;
}

int um_session_full(struct um_injected *d, uint64_t bytes)
{
	uint64_t most = d->total_bytes + d->host_bytes;

	if (!d->host_bytes || (bytes <= most && atomic_load(&d->live) <= most - bytes))
		return 0;
	atomic_fetch_add(&um_inject_counts.refused_host, 1);
	return 1;
}

int um_session_take_small(struct um_injected *d, uint64_t bytes)
{
	uint64_t most = atomic_load(&d->budget) / UM_SESSION_SMALL_PART;

	if (!um_settings_keeps_small())
		return 0;
	if (atomic_fetch_add(&d->small, bytes) + bytes <= most)
		return 1;
	um_session_give_small(d, bytes);
	return 0;
}

void um_session_give_small(struct um_injected *d, uint64_t bytes)
{
	atomic_fetch_sub(&d->small, bytes);
}

static void count(struct um_injected *d, uint64_t bytes, int seen)
{
	struct um_inject_counts *c = &um_inject_counts;
	uint64_t live = atomic_fetch_add(&c->live, bytes) + bytes;

	if (d)
		atomic_fetch_add(&d->live, bytes);
	if (seen)
		atomic_fetch_add(&c->live_seen, bytes);
	if (d && seen)
		atomic_fetch_add(&d->live_managed, bytes);
	if (d && atomic_load(&d->live) > atomic_load(&d->budget))
		atomic_store(&um_session_state.pressed, 1);
	if (live > atomic_load(&c->peak)) { /* exact for one thread; threads at once may miss some bytes */
		atomic_store(&c->peak, live);
		atomic_store(&c->peak_seen, atomic_load(&c->live_seen));
	}
}

int um_session_add(const struct um_range *r)
{
	int err = um_ranges_add(r);

	if (!err)
		count(r->device, r->bytes, r->kind != UM_RANGE_DEVICE);
	return err;
}

void um_session_removed(const struct um_range *r)
{
	count(r->device, -r->bytes, r->kind != UM_RANGE_DEVICE);
	if (r->kind == UM_RANGE_SMALL && r->device)
		um_session_give_small(r->device, r->bytes);
}

void um_session_unseen(int64_t bytes, enum um_inject_reason reason)
{
	atomic_fetch_or(&um_inject_reasons, (unsigned)reason);
	count(NULL, (uint64_t)bytes, 0);
}

void um_session_populate(struct um_injected *d, uint64_t at, uint64_t bytes)
{
	if (d->stream && !um_session_pressed() && !atomic_load(&um_session_state.captures) &&
	    um_real.cuMemPrefetchAsync_v2)
		um_real.cuMemPrefetchAsync_v2(at, bytes, um_on_device(d->ordinal), 0, d->stream);
}

void um_session_populate_new(struct um_injected *d, uint64_t at)
{
	uint64_t from, bytes;

	if (!d->stream || um_session_pressed())
		return;
	um_context_lock(d->adv);
	bytes = um_context_new_memory(d->adv, (void *)(uintptr_t)at, &from);
	um_context_unlock(d->adv);
	if (bytes)
		um_session_populate(d, from, bytes);
}

/* --- memory of several devices ------------------------------------------------------------------------------------ */

#define SHARED 1024u

static _Atomic uint64_t shared[SHARED]; /* what devices share, of late: serial of the allocation, with the device */

void um_session_ask(void)
{
	int n = 0;

	if (!(um_session_asks() & UM_SESSION_ANYWHERE) && um_real.cuDeviceGetCount && !um_real.cuDeviceGetCount(&n) &&
	    n > 1)
		atomic_fetch_or(&um_session_state.asks, UM_SESSION_ANYWHERE);
}

/* Memory that was device memory is not accessed in place by another device. */
static int share_range(struct um_injected *d, const struct um_range_seen *r)
{
	uint64_t key = (r->serial & ~UM_RANGE_NAMED) * UM_INJECT_DEVICES + (uint64_t)d->ordinal;
	_Atomic uint64_t *known = &shared[key * 0x9e3779b97f4a7c15u >> 54];
	int err;

	if ((r->device & UM_RANGE_KIND_BITS) != UM_RANGE_ADOPTED || r->device & UM_RANGE_CONVERTED_BIT || !d->adv)
		return 0;
	if (atomic_load_explicit(known, memory_order_relaxed) == key)
		return 1;
	err = umadv_adopt(d->adv, (void *)(uintptr_t)r->at, r->bytes, NULL, UMADV_OTHER);
	if (err && err != -EEXIST)
		return 0;
	atomic_store(&um_session_state.pressed, 1); /* it leaves a device also while all fits */
	atomic_store_explicit(known, key, memory_order_relaxed);
	return 1;
}

int um_inject_use_elsewhere(struct um_inject_uses *u, const struct um_range_seen *r)
{
	if (u->device)
		return u->shares && share_range(u->device, r);
	u->device = um_range_device_of(r);
	return 1;
}

void um_session_end_shared(const struct um_range *r)
{
	if (!um_session_asks())
		return;
	for (int i = 0; i < UM_INJECT_DEVICES; i++)
		if (devices[i].adv && &devices[i] != r->device)
			umadv_disown(devices[i].adv, (void *)(uintptr_t)r->at, r->bytes);
}

static void share(struct um_injected *d)
{
	um_context_lock(d->adv);
	if (um_sharing_has_news(&d->adv->sharing))
		um_context_share(d->adv);
	atomic_store(&d->budget, d->adv->device.starved ? 0 : d->adv->device.budget);
	um_context_unlock(d->adv);
	if (atomic_load(&d->live) > atomic_load(&d->budget))
		atomic_store(&um_session_state.pressed, 1);
}

void um_session_share(void)
{
	for (int i = 0; i < UM_INJECT_DEVICES; i++)
		if (devices[i].adv && atomic_load(&devices[i].live))
			share(&devices[i]);
}

int um_session_plans(struct um_injected *d)
{
	int plans;

	if (!um_session_pressed() || !um_session_active() || !d->adv)
		return 0;
	um_context_lock(d->adv);
	plans = um_replan_hints(&d->adv->replan);
	um_context_unlock(d->adv);
	return plans;
}

int um_session_helped(const struct um_injected *d)
{
	return um_session_pressed() && um_session_active() && d->adv && d->adv->replan.executor;
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

void um_session_capture(int change)
{
	atomic_fetch_add(&um_session_state.captures, change);
}

int um_session_asks_capture(void *stream)
{
	int status = 0;

	return um_real.cuStreamIsCapturing(stream, &status) || status;
}

void um_session_op(struct um_injected *d, void *stream, const char *name, const struct umadv_use *uses, unsigned n)
{
	if (!um_session_active() || !d->adv)
		return;
	umadv_op(d->adv, um_session_stream(stream), name, uses, n);
	if (d->standin)
		d->standin->announce(stream, NULL);
}

static void show(const struct um_inject_uses *u, void *stream)
{
	struct um_touch touch[UM_INJECT_USES];
	struct um_announcement what = {.touch = touch, .n = u->n};
	uint64_t bytes = 0;

	if (!u->own || !u->device->standin)
		return;
	for (unsigned i = 0; i < u->n; i++) {
		touch[i] = (struct um_touch){u->at[i].ptr, u->end[i] - (uintptr_t)u->at[i].ptr, 0,
					     (enum um_access)u->at[i].access};
		bytes += touch[i].bytes;
	}
	what.ns = um_profile_op_ns(u->device->standin->profile(), &(struct um_cost){0}, (double)bytes);
	u->device->standin->announce(stream, &what);
}

void um_session_launch(const struct um_inject_uses *u, void *stream, const char *name)
{
	if (!um_session_pressed())
		show(u, stream);
	else if (!u->own)
		um_session_op(u->device, stream, name, u->at, u->n);
	else if (um_session_active() && u->device->adv)
		umadv_op(u->device->adv, um_session_stream(stream), name, u->at, u->n);
}

void um_session_launched(const struct um_inject_uses *u, void *stream)
{
	if (u->own && u->device->standin)
		u->device->standin->announce(stream, NULL);
}

struct order {
	uint64_t serial;
	unsigned from;
};

static int by_serial(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	return (x->serial > y->serial) - (x->serial < y->serial);
}

void um_inject_uses_sort(struct um_inject_uses *u)
{
	struct order order[UM_INJECT_USES];
	struct umadv_use at[UM_INJECT_USES];
	uint64_t end[UM_INJECT_USES];
	unsigned n = u->n;

	for (unsigned i = 0; i < n; i++)
		order[i] = (struct order){u->serial[i], i};
	qsort(order, n, sizeof *order, by_serial);
	memcpy(at, u->at, n * sizeof *at);
	memcpy(end, u->end, n * sizeof *end);
	for (unsigned i = 0; i < n; i++) {
		u->serial[i] = order[i].serial;
		u->at[i] = at[order[i].from];
		u->end[i] = end[order[i].from];
	}
}

int um_inject_uses_have(const struct um_inject_uses *u, unsigned n, uint64_t addr)
{
	const struct um_range_seen *r = n ? um_ranges_see(addr) : NULL;
	unsigned i = 0;

	while (r && i < n && u->end[i] != r->at + r->bytes)
		i++;
	return r && i < n;
}

void um_inject_use_range(struct um_inject_uses *u, uint64_t addr, uint64_t bytes, enum umadv_access access)
{
	struct um_range r;

	if (!bytes || !um_ranges_find(addr, &r) || !um_range_is_managed(r.kind) ||
	    (u->device && u->device != r.device) || bytes > r.at + r.bytes - addr || u->n == UM_INJECT_USES)
		return;
	u->device = r.device;
	u->end[u->n] = r.at + r.bytes;
	u->at[u->n++] = umadv_use_((const void *)(uintptr_t)addr, bytes, 0, access);
}
