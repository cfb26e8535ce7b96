/* SPDX-License-Identifier: Apache-2.0
 *
 * leftovers.h - addresses of other launches in the parameters of a kernel
 *
 * in    the words of the parameters, launch after launch
 * out   which of them are uses
 * owns  the words at the latest launch at each place, of kernels with wide parameters or seen leftovers
 *
 * A struct by value may have an array that the program fills in part, such as a list of tensors. The rest of it holds
 * what was on the program's stack: addresses of earlier launches, where another tensor may live by now. Words are
 * compared with those of the latest launch at the same place of the program: of the same kernel with the same grid and
 * block, at the same position in a row of its launches, after the same rows of others. At a place, a word is left out
 *
 *  - once it was no address there;
 *  - once it has pointed to the tensor of a certain word of the launch, and to another one at another launch, if it is
 *    uncertain: in a struct, and neither NULL nor an address in four launches at any places. A pointer that a program
 *    writes is one or the other, and at a place the same ones of them are alike at each launch;
 *  - while it stays the same, once the tensor at its address has had another size: it is not written for the launch;
 *  - once a framework's operation did not use it there (declared.h), or if operations at other places mostly did not;
 *  - if its tensor has another size than before: for FIRST_DOUBT launches, the second time for ever. This holds where
 *    leftovers were seen: for a word that was left out for the second reason, or that pointed to freed memory twice,
 *    and in a parameter with several words of freed memory, or with a tensor that an operation did not use. It does not
 *    hold where operations used the word with several sizes.
 *
 * In kernels with wide parameters a word of freed memory is no address, so that the first reason covers it.
 *
 * Words that are left out may be uses: then pages are faulted in. Kernels with narrow parameters pay a comparison,
 * until one of their words is seen to be a leftover. The words of a place are allocated when it is met first; without
 * memory all words are uses. Thread-safe.
 */
#ifndef UM_INJECT_LEFTOVERS_H
#define UM_INJECT_LEFTOVERS_H

#include "inject/functions.h"
#include "inject/hooks.h"
#include "inject/ranges.h"

#include "base/hash.h"

#define UM_LEFTOVER_WORDS (1u << 18) /* of all places of a kernel; past it they are forgotten, and learned anew */

#define UM_LAUNCH_ROWS 4u /* earlier ones that tell a place from others: as many as fit in a word */

/* The rows of launches of one kernel, on the calling thread. */
struct um_launch_row {
	const struct um_function_layout *kernel;
	uint64_t n; /* earlier launches in this row */
	uint64_t before; /* of the rows before it: `last` at their ends, 16 bits each */
	uint64_t last; /* kernel, grid and block of the latest launch, hashed */
};

extern UM_HIDDEN_THREAD _Thread_local struct um_launch_row um_launch_row;

/* The next launch of the thread. Op path. */
static inline void um_launch_row_add(const struct um_function_layout *f, const struct um_launch_size *size)
{
	const unsigned *grid = size->grid, *block = size->block;
	uint64_t points = grid[0] + 0x9e3779b1ull * (grid[1] + 0x85ebca77ull * grid[2]) + ((uint64_t)block[0] << 40);

	um_launch_row.n++;
	if (um_launch_row.kernel != f) {
		um_launch_row.before = um_launch_row.before << 16 | um_launch_row.last >> 48;
		um_launch_row.kernel = f;
		um_launch_row.n = 0;
	}
	um_launch_row.last = um_hash_fold(points ^ (uint64_t)block[1] << 32 ^ block[2], (uintptr_t)f);
}

/* Word number `i` of the parameters points to freed memory. */
void um_leftovers_saw(const struct um_function_layout *f, unsigned i);

/* May the kernel have leftovers? */
static inline int um_leftovers_any(const struct um_function_layout *f)
{
	return f->wide || atomic_load_explicit(&f->leftovers, memory_order_acquire);
}

/* One launch of such a kernel: the words in the order of the layout. From begin to end it holds the kernel's lock. */
struct um_leftovers_scan {
	const struct um_function_layout *f;
	struct um_leftovers *l; /* NULL: no memory */
	struct um_leftover_word *at; /* NULL: no memory */
	int is_new; /* the place is met for the first time */
	int uncertain; /* some words are: they come last */
};

void um_leftovers_begin(struct um_leftovers_scan *s, const struct um_function_layout *f); /* of um_launch_row */
/* Was the word neither NULL nor an address in enough launches? */
int um_leftovers_holds_others(const struct um_leftovers_scan *s, unsigned i);
/* `shared`: the word is uncertain, and a certain one of the launch points to its tensor. */
int um_leftovers_is_use(struct um_leftovers_scan *s, unsigned i, uint64_t addr, int shared);
void um_leftovers_end(struct um_leftovers_scan *s);

static inline int um_leftovers_is_uncertain(const struct um_leftovers_scan *s, unsigned i)
{
	return s->uncertain && um_leftovers_holds_others(s, i);
}

#endif
