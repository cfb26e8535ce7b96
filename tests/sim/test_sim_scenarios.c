/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios T1 to T36 of doc/simulator.md: what the driver does with one block, a list, a page, in exact figures.
 */
#include "sim/state.h"
#include "tap.h"

#define MIB (1ull << 20)
#define BLOCK UM_BLOCK_BYTES
#define KIB64 65536ull

static struct um_profile profile;
static struct um_gpu *gpu;
static struct um_tally before; /* at the last since() */
static char *lines; /* the log */
static size_t lines_n, lines_cap;

static void listen(void *user, const char *line)
{
	size_t n = strlen(line);

	(void)user;
	if (lines_n + n + 2 > lines_cap) {
		lines_cap = 2 * (lines_cap + n + 2);
		lines = realloc(lines, lines_cap);
		if (!lines)
			tap_bail("no memory");
	}
	memcpy(lines + lines_n, line, n);
	lines_n += n;
	lines[lines_n++] = '\n';
	lines[lines_n] = 0;
}

static void clear(void)
{
	lines_n = 0;
	listen(NULL, "");
}

static void open_sim(unsigned blocks)
{
	clear();
	if (um_sim_open(&gpu, &(struct um_sim_options){.profile = &profile, .capacity = blocks * BLOCK, .log = listen}))
		tap_bail("cannot open");
	memset(&before, 0, sizeof before);
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

/* Managed memory that the CPU has written. */
static char *written(unsigned blocks)
{
	char *p = managed(blocks);

	um_sim_host_touch(gpu, p, blocks * BLOCK, UM_WRITE);
	return p;
}

static void kernel_as(enum um_pattern pattern, const char *p, uint64_t bytes, unsigned access)
{
	struct um_touch a = {.ptr = p, .bytes = bytes, .access = access};

	if (um_sim_run(gpu, NULL, &(struct um_sim_kernel){.ns = 1000, .access = &a, .n_access = 1, .pattern = pattern}))
		tap_bail("cannot run");
}

static void kernel(const char *p, uint64_t bytes, unsigned access)
{
	kernel_as(UM_PATTERN_LIBRARY, p, bytes, access);
	um_sim_sync(gpu);
}

static void prefetch(const char *p, uint64_t bytes)
{
	if (gpu->api->cudaMemPrefetchAsync(gpu, p, bytes, um_on_device(0), 0, NULL))
		tap_bail("cannot prefetch");
}

static void fetch_home(const char *p, uint64_t bytes)
{
	if (gpu->api->cudaMemPrefetchAsync(gpu, p, bytes, um_on_host(), 0, NULL))
		tap_bail("cannot prefetch to the host");
}

static void advise(const char *p, uint64_t bytes, int advice, struct um_location where)
{
	if (gpu->api->cudaMemAdvise(gpu, p, bytes, advice, where))
		tap_bail("cannot advise");
}

/* On a stream of its own: the batch calls refuse the default one. */
static void discard(char *p, size_t bytes, int renew)
{
	void *at = p;
	um_stream s;
	size_t zero = 0;
	struct um_location here = um_on_device(0);
	int err;

	gpu->api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	if (renew)
		err = gpu->api->cudaMemDiscardAndPrefetchBatchAsync(gpu, &at, &bytes, 1, &here, &zero, 1, 0, s);
	else
		err = gpu->api->cudaMemDiscardBatchAsync(gpu, &at, &bytes, 1, 0, s);
	if (err)
		tap_bail("cannot discard");
	um_sim_sync(gpu);
	gpu->api->cudaStreamDestroy(gpu, s);
}

/* What happened since the last call. */
static struct um_tally since(void)
{
	struct um_tally now, d;

	um_sim_sync(gpu);
	um_sim_tally(gpu, &now);
	d = now;
	d.faults -= before.faults;
	d.visits -= before.visits;
	d.batches -= before.batches;
	d.cpu_faults -= before.cpu_faults;
	d.h2d_bytes -= before.h2d_bytes;
	d.d2h_bytes -= before.d2h_bytes;
	d.evictions -= before.evictions;
	d.remote_bytes -= before.remote_bytes;
	d.zeroed_bytes -= before.zeroed_bytes;
	before = now;
	return d;
}

static struct um_sim_block_state state(const char *p)
{
	struct um_sim_block_state s;

	if (um_sim_block(gpu, p, &s))
		tap_bail("not managed");
	return s;
}

static unsigned count(const char *word)
{
	unsigned n = 0;

	for (const char *p = lines; (p = strstr(p, word)); p++)
		n++;
	return n;
}

/* The last words of the lines that contain `what`, in order. */
static const char *tails(const char *what, int last_but)
{
	static char out[512];
	char *copy = strdup(lines), *save = NULL;

	out[0] = 0;
	for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *end, *word;

		if (!strstr(l, what))
			continue;
		end = l + strlen(l);
		for (int k = 0; k < last_but; k++) {
			*strrchr(l, ' ') = 0;
		}
		word = strrchr(l, ' ') + 1;
		if (end && strlen(out) + strlen(word) + 2 < sizeof out) {
			strcat(out, *out ? " " : "");
			strcat(out, word);
		}
	}
	free(copy);
	return out;
}

static const char growth[] = "65536 65536 131072 262144 524288 1048576";

