/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/fat.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER 0x466243b1u
#define MAGIC 0xba55ed50u
#define PART_HEAD 64u /* bytes of a part's header that are read */
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define UNPACKED_MAX (1ull << 31) /* larger sizes count as damage */
#define RATIO_MAX 65536u /* largest ratio of unpacked to packed bytes */

struct head {
	uint32_t magic;
	uint16_t version, head;
	uint64_t bytes; /* after the header */
};

struct part {
	uint16_t kind, version;
	uint32_t head;
	uint64_t room; /* bytes after the header, padding included */
	uint32_t packed; /* part in use, if packed */
	uint32_t unused[2];
	uint32_t sm;
	uint32_t bits, unused2;
	uint64_t flags;
	uint64_t unused3;
	uint64_t unpacked;
};

_Static_assert(sizeof(struct part) == PART_HEAD, "as in the file");

const void *um_fat_image(const void *image)
{
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapped;

	memcpy(&wrapped.magic, image, sizeof wrapped.magic);
	if (wrapped.magic != WRAPPER)
		return image;
	memcpy(&wrapped, image, sizeof wrapped);
	return wrapped.data;
}

int um_fat_is(const void *data, size_t bytes)
{
	uint32_t magic;

	if (bytes < sizeof(struct head))
		return 0;
	memcpy(&magic, data, sizeof magic);
	return magic == MAGIC;
}

/* The end of an ELF image: the largest end of the header's tables, because the section table is last. */
static size_t elf_bytes(const void *data)
{
	Elf64_Ehdr h;
	uint64_t sections, segments;

	memcpy(&h, data, sizeof h);
	sections = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
	segments = h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize;
	return sections > segments ? sections : segments;
}

size_t um_fat_bytes(const void *image)
{
	struct head h;

	if (!memcmp(image, ELFMAG, SELFMAG))
		return elf_bytes(image);
	memcpy(&h.magic, image, sizeof h.magic);
	if (h.magic == MAGIC) {
		memcpy(&h, image, sizeof h);
		return h.bytes < SIZE_MAX - h.head ? h.head + h.bytes : 0;
	}
	return strlen(image);
}

/* Offset and end of the parts; -EINVAL. */
static int bounds(const void *data, size_t bytes, size_t *first, size_t *end)
{
	struct head h;

	memcpy(&h, data, sizeof h);
	if (h.head < sizeof h || h.head > bytes || h.bytes > bytes - h.head)
		return -EINVAL;
	*first = h.head;
	*end = h.head + h.bytes;
	return 0;
}

int um_fat_next(const void *data, size_t bytes, size_t *at, struct um_fat_part *part)
{
	const unsigned char *from = data;
	size_t first, end;
	struct part p;
	int packed;

	if (!um_fat_is(data, bytes) || bounds(data, bytes, &first, &end))
		return -EINVAL;
	if (!*at)
		*at = first;
	if (end - *at < PART_HEAD)
		return 0;
	memcpy(&p, from + *at, sizeof p);
	if (p.head < PART_HEAD || p.head > end - *at || p.room > end - *at - p.head)
		return -EINVAL;
	packed = (p.flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0;
	part->kind = p.kind;
	part->sm = (int)p.sm;
	part->packing = p.flags & FLAG_ZSTD ? UM_FAT_ZSTD : packed ? UM_FAT_LZ4 : UM_FAT_PLAIN;
	part->data = from + *at + p.head;
	part->bytes = !packed ? p.room : p.packed <= p.room ? p.packed : 0;
	part->unpacked = packed ? p.unpacked : 0;
	*at += p.head + p.room;
	return 1;
}

int um_fat_open(const struct um_fat_part *part, const struct um_unpack *unpack, const unsigned char **data,
		size_t *bytes, unsigned char **owned)
{
	size_t room = part->unpacked, got = 0;
	int bad;

	*owned = NULL;
	*data = part->data;
	*bytes = part->bytes;
	if (part->packing == UM_FAT_PLAIN)
		return 0;
	if (part->packing == UM_FAT_ZSTD ? !unpack->zstd || !unpack->zstd_failed : !unpack->lz4)
		return -ENOTSUP;
	if (!room || !part->bytes || room > UNPACKED_MAX || room / RATIO_MAX > part->bytes)
		return -EINVAL;
	*owned = malloc(room);
	if (!*owned)
		return -ENOMEM;
	if (part->packing == UM_FAT_ZSTD) {
		got = unpack->zstd(*owned, room, part->data, part->bytes);
		bad = unpack->zstd_failed(got) != 0;
	} else {
		int n = unpack->lz4((const char *)part->data, (char *)*owned, (int)part->bytes, (int)room);

		bad = n < 0;
		got = bad ? 0 : (size_t)n;
	}
	if (bad) {
		free(*owned);
		*owned = NULL;
		return -EINVAL;
	}
	*data = *owned;
	*bytes = got;
	return 0;
}
