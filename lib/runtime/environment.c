/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/environment.h"

#include "runtime/strategy.h"

#include "arbiter/divide.h"
#include "base/near.h"
#include "base/size.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "UMADVISE_"
#define DRYRUN PREFIX "DRYRUN_"
#define SMALLEST_BUDGET (2u << 20)
#define MOST_NODE 1023 /* of Linux */

static const char *const devices[] = {"auto", "none", "sim"};
static const char *const levels[] = {"error", "warn", "info", "debug"};
static const char *const marks[] = {"all", "iterations", "off"};
static const char *const threads[] = {"auto", "on", "off"};
static const char *const referees[] = {"on", "off"};
static const char *const checks[] = {"off", "on", "discards"};
static const char *const switches[] = {"0", "1", "off", "on", "no", "yes", "false", "true"};

#define COUNT(a) (unsigned)(sizeof(a) / sizeof *(a))

/* --- what is accepted --------------------------------------------------------------------------------------------- */

static int find_word(const char *const *words, unsigned n, const char *text)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(words[i], text) == 0)
			return (int)i;
	return -EINVAL;
}

static void put(const struct um_variable *v, struct umadv_options *o, const void *value, size_t size)
{
	memcpy((char *)o + v->at, value, size);
}

static int parse_word(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	int k = find_word(v->words, v->n_words, text);

	if (k >= 0)
		put(v, o, &k, sizeof k);
	return k < 0 ? k : 0;
}

static int parse_switch(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	int k = find_word(switches, COUNT(switches), text), on = k & 1;

	if (k >= 0)
		put(v, o, &on, sizeof on);
	return k < 0 ? k : 0;
}

static int parse_check(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	return parse_word(v, text, o) ? parse_switch(v, text, o) : 0;
}

static int parse_disable(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	int k = find_word(switches, COUNT(switches), text);

	(void)v;
	if (k >= 0 && k & 1)
		o->strategy = "on-demand";
	return k < 0 ? k : 0;
}

static int parse_text(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	put(v, o, &text, sizeof text);
	return 0;
}

/* Of the process, not of a context: gpu/nvtx_listen.c reads it. */
static int parse_other(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	(void)v;
	(void)text;
	(void)o;
	return 0;
}

/* These are of the preloaded library (inject/settings.c). */
static int parse_host(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	uint64_t bytes;

	(void)v;
	(void)o;
	return um_size_parse(text, &bytes) ? -EINVAL : 0;
}

static int parse_managed(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	return strcmp(text, "all") && strcmp(text, "none") ? parse_host(v, text, o) : 0;
}

static int parse_other_switch(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	(void)v;
	(void)o;
	return find_word(switches, COUNT(switches), text) < 0 ? -EINVAL : 0;
}

static int parse_const(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	return strcmp(text, "names") ? parse_other_switch(v, text, o) : 0;
}

static int parse_graphs(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	(void)v;
	(void)o;
	return strcmp(text, "whole") && strcmp(text, "nodes") ? -EINVAL : 0;
}

static int parse_strategy(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	return um_strategy_parse(text) < 0 ? -EINVAL : parse_text(v, text, o);
}

static int parse_size(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	uint64_t bytes;

	if (um_size_parse(text, &bytes))
		return -EINVAL;
	put(v, o, &bytes, sizeof bytes);
	return 0;
}

static int parse_budget(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	uint64_t bytes;

	if (um_size_parse(text, &bytes) || (bytes && bytes < SMALLEST_BUDGET))
		return -EINVAL;
	put(v, o, &bytes, sizeof bytes);
	return 0;
}

static int parse_host_memory(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	uint64_t bytes = UMADV_HOST_MEMORY_NONE;

	if (strcmp(text, "detect") == 0)
		bytes = UMADV_HOST_MEMORY_DETECT;
	else if (strcmp(text, "none") != 0 && um_size_parse(text, &bytes))
		return -EINVAL;
	put(v, o, &bytes, sizeof bytes);
	return 0;
}

