/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses to tensors: nesting in every order of arrival, what is refused, ids.
 */
#include "record/registry.h"
#include "tap.h"

#include <errno.h>

static struct um_tensor *add(struct um_registry *r, uint64_t addr, uint64_t bytes, const char *name)
{
	struct um_tensor *t = NULL;

	return um_registry_add(r, addr, bytes, name, UM_ROLE_OTHER, 0, &t) == 0 ? t : NULL;
}

static int refused(struct um_registry *r, uint64_t addr, uint64_t bytes)
{
	struct um_tensor *t = NULL;
	int rc = um_registry_add(r, addr, bytes, NULL, UM_ROLE_OTHER, 0, &t);

	return t ? 1 : rc;
}

static const char *at(const struct um_registry *r, uint64_t addr)
{
	const struct um_tensor *t = um_registry_find(r, addr);

	return t ? t->name : "nobody";
}

static void apart(void)
{
	struct um_registry r;
	struct um_tensor *a, *b;

	um_registry_init(&r);
	is_str(at(&r, 5), "nobody", "an empty registry finds no tensor");
	a = add(&r, 0x1000, 0x1000, "a");
	b = add(&r, 0x2000, 0x10, "b");
	is_str(at(&r, 0x0fff), "nobody", "the byte before is outside");
	is_str(at(&r, 0x1000), "a", "the first byte is inside");
	is_str(at(&r, 0x1fff), "a", "the last byte is inside");
	is_str(at(&r, 0x2000), "b", "a neighbour starts where the other ends");
	is_str(at(&r, 0x2010), "nobody", "the byte behind is outside");
	is_u64(a->id.v, 1, "ids start at 1");
	is_u64(b->id.v, 2, "ids count up");
	ok(a->seen_generation == UINT64_MAX, "no generation has seen a new tensor");
	is_int(um_registry_remove(&r, a), 0, "a tensor goes");
	is_u64(a->id.v, 0, "the id of a removed tensor is cleared");
	is_str(at(&r, 0x1800), "nobody", "a removed tensor is not found");
	a = add(&r, 0x1000, 0x800, NULL);
	is_u64(a->id.v, 3, "the same address gets a new id");
	ok(a->name == NULL, "a name is not needed");
	is_u64(r.n, 2, "two are alive");
	um_registry_fini(&r);
}

static void refusals(void)
{
	struct um_registry r;

	um_registry_init(&r);
	add(&r, 0x1000, 0x1000, "a");
	is_int(refused(&r, 0x1000, 0x1000), -EEXIST, "the same range twice is refused");
	is_int(refused(&r, 0x1800, 0x1000), -EEXIST, "overlap over the end");
	is_int(refused(&r, 0x0800, 0x1000), -EEXIST, "overlap over the start");
	is_int(refused(&r, 0x3000, 0), -EINVAL, "a range without bytes is refused");
	is_int(refused(&r, UINT64_MAX - 5, 10), -EINVAL, "past the end of the address space");
	add(&r, 0x1400, 0x400, "inner");
	is_int(refused(&r, 0x1500, 0x400), -EEXIST, "overlap in part with the inner one only");
	is_int(refused(&r, 0x1200, 0x400), -EEXIST, "a range that overlaps the other end is refused");
	is_int(refused(&r, 0x1400, 0x400), -EEXIST, "the inner range is found twice");
	is_u64(r.n, 2, "a refusal leaves nothing behind");
	is_str(at(&r, 0x1500), "inner", "a refused range changes nothing");
	um_registry_fini(&r);
}

/* Five nested ranges, two of them starting together, in an order given by `order`. */
static int nest(const int order[5])
{
	static const struct {
		uint64_t addr, bytes;
		const char *name;
	} range[5] = {{0x1000, 0x1000, "outer"},
		      {0x1000, 0x800, "half"},
		      {0x1000, 0x100, "head"},
		      {0x1200, 0x80, "mid"},
		      {0x1900, 0x700, "tail"}};
	struct um_tensor *t[5];
	struct um_registry r;
	int good = 1;

	um_registry_init(&r);
	for (int i = 0; i < 5; i++) {
		t[order[i]] = add(&r, range[order[i]].addr, range[order[i]].bytes, range[order[i]].name);
		if (!t[order[i]])
			return 0;
	}
	good &= !strcmp(at(&r, 0x1000), "head") && !strcmp(at(&r, 0x10ff), "head") && !strcmp(at(&r, 0x1100), "half");
	good &= !strcmp(at(&r, 0x1200), "mid") && !strcmp(at(&r, 0x1280), "half") && !strcmp(at(&r, 0x1800), "outer");
	good &= !strcmp(at(&r, 0x1fff), "tail") && !strcmp(at(&r, 0x2000), "nobody");
	good &= !strcmp(at(&r, 0x0fff), "nobody");
	good &= t[0]->parent == NULL && t[1]->parent == t[0] && t[2]->parent == t[1] && t[3]->parent == t[1];
	good &= t[4]->parent == t[0] && t[0]->n_children == 2 && t[1]->n_children == 2 && t[2]->n_children == 0;
	good &= um_registry_remove(&r, t[1]) == -EBUSY && um_registry_remove(&r, t[0]) == -EBUSY;
	good &= um_registry_remove(&r, t[2]) == 0 && um_registry_remove(&r, t[3]) == 0;
	good &= um_registry_remove(&r, t[1]) == 0;
	good &= um_registry_remove(&r, t[4]) == 0 && um_registry_remove(&r, t[0]) == 0 && r.n == 0;
	um_registry_fini(&r);
	return good;
}

