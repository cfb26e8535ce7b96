/* SPDX-License-Identifier: Apache-2.0
 *
 * image.c - chooses the parts of a fat binary that are read
 */
#include "kernel/image.h"

#include "kernel/signature.h"

#include <limits.h>

static int is_elf(const void *data, size_t bytes)
{
	return bytes >= 4 && !memcmp(data, "\177ELF", 4);
}

static int part_read(struct um_image *out, const struct um_fat_part *p, const struct um_unpack *unpack)
{
	const unsigned char *data;
	unsigned char *owned;
	size_t bytes;
	int err = um_fat_open(p, unpack, &data, &bytes, &owned);

	if (err)
		return err;
	err = p->kind == UM_FAT_ELF ? um_image_elf(out, data, bytes)
				    : um_image_ptx(out, (const char *)data, strnlen((const char *)data, bytes));
	free(owned);
	if (!err)
		out->sm = p->sm;
	return err;
}

/* How well a part suits: higher is better, 0 not at all. */
static int part_rank(const struct um_fat_part *p, int sm)
{
	int fits = p->sm <= sm;

	if (p->kind == UM_FAT_ELF)
		return p->sm / 10 == sm / 10 && fits ? 3000 + p->sm % 1000 : 1 + p->sm % 1000;
	return p->kind == UM_FAT_PTX ? (fits ? 2000 : 1000) + p->sm % 1000 : 0;
}

/* A part of a fat binary. */
struct chosen {
	struct um_fat_part part;
	int rank; /* 0: none */
};

static void choose(struct chosen *best, const struct um_fat_part *p, int rank)
{
	if (rank > best->rank)
		*best = (struct chosen){*p, rank};
}

/* What the kernels write, from the same kernels in PTX, which is left out if it cannot be read. */
static int code_read(struct um_image *out, const struct um_fat_part *ptx, const struct um_unpack *unpack)
{
	struct um_image from = {0};
	int err = part_read(&from, ptx, unpack);

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

static int fat_read(struct um_image *out, const void *data, size_t bytes, int sm, const struct um_unpack *unpack)
{
	struct chosen best = {0}, ptx = {0};
	struct um_fat_part p;
	size_t at = 0;
	int err;

	while ((err = um_fat_next(data, bytes, &at, &p)) > 0) {
		choose(&best, &p, part_rank(&p, sm));
		if (p.kind == UM_FAT_PTX && p.sm <= sm)
			choose(&ptx, &p, part_rank(&p, sm));
	}
	if (!err)
		err = best.rank ? part_read(out, &best.part, unpack) : -ENOTSUP;
	return !err && ptx.rank && best.part.kind == UM_FAT_ELF ? code_read(out, &ptx.part, unpack) : err;
}

int um_image_code(struct um_fat_part *out, const void *data, size_t bytes)
{
	struct chosen best = {0};
	struct um_fat_part p;
	size_t at = 0;

	if (is_elf(data, bytes))
		return 0;
	if (!um_fat_is(data, bytes)) {
		*out = (struct um_fat_part){.kind = UM_FAT_PTX, .data = data, .bytes = strnlen(data, bytes)};
		return out->bytes > 0;
	}
	while (um_fat_next(data, bytes, &at, &p) > 0)
		if (p.kind == UM_FAT_PTX)
			choose(&best, &p, part_rank(&p, INT_MAX));
	*out = best.part;
	return best.rank > 0;
}

int um_image_code_read(struct um_image *out, const struct um_fat_part *code, const struct um_unpack *unpack)
{
	int err = part_read(out, code, unpack);

	if (err)
		um_image_fini(out);
	return err;
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

int um_image_read(struct um_image *out, const void *data, size_t bytes, int sm, const struct um_unpack *unpack)
{
	struct um_image image = {0};
	int err;

	if (um_fat_is(data, bytes))
		err = fat_read(&image, data, bytes, sm, unpack);
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
