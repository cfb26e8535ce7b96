/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_calibrate.c - umadvise calibrate: measure this machine's device, write its profile
 */
#include "args.h"
#include "calibrate_child.h"
#include "output.h"
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/profile_file.h"
#include "probe/derive.h"
#include "probe/guard.h"

struct calibration {
	const char *output;
	int json; /* print observations instead of the table */
	uint64_t device_number;
	struct calibrate_job job;
	struct calibrate_device device;
	struct um_observed seen;
	struct um_profile assumed, profile;
	struct um_derived derived;
	unsigned failed; /* probes */
};

/* --- the command line -------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct calibration, field)

static const struct arg options[] = {
	ARG_FORMAT(AT(json), 0, "table json", "table (default), or json with all observations"),
	ARG_OUTPUT(AT(output), "write the profile to FILE (default: only print it)"),
	ARG(ARG_COUNT, "device", 0, AT(device_number), "N", .most = 1000, .expected = "a number",
	    .help = "number of the GPU (default: 0)"),
	ARG_BUDGET(AT(job.budget), 0, 1, "limit of managed memory"),
	ARG(ARG_REAL, "time", 0, AT(job.seconds), "SECONDS", .least = 0.01, .most = 3600, .expected = "seconds",
	    .help = "time limit of each probe (default: 30)"),
	ARG_LAST,
};

static int read_args(struct calibration *c, int argc, char **argv)
{
	struct args_found found;
	int code = args_read(&verb_calibrate, c, argc, argv, &found);

	c->job.device = (int)c->device_number;
	if (code == ARGS_GO_ON && found.n) {
		tool_say("calibrate", "'%s': expected options only", found.operands[0]);
		return TOOL_USAGE;
	}
	return code;
}

/* --- measuring --------------------------------------------------------------------------------------------------- */

/* The built-in device of that name, else the one with the longest name that this device's name contains, for constants
 * that cannot be measured. */
static const struct um_profile *nearest(const char *name)
{
	const struct um_profile *best = um_profile_of_device(name);
	char plain[64];
	size_t n = 0, longest = 0;

	if (best)
		return best;
	best = um_profile_find("v100");
	for (; *name && n < sizeof plain - 1; name++)
		if (!isspace((unsigned char)*name))
			plain[n++] = (char)tolower((unsigned char)*name);
	plain[n] = '\0';
	for (unsigned i = 0; um_profile_builtin(i); i++)
		if (strstr(plain, um_profile_builtin(i)) && strlen(um_profile_builtin(i)) > longest) {
			best = um_profile_find(um_profile_builtin(i));
			longest = strlen(best->name);
		}
	return best;
}

static void run_probes(struct calibration *c)
{
	int terminal = isatty(STDERR_FILENO);
	char why[256];

	for (unsigned i = 0; um_probe_name(i); i++) {
		int rc;

		c->job.probe = um_probe_name(i);
		if (terminal)
			fprintf(stderr, "\r\033[Kmeasuring: %s", c->job.probe);
		rc = calibrate_child_run(&c->job, &c->device, &c->seen, why, sizeof why);
		if (terminal)
			fputs("\r\033[K", stderr);
		if (!rc)
			continue;
		c->failed++;
		tool_say("calibrate", "probe %s: %s; its constants stay assumed", c->job.probe, why);
		if (rc == -EBUSY) {
			tool_say("calibrate", "the device does not answer: skipping the remaining probes");
			break;
		}
	}
}

static void derive(struct calibration *c)
{
	c->assumed = *nearest(c->device.name);
	c->profile = c->assumed;
	snprintf(c->profile.name, sizeof c->profile.name, "%s", c->device.name);
	c->profile.capacity = c->device.capacity;
	c->profile.measured = 1;
	um_derive(&c->seen, &c->profile, &c->derived);
	if (c->profile.duplex_evict > c->profile.duplex) /* assumed, and impossible */
		c->profile.duplex_evict = c->profile.duplex;
}

/* --- telling ----------------------------------------------------------------------------------------------------- */

static void print_table(const struct calibration *c)
{
	printf("%s: %.1f MiB for managed data; driver %d.%d%s\n%-15s %-8s %12s %12s %12s\n", tool_text(c->device.name),
	       (double)c->device.capacity / 1048576, c->device.driver_version / 1000,
	       c->device.driver_version % 1000 / 10, c->device.standin ? " (the stand-in)" : "", "constant", "unit",
	       "measured", "spread", "assumed");
	for (int i = 0; i < UM_CONST_N; i++) {
		enum um_constant k = (enum um_constant)i;
		const struct um_figure *f = &c->derived.at[i];

		printf("%-15s %-8s ", um_constant_name(k), um_constant_unit(k));
		if (f->n)
			printf("%12.6g %12.3g %12.6g\n", f->value, f->spread, um_constant_get(&c->assumed, k));
		else
			printf("%12s %12s %12.6g\n", "-", "-", um_constant_get(&c->assumed, k));
	}
}

