/* SPDX-License-Identifier: Apache-2.0
 *
 * scans.h - launches whose parameters are scanned as the preloaded library does, without a driver
 *
 * Tensors are addresses that nothing lives at. A test includes it once.
 */
#ifndef UM_TESTS_INJECT_SCANS_H
#define UM_TESTS_INJECT_SCANS_H

#include "inject/driver.h"
#include "inject/launch.h"

#include "tap.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define LIST 6u /* words of the struct, parameter 0; parameter 1 is one address */

struct um_real um_real; /* no driver */
atomic_int um_driver_state = 1;

int um_driver_search(void)
{
	return 0;
}

um_dlsym_fn um_real_dlsym(void)
{
	return NULL;
}

struct kernel {
	struct um_function_layout *f;
	uint64_t list[LIST], address;
	struct um_inject_uses uses; /* of its latest launch */
};

static struct um_injected device;
static uint64_t next_at = 0x2b0000000000;
static struct um_function_layout others[UM_LAUNCH_ROWS];
static const struct um_function_layout *kernels; /* all of them: they are kept to the end */

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static inline uint64_t tensor_at(uint64_t at, uint64_t bytes)
{
	const struct um_range r = {at, bytes, &device, UM_RANGE_ADOPTED, 1};

	if (um_ranges_add(&r))
		tap_bail("no memory");
	return at;
}

static inline uint64_t tensor(uint64_t bytes)
{
	next_at += 4 * MIB;
	return tensor_at(next_at, bytes);
}

static inline void drop(uint64_t at)
{
	struct um_range r;

	if (!um_ranges_remove(at, &r))
		tap_bail("a tensor was not there");
}

static inline uint64_t freed(void)
{
	uint64_t at = tensor(MIB);

	tensor(MIB); /* keeps the address among the allocations */
	drop(at);
	return at;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static inline void open_kernel(struct kernel *k)
{
	memset(k, 0, sizeof *k);
	k->f = calloc(1, sizeof *k->f + (LIST + 1) * sizeof *k->f->word);
	if (!k->f)
		tap_bail("no memory");
	k->f->next = kernels;
	kernels = k->f;
	k->f->known = 1;
	k->f->n = LIST + 1;
	for (unsigned i = 0; i < LIST; i++)
		k->f->word[i] = (struct um_param_word){0, (uint16_t)(8 * i), (uint16_t)(8 * i), UMADV_ACCESS_UPDATE};
	k->f->word[LIST] = (struct um_param_word){1, 0, 8 * LIST, UMADV_ACCESS_UPDATE};
}

/* One whose parameters are large enough to be watched from the beginning. */
static inline void open_wide(struct kernel *k)
{
	open_kernel(k);
	k->f->wide = 1;
}

/* `now`: as the latest launch. */
static inline void scan(struct kernel *k, int now)
{
	void *params[] = {k->list, &k->address};

	um_inject_uses_init(&k->uses);
	if (!um_launch_scan(&k->uses, k->f, params, NULL, now))
		tap_bail("a launch was not readable");
}

/* A launch after rows of other kernels. */
static inline void launch_with(struct kernel *k, unsigned grid, unsigned block)
{
	const struct um_launch_size one = {{1, 1, 1}, {1, 1, 1}}, size = {{grid, 1, 1}, {block, 1, 1}};

	for (unsigned i = 0; i < UM_LAUNCH_ROWS; i++)
		um_launch_row_add(&others[i], &one);
	um_launch_row_add(k->f, &size);
	scan(k, 1);
}

static inline void launch(struct kernel *k)
{
	launch_with(k, 64, 256);
}

#define OTHERS 4 /* launches with a word that is neither NULL nor an address, until it is uncertain */
#define NO_ADDRESS 0x12345

/* Launches with this value of one of its words, each in a place of its own. */
static inline void launch_elsewhere(struct kernel *k, uint64_t *word, uint64_t value, int n)
{
	for (int i = 0; i < n; i++) {
		*word = value;
		launch_with(k, 500 + (unsigned)i, 1);
	}
	*word = 0;
}

static inline int is_use(const struct kernel *k, uint64_t at)
{
	for (unsigned i = 0; i < k->uses.n; i++)
		if ((uintptr_t)k->uses.at[i].ptr == at)
			return 1;
	return 0;
}

/* Two words of the struct point to freed memory. */
static inline void open_list(struct kernel *k)
{
	open_kernel(k);
	k->list[0] = k->list[1] = freed();
	launch(k);
	k->list[0] = k->list[1] = 0;
}

#endif