/* A number up to `most`, and nothing else; otherwise -EINVAL. */
static int parse_number(const char *text, int most)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *text < '0' || *text > '9' || *end || n > (unsigned long)most ? -EINVAL : (int)n;
}

static int parse_ms(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	int ms = parse_number(text, 3600000);

	if (ms >= 0)
		put(v, o, &ms, sizeof ms);
	return ms < 0 ? ms : 0;
}

static int parse_host_node(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	int n = parse_number(text, MOST_NODE), node = n < 0 ? UMADV_HOST_NODE_OFF : UMADV_HOST_NODE(n);

	if (n < 0 && strcmp(text, "off") != 0)
		return n;
	put(v, o, &node, sizeof node);
	return 0;
}

/* A switch: 0, and `*on`. */
static int parse_on(const char *text, int *on)
{
	int k = find_word(switches, COUNT(switches), text);

	*on = k & 1;
	return k < 0 ? k : 0;
}

static int parse_share(const struct um_variable *v, const char *text, struct umadv_options *o)
{
	int share, on = 1;

	if (!parse_on(text, &on))
		share = on ? 1 : UMADV_SHARE_OFF;
	else if ((share = parse_number(text, UM_ARBITER_WEIGHT_MOST)) < 0)
		return share;
	put(v, o, &share, sizeof share);
	return 0;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct umadv_options, field)
#define SIZE "a number of bytes, or one with KiB, MiB or GiB"
#define SWITCH "on or off (or 1 and 0, yes and no, true and false)"

