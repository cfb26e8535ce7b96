/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel_copy.h"

#include "gpu/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PARAMS 4096 /* CUDA's limit is 32,764 bytes of them */
#define MOST_BYTES 32768

/* Then: offsets of the parameters, pointers to them, and they themselves. */
struct block {
	struct umadv_kernel kernel;
	size_t n;
	max_align_t begin[];
};

/* Up to the parameters. */
static size_t head_bytes(size_t n)
{
	size_t bytes = n * (sizeof(size_t) + sizeof(void *));

	return (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
}

/* Counts the parameters and their bytes. 0 or a CUDA error. */
static int measure(const struct umadv_kernel *k, size_t *n, size_t *bytes)
{
	size_t offset, size;
	int code = k->param ? 0 : UM_CUDA_NOT_SUPPORTED;

	*n = *bytes = 0;
	while (!code) {
		code = k->param(k->kernel, *n, &offset, &size);
		if (code)
			break;
		if (!k->args || *n == MOST_PARAMS || offset > MOST_BYTES || size > MOST_BYTES - offset)
			return UM_CUDA_NOT_SUPPORTED;
		++*n;
		*bytes = offset + size > *bytes ? offset + size : *bytes;
	}
	return code == UM_CUDA_INVALID_VALUE ? 0 : code; /* there is no such parameter */
}

static int fill(struct block *b, const struct umadv_kernel *k, size_t n, size_t bytes)
{
	size_t *offsets = (size_t *)b->begin, size;
	char *params = (char *)b->begin + head_bytes(n);

	b->kernel = *k;
	b->n = n;
	memset(params, 0, bytes);
	for (size_t i = 0; i < n; i++) {
		int code = k->param(k->kernel, i, &offsets[i], &size);

		if (code || offsets[i] > bytes || size > bytes - offsets[i])
			return code ? code : UM_CUDA_NOT_SUPPORTED;
		memcpy(params + offsets[i], k->args[i], size);
	}
	return 0;
}

int um_kernel_copy_init(struct um_kernel_copy *c, const struct umadv_kernel *k, int *code)
{
	size_t n, bytes;

	c->block = NULL;
	*code = measure(k, &n, &bytes);
	if (*code)
		return -ENOTSUP;
	c->bytes = sizeof(struct block) + head_bytes(n) + bytes;
	c->block = c->bytes <= sizeof c->small ? c->small : malloc(c->bytes);
	if (!c->block)
		return -ENOMEM;
	*code = fill(c->block, k, n, bytes);
	if (!*code)
		return 0;
	um_kernel_copy_fini(c);
	return -ENOTSUP;
}

void um_kernel_copy_fini(struct um_kernel_copy *c)
{
	if (c->block != c->small)
		free(c->block);
	c->block = NULL;
}

int um_kernel_copy_launch(void *block, void *stream)
{
	struct block *b = block;
	const size_t *offsets = (const size_t *)b->begin;
	void **args = (void **)(offsets + b->n);
	char *params = (char *)b->begin + head_bytes(b->n);

	for (size_t i = 0; i < b->n; i++)
		args[i] = params + offsets[i];
	b->kernel.args = args;
	return b->kernel.launch(&b->kernel, stream);
}
