/* SPDX-License-Identifier: Apache-2.0
 *
 * The predictor where the program does not go on as was expected: iterations of several kinds that begin alike, and a
 * plan that is left.
 */
#include "replay/predictor.h"

#include "tap.h"

#define MIB (1ull << 20)
#define LAYERS 24 /* more than ops that may be dropped or exchanged */

static struct um_predictor p;
static uint64_t n_born;
static struct um_tensor w[LAYERS], m[LAYERS], sum; /* `sum`: of an iteration */

static void born(struct um_tensor *t)
{
	n_born++;
	*t = (struct um_tensor){.id = {n_born}, .addr = n_born * 64 * MIB, .bytes = MIB};
}

static void op(const char *name, struct um_tensor *t)
{
	struct um_use use = {t->id, t, 0, t->bytes, t->bytes, UM_UPDATE};
	struct um_predictor_feed feed = {.kind = um_predictor_kind(name, 0, 1), .ns = 1000, .uses = &use, .n_uses = 1};

	if (um_predictor_op(&p, &feed))
		tap_bail("no memory");
}

static void ops(const char *name, struct um_tensor *t)
{
	for (int i = 0; i < LAYERS; i++)
		op(name, &t[i]);
}

static void begin(void)
{
	if (um_predictor_init(&p))
		tap_bail("no memory");
	for (int i = 0; i < LAYERS; i++) {
		born(&w[i]);
		born(&m[i]);
	}
}

/* Passes over the weights, each of which adds to the sum. Ops have the number of the pass in their names. */
static void pass(int number, int layers)
{
	char name[16];

	snprintf(name, sizeof name, "layer %d", number);
	for (int i = 0; i < layers; i++)
		op(name, &w[i]);
}

static void passes(int from, int to)
{
	for (int i = from; i < to; i++) {
		pass(i, LAYERS);
		op("add", &sum);
	}
}

/* An iteration: passes, then the update. */
static void iteration(int n)
{
	born(&sum);
	passes(0, n);
	ops("update", m);
	um_predictor_free(&p, &sum);
	sum.id.v = 0;
}

/* Ops until the next use of the tensor, as the match has moved; 0: not known better. */
static uint64_t rematched(const struct um_tensor *t, uint64_t until)
{
	uint64_t next = um_predictor_rematch(&p, t->predicted, p.n_ops + until).op;

	return next ? next - p.n_ops : 0;
}

static void next_uses(void)
{
	begin();
	for (int i = 0; i < 3; i++)
		iteration(4);
	for (int i = 0; i < 3; i++)
		iteration(2);
	born(&sum);
	passes(0, 2);
	pass(2, 2);
	ok(p.far, "the match moves far where another pass follows in place of the update");
	is_u64(rematched(&w[LAYERS - 1], UINT32_MAX), LAYERS - 2, "a weight is expected in the pass that has begun");
	is_u64(rematched(&sum, UINT32_MAX), LAYERS - 1,
	       "a tensor of this iteration is expected where the one was used that took its part");
	is_u64(rematched(&w[LAYERS - 2], 0), 0, "what was not expected up to the given op stays as it is");
	um_predictor_fini(&p);
}

/* Iterations, of which the third one reads something else between two passes; others under a plan, and one that leaves
 * it. */
static void left_out(void)
{
	struct um_tensor before, other;

	begin();
	born(&before);
	born(&other);
	op("load", &before);
	iteration(2);
	iteration(2);
	born(&sum);
	passes(0, 1);
	op("read", &other);
	passes(1, 2);
	ops("update", m);
	um_predictor_skip(&p);
	passes(0, 1);
	ok(um_predictor_ahead(&p, 2 * LAYERS + 2) != NULL, "the predictor expects the ops before a gap");
	ok(um_predictor_ahead(&p, 2 * LAYERS + 3) == NULL, "the predictor expects no op after a gap");
	is_u64(um_predictor_rematch(&p, other.predicted, UM_PREDICTOR_UNKNOWN).op, p.n_ops + 1,
	       "where a plan is left, a tensor is expected at its first use after the match");
	is_u64(um_predictor_rematch(&p, before.predicted, UM_PREDICTOR_UNKNOWN).op, UM_PREDICTOR_UNKNOWN,
	       "what no op used after the match is not expected");
	um_predictor_fini(&p);
}