/* jansson refuses NaN and NULL; the first failure makes the document NULL, which is checked once, at the end. */
static json_t *figures(const struct calibration *c)
{
	json_t *constants = json_object(), *seen = json_object(), *root;
	int bad = 0;

	for (int i = 0; i < UM_CONST_N; i++) {
		enum um_constant k = (enum um_constant)i;
		const struct um_figure *f = &c->derived.at[i];

		bad |= json_object_set_new(constants, um_constant_name(k),
					   json_pack("{s:s, s:b, s:f, s:f, s:f}", "unit", um_constant_unit(k),
						     "measured", f->n != 0, "value", um_constant_get(&c->profile, k),
						     "spread", f->spread, "assumed", um_constant_get(&c->assumed, k)));
	}
	for (int i = 0; i < UM_OBS_N; i++) {
		enum um_observation o = (enum um_observation)i;
		const struct um_figure *f = &c->seen.at[i];

		if (f->n)
			bad |= json_object_set_new(seen, um_observation_name(o),
						   json_pack("{s:s, s:f, s:f, s:i, s:s}", "unit",
							     um_observation_unit(o), "value", f->value, "spread",
							     f->spread, "n", (int)f->n, "what",
							     um_observation_text(o)));
	}
	root = json_pack("{s:s, s:s, s:I, s:i, s:b, s:i, s:f, s:o, s:o}", "schema", "umcalibrate/1", "device",
			 c->device.name, "capacity_bytes", (json_int_t)c->profile.capacity, "driver_version",
			 c->device.driver_version, "standin", c->device.standin, "failed_probes", (int)c->failed,
			 "visits_per_block", c->derived.visits.value, "constants", constants, "seen", seen);
	if (bad) {
		json_decref(root);
		return NULL;
	}
	return root;
}

static int print_json(const struct calibration *c)
{
	json_t *root = figures(c);

	if (tool_json(stdout, root, JSON_PRESERVE_ORDER)) {
		tool_say("calibrate", "no memory");
		json_decref(root);
		return TOOL_INTERNAL;
	}
	json_decref(root);
	return TOOL_DONE;
}

/* Marks each key that was not measured. */
static const char *note(void *user, const char *key)
{
	const struct calibration *c = user;
	static char text[160];

	for (int i = 0; i < UM_CONST_N; i++) {
		if (strcmp(key, um_constant_name((enum um_constant)i)) != 0 || c->derived.at[i].n)
			continue;
		snprintf(text, sizeof text, "assumed: %s", um_constant_why((enum um_constant)i));
		return text;
	}
	return NULL;
}

static int write_profile(struct calibration *c)
{
	char top[160], line[800];
	struct um_profile_notes notes = {top, note, c};
	struct um_diag diag;
	int rc;

	snprintf(top, sizeof top, "Measured by umadvise calibrate, driver %d.%d%s.", c->device.driver_version / 1000,
		 c->device.driver_version % 1000 / 10, c->device.standin ? ", a simulated device" : "");
	rc = um_profile_write(c->output, &c->profile, &notes, &diag);
	if (!rc)
		return TOOL_DONE;
	um_diag_line(&diag, line, sizeof line);
	tool_say("calibrate", "%s", line);
	return tool_exit_of(rc);
}

static int highest(int a, int b)
{
	return a > b ? a : b;
}

/* Checked before the first probe; each probe checks again. */
static int affordable(const struct calibration *c)
{
	uint64_t most = c->job.budget ? c->job.budget : c->device.allowance;

	if (most > c->device.allowance) {
		tool_say("calibrate", "--budget: the limit is %.1f MiB, an eighth of the free memory",
			 (double)c->device.allowance / 1048576);
		return 0;
	}
	if (most < UM_PROBE_LEAST) {
		tool_say("calibrate",
			 "%.1f MiB are too little: probes need %llu MiB of managed memory, and %d times as much free",
			 (double)most / 1048576, UM_PROBE_LEAST >> 20, UM_GUARD_SHARE);
		return 0;
	}
	return 1;
}

static int run(int argc, char **argv)
{
	struct calibration c = {.job = {.probe = "", .seconds = 30}};
	unsigned measured = 0;
	char why[256];
	int code;

	if (argc > 2 && strcmp(argv[1], "--run-probe") == 0)
		return calibrate_child_main(argc - 2, argv + 2);
	code = read_args(&c, argc, argv);
	if (code != ARGS_GO_ON)
		return code;
	if (calibrate_child_run(&c.job, &c.device, &c.seen, why, sizeof why)) {
		tool_say("calibrate", "no device to measure: %s", why);
		return TOOL_REFUSED;
	}
	if (!affordable(&c))
		return TOOL_REFUSED;
	run_probes(&c);
	derive(&c);
	for (int i = 0; i < UM_CONST_N; i++)
		measured += c.derived.at[i].n != 0;
	if (!measured) {
		tool_say("calibrate", "no constant was measured: not writing a profile");
		return TOOL_FAILED;
	}
	code = c.failed ? TOOL_FAILED : TOOL_DONE;
	if (c.json)
		code = highest(code, print_json(&c));
	else
		print_table(&c);
	return c.output ? highest(code, write_profile(&c)) : code;
}

const struct tool_verb verb_calibrate = {
	.name = "calibrate",
	.run = run,
	.what = "measure this machine's GPU and its link, write a profile",
	.synopsis = "calibrate [OPTION]...",
	.about = "Measures this machine's GPU, its link and the costs of its driver, and writes them as a profile. "
		 "Takes a few seconds and at most an eighth of the free memory; memory is never oversubscribed. "
		 "Each probe runs in a process of its own.",
	.options = options,
	.tail = "Example:\n"
		"  umadvise calibrate -o this.profile && umadvise simulate resnet50.umtrace.gz --profile "
		"this.profile\n",
};
