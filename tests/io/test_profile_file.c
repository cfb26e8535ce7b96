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
	static const char *const names[] = {"k40",  "1080ti", "v100",  "rtx3090", "rtx4090", "rtx5090", "rtxpro6000",
					    "a10",  "l4",     "l40s",  "a100",	  "h20",     "h100",	"h200",
					    "b200", "gh200",  "gb200", "gb10",	  NULL};
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

/* The profile of each name that CUDA reports. */
static void check_names(void)
{
	static const char *const names[][2] = {
		{"NVIDIA A100-SXM4-40GB", "a100"},
		{"NVIDIA A100 80GB PCIe", "a100"},
		{"NVIDIA A10", "a10"},
		{"NVIDIA A10G", "a10"},
		{"NVIDIA L4", "l4"},
		{"NVIDIA L40S", "l40s"},
		{"NVIDIA H20", "h20"},
		{"NVIDIA H200", "h200"},
		{"NVIDIA H100 80GB HBM3", "h100"},
		{"NVIDIA GH200 480GB", "gh200"},
		{"NVIDIA B200", "b200"},
		{"NVIDIA GB200", "gb200"},
		{"NVIDIA GB10", "gb10"},
		{"NVIDIA GeForce RTX 3090", "rtx3090"},
		{"NVIDIA GeForce RTX 4090", "rtx4090"},
		{"NVIDIA GeForce RTX 5090", "rtx5090"},
		{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000"},
		{"NVIDIA GeForce GTX 1080 Ti", "1080ti"},
		{"Tesla V100-SXM2-16GB", "v100"},
		{"Tesla V100S-PCIE-32GB", "v100"},
		{"Tesla K40m", "k40"},
	};
	static const char *const unknown[] = {"NVIDIA GeForce RTX 4090 Laptop GPU",
					      "NVIDIA A1000",
					      "NVIDIA H2000",
					      "NVIDIA XA100",
					      "Tesla T4",
					      "NVIDIA GeForce GTX 1080",
					      ""};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct um_profile *p = um_profile_of_device(names[i][0]);

		is_str(p ? p->name : "none", names[i][1], "the profile of '%s' is %s", names[i][0], names[i][1]);
	}
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		ok(!um_profile_of_device(unknown[i]), "no profile is for '%s'", unknown[i]);
}

/* Each constant of each device says whether it was measured, derived or assumed. */
static void check_sources(const char *path)
{
	char line[512], key[64], from[200];
	unsigned constants = 0, devices = 0, silent = 0;

	for (; um_profile_builtin(devices); devices++) {
		const struct um_profile *p = um_profile_find(um_profile_builtin(devices));
		FILE *f;

		if (um_profile_write(path, p, NULL, NULL) || !(f = fopen(path, "r")))
			tap_bail("cannot write");
		while (fgets(line, sizeof line, f)) {
			if (sscanf(line, "%63[a-z0-9_] =", key) != 1 || !strcmp(key, "name") ||
			    !strcmp(key, "measured") || !strcmp(key, "coherent") || !strcmp(key, "serial_host") ||
			    !strcmp(key, "driver"))
				continue;
			constants++;
			if (um_profile_source(p->name, key, from, sizeof from) ||
			    (strncmp(from, "measured by others", 18) && strncmp(from, "derived: ", 9) &&
			     strncmp(from, "assumed", 7))) {
				diag("%s: %s: %s", p->name, key, from);
				silent++;
			}
		}
		fclose(f);
	}
	is_u64(silent, 0, "each constant of each device has a source");
	is_u64(constants, devices * 33, "these are all constants");
	um_profile_source("a100", "mem_bandwidth", from, sizeof from);
	is_str(from, "assumed: 0.84 of the data sheet's 1555 GB/s", "a rate names the data sheet's");
	um_profile_source("a100", "duplex_evict", from, sizeof from);
	ok(strstr(from, "derived: log") == from, "the a100's own constant has its own source");
	um_profile_source("v100", "duplex_evict", from, sizeof from);
	is_str(from, "assumed: as duplex", "the others' is assumed");
	is_int(um_profile_source("a100", "nonesuch", from, sizeof from), -ENOENT, "a key that is none has no source");
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
	check_names();
	check_sources(path);
	check_estimate();
	check_round_trip(path);
	check_files();
	ok(unlink(path) == 0, "the file is removed");
	return tap_done();
}