static void nesting(void)
{
	int order[5], good = 1, tried = 0;

	for (int code = 0; code < 3125; code++) {
		int seen = 0;

		for (int i = 0, c = code; i < 5; i++, c /= 5) {
			order[i] = c % 5;
			seen |= 1 << order[i];
		}
		if (seen == 31) {
			good &= nest(order);
			tried++;
		}
	}
	is_int(tried, 120, "all orders of five");
	ok(good, "five nested ranges: innermost found, parents right, outer ones busy, in every order of arrival");
}

static void many(void)
{
	struct um_registry r;
	int good = 1;

	um_registry_init(&r);
	add(&r, 0, 1 << 20, "all");
	for (uint64_t i = 0; i < 1000; i++)
		add(&r, i * 1000, 500, "part");
	for (uint64_t i = 0; i < 1000; i++)
		good &= !strcmp(at(&r, i * 1000 + 499), "part") && !strcmp(at(&r, i * 1000 + 500), "all");
	ok(good, "a thousand parts of an allocation are added");
	is_u64(um_registry_find(&r, 500)->n_children, 1000, "all parts are counted");
	um_registry_fini(&r);
}

/* The range that is left, as "from+bytes". */
static const char *clipped(const struct um_registry *r, uint64_t addr, uint64_t bytes)
{
	static char text[64];

	um_registry_clip(r, &addr, &bytes);
	snprintf(text, sizeof text, bytes ? "%llu+%llu" : "nothing", (unsigned long long)addr,
		 (unsigned long long)bytes);
	return text;
}

static void clips(void)
{
	struct um_registry r;

	um_registry_init(&r);
	is_str(clipped(&r, 0, 100), "nothing", "an empty registry leaves nothing");
	add(&r, 100, 50, "a");
	add(&r, 110, 10, "part of a");
	add(&r, 200, 50, "b");
	add(&r, 210, 20, "part of b");
	add(&r, 220, 10, "part of that");
	is_str(clipped(&r, 110, 10), "110+10", "inner ranges stay");
	is_str(clipped(&r, 0, 1000), "100+150", "the ends are cut off, gaps between stay");
	is_str(clipped(&r, 0, 120), "100+20", "a range is clipped at one end");
	is_str(clipped(&r, 240, 60), "240+10", "the other, where parts end before");
	is_str(clipped(&r, 150, 50), "nothing", "a gap is nothing");
	is_str(clipped(&r, 0, 100), "nothing", "a range before all tensors has no part");
	is_str(clipped(&r, 250, 100), "nothing", "a range after all tensors has no part");
	is_str(clipped(&r, 150, 51), "200+1", "a range shares its last byte with a tensor");
	is_str(clipped(&r, 149, 2), "149+1", "a range shares its first byte with a tensor");
	is_str(clipped(&r, 120, 0), "nothing", "no bytes stay none");
	um_registry_fini(&r);
}

static const char *past_name(const struct um_registry *r, uint64_t addr)
{
	const struct um_registry_freed *p = um_registry_find_freed(r, addr);

	return p ? p->name : "none";
}

static void past(void)
{
	struct um_registry r;
	char name[16];

	um_registry_init(&r);
	is_str(past_name(&r, 0), "none", "an empty registry has no past tensor at address 0");
	add(&r, 100, 50, "a");
	is_str(past_name(&r, 120), "none", "a live tensor is not a past one");
	um_registry_remove(&r, um_registry_find(&r, 120));
	is_str(past_name(&r, 149), "a", "a removed tensor is found at its last byte");
	is_str(past_name(&r, 150), "none", "a removed tensor is not found after its last byte");
	add(&r, 100, 80, "b");
	um_registry_remove(&r, um_registry_find(&r, 100));
	is_str(past_name(&r, 149), "b", "the last of two tensors that had an address is found");
	for (int i = 0; i < UM_REGISTRY_FREED; i++) {
		snprintf(name, sizeof name, "t%d", i);
		add(&r, 1000 + 10 * (uint64_t)i, 10, name);
		um_registry_remove(&r, um_registry_find(&r, 1000 + 10 * (uint64_t)i));
	}
	is_str(past_name(&r, 100), "none", "the oldest past tensors are forgotten");
	is_str(past_name(&r, 1000), "t0", "the last 64 past tensors are kept");
	um_registry_fini(&r);
}

int main(void)
{
	past();
	clips();
	apart();
	refusals();
	nesting();
	many();
	return tap_done();
}
