/* SPDX-License-Identifier: Apache-2.0
 *
 * A device image (fat binary, ELF, PTX): what is read can be looked up. The bytes are those of a file, and of a text.
 */
#include "fuzz.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "kernel/image.h"

const char fuzz_name[] = "image";

static void look(struct um_image *image)
{
	for (size_t i = 0; i < image->kernels.n; i++) {
		const struct um_image_kernel *k = &image->kernels.at[i];

		if (!um_image_kernel_find(image, k->name))
			abort();
		for (size_t p = 1; p < k->params.n; p++)
			if (k->params.at[p].offset < k->params.at[p - 1].offset + k->params.at[p - 1].bytes)
				abort();
	}
	for (size_t i = 0; i < image->vars.n; i++) {
		volatile unsigned char last = 0;

		if (image->vars.at[i].init && image->vars.at[i].bytes)
			last = image->vars.at[i].init[image->vars.at[i].bytes - 1];
		(void)last;
	}
	um_image_fini(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly that size, so that a read behind its end is seen. */
	unsigned char *copy = malloc(size ? size : 1);
	static const struct um_unpack unpack = {LZ4_decompress_safe, ZSTD_decompress, ZSTD_isError};
	struct um_fat_part code;
	struct um_image image;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (um_image_read(&image, copy, size, 80, &unpack) == 0)
		look(&image);
	memset(&image, 0, sizeof image);
	if (um_image_code(&code, copy, size) && um_image_code_read(&image, &code, &unpack) == 0)
		look(&image);
	memset(&image, 0, sizeof image);
	if (um_image_ptx(&image, (const char *)copy, size) == 0)
		look(&image);
	else
		um_image_fini(&image);
	memset(&image, 0, sizeof image);
	if (um_image_elf(&image, copy, size) == 0)
		look(&image);
	else
		um_image_fini(&image);
	free(copy);
	return 0;
}
