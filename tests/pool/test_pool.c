/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools for comparison: no two live tensors overlap under any of them, what they take from the device covers what they
 * give out, and each does what its publication says.
 */
#include "pool/compare.h"

#include "fixture/random.h"
#include "model/event.h"
#include "tap.h"

#define MIB (1ull << 20)

static struct um_pool_calls calls;
static uint64_t live[4096]; /* addresses of the script's tensors; 0: none */
static uint64_t next;

static void feed(enum um_activity_kind kind, uint64_t addr, uint64_t bytes)
{
	struct um_activity a = {.kind = kind, .address = addr, .bytes = bytes, .name = ""};

	if (um_activity_feed(&calls.sink, &a))
		tap_bail("no memory");
}

static void begin(void)
{
	um_pool_calls_init(&calls);
	memset(live, 0, sizeof live);
	next = 1;
}

static void bear(unsigned id, uint64_t bytes)
{
	live[id] = next << 40; /* apart from each other */
	next++;
	feed(UM_ACT_TENSOR, live[id], bytes);
}

static void drop(unsigned id)
{
	feed(UM_ACT_TENSOR_END, live[id], 0);
	live[id] = 0;
}

static void end_iteration(void)
{
	feed(UM_ACT_RANGE, 0, 0);
}

static struct um_pool_figures run(const struct um_pool_policy *policy, size_t period)
{
	struct um_pool_window before, last;
	struct um_pool_figures f;

	if (um_pool_calls_windows(&calls, period, &before, &last) || um_pool_compare(&calls, before, last, policy, &f))
		tap_bail("no figures");
	return f;
}

/* Pairs of tensors that overlap while both are alive in the last iteration. */
static int overlaps(const struct um_pool_figures *f)
{
	uint32_t from = calls.ends.at[calls.ends.n - 2];
	int n = 0;

	for (size_t i = 0; i < calls.tensors.n; i++)
		for (size_t k = 0; k < i; k++) {
			const struct um_pool_tensor *x = &calls.tensors.at[i], *y = &calls.tensors.at[k];

			n += x->death > y->birth && y->death > x->birth && x->death >= from && y->death >= from &&
			     f->addr[i] < f->addr[k] + y->bytes && f->addr[k] < f->addr[i] + x->bytes;
		}
	return n;
}

/* --- by chance ---------------------------------------------------------------------------------------------------- */

/* An iteration that is the same each time: tensors with a birth and a free, of which some are in the next iteration. */
static void repeat(uint64_t seed, int iterations)
{
	enum { N = 60 };
	uint64_t bytes[N];
	int birth[N], death[N];

	for (int i = 0; i < N; i++) {
		birth[i] = (int)test_random(&seed, N);
		death[i] = birth[i] + 1 + (int)test_random(&seed, i % 5 ? 10 : N);
		death[i] = death[i] >= birth[i] + N ? birth[i] + N - 1 : death[i];
		bytes[i] = 1 + (test_random(&seed, 3) ? test_random(&seed, 300000) : test_random(&seed, 30000000));
	}
	begin();
	bear(N, 3 * MIB + 5);
	bear(N + 1, 700);
	for (int it = 0; it < iterations; it++) {
		for (int t = 0; t < N; t++) {
			for (int i = 0; i < N; i++)
				if (live[i] && (death[i] == t || death[i] == t + N))
					drop((unsigned)i);
			for (int i = 0; i < N; i++)
				if (birth[i] == t && !live[i])
					bear((unsigned)i, bytes[i]);
		}
		end_iteration();
	}
}

static void by_chance(void)
{
	for (unsigned p = 0; um_pool_policy_at(p); p++) {
		const struct um_pool_policy *policy = um_pool_policy_at(p);
		int bad = 0, little = 0, less = 0, elsewhere = 0;

		for (uint64_t seed = 1; seed <= 20; seed++) {
			repeat(seed, 6);
			struct um_pool_figures f = run(policy, 1);

			bad += overlaps(&f);
			little += f.reserved < f.alive;
			less += f.blocks < f.alive;
			elsewhere += f.elsewhere != 0;
			um_pool_figures_fini(&f);
			um_pool_calls_fini(&calls);
		}
		is_int(bad, 0, "%s: live tensors do not overlap", policy->name);
		is_int(little, 0, "%s: it takes at least what is alive", policy->name);
		is_int(less, 0, "%s: so do the blocks in use", policy->name);
		is_int(elsewhere, 0, "%s: what repeats is foreseen", policy->name);
	}
}

/* --- one by one --------------------------------------------------------------------------------------------------- */

/* In each iteration four tensors are born, the first and the third are freed, then 1 KiB is born. */
static void fits(void)
{
	struct um_pool_figures f;

	begin();
	for (int i = 0; i < 3; i++) {
		bear(0, 4096);
		bear(1, 1024);
		bear(2, 2048);
		bear(3, 512);
		drop(0);
		drop(2);
		bear(4, 1024);
		for (unsigned k = 1; k <= 4; k++)
			if (k != 2)
				drop(k);
		end_iteration();
	}
	f = run(&um_pool_best_fit, 1);
	is_u64(f.addr[calls.tensors.n - 1] - f.addr[calls.tensors.n - 5], 5120, "best-fit takes the smallest hole");
	um_pool_figures_fini(&f);
	f = run(&um_pool_first_fit, 1);
	is_u64(f.addr[calls.tensors.n - 1], f.addr[calls.tensors.n - 5], "first-fit takes the lowest hole");
	is_u64(f.reserved, 4096 + 1024 + 2048 + 1024, "first-fit rounds to 1 KiB, and grows at its end");
	is_u64(f.births, 5, "births of an iteration are counted");
	is_u64(f.frees, 5, "and so are frees");
	ok(f.steps >= 10 && f.most_steps >= 2, "each call examines something");
	um_pool_figures_fini(&f);
	um_pool_calls_fini(&calls);
}