/* In the order in which they are read: the last one overrides. */
const struct um_variable um_variables[] = {
	{"UMADVISE_DEVICE", "auto, none or sim", "auto", "the device: CUDA's, none, or the simulated GPU", AT(device),
	 parse_word, devices, COUNT(devices), "UMADV_DEVICE_AUTO, _NONE or _SIM"},
	{"UMADVISE_BUDGET", SIZE ", 2 MiB at least; 0: all of the device", "0", "maximum of device memory in use",
	 AT(budget), parse_budget, NULL, 0, NULL},
	{"UMADVISE_HOST_MEMORY", SIZE ", detect or none", "detect on a CUDA device, otherwise none",
	 "maximum of host memory for evicted data", AT(host_memory), parse_host_memory, NULL, 0, NULL},
	{"UMADVISE_HOST_NODE", "off, or the number of a NUMA node", "the device's, if the host has several",
	 "NUMA node for evicted data", AT(host_node), parse_host_node, NULL, 0, NULL},
	{"UMADVISE_STRATEGY", "lookahead, on-demand, prefetch-on-use or another of umadvise(7)", "lookahead",
	 "policy that chooses the hints", AT(strategy), parse_strategy, NULL, 0, NULL},
	{"UMADVISE_PROFILE", "the name of a built-in device profile, or a file", "by the device's name",
	 "assumed speed of the device", AT(profile), parse_text, NULL, 0, NULL},
	{"UMADVISE_PLAN", "a file that umadv_save_plan or umadvise plan wrote", "none", "plan to start from", AT(plan),
	 parse_text, NULL, 0, NULL},
	{"UMADVISE_TRACE", "the name of a file to write", "none", "recording of the program's operations", AT(trace),
	 parse_text, NULL, 0, NULL},
	{"UMADVISE_RUN_LOG", "the name of a file to write", "none", "run log, for umadvise report", AT(run_log),
	 parse_text, NULL, 0, NULL},
	{"UMADVISE_RUN_LOG_SIZE", SIZE, "64 MiB", "maximum size of the run log", AT(run_log_bytes), parse_size, NULL, 0,
	 NULL},
	{"UMADVISE_COUNTERS", SWITCH, "off", "the driver's counters in the run log, by CUPTI", AT(counters),
	 parse_switch, NULL, 0, NULL},
	{"UMADVISE_NVTX", "all, iterations or off", "all", "marks for a profiler that is attached", AT(nvtx),
	 parse_word, marks, COUNT(marks), "UMADV_NVTX_ALL, _ITERATIONS or _OFF"},
	{"UMADVISE_ITERATION", "a shell pattern of names, or of DOMAIN/NAME", "none",
	 "NVTX ranges of the program that are its iterations", 0, parse_other, NULL, 0, NULL},
	{"UMADVISE_NVTX_NEXT", "the name of a shared library", "none", "another tool that NVTX calls are passed on to",
	 0, parse_other, NULL, 0, NULL},
	{"UMADVISE_LOG", "error, warn, info or debug", "warn", "least important level that is logged", AT(log_level),
	 parse_word, levels, COUNT(levels), NULL},
	{"UMADVISE_PLAN_TIME", "milliseconds, at most 3600000", "a fixed effort", "time to search for a better plan",
	 AT(plan_ms), parse_ms, NULL, 0, NULL},
	{"UMADVISE_PLAN_THREAD", "auto, on or off", "auto", "whether a helper thread makes plans", AT(plan_thread),
	 parse_word, threads, COUNT(threads), "UMADV_PLAN_THREAD_AUTO, _ON or _OFF"},
	{"UMADVISE_REFEREE", "on or off", "on", "whether hints stop that are measured not to pay", AT(referee),
	 parse_word, referees, COUNT(referees), "UMADV_REFEREE_ON or _OFF"},
	{"UMADVISE_EVICT", "auto, library or driver", "auto", "eviction policy in steady iterations", AT(evict),
	 parse_word, um_evict_words, UM_EVICT_WORDS, "UMADV_EVICT_AUTO, _LIBRARY or _DRIVER"},
	{"UMADVISE_CHECK", "on, off or discards", "off", "checks of the program's promises on the simulated GPU",
	 AT(check), parse_check, checks, COUNT(checks), "UMADV_CHECK_OFF, _ON or _DISCARDS"},
	{"UMADVISE_RUN_MANAGED", "all, none or " SIZE, "all", "umadvise run: device memory that becomes managed", 0,
	 parse_managed, NULL, 0, NULL},
	{"UMADVISE_RUN_HOST", SIZE, "nine tenths of what is available",
	 "umadvise run: most memory beyond that of the device", 0, parse_host, NULL, 0, NULL},
	{"UMADVISE_RUN_PLAN", "the name of a file to write", "none", "umadvise run: where the plan is saved at exit", 0,
	 parse_other, NULL, 0, NULL},
	{"UMADVISE_RUN_QUIET", SWITCH, "off", "umadvise run: no line at exit", 0, parse_other_switch, NULL, 0, NULL},
	{"UMADVISE_RUN_PYTORCH", SWITCH, "on", "umadvise run: PyTorch declares what its operations use", 0,
	 parse_other_switch, NULL, 0, NULL},
	{"UMADVISE_RUN_CONST", "names, or " SWITCH, "on", "umadvise run: what kernels only read, by PTX code or names",
	 0, parse_const, NULL, 0, NULL},
	{"UMADVISE_RUN_GRAPHS", "whole or nodes", "nodes", "umadvise run: launches of graphs larger than the budget", 0,
	 parse_graphs, NULL, 0, NULL},
	{"UMADVISE_SHARE", "off, or a weight from 1 to 1000", "1",
	 "weight among the user's processes that share the device's memory", AT(share), parse_share, NULL, 0, NULL},
	{"UMADVISE_SHARE_DEVICE", "a name", "none: each process has a device of its own",
	 "simulated device that processes share", 0, parse_other, NULL, 0, NULL},
	{"UMADVISE_KERNEL_EVICTIONS", SWITCH, "on", "evictions past libcuda, where that works", 0, parse_other_switch,
	 NULL, 0, NULL},
	{"UMADVISE_DISABLE", SWITCH, "off", "no hints: as if the program had managed memory alone", 0, parse_disable,
	 NULL, 0, NULL},
	{NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL},
};

