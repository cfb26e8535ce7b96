/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "base/size.h"
#include "plan/planner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define getenv secure_getenv /* the user of a set-uid program must not choose its files */


static const char *const strategies[] = {"lookahead", "on-demand", "prefetch-on-use"};
/* In lib/peers: no program runs under them. */
static const char *const compared[] = {"capuchin", "deepum", "g10", "swapadvisor", "vdnn", "vdnn-all", "vdnn-conv"};
static const char *const devices[] = {"auto", "none", "sim"};
static const char *const levels[] = {"error", "warn", "info", "debug"};
static const char *const ways[] = {"auto", "home", "driver"};
static const char *const marks[] = {"all", "iterations", "off"};

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

static int look_up(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

const char *um_strategy_name(enum um_strategy s)
{
	return s < UM_STRATEGY_SCHEME ? strategies[s] : um_plan_scheme_name((unsigned)(s - UM_STRATEGY_SCHEME));
}

int um_strategy_parse(const char *name)
{
	int scheme = um_plan_scheme_parse(name);

	if (scheme >= 0)
		return UM_STRATEGY_SCHEME + scheme;
	return look_up(strategies, COUNT(strategies), name);
}

int um_evict_parse(const char *name)
{
	return look_up(ways, COUNT(ways), name);
}

int um_strategy_plans(enum um_strategy s)
{
	return s == UM_STRATEGY_LOOKAHEAD || s >= UM_STRATEGY_SCHEME;
}

static int read_ms(const char *text, unsigned *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > 3600000)
		return -EINVAL;
	*out = (unsigned)n;
	return 0;
}

/* The environment, into the public struct. What makes no sense there is noted in `problem` (which may be NULL). */
static void from_environment(struct umadv_options *o, char *problem, size_t size)
{
	const char *v;
	int k;

	o->strategy = getenv("UMADVISE_STRATEGY");
	o->profile = getenv("UMADVISE_PROFILE");
	o->plan = getenv("UMADVISE_PLAN");
	o->trace = getenv("UMADVISE_TRACE");
	o->report = getenv("UMADVISE_REPORT");
	if ((v = getenv("UMADVISE_DEVICE"))) {
		if ((k = look_up(devices, COUNT(devices), v)) >= 0)
			o->device = (enum umadv_device)k;
		else if (problem && !*problem)
			snprintf(problem, size, "UMADVISE_DEVICE=%.64s: expected auto, none or sim", v);
	}
	if ((v = getenv("UMADVISE_LOG"))) {
		if ((k = look_up(levels, COUNT(levels), v)) >= 0)
			o->log_level = (enum umadv_log_level)k;
		else if (problem && !*problem)
			snprintf(problem, size, "UMADVISE_LOG=%.64s: expected error, warn, info or debug", v);
	}
	if ((v = getenv("UMADVISE_BUDGET")) && um_size_parse(v, &o->budget) && problem && !*problem)
		snprintf(problem, size, "UMADVISE_BUDGET=%.64s: expected bytes, or a number with KiB, MiB or GiB", v);
	if ((v = getenv("UMADVISE_PLAN_TIME")) && read_ms(v, &o->plan_ms) && problem && !*problem)
		snprintf(problem, size, "UMADVISE_PLAN_TIME=%.64s: expected milliseconds, at most 3600000", v);
	if ((v = getenv("UMADVISE_REPORT_SIZE")) && um_size_parse(v, &o->report_bytes) && problem && !*problem)
		snprintf(problem, size, "UMADVISE_REPORT_SIZE=%.64s: expected bytes, or a number with KiB, MiB or GiB",
			 v);
	if ((v = getenv("UMADVISE_NVTX"))) {
		if ((k = look_up(marks, COUNT(marks), v)) >= 0)
			o->nvtx = (enum umadv_nvtx)k;
		else if (problem && !*problem)
			snprintf(problem, size, "UMADVISE_NVTX=%.64s: expected all, iterations or off", v);
	}
	if ((v = getenv("UMADVISE_COUNTERS"))) {
		o->counters = strcmp(v, "on") == 0;
		if (!o->counters && strcmp(v, "off") != 0 && problem && !*problem)
			snprintf(problem, size, "UMADVISE_COUNTERS=%.64s: expected on or off", v);
	}
	if ((v = getenv("UMADVISE_EVICT"))) {
		if ((k = um_evict_parse(v)) >= 0)
			o->evict = (enum umadv_evict)k;
		else if (problem && !*problem)
			snprintf(problem, size, "UMADVISE_EVICT=%.64s: expected auto, home or driver", v);
	}
	if ((v = getenv("UMADVISE_CHECK")))
		o->check = strcmp(v, "0") != 0;
	if ((v = getenv("UMADVISE_DISABLE")) && strcmp(v, "0") != 0) {
		o->device = UMADV_DEVICE_NONE;
		o->strategy = "on-demand";
	}
}