static void first_touch(void)
{
	struct um_tally t;
	char *p;

	open_sim(4);
	p = managed(1);
	kernel_as(UM_PATTERN_NARROW, p, BLOCK, UM_READ);
	t = since();
	is_u64(t.visits, 6, "T1 first touch, one fault at a time: 6 visits");
	is_str(tails(" visit ", 0), growth, "T1 migrations grow with each fault");
	is_u64(t.h2d_bytes, 0, "T1 nothing is copied");
	is_u64(t.resident_bytes, BLOCK, "T1 one chunk is resident");
	is_u64(t.faults, 6, "T1 as many faults");

	clear();
	p = written(1);
	since();
	clear();
	kernel_as(UM_PATTERN_NARROW, p, BLOCK, UM_READ);
	t = since();
	is_u64(t.visits, 6, "T2 memory initialised by the CPU has the same visits");
	is_str(tails("migrate h2d", 0), growth, "T2 each copies what it brings");
	is_u64(t.h2d_bytes, BLOCK, "T2 moves 2 MiB in all");
	ok(state(p).cpu_chunk && !state(p).cpu, "T2 the host chunk stays cached");
	shut();
}

static void density(void)
{
	const unsigned first[] = {2, 3, 5, 9, 17}, kib[] = {128, 256, 512, 1024, 2048};
	char *p;

	open_sim(8);
	p = managed(4);
	kernel_as(UM_PATTERN_ONE_BATCH, p, 17 * KIB64, UM_READ);
	kernel_as(UM_PATTERN_ONE_BATCH, p + BLOCK, 16 * KIB64, UM_READ);
	um_sim_sync(gpu);
	is_u64(state(p).gpu, UINT32_MAX, "T3 17 pages in one batch bring the block");
	is_u64(state(p + BLOCK).gpu, 0xffff, "T3 16 bring half of it");
	for (int i = 0; i < 5; i++)
		is_int(64 * __builtin_popcount(um_sim_density(UINT32_MAX, 0, (1u << first[i]) - 1, 16)), (int)kib[i],
		       "T3 the first %u pages bring %u KiB", first[i], kib[i]);
	is_u64(um_sim_density(UINT32_MAX, 0, 0xaaaaaaaa | 2 | 1, 16), UINT32_MAX, "T3 any 17 pages bring the block");
	since();
	for (unsigned i = 0; i < 16; i++)
		kernel_as(UM_PATTERN_NARROW, p + 2 * BLOCK + i * 2 * KIB64, 4096, UM_READ);
	is_u64(since().visits, 16, "T4 a stride of 128 KiB makes 16 visits");
	is_u64(state(p + 2 * BLOCK).gpu, 0x55555555, "T4 1 MiB is resident");
	is_u64(before.resident_bytes, 3 * BLOCK, "T4 2 MiB of device memory are used");
	advise(p + 3 * BLOCK, BLOCK, UM_ADV_SET_PREFERRED, um_on_device(0));
	kernel_as(UM_PATTERN_NARROW, p + 3 * BLOCK, 4096, UM_READ);
	is_u64(since().visits, 1, "T5 a preferred location makes one visit");
	is_u64(state(p + 3 * BLOCK).gpu, UINT32_MAX, "T5 brings the whole block");
	shut();
}

static void preferred_host(void)
{
	struct um_tally t;
	char *p;

	open_sim(4);
	p = written(1);
	advise(p, BLOCK, UM_ADV_SET_PREFERRED, um_on_host());
	advise(p, BLOCK, UM_ADV_SET_ACCESSED_BY, um_on_device(0));
	since();
	for (int i = 0; i < 3; i++)
		kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.faults, 0, "T6 preferred host and accessed by the GPU: no fault");
	is_u64(t.h2d_bytes, 0, "T6 nothing is migrated");
	is_u64(t.remote_bytes, 3 * BLOCK, "T6 all bytes go over the link, every time");

	p = written(1);
	advise(p, BLOCK, UM_ADV_SET_PREFERRED, um_on_host());
	since();
	kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.faults, 512, "T7 preferred host alone: a fault for each 4 KiB page");
	is_u64(t.h2d_bytes, 0, "T7 nothing is migrated");
	kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.faults, 0, "T7 later accesses do not fault");
	is_u64(t.remote_bytes, BLOCK, "T7 but all bytes over the link");

	p = written(1);
	since();
	kernel(p, 4096, UM_READ);
	kernel(p, 4096, UM_WRITE);
	is_u64(since().faults, 1, "T8 a read, then a write: one fault");
	shut();
}

static void prefetch_resident(void)
{
	uint64_t t0;
	char *p;

	open_sim(4);
	p = written(8);
	prefetch(p, 4 * BLOCK);
	since();
	t0 = um_sim_now(gpu);
	prefetch(p, 2 * BLOCK);
	is_u64(um_sim_now(gpu) - t0, profile.c_api + 2 * profile.c_pf_res,
	       "T9 prefetch of a resident range takes its time");
	is_u64(since().h2d_bytes, 0, "T9 nothing is copied");
	clear();
	for (int i = 4; i < 8; i++)
		kernel(p + i * BLOCK, BLOCK, UM_READ);
	is_str(tails("evict ", 1), "m1+2 m1+3 m1+0 m1+1", "T9 its blocks are the most recent, in address order");
	shut();
}