/* --- the environment ---------------------------------------------------------------------------------------------- */

const char *um_variable_get(const char *name)
{
	const char *text = secure_getenv(name); /* the user of a set-uid program must not choose its files */

	return text && *text ? text : NULL;
}

int um_variable_on(const char *name)
{
	const char *text = um_variable_get(name);

	int k = text ? find_word(switches, COUNT(switches), text) : 0;

	return k > 0 && k & 1;
}

int um_variable_off(const char *name)
{
	const char *text = um_variable_get(name);
	int k = text ? find_word(switches, COUNT(switches), text) : -1;

	return k >= 0 && !(k & 1);
}

int um_variable_is(const char *name, const char *text)
{
	const char *value = um_variable_get(name);

	return value && text && strcmp(value, text) == 0;
}

int um_variable_read(const struct um_variable *v, struct umadv_options *o)
{
	const char *text = um_variable_get(v->name);

	if (!text)
		return 0;
	return v->parse(v, text, o) ? -EINVAL : 1;
}

void um_variable_ignored(const char *name, char *line, size_t size)
{
	const struct um_variable *v = um_variables;

	while (strcmp(v->name, name) != 0)
		v++;
	snprintf(line, size, "%s=%.160s is ignored: accepted values: %s; the default is used: %s", name,
		 um_variable_get(name), v->accepted, v->standard);
}

void um_environment_read(struct umadv_options *o)
{
	for (const struct um_variable *v = um_variables; v->name; v++)
		um_variable_read(v, o);
}

/* The variable with a similar name, or NULL. */
static const char *near_name(const char *name)
{
	const size_t skip = sizeof PREFIX - 1;
	const char *near = NULL;
	unsigned best = 4;

	for (const struct um_variable *v = um_variables; v->name; v++) {
		unsigned d = um_near_distance(name + skip, strlen(name + skip), v->name + skip);

		if (d < best && 2 * d < strlen(v->name + skip)) {
			best = d;
			near = v->name;
		}
	}
	return near;
}

static int is_known(const char *name)
{
	if (strncmp(name, DRYRUN, sizeof DRYRUN - 1) == 0)
		return 1;
	for (const struct um_variable *v = um_variables; v->name; v++)
		if (strcmp(v->name, name) == 0)
			return 1;
	return 0;
}

const char *um_environment_unknown(size_t *at, char *name, size_t size, const char **near)
{
	const char *entry;

	while (environ && (entry = environ[*at])) {
		++*at;
		if (strncmp(entry, PREFIX, sizeof PREFIX - 1) != 0)
			continue;
		snprintf(name, size, "%.*s", (int)strcspn(entry, "="), entry);
		if (is_known(name) || !um_variable_get(name))
			continue;
		*near = near_name(name);
		return name;
	}
	return NULL;
}

static void say_unknown(void (*say)(void *user, const char *line), void *user)
{
	static atomic_int said;
	char name[80], line[240];
	const char *near;
	size_t at = 0;

	if (!um_environment_unknown(&at, name, sizeof name, &near) || atomic_exchange(&said, 1))
		return;
	for (at = 0; um_environment_unknown(&at, name, sizeof name, &near);) {
		snprintf(line, sizeof line,
			 near ? "unknown variable %s: did you mean %s?"
			      : "unknown variable %s: umadvise(7) lists all variables",
			 name, near);
		say(user, line);
	}
}

void um_environment_check(void (*say)(void *user, const char *line), void *user)
{
	struct umadv_options scratch = {0};
	char line[400];

	for (const struct um_variable *v = um_variables; v->name; v++) {
		if (um_variable_read(v, &scratch) >= 0)
			continue;
		um_variable_ignored(v->name, line, sizeof line);
		say(user, line);
	}
	say_unknown(say, user);
}
