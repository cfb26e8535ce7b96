/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library tells those who listen is what it was told and what it did: workloads are played, and tensors, ops,
 * uses and hints are held against the trace, the calls that the device saw, and each other.
 */
#include "sim/sim.h"
#include "play/player.h"
#include "tap.h"

#include <stdio.h>

#define ITERATIONS 3

struct op {
	int64_t at;
	uint32_t first, n; /* uses */
};

struct span {
	uint64_t address, bytes;
	enum um_activity_access access;
};

static struct received {
	struct um_activity_sink sink;
	UM_VEC(struct op) ops;
	UM_VEC(struct span) uses;
	UM_VEC(struct um_activity) hints;
	UM_VEC(struct span) memory, tensors; /* alive; a tensor's address is 0 once it ended */
	uint64_t births, ends, kernels, calls[2]; /* prefetches, discards */
	unsigned wrong; /* things that do not fit what was told before */
	int64_t last;
} received;

static int inside(const struct span *s, uint64_t address, uint64_t bytes)
{
	return address >= s->address && address + bytes <= s->address + s->bytes;
}

static int known(uint64_t address, uint64_t bytes)
{
	for (size_t i = 0; i < received.memory.n; i++)
		if (inside(&received.memory.at[i], address, bytes))
			return 1;
	return 0;
}

static struct span *tensor_at(uint64_t address)
{
	for (size_t i = received.tensors.n; i--;)
		if (received.tensors.at[i].address == address)
			return &received.tensors.at[i];
	return NULL;
}

static void on_use(const struct um_activity *a)
{
	const struct op *op = a->op < received.ops.n ? &received.ops.at[a->op] : NULL;
	int in_tensor = 0;

	for (size_t i = 0; i < received.tensors.n && !in_tensor; i++)
		in_tensor = inside(&received.tensors.at[i], a->address, a->bytes);
	received.wrong += !op || a->op + 1 != received.ops.n || op->at != a->begin || !in_tensor;
	if (um_vec_push(&received.uses, ((struct span){a->address, a->bytes, a->access})))
		tap_bail("no memory");
	received.ops.at[received.ops.n - 1].n++;
}

static void on_tensor(const struct um_activity *a)
{
	struct span *t = tensor_at(a->address);

	if (a->kind == UM_ACT_TENSOR) {
		received.births++;
		received.wrong += !known(a->address, a->bytes) || t;
		if (um_vec_push(&received.tensors, ((struct span){a->address, a->bytes, 0})))
			tap_bail("no memory");
		return;
	}
	received.ends++;
	received.wrong += !t || t->bytes != a->bytes;
	if (t)
		*t = received.tensors.at[--received.tensors.n];
}

/* The kernel of an op is launched after it was announced, and before the next one is. */
static void on_call(const struct um_activity *a)
{
	received.calls[0] += strncmp(a->name, "cudaMemPrefetchAsync", 20) == 0;
	received.calls[1] += strncmp(a->name, "cudaMemDiscardBatch", 19) == 0;
	if (strncmp(a->name, "cudaLaunch", 10) != 0)
		return;
	received.kernels++;
	received.wrong += received.kernels != received.ops.n || received.ops.at[received.ops.n - 1].at >= a->begin;
}

static int listen(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	if (a->kind == UM_ACT_TENSOR || a->kind == UM_ACT_TENSOR_END || a->kind == UM_ACT_OP) {
		received.wrong += a->begin <= received.last || a->process != 1 || a->thread != 1;
		received.last = a->begin;
	}
	if (a->kind == UM_ACT_ALLOC && um_vec_push(&received.memory, ((struct span){a->address, a->bytes, 0})))
		tap_bail("no memory");
	if (a->kind == UM_ACT_TENSOR || a->kind == UM_ACT_TENSOR_END)
		on_tensor(a);
	if (a->kind == UM_ACT_CALL)
		on_call(a);
	if (a->kind == UM_ACT_OP) {
		received.wrong += a->op != received.ops.n;
		if (um_vec_push(&received.ops, ((struct op){a->begin, (uint32_t)received.uses.n, 0})))
			tap_bail("no memory");
	}
	if (a->kind == UM_ACT_USE)
		on_use(a);
	if (a->kind == UM_ACT_HINT && um_vec_push(&received.hints, *a))
		tap_bail("no memory");
	return 0;
}

/* What a prefetch brings is used by the op that it is for, unless the program left the plan before that op. */
static int serves(const struct um_activity *h)
{
	const struct op *op = &received.ops.at[h->op];

	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		const struct span *s = &received.uses.at[i];

		/* whole blocks come */
		if (s->address / UM_BLOCK_BYTES <= (h->address + h->bytes - 1) / UM_BLOCK_BYTES &&
		    (s->address + s->bytes - 1) / UM_BLOCK_BYTES >= h->address / UM_BLOCK_BYTES)
			return 1;
	}
	return 0;
}

