/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles: what is built in, files, and the estimate of an op's duration.
 */
#include "io/profile_file.h"
#include "tap.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

static void check_builtin(void)
{
	static const char *const names[] = {"k40", "1080ti", "v100", "rtx4090", "a100", "h100", "h200", "gh200", NULL};
	const struct um_profile *p = um_profile_find("a100");
	unsigned n = 0;

	for (; names[n]; n++)
		is_str(um_profile_builtin(n), names[n], "built-in profile %u has its name", n);
	ok(!um_profile_builtin(n), "there is no further built-in profile");
	ok(!um_profile_find("a100 "), "a name is a whole name");
	is_str(p->name, "a100", "the a100 is found by name");
	is_u64(p->capacity, 40ull << 30, "the a100 has its capacity");
	ok(p->flops == 60e12 && p->mem_bandwidth == 1.3e12 && p->launch_ns == 4000, "the a100 has its speed");
	ok(p->h2d == 24e9 && p->d2h == 24e9 && p->duplex == 0.5 && p->eta == 0.9, "the a100 has its link");
	ok(um_profile_find("gh200")->d2h == 297e9 && um_profile_find("1080ti")->d2h == 13e9,
	   "one direction may be slower");
	is_u64(p->c_batch, 60000, "a cost of the driver is read");
	is_u64(p->c_dma_4k, 300000, "another profile has its own figures");
	ok(!p->measured, "a built-in profile is marked as assumed");
}

static void check_estimate(void)
{
	struct um_profile p;
	struct um_cost flops = {1e9, 0, 0}, bytes = {1e6, 3e6, 0}, ns = {1e15, 1e15, 42}, nothing = {0},
		       wild = {1e300, 0, 0};

	um_profile_init(&p);
	ok(p.flops == 0 && p.capacity == 0 && p.duplex == 1 && p.b_remote == 0.8,
	   "an initialised profile has 0 in required keys and defaults in others");
	is_u64(p.driver, 595, "the driver is 595 unless a profile names another");
	p.flops = 1e12;
	p.mem_bandwidth = 2e9;
	p.launch_ns = 7;
	is_u64(um_profile_op_ns(&p, &flops, 0), 1000007, "an op is estimated by its floating-point operations");
	is_u64(um_profile_op_ns(&p, &bytes, 0), 1500007, "an op is estimated by its traffic");
	is_u64(um_profile_op_ns(&p, &ns, 0), 42, "a measured op takes its measured time");
	is_u64(um_profile_op_ns(&p, &nothing, 0), 7, "a launch at least");
	is_u64(um_profile_op_ns(&p, &nothing, 4e6), 2000007, "an op without a cost moves each byte that it touches");
	is_u64(um_profile_op_ns(&p, &bytes, 1e9), 1500007, "an op with a cost takes no time for what it touches");
	is_u64(um_profile_op_ns(&p, &flops, 1e9), 1000007, "a cost may be floating-point operations alone");
	p.launch_ns = 0;
	bytes.bytes = 1; /* half a ns */
	bytes.flops = 0;
	is_u64(um_profile_op_ns(&p, &bytes, 0), 1, "times are rounded to the nearest ns");
	ok(um_profile_op_ns(&p, &wild, 0) <= 1000000000000000000ull, "impossible times are bounded");
	p.flops = 0;
	is_u64(um_profile_op_ns(&p, &flops, 0), 0, "an unknown rate adds nothing");
}

/* Around the padding behind `measured`. */
static int same(const struct um_profile *p, const struct um_profile *q)
{
	const size_t costs = offsetof(struct um_profile, c_batch);

	return memcmp(p, q, offsetof(struct um_profile, measured)) == 0 && p->measured == q->measured &&
	       memcmp((const char *)p + costs, (const char *)q + costs, sizeof *p - costs) == 0;
}

static void check_round_trip(const char *path)
{
	struct um_profile p, q;
	struct um_diag d;

	for (unsigned i = 0; um_profile_builtin(i); i++) {
		memcpy(&p, um_profile_find(um_profile_builtin(i)), sizeof p);
		p.measured = i % 2;
		p.h2d = nextafter(p.h2d, 0); /* needs all its digits */
		memset(&q, 0, sizeof q);
		is_int(um_profile_write(path, &p, NULL, &d), 0, "%s is written", p.name);
		if (!is_int(um_profile_get(path, &q, &d), 0, "the written profile is read"))
			diag("%" PRIu64 ": %s", d.line, d.text);
		ok(same(&p, &q), "the profile is the same after writing");
	}
	is_int(um_profile_write("no/such/folder", &p, NULL, &d), -ENOENT, "a missing folder is refused");
}

static void check_files(void)
{
	static const char text[] = "name=x\ncapacity = 1.5 GiB # comment\nflops=1e12\nmem_bandwidth=1e9\n"
				   "launch_ns=0\nh2d=1.5e9\nd2h=2e9";
	struct um_profile p = {.capacity = 77};
	struct um_diag d;

	is_int(um_profile_get("nobody", &p, &d), -ENOENT, "a missing profile is refused");
	ok(strstr(d.text, "a100") && strstr(d.text, "gh200"), "the built-in ones are named");
	is_u64(p.capacity, 77, "a refused profile leaves the output untouched");
	is_int(um_profile_read_mem("name = x\n", 9, "mine", &p, &d), -EINVAL, "a profile that lacks keys");
	is_str(d.file, "mine", "the diagnostic names the file");
	is_u64(p.capacity, 77, "a refused profile leaves the output untouched");
	is_int(um_profile_read_mem("eta", 3, "mine", &p, NULL), -EINVAL, "diag may be absent");
	is_int(um_profile_read_mem(text, strlen(text), "mine", &p, &d), 0, "a complete profile is read");
	is_u64(p.capacity, 3ull << 29, "a fraction of a unit is read");
	ok(p.h2d == 1.5e9 && p.eta == 0.9 && p.c_api == 10000, "missing keys have their defaults");
	is_int(um_profile_get("a100", &p, &d), 0, "a built-in profile is found");
	is_str(p.name, "a100", "a built-in profile is found by its name");
}

int main(void)
{
	char path[] = "profile-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		tap_bail("no file to write to");
	close(fd);
	check_builtin();
	check_estimate();
	check_round_trip(path);
	check_files();
	ok(unlink(path) == 0, "the file is removed");
	return tap_done();
}
