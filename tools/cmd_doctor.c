/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_doctor.c - umadvise doctor: will a program get hints here, and if not, why not
 *
 * Opens a context as umadv_open(NULL) does, without its output files, and shows its state.
 */
#include "runtime/context.h"
#include "args.h"
#include "doctor.h"
#include "runtime/environment.h"
#include "output.h"
#include "tool.h"

#include "gpu/device.h"
#include "gpu/libraries.h"
#include "io/nvtx.h"

#include <stdlib.h>
#include <string.h>

struct doctor {
	int json; /* --format */
	const char *program; /* or NULL */
	int calls; /* it calls the library */
	struct umadv *adv; /* NULL: opening failed */
	int err; /* why */
	json_t *log; /* the context's log lines */
	char last[512]; /* of that */
};

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	struct doctor *d = user;

	snprintf(d->last, sizeof d->last, "%s", line);
	json_array_append_new(d->log, json_pack("{s:s, s:o}", "level", level == UMADV_LOG_ERROR ? "error" : "warning",
						"text", doctor_text(line)));
}

/* --- environment -------------------------------------------------------------------------------------------------- */

static json_t *environment(void)
{
	json_t *all = json_array();

	for (const struct um_variable *v = um_variables; v->name; v++) {
		struct umadv_options scratch = {.strategy = NULL};
		int used = um_variable_read(v, &scratch);

		json_array_append_new(all, json_pack("{s:s, s:o, s:b, s:s, s:s, s:s}", "name", v->name, "value",
						     doctor_text(um_variable_get(v->name)), "used", used > 0, "meaning",
						     v->what, "accepted", v->accepted, "default", v->standard));
	}
	return all;
}

static json_t *unknown(void)
{
	json_t *all = json_array();
	const char *near;
	char name[80];
	size_t at = 0;

	while (um_environment_unknown(&at, name, sizeof name, &near))
		json_array_append_new(all,
				      json_pack("{s:o, s:o}", "name", doctor_text(name), "near", doctor_text(near)));
	return all;
}

/* --- libraries ---------------------------------------------------------------------------------------------------- */

static json_t *version(int v)
{
	char words[32];

	if (!v)
		return json_null();
	snprintf(words, sizeof words, "%d.%d", v / 1000, v % 1000 / 10);
	return json_string(words);
}

/* A runtime newer than the driver fails: its program gets neither CUDA nor hints. */
static const char *library_note(const struct um_library *l, const struct um_library *driver)
{
	static const char *const lacks[] = {"no CUDA device can be used",
					    "programs that use this shared runtime do not start; others do",
					    "UMADVISE_COUNTERS=on has no effect"};

	if (!l->found)
		return lacks[l->role];
	if (l->role == UM_LIBRARY_IS_RUNTIME && driver->version && l->version / 1000 > driver->version / 1000)
		return "newer than the driver: programs that use this runtime get no hints";
	return "";
}

static json_t *libraries(void)
{
	static const char *const roles[] = {"driver", "runtime", "counters"};
	struct um_library l[UM_LIBRARIES];
	json_t *all = json_array();

	um_libraries_find(l);
	for (int i = 0; i < UM_LIBRARIES; i++)
		json_array_append_new(
			all, json_pack("{s:s, s:o, s:b, s:o, s:o, s:o, s:s}", "role", roles[l[i].role], "name",
				       doctor_text(l[i].soname), "found", l[i].found, "version", version(l[i].version),
				       "path", doctor_text(l[i].found ? l[i].path : NULL), "why",
				       doctor_text(l[i].found ? NULL : l[i].why), "note", library_note(&l[i], &l[0])));
	json_array_append_new(
		all, json_pack("{s:s, s:s, s:b, s:n, s:o, s:o, s:s}", "role", "profiler", "name", "NVTX", "found",
			       um_nvtx_built(), "version", "path", doctor_text(getenv("NVTX_INJECTION64_PATH")), "why",
			       doctor_text(um_nvtx_built() ? NULL : "the library was built without its headers"),
			       "note", um_nvtx_built() ? "" : "UMADVISE_NVTX has no effect"));
	return all;
}

/* --- the device --------------------------------------------------------------------------------------------------- */

