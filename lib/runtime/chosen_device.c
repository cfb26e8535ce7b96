/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/chosen_device.h"

#include "devices/devices.h"
#include "gpu/device.h"
#include "gpu/managed.h"
#include "gpu/null.h"
#include "io/profile_file.h"
#include "io/rank.h"
#include "replay/lanes.h"
#include "runtime/environment.h"
#include "runtime/host_memory.h"
#include "runtime/link_speed.h"

#include <errno.h>
#include <stdio.h>

/* Opens no device for hints. Allocations are managed memory if a driver gives it, otherwise host memory. */
static int open_none(struct um_chosen_device *d, int managed, const char *why)
{
	int err = managed ? um_managed_open(&d->gpu) : -ENODEV;

	if (err == -ENODEV)
		err = um_null_open(&d->gpu, UINT64_MAX / 2, 0);
	if (err)
		return err;
	d->gpu->caps.concurrent_managed = 0;
	snprintf(d->gpu->caps.name, sizeof d->gpu->caps.name, "none");
	snprintf(d->gpu->caps.why, sizeof d->gpu->caps.why, "%s", why);
	return 0;
}

static void log_node(const struct um_chosen_device *d, struct um_notices *notices)
{
	struct um_device_info info;

	um_device_info(d->gpu, &info);
	if (info.node_refused)
		um_notices_log(notices, UMADV_LOG_WARN,
			       "the driver refuses NUMA node %d: evicted data go to any node of the host",
			       info.node_refused - 1);
	else if (info.host.type == UM_LOC_HOST_NUMA)
		um_notices_log(notices, UMADV_LOG_INFO, "evicted data go to NUMA node %d of the host", info.host.id);
}

/* The CUDA device of the process. */
static int open_cuda(struct um_chosen_device *d, const struct umadv_options *o, struct um_notices *notices)
{
	struct um_device_options options = {.ordinal = -1,
					    .prefetches_evict = um_variable_off("UMADVISE_KERNEL_EVICTIONS"),
					    .host_node = o->host_node};
	char why[160] = "";
	int err = um_device_open(&d->gpu, &options, why, sizeof why);

	if (err == -ENODEV) {
		um_notices_log(notices, UMADV_LOG_WARN, "%s: no hints are issued", why);
		return open_none(d, 1, why);
	}
	if (err)
		return err;
	d->cuda = 1;
	log_node(d, notices);
	if (*d->gpu->caps.why)
		um_notices_log(notices, UMADV_LOG_WARN, "%s: %s", d->gpu->caps.name, d->gpu->caps.why);
	return 0;
}

/* Reads the requested profile. If UMADVISE_PROFILE names it and it cannot be read, it is ignored. */
static int named_profile(struct um_chosen_device *d, const char *name, struct um_notices *notices)
{
	struct um_diag diag;
	char line[800];
	int err;

	um_diag_init(&diag, name);
	err = um_profile_get(name, &d->profile, &diag);
	if (!err)
		return 0;
	um_diag_line(&diag, line, sizeof line);
	d->profile_ignored = err != -ENOMEM && um_variable_is("UMADVISE_PROFILE", name);
	um_notices_log(notices, d->profile_ignored ? UMADV_LOG_WARN : UMADV_LOG_ERROR, "profile %s", line);
	if (d->profile_ignored) {
		um_variable_ignored("UMADVISE_PROFILE", line, sizeof line);
		um_notices_log(notices, UMADV_LOG_WARN, "%s", line);
	}
	return err;
}

/* For a device without a profile: v100's, with a link of the speed that it has. */
static void assume(struct um_chosen_device *d, struct um_notices *notices)
{
	if (um_link_speed(d->gpu, &d->profile))
		um_notices_log(notices, UMADV_LOG_WARN,
			       "no profile for device '%s': v100's is used with a link of %.1f GB/s, as measured; "
			       "umadvise calibrate makes one",
			       d->gpu->caps.name, d->profile.h2d / 1e9);
	else
		um_notices_log(notices, UMADV_LOG_WARN,
			       "no profile for device '%s': v100's is used; umadvise calibrate makes one",
			       d->gpu->caps.name);
}

/* Chooses the profile: the requested one, the stand-in's, or the one for the device's name. */
static int find_profile(struct um_chosen_device *d, const char *name, struct um_notices *notices)
{
	const struct um_profile *assumed;
	int err = name ? named_profile(d, name, notices) : 0;

	if (name && !d->profile_ignored)
		return err;
	if (d->cuda && !um_device_standin_profile(d->gpu, &d->profile))
		return 0;
	if (d->cuda && (assumed = um_profile_of_device(d->gpu->caps.name))) {
		d->profile = *assumed;
		return 0;
	}
	d->profile = *um_profile_find("v100");
	if (d->cuda)
		assume(d, notices);
	return 0;
}

