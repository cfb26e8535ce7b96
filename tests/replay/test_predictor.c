/* SPDX-License-Identifier: Apache-2.0
 *
 * The predictor: sequences of ops worked by hand, and programs that it cannot learn from.
 */
#include "replay/predictor.h"

#include "fixture/random.h"
#include "tap.h"

#define MIB (1ull << 20)
#define NS 1000 /* of each op */
#define NO_MORE ((struct um_tensor *)NULL)
#define USED(...) ((struct um_tensor *[]){__VA_ARGS__, NO_MORE})

static struct um_predictor p;
static uint64_t n_born, live; /* `live`: bytes */
static uint32_t access = UM_UPDATE; /* of ops */

static void born(struct um_tensor *t, uint64_t bytes)
{
	n_born++;
	live += bytes;
	*t = (struct um_tensor){.id = {n_born}, .addr = n_born * 64 * MIB, .bytes = bytes};
}

static void died(struct um_tensor *t)
{
	um_predictor_free(&p, t);
	t->id.v = 0;
	live -= t->bytes;
}

/* An op that uses the whole of each tensor of a list. */
static void op(const char *name, struct um_tensor **list)
{
	struct um_predictor_feed feed = {.ns = NS, .live = live};
	struct um_use uses[8];

	for (; list[feed.n_uses]; feed.n_uses++) {
		struct um_tensor *t = list[feed.n_uses];

		uses[feed.n_uses] = (struct um_use){t->id, t, 0, t->bytes, t->bytes, access};
	}
	feed.kind = um_predictor_kind(name, 0, feed.n_uses);
	feed.uses = uses;
	if (um_predictor_op(&p, &feed))
		tap_bail("no memory");
}

static void begin(void)
{
	live = 0;
	if (um_predictor_init(&p))
		tap_bail("no memory");
}

/* Use number `k` of the op after `i` ops. */
static struct um_predicted_use ahead(uint64_t i, uint32_t k)
{
	const struct um_predictor_op *next = um_predictor_ahead(&p, i);
	struct um_predicted_use u = {0};

	if (next && k < next->n_uses && !um_predictor_use_of(&p, next, k, &u))
		u.tensor = NULL;
	return u;
}

static int is_ahead(uint64_t i, uint32_t k, const struct um_tensor *t)
{
	struct um_predicted_use u = ahead(i, k);

	return u.tensor == t && u.sure;
}

static uint64_t ops_until(struct um_predicted_next next, int freed)
{
	return next.op < UM_PREDICTOR_UNKNOWN && next.freed == freed ? next.op - p.n_ops : UM_PREDICTOR_UNKNOWN;
}

/* Ops until the tensor's next use, or UM_PREDICTOR_UNKNOWN. */
static uint64_t distance(const struct um_tensor *t)
{
	return ops_until(um_predictor_next(&p, t), 0);
}

static void repeats(void)
{
	struct um_tensor a, b, c;

	begin();
	born(&a, MIB);
	born(&b, MIB);
	born(&c, MIB);
	op("a", USED(&a));
	ok(!um_predictor_ahead(&p, 1), "after the first op no other one is expected");
	is_u64(distance(&a), UM_PREDICTOR_UNKNOWN, "the next use of a new tensor is not known");
	op("b", USED(&b));
	op("c", USED(&c));
	op("a", USED(&a));
	ok(is_ahead(1, 0, &b) && is_ahead(2, 0, &c), "a repeated sequence is expected with its tensors");
	ok(is_ahead(3, 0, &a) && !um_predictor_ahead(&p, 4), "as far as the latest op, and no further");
	is_u64(um_predictor_ahead(&p, 1)->ns, 1000, "an expected op takes as long as the one that it was matched with");
	is_u64(distance(&a), 3, "a tensor is expected again after as many ops as the last time");
	um_predictor_fini(&p);
}

