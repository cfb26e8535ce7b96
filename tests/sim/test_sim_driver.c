/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviour that a comparison with the driver's own code (tests/driver) found to differ, in exact figures.
 */
#include "sim/state.h"
#include "tap.h"

#define BLOCK UM_BLOCK_BYTES
#define KIB64 65536ull

static struct um_profile profile;
static struct um_gpu *gpu;
static char log_text[1 << 16]; /* the event log since clear(); it may end early */

static void listen(void *user, const char *line)
{
	size_t used = strlen(log_text);

	(void)user;
	snprintf(log_text + used, sizeof log_text - used, "%s\n", line);
}

static void clear(void)
{
	log_text[0] = 0;
}

static void open_sim(unsigned blocks)
{
	clear();
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = &profile, .capacity = blocks * BLOCK, .log = listen}))
		tap_bail("cannot open");
}

static void shut(void)
{
	gpu->api->close(gpu);
	gpu = NULL;
}

static char *managed(unsigned blocks)
{
	void *p;

	if (gpu->api->cudaMallocManaged(gpu, &p, blocks * BLOCK, 1))
		tap_bail("cannot allocate");
	return p;
}

static void kernel(enum um_pattern pattern, const char *p, uint64_t bytes, unsigned access)
{
	struct um_touch a = {.ptr = p, .bytes = bytes, .access = access};

	if (um_sim_run(gpu, NULL, &(struct um_sim_kernel){.ns = 1000, .access = &a, .n_access = 1, .pattern = pattern}))
		tap_bail("cannot run");
	um_sim_sync(gpu);
}

static void prefetch(const char *p, uint64_t bytes, struct um_location to)
{
	if (gpu->api->cudaMemPrefetchAsync(gpu, p, bytes, to, 0, NULL))
		tap_bail("cannot prefetch");
	um_sim_sync(gpu);
}

static void advise(const char *p, uint64_t bytes, int advice, struct um_location where)
{
	if (gpu->api->cudaMemAdvise(gpu, p, bytes, advice, where))
		tap_bail("cannot advise");
}

/* On a stream of its own: the batch calls refuse the default one. */
static void discard(char *p, size_t bytes)
{
	um_stream s;
	void *at = p;

	gpu->api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	if (gpu->api->cudaMemDiscardBatchAsync(gpu, &at, &bytes, 1, 0, s))
		tap_bail("cannot discard");
	um_sim_sync(gpu);
	gpu->api->cudaStreamDestroy(gpu, s);
}

static void renew(char *p, size_t bytes, struct um_location to)
{
	um_stream s;
	size_t zero = 0;
	void *at = p;

	gpu->api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	if (gpu->api->cudaMemDiscardAndPrefetchBatchAsync(gpu, &at, &bytes, 1, &to, &zero, 1, 0, s))
		tap_bail("cannot discard and prefetch");
	um_sim_sync(gpu);
	gpu->api->cudaStreamDestroy(gpu, s);
}

static struct um_sim_block_state state(const char *p)
{
	struct um_sim_block_state s;

	if (um_sim_block(gpu, p, &s))
		tap_bail("not managed");
	return s;
}

/* The blocks that were evicted since clear(), in order. */
static const char *evicted(void)
{
	static char out[256];
	size_t n = 0;

	out[0] = 0;
	for (const char *l = log_text; (l = strstr(l, " evict m")); l++) {
		const char *block = strchr(l, '+') + 1;

		n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s", n ? " " : "", (int)strcspn(block, " "), block);
	}
	return out;
}

/* KiB that each visit since clear() brought. */
static const char *visits(void)
{
	static char out[256];
	size_t n = 0;

	out[0] = 0;
	for (const char *l = log_text; (l = strstr(l, " visit m")); l++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%lu", n ? " " : "",
				      strtoul(strchr(l + 8, ' '), NULL, 10) / 1024);
	return out;
}

static void unused_blocks_stay_in_order(void)
{
	char *p;

	open_sim(3);
	p = managed(4);
	prefetch(p, 3 * BLOCK, um_on_device(0));
	prefetch(p, BLOCK, um_on_host());
	prefetch(p + BLOCK, BLOCK, um_on_host());
	prefetch(p, BLOCK, um_on_host());
	clear();
	prefetch(p + 3 * BLOCK, BLOCK, um_on_device(0));
	is_str(evicted(), "0", "prefetching an unused block to the host again does not move it in its list");
	shut();

	open_sim(3);
	p = managed(4);
	prefetch(p, 3 * BLOCK, um_on_device(0));
	um_sim_host_touch(gpu, p, BLOCK, UM_READ);
	um_sim_host_touch(gpu, p + BLOCK, BLOCK, UM_READ);
	discard(p, KIB64);
	um_sim_host_touch(gpu, p, BLOCK, UM_WRITE);
	clear();
	prefetch(p + 3 * BLOCK, BLOCK, um_on_device(0));
	is_str(evicted(), "0", "a CPU write to an unused block does not move it in its list");
	shut();
}

