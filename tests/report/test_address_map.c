/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies where: nested, over, on top of each other; and against a list that is searched from end to end.
 */
#include "report/address_map.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define RANGE 256 /* addresses of the comparison */
#define LIVE_MAX 64

static struct um_address_map p;

static void add(enum um_place_kind kind, uint64_t address, uint64_t bytes, uint32_t row)
{
	if (um_address_map_add(&p, kind, address, bytes, row))
		tap_bail("no memory");
}

/* Rows and where they end, over a range: "1-20 2-30 ". */
static const char *shown(uint64_t from, uint64_t to)
{
	static char text[1024];
	size_t n = 0;
	uint64_t until;

	for (uint64_t at = from; at < to; at = until) {
		uint32_t row = um_address_map_find(&p, at, &until);

		until = until < to ? until : to;
		if (row == UM_PLACE_NONE)
			n += (size_t)snprintf(text + n, sizeof text - n, "_-%d ", (int)until);
		else
			n += (size_t)snprintf(text + n, sizeof text - n, "%u-%d ", row, (int)until);
	}
	return text;
}

static void nesting(void)
{
	is_str(shown(0, 100), "_-100 ", "nothing lies anywhere");
	add(UM_PLACE_ALLOCATION, 10, 80, 1);
	add(UM_PLACE_TENSOR, 20, 40, 2);
	add(UM_PLACE_TENSOR, 30, 10, 3);
	is_str(shown(0, 100), "_-10 1-20 2-30 3-40 2-60 1-90 _-100 ", "the innermost counts, then the allocation");
	add(UM_PLACE_TENSOR, 10, 80, 4);
	is_str(shown(0, 100), "_-10 4-20 2-30 3-40 2-60 4-90 _-100 ",
	       "a tensor contains others and fills its allocation");
	um_address_map_remove(&p, UM_PLACE_TENSOR, 20, 0);
	is_str(shown(0, 100), "_-10 4-30 3-40 4-90 _-100 ", "a range that contains another ends");
	add(UM_PLACE_TENSOR, 35, 20, 5);
	is_str(shown(0, 100), "_-10 4-35 5-55 4-90 _-100 ", "a partly overlapped range ends");
	add(UM_PLACE_TENSOR, 35, 20, 6);
	is_str(shown(0, 100), "_-10 4-35 6-55 4-90 _-100 ",
	       "an allocation with the same range replaces the earlier one");
	add(UM_PLACE_TENSOR, 10, 5, 7);
	add(UM_PLACE_TENSOR, 10, 20, 8);
	um_address_map_remove(&p, UM_PLACE_TENSOR, 10, 5);
	is_str(shown(0, 100), "_-10 8-30 4-35 6-55 4-90 _-100 ",
	       "of several allocations at an address the one of that size ends");
	um_address_map_remove(&p, UM_PLACE_TENSOR, 10, 0);
	is_str(shown(0, 100), "_-10 4-35 6-55 4-90 _-100 ", "without a size the last one ends");
	um_address_map_remove(&p, UM_PLACE_TENSOR, 11, 0);
	is_str(shown(0, 100), "_-10 4-35 6-55 4-90 _-100 ", "an end without a begin changes nothing");
	um_address_map_remove(&p, UM_PLACE_ALLOCATION, 10, 0);
	is_str(shown(0, 100), "_-100 ", "an allocation takes its tensors along");
	add(UM_PLACE_TENSOR, UINT64_MAX - 9, 100, 9);
	add(UM_PLACE_TENSOR, 5, 0, 10);
	is_str(shown(0, 100), "_-100 ", "an allocation of no bytes covers nothing");
	is_u64(um_address_map_find(&p, UINT64_MAX - 5, &(uint64_t){0}), 9, "up to the last address");
	um_address_map_fini(&p);
}

struct live {
	uint64_t begin, end, born;
	uint32_t row;
};

/* The same by looking at all of them. */
static uint32_t naive(const struct live *l, size_t n, uint64_t at)
{
	const struct live *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (l[i].begin <= at && at < l[i].end && (!best || l[i].end - l[i].begin < best->end - best->begin))
			best = &l[i];
	return best ? best->row : UM_PLACE_NONE;
}

static size_t naive_add(struct live *l, size_t n, struct live x)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		int apart = l[i].end <= x.begin || x.end <= l[i].begin;
		int in = l[i].begin <= x.begin && x.end <= l[i].end;
		int around = x.begin <= l[i].begin && l[i].end <= x.end;

		if (apart || in != around)
			l[left++] = l[i];
	}
	l[left++] = x;
	return left;
}

static size_t naive_remove(struct live *l, size_t n, uint64_t begin)
{
	size_t best = n;

	for (size_t i = 0; i < n; i++)
		if (l[i].begin == begin && (best == n || l[i].born > l[best].born))
			best = i;
	if (best < n)
		l[best] = l[--n];
	return n;
}

static void compared(void)
{
	struct live live[LIVE_MAX + 1];
	unsigned bad = 0;
	uint64_t until;
	size_t n = 0;

	srand(1);
	for (uint32_t turn = 0; turn < 20000; turn++) {
		uint64_t begin = (uint64_t)rand() % RANGE, bytes = 1 + (uint64_t)rand() % (rand() % 4 ? 24 : RANGE);

		if (n == LIVE_MAX || (n && rand() % 3 == 0)) {
			begin = live[(size_t)rand() % n].begin;
			um_address_map_remove(&p, UM_PLACE_TENSOR, begin, 0);
			n = naive_remove(live, n, begin);
		} else {
			add(UM_PLACE_TENSOR, begin, bytes, turn);
			n = naive_add(live, n, (struct live){begin, begin + bytes, turn, turn});
		}
		for (uint64_t at = 0; at < 2 * RANGE; at = until) {
			uint32_t row = um_address_map_find(&p, at, &until);

			bad += until <= at;
			until = until < 2 * RANGE ? until : 2 * RANGE;
			for (uint64_t x = at; x < until; x++)
				bad += naive(live, n, x) != row;
		}
	}
	is_u64(bad, 0, "20,000 ranges that begin and end, all addresses after each");
	um_address_map_fini(&p);
}

int main(void)
{
	nesting();
	compared();
	return tap_done();
}
