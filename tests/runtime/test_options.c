/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment: each variable reaches its option; a value that is not accepted is said and the default used, both
 * through umadv_options_init and through umadv_open(NULL); unknown names are said once in a process. Options given by
 * the program are refused.
 */
#include "runtime/environment.h"
#include "umadvise.h"

#include "base/near.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char logged[8192];
static int n_logs;

static void on_log(void *user, enum umadv_log_level level, const char *line)
{
	size_t n = strlen(logged);

	(void)user;
	(void)level;
	n_logs++;
	snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static int occurs(const char *text)
{
	int n = 0;

	for (const char *at = logged; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* Opens with what umadv_options_init says. The same options and whether they could be opened. */
static int open_init(struct umadv_options *o, int device)
{
	struct umadv *adv = NULL;
	int err;

	umadv_options_init(o);
	o->log = on_log;
	if (device)
		o->device = UMADV_DEVICE_NONE;
	logged[0] = '\0';
	n_logs = 0;
	err = umadv_open(&adv, o);
	umadv_close(adv);
	return err;
}

/* umadv_open(NULL), which logs to stderr: into `logged`. */
static int open_null(void)
{
	int keep = dup(2), to = open("test_options.log", O_RDWR | O_CREAT | O_TRUNC, 0600), err;
	struct umadv *adv = NULL;
	ssize_t n;

	dup2(to, 2);
	err = umadv_open(&adv, NULL);
	umadv_close(adv);
	dup2(keep, 2);
	n = pread(to, logged, sizeof logged - 1, 0);
	logged[n > 0 ? n : 0] = '\0';
	close(keep);
	close(to);
	remove("test_options.log");
	return err;
}

/* One bad value a variable. */
static void refused(void)
{
	static const struct {
		const char *name, *value, *accepted;
	} bad[] = {
		{"UMADVISE_DEVICE", "gpu", "auto, none or sim"},
		{"UMADVISE_BUDGET", "12 apples", "a number of bytes"},
		{"UMADVISE_BUDGET", "4096", "2 MiB at least"},
		{"UMADVISE_HOST_MEMORY", "half", "detect or none"},
		{"UMADVISE_HOST_NODE", "on", "off, or the number of a NUMA node"},
		{"UMADVISE_HOST_NODE", "1024", "off, or the number of a NUMA node"},
		{"UMADVISE_STRATEGY", "belady", "lookahead, on-demand"},
		{"UMADVISE_STRATEGY", "vdnn", "lookahead, on-demand"},
		{"UMADVISE_PROFILE", "nonesuch", "built-in device profile"},
		{"UMADVISE_PLAN", "/nonexistent/plan", "umadv_save_plan"},
		{"UMADVISE_RUN_LOG_SIZE", "-1", "a number of bytes"},
		{"UMADVISE_COUNTERS", "some", "on or off"},
		{"UMADVISE_NVTX", "none", "all, iterations or off"},
		{"UMADVISE_LOG", "loud", "error, warn, info or debug"},
		{"UMADVISE_PLAN_TIME", "1s", "milliseconds"},
		{"UMADVISE_REFEREE", "auto", "on or off"},
		{"UMADVISE_SHARE", "1001", "off, or a weight from 1 to 1000"},
		{"UMADVISE_SHARE", "-1", "off, or a weight from 1 to 1000"},
		{"UMADVISE_SHARE", "half", "off, or a weight from 1 to 1000"},
		{"UMADVISE_EVICT", "nobody", "auto, library or driver"},
		{"UMADVISE_EVICT", "home", "auto, library or driver"},
		{"UMADVISE_CHECK", "maybe", "on, off or discards"},
		{"UMADVISE_DISABLE", "2", "on or off"},
	};
	struct umadv_options plain, o;
	char is[128];

	is_int(open_init(&plain, 1), 0, "a context opens with an empty environment");
	is_int(n_logs, 0, "nothing is logged of an empty environment");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int file = strcmp(bad[i].name, "UMADVISE_PROFILE") == 0 || strcmp(bad[i].name, "UMADVISE_PLAN") == 0;

		snprintf(is, sizeof is, "%s=%s", bad[i].name, bad[i].value);
		setenv(bad[i].name, bad[i].value, 1);
		is_int(open_init(&o, strcmp(bad[i].name, "UMADVISE_DEVICE") != 0), 0,
		       "a context opens with %s and umadv_options_init", is);
		ok(occurs(is) == 1 && strstr(logged, bad[i].accepted) && strstr(logged, "the default is used"),
		   "one line names the variable, its value and what is accepted: %s", logged);
		o.device = plain.device;
		ok(file || memcmp(&o, &plain, sizeof o) == 0, "%s leaves every option at its default", bad[i].name);
		is_int(open_null(), 0, "umadv_open(NULL) opens with %s", is);
		ok(occurs(is) == 1 && strstr(logged, bad[i].accepted), "the same line goes to standard error");
		unsetenv(bad[i].name);
	}
}

static void accepted(void)
{
	struct umadv_options o;

	setenv("UMADVISE_DEVICE", "none", 1);
	setenv("UMADVISE_BUDGET", "3 MiB", 1);
	setenv("UMADVISE_HOST_MEMORY", "1GiB", 1);
	setenv("UMADVISE_HOST_NODE", "0", 1);
	setenv("UMADVISE_STRATEGY", "autoswap", 1);
	setenv("UMADVISE_PROFILE", "a100", 1);
	setenv("UMADVISE_RUN_LOG_SIZE", "1GiB", 1);
	setenv("UMADVISE_COUNTERS", "yes", 1);
	setenv("UMADVISE_NVTX", "off", 1);
	setenv("UMADVISE_LOG", "info", 1);
	setenv("UMADVISE_PLAN_TIME", "250", 1);
	setenv("UMADVISE_REFEREE", "off", 1);
	setenv("UMADVISE_SHARE", "7", 1);
	setenv("UMADVISE_EVICT", "driver", 1);
	setenv("UMADVISE_CHECK", "on", 1);
	setenv("UMADVISE_TRACE", "", 1);
	umadv_options_init(&o);
	is_int(o.device, UMADV_DEVICE_NONE, "UMADVISE_DEVICE sets the device");
	is_u64(o.budget, 3u << 20, "UMADVISE_BUDGET sets the budget");
	is_u64(o.host_memory, 1u << 30, "UMADVISE_HOST_MEMORY sets the limit of host memory");
	is_int(o.host_node, UMADV_HOST_NODE(0), "UMADVISE_HOST_NODE sets the node of evicted data");
	setenv("UMADVISE_HOST_NODE", "off", 1);
	umadv_options_init(&o);
	is_int(o.host_node, UMADV_HOST_NODE_OFF, "UMADVISE_HOST_NODE=off: evicted data have no node");
	unsetenv("UMADVISE_HOST_NODE");
	is_str(o.strategy, "autoswap", "UMADVISE_STRATEGY sets the strategy");
	is_str(o.profile, "a100", "UMADVISE_PROFILE sets the profile");
	is_u64(o.run_log_bytes, 1u << 30, "UMADVISE_RUN_LOG_SIZE sets the size of the report");
	is_int(o.counters, 1, "UMADVISE_COUNTERS=yes means on");
	is_int(o.nvtx, UMADV_NVTX_OFF, "UMADVISE_NVTX sets the marks");
	is_int(o.log_level, UMADV_LOG_INFO, "UMADVISE_LOG sets the log level");
	is_int(o.plan_ms, 250, "UMADVISE_PLAN_TIME sets the time for planning");
	is_int(o.referee, UMADV_REFEREE_OFF, "UMADVISE_REFEREE sets whether hints are compared");
	is_int(o.share, 7, "UMADVISE_SHARE sets the context's weight");
	setenv("UMADVISE_SHARE", "off", 1);
	umadv_options_init(&o);
	is_int(o.share, UMADV_SHARE_OFF, "UMADVISE_SHARE=off: the context shares nothing");
	setenv("UMADVISE_SHARE", "on", 1);
	umadv_options_init(&o);
	is_int(o.share, 1, "UMADVISE_SHARE=on: the weight is 1");
	unsetenv("UMADVISE_SHARE");
	is_int(o.evict, UMADV_EVICT_DRIVER, "UMADVISE_EVICT sets who evicts");
	is_int(o.check, UMADV_CHECK_ON, "UMADVISE_CHECK=on means on");
	ok(!o.trace, "an empty variable counts as unset");
	setenv("UMADVISE_CHECK", "discards", 1);
	umadv_options_init(&o);
	is_int(o.check, UMADV_CHECK_DISCARDS, "UMADVISE_CHECK=discards checks discards alone");
	setenv("UMADVISE_CHECK", "0", 1);
	setenv("UMADVISE_DISABLE", "1", 1);
	setenv("UMADVISE_DEVICE", "sim", 1);
	umadv_options_init(&o);
	is_int(o.check, 0, "UMADVISE_CHECK=0 means off");
	is_str(o.strategy, "on-demand", "UMADVISE_DISABLE overrides the strategy");
	is_int(o.device, UMADV_DEVICE_SIM, "UMADVISE_DISABLE leaves the device");
	for (const struct um_variable *v = um_variables; v->name; v++)
		unsetenv(v->name);
}

static void unknown(void)
{
	struct umadv_options o;

	setenv("UMADVISE_BUGDET", "1GiB", 1);
	setenv("UMADVISE_COLOUR", "green", 1);
	setenv("UMADVISE_REPORT", "run.umlog", 1);
	setenv("UMADVISE_DRYRUN_MEMORY", "1GiB", 1);
	setenv("UMADVISE", "a tool", 1);
	is_int(open_init(&o, 1), 0, "a context opens with unknown variables");
	ok(occurs("unknown variable UMADVISE_BUGDET: did you mean UMADVISE_BUDGET?") == 1,
	   "an unknown name is named with the one that it is near");
	ok(occurs("unknown variable UMADVISE_COLOUR: umadvise(7) lists all variables") == 1,
	   "an unknown name that is near none is named alone");
	ok(occurs("unknown variable UMADVISE_REPORT") == 1, "the former name of the run log is unknown");
	is_int(occurs("unknown variable"), 3, "names of the dry run and others are left alone");
	is_int(open_init(&o, 1), 0, "a second context opens");
	is_int(occurs("unknown variable"), 0, "unknown names are named once in a process");
	unsetenv("UMADVISE_BUGDET");
	unsetenv("UMADVISE_COLOUR");
	unsetenv("UMADVISE_REPORT");
	unsetenv("UMADVISE_DRYRUN_MEMORY");
}

static void given(void)
{
	const char *top = getenv("top_srcdir");
	struct umadv_options o;
	struct umadv *adv;
	char path[1024];

	setenv("UMADVISE_EVICT", "nobody", 1);
	umadv_options_init(&o);
	o.log = on_log;
	o.device = (enum umadv_device)7;
	logged[0] = '\0';
	is_int(umadv_open(&adv, &o), -EINVAL, "a device that the program made up is refused");
	ok(strstr(logged, "UMADV_DEVICE_AUTO, _NONE or _SIM") && occurs("UMADVISE_EVICT=nobody") == 1,
	   "the log says why, beside what is wrong in the environment: %s", logged);
	unsetenv("UMADVISE_EVICT");
	o.device = UMADV_DEVICE_NONE;
	o.strategy = "belady";
	logged[0] = '\0';
	is_int(umadv_open(&adv, &o), -EINVAL, "a strategy that the program made up is refused");
	ok(strstr(logged, "'belady'") && !strstr(logged, "the default is used"), "no default is used for it: %s",
	   logged);
	o.strategy = NULL;
	o.plan = "/nonexistent/plan";
	is_int(umadv_open(&adv, &o), -ENOENT, "a plan that the program names and that is not there is refused");
	snprintf(path, sizeof path, "%s/tests/data/good-recompute.umplan", top ? top : ".");
	o.plan = path;
	logged[0] = '\0';
	is_int(umadv_open(&adv, &o), -EINVAL, "a plan with relaunches in scratch memory is refused");
	ok(strstr(logged, "in scratch memory, which the library does not") != NULL, "the log says that: %s", logged);
}

static void distances(void)
{
	static const struct {
		const char *a, *b;
		unsigned d;
	} known[] = {{"", "", 0},	 {"", "abc", 3},     {"abc", "", 3},	       {"BUDGET", "BUGDET", 1},
		     {"NVTX", "NVT", 1}, {"NVT", "NVTX", 1}, {"kitten", "sitting", 3}, {"LOG", "BUG", 2}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		is_int(um_near_distance(known[i].a, strlen(known[i].a), known[i].b), known[i].d,
		       "the distance is %u edits between '%s' and '%s'", known[i].d, known[i].a, known[i].b);
}

int main(void)
{
	for (const struct um_variable *v = um_variables; v->name; v++)
		unsetenv(v->name);
	refused();
	accepted();
	unknown();
	given();
	distances();
	return tap_done();
}