static void overwrites(void)
{
	struct um_tensor a, b;

	begin();
	born(&a, MIB);
	born(&b, MIB);
	for (int i = 0; i < 2; i++) {
		op("a", USED(&a));
		access = UM_WRITE;
		op("b", USED(&b));
		access = UM_UPDATE;
	}
	ok(!ahead(1, 0).overwrites, "an op that updated its tensor is expected to do so again");
	ok(ahead(2, 0).overwrites, "an op that overwrote its tensor is expected to do so again");
	um_predictor_fini(&p);
}

static void distances(void)
{
	struct um_tensor w, x, y;

	begin();
	born(&w, MIB);
	born(&x, MIB);
	born(&y, MIB);
	for (int i = 0; i < 3; i++) {
		op("a", USED(&w, &y));
		if (!i)
			died(&y);
		if (i == 1)
			is_u64(ops_until(um_predictor_next(&p, &y), 1), 1,
			       "a tensor whose predecessor died after this op is expected to die after the next");
		if (i == 2)
			is_u64(distance(&w), 2, "the nearest of two next uses is the distance");
		op("b", USED(&x));
		op("c", USED(&w));
		if (i == 2)
			is_u64(distance(&w), 1, "a tensor that the next op uses is at distance 1");
		if (!i)
			born(&y, MIB);
	}
	um_predictor_fini(&p);
	begin();
	born(&w, MIB);
	born(&x, MIB);
	op("a", USED(&w));
	op("a", USED(&x));
	is_u64(distance(&x), UM_PREDICTOR_UNKNOWN,
	       "the next use is not known if the tensor before lives and was not used again");
	um_predictor_fini(&p);
}

/* Activations that are born and freed in each iteration. */
/* A tensor of each iteration that is born before the one of the iteration before dies, as gradients are: its first use
 * is always of another tensor than expected. */
static void overlapping(void)
{
	struct um_tensor w, g[2];
	uint64_t next = 0;

	begin();
	born(&w, MIB);
	for (int i = 0; i < 4; i++) {
		born(&g[i % 2], 3 * MIB);
		op("backward", USED(&g[i % 2]));
		next = distance(&g[i % 2]);
		if (i)
			died(&g[(i + 1) % 2]);
		op("other", USED(&w));
		op("optimizer", USED(&g[i % 2]));
	}
	is_u64(next, 2,
	       "the next use of a tensor is expected where its predecessor's was, though another tensor was "
	       "expected in this use");
	um_predictor_fini(&p);
}

/* Two kinds of iterations of equal ops, whose activations differ in size, take turns. */
static void sizes(void)
{
	struct um_tensor w[2], act;
	const uint64_t kinds[] = {0, 0, 1, 1, 0, 1};
	int right = 0;

	begin();
	born(&w[0], MIB);
	born(&w[1], MIB);
	for (int n = 0; n < 6; n++) {
		um_predictor_begin(&p);
		born(&act, (2 + kinds[n]) * MIB);
		op("forward", USED(&act));
		if (n >= 3)
			right += ahead(1, 0).tensor == &w[kinds[n]];
		op("weight", USED(&w[kinds[n]]));
		op("other", USED(&w[kinds[n]]));
		died(&act);
	}
	ok(!um_predictor_is_later(&p, p.n_ops) && um_predictor_is_later(&p, p.n_ops + 1),
	   "after the last op of an iteration come those of a later one");
	is_int(right, 3, "an iteration is matched with the latest one that began with the same sizes");
	um_predictor_fini(&p);
}

