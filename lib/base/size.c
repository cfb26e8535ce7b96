/* SPDX-License-Identifier: Apache-2.0
 *
 * size.c - parses sizes with binary units
 */
#include "base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int um_size_parse(const char *text, uint64_t *bytes)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {{"", 1},
		     {"B", 1},
		     {"KiB", 1024.0},
		     {"MiB", 1048576.0},
		     {"GiB", 1073741824.0},
		     {"TiB", 1099511627776.0}};
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	double n = strtod(text, &end);

	while (*end == ' ')
		end++;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		n *= units[i].factor;
		if (!(n < 9223372036854775808.0))
			return -ERANGE;
		if (units[i].factor == 1 && n != (double)(uint64_t)n)
			return -EINVAL;
		*bytes = (uint64_t)(n + 0.5);
		return 0;
	}
	return -EINVAL;
}
