/* SPDX-License-Identifier: Apache-2.0
 *
 * An export of Nsight Systems, as the bytes of its SQLite file: what the reader accepts becomes a report; what it
 * refuses has a reason.
 */
#include "fuzz.h"

const char fuzz_name[] = "sqlite";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_report(fuzz_file(data, size), size % 2 == 0);
	return 0;
}