static void two_passes(void)
{
	const unsigned n[] = {100, 101, 150}, h2d[] = {100, 202, 300}, d2h[] = {0, 102, 200};

	for (int i = 0; i < 3; i++) {
		struct um_tally t;
		unsigned in = 0;
		char *p;

		open_sim(100);
		p = written(n[i]);
		since();
		prefetch(p, n[i] * BLOCK);
		t = since();
		is_u64(t.h2d_bytes / BLOCK, h2d[i], "T10 %u blocks into 100: H2D", n[i]);
		is_u64(t.d2h_bytes / BLOCK, d2h[i], "T10 %u blocks into 100: D2H", n[i]);
		for (unsigned k = n[i] - 100; k < n[i]; k++)
			in += state(p + k * BLOCK).gpu == UINT32_MAX;
		is_u64(in, 100, "T10 %u blocks into 100: the last 100 stay", n[i]);
		shut();
	}
	open_sim(4);
	prefetch(managed(1), 4096);
	is_u64(since().resident_bytes, BLOCK, "T11 prefetch of one page takes 2 MiB");
	shut();
}

static void sweep(char *p, int n, int step, int by_prefetch)
{
	for (int i = step > 0 ? 0 : n - 1; i >= 0 && i < n; i += step) {
		if (by_prefetch)
			prefetch(p + i * BLOCK, BLOCK);
		kernel_as(UM_PATTERN_LIBRARY, p + i * BLOCK, BLOCK, UM_READ);
	}
}

static void cyclic(void)
{
	const int n[] = {101, 150};

	for (int i = 0; i < 2; i++)
		for (int by_prefetch = 0; by_prefetch < 2; by_prefetch++) {
			struct um_tally t;
			char *p;

			open_sim(100);
			p = written((unsigned)n[i]);
			sweep(p, n[i], 1, by_prefetch);
			since();
			sweep(p, n[i], 1, by_prefetch);
			t = since();
			is_u64(t.h2d_bytes / BLOCK, (uint64_t)n[i], "T12 cyclic, %d of 100, by %s: all miss", n[i],
			       by_prefetch ? "prefetch" : "faults");
			is_u64(t.evictions, (uint64_t)n[i], "T12 and as many are evicted");
			shut();
		}
	open_sim(100);
	char *p = written(150);
	prefetch(p, 150 * BLOCK);
	since();
	prefetch(p, 150 * BLOCK);
	is_u64(since().h2d_bytes / BLOCK, 300, "T12 one prefetch call over all 150: 300");
	shut();
}

/* One kernel over more than fits, again and again. */
static void one_kernel(void)
{
	enum { N = 60, C = 40 };
	struct um_tally t;

	for (int k = 0; k < UM_PATTERNS; k++) {
		enum um_pattern pattern = (enum um_pattern)k;
		char *p;

		open_sim(C);
		p = written(N);
		kernel_as(pattern, p, N * BLOCK, UM_UPDATE);
		is_u64(since().h2d_bytes / BLOCK, N,
		       "T12 one kernel over 60 of 40 blocks (pattern %d): all miss at first", k);
		kernel_as(pattern, p, N * BLOCK, UM_UPDATE);
		since();
		kernel_as(pattern, p, N * BLOCK, UM_UPDATE);
		t = since();
		if (pattern == UM_PATTERN_WIDE) {
			is_u64(t.h2d_bytes / BLOCK, N - C, "T12 wide: then only what was not resident at its begin");
			is_u64(t.evictions, N - C, "T12 wide: and as many are evicted");
		} else {
			ok(t.h2d_bytes / BLOCK > C + (N - C) / 2, "T12 pattern %d: then almost all miss", k);
		}
		for (int i = 0; i < 2 * N; i++)
			kernel_as(pattern, p + i % N * BLOCK, BLOCK, UM_READ);
		since();
		for (int i = 0; i < N; i++)
			kernel_as(pattern, p + i * BLOCK, BLOCK, UM_READ);
		is_u64(since().h2d_bytes / BLOCK, N, "T12 a kernel for each block: all miss with every pattern");
		shut();
	}
}

/* The resident block that is used again last, going round; -1 if there is room. */
static int optimal_victim(const char *in, int n, int c, int at)
{
	int held = 0, best = -1;

	for (int k = 1; k < n; k++) {
		int i = (at + k) % n;

		if (in[i]) {
			held++;
			best = i;
		}
	}
	return held < c ? -1 : best;
}

static void optimal(void)
{
	enum { N = 15, C = 10 };
	char in[N] = {0}, *p;
	struct um_tally t;

	open_sim(C);
	p = written(N);
	for (int it = 0; it < 2 * N - 1; it++) {
		if (it == N)
			since();
		for (int i = 0; i < N; i++) {
			int v = in[i] ? -1 : optimal_victim(in, N, C, i);

			if (v >= 0) {
				in[v] = 0;
				fetch_home(p + v * BLOCK, BLOCK);
			}
			in[i] = 1;
			prefetch(p + i * BLOCK, BLOCK);
			kernel_as(UM_PATTERN_LIBRARY, p + i * BLOCK, BLOCK, UM_READ);
		}
	}
	t = since();
	is_u64(t.h2d_bytes / BLOCK, N * (N - C), "T13 optimal order: N (N - C) misses in N - 1 iterations");
	is_u64(t.faults, 0, "T13 without a fault");
	shut();

	open_sim(C);
	p = written(N);
	advise(p + C * BLOCK, (N - C) * BLOCK, UM_ADV_SET_PREFERRED, um_on_host());
	advise(p + C * BLOCK, (N - C) * BLOCK, UM_ADV_SET_ACCESSED_BY, um_on_device(0));
	sweep(p, N, 1, 0);
	since();
	sweep(p, N, 1, 0);
	t = since();
	is_u64(t.remote_bytes / BLOCK, N - C, "T13 N - C where some may stay on the host");
	is_u64(t.h2d_bytes, 0, "T13 and nothing moves");
	shut();
}

