/* SPDX-License-Identifier: Apache-2.0
 *
 * oppath.c - the op path, for callgrind: oppath N [late] learns, and replays N more iterations. The difference of two
 * runs' instruction counts is what the iterations cost. Helper threads run between two ops, or, `late`, only between
 * two iterations: then ops wait for them.
 */
#include "../tests/runtime/oppath_app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int late;

/* The helper threads do all that is due, as beside a program whose ops take their time. */
static void let_them_work(struct umadv *adv)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct timespec nap = {0, 100000};
	unsigned long long before = 0, done = 0;

	do {
		before = done;
		nanosleep(&nap, NULL);
		umadv_stats_get(adv, &s);
		done = s.hints_issued + s.hints_refused + s.hints_dropped;
	} while (done != before && done != um_context_hints(adv));
}

/* An op that takes this long leaves the link time for its prefetches, which then begin before the op is announced. */
#define OP_NS 3000000

static int op(const struct app *a, const char *name, const struct umadv_use *uses, size_t n)
{
	const struct umadv_op_info info = {.struct_size = sizeof info, .uses = uses, .n_uses = n, .ns = OP_NS};
	int err = umadv_op_ex(a->adv, NULL, name, &info);

	if (!late)
		let_them_work(a->adv);
	return err;
}

/* The ops of app_ops(). */
static int ops(const struct app *a)
{
	int err = 0;

	for (int i = 0; i < APP_LAYERS && !err; i++)
		err = op(a, "forward", UMADV_USES(UMADV_READ(a->y[i]), UMADV_READ(a->w[i]), UMADV_WRITE(a->y[i + 1])));
	for (int i = APP_LAYERS; i-- > 0 && !err;)
		err = op(a, "backward",
			 UMADV_USES(UMADV_READ(a->y[i + 1]), UMADV_UPDATE(a->w[i]), UMADV_READ(a->y[i])));
	return err;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	struct app a;
	int err;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	late = argc > 2 && strcmp(argv[2], "late") == 0;
	err = app_open(&a);

	for (int i = 0; i < 5 + n && !err; i++) {
		err = umadv_iter(a.adv, NULL);
		if (!err)
			err = ops(&a);
		if (!err)
			let_them_work(a.adv);
	}
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(a.adv, &s);
	fprintf(stderr, "%d ops an iteration, %llu hints, %llu divergences, %llu waits\n", 2 * APP_LAYERS,
		(unsigned long long)s.hints_issued, (unsigned long long)s.divergences,
		(unsigned long long)s.gates_late);
	umadv_close(a.adv);
	return err != 0;
}
