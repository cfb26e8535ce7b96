/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_launch.c - launches of kernels: an op with the tensors that the parameters point into
 *
 * Each aligned word of the parameters that is an address of a tensor, also in a struct by value, is a use: read and
 * written, from the address to the tensor's end. Nothing else is known of a kernel, so nothing is ever declared
 * overwritten.
 */
#include "inject/driver.h"
#include "inject/launch.h"

#include <string.h>

#define PARAM_END ((void *)0)
#define PARAM_BUFFER ((void *)1)
#define PARAM_SIZE ((void *)2)

static uint64_t word_at(const void *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof word);
	return word;
}

/* The buffer of all parameters. NULL: it is not valid, the driver says so. */
static const char *buffer_of(void **extra, size_t *bytes)
{
	const char *buffer = NULL;

	*bytes = 0;
	for (int i = 0; i < 4 && *extra != PARAM_END; i++, extra += 2) {
		if (*extra == PARAM_BUFFER)
			buffer = extra[1];
		else if (*extra == PARAM_SIZE)
			*bytes = *(const size_t *)extra[1];
		else
			return NULL;
	}
	return buffer;
}

static void scan_buffer(struct um_inject_uses *uses, const struct um_function_layout *f, const char *buffer,
			size_t bytes)
{
	if (!f) /* of a function without a layout: every word */
		for (size_t at = 0; at + 8 <= bytes; at += 8)
			um_inject_use(uses, word_at(buffer + at));
	for (unsigned i = 0; f && i < f->n; i++)
		if (f->word[i].offset + 8 <= bytes)
			um_inject_use(uses, word_at(buffer + f->word[i].offset));
}

int um_launch_scan(struct um_inject_uses *uses, const struct um_function_layout *f, void **params, void **extra)
{
	size_t bytes = 0;
	const char *buffer = extra ? buffer_of(extra, &bytes) : NULL;

	if (buffer)
		scan_buffer(uses, f && f->known ? f : NULL, buffer, bytes);
	if (buffer || !f || !f->known)
		return buffer != NULL;
	for (unsigned i = 0; params && i < f->n; i++)
		um_inject_use(uses, word_at((const char *)params[f->word[i].param] + f->word[i].in_param));
	return 1;
}

static void announce(struct um_inject_uses *uses, void *function, void *stream, void **params, void **extra)
{
	const struct um_function_layout *f;

	um_inject_uses_init(uses);
	if (!um_driver_ready() || !function || !um_session_active() || um_session_captures(stream))
		return;
	atomic_fetch_add_explicit(&um_inject_counts.launches, 1, memory_order_relaxed);
	if (!um_session_pressed() && !um_session_shown())
		return;
	f = um_function_find(function);
	if (!um_launch_scan(uses, f, params, extra)) {
		atomic_fetch_add_explicit(&um_inject_counts.launches_unseen, 1, memory_order_relaxed);
		atomic_fetch_or(&um_inject_reasons, UM_REASON_LAYOUT);
	}
	if (uses->left_out)
		atomic_fetch_add_explicit(&um_inject_counts.partial, 1, memory_order_relaxed);
	if (uses->n)
		um_session_launch(uses, stream, f ? f->name : "kernel");
}

/* Announces the launch, makes it by `call`, and returns its result. */
#define ANNOUNCED(function, stream, params, extra, call)                                                               \
	do {                                                                                                           \
		struct um_inject_uses uses;                                                                            \
		int err;                                                                                               \
                                                                                                                       \
		announce(&uses, function, stream, params, extra);                                                      \
		err = call;                                                                                            \
		um_session_launched(&uses, stream);                                                                    \
		return err;                                                                                            \
	} while (0)

#define LAUNCH(suffix, on)                                                                                             \
	int cuLaunchKernel##suffix(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
				   unsigned bz, unsigned shared, void *stream, void **params, void **extra)            \
	{                                                                                                              \
		ANNOUNCED(function, on(stream), params, extra,                                                         \
			  UM_PASS(cuLaunchKernel##suffix,                                                              \
				  (function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)));                 \
	}                                                                                                              \
	int cuLaunchCooperativeKernel##suffix(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,      \
					      unsigned by, unsigned bz, unsigned shared, void *stream, void **params)  \
	{                                                                                                              \
		ANNOUNCED(function, on(stream), params, NULL,                                                          \
			  UM_PASS(cuLaunchCooperativeKernel##suffix,                                                   \
				  (function, gx, gy, gz, bx, by, bz, shared, stream, params)));                        \
	}                                                                                                              \
	int cuLaunchKernelEx##suffix(const struct um_launch_config *config, void *function, void **params,             \
				     void **extra)                                                                     \
	{                                                                                                              \
		if (!config)                                                                                           \
			return UM_PASS(cuLaunchKernelEx##suffix, (config, function, params, extra));                   \
		ANNOUNCED(function, on(config->stream), params, extra,                                                 \
			  UM_PASS(cuLaunchKernelEx##suffix, (config, function, params, extra)));                       \
	}

#define AS_GIVEN(stream) (stream)
#define OF_THREAD(stream) ((stream) ? (stream) : (void *)2)

LAUNCH(, AS_GIVEN)
LAUNCH(_ptsz, OF_THREAD)
