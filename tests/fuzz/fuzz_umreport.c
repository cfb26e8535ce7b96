/* SPDX-License-Identifier: Apache-2.0
 *
 * A report as JSON, the input of `umadvise diff`: each accepted document compares with itself as unchanged.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "diff.h"

const char fuzz_name[] = "umreport";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diff d = {.file = {"a", "b"}, .threshold = 5};
	struct um_diag diag[2];
	struct um_out *out;
	int err = 0;

	for (int s = 0; s < 2; s++) {
		um_diag_init(&diag[s], "memory");
		err = um_sheets_parse(&d.sheets[s], (const char *)data, size, &diag[s]);
		if (err == -EINVAL && !diag[s].text[0])
			abort();
	}
	if (!err && diff_compare(&d) == 0 && um_out_open_mem(&out, 0) == 0) {
		void *text = NULL;
		size_t bytes;

		if (d.verdict != DIFF_SAME && d.verdict != DIFF_UNKNOWN)
			abort();
		diff_text(out, &d);
		diff_csv(out, &d);
		diff_json(out, &d);
		um_out_take(out, &text, &bytes);
		free(text);
	}
	diff_fini(&d);
	return 0;
}