static void discarding_twice(void)
{
	char *p;

	open_sim(3);
	p = managed(4);
	prefetch(p, 3 * BLOCK, um_on_device(0));
	discard(p, BLOCK);
	discard(p + BLOCK, BLOCK);
	discard(p, BLOCK);
	clear();
	prefetch(p + 3 * BLOCK, BLOCK, um_on_device(0));
	is_str(evicted(), "0", "discarding an unmapped discarded block again does not move it in its list");
	shut();
}

static void discarded_duplicates(void)
{
	char *p;

	open_sim(3);
	p = managed(2);
	um_sim_host_touch(gpu, p, 2 * BLOCK, UM_WRITE);
	advise(p, 2 * BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_host());
	advise(p + BLOCK, BLOCK, UM_ADV_SET_PREFERRED, um_on_device(0));
	kernel(UM_PATTERN_ONE_BATCH, p, 2 * BLOCK, UM_READ);
	renew(p, 2 * BLOCK, um_on_host());
	is_u64(state(p).gpu, 0, "discard and prefetch of a duplicate drops the device's copy");
	ok(state(p).list == UM_SIM_DISCARDED,
	   "a block whose discarded duplicates left the device is among the discarded");
	is_u64(state(p + BLOCK).gpu, UINT32_MAX, "it drops the host's copy where the device is preferred");
	shut();

	open_sim(3);
	p = managed(1);
	um_sim_host_touch(gpu, p, BLOCK, UM_WRITE);
	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_host());
	clear();
	renew(p, BLOCK, um_on_device(0));
	is_u64(state(p).cpu, UINT32_MAX, "discarded read-mostly memory becomes a duplicate when it is prefetched");
	ok(!strstr(log_text, "migrate"), "the duplicate is not copied");
	shut();
}

static void blocks_share_a_batch(void)
{
	struct um_tally before, after;
	char *p;

	open_sim(8);
	p = managed(8);
	um_sim_host_touch(gpu, p, 8 * BLOCK, UM_WRITE);
	advise(p, 8 * BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_host());
	kernel(UM_PATTERN_ONE_BATCH, p, 8 * BLOCK, UM_READ);
	um_sim_tally(gpu, &before);
	kernel(UM_PATTERN_ONE_BATCH, p, 8 * BLOCK, UM_WRITE);
	um_sim_tally(gpu, &after);
	is_u64(after.faults - before.faults, 8 * 512, "a write of 8 read-mostly blocks faults for each 4 KiB");
	is_u64(after.batches - before.batches, 8 * 512 / 256, "the blocks of a batch share its 256 entries");
	shut();
}

static struct {
	struct um_activity_sink sink;
	unsigned n[UM_CAUSES];
	uint64_t bytes[UM_CAUSES];
} moves;

static int count_move(struct um_activity_sink *sink, const struct um_activity *a)
{
	(void)sink;
	if (a->kind == UM_ACT_MIGRATION) {
		moves.n[a->cause]++;
		moves.bytes[a->cause] += a->bytes;
	}
	return 0;
}

/* The time of a kernel that reads a block written by the CPU. */
static uint64_t read_ns(uint64_t o_seg)
{
	uint64_t begin, keep = profile.o_seg;
	char *p;

	profile.o_seg = o_seg;
	open_sim(2);
	p = managed(1);
	um_sim_host_touch(gpu, p, BLOCK, UM_WRITE);
	memset(&moves, 0, sizeof moves);
	moves.sink.feed = count_move;
	um_sim_count_moves(gpu, &moves.sink);
	begin = um_sim_now(gpu);
	kernel(UM_PATTERN_LIBRARY, p, BLOCK, UM_READ);
	begin = um_sim_now(gpu) - begin;
	shut();
	profile.o_seg = keep;
	return begin;
}