static uint64_t reserved(const struct um_pool_policy *policy, const uint64_t *bytes, unsigned n)
{
	struct um_pool_figures f;
	uint64_t sum;

	begin();
	for (int i = 0; i < 3; i++) {
		for (unsigned k = 0; k < n; k++)
			bear(k, bytes[k]);
		for (unsigned k = 0; k < n; k++)
			drop(k);
		end_iteration();
	}
	f = run(policy, 1);
	sum = f.reserved;
	um_pool_figures_fini(&f);
	um_pool_calls_fini(&calls);
	return sum;
}

static void segments(void)
{
	is_u64(reserved(&um_pool_caching, (uint64_t[]){1000, 2000}, 2), 2 * MIB, "caching: small tensors share 2 MiB");
	is_u64(reserved(&um_pool_caching, (uint64_t[]){MIB + 1}, 1), 20 * MIB, "caching: a larger one takes 20 MiB");
	is_u64(reserved(&um_pool_caching, (uint64_t[]){2 * MIB, 9 * MIB, 8 * MIB}, 3), 20 * MIB,
	       "caching: what remains of a segment is used");
	is_u64(reserved(&um_pool_caching, (uint64_t[]){10 * MIB + 1}, 1), 12 * MIB,
	       "caching: one of 10 MiB or more has a segment of its own");
	is_u64(reserved(&um_pool_cuda_malloc, (uint64_t[]){1000, 2000}, 2), 2 * MIB,
	       "cuda-malloc: small tensors share a page");
	is_u64(reserved(&um_pool_cuda_malloc, (uint64_t[]){2 * MIB + 1, 1}, 2), 6 * MIB,
	       "cuda-malloc: a larger one shares none");
}

/* `crossing` bytes are freed in the iteration after their birth, when the next ones are born already. */
static struct um_pool_figures smart(uint64_t crossing)
{
	begin();
	bear(9, 4 * MIB);
	for (int i = 0; i < 5; i++) {
		if (crossing)
			bear(i % 2 ? 6 : 7, crossing);
		bear(0, 3 * MIB);
		bear(1, MIB);
		drop(0);
		bear(2, 2 * MIB);
		if (crossing && i)
			drop(i % 2 ? 7 : 6);
		drop(1);
		bear(3, MIB);
		drop(2);
		drop(3);
		end_iteration();
	}
	return run(&um_pool_smartpool, 1);
}

static void smartpool(void)
{
	struct um_pool_figures f = smart(0);
	size_t n = calls.tensors.n;

	is_u64(f.reserved, 8 * MIB, "smartpool packs without waste: the largest lies lowest");
	is_u64(f.addr[n - 4], f.addr[n - 2], "2 MiB lie where 3 MiB were");
	is_u64(f.addr[n - 1] - f.addr[n - 2], 2 * MIB, "1 MiB lies in the smallest hole");
	is_u64(f.steps, f.births + f.frees, "a call looks one address up");
	um_pool_figures_fini(&f);
	um_pool_calls_fini(&calls);
	f = smart(5 * MIB);
	is_u64(f.reserved, 18 * MIB, "what crosses the period's end has two copies");
	is_int(overlaps(&f), 0, "which are used in turn");
	um_pool_figures_fini(&f);
	um_pool_calls_fini(&calls);
}

/* A birth of the last iteration has another size. */
static void unforeseen(void)
{
	struct um_pool_figures f;

	begin();
	for (int i = 0; i < 5; i++) {
		bear(0, i == 4 ? 3 * MIB : 2 * MIB);
		bear(1, MIB);
		drop(0);
		drop(1);
		end_iteration();
	}
	f = run(&um_pool_smartpool, 1);
	is_u64(f.elsewhere, 1, "a birth of another size is not foreseen");
	is_int(overlaps(&f), 0, "it lies apart");
	um_pool_figures_fini(&f);
	um_pool_calls_fini(&calls);
}

static void windows(void)
{
	struct um_pool_window before, last;

	begin();
	for (int i = 0; i < 4; i++) {
		bear(0, MIB);
		drop(0);
		end_iteration();
	}
	is_int(um_pool_calls_windows(&calls, 2, &before, &last), -ENODATA, "two periods and one iteration are needed");
	is_int(um_pool_calls_windows(&calls, 1, &before, &last), 0, "the last iteration is found");
	ok(last.from == 6 && last.to == 8 && before.from == 4 && before.to == 6, "and the one before it");
	um_pool_calls_fini(&calls);
}

int main(void)
{
	windows();
	fits();
	segments();
	smartpool();
	unforeseen();
	by_chance();
	return tap_done();
}
