/* SPDX-License-Identifier: Apache-2.0
 *
 * Which words of a kernel's parameters are uses, where a struct by value has addresses of earlier launches in it.
 */
#include "scans.h"

#include <pthread.h>

#define LEFT_OUT 8 /* launches after a change of the shape */
#define FOR_EVER 300
#define THREADS 8
#define TURNS 20000

/* --- memory that is refused --------------------------------------------------------------------------------------- */

static int no_calloc;

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);

void *__wrap_calloc(size_t n, size_t bytes)
{
	return no_calloc ? NULL : __real_calloc(n, bytes);
}

/* --- words that are uses ------------------------------------------------------------------------------------------ */

/* Number of further launches until the address is a use; FOR_EVER: it was not. */
static int left_out(struct kernel *k, uint64_t at)
{
	int n = 0;

	for (; n < FOR_EVER; n++) {
		launch(k);
		if (is_use(k, at))
			break;
	}
	return n;
}

static void test_same_shape(void)
{
	int missed = 0, sorted = 1;
	struct kernel k;

	open_list(&k);
	k.list[2] = tensor(MIB);
	for (int i = 0; i < 40; i++) {
		uint64_t before = k.list[2];

		launch(&k);
		missed += !is_use(&k, k.list[2]) || k.uses.n != 1;
		k.list[2] = tensor(MIB);
		drop(before);
	}
	is_int(missed, 0, "a word that points to tensors of one size is a use at each launch");

	open_list(&k);
	k.list[2] = tensor(MIB) + 64 * KIB;
	launch(&k);
	k.list[2] = tensor(MIB) + 64 * KIB;
	launch(&k);
	ok(is_use(&k, k.list[2]), "so is one that points to the same place in them");
	k.list[2] += 64;
	launch(&k);
	ok(!is_use(&k, k.list[2]), "another place in the tensor is another shape");

	open_wide(&k);
	next_at += 100 * MIB;
	for (unsigned i = LIST; i--;) /* later tensors have lower addresses */
		k.list[i % 2 ? i : LIST - 2 - i] = tensor_at(next_at - (LIST - i) * MIB, (i + 1) * 64 * KIB);
	launch(&k);
	for (unsigned i = 0; i < LIST; i++)
		sorted &= k.uses.end[i] == (uintptr_t)k.uses.at[i].ptr + (LIST - i) * 64 * KIB;
	is_int((int)k.uses.n, LIST, "all words of a first launch are uses");
	ok(sorted, "uses are in the order of their allocation, with their ends");
}

/* --- words that are left out -------------------------------------------------------------------------------------- */

static void test_one_word(void)
{
	struct kernel k;

	open_kernel(&k);
	for (int i = 0; i < 2; i++) {
		k.list[0] = freed();
		launch(&k);
	}
	k.list[0] = tensor(MIB);
	k.list[1] = tensor(64 * KIB);
	launch(&k);
	ok(is_use(&k, k.list[0]) && is_use(&k, k.list[1]), "at the first launch in a place all words are uses");
	k.list[0] = tensor(2 * MIB);
	k.list[1] = tensor(128 * KIB);
	launch(&k);
	ok(!is_use(&k, k.list[0]), "a word that pointed to freed memory twice is left out when its shape changes");
	ok(is_use(&k, k.list[1]), "the word beside it is not");
	is_int(left_out(&k, k.list[0]), LEFT_OUT - 1, "it is a use again when its shape has stayed for some launches");
	k.list[0] = tensor(MIB);
	launch(&k);
	k.list[0] = tensor(2 * MIB);
	is_int(left_out(&k, k.list[0]), FOR_EVER, "a shape that changes again before is left out for ever");
}