static void hot(void)
{
	char *p;

	open_sim(4);
	p = written(13);
	for (int i = 1; i < 13; i++) {
		kernel(p, BLOCK, UM_READ);
		kernel(p + i * BLOCK, BLOCK, UM_READ);
	}
	/* Hot, 1, 2, 3, (4 evicts hot), hot again, ... */
	is_u64(count(" evict m1+0 "), 3, "T14 a hot block is evicted like the rest");
	shut();
}

static void there_and_back(void)
{
	const int n[] = {150, 125}, faults[] = {150, 125}, hinted[] = {100, 50};

	for (int i = 0; i < 2; i++)
		for (int by_prefetch = 0; by_prefetch < 2; by_prefetch++) {
			char *p;

			open_sim(100);
			p = written((unsigned)n[i]);
			for (int it = 0; it < 6; it++) {
				since();
				sweep(p, n[i], 1, by_prefetch);
				sweep(p, n[i], -1, by_prefetch);
			}
			is_u64(since().h2d_bytes / BLOCK, (uint64_t)(by_prefetch ? hinted[i] : faults[i]),
			       "T15 forward and backward over %d: %s", n[i],
			       by_prefetch ? "a prefetch before each use is optimal" : "faults only");
			shut();
		}
}

static void what_moves(void)
{
	struct um_tally t;
	char *p, *q;

	open_sim(1);
	p = written(1);
	q = written(1);
	kernel(p, BLOCK, UM_READ);
	since();
	kernel(q, BLOCK, UM_READ);
	is_u64(since().d2h_bytes, BLOCK, "T16 a clean block is copied back all the same");

	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	since();
	kernel(p, BLOCK, UM_READ);
	is_u64(since().h2d_bytes, BLOCK, "T17 read-mostly: copied in");
	kernel(q, BLOCK, UM_READ);
	is_u64(since().d2h_bytes, 0, "T17 the block is evicted needlessly");
	kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.h2d_bytes, BLOCK, "T17 the block is copied in again");
	is_u64(t.d2h_bytes, BLOCK, "T17 (the other one is not read-mostly)");

	p = managed(1);
	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	kernel(p, BLOCK, UM_WRITE);
	since();
	kernel(q, BLOCK, UM_READ);
	is_u64(since().d2h_bytes, BLOCK, "T18 read-mostly, populated on the GPU: the first eviction copies");
	kernel(p, BLOCK, UM_READ);
	since();
	kernel(q, BLOCK, UM_READ);
	is_u64(since().d2h_bytes, 0, "T18 later ones do not");
	shut();

	open_sim(4);
	for (int k = 0; k <= UM_PATTERN_ONE_BATCH; k++) {
		p = written(1);
		advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
		kernel_as((enum um_pattern)k, p, BLOCK, UM_UPDATE);
		since();
		kernel_as((enum um_pattern)k, p, BLOCK, UM_UPDATE);
		t = since();
		is_u64(t.faults, 512, "T19 read-mostly and written (pattern %d): a fault for each 4 KiB page", k);
		is_u64(t.h2d_bytes + t.d2h_bytes, 0, "T19 and no byte moves");
	}
	shut();
}

