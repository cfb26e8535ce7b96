/* SPDX-License-Identifier: Apache-2.0
 *
 * code.h - what the program's kernels may write, from the PTX code in the modules that it loads
 *
 * in    images, as the program gives them to the driver
 * out   by kernel: the words of its parameters that it may write through
 * owns  copies of PTX, packed as it comes, until a kernel of the module is launched for the first time; then what its
 *       kernels write; all of it until the module is unloaded
 *
 * PTX is unpacked by the system's libzstd and liblz4, which are loaded when they are needed. Without them, and of
 * modules without PTX, nothing is known. The code that runs may have been compiled for another device from the same
 * source, so this is a hint and no proof. Thread-safe; off the launch path. Takes time in proportion to the text.
 */
#ifndef UM_INJECT_CODE_H
#define UM_INJECT_CODE_H

#include <stddef.h>

enum um_code_kind { UM_CODE_MODULE, UM_CODE_LIBRARY };

/* The driver has loaded an image, or a file, as the CUmodule or CUlibrary `handle`. */
void um_code_loaded(void *handle, enum um_code_kind kind, const void *image);
void um_code_loaded_file(void *handle, enum um_code_kind kind, const char *path);
void um_code_unloaded(const void *handle);

/* Sets written[i] to 1 for each aligned 8-byte word i of the parameters that the kernel may write through, else to 0.
 * `function` is a CUfunction or CUkernel. 0: nothing is known. */
int um_code_written(unsigned char *written, size_t words, void *function, const char *name);

#endif