/* The match moves far to where more passes followed. Two tensors are expected: one that an op used there, too, and one
 * that was used before that only. */
static void without_gap(void)
{
	struct um_tensor now_and_then, earlier;

	begin();
	born(&now_and_then);
	born(&earlier);
	for (int i = 0; i < 3; i++) {
		born(&sum);
		passes(0, 4);
		op("seldom", i < 2 ? &earlier : &now_and_then);
		ops("update", m);
		um_predictor_free(&p, &sum);
		sum.id.v = 0;
	}
	for (int i = 0; i < 3; i++)
		iteration(2);
	born(&sum);
	passes(0, 1);
	op("odd", &now_and_then);
	passes(1, 2);
	pass(2, 2);
	ok(p.far, "the match moves far after an odd op, too");
	is_u64(rematched(&now_and_then, UINT32_MAX), 2 * LAYERS + 1,
	       "a tensor whose latest use was odd is expected at its first use after the match");
	is_u64(rematched(&earlier, UINT32_MAX), 0, "one that no op used after the match stays as it is");
	um_predictor_fini(&p);
}

static struct um_tensor gradient[2];
static unsigned n_gradients;

/* An iteration of `n` passes, after `freed` of which the gradient of the one before is freed. */
static void gradient_iteration(int n, int freed)
{
	struct um_tensor *old = &gradient[n_gradients % 2], *new = &gradient[++n_gradients % 2];

	born(&sum);
	passes(0, freed);
	if (old->id.v)
		um_predictor_free(&p, old);
	old->id.v = 0;
	passes(freed, n);
	born(new);
	op("backward", new);
	ops("update", m);
	um_predictor_free(&p, &sum);
	sum.id.v = 0;
}

/* What is expected of a gradient that was not freed after one of two passes, as more follow. In iterations of four
 * passes, it was freed after `freed`. */
static struct um_predicted_next next_of_gradient(int freed)
{
	struct um_predicted_next next;

	begin();
	memset(gradient, 0, sizeof gradient);
	for (int i = 0; i < 3; i++)
		gradient_iteration(4, freed);
	for (int i = 0; i < 3; i++)
		gradient_iteration(2, 1);
	born(&sum);
	passes(0, 2);
	pass(2, 2);
	next = um_predictor_rematch(&p, gradient[n_gradients % 2].predicted, p.n_ops + UINT32_MAX);
	next.op -= next.op ? p.n_ops : 0;
	um_predictor_fini(&p);
	return next;
}

static void freed(void)
{
	struct um_predicted_next next = next_of_gradient(3);

	ok(next.freed, "a tensor whose counterpart was freed after the match is expected to be freed");
	is_u64(next.op, LAYERS - 1, "after the same op");
	is_u64(next_of_gradient(1).op, 0, "one whose counterpart was freed before the match stays as it is");
}

/* Returns the number of its first op, `*match`: that of the op with which it is matched. */
static uint64_t phase_iteration(const char *name, struct um_tensor *t, uint64_t *match)
{
	um_predictor_begin(&p);
	ops(name, t);
	*match = p.match - (LAYERS - 1);
	return p.n_ops - (LAYERS - 1);
}

/* Three iterations of either phase, in turn. */
static void phases(void)
{
	uint64_t train[5], product[3], match;

	begin();
	for (int i = 0; i < 3; i++)
		train[i] = phase_iteration("train", w, &match);
	for (int i = 0; i < 3; i++)
		product[i] = phase_iteration("product", m, &match);
	train[3] = phase_iteration("train", w, &match);
	is_u64(match, train[2], "after another phase for the first time, a phase is matched with its latest iteration");
	train[4] = phase_iteration("train", w, &match);
	is_u64(match, train[3], "a phase that goes on is matched with its latest iteration");
	phase_iteration("train", w, &match);
	for (int i = 0; i < 3; i++) {
		phase_iteration("product", m, &match);
		is_u64(match, product[i], "a phase that comes again is matched from its beginning: iteration %d", i);
	}
	phase_iteration("train", w, &match);
	is_u64(match, train[3], "the next phase is expected after it");
	um_predictor_fini(&p);
}

int main(void)
{
	next_uses();
	without_gap();
	freed();
	phases();
	left_out();
	return tap_done();
}