static int open_simulator(struct um_chosen_device *d, const struct umadv_options *o)
{
	struct um_simulator_options so = {.profile = &d->profile,
					  .capacity =
						  o->budget && o->budget < UM_BLOCK_BYTES ? UM_BLOCK_BYTES : o->budget,
					  .poison = o->check != UMADV_CHECK_OFF,
					  .check = o->check == UMADV_CHECK_ON};
	int err = um_simulator_find("sim")->open(&d->gpu, &so);

	d->simulated = !err;
	return err;
}

/* Unmanaged memory in whole blocks. */
static uint64_t taken_by(const struct um_chosen_device *d)
{
	return (d->unmanaged + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
}

/* What shared memory takes of the budget, in whole blocks. */
static uint64_t joint_part(const struct um_chosen_device *d)
{
	uint64_t half = d->budget / 2 / UM_BLOCK_BYTES * UM_BLOCK_BYTES;

	return d->joint < half ? (d->joint + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES : half;
}

uint64_t um_chosen_device_most(const struct um_chosen_device *d)
{
	return d->most + (d->limited ? taken_by(d) : 0);
}

/* What the options or the device allow; or the context's part of the device where that is less. */
static void find_budget(struct um_chosen_device *d)
{
	int part = d->granted < um_chosen_device_most(d);
	uint64_t taken = taken_by(d), whole = part ? d->granted : d->most, left = whole > taken ? whole - taken : 0;

	d->larger = d->limited || part;
	d->starved = part && left < UM_BLOCK_BYTES;
	if (!part && (d->limited || whole <= UM_BLOCK_BYTES))
		left = whole;
	else if (left < UM_BLOCK_BYTES)
		left = UM_BLOCK_BYTES;
	d->budget = left < d->most ? left : d->most;
	d->budget -= joint_part(d);
}

void um_chosen_device_grant(struct um_chosen_device *d, uint64_t bytes)
{
	int larger = d->larger;

	d->granted = bytes;
	find_budget(d);
	if (larger == d->larger || d->evict_rate <= 0)
		return;
	d->profile = d->unadjusted;
	um_chosen_device_evicts_at(d, d->evict_rate);
}

/* What is left to allocations of others, and to code. */
static uint64_t reserve(const struct um_chosen_device *d)
{
	return d->real || um_device_is_only_driver() ? d->gpu->caps.capacity / 20 : 0;
}

uint64_t um_chosen_device_whole(const struct um_chosen_device *d)
{
	uint64_t all = d->gpu->caps.capacity, usual = all - reserve(d), most = d->most < all ? d->most : all;

	return most > usual ? most : usual;
}

void um_chosen_device_shares(struct um_chosen_device *d, uint64_t bytes, uint64_t asked)
{
	if (asked && bytes > d->gpu->caps.capacity) /* others use the rest */
		d->limited = asked / UM_BLOCK_BYTES < bytes / UM_BLOCK_BYTES;
	if (!asked && d->most / UM_BLOCK_BYTES != bytes / UM_BLOCK_BYTES)
		d->most = bytes;
}

static void set_budget(struct um_chosen_device *d, struct um_options *options, struct um_notices *notices)
{
	uint64_t asked = options->pub.budget;

	d->most = asked ? asked : d->gpu->caps.capacity - reserve(d);
	d->limited = asked && asked / UM_BLOCK_BYTES < d->gpu->caps.capacity / UM_BLOCK_BYTES;
	d->granted = UINT64_MAX;
	find_budget(d);
	if (asked && asked < UM_BLOCK_BYTES) {
		options->strategy = UM_STRATEGY_ON_DEMAND;
		um_notices_log(notices, UMADV_LOG_WARN,
			       "no hints: the budget of %llu bytes is less than one block of %llu MiB",
			       (unsigned long long)asked, UM_BLOCK_BYTES >> 20);
	}
}

/* Ranks of a node get equal parts of what there is. */
static void set_host_budget(struct um_chosen_device *d, uint64_t asked)
{
	struct um_host_memory host;
	struct um_rank rank;

	if (asked && asked < UMADV_HOST_MEMORY_DETECT) {
		d->host_budget = asked;
		snprintf(d->host_limit, sizeof d->host_limit, "as stated");
	} else if (asked == UMADV_HOST_MEMORY_DETECT || (!asked && d->real)) {
		um_host_memory_find("", &host);
		um_rank_find(&rank);
		if (host.bytes < UINT64_MAX)
			d->host_budget = host.bytes / rank.local_size + 1; /* not 0 */
		snprintf(d->host_limit, sizeof d->host_limit, "%s", host.limit);
		if (rank.local_size > 1)
			snprintf(d->host_limit, sizeof d->host_limit, "1/%lu of %s", rank.local_size, host.limit);
	}
}

static int watch_host(struct um_chosen_device *d)
{
	uint64_t most = d->host_budget / UM_BLOCK_BYTES;

	if (!d->host_budget)
		return 0;
	d->on_host = calloc(1, sizeof *d->on_host);
	return d->on_host ? um_block_lru_init(d->on_host, most ? most : 1) : -ENOMEM;
}

void um_chosen_device_evicts_at(struct um_chosen_device *d, double rate)
{
	struct um_profile *p = &d->profile;
	double copies = p->d2h * p->eta, call;
	unsigned workers = d->evicters ? UM_LANES_OUT_MOST : 1; /* of a plan, whatever the CPUs */

	p->serial_host = !d->evicters;
	if (rate <= 0 || rate >= copies)
		return;
	if (d->larger) {
		p->d2h = rate / p->eta;
		p->c_pf_cpu = 0; /* is part of the rate */
	} else if (!p->measured || d->evicters) { /* a measured profile has the cost of prefetches */
		call = (double)UM_BLOCK_BYTES * 1e9 * (workers / rate - 1 / copies) - (double)(p->c_api + p->c_pf);
		p->c_pf_cpu = call > 0 ? (uint64_t)call : 0;
	}
}

void um_chosen_device_take(struct um_chosen_device *d, int64_t bytes)
{
	d->unmanaged += (uint64_t)bytes;
	find_budget(d);
}

void um_chosen_device_join(struct um_chosen_device *d, uint64_t bytes)
{
	d->joint = bytes;
	find_budget(d);
}

static void measure_evictions(struct um_chosen_device *d, struct um_notices *notices)
{
	double rate;

	d->evicters = d->gpu->api->evict ? um_link_evicters() : 0;
	rate = um_evict_speed(d->gpu, d->evicters, &d->evicted);
	d->unadjusted = d->profile;
	d->evict_rate = rate;
	um_chosen_device_evicts_at(d, rate);
	um_notices_log(notices, UMADV_LOG_INFO, "evictions reach %.1f GB/s%s", rate / 1e9,
		       d->evicters ? ", by requests to the kernel module" : "");
}

int um_chosen_device_open(struct um_chosen_device *d, struct um_options *options, struct um_gpu *gpu,
			  const struct um_profile *profile, struct um_notices *notices)
{
	const struct umadv_options *o = &options->pub;
	int err = 0;

	d->gpu = gpu;
	d->simulated = gpu && gpu->caps.virtual_time && gpu->api->simulation;
	if (!gpu && o->device == UMADV_DEVICE_AUTO)
		err = open_cuda(d, o, notices);
	else if (!gpu && o->device == UMADV_DEVICE_NONE)
		err = open_none(d, 0, "the option device is none");
	if (profile)
		d->profile = *profile;
	else if (!err)
		err = find_profile(d, o->profile, notices);
	if (!err && !d->gpu)
		err = open_simulator(d, o);
	if (err)
		return err;
	if (gpu || d->cuda) /* a simulated device of our own has its link alone */
		d->profile = um_profile_share(&d->profile);
	d->real = d->gpu->caps.concurrent_managed && !d->gpu->caps.virtual_time;
	set_budget(d, options, notices);
	set_host_budget(d, o->host_memory);
	err = watch_host(d);
	if (err)
		return err;
	if (d->real && d->cuda && !d->gpu->api->now) /* the stand-in's costs are known */
		measure_evictions(d, notices);
	return 0;
}

void um_chosen_device_close(struct um_chosen_device *d)
{
	if (d->on_host)
		um_block_lru_fini(d->on_host);
	free(d->on_host);
	d->on_host = NULL;
	if (d->evicted)
		d->gpu->api->cudaFree(d->gpu, d->evicted);
	if (d->gpu)
		d->gpu->api->close(d->gpu);
	d->gpu = NULL;
}

int um_chosen_device_lost(const struct um_chosen_device *d)
{
	return d->cuda ? um_device_lost(d->gpu) : 0;
}