static void test_whole_parameter(void)
{
	struct kernel k;

	open_kernel(&k);
	k.list[0] = freed();
	k.address = freed();
	launch(&k);
	ok(!um_leftovers_any(k.f), "freed memory in two parameters is no sign of leftovers");
	k.list[0] = 0;

	open_list(&k);
	ok(um_leftovers_any(k.f), "freed memory in two words of a parameter is a sign of leftovers");
	k.list[LIST - 1] = tensor(MIB);
	k.address = tensor(MIB);
	launch(&k);
	k.list[LIST - 1] = tensor(2 * MIB);
	k.address = tensor(2 * MIB);
	launch(&k);
	ok(!is_use(&k, k.list[LIST - 1]), "then a third word of the parameter is left out when its shape changes");
	ok(is_use(&k, k.address), "a word of another parameter is not");
	scan(&k, 0);
	ok(is_use(&k, k.list[LIST - 1]), "in a launch that is made later all words are uses");
}

static void test_same_value(void)
{
	struct kernel k;

	open_wide(&k);
	k.list[3] = tensor(MIB);
	launch(&k);
	k.list[3] = tensor(2 * MIB);
	launch(&k);
	ok(is_use(&k, k.list[3]), "a word that changes is a use while nothing points to freed memory");

	open_wide(&k);
	k.list[3] = tensor(MIB);
	launch(&k);
	drop(k.list[3]);
	tensor_at(k.list[3], 2 * MIB);
	launch(&k);
	ok(!is_use(&k, k.list[3]), "the same address of another tensor is left out");
	is_int(left_out(&k, k.list[3]), FOR_EVER, "it is left out as long as it stays");
	k.list[3] = tensor(2 * MIB);
	launch(&k);
	ok(is_use(&k, k.list[3]), "another address of that shape is a use");
}

/* --- words that are not always pointers --------------------------------------------------------------------------- */

enum { NEITHER, ONLY_OTHER, BOTH };

/* Points `word` to the tensor of `other` at a first launch in a place, and to one of its own at a second one. What the
 * second one uses. */
static int move_away(struct kernel *k, uint64_t *word, uint64_t *other)
{
	*word = *other = tensor(MIB);
	launch(k);
	*word = tensor(MIB);
	launch(k);
	return !is_use(k, *other) ? NEITHER : is_use(k, *word) ? BOTH : ONLY_OTHER;
}

static void test_uncertain(void)
{
	struct kernel k;
	uint64_t at;
	int uses = 0;

	open_wide(&k);
	is_int(move_away(&k, &k.list[2], &k.list[0]), BOTH,
	       "a word may point to the tensor of another at some launches");

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS);
	is_int(move_away(&k, &k.list[2], &k.list[0]), ONLY_OTHER,
	       "if it was neither NULL nor an address elsewhere, it is left out");
	is_int(left_out(&k, k.list[2]), FOR_EVER, "it is left out in this place for ever");
	k.list[2] = tensor(MIB);
	launch_with(&k, 65, 256);
	ok(is_use(&k, k.list[2]), "in another place it is a use");

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS);
	is_int(move_away(&k, &k.list[2], &k.list[4]), ONLY_OTHER, "the other word may come after it");

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS);
	k.list[0] = tensor(MIB);
	for (int i = 0; i < 40; i++) {
		k.list[2] = tensor(MIB);
		launch(&k);
		uses += is_use(&k, k.list[2]) && is_use(&k, k.list[0]);
	}
	is_int(uses, 40, "a word that always points to a tensor of its own is a use");

	open_wide(&k);
	k.list[2] = tensor(MIB);
	k.list[0] = k.list[2] + 64 * KIB;
	launch(&k);
	at = k.list[2];
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS);
	k.list[2] = at;
	launch(&k);
	ok(is_use(&k, at), "so is one that always points to the tensor of another");

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS);
	launch_elsewhere(&k, &k.list[3], NO_ADDRESS, OTHERS);
	is_int(move_away(&k, &k.list[2], &k.list[3]), BOTH, "two words of this kind are not compared");

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], 0, 4 * OTHERS);
	is_int(move_away(&k, &k.list[2], &k.list[0]), BOTH, "NULL is a pointer");

	open_wide(&k);
	launch_elsewhere(&k, &k.list[2], NO_ADDRESS, OTHERS - 1);
	is_int(move_away(&k, &k.list[2], &k.list[0]), BOTH, "%d launches with another value are not enough",
	       OTHERS - 1);

	open_wide(&k);
	launch_elsewhere(&k, &k.address, NO_ADDRESS, OTHERS);
	is_int(move_away(&k, &k.address, &k.list[0]), BOTH, "a parameter that is one word is always written");
}

