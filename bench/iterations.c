/* SPDX-License-Identifier: Apache-2.0
 *
 * iterations.c - plays N iterations of a kind over the null device: iterations KIND N. Prints the heap in use after a
 * thirtieth, a third and all of them, the plans begun, the mean and longest processor time of umadv_iter, and that of
 * planning.
 *
 * same: all are alike. buckets: one of four sizes, in no order. drift: three are alike, then another three. distinct:
 * no two are alike.
 */
#include "../tests/runtime/oppath_app.h"

#include "base/clock.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP 7919 /* primes, so that sizes differ in any MOST iterations */
#define MOST 30011

static uint64_t bytes_of(const char *kind, unsigned i)
{
	if (strcmp(kind, "buckets") == 0)
		return APP_BYTES / 4 * (1 + (i * STEP % MOST) % 4);
	if (strcmp(kind, "drift") == 0)
		i /= 3;
	else if (strcmp(kind, "distinct") != 0)
		return APP_BYTES;
	return APP_BYTES / 2 + (uint64_t)i * STEP % MOST * 64;
}

/* Processor time of the program's thread. */
static double now_us(void)
{
	return (double)um_clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e3;
}

/* Activations are born in the forward pass and freed in the backward pass. */
static int pass(struct app *a, uint64_t bytes)
{
	int err = umadv_alloc(a->adv, &a->y[0], bytes, "y", UMADV_ACT);

	for (int i = 0; i < APP_LAYERS && !err; i++) {
		err = umadv_alloc(a->adv, &a->y[i + 1], bytes, "y", UMADV_ACT);
		if (!err)
			err = umadv_op(a->adv, NULL, "forward",
				       UMADV_USES(UMADV_READ(a->y[i]), UMADV_READ(a->w[i]), UMADV_WRITE(a->y[i + 1])));
	}
	for (int i = APP_LAYERS; i-- > 0 && !err;) {
		err = umadv_op(a->adv, NULL, "backward",
			       UMADV_USES(UMADV_READ(a->y[i + 1]), UMADV_UPDATE(a->w[i]), UMADV_READ(a->y[i])));
		if (!err)
			err = umadv_free(a->adv, a->y[i + 1]);
	}
	return err ? err : umadv_free(a->adv, a->y[0]);
}

int main(int argc, char **argv)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	double begin, spent = 0, most = 0;
	uint64_t heap[3] = {0};
	struct app a;
	int err = n ? app_open(&a) : 1;

	if (err) {
		fprintf(stderr, "usage: iterations same|buckets|drift|distinct N\n");
		return 2;
	}
	for (int i = 0; i <= APP_LAYERS && !err; i++)
		err = umadv_free(a.adv, a.y[i]);
	for (unsigned i = 0; i < n && !err; i++) {
		begin = now_us();
		err = umadv_iter(a.adv, NULL);
		begin = now_us() - begin;
		spent += begin;
		most = begin > most ? begin : most;
		if (!err)
			err = pass(&a, bytes_of(argv[1], i));
		if (i + 1 == n / 30 || i + 1 == n / 3 || i + 1 == n)
			heap[i + 1 == n ? 2 : i + 1 == n / 3] = mallinfo2().uordblks;
	}
	umadv_stats_get(a.adv, &s);
	printf("%s %.1f %.1f %.1f %llu %.1f %.1f %.1f\n", argv[1], (double)heap[0] / 1024, (double)heap[1] / 1024,
	       (double)heap[2] / 1024, (unsigned long long)s.plans, spent / n, most, (double)s.planning_ns / 1e6);
	umadv_close(a.adv);
	return err != 0;
}
