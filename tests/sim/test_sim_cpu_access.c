/* SPDX-License-Identifier: Apache-2.0
 *
 * The app's CPU code reads and writes managed memory, and the simulated device notices: the figures are those of the
 * same accesses told to it, and content is never disturbed.
 */
#include "sim/state.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK UM_BLOCK_BYTES
#define KIB64 65536ull

static struct um_profile profile;
static struct um_gpu *gpu;
static struct um_tally before;

static void open_sim(unsigned blocks, int follow)
{
	struct um_sim_options o = {.profile = &profile, .capacity = blocks * BLOCK, .backed = 1, .follow_cpu = follow};

	if (um_sim_open(&gpu, &o))
		tap_bail("cannot open");
	memset(&before, 0, sizeof before);
}

static void shut(void)
{
	gpu->api->close(gpu);
	gpu = NULL;
}

static char *managed(uint64_t bytes)
{
	void *p;

	if (gpu->api->cudaMallocManaged(gpu, &p, bytes, 1))
		tap_bail("cannot allocate");
	return p;
}

/* Host code that stands for a kernel. */
struct body {
	char *p;
	uint64_t bytes;
	int set; /* value to write, or -1: sum up */
	uint64_t sum;
};

static void run_body(void *arg)
{
	struct body *b = arg;

	if (b->set >= 0)
		memset(b->p, b->set, b->bytes);
	for (uint64_t i = 0; b->set < 0 && i < b->bytes; i++)
		b->sum += (unsigned char)b->p[i];
}

static void kernel_with(char *p, uint64_t bytes, unsigned access, struct body *body)
{
	struct um_touch a = {.ptr = p, .bytes = bytes, .access = access};
	struct um_sim_kernel k = {.ns = 1000,
				  .access = &a,
				  .n_access = 1,
				  .pattern = UM_PATTERN_NARROW,
				  .fn = body ? run_body : NULL,
				  .arg = body};

	if (um_sim_run(gpu, NULL, &k) || um_sim_sync(gpu))
		tap_bail("cannot run");
}

static void kernel(char *p, uint64_t bytes, unsigned access)
{
	kernel_with(p, bytes, access, NULL);
}

static struct um_tally since(void)
{
	struct um_tally now, d;

	um_sim_tally(gpu, &now);
	d = now;
	d.faults -= before.faults;
	d.visits -= before.visits;
	d.cpu_faults -= before.cpu_faults;
	d.h2d_bytes -= before.h2d_bytes;
	d.d2h_bytes -= before.d2h_bytes;
	d.evictions -= before.evictions;
	before = now;
	return d;
}

#define IS_TALLY(d, cpu, visit, in, out, name)                                                                         \
	do {                                                                                                           \
		struct um_tally d_ = (d);                                                                              \
		is_u64(d_.cpu_faults, (cpu), name ": CPU faults");                                                     \
		is_u64(d_.visits, (visit), name ": visits");                                                           \
		is_u64(d_.h2d_bytes, (in), name ": bytes to the device");                                              \
		is_u64(d_.d2h_bytes, (out), name ": bytes to the host");                                               \
	} while (0)

static void test_first_use(void)
{
	char *p;

	open_sim(16, 1);
	p = managed(2 * BLOCK);
	kernel(p, BLOCK, UM_WRITE);
	IS_TALLY(since(), 0, 6, 0, 0, "never touched by the CPU");
	memset(p + BLOCK, 1, BLOCK);
	kernel(p + BLOCK, BLOCK, UM_READ);
	IS_TALLY(since(), 6, 6, BLOCK, 0, "initialised by the CPU");
	p = managed(BLOCK);
	p[5 * KIB64] = 1;
	kernel(p, BLOCK, UM_READ);
	IS_TALLY(since(), 1, 6, KIB64, 0, "one byte of a block initialised");
	shut();
}

static void test_readback(void)
{
	volatile char *p, c;

	open_sim(16, 1);
	p = managed(3 * BLOCK);
	memset((char *)p, 3, 3 * BLOCK);
	kernel((char *)p, 3 * BLOCK, UM_READ);
	IS_TALLY(since(), 18, 18, 3 * BLOCK, 0, "three blocks go");
	is_u64(since().cpu_faults, 0, "nothing was touched since");
	c = p[7 * KIB64 + 17];
	IS_TALLY(since(), 1, 0, 0, KIB64, "a byte is read back");
	is_int(c, 3, "the CPU reads what was written");
	c = p[7 * KIB64 + 18];
	is_u64(since().cpu_faults, 0, "its neighbour is there already");
	for (uint64_t i = 0; i < BLOCK; i += 4096)
		c = p[BLOCK + i];
	IS_TALLY(since(), 6, 0, 0, BLOCK, "a block is read back by rising density");
	for (uint64_t i = BLOCK; i; i -= 4096)
		p[2 * BLOCK + i - 4096] = 9;
	IS_TALLY(since(), 6, 0, 0, BLOCK, "a block is overwritten");
	kernel((char *)p + 2 * BLOCK, BLOCK, UM_READ);
	IS_TALLY(since(), 0, 6, BLOCK, 0, "and goes back");
	is_int(p[3 * BLOCK - 4096] + c, 12, "the content arrives with the pages");
	shut();
}