/* Each iteration bears three tensors, and uses the first of them again before it frees them. */
static void live_bytes(void)
{
	struct um_tensor w, x[3];

	begin();
	born(&w, MIB);
	for (int n = 0; n < 2; n++) {
		op("begin", USED(&w));
		if (n)
			break;
		for (int i = 0; i < 3; i++) {
			born(&x[i], (unsigned)(i + 1) * MIB);
			op("forward", USED(&x[i]));
		}
		op("backward", USED(&x[0]));
		for (int i = 0; i < 3; i++)
			died(&x[i]);
		op("end", USED(&w));
	}
	is_u64(um_predictor_peak(&p, 100), 3, "most bytes are live at the first op after the last birth");
	is_u64(um_predictor_peak(&p, 2), 2, "of two ops, at the second");
	is_u64(um_predictor_growth(&p, 3), 6 * MIB, "until the peak, three births add their bytes");
	is_u64(um_predictor_growth(&p, 5), 0, "after the deaths nothing has been added");
	is_u64(um_predictor_until(&p, 4), 3 * NS, "the fourth op begins when the three before it have ended");
	is_u64(um_predictor_until(&p, 1), 0, "the next one begins at once");
	is_u64(um_predictor_unborn(&p, um_predictor_ahead(&p, 1)), MIB, "it uses the bytes of a tensor to be born");
	is_u64(um_predictor_unborn(&p, um_predictor_ahead(&p, 5)), 0, "an op with live tensors uses none to be born");
	um_predictor_fini(&p);
	begin();
	is_u64(um_predictor_peak(&p, 100), 0, "where nothing is predicted there is no peak");
	um_predictor_fini(&p);
}

/* Eight tensors of 1 MiB are used one after the other and then in the opposite order, as activations are. */
static void furthest(void)
{
	struct um_tensor t[8];

	begin();
	for (int i = 0; i < 8; i++)
		born(&t[i], MIB);
	for (int n = 0; n < 2; n++) {
		for (int i = 0; i < 8; i++)
			op("forward", USED(&t[i]));
		for (int i = 8; i > 0; i--)
			op("backward", USED(&t[i - 1]));
	}
	op("forward", USED(&t[0]));
	/* op 33; what is used before the peak after 7 ops, op 40, is used again by ops 41 to 48 */
	is_u64(um_predictor_furthest(&p, 7, 1, MIB), 48, "the furthest of the next uses after the peak is found");
	is_u64(um_predictor_furthest(&p, 7, 3 * MIB, MIB), 46, "of the three furthest ones, the first");
	is_u64(um_predictor_furthest(&p, 7, 100 * MIB, MIB), 41, "of more than there are, the first of all");
	/* a quarter of a tensor in the time of an op: of those of ops 34 and 35 three quarters are too late, and with
	 * that of op 36, one and three quarters */
	is_u64(um_predictor_furthest(&p, 7, 3 * MIB, 0.25 * MIB / NS), 44,
	       "what the link cannot carry until the peak does not count");
	um_predictor_note_next(&p, &t[3], 35);
	is_u64(distance(&t[3]), 2, "a use that is noted is the next one");
	um_predictor_note_next(&p, &t[3], 38);
	is_u64(distance(&t[3]), 2, "a later one does not replace it");
	um_predictor_fini(&p);
}

static void freed(void)
{
	struct um_tensor w, act[3], grad[3];

	begin();
	born(&w, MIB);
	for (int i = 0; i < 3; i++) {
		born(&act[i], (unsigned)(i + 1) * MIB);
		op("forward", USED(&w, &act[i]));
		if (i) {
			ok(ahead(1, 0).tensor == &act[i], "a freed tensor is expected as the one that takes its part");
			is_u64(ahead(1, 0).bytes, act[i].bytes, "and with the size of that one");
			ok(!ahead(1, 1).tensor, "a tensor that is not born yet is not expected");
			ok(is_ahead(2, 0, &w), "a tensor that lives on is expected itself");
		}
		born(&grad[i], 2 * MIB);
		op("backward", USED(&act[i], &grad[i]));
		op("update", USED(&w, &grad[i]));
		died(&act[i]);
		died(&grad[i]);
	}
	um_predictor_fini(&p);
}

