/* SPDX-License-Identifier: Apache-2.0
 *
 * What a framework declares of its operations, and which words of a kernel's parameters are uses then.
 */
#include "scans.h"

#include "inject/declared.h"

#include "gpu/nvtx_listen.h"

#include <pthread.h>

static void begin(uint64_t address)
{
	umadvise_run_begin(&address, 1);
}

/* Two tensors that operations have named before. */
static void open_named(struct kernel *k, uint64_t *used, uint64_t *other)
{
	open_wide(k);
	k->list[0] = *used = tensor(MIB);
	k->list[1] = *other = tensor(64 * KIB);
	begin(*used);
	umadvise_run_end();
	begin(*other);
	umadvise_run_end();
}

/* Launches it in an operation that uses this address. */
static void operate(struct kernel *k, uint64_t used)
{
	begin(used);
	launch(k);
	umadvise_run_end();
}

/* --- words -------------------------------------------------------------------------------------------------------- */

static void test_unused(void)
{
	uint64_t used, other;
	struct kernel k;

	open_named(&k, &used, &other);
	operate(&k, used);
	ok(is_use(&k, used), "a word that the operation used is a use");
	ok(!is_use(&k, other), "a word that it did not use is left out");
	launch(&k);
	ok(is_use(&k, used) && !is_use(&k, other), "so it is at this place from then on");
	launch_with(&k, 65, 256);
	ok(is_use(&k, used), "a word that operations used elsewhere is a use at a new place");
	ok(!is_use(&k, other), "a word that no operation used elsewhere is left out there");
	open_named(&k, &used, &other);
	launch(&k);
	ok(is_use(&k, used) && is_use(&k, other), "words of another kernel are uses");
}

static void test_votes(void)
{
	uint64_t used, other;
	struct kernel k;

	open_named(&k, &used, &other);
	operate(&k, used);
	for (unsigned i = 0; i < 2; i++) {
		begin(other);
		launch_with(&k, 70 + i, 256);
		umadvise_run_end();
	}
	launch_with(&k, 65, 256);
	ok(is_use(&k, other), "a word that more operations used than not is a use at a new place");
	ok(!is_use(&k, used), "a word that fewer operations used than not is left out there");
	launch(&k);
	ok(is_use(&k, used) && !is_use(&k, other), "what operations at the place have declared decides there");
}

static void test_shapes(void)
{
	struct kernel k;

	open_list(&k);
	k.list[2] = tensor(MIB);
	k.list[3] = tensor(MIB);
	for (int i = 0; i < 2; i++) {
		operate(&k, k.list[2]);
		k.list[2] = tensor((2 + i) * MIB);
		k.list[3] = tensor((2 + i) * MIB);
	}
	launch(&k);
	ok(is_use(&k, k.list[2]), "a word that operations used with several shapes is a use with any");
	ok(!is_use(&k, k.list[3]), "a word of another size that no operation has declared is left out");
}

static void test_uncertain(void)
{
	struct kernel k;

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS);
	k.list[0] = k.list[2] = tensor(MIB);
	operate(&k, k.list[0]);
	k.list[2] = tensor(MIB);
	launch(&k);
	ok(is_use(&k, k.list[2]),
	   "a word that an operation used is a use, also if it points to the tensor of another word");
}

/* Memory that is not of the operation, and never was of one. */
static void test_workspace(void)
{
	uint64_t used, other, space = tensor(MIB);
	struct kernel k;

	open_named(&k, &used, &other);
	k.list[2] = space;
	for (int i = 0; i < 3; i++)
		operate(&k, used);
	ok(is_use(&k, space), "memory that no operation has named is a use");
	launch_with(&k, 65, 256);
	ok(is_use(&k, space), "so it is at a new place");

	open_named(&k, &used, &other);
	drop(other);
	tensor_at(other, 64 * KIB);
	operate(&k, used);
	ok(is_use(&k, other), "an address that was named is not, once it was freed and allocated again");
}

static void test_born(void)
{
	uint64_t used, other;
	struct kernel k;

	open_list(&k);
	used = tensor(MIB);
	begin(used);
	k.list[2] = tensor(MIB);
	launch(&k);
	umadvise_run_end();
	ok(is_use(&k, k.list[2]), "memory that is allocated in an operation is a use");
	k.list[2] = tensor(2 * MIB);
	launch(&k);
	ok(!is_use(&k, k.list[2]), "with a shape that no operation had, it is left out");

	open_named(&k, &used, &other);
	k.list[2] = tensor(MIB);
	begin(k.list[2]);
	umadvise_run_end();
	operate(&k, used);
	ok(!is_use(&k, k.list[2]), "memory that was allocated just before an operation is not");
}

static void test_copies(void)
{
	uint64_t used, other;
	struct kernel k;

	open_wide(&k);
	k.list[0] = used = tensor(MIB);
	k.list[1] = other = tensor(64 * KIB);
	launch(&k);
	begin(other);
	umadvise_run_end();
	operate(&k, used);
	ok(!is_use(&k, other), "memory is known as named also where it was looked up before");
}

/* --- operations --------------------------------------------------------------------------------------------------- */

static uint64_t many[UM_DECLARED_MOST + 1];