static json_t *capability(const char *name, int has, const char *with, const char *without)
{
	return json_pack("{s:s, s:b, s:s}", "name", name, "has", has, "meaning", has ? with : without);
}

static json_t *capabilities(const struct um_gpu_caps *c)
{
	json_t *all = json_array();

	json_array_append_new(all, capability("concurrent managed access", c->concurrent_managed,
					      "pages move one by one, and hints work",
					      "managed memory moves as a whole at each launch: no hints"));
	json_array_append_new(all, capability("discard", c->discard, "dead content is evicted without a copy",
					      "dead content is copied to the host when it is evicted"));
	json_array_append_new(all, capability("host coherent", c->ats,
					      "the GPU also reads pageable host memory, by the host's page tables",
					      "the GPU reads managed memory only: the usual case with PCIe"));
	return all;
}

static json_t *device(const struct umadv *adv)
{
	const struct um_gpu_caps *c = &adv->device.gpu->caps;
	struct um_device_info info = {0};

	if (adv->device.cuda)
		um_device_info(adv->device.gpu, &info);
	return json_pack("{s:o, s:s, s:b, s:o, s:I, s:o, s:o}", "name", doctor_text(c->name), "kind",
			 !adv->device.cuda ? (adv->device.simulated ? "simulated" : "none")
			 : info.standin	   ? "stand-in"
					   : "cuda",
			 "usable", adv->device.gpu->caps.concurrent_managed, "driver", version(info.driver_version),
			 "memory_bytes", (json_int_t)(adv->device.cuda || adv->device.simulated ? c->capacity : 0),
			 "why", doctor_text(c->why), "capabilities", capabilities(c));
}

/* Source of the profile. */
static const char *profile_from(const struct umadv *adv)
{
	struct um_profile p;

	if (adv->options.pub.profile && !adv->device.profile_ignored)
		return "UMADVISE_PROFILE";
	if (!adv->device.cuda)
		return "the default";
	if (!um_device_standin_profile(adv->device.gpu, &p))
		return "the stand-in driver";
	return um_profile_of_device(adv->device.gpu->caps.name) ? "the device's name"
								: "no better one: umadvise calibrate makes one";
}