/* More of read-mostly than the table has. */
static void read_mostly(void)
{
	char *p;

	open_sim(2);
	p = written(1);
	prefetch(p, BLOCK);
	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	since();
	kernel(p, BLOCK, UM_READ);
	is_u64(since().faults, 0, "T19 setting read-mostly leaves what is there readable");
	kernel(p, 4096, UM_WRITE);
	is_u64(since().faults, 16, "T19 the page is not writable");

	p = written(1);
	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	prefetch(p, BLOCK);
	since();
	kernel(p, KIB64, UM_WRITE);
	is_u64(since().faults, 16, "T19 a prefetched duplicate of what the CPU has mapped is read-only");
	kernel(managed(2), 2 * BLOCK, UM_WRITE);
	is_u64(state(p).cpu, UINT32_MAX, "T17 evicted, it is whole on the host");
	prefetch(p, BLOCK);
	since();
	kernel(p, BLOCK, UM_WRITE);
	is_u64(since().faults, 31 * 16, "T19 one of what it has not (here, what was written) is writable");
	shut();

	open_sim(1);
	p = written(1);
	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	kernel(p, BLOCK, UM_WRITE);
	since();
	kernel(managed(1), BLOCK, UM_WRITE);
	is_u64(since().d2h_bytes, BLOCK, "T18 written on the GPU, there is one copy, and it has to be saved");

	p = written(1);
	advise(p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	kernel(p, BLOCK, UM_READ);
	since();
	um_sim_host_touch(gpu, p, BLOCK, UM_READ);
	is_u64(since().cpu_faults, 0, "T17 the CPU reads its own copy");
	um_sim_host_touch(gpu, p, 4096, UM_WRITE);
	is_u64(since().cpu_faults, 1, "T17 writing faults");
	is_u64(state(p).gpu, ~1u, "T17 and drops the GPU's");
	shut();
}

static void discards(void)
{
	struct um_tally t;
	char *p;

	open_sim(4);
	p = managed(6);
	kernel(p, 4 * BLOCK, UM_WRITE);
	discard(p + 2 * BLOCK, 2 * BLOCK, 0);
	t = since();
	ok(state(p + 2 * BLOCK).list == UM_SIM_UNUSED, "T20 discarded blocks are unused");
	is_u64(t.resident_bytes, 2 * BLOCK, "T20 the page is not resident");
	clear();
	kernel(p + 4 * BLOCK, 2 * BLOCK, UM_WRITE);
	t = since();
	is_str(tails("evict ", 1), "m1+2 m1+3", "T20 they go first");
	is_u64(t.d2h_bytes, 0, "T20 without a copy");
	is_u64(t.host_bytes, 2 * BLOCK, "T20 host memory grows");
	shut();

	open_sim(1);
	p = managed(2);
	kernel(p, BLOCK, UM_WRITE);
	discard(p, BLOCK / 2, 0);
	ok(state(p).list == UM_SIM_USED, "T21 half a block discarded: still in use");
	since();
	kernel(p + BLOCK, BLOCK, UM_WRITE);
	is_u64(since().d2h_bytes, MIB, "T21 half of it is copied");
	shut();

	open_sim(4);
	p = managed(3);
	kernel(p, 2 * BLOCK, UM_WRITE);
	since();
	discard(p, BLOCK, 1);
	t = since();
	is_u64(t.h2d_bytes + t.d2h_bytes, 0, "T22 discard and prefetch: nothing moves");
	kernel(p, BLOCK, UM_WRITE);
	is_u64(since().faults, 0, "T22 writing does not fault");
	clear();
	kernel(managed(4), 4 * BLOCK, UM_WRITE);
	is_str(tails("evict ", 1), "m1+1 m1+0", "T22 and it was the most recent");
	shut();

	for (int k = 0; k <= UM_PATTERN_ONE_BATCH; k++) {
		open_sim(4);
		p = managed(1);
		kernel(p, BLOCK, UM_WRITE);
		discard(p, BLOCK, 0);
		since();
		kernel_as((enum um_pattern)k, p, BLOCK, UM_WRITE);
		is_u64(since().faults, 512, "T23 discarded, then written by faults (pattern %d): one for each 4 KiB",
		       k);
		ok(state(p).list == UM_SIM_DISCARDED, "T23 the block is among the discarded ones");
		kernel_as((enum um_pattern)k, p, BLOCK, UM_WRITE);
		is_u64(since().faults, 0, "T23 written, it faults no more");
		kernel(managed(4), 4 * BLOCK, UM_WRITE);
		is_u64(since().d2h_bytes, BLOCK, "T23 and what was written is copied");
		shut();
	}
	open_sim(1);
	p = managed(2);
	kernel(p, BLOCK, UM_WRITE);
	discard(p, BLOCK, 0);
	kernel(p, BLOCK, UM_READ);
	since();
	kernel(p + BLOCK, BLOCK, UM_WRITE);
	is_u64(since().d2h_bytes, 0, "T23 only read, it is still discarded");
	shut();
}

static void discarded_and_written_by_the_cpu(void)
{
	char *p;

	open_sim(8);
	p = written(1);
	prefetch(p, BLOCK);
	discard(p, BLOCK, 0);
	since();
	um_sim_host_touch(gpu, p, BLOCK, UM_READ);
	is_u64(since().cpu_faults, 6, "a CPU read of discarded memory faults as one of other memory does");
	is_u64(state(p).discarded, UINT32_MAX, "a CPU read ends no discard");
	um_sim_host_touch(gpu, p + 9 * KIB64, 1, UM_WRITE);
	is_u64(since().cpu_faults, 16, "a CPU write to a discarded page that is mapped faults for each 4 KiB");
	is_u64(state(p).discarded, ~(1u << 9), "a CPU write ends the discard of its page alone");
	um_sim_host_touch(gpu, p + 9 * KIB64, 1, UM_WRITE);
	is_u64(since().cpu_faults, 0, "a second CPU write to the page does not fault");
	kernel(p, BLOCK, UM_READ);
	is_u64(since().h2d_bytes, KIB64, "a kernel gets the page that the CPU wrote");
	shut();

	open_sim(8);
	p = written(1);
	prefetch(p, BLOCK);
	discard(p, BLOCK, 0);
	since();
	um_sim_host_touch(gpu, p, BLOCK, UM_WRITE);
	is_u64(since().cpu_faults, 512, "a CPU write of a discarded block faults for each 4 KiB");
	is_u64(state(p).discarded, 0, "a block that the CPU wrote as a whole is discarded nowhere");
	kernel(p, BLOCK, UM_READ);
	is_u64(since().h2d_bytes, BLOCK, "a kernel gets all that the CPU wrote");
	shut();
}

static void home_and_back(void)
{
	size_t was_free, is_free, total;
	struct um_tally t;
	uint64_t t0;
	char *p;

	open_sim(2);
	p = written(3);
	prefetch(p, 2 * BLOCK);
	since();
	t0 = um_sim_now(gpu);
	fetch_home(p, BLOCK);
	ok(um_sim_now(gpu) - t0 >= um_sim_copy_ns(um_sim_of(gpu), UM_SIM_D2H, BLOCK, 1, 0),
	   "T24 the caller is blocked");
	t = since();
	is_u64(t.d2h_bytes, BLOCK, "T24 prefetch to the host copies at once");
	is_u64(t.evictions, 0, "T24 and is no eviction");
	ok(state(p).list == UM_SIM_UNUSED && state(p).chunk, "T24 the chunk is unused");
	kernel(p + 2 * BLOCK, BLOCK, UM_READ);
	t = since();
	is_u64(t.evictions, 1, "T24 its chunk is taken first");
	is_u64(t.d2h_bytes, 0, "T24 the eviction copies nothing");

	fetch_home(p + BLOCK, BLOCK);
	since();
	gpu->api->cudaMemGetInfo(gpu, &was_free, &total);
	prefetch(p + BLOCK, BLOCK);
	gpu->api->cudaMemGetInfo(gpu, &is_free, &total);
	t = since();
	is_u64(t.h2d_bytes, BLOCK, "T25 a round trip to the host copies it in");
	is_u64(t.evictions + (was_free - is_free), 0, "T25 into the chunk it had");
	shut();
}

static void after_eviction(void)
{
	struct um_tally t;
	char *p, *q;

	open_sim(1);
	p = written(1);
	q = written(1);
	kernel(p, BLOCK, UM_READ);
	advise(p, BLOCK, UM_ADV_SET_ACCESSED_BY, um_on_device(0));
	since();
	kernel(q, BLOCK, UM_READ);
	since();
	kernel(p, BLOCK, UM_READ);
	kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.faults, 0, "T26 accessed by the GPU and evicted: no fault");
	is_u64(t.remote_bytes, 2 * BLOCK, "T26 the memory stays remote");
	prefetch(p, BLOCK);
	since();
	kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.remote_bytes + t.faults, 0, "T26 a prefetch brings it back");
	/* Before the deferred mapping: the block is evicted and needed at once. */
	um_sim_run(
		gpu, NULL,
		&(struct um_sim_kernel){.access = (struct um_touch[]){{q, BLOCK, 0, UM_READ}, {p, BLOCK, 0, UM_READ}},
					.n_access = 2,
					.pattern = UM_PATTERN_NARROW});
	t = since();
	is_u64(t.h2d_bytes, BLOCK, "T26 evicted in the middle of a kernel: it is not pulled back");
	shut();

	open_sim(1);
	p = written(1);
	q = written(1);
	advise(p, BLOCK, UM_ADV_SET_PREFERRED, um_on_device(0));
	kernel(p, BLOCK, UM_READ);
	kernel(q, BLOCK, UM_READ);
	since();
	kernel(p, BLOCK, UM_READ);
	t = since();
	is_u64(t.h2d_bytes, BLOCK, "T27 preferred on the GPU, evicted, touched: it migrates back");
	ok(t.faults > 0, "T27 by faults");
	shut();
}

