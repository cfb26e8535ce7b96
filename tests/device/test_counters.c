/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters over a CUPTI that misbehaves as told (fake_cupti.c). Each case is a process; `test_counters once` is
 * one of them alone, for a test without memory.
 */
#include "fake_cupti.h"
#include "gpu/counters.h"
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake_cupti *fake;
static char why[200];
static int failed;

#define CHECK(cond) check(!!(cond), #cond, __LINE__)
static void check(int good, const char *what, int line)
{
	if (!good)
		printf("#   line %d: %s; why: %s\n", line, what, why);
	failed |= !good;
}

static void load(void)
{
	const char *top = getenv("top_builddir");
	char path[4096];
	void *lib;

	snprintf(path, sizeof path, "%s/tests/device/fake/libcupti.so.13", top ? top : ".");
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		printf("# %s\n", dlerror());
	fake = lib ? dlsym(lib, "fake_cupti") : NULL;
	if (!fake)
		_exit(1);
}

static int open_at(int64_t now)
{
	*why = '\0';
	return um_counters_open(now, why, sizeof why);
}

/* What was told. */
struct received {
	struct um_activity_sink sink;
	uint64_t n[UM_ACT_KINDS], records[UM_ACT_KINDS], bytes, faults, sums;
	int64_t first;
	unsigned wrong;
};

static int on_activity(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct received *h = (struct received *)sink;

	h->n[a->kind]++;
	h->records[a->kind] += a->records;
	h->bytes += a->bytes;
	h->faults += a->faults;
	h->sums += !a->address;
	h->wrong += !a->records || a->end < a->begin || (a->kind == UM_ACT_MIGRATION && a->cause >= UM_CAUSES);
	if (!h->first || a->begin < h->first)
		h->first = a->begin;
	return 0;
}

static struct received take(int64_t now, int last, int want, uint64_t *lost)
{
	struct received h = {.sink = {on_activity}};

	CHECK(um_counters_take(now, last, &h.sink, lost) == want);
	CHECK(!h.wrong);
	return h;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void is_delivered(void)
{
	struct received h;
	uint64_t lost;

	load();
	CHECK(open_at(501000) == 0); /* the other clock says 1000 */
	if (failed)
		return;
	CHECK(fake->enabled == 1);
	fake->records = 400;
	fake->flags = 2;
	h = take(501000, 0, 0, &lost);
	CHECK(h.n[UM_ACT_MIGRATION] == 200 && h.n[UM_ACT_GPU_FAULT] == 100 && h.n[UM_ACT_CPU_FAULT] == 100);
	CHECK(h.bytes == 200 * 4096 && h.faults == 100 * 4096 + 100); /* one record is one fault of the CPU */
	CHECK(h.first == 502000 && !lost && !h.sums && !fake->forced);
	h = take(502000, 0, 0, &lost);
	CHECK(!h.bytes && !h.faults);
	fake->records = 40;
	h = take(503000, 1, 0, &lost);
	CHECK(h.n[UM_ACT_MIGRATION] == 20 && fake->forced == 1 && fake->enabled == 0);
	CHECK(open_at(1) == 0);
	if (failed)
		return;
	CHECK(fake->enabled == 1);
	fake->flags = 77;
	fake->records = 4;
	h = take(1, 0, 0, &lost);
	CHECK(h.n[UM_ACT_MIGRATION] == 2);
	fake->other = 1;
	fake->records = 100;
	h = take(1, 1, 0, &lost);
	CHECK(!h.bytes && !h.faults);
}

static void too_many(void)
{
	struct received h;
	uint64_t lost;

	load();
	CHECK(open_at(1000) == 0);
	fake->records = 100000;
	fake->flags = 1;
	h = take(1000, 0, 0, &lost);
	CHECK(h.records[UM_ACT_MIGRATION] == 50000 && h.bytes == 50000 * 4096ull);
	CHECK(h.faults == 25000 * 4096ull + 25000 && h.sums == 4 && !lost);
	CHECK(h.n[UM_ACT_MIGRATION] < 50000);
	/* Buffers that never come back until there are no more of them. */
	fake->records = 200000;
	fake->holds = 63;
	h = take(1000, 1, 0, &lost);
	CHECK(lost > 0 && lost + h.records[UM_ACT_MIGRATION] * 2 == 200000);
}

static void is_refused(void)
{
	static const struct {
		int code;
		const char *text;
	} codes[] = {{28, "this platform has no counters"},  {29, "the device has no counters"},
		     {30, "CUDA_VISIBLE_DEVICES"},	     {31, "not supported under MPS"},
		     {33, "not supported on a virtual GPU"}, {35, "NVreg_RestrictProfilingToAdminUsers"},
		     {39, "a profiler is attached already"}, {41, "not supported with confidential computing"},
		     {45, "not supported under WSL"},	     {999, "CUPTI does not start (CUPTI error 999)"}};
	uint64_t lost;

	load();
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		for (size_t k = 0; k < 3; k++) {
			int *call = k == 0 ? &fake->callbacks : k == 1 ? &fake->configure : &fake->enable;

			*call = codes[i].code;
			CHECK(open_at(1) == -ENOTSUP && strstr(why, codes[i].text) && !strchr(why, '\n'));
			*call = 0;
		}
	CHECK(open_at(1) == 0 && open_at(1) == -EBUSY && strstr(why, "another context"));
	fake->flush = 999;
	fake->records = 4;
	CHECK(take(1, 0, 999, &lost).bytes == 2 * 4096); /* what was told all the same */
	fake->flush = 0;
	fake->timestamp = 999;
	take(1, 1, 0, &lost);
}

static void other_version(void)
{
	load();
	fake->version = 220000;
	CHECK(open_at(1) == -ENOTSUP && strstr(why, "has version 220000"));
	CHECK(open_at(1) == -ENOTSUP && strstr(why, "has version 220000"));
}

static void in_a_child(void)
{
	uint64_t lost;
	pid_t child;
	int status = 1;

	load();
	CHECK(open_at(1) == 0);
	fake->records = 400;
	child = fork();
	if (!child) {
		CHECK(!take(1, 1, 0, &lost).bytes && fake->enabled == 1);
		CHECK(open_at(1) == -EBUSY && strstr(why, "forked"));
		_exit(failed);
	}
	waitpid(child, &status, 0);
	CHECK(!status);
	CHECK(take(1, 1, 0, &lost).n[UM_ACT_MIGRATION] == 200);
}

static void run(void (*test)(void), const char *name)
{
	pid_t child;
	int status = 1;

	fflush(stdout);
	child = fork();
	if (!child) {
		test();
		fflush(stdout);
		_exit(failed);
	}
	waitpid(child, &status, 0);
	ok(status == 0, "%s", name);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "once") == 0) {
		is_delivered();
		return failed;
	}
	run(is_delivered, "records are told, by our clock, once; who has closed them can open them again");
	run(too_many, "more than fit are known in sum, to the byte; for what there is no buffer is counted");
	run(is_refused, "each reason not to count is one line; one context has them; a flush that fails is told");
	run(other_version, "a CUPTI of another version is not asked");
	run(in_a_child, "a forked child has nothing, and leaves its parent's alone");
	return tap_done();
}
