/* SPDX-License-Identifier: Apache-2.0
 *
 * A umplan: what is taken can be judged, sound or not, and written.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "io/plan_file.h"

const char fuzz_name[] = "umplan";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct um_plan_figures figures;
	struct um_plan plan;
	struct um_diag diag;
	char why[256] = "";

	um_plan_init(&plan);
	if (um_plan_read_mem(data, size, &plan, &diag) == 0) {
		if (um_plan_check(&plan, &figures, why, sizeof why) && !why[0])
			abort();
		if (um_plan_write(FUZZ_OUT, &plan, NULL))
			abort();
	} else if (!diag.text[0]) {
		abort();
	}
	um_plan_fini(&plan);
	return 0;
}
