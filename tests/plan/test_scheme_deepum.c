/* SPDX-License-Identifier: Apache-2.0
 *
 * DeepUM: its tables by hand; and a driver that has learned what follows what, on kernels with a block each.
 */
#include "sim/sim.h"
#include "schemes/deepum.h"
#include "schemes/deepum_tables.h"
#include "tap.h"

#define BLOCK UM_BLOCK_BYTES
#define KERNELS 64
#define VISITS 3 /* of the fault handler until a block is whole */
#define ROOM 44 /* blocks: 32 kernels ahead, this one, and some */

static void tables(void)
{
	struct um_deepum_tables t = {0};
	uint64_t out[UM_DEEPUM_SUCCESSORS];

	for (uint64_t next = 11; next <= 15; next++)
		um_deepum_relate(&t, 1, 10, next);
	um_deepum_relate(&t, 1, 10, 13);
	is_int((int)um_deepum_successors(&t, 1, 10, out), 4, "four successors are kept");
	ok(out[0] == 13 && out[1] == 15 && out[2] == 14 && out[3] == 12, "successors are listed latest first");
	is_int((int)um_deepum_successors(&t, 2, 10, out), 0, "each kernel has a table of its own");
	um_deepum_relate(&t, 1, 10 + UM_DEEPUM_ROWS, 20);
	um_deepum_relate(&t, 1, 10, 12);
	um_deepum_relate(&t, 1, 10 + 2 * UM_DEEPUM_ROWS, 30);
	is_int((int)um_deepum_successors(&t, 1, 10, out), 4, "two blocks share a row");
	is_int((int)um_deepum_successors(&t, 1, 10 + 2 * UM_DEEPUM_ROWS, out), 1,
	       "a third kernel in a full row has one successor");
	is_int((int)um_deepum_successors(&t, 1, 10 + UM_DEEPUM_ROWS, out), 0, "takes the place of what was used least");
	um_deepum_tables_fini(&t);
}

/* Two ways lead to `c`, over `a` and `b`; three kernels back they differ. */
static void contexts(void)
{
	static const char runs[] = "xabcd.....yabce";
	struct um_deepum_tables t = {0};
	struct um_deepum_context c = {0}, x, y;

	for (const char *p = runs; *p; p++) {
		um_deepum_followed(&t, &c, (uint64_t)*p);
		um_deepum_shift(&c, (uint64_t)*p);
	}
	x = (struct um_deepum_context){'c', {'b', 'a', 'x'}};
	y = (struct um_deepum_context){'c', {'b', 'a', 'y'}};
	is_u64(um_deepum_next(&t, &x), 'd', "the kernel after x, a, b, c is known");
	is_u64(um_deepum_next(&t, &y), 'e', "the kernel after y, a, b, c is known");
	y.before[2] = 'z';
	is_u64(um_deepum_next(&t, &y), UM_DEEPUM_NONE, "a kernel that was never seen has no successor");
	um_deepum_followed(&t, &x, 'f');
	is_u64(um_deepum_next(&t, &x), 'f', "the latest counts");
	um_deepum_tables_fini(&t);
}

struct device {
	struct um_gpu *gpu;
	void *driver;
	char *memory;
	uint64_t faults, in, out; /* so far */
};

static void device_open(struct device *d, int with)
{
	struct um_sim_options o = {.profile = um_profile_find("v100"), .capacity = ROOM * BLOCK};
	void *p;

	memset(d, 0, sizeof *d);
	if (um_sim_open(&d->gpu, &o) || d->gpu->api->cudaMallocManaged(d->gpu, &p, KERNELS * BLOCK, 1) ||
	    um_sim_host_touch(d->gpu, p, KERNELS * BLOCK, UM_WRITE)) /* it has host pages: evictions allocate none */
		tap_bail("no device");
	d->memory = p;
	if (with && um_deepum_driver.open(&d->driver, d->gpu))
		tap_bail("no driver");
}

static void device_close(struct device *d)
{
	if (d->driver)
		um_deepum_driver.close(d->driver);
	d->gpu->api->close(d->gpu);
}

/* Kernels [0, n), each on a block of its own, with time for copies. Sums are those of this time. */
static void iterate(struct device *d, int n)
{
	struct um_tally t;

	for (int i = 0; i < n; i++) {
		struct um_touch a = {.ptr = d->memory + i * BLOCK, .bytes = BLOCK, .access = UM_UPDATE};
		struct um_sim_kernel k = {.name = "kernel", .ns = 1000000, .access = &a, .n_access = 1};

		if (um_sim_run(d->gpu, NULL, &k))
			tap_bail("cannot run");
	}
	if (um_sim_sync(d->gpu))
		tap_bail("cannot wait");
	um_sim_tally(d->gpu, &t);
	t.faults -= d->faults;
	t.h2d_bytes -= d->in;
	t.d2h_bytes -= d->out;
	d->faults += t.faults;
	d->in += t.h2d_bytes;
	d->out += t.d2h_bytes;
	diag("%d kernels: %d faults, %d blocks in, %d out", n, (int)t.faults, (int)(t.h2d_bytes / BLOCK),
	     (int)(t.d2h_bytes / BLOCK));
}

static int resident(const struct device *d, int i)
{
	struct um_sim_block_state s;

	return !um_sim_block(d->gpu, d->memory + i * BLOCK, &s) && s.gpu;
}

static void learn(void)
{
	struct device plain, d;
	uint64_t faults, in, out;
	int i;

	device_open(&plain, 0);
	device_open(&d, 1);
	is_int(um_deepum_driver.tensor(d.driver, 0, d.memory, KERNELS * BLOCK, 1), 0, "all of it is in use");
	for (i = 0; i < 4; i++)
		iterate(&plain, KERNELS);
	faults = plain.faults;
	iterate(&plain, KERNELS);
	ok(plain.faults - faults >= KERNELS, "without prefetches the driver faults for each kernel of every iteration");
	iterate(&d, KERNELS);
	is_u64(d.faults, plain.faults / 5 / VISITS, "first the rest of a block follows its first fault");
	faults = d.faults;
	iterate(&d, KERNELS);
	/* What comes behind the first three was learned in another context: none had come before them. */
	is_u64(d.faults - faults, faults / KERNELS * 4, "the first four kernels of the second iteration fault");
	faults = d.faults;
	in = d.in;
	out = d.out;
	iterate(&d, KERNELS);
	is_u64(d.faults, faults, "no kernel faults after the second iteration");
	is_u64(d.in - in, KERNELS * BLOCK, "each block comes once");
	is_u64(d.out - out, KERNELS * BLOCK, "each block leaves once in an iteration");
	iterate(&d, 9);
	for (i = 9; i < KERNELS && resident(&d, i); i++)
		;
	is_int(i, 8 + 32 + 1, "the chain is followed 32 kernels ahead");
	device_close(&plain);
	device_close(&d);
}

/* What holds no tensor is dropped. */
static void invalidate(void)
{
	struct device d;
	uint64_t out;

	device_open(&d, 1);
	um_deepum_driver.tensor(d.driver, 0, d.memory, KERNELS * BLOCK, 1);
	for (int i = 0; i < 3; i++)
		iterate(&d, KERNELS);
	out = d.out;
	um_deepum_driver.tensor(d.driver, 3 * KERNELS, d.memory, KERNELS * BLOCK, 0);
	iterate(&d, KERNELS);
	is_u64(d.out, out, "nothing is copied out once nothing is alive");
	device_close(&d);
}

int main(void)
{
	tables();
	contexts();
	learn();
	invalidate();
	return tap_done();
}
