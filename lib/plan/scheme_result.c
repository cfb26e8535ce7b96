/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_result.c - memory of a scheme's result, and functions shared by several schemes
 */
#include "plan/scheme.h"

#include <strings.h>

int um_scheme_is_product(const char *name)
{
	static const char *const words[] = {"conv", "mm", "matmul", "linear", "mv"};

	for (size_t i = 0; name && i < sizeof words / sizeof *words; i++)
		for (const char *p = name; *p; p++)
			if (strncasecmp(p, words[i], strlen(words[i])) == 0)
				return 1;
	return 0;
}

int um_scheme_result_init(struct um_scheme_result *a, const struct um_blocks *b, uint8_t *keep_resident)
{
	memset(a, 0, sizeof *a);
	a->not_before = calloc(b->n_visits + 1ull, sizeof *a->not_before);
	if (a->not_before && !um_choice_init(&a->choice, b, keep_resident))
		return 0;
	free(a->not_before);
	a->not_before = NULL;
	return -ENOMEM;
}

void um_scheme_result_fini(struct um_scheme_result *a)
{
	um_choice_fini(&a->choice);
	free(a->not_before);
	a->not_before = NULL;
}