static void defaults(struct umadv_options *o, char *problem, size_t size)
{
	memset(o, 0, sizeof *o);
	o->struct_size = sizeof *o;
	o->log_level = UMADV_LOG_WARN;
	from_environment(o, problem, size);
}

void umadv_options_init(struct umadv_options *options)
{
	defaults(options, NULL, 0);
}

static int copy_string(struct um_options *o, unsigned i, const char **s)
{
	if (!*s || !**s) {
		*s = NULL;
		return 0;
	}
	o->strings[i] = strdup(*s);
	*s = o->strings[i];
	return *s ? 0 : -ENOMEM;
}

int um_options_take(struct um_options *o, const struct umadv_options *given)
{
	int err, k;

	memset(o, 0, sizeof *o);
	defaults(&o->pub, given ? NULL : o->problem, sizeof o->problem);
	if (given) {
		if (given->struct_size < offsetof(struct umadv_options, budget) || given->struct_size > 4096) {
			snprintf(o->problem, sizeof o->problem,
				 "options: struct_size %zu: call umadv_options_init first", given->struct_size);
			return -EINVAL;
		}
		size_t n = given->struct_size < sizeof o->pub ? given->struct_size : sizeof o->pub;

		memcpy(&o->pub, given, n);
		o->pub.struct_size = sizeof o->pub;
	}
	err = copy_string(o, 0, &o->pub.strategy);
	if (!err)
		err = copy_string(o, 1, &o->pub.profile);
	if (!err)
		err = copy_string(o, 2, &o->pub.plan);
	if (!err)
		err = copy_string(o, 3, &o->pub.trace);
	if (!err)
		err = copy_string(o, 4, &o->pub.report);
	if (err)
		return err;
	if (o->pub.strategy) {
		k = um_strategy_parse(o->pub.strategy);
		if (k < 0 && !*o->problem && look_up(compared, COUNT(compared), o->pub.strategy) >= 0)
			snprintf(o->problem, sizeof o->problem,
				 "strategy '%s' is there to be compared with, in umadvise simulate only: no program "
				 "runs under it",
				 o->pub.strategy);
		if (k < 0 && !*o->problem)
			snprintf(o->problem, sizeof o->problem,
				 "strategy '%.48s': expected lookahead, on-demand, prefetch-on-use or another of "
				 "umadvise(7)",
				 o->pub.strategy);
		o->strategy = k < 0 ? UM_STRATEGY_LOOKAHEAD : (enum um_strategy)k;
	}
	if ((unsigned)o->pub.device > UMADV_DEVICE_SIM && !*o->problem)
		snprintf(o->problem, sizeof o->problem, "device %d: expected UMADV_DEVICE_AUTO, _NONE or _SIM",
			 (int)o->pub.device);
	if ((unsigned)o->pub.nvtx > UMADV_NVTX_OFF && !*o->problem)
		snprintf(o->problem, sizeof o->problem, "nvtx %d: expected UMADV_NVTX_ALL, _ITERATIONS or _OFF",
			 (int)o->pub.nvtx);
	if ((unsigned)o->pub.evict > UMADV_EVICT_DRIVER && !*o->problem)
		snprintf(o->problem, sizeof o->problem, "evict %d: expected UMADV_EVICT_AUTO, _HOME or _DRIVER",
			 (int)o->pub.evict);
	return *o->problem ? -EINVAL : 0;
}

void um_options_fini(struct um_options *o)
{
	for (size_t i = 0; i < sizeof o->strings / sizeof *o->strings; i++)
		free(o->strings[i]);
	memset(o->strings, 0, sizeof o->strings);
}
