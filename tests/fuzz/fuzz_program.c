/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that `umadvise dryrun` looks into before it runs it: an ELF file of the host.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "dryrun.h"

const char fuzz_name[] = "program";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[600] = "";

	if (dryrun_cut_off(fuzz_file(data, size), why, sizeof why) && !why[0])
		abort();
	return 0;
}