/* A range of a tensor stays within a smaller successor. */
static void ranges(void)
{
	struct um_tensor t[2];

	begin();
	for (int i = 0; i < 2; i++) {
		struct um_use use = {.off = MIB, .bytes = 1, .access = UM_READ};

		born(&t[i], i ? 2 * MIB : 8 * MIB);
		use.tensor = &t[i];
		for (uint64_t kind = 1; kind <= 2 - (uint64_t)i; kind++) {
			struct um_predictor_feed feed = {.kind = kind, .ns = 1, .uses = &use, .n_uses = 1};

			if (um_predictor_op(&p, &feed))
				tap_bail("no memory");
			use.bytes = use.touched = 3 * MIB;
		}
		if (!i)
			died(&t[i]);
	}
	struct um_predicted_use u = ahead(1, 0);

	ok(u.tensor == &t[1] && u.off == MIB && u.bytes == MIB, "an expected range ends with its tensor");
	um_predictor_fini(&p);
}

/* A tensor of which each op of an iteration uses another half, and then all of it. */
static void parts(void)
{
	struct um_predicted_next next[3];
	struct um_tensor t;

	begin();
	born(&t, 8 * MIB);
	for (int i = 0; i < 3; i++)
		for (uint64_t k = 0; k < 3; k++) {
			struct um_use use = {t.id, &t, k == 1 ? 4 * MIB : 0, (k == 2 ? 8 : 4) * MIB, 8 * MIB, UM_READ};
			struct um_predictor_feed feed = {.kind = 1 + k, .ns = 1, .uses = &use, .n_uses = 1};

			if (um_predictor_op(&p, &feed))
				tap_bail("no memory");
			next[k] = um_predictor_next_of_part(&p, 0);
			next[k].op -= p.n_ops;
		}
	is_u64(next[0].op, 2, "a part is expected again where that part is used, not the rest of its tensor");
	is_u64(next[1].op, 1, "so is the other part");
	is_u64(next[2].op, 1, "a whole tensor is expected again where its first part is used");
	um_predictor_fini(&p);
}

#define EXPERTS 16

/* The first one is chosen every other time. */
static uint32_t choose(uint64_t *seed)
{
	return test_random(seed, 2) ? 1 + test_random(seed, EXPERTS - 1) : 0;
}

static void random_tensors(void)
{
	struct um_tensor router, expert[EXPERTS];
	uint64_t seed = 7, sum[2] = {0}, n[2] = {0};
	int sure = 0, steady = 0;

	begin();
	born(&router, MIB);
	for (int i = 0; i < EXPERTS; i++)
		born(&expert[i], MIB);
	for (int i = 0; i < 400; i++) {
		uint32_t k = choose(&seed);

		op("route", USED(&router));
		if (i >= 100) {
			struct um_predicted_use u = ahead(1, 0);

			sure += u.tensor && u.sure;
			steady += is_ahead(2, 0, &router);
		}
		op("expert", USED(&expert[k]));
		if (i >= 100) {
			sum[k > 0] += distance(&expert[k]);
			n[k > 0]++;
		}
	}
	ok(sure <= 60, "a tensor that is chosen at random is seldom expected for sure (%d of 300)", sure);
	is_int(steady, 300, "tensors that are not chosen at random stay sure beside it");
	ok(sum[0] / n[0] <= 12 && sum[1] / n[1] >= 24 && sum[1] / n[1] < 400,
	   "the next use of a tensor that is chosen at random is as far as its uses are apart on average (%d, %d ops)",
	   (int)(sum[0] / n[0]), (int)(sum[1] / n[1]));
	um_predictor_fini(&p);
}

/* An op, and the four of one of two models. Of those expected after the first op and after each of the others, the
 * models' second ops excepted, since they only tell the models apart: a bit each that is after a fork. */
static uint32_t forks_of(int random)
{
	struct um_tensor w[2][4], first;
	uint64_t seed = 5;
	uint32_t forks = 0;

	begin();
	born(&first, MIB);
	for (int i = 0; i < 8; i++)
		born(&w[i / 4][i % 4], MIB);
	for (int n = 0; n < 60; n++) {
		const int model = random ? (int)test_random(&seed, 2) : n % 2;

		op("first", USED(&first));
		forks |= n >= 30 && um_predictor_is_after_fork(&p, 1);
		for (uint32_t i = 0; i < 4; i++) {
			op("layer", USED(&w[model][i]));
			if (n >= 30 && i > 0 && i < 3 && um_predictor_is_after_fork(&p, 1))
				forks |= 2u << i;
		}
	}
	um_predictor_fini(&p);
	return forks;
}

