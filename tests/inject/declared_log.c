/* SPDX-License-Identifier: Apache-2.0
 *
 * Logs what umadvise.torch declares to standard error. Memory is short if UM_TEST_SHORT is in the environment.
 */
#include "inject/declared.h"

#include <stdio.h>
#include <stdlib.h>

int umadvise_run_wants(void)
{
	return getenv("UM_TEST_SHORT") != NULL;
}

void umadvise_run_begin(const uint64_t *addresses, uint64_t n)
{
	dprintf(2, "begin");
	for (uint64_t i = 0; i < n; i++)
		dprintf(2, " %llx", (unsigned long long)addresses[i]);
	dprintf(2, "\n");
}

void umadvise_run_end(void)
{
	dprintf(2, "end\n");
}

void umadvise_run_iteration(void)
{
	dprintf(2, "iteration\n");
}