static void device_memory(void)
{
	size_t was_free, is_free, total;
	struct um_tally t;
	uint64_t t0;
	void *d, *d2;
	char *p;

	open_sim(4);
	p = written(4);
	prefetch(p, 4 * BLOCK);
	since();
	t0 = um_sim_now(gpu);
	clear();
	is_int(gpu->api->cudaMalloc(gpu, &d, 3 * BLOCK), UM_CUDA_OK, "T28 device memory is full of managed data");
	t = since();
	is_u64(t.evictions, 3, "T28 evicts as many blocks");
	is_str(tails("evict ", 1), "m1+0 m1+1 m1+2", "T28 in the order of the list");
	ok(um_sim_now(gpu) - t0 >= 3 * um_sim_copy_ns(um_sim_of(gpu), UM_SIM_D2H, BLOCK, 1, 0),
	   "T28 the caller waits for their copies");
	gpu->api->cudaMemGetInfo(gpu, &was_free, &total);
	is_int(gpu->api->cudaMalloc(gpu, &d2, 2 * BLOCK), UM_CUDA_NO_MEMORY, "T28 device memory is never evicted");
	gpu->api->cudaFree(gpu, d);
	gpu->api->cudaMemGetInfo(gpu, &is_free, &total);
	is_u64(is_free - was_free, 4 * BLOCK, "T28 freed, there is room again");
	shut();
}

static void small_device_memory(void)
{
	size_t at_first, total, now;
	void *d[9];

	open_sim(10);
	gpu->api->cudaMemGetInfo(gpu, &at_first, &total);
	for (int i = 0; i < 8; i++)
		gpu->api->cudaMalloc(gpu, &d[i], 250 << 10);
	gpu->api->cudaMemGetInfo(gpu, &now, &total);
	is_u64(at_first - now, BLOCK, "T37 small allocations of device memory share a chunk");
	gpu->api->cudaMalloc(gpu, &d[8], 100 << 10);
	gpu->api->cudaMemGetInfo(gpu, &now, &total);
	is_u64(at_first - now, 2 * BLOCK, "T37 one that does not fit takes another");
	for (int i = 0; i < 7; i++)
		gpu->api->cudaFree(gpu, d[i]);
	gpu->api->cudaMemGetInfo(gpu, &now, &total);
	is_u64(at_first - now, 2 * BLOCK, "T37 a chunk is in use as long as one of its allocations is");
	gpu->api->cudaFree(gpu, d[7]);
	gpu->api->cudaFree(gpu, d[8]);
	gpu->api->cudaMemGetInfo(gpu, &now, &total);
	is_u64(now, at_first, "T37 freed, there is room again");
	gpu->api->cudaMalloc(gpu, &d[0], 1 << 20);
	gpu->api->cudaMalloc(gpu, &d[1], 1 << 20);
	gpu->api->cudaMemGetInfo(gpu, &now, &total);
	is_u64(at_first - now, 2 * BLOCK, "T37 an allocation of 1 MiB has a chunk of its own");
	shut();
}