static void forks(void)
{
	is_u64(forks_of(1), 1, "the ops of a model chosen at random are after a fork until two of them have come");
	is_u64(forks_of(0), 0, "those of models in turn are not");
}

/* Two kinds of iterations with ops of the same kinds: the tensors tell which one it is. */
static void branches(void)
{
	struct um_tensor w[10], x[3], y[3];

	begin();
	for (int i = 0; i < 10; i++)
		born(&w[i], MIB);
	for (int i = 0; i < 3; i++) {
		born(&x[i], MIB);
		born(&y[i], MIB);
	}
	for (int k = 0; k < 8; k++) {
		op("begin", USED(&w[0]));
		for (int i = 0; i < 3; i++)
			op(k % 2 ? "y" : "x", USED(k % 2 ? &y[i] : &x[i]));
	}
	op("begin", USED(&w[0]));
	op("y", USED(&y[0]));
	ok(is_ahead(1, 0, &y[1]) && is_ahead(2, 0, &y[2]), "after a branch, its own ops are expected: by their kinds");
	um_predictor_fini(&p);
	begin();
	for (int k = 0; k < 5; k++) {
		op("begin", USED(&x[0]));
		for (int i = 0; i < 10; i++)
			op("layer", USED(&w[i]));
	}
	op("begin", USED(&x[0]));
	op("layer", USED(&w[6]));
	ok(p.jumped && is_ahead(1, 0, &w[7]) && is_ahead(2, 0, &w[8]),
	   "after a short jump, the ops are expected that followed the last use of the same tensor");
	op("layer", USED(&w[7]));
	ok(!p.jumped, "the op after it follows the match");
	um_predictor_fini(&p);
}

/* Fills a list of tensors and plays `n` iterations that use one after the other. */
static void play_layers(struct um_tensor *w, int layers, int n)
{
	begin();
	for (int i = 0; i < layers; i++)
		born(&w[i], MIB);
	for (int k = 0; k < n * layers; k++)
		op("layer", USED(&w[k % layers]));
}

/* Ops that are dropped, exchanged, or inserted where they never were before. */
static void changed_ops(void)
{
	struct um_tensor w[40];

	play_layers(w, 40, 4);
	op("layer", USED(&w[0]));
	op("layer", USED(&w[3]));
	ok(is_ahead(1, 0, &w[4]), "where two ops are missing, the next one is expected after the one that came");
	op("layer", USED(&w[5]));
	op("layer", USED(&w[4]));
	op("layer", USED(&w[6]));
	ok(is_ahead(1, 0, &w[7]), "where two ops are exchanged, the next one is expected after both");
	um_predictor_fini(&p);
	play_layers(w, 40, 4);
	op("extra", USED(&w[30], &w[20]));
	ok(!p.jumped && is_ahead(1, 0, &w[0]), "a new op changes nothing in what is expected");
	is_u64(distance(&w[30]), 30, "not even of its own tensors");
	op("layer", USED(&w[0]));
	op("extra", USED(&w[10], &w[20]));
	ok(is_ahead(1, 0, &w[1]), "an op that was somewhere else before does not move the expected ones either");
	op("layer", USED(&w[25]));
	op("layer", USED(&w[26]));
	ok(is_ahead(1, 0, &w[27]), "two ops that are in order at another place do");
	is_u64(distance(&w[26]), 40, "a tensor is expected again as long after its use as in the iteration before");
	um_predictor_fini(&p);
}

/* Two buffers swap their parts after each step. */
static void ping_pong(void)
{
	struct um_tensor buffer[2];
	int right = 0;

	begin();
	born(&buffer[0], MIB);
	born(&buffer[1], MIB);
	for (int i = 0; i < 20; i++) {
		struct um_tensor *from = &buffer[i % 2], *to = &buffer[!(i % 2)];

		op("sweep", USED(from, to));
		right += i >= 10 && is_ahead(1, 0, to);
		op("norm", USED(to));
		right += i >= 10 && ahead(1, 0).tensor == to;
	}
	is_int(right, 20, "buffers that swap are expected in their next parts");
	um_predictor_fini(&p);
}

