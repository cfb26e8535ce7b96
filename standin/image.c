/* SPDX-License-Identifier: Apache-2.0
 *
 * image.c - fat binaries: finds and unpacks the images in them
 *
 * A fat binary is a header followed by parts with headers of their own: PTX or ELF, for one compute capability, packed
 * with zstd (since CUDA 12.8), LZ4 or not at all.
 */
#include "standin/image.h"

#include "kernel/signature.h"

#include <lz4.h>
#include <zstd.h>

#define FAT_MAGIC 0xba55ed50u
#define PART_HEAD 64u /* bytes of a part's header that are read */
#define PART_PTX 1
#define PART_ELF 2
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define UNPACKED_MAX (1ull << 31) /* larger sizes count as damage */
#define RATIO_MAX 65536u /* largest ratio of unpacked to packed bytes */

struct fat_head {
	uint32_t magic;
	uint16_t version, head;
	uint64_t bytes; /* after the header */
};

struct fat_part {
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

_Static_assert(sizeof(struct fat_part) == PART_HEAD, "as in the file");

static int is_elf(const void *data, size_t bytes)
{
	return bytes >= 4 && !memcmp(data, "\177ELF", 4);
}

static int is_fat(const void *data, size_t bytes)
{
	uint32_t magic;

	if (bytes < sizeof(struct fat_head))
		return 0;
	memcpy(&magic, data, sizeof magic);
	return magic == FAT_MAGIC;
}

/* The end of an ELF image: the largest end of the header's tables, because the section table is last. */
static size_t elf_bytes(const unsigned char *data)
{
	uint64_t sections, segments;
	uint16_t n, size, n_seg, seg_size;
	uint64_t end;

	memcpy(&segments, data + 32, 8);
	memcpy(&sections, data + 40, 8);
	memcpy(&seg_size, data + 54, 2);
	memcpy(&n_seg, data + 56, 2);
	memcpy(&size, data + 58, 2);
	memcpy(&n, data + 60, 2);
	end = sections + (uint64_t)n * size;
	if (segments + (uint64_t)n_seg * seg_size > end)
		end = segments + (uint64_t)n_seg * seg_size;
	return end;
}

size_t um_image_bytes(const void *data)
{
	struct fat_head h;

	if (!memcmp(data, "\177ELF", 4))
		return elf_bytes(data);
	memcpy(&h.magic, data, sizeof h.magic);
	if (h.magic == FAT_MAGIC) {
		memcpy(&h, data, sizeof h);
		return h.bytes < SIZE_MAX - h.head ? h.head + h.bytes : 0;
	}
	return strlen(data);
}

/* Returns the unpacked bytes of a part: *owned must be freed. */
static int part_open(const struct fat_part *p, const unsigned char *at, const unsigned char **data, size_t *bytes,
		     unsigned char **owned)
{
	unsigned char *to;
	size_t n = p->unpacked;

	*owned = NULL;
	if (!(p->flags & (FLAG_LZ4 | FLAG_ZSTD))) {
		*data = at;
		*bytes = p->room;
		return 0;
	}
	if (!p->packed || p->packed > p->room || !n || n > UNPACKED_MAX || n / RATIO_MAX > p->packed)
		return -EINVAL;
	to = malloc(n);
	if (!to)
		return -ENOMEM;
	if (p->flags & FLAG_ZSTD) {
		n = ZSTD_decompress(to, n, at, p->packed);
		if (ZSTD_isError(n))
			goto bad;
	} else {
		int got = LZ4_decompress_safe((const char *)at, (char *)to, (int)p->packed, (int)n);

		if (got < 0)
			goto bad;
		n = (size_t)got;
	}
	*data = *owned = to;
	*bytes = n;
	return 0;
bad:
	free(to);
	return -EINVAL;
}

static int part_read(struct um_image *out, const struct fat_part *p, const unsigned char *at)
{
	const unsigned char *data;
	unsigned char *owned;
	size_t bytes;
	int err = part_open(p, at, &data, &bytes, &owned);

	if (err)
		return err;
	err = p->kind == PART_ELF ? um_image_elf(out, data, bytes)
				  : um_image_ptx(out, (const char *)data, strnlen((const char *)data, bytes));
	free(owned);
	if (!err)
		out->sm = (int)p->sm;
	return err;
}

/* How well a part suits: higher is better, 0 not at all. */
static int part_rank(const struct fat_part *p, int sm)
{
	int fits = (int)p->sm <= sm;

	if (p->kind == PART_ELF)
		return (int)p->sm / 10 == sm / 10 && fits ? 3000 + (int)(p->sm % 1000) : 1 + (int)(p->sm % 1000);
	return p->kind == PART_PTX ? (fits ? 2000 : 1000) + (int)(p->sm % 1000) : 0;
}

/* A part of a fat binary. */
struct chosen {
	struct fat_part part;
	const unsigned char *at;
	int rank; /* 0: none */
};

static void choose(struct chosen *best, const struct fat_part *p, const unsigned char *at, int rank)
{
	if (rank > best->rank)
		*best = (struct chosen){*p, at, rank};
}

/* What the kernels write, from the same kernels in PTX, which is left out if it cannot be read. */
static int code_read(struct um_image *out, const struct chosen *ptx)
{
	struct um_image from = {0};
	int err = part_read(&from, &ptx->part, ptx->at);

	for (size_t i = 0; i < out->kernels.n && !err; i++) {
		struct um_image_kernel *k = &out->kernels.at[i];
		struct um_image_kernel *same = (void *)um_image_kernel_find(&from, k->name);

		if (same && um_image_words(same) == um_image_words(k)) {
			k->written = same->written;
			same->written = NULL;
		}
	}
	um_image_fini(&from);
	return err == -ENOMEM ? err : 0;
}

static int fat_read(struct um_image *out, const unsigned char *data, size_t bytes, int sm)
{
	struct chosen best = {0}, ptx = {0};
	struct fat_head h;
	size_t at, end;
	int err;

	memcpy(&h, data, sizeof h);
	if (h.head < sizeof h || h.head > bytes || h.bytes > bytes - h.head)
		return -EINVAL;
	end = h.head + h.bytes;
	for (at = h.head; end - at >= PART_HEAD;) {
		struct fat_part p;

		memcpy(&p, data + at, sizeof p);
		if (p.head < PART_HEAD || p.head > end - at || p.room > end - at - p.head)
			return -EINVAL;
		choose(&best, &p, data + at + p.head, part_rank(&p, sm));
		if (p.kind == PART_PTX && (int)p.sm <= sm)
			choose(&ptx, &p, data + at + p.head, part_rank(&p, sm));
		at += p.head + p.room;
	}
	err = best.rank ? part_read(out, &best.part, best.at) : -ENOTSUP;
	return !err && ptx.rank && best.part.kind == PART_ELF ? code_read(out, &ptx) : err;
}

/* What a kernel without PTX may write, from its name. */
static int guess_written(struct um_image_kernel *k)
{
	size_t words = um_image_words(k);
	unsigned char *constant = calloc(k->params.n + 1, 1);

	k->written = malloc(words + 1);
	if (constant && k->written) {
		memset(k->written, 1, words);
		if (um_signature_constants(constant, k->params.n, k->name))
			for (size_t i = 0; i < k->params.n; i++)
				if (constant[i] && k->params.at[i].bytes == 8 && k->params.at[i].offset % 8 == 0)
					k->written[k->params.at[i].offset / 8] = 0;
	}
	free(constant);
	return constant && k->written ? 0 : -ENOMEM;
}

int um_image_read(struct um_image *out, const void *data, size_t bytes, int sm)
{
	struct um_image image = {0};
	int err;

	if (is_fat(data, bytes))
		err = fat_read(&image, data, bytes, sm);
	else if (is_elf(data, bytes))
		err = um_image_elf(&image, data, bytes);
	else
		err = um_image_ptx(&image, data, strnlen(data, bytes));
	for (size_t i = 0; i < image.kernels.n && !err; i++)
		if (!image.kernels.at[i].written)
			err = guess_written(&image.kernels.at[i]);
	if (err)
		um_image_fini(&image);
	else
		*out = image;
	return err;
}

void um_image_fini(struct um_image *image)
{
	for (size_t i = 0; i < image->kernels.n; i++) {
		free(image->kernels.at[i].name);
		um_vec_fini(&image->kernels.at[i].params);
		free(image->kernels.at[i].written);
	}
	for (size_t i = 0; i < image->vars.n; i++) {
		free(image->vars.at[i].name);
		free(image->vars.at[i].init);
	}
	um_vec_fini(&image->kernels);
	um_vec_fini(&image->vars);
}

const struct um_image_kernel *um_image_kernel_find(const struct um_image *image, const char *name)
{
	for (size_t i = 0; i < image->kernels.n; i++)
		if (!strcmp(image->kernels.at[i].name, name))
			return &image->kernels.at[i];
	return NULL;
}