static void test_most(void)
{
	uint64_t used, other;
	struct kernel k;

	for (unsigned n = UM_DECLARED_MOST; n <= UM_DECLARED_MOST + 1; n++) {
		open_named(&k, &used, &other);
		for (unsigned i = 0; i < n; i++)
			many[i] = used;
		umadvise_run_begin(many, n);
		launch(&k);
		umadvise_run_end();
		ok(is_use(&k, other) == (n > UM_DECLARED_MOST), "of an operation with %u addresses %s is known", n,
		   n > UM_DECLARED_MOST ? "nothing" : "everything");
	}
	open_named(&k, &used, &other);
	operate(&k, used);
	ok(!is_use(&k, other), "the next operation declares its allocations again");
	open_named(&k, &used, &other);
	umadvise_run_begin(NULL, 0);
	launch(&k);
	umadvise_run_end();
	ok(!is_use(&k, used) && !is_use(&k, other), "an operation without addresses uses none that others named");
	open_named(&k, &used, &other);
	operate(&k, 8);
	ok(!is_use(&k, used), "an address outside all allocations is ignored");
	open_named(&k, &used, &other);
	operate(&k, used + MIB - 1);
	ok(is_use(&k, used), "an address inside an allocation names it");
}

static void test_several(void)
{
	uint64_t used[5], other = tensor(MIB);
	struct kernel k;
	int all = 1;

	open_wide(&k);
	for (unsigned i = 0; i < 5; i++) { /* not in the order of their allocation, and some twice */
		k.list[i] = tensor(MIB);
		used[(2 * i + 3) % 5] = k.list[i > 3 ? 3 : i];
	}
	k.list[5] = other;
	begin(k.list[4]);
	umadvise_run_end();
	begin(other);
	umadvise_run_end();
	umadvise_run_begin(used, 5);
	launch(&k);
	umadvise_run_end();
	for (unsigned i = 0; i < 4; i++)
		all &= is_use(&k, k.list[i]);
	ok(all, "all tensors of an operation are uses");
	ok(!is_use(&k, k.list[4]) && !is_use(&k, other), "those of others are left out");
}

static void test_nested(void)
{
	uint64_t used, other;
	struct kernel k;

	open_named(&k, &used, &other);
	begin(used);
	begin(other);
	umadvise_run_end();
	launch(&k);
	ok(is_use(&k, used) && !is_use(&k, other), "an inner operation is part of the outer one");
	umadvise_run_end();
	open_named(&k, &used, &other);
	launch(&k);
	ok(is_use(&k, used) && is_use(&k, other), "it ends with the outer one");
	umadvise_run_end();
	operate(&k, used);
	ok(!is_use(&k, other), "an end without an operation is ignored");
}

static void *launch_there(void *kernel)
{
	launch(kernel);
	return NULL;
}

static void test_thread(void)
{
	uint64_t used, other;
	pthread_t thread;
	struct kernel k;

	open_named(&k, &used, &other);
	begin(used);
	if (pthread_create(&thread, NULL, launch_there, &k))
		tap_bail("no thread");
	pthread_join(thread, NULL);
	ok(is_use(&k, other), "another thread has no operation");
	launch(&k);
	umadvise_run_end();
	ok(!is_use(&k, other), "the thread that began one has it still");
}

/* --- iterations, and the end -------------------------------------------------------------------------------------- */

static uint64_t iterations(struct umadv *adv)
{
	struct umadv_stats stats = {.struct_size = sizeof stats};

	umadvise_run_iteration();
	umadv_stats_get(adv, &stats);
	return stats.iterations;
}

static void test_iterations(void)
{
	struct umadv_options o;
	struct umadv *adv;
	uint64_t before;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	if (umadv_open(&adv, &o))
		tap_bail("no context");
	um_session_at(0)->adv = adv;
	before = iterations(adv);
	ok(!umadvise_run_wants(), "operations are not wanted while all fits");
	is_u64(iterations(adv), before, "no iteration begins then");
	atomic_store(&um_session_state.pressed, 1);
	ok(umadvise_run_wants(), "operations are wanted once memory is short");
	before = iterations(adv);
	is_u64(iterations(adv), before + 1, "then an iteration begins");
	atomic_store(&um_nvtx_marks, 1);
	is_u64(iterations(adv), before + 1, "where NVTX ranges are iterations, none begins");
	atomic_store(&um_nvtx_marks, 0);
	um_session_at(0)->adv = NULL;
	umadvise_run_iteration();
	ok(1, "without a context there is no iteration");
	umadv_close(adv);
}

static void test_over(void)
{
	uint64_t used, other;
	struct kernel k;

	open_named(&k, &used, &other);
	atomic_store(&um_session_state.over, 1);
	ok(!umadvise_run_wants(), "in a forked child operations are not wanted");
	operate(&k, used);
	ok(is_use(&k, other), "there operations are ignored");
	atomic_store(&um_session_state.over, 0);
	operate(&k, used);
	ok(!is_use(&k, other), "elsewhere they are not");
}

int main(void)
{
	test_unused();
	test_votes();
	test_shapes();
	test_uncertain();
	test_workspace();
	test_born();
	test_copies();
	test_most();
	test_several();
	test_nested();
	test_thread();
	test_iterations();
	test_over();
	return tap_done();
}