/* --- places ------------------------------------------------------------------------------------------------------- */

static void launch_again(struct kernel *k, unsigned grid)
{
	um_launch_row_add(k->f, &(const struct um_launch_size){{grid, 1, 1}, {256, 1, 1}});
	scan(k, 1);
}

static void test_places(void)
{
	uint64_t small, large;
	struct kernel k;
	int missed = 0;

	open_list(&k);
	small = tensor(MIB);
	large = tensor(2 * MIB);
	for (int i = 0; i < 40; i++) {
		k.list[0] = i % 2 ? large : small;
		launch_with(&k, 64 + i % 2, 256);
		missed += !is_use(&k, k.list[0]);
	}
	is_int(missed, 0, "launches with another grid have their own shapes");
	for (int i = 0; i < 40; i++) {
		k.list[0] = i % 2 ? large : small;
		launch_with(&k, 99, 256 + i % 2);
		missed += !is_use(&k, k.list[0]);
	}
	is_int(missed, 0, "so do those with another block");
	for (int i = 0; i < 20; i++) {
		k.list[0] = small;
		launch_with(&k, 98, 256);
		missed += !is_use(&k, k.list[0]);
		k.list[0] = large;
		launch_again(&k, 98);
		missed += !is_use(&k, k.list[0]);
	}
	is_int(missed, 0, "so does each position in a row of launches");
	k.list[0] = small;
	launch_with(&k, 65, 256);
	ok(!is_use(&k, k.list[0]), "at the same place another shape is left out");
}

/* A launch of another kernel with that grid, one of a third kernel, and then one of `k`. */
static void launch_after(struct kernel *k, unsigned grid)
{
	const struct um_launch_size size = {{grid, 1, 1}, {1, 1, 1}};

	for (unsigned i = 0; i < UM_LAUNCH_ROWS; i++)
		um_launch_row_add(&others[i], &(const struct um_launch_size){{1, 1, 1}, {1, 1, 1}});
	um_launch_row_add(&others[0], &size);
	um_launch_row_add(&others[1], &(const struct um_launch_size){{1, 1, 1}, {1, 1, 1}});
	launch_again(k, 64);
}

static void test_earlier_rows(void)
{
	uint64_t small = tensor(MIB), large = tensor(2 * MIB);
	struct kernel k;
	int missed = 0;

	open_list(&k);
	for (int i = 0; i < 40; i++) {
		k.list[0] = i % 2 ? large : small;
		launch_after(&k, 7 + i % 2);
		missed += !is_use(&k, k.list[0]);
	}
	is_int(missed, 0, "launches after rows of another size have their own shapes");
	k.list[0] = small;
	launch_after(&k, 8);
	ok(!is_use(&k, k.list[0]), "after the same rows another shape is left out");
}

/* The shape of a first place is known after launches in `n` others. */
static int remembers(unsigned n)
{
	struct kernel k;

	open_list(&k);
	k.list[0] = tensor(MIB);
	launch_with(&k, 1, 1);
	for (unsigned i = 0; i < n; i++)
		launch_with(&k, 2 + i, 1);
	k.list[0] = tensor(2 * MIB);
	launch_with(&k, 1, 1);
	return !is_use(&k, k.list[0]);
}

static void test_forgotten(void)
{
	const unsigned most = UM_LEFTOVER_WORDS / (LIST + 1);

	ok(remembers(most), "a kernel remembers %u places", most);
	ok(!remembers(2 * most), "past twice as many it begins anew");
}

/* --- memory that is refused, and a buffer ------------------------------------------------------------------------- */

