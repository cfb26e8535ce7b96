/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile: what is taken is inside its bounds, and can be written.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "io/profile_file.h"

const char fuzz_name[] = "profile";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct um_cost cost = {1e12, 1e9, 0};
	struct um_profile p;
	struct um_diag diag;

	if (um_profile_read_mem(data, size, "memory", &p, &diag)) {
		if (!diag.text[0])
			abort();
		return 0;
	}
	if (!p.name[0] || !(p.h2d > 0) || !(p.d2h > 0) || !(p.eta > 0 && p.eta <= 1) ||
	    um_profile_op_ns(&p, &cost, 0) == 0)
		abort();
	if (um_profile_write(FUZZ_OUT, &p, NULL, NULL))
		abort();
	return 0;
}