static void copies_of_a_fault(void)
{
	uint64_t ns = read_ns(0);

	is_u64(moves.n[UM_CAUSE_DEMAND], 24, "the first 4 KiB of each faulting page are a copy");
	is_u64(moves.bytes[UM_CAUSE_DEMAND], 24 * 4096, "a copy on demand has 4 KiB");
	is_u64(moves.n[UM_CAUSE_SPECULATIVE], 24, "what the driver adds up to the next fault is a copy");
	is_u64(moves.bytes[UM_CAUSE_SPECULATIVE], BLOCK - 24 * 4096, "the driver adds the rest of the block");
	is_u64(read_ns(1000) - ns, 48 * 1000, "each copy has its fixed time");
}

static void pieces_have_trees_of_their_own(void)
{
	char *p;

	open_sim(2);
	p = managed(1);
	um_sim_host_touch(gpu, p, BLOCK, UM_WRITE);
	advise(p, 8 * KIB64, UM_ADV_SET_ACCESSED_BY, um_on_device(0));
	clear();
	kernel(UM_PATTERN_NARROW, p + 8 * KIB64, 24 * KIB64, UM_READ);
	is_str(visits(), "64 64 128 256 512 512", "the density rule counts from the beginning of a piece");
	shut();

	open_sim(2);
	p = managed(1);
	advise(p, 8 * KIB64, UM_ADV_SET_PREFERRED, um_on_device(0));
	clear();
	kernel(UM_PATTERN_LIBRARY, p + 4 * KIB64, 8 * KIB64, UM_READ);
	is_str(visits(), "512 256",
	       "each piece with a fault is visited, and one that prefers the device comes as a whole");
	shut();

	open_sim(2);
	p = managed(1);
	advise(p, 8 * KIB64, UM_ADV_SET_ACCESSED_BY, um_on_host());
	advise(p, 8 * KIB64, UM_ADV_UNSET_ACCESSED_BY, um_on_host());
	clear();
	kernel(UM_PATTERN_ONE_BATCH, p, 17 * KIB64, UM_READ);
	is_str(visits(), "512 1024", "advice that names the host cuts a block, too, and for good");
	shut();
}

static void short_last_page(void)
{
	struct um_touch a[2];
	void *p;

	open_sim(2);
	if (gpu->api->cudaMallocManaged(gpu, &p, 4 * KIB64 + 4096, 1))
		tap_bail("cannot allocate");
	clear();
	a[0] = (struct um_touch){.ptr = p, .bytes = 2 * KIB64, .access = UM_READ};
	a[1] = (struct um_touch){.ptr = (char *)p + 4 * KIB64, .bytes = 4096, .access = UM_READ};
	um_sim_run(gpu, NULL, &(struct um_sim_kernel){.ns = 1000, .access = a, .n_access = 2});
	um_sim_sync(gpu);
	is_str(visits(), "192", "a last page of 4 KiB is a 65th of its block to the density rule, not a fifth");
	shut();
}

#define US 1000ull

static struct um_sim *sim;
static struct um_sim_block *block;

/* A block whose first page the two processors copy in turns, every `us`, `n` times. */
static void open_fight(uint64_t driver, unsigned n, uint64_t us)
{
	profile.driver = driver;
	open_sim(2);
	managed(1);
	sim = um_sim_of(gpu);
	block = &sim->mem_order.at[0]->block[0];
	for (unsigned i = 1; i <= n; i++)
		um_sim_thrash_moved(sim, block, 1, i % 2, i * us * US);
}

static void shut_fight(void)
{
	shut();
	profile.driver = 595;
}

/* Until when a fault is throttled, in us; 0: it is served. */
static uint64_t throttled(int by_gpu, uint64_t us)
{
	uint64_t until = 0;

	um_sim_thrash_throttled(sim, block, 1, by_gpu, us * US, &until);
	return until / US;
}