/* A change of the shape where no memory is given; `known` places are known before. */
static void seen_without(int known, const char *what)
{
	uint64_t small = tensor(MIB), large = tensor(2 * MIB);
	struct kernel k;
	int all = 1;

	open_wide(&k);
	for (int i = 0; i < known; i++)
		launch_with(&k, 1000 + (unsigned)i, 1);
	for (int i = 0; i < 10; i++) {
		k.list[0] = i % 2 ? large : small;
		k.list[1] = freed();
		k.list[2] = freed();
		no_calloc = 1;
		launch(&k);
		no_calloc = 0;
		all &= is_use(&k, k.list[0]);
	}
	ok(all, "without memory for %s all words are uses", what);
	launch(&k);
	ok(is_use(&k, k.list[0]), "the first launch with memory is one in a new place");
	k.list[3] = tensor(MIB);
	launch(&k);
	ok(!is_use(&k, k.list[3]), "then words are left out");
}

static void test_no_memory(void)
{
	seen_without(0, "a kernel");
	seen_without(1, "a place");
	seen_without(8, "more places");
}

static void test_buffer(void)
{
	const struct um_launch_size size = {{1, 1, 1}, {1, 1, 1}};
	uint64_t all[LIST + 1] = {0}, large = tensor(2 * MIB);
	size_t bytes = sizeof all;
	void *extra[] = {(void *)1, all, (void *)2, &bytes, NULL};
	struct kernel k;

	open_list(&k);
	all[4] = tensor(MIB);
	for (int i = 0; i < 2; i++) {
		for (unsigned row = 0; row < UM_LAUNCH_ROWS; row++)
			um_launch_row_add(&others[row], &size);
		um_launch_row_add(k.f, &size);
		um_inject_uses_init(&k.uses);
		um_launch_scan(&k.uses, k.f, NULL, extra, 1);
		ok(is_use(&k, all[4]) == !i, "a word in a buffer of parameters %s", i ? "is left out" : "is a use");
		all[4] = large;
	}
	open_kernel(&k);
	bytes = 8 * 4;
	um_inject_uses_init(&k.uses);
	um_launch_scan(&k.uses, k.f, NULL, extra, 1);
	is_int((int)k.uses.n, 0, "a word beyond the end of the buffer is not read");
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static struct kernel shared;
static uint64_t same[THREADS], places;
static atomic_uint missed, seen, turn;

static void *scan_often(void *arg)
{
	unsigned me = *(const unsigned *)arg;
	struct kernel k = shared;

	for (int i = 0; i < TURNS; i++) {
		k.list[0] = same[(me + (unsigned)i) % THREADS];
		k.list[1] = places + 8ull * atomic_fetch_add(&turn, 1); /* each launch has a shape of its own */
		launch(&k);
		atomic_fetch_add(&missed, !is_use(&k, k.list[0]));
		atomic_fetch_add(&seen, is_use(&k, k.list[1]));
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread[THREADS];
	unsigned me[THREADS];

	open_list(&shared);
	for (unsigned i = 0; i < THREADS; i++)
		same[i] = tensor(MIB);
	places = tensor(2 * MIB);
	launch_with(&shared, 1, 1);
	for (unsigned i = 0; i < THREADS; i++) {
		me[i] = i;
		if (pthread_create(&thread[i], NULL, scan_often, &me[i]))
			tap_bail("no thread");
	}
	for (int i = 0; i < TURNS; i++)
		drop(tensor(MIB)); /* the list of tensors changes meanwhile */
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	is_int((int)missed, 0, "%d threads: a word of one shape is a use at each launch", THREADS);
	is_int((int)seen, 1, "%d threads: a word whose shape changes is a use at the first launch only", THREADS);
}

int main(void)
{
	test_same_shape();
	test_one_word();
	test_whole_parameter();
	test_same_value();
	test_uncertain();
	test_places();
	test_earlier_rows();
	test_forgotten();
	test_no_memory();
	test_buffer();
	test_threads();
	return tap_done();
}
