/* SPDX-License-Identifier: Apache-2.0
 *
 * A umtrace: what is taken is counted and written; what is refused has a reason.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "io/umtrace.h"

const char fuzz_name[] = "umtrace";

static void use(const struct um_trace *t)
{
	const struct um_umtrace_header *h = um_trace_header(t);
	struct um_sink *w;
	uint64_t bytes;
	size_t largest = um_trace_largest_op(t, &bytes);

	if (bytes > um_trace_peak_bytes(t) || (largest != SIZE_MAX && largest >= um_trace_length(t)))
		abort();
	if (um_umtrace_writer_open(&w, FUZZ_OUT, h->source, h->workload, NULL))
		return;
	for (size_t i = 0; i < um_trace_length(t); i++)
		if (um_sink_feed(w, um_trace_event(t, i)))
			abort();
	if (um_umtrace_writer_close(w, 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct um_trace *t;
	struct um_diag diag;

	if (um_trace_load_mem(&t, data, size, &diag) == 0) {
		use(t);
		um_trace_free(t);
	} else if (!diag.text[0]) {
		abort();
	}
	return 0;
}
