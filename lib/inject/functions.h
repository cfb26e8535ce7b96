/* SPDX-License-Identifier: Apache-2.0
 *
 * functions.h - kernels: their names, where their parameters may hold addresses, and what is only read through these
 *
 * in    CUfunction and CUkernel handles
 * out   name and layout of the parameters, asked from the driver once
 * owns  the entries, until the process ends: a handle of an unloaded module may come back with another layout
 *
 * Looking up a known kernel takes no lock. Thread-safe.
 */
#ifndef UM_INJECT_FUNCTIONS_H
#define UM_INJECT_FUNCTIONS_H

#include "umadvise.h"

#include <stdatomic.h>
#include <stdint.h>

#define UM_WIDE_WORDS 32u /* an array of addresses may be one that is filled in part */

/* An aligned 8-byte word of the parameters. */
struct um_param_word {
	uint16_t param, in_param; /* number of the parameter, offset in it */
	uint16_t offset; /* in the buffer of all parameters: less than 32 KiB */
	uint16_t access; /* UMADV_ACCESS_READ: only read, by code or name of the kernel, otherwise UPDATE */
};

struct um_function_layout {
	const struct um_function_layout *next;
	const void *handle;
	uint64_t modules; /* as of when: see um_functions_forget */
	const char *name;
	int known; /* 0: the driver does not tell the layout */
	int wide; /* a parameter has UM_WIDE_WORDS or more */
	_Atomic uint32_t dead_word; /* leftovers.h: a word that pointed to freed memory, from 1; 0: none */
	struct um_leftovers *_Atomic leftovers; /* NULL: none were seen */
	unsigned n;
	struct um_param_word word[];
};

/* NULL: no memory. */
const struct um_function_layout *um_function_find(void *handle);

/* A module was unloaded: every handle is looked up anew. */
void um_functions_forget(void);

#endif