static void test_home(void)
{
	volatile char *p;
	char c;

	open_sim(2, 1);
	p = managed(4 * BLOCK);
	memset((char *)p, 1, 4 * BLOCK);
	kernel((char *)p, 4 * BLOCK, UM_READ);
	since();
	c = p[0];
	IS_TALLY(since(), 1, 0, 0, 0, "an evicted page: a fault, no copy");
	gpu->api->cudaMemPrefetchAsync(gpu, (char *)p + 3 * BLOCK, BLOCK, um_on_host(), 0, NULL);
	is_u64(since().d2h_bytes, BLOCK, "the block is prefetched to the host");
	c = (char)(c + p[3 * BLOCK]);
	IS_TALLY(since(), 0, 0, 0, 0, "and read without a fault");
	is_int(c, 2, "the content is intact after the prefetch to the host");
	shut();
}

static void test_bodies(void)
{
	struct body fill, sum;
	char *p;

	open_sim(16, 1);
	p = managed(2 * BLOCK);
	fill = (struct body){p, 2 * BLOCK, 4, 0};
	sum = (struct body){p, 2 * BLOCK, -1, 0};
	kernel_with(p, 2 * BLOCK, UM_WRITE, &fill);
	IS_TALLY(since(), 0, 12, 0, 0, "host code writes in the device's name");
	kernel_with(p, 2 * BLOCK, UM_READ, &sum);
	IS_TALLY(since(), 0, 0, 0, 0, "and reads");
	is_u64(sum.sum, 4 * 2 * BLOCK, "the kernel computes the sum");
	memset(p, 5, KIB64);
	sum.sum = 0;
	kernel_with(p, 2 * BLOCK, UM_READ, &sum);
	IS_TALLY(since(), 1, 1, KIB64, KIB64, "a page goes to and fro");
	is_u64(sum.sum, 4 * 2 * BLOCK + KIB64, "the kernel sees what the CPU wrote");
	shut();
}

static void test_calls(void)
{
	char *p, other[4096];
	int fd = open("/dev/zero", O_RDONLY), pipes[2];

	if (fd < 0 || pipe(pipes))
		tap_bail("no /dev/zero, no pipe");
	open_sim(16, 1);
	p = managed(2 * BLOCK);
	memset(p, 6, 2 * BLOCK);
	kernel(p, 2 * BLOCK, UM_READ);
	since();
	is_u64((uint64_t)read(fd, p + BLOCK, 4096), 4096, "a system call writes to pages that are away");
	IS_TALLY(since(), 1, 0, 0, KIB64, "and is noticed");
	is_int(p[BLOCK], 0, "the page has what the system call wrote");
	is_u64((uint64_t)write(pipes[1], p, 4096), 4096, "one reads them");
	IS_TALLY(since(), 1, 0, 0, KIB64, "and is noticed");
	is_u64((uint64_t)read(pipes[0], other, 4096), 4096, "memory is read through a pipe");
	is_int(other[4095], 6, "the pipe delivers what memory has");
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
	shut();
}

static char *host_code_at;

static void host_code(void *arg)
{
	(void)arg;
	host_code_at[KIB64] = 8;
}

static void test_copies(void)
{
	char *p, out[100];

	open_sim(16, 1);
	p = managed(2 * BLOCK);
	memset(p, 6, 2 * BLOCK);
	kernel(p, 2 * BLOCK, UM_READ);
	since();
	um_sim_copy(gpu, NULL, &(struct um_sim_copy){out, p + BLOCK, 100, 100, 100, 1}, 1);
	um_sim_set(gpu, NULL, &(struct um_sim_set){p, BLOCK, BLOCK / 4, 1, 7, 4});
	um_sim_sync(gpu);
	IS_TALLY(since(), 0, 0, 0, 0, "a copy and a fill are the device's doing");
	is_int(out[99], 6, "the copy read what the CPU wrote");
	is_int(((int *)p)[5], 7, "the fill is visible to the CPU");
	IS_TALLY(since(), 1, 0, 0, KIB64, "reading it is the CPU's");
	host_code_at = p;
	um_sim_call(gpu, NULL, host_code, NULL);
	kernel(p, BLOCK, UM_READ);
	IS_TALLY(since(), 1, 1, 2 * KIB64, KIB64, "a host function is the CPU's, too");
	shut();
}