static void check_hints(const char *what, int expected)
{
	uint64_t n[UM_HINT_ADVISE + 1] = {0}, aimed = 0, missed = 0, unknown = 0, refused = 0;
	unsigned wrong = 0;

	for (size_t i = 0; i < received.hints.n; i++) {
		const struct um_activity *h = &received.hints.at[i];

		if (h->hint > UM_HINT_ADVISE || h->end < h->begin)
			wrong++;
		else
			n[h->hint]++;
		refused += h->error != 0;
		unknown += !known(h->address, h->bytes);
		if (h->hint != UM_HINT_PREFETCH)
			wrong += h->op != UM_ACT_NO_OP;
		else if (h->op < received.ops.n) /* else what it is for was not played any more */
			serves(h) ? aimed++ : missed++;
	}
	is_u64(n[UM_HINT_PREFETCH] + n[UM_HINT_EVICT], received.calls[0], "%s: each prefetch and eviction is told",
	       what);
	is_u64(n[UM_HINT_DISCARD], received.calls[1], "%s: each discard is told", what);
	is_u64(unknown + refused, 0, "%s: all of memory that is there, and none refused", what);
	is_u64(wrong, 0, "%s: each hint ends after it begins, and only prefetches name an op", what);
	ok(missed * 20 <= n[UM_HINT_PREFETCH],
	   "%s: prefetches name ops that use what they bring, except the few of a plan that was left (%" PRIu64 ")",
	   what, missed);
	ok(!expected == !received.hints.n && aimed * 2 >= n[UM_HINT_PREFETCH],
	   "%s: most name an op (%" PRIu64 " of %" PRIu64 ")", what, aimed, n[UM_HINT_PREFETCH]);
}

/* Of the trace, set-up and so many iterations. */
static void count(const struct um_trace *t, uint64_t *births, uint64_t *ops)
{
	uint64_t iterations = 0;

	for (size_t i = 0; i < um_trace_length(t); i++) {
		const struct um_event *e = um_trace_event(t, i);

		iterations += e->kind == UM_EV_ITER;
		if (iterations > ITERATIONS)
			return;
		*births += e->kind == UM_EV_ALLOC;
		*ops += e->kind == UM_EV_OP;
	}
}

/* `hints`: some are expected. */
static void play(const char *name, enum um_play_strategy strategy, int hints)
{
	const char *top = getenv("top_srcdir");
	char path[512], what[128];
	struct um_play_result result;
	uint64_t births = 0, ops = 0;
	struct um_trace *t;
	struct um_diag d;

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	if (um_trace_load(&t, path, &d))
		tap_bail(d.text);
	snprintf(what, sizeof what, "%s, %s", name, um_play_strategy_name(strategy));
	memset(&received, 0, sizeof received);
	received.sink.feed = listen;
	received.last = -1;

	struct um_play_options o = {.profile = um_profile_find("v100"),
				    .budget = um_trace_peak_bytes(t) * 2 / 3,
				    .strategy = strategy,
				    .iterations = ITERATIONS,
				    .watch = &received.sink};

	ok(um_play(t, &o, &result) == 0, "%s: the workload is played", what);
	count(t, &births, &ops);
	is_u64(received.births, births, "%s: all tensors are announced", what);
	is_u64(received.ops.n, ops, "%s: all ops are announced", what);
	is_u64(received.kernels, received.ops.n, "%s: each launch was announced", what);
	is_u64(received.wrong, 0, "%s: all in turn, of memory and tensors that are there", what);
	check_hints(what, hints);
	um_play_result_fini(&result);
	um_trace_free(t);
	um_vec_fini(&received.ops);
	um_vec_fini(&received.uses);
	um_vec_fini(&received.hints);
	um_vec_fini(&received.memory);
	um_vec_fini(&received.tensors);
}

int main(void)
{
	static const char *const traces[] = {"resnet50", "lstm_lm", "cg_laplace3d", "transformer_varlen"};
	const enum um_play_strategy strategies[] = {UM_PLAY_ON_DEMAND, UM_PLAY_PREFETCH_ON_USE, UM_PLAY_LOOKAHEAD};

	for (size_t i = 0; i < sizeof traces / sizeof *traces; i += (size_t)tap_step(2))
		for (int s = 0; s < 3; s++)
			play(traces[i], strategies[s], s > 0);
	return tap_done();
}
