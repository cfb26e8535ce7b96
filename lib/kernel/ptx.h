/* SPDX-License-Identifier: Apache-2.0
 *
 * ptx.h - what a kernel may write, from its PTX code
 *
 * in    the text of an entry's body
 * out   the words of the parameters that the code may write through
 * owns  nothing
 *
 * Loads from the parameters are followed from register to register, in no order. A word is written if a register that
 * was computed from it is an address of a store, an atomic or a copy, an argument of a call, or a stored value: where a
 * stored pointer leads is not followed. So is each word of a parameter whose own address is taken. An address that is
 * loaded from memory leads to no word.
 *
 * The text is not trusted: no byte outside of it is read, whatever its content.
 */
#ifndef UM_KERNEL_PTX_H
#define UM_KERNEL_PTX_H

#include <stddef.h>
#include <stdint.h>

struct um_ptx_param {
	const char *name;
	uint32_t offset, bytes;
};

/* Sets written[i] to 1 for each aligned 8-byte word i of the parameters that the code between the braces may write
 * through. `written` has a byte for each word up to the end of the last parameter. 0; -ENOMEM. Takes time in proportion
 * to the text. */
int um_ptx_written(unsigned char *written, const char *body, size_t bytes, const struct um_ptx_param *param, size_t n);

#endif