static void thrashing_periods(void)
{
	open_fight(595, 4, 100);
	is_u64(um_sim_thrash_pages(block), 0, "a page is not thrashing after four migrations");
	is_u64(throttled(1, 410), 0, "a page that is not thrashing is served");
	um_sim_thrash_moved(sim, block, 1, 1, 500 * US);
	is_u64(um_sim_thrash_pages(block), 1, "a page is thrashing after five migrations");
	is_u64(throttled(0, 600), 0, "the first fault of a period is served");
	is_u64(throttled(1, 700), 1099, "the other processor waits for the end of the period");
	is_u64(throttled(1, 800), 1099, "it still waits if it asks again");
	um_sim_thrash_moved(sim, block, 1, 0, 600 * US);
	is_u64(throttled(1, 1100), 0, "it is served when the period has ended");
	is_u64(throttled(0, 1200), 1600, "then the first processor waits");
	shut_fight();

	open_fight(580, 5, 100);
	is_u64(throttled(0, 1001), 0, "a fault more than a lapse after the last migration is served");
	is_u64(throttled(1, 1002), 0, "it begins no period");
	um_sim_thrash_moved(sim, block, 1, 0, 1100 * US);
	is_u64(um_sim_thrash_pages(block), 0, "a migration more than a lapse after the last one ends the thrashing");
	shut_fight();

	open_fight(580, 5, 100);
	um_sim_thrash_reset(sim, block, 2);
	is_u64(um_sim_thrash_pages(block), 1, "a prefetch of another page does not end the thrashing");
	um_sim_thrash_reset(sim, block, 1);
	is_u64(um_sim_thrash_pages(block), 0, "a prefetch of the page ends it");
	shut_fight();
}

static void thrashing_lapse(void)
{
	open_fight(580, 5, 100);
	throttled(0, 600);
	is_u64(sim->lapse, 500 * US, "the lapse is constant up to driver 580");
	shut_fight();
	open_fight(590, 5, 100);
	throttled(0, 600);
	is_u64(sim->lapse, 500 * US * 9 / 8, "a fault soon after the last migration makes it longer since driver 590");
	shut_fight();
}

/* Alternate faults, each with its migration, until the page is pinned; returns the time of the last one, in us. */
static uint64_t fight(uint64_t us, unsigned *n)
{
	uint64_t t = 500 + us;

	for (*n = 5; *n < 200; t += us) {
		int by_gpu = (*n + 1) % 2;
		uint64_t until = throttled(by_gpu, t);

		if (strstr(log_text, " pin "))
			break;
		if (until)
			t = until + 1;
		else
			um_sim_thrash_moved(sim, block, 1, ++*n % 2, t * US);
	}
	return t;
}

static void pinned_pages(void)
{
	uint64_t t;
	unsigned n;

	open_fight(580, 5, 100);
	t = fight(100, &n);
	is_u64(n, 60, "a wait outlasts the lapse and ends the thrashing: a page is pinned after 60 migrations");
	is_u64(um_sim_thrash_pinned(block), 0, "a page is pinned to the processor that faults");
	t = throttled(0, t + 100);
	ok(t > 0, "the host, which does not reach the device, waits");
	is_u64(throttled(0, t + 1), 0, "the host is served in its period");
	is_u64(um_sim_thrash_pinned(block), 1, "the page is then pinned to the host, which both reach");
	is_u64(um_sim_thrash_users(block, 1, 1), 1, "the device fought for it, and will be mapped");
	is_u64(sim->pins.n, 1, "the page is pinned once");
	um_sim_thrash_expire(sim, sim->pins.at[0].until - 1);
	is_u64(sim->pins.n, 1, "it stays pinned before its time");
	um_sim_thrash_expire(sim, sim->pins.at[0].until);
	is_u64(sim->pins.n, 0, "it is released after 150 ms");
	is_u64(um_sim_thrash_pages(block), 0, "a released page is not thrashing");
	shut_fight();
}

/* CPU faults of a read of a block that is on the device, where it is preferred. */
static uint64_t faults_away(uint64_t driver)
{
	struct um_tally t;
	char *p;

	profile.driver = driver;
	open_sim(2);
	p = managed(1);
	advise(p, BLOCK, UM_ADV_SET_PREFERRED, um_on_device(0));
	prefetch(p, BLOCK, um_on_device(0));
	um_sim_host_touch(gpu, p, BLOCK, UM_READ);
	um_sim_tally(gpu, &t);
	shut_fight();
	return t.cpu_faults;
}

static void away_from_the_preferred_location(void)
{
	is_u64(faults_away(590), 512, "away from the preferred location each 4 KiB faults since driver 590");
	is_u64(faults_away(580), 6, "up to driver 580 the density rule works there, too");
}

int main(void)
{
	profile = *um_profile_find("v100");
	unused_blocks_stay_in_order();
	discarding_twice();
	discarded_duplicates();
	blocks_share_a_batch();
	copies_of_a_fault();
	pieces_have_trees_of_their_own();
	short_last_page();
	thrashing_periods();
	thrashing_lapse();
	pinned_pages();
	away_from_the_preferred_location();
	return tap_done();
}