/* Ops of a kind that share a tensor, and have one of their own. */
static void shared_tensor(void)
{
	struct um_tensor shared, own[3], other;
	char name[16];

	begin();
	born(&shared, MIB);
	born(&other, MIB);
	for (int i = 0; i < 3; i++) {
		born(&own[i], MIB);
		op("solve", USED(&own[i], &shared));
	}
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "%d", i);
		op(name, USED(&other));
	}
	op("solve", USED(&own[0], &shared));
	ok(ahead(1, 0).tensor == &own[1],
	   "of ops of a kind, the one that used most of an op's tensors is taken for the same op");
	um_predictor_fini(&p);
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

#define SHAPES 30000

static void shapes(void)
{
	size_t n = 0;

	begin();
	for (int i = 0; i < 4 * SHAPES; i++) {
		struct um_tensor t;
		char name[16];

		snprintf(name, sizeof name, "op%d", i);
		born(&t, MIB + (unsigned)i);
		op(name, USED(&t));
		died(&t);
		if (i == 2 * SHAPES)
			n = p.tensors.cap;
	}
	ok(p.tensors.n <= UM_PREDICTOR_OPS, "no more tensors are kept than ops (%zu)", p.tensors.n);
	is_u64(p.tensors.cap, n, "the memory of %d distinct shapes is that of %d", 4 * SHAPES, 2 * SHAPES);
	ok(p.n_ops + 1 - p.first <= UM_PREDICTOR_OPS, "the oldest ops are forgotten");
	um_predictor_fini(&p);
}

/* The same uses of one tensor, in an op of this kind. */
static void large_op(struct um_use *uses, uint64_t kind, uint32_t n)
{
	struct um_predictor_feed feed = {.kind = kind, .ns = 1000, .uses = uses, .n_uses = n};

	if (um_predictor_op(&p, &feed))
		tap_bail("no memory");
}

static void many_uses(void)
{
	uint32_t most = UM_PREDICTOR_USES / 2;
	struct um_use *uses = calloc(most + 1, sizeof *uses);
	struct um_tensor t;

	if (!uses)
		tap_bail("no memory");
	begin();
	born(&t, (uint64_t)(most + 1) * 4096);
	for (uint32_t i = 0; i <= most; i++)
		uses[i] = (struct um_use){t.id, &t, i * 4096ull, 4096, 4096, UM_READ};
	large_op(uses, 1, most - 1);
	large_op(uses, 2, 1);
	large_op(uses, 1, most - 1);
	ok(is_ahead(1, 0, &t), "an op of %u uses is matched", most - 1);
	for (int i = 0; i < 6; i++)
		large_op(uses, 1, most);
	ok(p.n_uses + 1 - p.ops[p.first % UM_PREDICTOR_OPS].first_use <= UM_PREDICTOR_USES,
	   "ops of many uses push others out");
	large_op(uses, 1, most + 1);
	large_op(uses, 1, most + 1);
	ok(!um_predictor_ahead(&p, 1) && p.first > p.n_ops,
	   "an op of too many uses is not kept, and nothing is expected");
	for (int i = 0; i < 2; i++) {
		large_op(uses, 1, 1);
		large_op(uses, 2, 1);
	}
	ok(is_ahead(1, 0, &t), "ops after that are matched again");
	um_predictor_fini(&p);
	free(uses);
}

int main(void)
{
	repeats();
	overwrites();
	distances();
	overlapping();
	sizes();
	live_bytes();
	furthest();
	freed();
	ranges();
	parts();
	random_tensors();
	forks();
	branches();
	changed_ops();
	ping_pong();
	shared_tensor();
	shapes();
	many_uses();
	return tap_done();
}
