/* SPDX-License-Identifier: Apache-2.0
 *
 * How many marks make up an iteration: sequences of iterations by kind, one letter each.
 */
#include "learn/iteration_period.h"

#include "tap.h"

#include <string.h>

/* Plays the kinds; the key of a joined iteration is made of those in it. */
static uint32_t length_after(struct um_iteration_period *p, const char *kinds, uint32_t ops)
{
	uint64_t key = 0;

	for (; *kinds; kinds++) {
		key = key * 131 + (uint64_t)*kinds;
		if (!um_iteration_period_mark(p))
			continue;
		um_iteration_period_end(p, key, ops);
		key = 0;
	}
	return p->length;
}

static void is_length(const char *kinds, uint32_t ops, uint32_t want, const char *what)
{
	struct um_iteration_period p;

	um_iteration_period_init(&p);
	is_u64(length_after(&p, kinds, ops), want, "%s", what);
}

static void ends(void)
{
	struct um_iteration_period p;

	um_iteration_period_init(&p);
	length_after(&p, "dgdg", 100);
	is_u64(length_after(&p, "dgdgdg", 100), 2, "a period stays while it repeats");
	is_u64(length_after(&p,
			    "dge"
			    "gdgdgd",
			    100),
	       2, "a period survives one odd iteration");
	is_u64(length_after(&p, "abcdefgh", 100), 1, "a period ends after three joined iterations that differ");
	is_u64(length_after(&p, "dgdg", 100), 1, "after a period that ended two repetitions are not enough");
	is_u64(length_after(&p, "dg", 100), 2, "after a period that ended three repetitions are enough");
}

static void marks(void)
{
	struct um_iteration_period p;

	um_iteration_period_init(&p);
	ok(um_iteration_period_mark(&p), "without a period each mark ends an iteration");
	um_iteration_period_set(&p, 3);
	ok(!um_iteration_period_mark(&p) && !um_iteration_period_mark(&p) && um_iteration_period_mark(&p),
	   "with a period of three every third mark ends an iteration");
}

int main(void)
{
	is_length("aaaaaaaaaaaa", 100, 1, "equal iterations have the period one");
	is_length("dgd", 100, 1, "three iterations do not show a period of two");
	is_length("dgdg", 100, 2, "two kinds that alternate twice have the period two");
	is_length("dddddgdddddg", 100, 6, "five iterations of a kind and one of another have the period six");
	is_length("aaaaaabaaaaaab", 100, 1, "six equal iterations are planned by themselves");
	is_length("aaaabaaaaaaaaabaaaaa", 100, 1, "wherever their run begins");
	is_length("abcbacabbcaacb", 100, 1, "kinds in no order have no period");
	is_length("dgdg", UM_PERIOD_OPS, 1, "iterations that are too long together stay apart");
	ends();
	marks();
	return tap_done();
}
