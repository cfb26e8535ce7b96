/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks tests/data: what is called good is taken, what is called bad or unsupported is refused, for the reason and on
 * the line that expect.tsv has. Files without such a name are recorded traces, and good.
 */
#include "io/plan_file.h"
#include "io/profile_file.h"
#include "io/umtrace.h"
#include "tap.h"

#include <dirent.h>
#include <errno.h>

static char dir[1024];

static int ends(const char *name, const char *end)
{
	return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

static int is_sample(const struct dirent *e)
{
	static const char *const kinds[] = {".umtrace", ".umtrace.gz", ".umplan", ".umplan.gz", ".profile"};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (ends(e->d_name, kinds[i]))
			return 1;
	return 0;
}

static int read_sample(const char *path, const char *name, struct um_diag *diag)
{
	struct um_profile profile;
	struct um_trace *trace;
	struct um_plan plan;
	int rc;

	if (strstr(name, ".umtrace")) {
		rc = um_trace_load(&trace, path, diag);
		if (!rc)
			um_trace_free(trace);
	} else if (strstr(name, ".umplan")) {
		um_plan_init(&plan);
		rc = um_plan_read(path, &plan, diag);
		ok(!rc || (plan.sched.slots.n == 0 && plan.hints.n == 0 && !plan.source), "%s: no half plan", name);
		um_plan_fini(&plan);
	} else {
		rc = um_profile_read(path, &profile, diag);
	}
	return rc;
}

/* The line of expect.tsv for `name` into `want` (LINE: REASON). */
static int expected(FILE *tsv, const char *name, char *want, size_t size)
{
	char line[1024];

	rewind(tsv);
	while (fgets(line, sizeof line, tsv)) {
		char *number, *text = NULL;

		line[strcspn(line, "\n")] = '\0';
		number = strchr(line, '\t');
		if (number) {
			*number++ = '\0';
			text = strchr(number, '\t');
		}
		if (!text || strcmp(line, name) != 0)
			continue;
		*text++ = '\0';
		snprintf(want, size, "%s: %s", number, text);
		return 1;
	}
	return 0;
}

static void check_refusal(FILE *tsv, const char *name, int rc, const struct um_diag *diag)
{
	char want[1024] = "(not in expect.tsv)", got[1024];

	expected(tsv, name, want, sizeof want);
	snprintf(got, sizeof got, "%" PRIu64 ": %s", diag->line, diag->text);
	is_int(rc, -EINVAL, "%s is refused", name);
	/* a star at the end: the rest is in the words of a library below, which change */
	if (ends(want, "*") && strncmp(got, want, strlen(want) - 1) == 0)
		strcpy(got, want);
	is_str(got, want, "%s: the error has its line and reason", name);
}

/* Every line of expect.tsv is about a file that is there. */
static void check_list(FILE *tsv)
{
	char line[1024], path[2048];
	int lost = 0, n = 0;

	rewind(tsv);
	while (fgets(line, sizeof line, tsv)) {
		FILE *f;

		line[strcspn(line, "\t\n")] = '\0';
		snprintf(path, sizeof path, "%s/%s", dir, line);
		f = fopen(path, "r");
		if (f)
			fclose(f);
		else
			diag("expected, but not there: %s", line);
		lost += !f;
		n++;
	}
	ok(n > 0 && !lost, "expect.tsv speaks of files that are there");
}

int main(void)
{
	const char *top = getenv("top_srcdir");
	struct dirent **names;
	char path[2048];
	FILE *tsv;
	int n;

	snprintf(dir, sizeof dir, "%s/tests/data", top ? top : ".");
	n = scandir(dir, &names, is_sample, alphasort);
	if (n <= 0)
		tap_bail("no samples");
	snprintf(path, sizeof path, "%s/expect.tsv", dir);
	tsv = fopen(path, "r");
	if (!tsv)
		tap_bail("no expect.tsv");
	check_list(tsv);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		struct um_diag diag;
		int rc;

		snprintf(path, sizeof path, "%s/%s", dir, name);
		rc = read_sample(path, name, &diag);
		if (strncmp(name, "bad-", 4) == 0 || strncmp(name, "unsupported-", 12) == 0)
			check_refusal(tsv, name, rc, &diag);
		else if (!is_int(rc, 0, "%s is taken", name))
			diag("  %" PRIu64 ": %s", diag.line, diag.text);
		free(names[i]);
	}
	free(names);
	fclose(tsv);
	return tap_done();
}