static void used_memory(void)
{
	struct um_sim_memory m = {0};
	char *p;

	open_sim(10);
	p = managed(2);
	um_sim_memory(gpu, p + 100, &m);
	is_u64(m.used, 2 * BLOCK, "T38 kernels use all of an allocation");
	um_sim_use_memory(gpu, p, BLOCK + 5000);
	um_sim_memory(gpu, p + 100, &m);
	is_u64(m.used, BLOCK + 5000, "T38 or its first bytes, where the rest rounds its size up");
	is_u64(m.bytes, 2 * BLOCK, "T38 its size stays");
	shut();
}

static void duplex(void)
{
	struct um_profile keep = profile;

	for (int kappa = 0; kappa < 2; kappa++) {
		uint64_t t0, one = BLOCK / 8; /* ns, at 8 bytes/ns */
		um_stream away;
		char *p;

		um_profile_init(&profile);
		profile.h2d = profile.d2h = 8e9;
		profile.eta = 1;
		profile.duplex = 1 - kappa; /* of copies that are no evictions */
		profile.duplex_evict = kappa;
		profile.o_seg = profile.c_pf = profile.c_evict = profile.c_api = profile.c_unmap = profile.c_dma = 0;
		open_sim(50);
		p = written(100);
		prefetch(p, 50 * BLOCK);
		since();
		t0 = um_sim_now(gpu);
		prefetch(p + 50 * BLOCK, 50 * BLOCK);
		um_sim_sync(gpu);
		is_u64(um_sim_now(gpu) - t0, kappa ? 51 * one : 100 * one,
		       "T29 prefetch with eviction, kappa %d: H2D at %s", kappa,
		       kappa ? "the full rate" : "half the rate");

		gpu->api->cudaStreamCreateWithFlags(gpu, &away, UM_STREAM_NON_BLOCKING);
		fetch_home(p + 50 * BLOCK, 50 * BLOCK);
		prefetch(p, 25 * BLOCK);
		um_sim_sync(gpu);
		t0 = um_sim_now(gpu);
		prefetch(p + 25 * BLOCK, 25 * BLOCK);
		gpu->api->cudaMemPrefetchAsync(gpu, p, 25 * BLOCK, um_on_host(), 0, away);
		um_sim_sync(gpu);
		ok(kappa ? um_sim_now(gpu) - t0 >= 50 * one : um_sim_now(gpu) - t0 < 40 * one,
		   "T29 without evictions the directions overlap by the other constant");
		shut();
	}
	profile = keep;
}

static void ping_pong(void)
{
	char *p, *q;
	int at = 0;

	open_sim(2);
	p = written(3);
	for (int i = 0; i < 50; i++)
		sweep(p, 3, 1, 0);
	um_sim_sync(gpu);
	is_u64(count("thrashing") + count("throttle") + count(" pin "), 0, "T30 one GPU alone never thrashes");
	shut();

	open_sim(2);
	q = written(1);
	clear();
	for (int i = 0; i < 40 && !count(" pin "); i++) {
		if (i % 2)
			um_sim_host_touch(gpu, q, 4096, UM_WRITE);
		else
			kernel_as(UM_PATTERN_NARROW, q, 4096, UM_WRITE);
		um_sim_sync(gpu);
		if (!at && count("thrashing"))
			at = i + 1;
	}
	is_int(at, 5, "T31 CPU and GPU write one page: thrashing from the fifth migration");
	is_u64(count("throttle"), 10, "T31 the block is throttled ten times");
	is_u64(count(" pin "), 1, "T31 the block is then pinned");
	kernel_as(UM_PATTERN_NARROW, q, 4096, UM_WRITE);
	um_sim_sync(gpu);
	ok(state(q).remote & 1 && state(q).cpu & 1, "T31 the block is pinned to the host");
	since();
	um_sim_host_touch(gpu, q, 4096, UM_WRITE);
	kernel_as(UM_PATTERN_NARROW, q, 4096, UM_WRITE);
	is_u64(since().faults, 0, "T31 and both may write");
	um_sim_run(gpu, NULL, &(struct um_sim_kernel){.ns = 151000000});
	kernel_as(UM_PATTERN_NARROW, q, 4096, UM_WRITE);
	is_u64(since().faults, 1, "T31 150 ms later it is released");
	ok(count("unpin") == 1 && state(q).gpu & 1, "T31 and migrates again");
	shut();
}

static void unaligned_advice(void)
{
	char *p;

	open_sim(2);
	p = written(4);
	advise(p, BLOCK + KIB64, UM_ADV_SET_PREFERRED, um_on_device(0));
	is_u64(count("split"), 1, "T32 advice off by 64 KiB cuts a block");
	prefetch(p + BLOCK, BLOCK);
	prefetch(p, BLOCK);
	prefetch(p + BLOCK, BLOCK); /* a touch, if it were a full-size block */
	advise(p, BLOCK + KIB64, UM_ADV_UNSET_PREFERRED, um_on_device(0));
	prefetch(p + BLOCK, BLOCK); /* nor does it become one again */
	um_sim_sync(gpu);
	clear();
	prefetch(p + 2 * BLOCK, BLOCK);
	is_str(tails("evict ", 1), "m1+1", "T32 its parts are not refreshed by use");
	shut();
}

