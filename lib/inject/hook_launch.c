/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_launch.c - launches of kernels: an op with the tensors that the parameters point into
 *
 * Each aligned word of the parameters that is an address of a tensor, also in a struct by value, is a use, from the
 * address to the tensor's end: read and written, or only read if the kernel's name says so. Nothing else is known of a
 * kernel, so nothing is ever declared overwritten.
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

struct words {
	void **params; /* NULL: they are in the buffer */
	const char *buffer;
	size_t bytes; /* of the buffer */
};

/* The word at that place of the parameters. 0: the buffer is shorter. */
static inline int read_word(const struct words *from, const struct um_param_word *w, uint64_t *word)
{
	if (from->params)
		*word = word_at((const char *)from->params[w->param] + w->in_param);
	else if (w->offset + 8u <= from->bytes)
		*word = word_at(from->buffer + w->offset);
	else
		return 0;
	return 1;
}

/* The usual case, without calls. */
static inline void scan_params(struct um_inject_uses *uses, const struct um_function_layout *f, void **params)
{
	const struct um_param_word *w = f->word, *end = w + f->n;
	const struct um_range_span span = um_ranges_span();

	for (; w < end; w++)
		if (um_inject_use_in(uses, span, word_at((const char *)params[w->param] + w->in_param), w->access))
			um_leftovers_saw(f, (unsigned)(w - f->word));
}

static void __attribute__((noinline))
scan_buffer(struct um_inject_uses *uses, const struct um_function_layout *f, const struct words *from)
{
	uint64_t word;

	for (unsigned i = 0; i < f->n; i++)
		if (read_word(from, &f->word[i], &word) && um_inject_use(uses, word, f->word[i].access))
			um_leftovers_saw(f, i);
}

/* The words that are certain, which come first, or the others. */
static void scan_some(struct um_inject_uses *uses, struct um_leftovers_scan *s, const struct words *from, int uncertain)
{
	const struct um_function_layout *f = s->f;
	unsigned certain = uses->n;
	uint64_t word;

	for (unsigned i = 0; i < f->n; i++)
		if (um_leftovers_is_uncertain(s, i) == uncertain && read_word(from, &f->word[i], &word) &&
		    um_leftovers_is_use(s, i, word, um_inject_uses_have(uses, certain, word)) &&
		    um_inject_use(uses, word, f->word[i].access))
			um_leftovers_saw(f, i);
}

static void __attribute__((noinline))
scan_with_leftovers(struct um_inject_uses *uses, const struct um_function_layout *f, const struct words *from)
{
	struct um_leftovers_scan s;

	um_leftovers_begin(&s, f);
	scan_some(uses, &s, from, 0);
	if (s.uncertain)
		scan_some(uses, &s, from, 1);
	um_leftovers_end(&s);
	um_inject_uses_sort(uses);
}

/* Of a kernel without a layout: every word of the buffer. */
static void __attribute__((noinline)) scan_all(struct um_inject_uses *uses, const struct words *from)
{
	for (size_t at = 0; at + 8 <= from->bytes; at += 8)
		um_inject_use(uses, word_at(from->buffer + at), UMADV_ACCESS_UPDATE);
}

int um_launch_scan(struct um_inject_uses *uses, const struct um_function_layout *f, void **params, void **extra,
		   int now)
{
	struct words from = {.params = params};
	int known = f && f->known;

	if (extra)
		from.buffer = buffer_of(extra, &from.bytes);
	if (from.buffer)
		from.params = NULL;
	if (!known) {
		scan_all(uses, &from);
		return from.buffer != NULL;
	}
	if (!from.params && !from.buffer)
		return 1;
	if (now && um_leftovers_any(f))
		scan_with_leftovers(uses, f, &from);
	else if (from.params)
		scan_params(uses, f, params);
	else
		scan_buffer(uses, f, &from);
	return 1;
}

static void announce(struct um_inject_uses *uses, void *function, void *stream, void **params, void **extra,
		     const struct um_launch_size *size)
{
	const struct um_function_layout *f;
	uint64_t n;

	um_inject_uses_init(uses);
	if (!um_driver_ready() || !function || !um_session_active() || um_session_captures(stream))
		return;
	n = atomic_fetch_add_explicit(&um_inject_counts.launches, 1, memory_order_relaxed);
	if (!um_session_pressed() && n % UM_SESSION_SHARES_AT == 0)
		um_session_share();
	if (!um_session_pressed() && !um_session_shown() && !(um_session_asks() & UM_SESSION_ANYWHERE))
		return;
	if (!um_inject_uses_here(uses))
		return;
	f = um_function_find(function);
	um_launch_row_add(f, size);
	if (!um_launch_scan(uses, f, params, extra, 1)) {
		atomic_fetch_add_explicit(&um_inject_counts.launches_unseen, 1, memory_order_relaxed);
		atomic_fetch_or(&um_inject_reasons, UM_REASON_LAYOUT);
	}
	if (uses->left_out)
		atomic_fetch_add_explicit(&um_inject_counts.partial, 1, memory_order_relaxed);
	if (uses->n)
		um_session_launch(uses, stream, f ? f->name : "kernel");
}

#define SIZE (&(const struct um_launch_size){{gx, gy, gz}, {bx, by, bz}})

/* Announces the launch, makes it by `call`, and returns its result. */
#define ANNOUNCED(function, stream, params, extra, size, call)                                                         \
	do {                                                                                                           \
		struct um_inject_uses uses;                                                                            \
		int err;                                                                                               \
                                                                                                                       \
		announce(&uses, function, stream, params, extra, size);                                                \
		err = call;                                                                                            \
		um_session_launched(&uses, stream);                                                                    \
		return err;                                                                                            \
	} while (0)

#define LAUNCH(suffix, on)                                                                                             \
	int cuLaunchKernel##suffix(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
				   unsigned bz, unsigned shared, void *stream, void **params, void **extra)            \
	{                                                                                                              \
		ANNOUNCED(function, on(stream), params, extra, SIZE,                                                   \
			  UM_PASS(cuLaunchKernel##suffix,                                                              \
				  (function, gx, gy, gz, bx, by, bz, shared, stream, params, extra)));                 \
	}                                                                                                              \
	int cuLaunchCooperativeKernel##suffix(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,      \
					      unsigned by, unsigned bz, unsigned shared, void *stream, void **params)  \
	{                                                                                                              \
		ANNOUNCED(function, on(stream), params, NULL, SIZE,                                                    \
			  UM_PASS(cuLaunchCooperativeKernel##suffix,                                                   \
				  (function, gx, gy, gz, bx, by, bz, shared, stream, params)));                        \
	}                                                                                                              \
	int cuLaunchKernelEx##suffix(const struct um_launch_config *config, void *function, void **params,             \
				     void **extra)                                                                     \
	{                                                                                                              \
		if (!config)                                                                                           \
			return UM_PASS(cuLaunchKernelEx##suffix, (config, function, params, extra));                   \
		ANNOUNCED(function, on(config->stream), params, extra, &config->size,                                  \
			  UM_PASS(cuLaunchKernelEx##suffix, (config, function, params, extra)));                       \
	}

#define AS_GIVEN(stream) (stream)
#define OF_THREAD(stream) ((stream) ? (stream) : (void *)2)

LAUNCH(, AS_GIVEN)
LAUNCH(_ptsz, OF_THREAD)
