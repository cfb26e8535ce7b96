/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of a followed plan lie at its places. What does not fit the plan lies elsewhere, apart from all that is
 * alive, and is counted: another size, a place that is still in use.
 */
#include "umadvise.h"

#include "tap.h"

#define MIB (1ull << 20)
#define LAYERS 12
#define BIRTHS (2 * LAYERS)

static size_t odd_bytes; /* more for one activation of this iteration */
static int late; /* a workspace is freed only at the iteration's end */

struct program {
	struct umadv *adv;
	char *w, *y[LAYERS], *kept;
	int overlaps;
};

static int overlap(const char *a, size_t n, const char *b, size_t m)
{
	return a && b && a < b + m && b < a + n;
}

static size_t bytes_of(int i)
{
	return (size_t)(1 + i % 3) * MIB + 4096;
}

/* A birth, compared with all that is alive. */
static int bear(struct program *p, char **ptr, size_t bytes, const char *name)
{
	int err = umadv_alloc(p->adv, (void **)ptr, bytes, name, UMADV_ACT);

	for (int k = 0; k < LAYERS && !err; k++)
		p->overlaps += &p->y[k] != ptr && overlap(p->y[k], bytes_of(k), *ptr, bytes);
	p->overlaps += overlap(p->kept, MIB, *ptr, bytes);
	return err;
}

static int run(struct program *p, const char *name, const struct umadv_use *uses, size_t n)
{
	int err = umadv_op(p->adv, NULL, name, uses, n);

	return err ? err : umadv_sim_run(p->adv, NULL, NULL, NULL);
}

static int forward(struct program *p)
{
	int err = 0;

	for (int i = 0; i < LAYERS && !err; i++) {
		err = bear(p, &p->y[i], bytes_of(i) + (i == 5 ? odd_bytes : 0), "y");
		if (!err)
			err = run(p, "forward", UMADV_USES(UMADV_READ(p->w), UMADV_WRITE_RANGE(p->y[i], bytes_of(i))));
	}
	return err;
}

static int backward(struct program *p)
{
	int err = 0;

	for (int i = LAYERS; i-- > 0 && !err;) {
		char *work;

		err = bear(p, &work, MIB, "work");
		if (!err)
			err = run(p, "backward",
				  UMADV_USES(UMADV_UPDATE(p->w), UMADV_READ_RANGE(p->y[i], bytes_of(i)),
					     UMADV_WRITE(work)));
		if (late && i == LAYERS / 2)
			p->kept = work;
		else if (!err)
			err = umadv_free(p->adv, work);
		if (!err)
			err = umadv_free(p->adv, p->y[i]);
		p->y[i] = NULL;
	}
	return err;
}

static int iterate(struct program *p)
{
	int err = umadv_iter(p->adv, NULL);

	if (!err)
		err = forward(p);
	if (!err)
		err = backward(p);
	if (!err)
		err = umadv_free(p->adv, p->kept);
	p->kept = NULL;
	return err;
}

/* Births of one iteration at their planned addresses, and elsewhere. */
static void count(struct program *p, uint64_t *planned, uint64_t *elsewhere)
{
	struct umadv_stats a = {.struct_size = sizeof a}, b = a;

	umadv_stats_get(p->adv, &a);
	if (iterate(p))
		tap_bail("an iteration failed");
	umadv_stats_get(p->adv, &b);
	*planned = b.allocs_planned - a.allocs_planned;
	*elsewhere = b.allocs_elsewhere - a.allocs_elsewhere;
}

int main(void)
{
	struct umadv_options o;
	struct program p = {0};
	uint64_t planned, elsewhere;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = 16 * MIB;
	if (umadv_open(&p.adv, &o) || umadv_alloc(p.adv, (void **)&p.w, MIB, "w", UMADV_PARAM))
		tap_bail("no simulated device");
	count(&p, &planned, &elsewhere);
	is_u64(planned + elsewhere, 0, "without a plan no tensor is counted");
	for (int i = 0; i < 3; i++)
		count(&p, &planned, &elsewhere);
	is_u64(planned, BIRTHS, "under a plan each tensor is at its planned address");
	is_u64(elsewhere, 0, "none is elsewhere");

	odd_bytes = MIB;
	count(&p, &planned, &elsewhere);
	is_u64(planned, 5, "tensors before one of another size are at their planned addresses");
	is_u64(elsewhere, 1, "the tensor of another size is elsewhere");
	odd_bytes = 0;
	count(&p, &planned, &elsewhere);
	count(&p, &planned, &elsewhere);
	is_u64(planned, BIRTHS, "two iterations later all are at their planned addresses again");

	late = 1;
	count(&p, &planned, &elsewhere);
	late = 0;
	ok(elsewhere > 0 && planned + elsewhere == BIRTHS, "tensors whose address is in use are elsewhere (%d of %d)",
	   (int)elsewhere, BIRTHS);
	is_int(p.overlaps, 0, "no tensor overlaps one that is alive");
	for (int i = 0; i < 3; i++)
		count(&p, &planned, &elsewhere);
	is_u64(planned, BIRTHS, "later all are at planned addresses again");
	umadv_close(p.adv);
	return tap_done();
}