static void advice_lock(void)
{
	struct um_profile keep = profile;
	um_event_handle start, end, fault;
	um_stream a, b;
	uint64_t t0, t1;
	float ms;
	char *p, *q;

	profile.c_unmap = profile.c_dma = 0;
	open_sim(200);
	p = written(101);
	q = managed(1);
	gpu->api->cudaStreamCreateWithFlags(gpu, &a, UM_STREAM_NON_BLOCKING);
	gpu->api->cudaStreamCreateWithFlags(gpu, &b, UM_STREAM_NON_BLOCKING);
	gpu->api->cudaEventCreateWithFlags(gpu, &start, 0);
	gpu->api->cudaEventCreateWithFlags(gpu, &end, 0);
	gpu->api->cudaEventCreateWithFlags(gpu, &fault, 0);
	um_sim_sync(gpu);
	t0 = um_sim_now(gpu);
	gpu->api->cudaEventRecord(gpu, start, a);
	um_sim_run(gpu, a, &(struct um_sim_kernel){.ns = 1000000});
	gpu->api->cudaEventRecord(gpu, end, a);
	gpu->api->cudaMemPrefetchAsync(gpu, p, 100 * BLOCK, um_on_device(0), 0, a);
	/* On another stream, a kernel that will fault half-way through the prefetch, on memory that needs no copy. */
	um_sim_run(gpu, b, &(struct um_sim_kernel){.ns = 2000000});
	um_sim_run(gpu, b, &(struct um_sim_kernel){.access = &(struct um_touch){q, 4096, 0, UM_READ}, .n_access = 1});
	gpu->api->cudaEventRecord(gpu, fault, b);
	gpu->api->cudaEventSynchronize(gpu, end);
	advise(p + 100 * BLOCK, BLOCK, UM_ADV_SET_PREFERRED, um_on_device(0));
	t1 = t0 + 1000000 + 100 * profile.c_pf + profile.c_api + profile.c_adv;
	is_u64(um_sim_now(gpu), t1, "T33 advice waits for the prefetch that runs, then does its work");
	um_sim_sync(gpu);
	gpu->api->cudaEventElapsedTime(gpu, &ms, start, fault);
	is_u64((uint64_t)(ms * 1e6 + 0.5), t1 - t0 + profile.c_batch + profile.c_fault + profile.c_blk,
	       "T33 a fault that arrives meanwhile waits behind it");
	gpu->api->cudaEventDestroy(gpu, start);
	gpu->api->cudaEventDestroy(gpu, end);
	gpu->api->cudaEventDestroy(gpu, fault);
	shut();
	profile = keep;
}

static void cpu_touches(void)
{
	struct um_tally t;
	uint64_t t0;
	char *p;

	open_sim(1);
	p = written(2);
	kernel(p, BLOCK, UM_READ);
	kernel(p + BLOCK, BLOCK, UM_READ); /* evicts the first */
	since();
	um_sim_host_touch(gpu, p, 4096, UM_READ);
	t = since();
	is_u64(t.cpu_faults, 1, "T34 the CPU touches an evicted page: a fault");
	is_u64(t.d2h_bytes, 0, "T34 without a copy");
	t0 = um_sim_now(gpu);
	um_sim_host_touch(gpu, p + BLOCK, 4096, UM_READ);
	ok(um_sim_now(gpu) - t0 >= profile.c_cpuf + um_sim_copy_ns(um_sim_of(gpu), UM_SIM_D2H, KIB64, 1, 0),
	   "T34 and a resident one: the caller waits");
	is_u64(since().d2h_bytes, KIB64, "T34 the visit covers 64 KiB");
	shut();

	open_sim(10);
	p = written(10);
	is_u64(since().host_bytes, 10 * BLOCK, "T35 the CPU initialises the memory");
	prefetch(p, 10 * BLOCK);
	is_u64(since().host_bytes, 10 * BLOCK, "T35 all on the GPU: host memory is not given back");
	gpu->api->cudaFree(gpu, p);
	is_u64(since().host_bytes, 0, "T35 until it is freed");
	is_u64(before.resident_bytes, 0, "T35 and so are the chunks");
	shut();
}

static void play(void)
{
	char *p, *q;
	um_stream s;

	open_sim(20);
	p = written(30);
	q = managed(15);
	gpu->api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	for (int i = 0; i < 10; i++) {
		struct um_touch a[] = {{p + i * BLOCK, 5 * BLOCK + 5000, 0, UM_READ},
				       {q + i % 3 * BLOCK, 7 * BLOCK, 3 * MIB, UM_UPDATE}};

		um_sim_run(gpu, NULL, &(struct um_sim_kernel){.name = "k", .ns = 12345, .access = a, .n_access = 2});
		gpu->api->cudaMemPrefetchAsync(gpu, p + (i + 2) * BLOCK, 4 * BLOCK, um_on_device(0), 0, s);
		if (i % 4 == 3)
			discard(q, 3 * BLOCK, i % 8 == 3);
	}
	um_sim_sync(gpu);
	shut();
}

static void same_again(void)
{
	char *first;

	play();
	first = strdup(lines);
	play();
	ok(strlen(first) > 1000, "T36 a trace makes a log");
	is_str(lines, first, "T36 the same trace again makes the same, byte for byte");
	free(first);
}

int main(void)
{
	profile = *um_profile_find("a100");
	first_touch();
	density();
	preferred_host();
	prefetch_resident();
	two_passes();
	cyclic();
	one_kernel();
	optimal();
	hot();
	there_and_back();
	what_moves();
	read_mostly();
	discards();
	discarded_and_written_by_the_cpu();
	home_and_back();
	after_eviction();
	device_memory();
	small_device_memory();
	used_memory();
	duplex();
	ping_pong();
	unaligned_advice();
	advice_lock();
	cpu_touches();
	same_again();
	free(lines);
	return tap_done();
}
