/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c - cuGetExportTable: refused
 *
 * NVIDIA's own runtime requests several tables without a public name when it starts, and through one of them lets the
 * driver prove that it is NVIDIA's (otherwise error 103, "integrity checks failed"). That is an authentication
 * mechanism; the licence of the toolkit forbids circumventing it, and this driver does not try: it has no hidden
 * tables, and says so.
 */
#include "standin/standin.h"

#include <stdio.h>

UM_EXPORT int cuGetExportTable(const void **table, const unsigned char *uuid);

int cuGetExportTable(const void **table, const unsigned char *uuid)
{
	static const unsigned char start[4] = {0x6b, 0xd5, 0xfb, 0x6c}; /* prefix of tables that runtimes require */

	if (!table || !uuid)
		return UM_CUDA_INVALID_VALUE;
	*table = NULL;
	if (memcmp(uuid, start, sizeof start))
		return UM_CU_NOT_FOUND;
	return um_standin_unsupported("NVIDIA's CUDA runtime, which starts on NVIDIA's own driver only: link "
				      "the shared one (nvcc -cudart shared), and dryrun puts its own there");
}

const struct um_entry um_export_entries[] = {
	UM_ENTRY(cuGetExportTable, 3000, cuGetExportTable),
	{NULL, 0, NULL, NULL},
};
