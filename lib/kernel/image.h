/* SPDX-License-Identifier: Apache-2.0
 *
 * image.h - kernels with their parameters, and variables, of a device image
 *
 * in    bytes from a file or a program: a fat binary, an ELF image or the text of a PTX module
 * out   names, sizes, offsets, and what the kernels may write; nothing else of their code is examined
 * owns  copies of all of it
 *
 * Images are not trusted: no byte outside of them is read, whatever their content.
 */
#ifndef UM_KERNEL_IMAGE_H
#define UM_KERNEL_IMAGE_H

#include "base/vec.h"
#include "kernel/fat.h"

#define UM_IMAGE_PARAM_MAX 32764u /* bytes of all parameters of a kernel: CUDA's limit */

struct um_image_param {
	uint32_t offset, bytes;
};

struct um_image_kernel {
	char *name;
	UM_VEC(struct um_image_param) params; /* in the order of the signature, ascending and disjoint */
	unsigned char *written; /* for each aligned 8-byte word of the parameters: may the kernel write through it? */
};

/* Words of all parameters. */
static inline size_t um_image_words(const struct um_image_kernel *k)
{
	const struct um_image_param *last = k->params.n ? &k->params.at[k->params.n - 1] : NULL;

	return last ? ((size_t)last->offset + last->bytes + 7) / 8 : 0;
}

struct um_image_var {
	char *name;
	uint64_t bytes;
	int managed; /* declared __managed__ */
	unsigned char *init; /* `bytes` of them, or NULL: zero */
};

struct um_image {
	UM_VEC(struct um_image_kernel) kernels;
	UM_VEC(struct um_image_var) vars;
	int sm; /* compute capability of the chosen part, such as 90; 0: unknown */
};

/*
 * Reads the image at `data`, of `bytes` bytes. Of a fat binary it reads the best part for a device of capability `sm`:
 * ELF of the same major version, else PTX, else any. What kernels write is read from the best PTX for the device. Of a
 * kernel without PTX, pointers to const of its name are taken as not written through, all else as written. 0; -EINVAL:
 * no image, or a damaged one; -ENOTSUP: nothing unpacks it; -ENOMEM.
 */
int um_image_read(struct um_image *out, const void *data, size_t bytes, int sm, const struct um_unpack *unpack);
void um_image_fini(struct um_image *image);

/* The PTX of an image, as it is in it: that for the newest device. 0: it has none. */
int um_image_code(struct um_fat_part *out, const void *data, size_t bytes);

/* Reads such PTX. `out` is empty. Errors as above. */
int um_image_code_read(struct um_image *out, const struct um_fat_part *code, const struct um_unpack *unpack);

/* The kernel of that name, or NULL. */
const struct um_image_kernel *um_image_kernel_find(const struct um_image *image, const char *name);

/* --- parts, each from bytes that are one (image_elf.c, image_ptx.c) ----------------------------------------------- */

int um_image_elf(struct um_image *out, const unsigned char *data, size_t bytes);
int um_image_ptx(struct um_image *out, const char *text, size_t bytes);

#endif
