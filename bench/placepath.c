/* SPDX-License-Identifier: Apache-2.0
 *
 * placepath.c - births and frees under a plan, for callgrind: placepath N learns, and replays N more iterations. The
 * difference of two runs' instruction counts is what the iterations cost.
 */
#include "../tests/runtime/oppath_app.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	struct umadv_stats s = {.struct_size = sizeof s};
	struct app a;
	int err;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	err = app_open_with(&a, 1);
	for (int i = 0; i < 5 + n && !err; i++) {
		err = umadv_iter(a.adv, NULL);
		if (!err)
			err = app_births(&a);
	}
	umadv_stats_get(a.adv, &s);
	fprintf(stderr, "%llu births planned, %llu elsewhere\n", (unsigned long long)s.allocs_planned,
		(unsigned long long)s.allocs_elsewhere);
	umadv_close(a.adv);
	return err != 0;
}