static json_t *choices(const struct umadv *adv)
{
	const char *budget = adv->options.pub.budget ? "UMADVISE_BUDGET"
			     : adv->device.real	     ? "95 % of the device memory that is free"
						     : "the device memory";

	return json_pack("{s:o, s:s, s:I, s:s, s:s}", "profile", doctor_text(adv->device.profile.name), "profile_from",
			 profile_from(adv), "budget_bytes", (json_int_t)adv->device.budget, "budget_from", budget,
			 "strategy", um_strategy_name(adv->options.strategy));
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

/* Why a program gets no hints, and the remedy; or NULL. */
static const char *obstacle(const struct doctor *d, char *line, size_t size)
{
	const struct umadv *adv = d->adv;
	struct umadv_options scratch = {0};
	const struct um_variable *disable = um_variables;

	while (strcmp(disable->name, "UMADVISE_DISABLE") != 0)
		disable++;
	um_variable_read(disable, &scratch);
	if (scratch.strategy)
		return "UMADVISE_DISABLE is set: unset it";
	if (!adv)
		snprintf(line, size, "no context can be opened: %s", *d->last ? d->last : umadv_strerror(d->err));
	else if (adv->options.pub.device == UMADV_DEVICE_NONE)
		return "UMADVISE_DEVICE=none selects no device: unset it";
	else if (!adv->device.cuda && !adv->device.simulated)
		snprintf(line, size,
			 "%s. A machine with an NVIDIA GPU and its driver (CUDA 12.0 or later) is needed; "
			 "'umadvise dryrun -- PROGRAM' and UMADVISE_DEVICE=sim need none",
			 adv->device.gpu->caps.why);
	else if (!um_gpu_takes_hints(adv->device.gpu))
		snprintf(line, size, "%s", adv->device.gpu->caps.why);
	else if (adv->options.strategy == UM_STRATEGY_ON_DEMAND)
		return "the strategy on-demand issues none: unset UMADVISE_STRATEGY";
	else if (um_strategy_plans(adv->options.strategy) && !adv->replan.executor)
		return "the device has no streams or events for hints";
	else if (d->program && !d->calls)
		snprintf(line, size, "%s does not call the library: umadvise(3) shows the calls", d->program);
	else
		return NULL;
	return line;
}

static json_t *verdict(const struct doctor *d, int *hints)
{
	char why[700], line[900];
	const char *no = obstacle(d, why, sizeof why);

	*hints = !no;
	if (no)
		snprintf(line, sizeof line, "no hints: %s", no);
	else
		snprintf(line, sizeof line, "hints will be issued on %s, within %.1f MiB, by strategy %s",
			 d->adv->device.gpu->caps.name, (double)d->adv->device.budget / (1 << 20),
			 um_strategy_name(d->adv->options.strategy));
	return doctor_text(line);
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

static void open_context(struct doctor *d)
{
	struct umadv_options o;
	const char *plan;

	umadv_options_init(&o);
	plan = o.plan;
	o.log = on_log;
	o.log_user = d;
	o.log_level = UMADV_LOG_WARN;
	o.trace = o.run_log = o.plan = NULL;
	o.counters = 0;
	o.nvtx = UMADV_NVTX_OFF;
	d->err = umadv_open(&d->adv, &o);
	if (!d->err && plan)
		umadv_load_plan(d->adv, plan);
}

static json_t *examine(struct doctor *d, int *hints)
{
	json_t *found = json_pack("{s:s, s:s}", "schema", "umdoctor/1", "version", umadv_version());
	json_t *program = d->program ? doctor_program(d->program, &d->calls) : NULL;

	if (!program && d->program) {
		json_decref(found);
		return NULL;
	}
	if (program)
		json_object_set_new(found, "program", program);
	json_object_set_new(found, "environment", environment());
	json_object_set_new(found, "unknown_variables", unknown());
	open_context(d);
	json_object_set_new(found, "libraries", libraries());
	if (d->adv) {
		json_object_set_new(found, "device", device(d->adv));
		json_object_set_new(found, "choices", choices(d->adv));
	}
	json_object_set(found, "log", d->log);
	json_object_set_new(found, "verdict", verdict(d, hints));
	json_object_set_new(found, "hints", json_boolean(*hints));
	umadv_close(d->adv);
	return found;
}

static const struct arg options[] = {
	ARG_FORMAT(offsetof(struct doctor, json), 0, "table json", "table (default) or json"),
	ARG_LAST,
};

static int run(int argc, char **argv)
{
	struct doctor d = {0};
	struct args_found args;
	json_t *found;
	int code = args_read(&verb_doctor, &d, argc, argv, &args), hints = 0;

	if (code != ARGS_GO_ON)
		return code;
	if (args.n > 1) {
		tool_say("doctor", "'%s': expected one program", args.operands[1]);
		return TOOL_USAGE;
	}
	d.program = args.n ? args.operands[0] : NULL;
	d.log = json_array();
	found = examine(&d, &hints);
	json_decref(d.log);
	if (!found) {
		if (d.program)
			return TOOL_REFUSED; /* said */
		tool_say("doctor", "out of memory");
		return TOOL_INTERNAL;
	}
	if (d.json)
		tool_json(stdout, found, 0);
	else
		doctor_show(found, stdout);
	json_decref(found);
	return hints ? TOOL_DONE : TOOL_FAILED;
}

const struct tool_verb verb_doctor = {
	.name = "doctor",
	.run = run,
	.what = "say whether a program gets hints on this machine, and if not, why",
	.synopsis = "doctor [OPTION]... [PROGRAM]",
	.about = "Shows the UMADVISE_* variables, the CUDA libraries, the device and its capabilities, the default "
		 "profile and budget of a context, and a verdict in the last line.\n"
		 "With PROGRAM it also shows how that file is linked with CUDA's runtime, its CUDA version, and "
		 "whether it allocates managed memory, calls the library and has NVTX.",
	.options = options,
	.tail = "Exit status: 0 hints will be issued, 1 they will not, 2 usage, 3 PROGRAM cannot\n"
		"be read, 4 out of memory.\n\n"
		"Examples:\n"
		"  umadvise doctor\n"
		"  umadvise doctor ./train\n"
		"  umadvise dryrun -- umadvise doctor --format json\n",
};
