/* SPDX-License-Identifier: Apache-2.0
 *
 * oppath.c - one iteration of the op path, for callgrind: argument "learn" sets up and learns only, "replay N" replays
 * N more iterations. The difference of two runs' instruction counts is what the iterations cost.
 */
#include "../tests/runtime/oppath_app.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The helper threads keep up, as beside a program whose ops take their time. */
static void let_them_work(struct umadv *adv)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	struct timespec nap = {0, 100000};

	while (umadv_stats_get(adv, &s) == 0 &&
	       s.hints_issued + s.hints_refused + s.hints_dropped < um_context_hints(adv))
		nanosleep(&nap, NULL);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	struct app a;
	int err = app_open(&a);

	for (int i = 0; i < 5 + n && !err; i++) {
		err = umadv_iter(a.adv, NULL);
		if (!err)
			err = app_ops(&a);
		if (!err)
			let_them_work(a.adv);
	}
	struct umadv_stats s = {.struct_size = sizeof s};

	umadv_stats_get(a.adv, &s);
	fprintf(stderr, "%d ops an iteration, %llu hints, %llu divergences\n", 2 * APP_LAYERS,
		(unsigned long long)s.hints_issued, (unsigned long long)s.divergences);
	umadv_close(a.adv);
	return err != 0;
}
