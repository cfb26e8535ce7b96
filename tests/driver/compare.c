/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.c - compare STATES DRIVER: plays random states on both sides, and prints a table
 */
#include "compare.h"
#include "model/profile.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS_MAX 64
#define SHOWN 3 /* differences of a row that are explained */

uint64_t compare_random(void)
{
	static uint64_t a = 0x9e3779b97f4a7c15, b = 0x1395d3a7e1b05f27;
	uint64_t x = a, y = b;

	a = y;
	x ^= x << 23;
	b = x ^ y ^ x >> 17 ^ y >> 26;
	return b + y;
}

uint32_t compare_below(uint32_t n)
{
	return (uint32_t)(compare_random() % n);
}

struct um_sim *compare_open(uint64_t driver, unsigned capacity, uint64_t bytes, void (*log)(void *, const char *))
{
	struct um_profile profile = *um_profile_find("v100");
	struct um_gpu *gpu;
	void *p;

	profile.driver = driver;
	if (um_sim_open(
		    &gpu,
		    &(struct um_sim_options){.profile = &profile, .capacity = capacity * UM_BLOCK_BYTES, .log = log}) ||
	    gpu->api->cudaMallocManaged(gpu, &p, bytes, 1)) {
		fprintf(stderr, "compare: no memory\n");
		exit(2);
	}
	return um_sim_of(gpu);
}

void compare_close(struct um_sim *sim)
{
	sim->gpu.api->close(&sim->gpu);
}

int compare_judge(struct compare_row *row, int same)
{
	row->states++;
	if (same)
		return 1;
	if (row->differ++ < SHOWN && !row->documented)
		printf("# %s: state %lu differs\n", row->name, row->states);
	return 0;
}

int main(int argc, char **argv)
{
	static struct compare_row rows[ROWS_MAX];
	unsigned long states = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, all = 0, differ = 0, documented = 0;
	uint64_t driver = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	unsigned n = 0;

	if (!states || !driver) {
		fprintf(stderr, "usage: compare STATES DRIVER\n");
		return 2;
	}
	n += compare_density(rows + n, states, driver);
	n += compare_policies(rows + n, states, driver);
	n += compare_copies(rows + n, states);
	n += compare_fights(rows + n, states, driver);
	n += compare_lists(rows + n, states, driver);
	printf("%-64s %10s %10s  %s\n", "what", "states", "differ", "documented");
	for (unsigned i = 0; i < n; i++) {
		printf("%-64s %10lu %10lu  %s\n", rows[i].name, rows[i].states, rows[i].differ,
		       rows[i].documented ? rows[i].documented : "");
		all += rows[i].states;
		*(rows[i].documented ? &documented : &differ) += rows[i].differ;
	}
	if (uvm_asserts)
		printf("%lu assertions of the driver failed\n", uvm_asserts);
	differ += uvm_asserts;
	printf("%lu states, %lu differences, %lu documented\n", all, differ, documented);
	return differ ? 1 : 0;
}
