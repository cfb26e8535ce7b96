/* SPDX-License-Identifier: Apache-2.0
 *
 * sharing.c - iterations of a program beside others on its device: sharing N OTHERS. Prints the mean processor time of
 * umadv_iter, and of all else. OTHERS: how many contexts use the device, too; -1: the context takes no part.
 */
#include "umadvise.h"

#include "arbiter/arbiter.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

#define OPS 256
#define TENSORS 8
#define MIB ((size_t)1 << 20)

static double now_us(void)
{
	return (double)um_clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e3;
}

static int join(struct um_arbiter *others, int n)
{
	const struct um_arbiter_claim claim = {1, 1, 1};
	int err = 0;

	for (int i = 0; i < n && !err; i++)
		err = um_arbiter_open(&others[i], "simulated-bench", 512, &claim);
	for (int i = 0; i < n && !err; i++)
		err = um_arbiter_look(&others[i], &claim);
	return err;
}

static int iterate(struct umadv *adv, void **x)
{
	int err = 0;

	for (int i = 0; i < OPS && !err; i++)
		err = umadv_op(adv, NULL, "op",
			       UMADV_USES(UMADV_READ(x[i % TENSORS]), UMADV_UPDATE(x[(i + 1) % TENSORS])));
	return err;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100, n_others = argc > 2 ? atoi(argv[2]) : 0, err;
	struct um_arbiter others[UM_ARBITER_MOST];
	struct umadv_options o;
	struct umadv *adv;
	void *x[TENSORS];
	double in_iter = 0, begin = 0, at;

	setenv("UMADVISE_SHARE_DEVICE", "bench", 1);
	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 1024 * MIB;
	o.share = n_others < 0 ? UMADV_SHARE_OFF : 0;
	err = join(others, n_others);
	if (!err)
		err = umadv_open(&adv, &o);
	for (int i = 0; i < TENSORS && !err; i++)
		err = umadv_alloc(adv, &x[i], 8 * MIB, "x", UMADV_PARAM);
	for (int i = 0; i < 10 + n && !err; i++) {
		if (i == 10) {
			in_iter = 0;
			begin = now_us();
		}
		at = now_us();
		err = umadv_iter(adv, NULL);
		in_iter += now_us() - at;
		if (!err)
			err = iterate(adv, x);
	}
	if (err) {
		fprintf(stderr, "sharing: %s\n", umadv_strerror(err));
		return 1;
	}
	printf("%.2f us in umadv_iter, %.2f us in %d ops\n", in_iter / n, (now_us() - begin - in_iter) / n, OPS);
	umadv_close(adv);
	for (int i = 0; i < n_others; i++)
		um_arbiter_close(&others[i]);
	return 0;
}
