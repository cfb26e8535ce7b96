/* SPDX-License-Identifier: Apache-2.0
 *
 * llama_buffers.c - gives each tensor of llama.cpp an allocation of its own; to be preloaded (doc/llama.md)
 *
 * ggml puts as many tensors into one buffer as the largest buffer of a device takes. Its CUDA backend has no such
 * limit. This function replaces that of libggml-base: the limit on a CUDA device is less than any tensor.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Weak: programs that do not use ggml start, too. */
extern const char *ggml_backend_buft_name(void *type) __attribute__((weak));
size_t ggml_backend_buft_get_max_size(void *type);

size_t ggml_backend_buft_get_max_size(void *type)
{
	const char *name = ggml_backend_buft_name ? ggml_backend_buft_name(type) : "";

	/* CUDA0, CUDA1; CUDA_Host is pinned memory of the host. */
	return strncmp(name, "CUDA", 4) == 0 && isdigit((unsigned char)name[4]) ? 1 : SIZE_MAX;
}
