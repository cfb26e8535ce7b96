/* SPDX-License-Identifier: Apache-2.0
 *
 * fat.h - fat binaries: the device images in them
 *
 * in    bytes from a file or a program
 * out   parts, each PTX or ELF for one compute capability; unpacked bytes
 * owns  nothing
 *
 * A fat binary is a header followed by parts with headers of their own. A part is packed with zstd (since CUDA 12.8),
 * LZ4 or not at all. The caller brings the functions that unpack: the preloaded library is linked with neither.
 *
 * Images are not trusted: no byte outside of them is read, whatever their content.
 */
#ifndef UM_KERNEL_FAT_H
#define UM_KERNEL_FAT_H

#include <stddef.h>
#include <stdint.h>

enum um_fat_kind { UM_FAT_PTX = 1, UM_FAT_ELF = 2 };
enum um_fat_packing { UM_FAT_PLAIN, UM_FAT_LZ4, UM_FAT_ZSTD };

struct um_fat_part {
	int kind; /* enum um_fat_kind, or another number */
	int sm; /* compute capability, such as 90 */
	enum um_fat_packing packing;
	const unsigned char *data; /* inside the image */
	size_t bytes;
	uint64_t unpacked; /* bytes; 0: it is not packed */
};

/* The functions of liblz4 and libzstd. NULL: there is none. */
struct um_unpack {
	int (*lz4)(const char *from, char *to, int bytes, int room); /* LZ4_decompress_safe */
	size_t (*zstd)(void *to, size_t room, const void *from, size_t bytes); /* ZSTD_decompress */
	unsigned (*zstd_failed)(size_t got); /* ZSTD_isError */
};

/* Where an image begins: nvcc's start-up code has a small header with a pointer to it. The header is trusted. */
const void *um_fat_image(const void *image);

/* Bytes of an image in memory according to its header, which is trusted; 0: no image. */
size_t um_fat_bytes(const void *image);

int um_fat_is(const void *data, size_t bytes);

/* The next part of a fat binary; `*at` is 0 for the first one. 1, 0: there is none, -EINVAL: damaged. */
int um_fat_next(const void *data, size_t bytes, size_t *at, struct um_fat_part *part);

/* The unpacked bytes of a part; `*owned` must be freed. 0; -EINVAL: damaged; -ENOTSUP: nothing unpacks it; -ENOMEM. */
int um_fat_open(const struct um_fat_part *part, const struct um_unpack *unpack, const unsigned char **data,
		size_t *bytes, unsigned char **owned);

#endif