static void test_duplicates(void)
{
	volatile char *p;
	char c;

	open_sim(16, 1);
	p = managed(BLOCK);
	memset((char *)p, 2, BLOCK);
	gpu->api->cudaMemAdvise(gpu, (char *)p, BLOCK, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
	kernel((char *)p, BLOCK, UM_READ);
	since();
	c = p[0];
	IS_TALLY(since(), 0, 0, 0, 0, "a duplicate is read without a fault");
	is_int(c, 2, "the content is intact");
	shut();
}

static void discard(void *p, size_t bytes)
{
	um_stream s;

	gpu->api->cudaStreamCreateWithFlags(gpu, &s, UM_STREAM_NON_BLOCKING);
	if (gpu->api->cudaMemDiscardBatchAsync(gpu, &p, &bytes, 1, 0, s) || um_sim_sync(gpu))
		tap_bail("cannot discard");
	gpu->api->cudaStreamDestroy(gpu, s);
}

/* Bytes in [p, p + bytes) that differ from `want`. */
static uint64_t differ(const char *p, uint64_t bytes, char want)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < bytes; i++)
		n += p[i] != want;
	return n;
}

static void test_discard(void)
{
	char *p, *q;

	open_sim(8, 1);
	um_sim_of(gpu)->opt.poison = 1;
	p = managed(2 * BLOCK);
	memset(p, 1, 2 * BLOCK);
	kernel(p, 2 * BLOCK, UM_READ);
	discard(p, 2 * BLOCK);
	since();
	memset(p, 7, BLOCK);
	IS_TALLY(since(), 512, 0, 0, 0, "the CPU writes a discarded block");
	memset(p + BLOCK, 7, BLOCK / 2);
	IS_TALLY(since(), 256, 0, 0, 0, "the CPU writes half of another");
	memset(p + BLOCK + BLOCK / 2, 7, BLOCK / 2);
	IS_TALLY(since(), 256, 0, 0, 0, "the CPU writes the other half, which its faults have mapped");
	kernel(p, 2 * BLOCK, UM_READ);
	is_u64(since().h2d_bytes, 2 * BLOCK, "a kernel gets all that the CPU wrote since the discard");
	q = managed(8 * BLOCK);
	kernel(q, 8 * BLOCK, UM_WRITE);
	is_u64(since().d2h_bytes, 2 * BLOCK, "an eviction copies all of it");
	is_u64(differ(p, 2 * BLOCK, 7), 0, "an eviction overwrites nothing of it");
	shut();
}

/* The same program told by um_sim_host_touch, and done. */
static struct um_tally program(int follow)
{
	struct um_tally t;
	char *p, *q;

	open_sim(3, follow);
	p = managed(3 * BLOCK - 5000);
	q = managed(BLOCK);
	for (int round = 0; round < 3; round++) {
		if (follow) {
			memset(p, round, 3 * BLOCK - 5000);
			memset(q, round, 3 * KIB64);
		} else {
			um_sim_host_touch(gpu, p, 3 * BLOCK - 5000, UM_WRITE);
			um_sim_host_touch(gpu, q, 3 * KIB64, UM_WRITE);
		}
		kernel(p, 3 * BLOCK - 5000, UM_UPDATE);
		kernel(q, BLOCK, UM_UPDATE);
	}
	if (follow)
		q[BLOCK - 1] = 1;
	else
		um_sim_host_touch(gpu, q + BLOCK - 1, 1, UM_WRITE);
	gpu->api->cudaFree(gpu, p);
	um_sim_tally(gpu, &t);
	shut();
	return t;
}

static void test_same(void)
{
	struct um_tally announced = program(0), done = program(1), again = program(1);

	ok(announced.cpu_faults > 40 && announced.evictions > 0, "a program with faults and evictions");
	ok(!memcmp(&announced, &done, sizeof announced), "done is as told: %llu, %llu faults; at %llu, %llu ns",
	   (unsigned long long)announced.cpu_faults, (unsigned long long)done.cpu_faults,
	   (unsigned long long)announced.ns, (unsigned long long)done.ns);
	ok(!memcmp(&done, &again, sizeof done), "a repeated run has the same figures");
}

/* What the child finds at the address goes through a pipe, as a system call reads it: nothing, or something else. */
static void test_fork(void)
{
	int status, pipes[2];
	char *p, got = 0;
	pid_t child;

	if (pipe(pipes))
		tap_bail("no pipe");
	open_sim(4, 1);
	p = managed(BLOCK);
	p[0] = 1;
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(write(pipes[1], p, 1) != 1);
	if (child < 0 || waitpid(child, &status, 0) != child)
		tap_bail("cannot fork");
	close(pipes[1]);
	ok(read(pipes[0], &got, 1) == 0 || got != 1, "a child of fork has no managed memory");
	is_int(p[0], 1, "the parent has its own content");
	close(pipes[0]);
	shut();
}

static void test_off(void)
{
	char *p;

	open_sim(4, 0);
	ok(!um_sim_follows(gpu), "tracking is off by default");
	p = managed(BLOCK);
	memset(p, 1, BLOCK);
	kernel(p, BLOCK, UM_READ);
	IS_TALLY(since(), 0, 6, 0, 0, "off");
	shut();
}

int main(void)
{
	profile = *um_profile_find("v100");
	test_off();
	if (!um_sim_cpu_access_supported()) {
		skip(1, "this system does not show a process its page tables");
		return tap_done();
	}
	test_same();
	test_first_use();
	test_readback();
	test_home();
	test_bodies();
	test_calls();
	test_copies();
	test_duplicates();
	test_discard();
	test_fork();
	return tap_done();
}
