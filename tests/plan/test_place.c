/* SPDX-License-Identifier: Apache-2.0
 *
 * Places: live slots do not overlap, settled places are kept, rooms are filled before new ones.
 */
#include "plan/place.h"
#include "plan/place_order.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

static int alive(const struct um_slot *t, int32_t op)
{
	if (t->birth < 0)
		return t->death < 0 || op < t->death;
	return t->birth < t->death ? op >= t->birth && op < t->death : op >= t->birth || op < t->death;
}

struct range {
	uint64_t from, to;
};

static int by_from(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Ops at which two slots overlap; the most blocks that hold something alive in *blocks. */
static int overlaps(const struct um_schedule *s, uint64_t *blocks)
{
	struct range *r = calloc(s->slots.n + 1, sizeof *r);
	int bad = 0;

	*blocks = 0;
	for (int32_t op = 0; op < (int32_t)s->ops.n; op++) {
		uint64_t n_blocks = 0, last = 0;
		size_t n = 0;

		for (size_t i = 0; i < s->slots.n; i++)
			if (alive(&s->slots.at[i], op))
				r[n++] = (struct range){s->slots.at[i].place,
							s->slots.at[i].place + s->slots.at[i].bytes};
		qsort(r, n, sizeof *r, by_from);
		for (size_t i = 0; i < n; i++) {
			uint64_t lo = r[i].from / UM_BLOCK_BYTES, hi = (r[i].to - 1) / UM_BLOCK_BYTES;

			bad += i && r[i].from < r[i - 1].to;
			n_blocks += hi - lo + 1 - (last == lo + 1);
			last = hi + 1;
		}
		*blocks = n_blocks > *blocks ? n_blocks : *blocks;
	}
	free(r);
	return bad;
}

static void by_hand(void)
{
	struct um_schedule s = {0};
	struct um_plan_room rooms[] = {{1ull << 30, 4 * FX_MIB}};
	struct um_plan_request r = fx_request(&s, 1ull << 40);
	uint64_t grow = 99;

	fx_slot(&s, 3 * FX_MIB, 0, 2);
	fx_slot(&s, 3 * FX_MIB, 2, 4);
	fx_slot(&s, 1 * FX_MIB, 1, 3);
	fx_slot(&s, 5 * FX_MIB, 0, 4);
	fx_op(&s, "a", 1, "w0");
	fx_op(&s, "b", 1, "w2");
	fx_op(&s, "c", 1, "w1");
	fx_op(&s, "d", 1, "w3");
	r.rooms = rooms;
	r.n_rooms = 1;
	is_int(um_place_build(&r, &s, &grow), 0, "four tensors get places");
	is_u64(s.slots.at[0].place, 1ull << 30, "the first lies in the room");
	is_u64(s.slots.at[1].place, 1ull << 30, "the second takes its place when it is gone");
	is_u64(s.slots.at[2].place, (1ull << 30) + 3 * FX_MIB, "the third lies beside them");
	is_u64(s.slots.at[3].place, 1ull << 40, "what is larger than the room lies behind it");
	is_u64(grow, 6 * FX_MIB, "the arena grows by whole blocks");
	s.slots.at[2].flags = UM_SLOT_FIXED;
	s.slots.at[2].place = (1ull << 30) + FX_MIB;
	is_int(um_place_build(&r, &s, &grow), 0, "places are found around a settled tensor");
	is_u64(s.slots.at[2].place, (1ull << 30) + FX_MIB, "the settled tensor stays in its place");
	ok(s.slots.at[0].place >= 1ull << 40 && s.slots.at[1].place >= 1ull << 40, "the others go where there is room");
	rooms[0].addr++;
	is_int(um_place_build(&r, &s, &grow), -EINVAL, "a room begins at a block");
	rooms[0].addr = 1ull << 41;
	is_int(um_place_build(&r, &s, &grow), -EINVAL, "new ones lie behind all rooms");
	um_schedule_fini(&s);
}

static void around_the_end(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r = fx_request(&s, 1ull << 40);
	uint64_t grow;

	fx_slot(&s, 4 * FX_MIB, 2, 1);
	fx_slot(&s, 4 * FX_MIB, 1, 2);
	fx_slot(&s, 2 * FX_MIB, 3, 4);
	fx_slot(&s, 2 * FX_MIB, -1, 1);
	fx_slot(&s, 512, -1, -1);
	for (int i = 0; i < 4; i++)
		fx_op(&s, "a", 1, "");
	is_int(um_place_build(&r, &s, &grow), 0, "lives through the iteration's end");
	is_u64(s.slots.at[0].place, s.slots.at[1].place, "one fills the time that the other leaves");
	is_u64(s.slots.at[2].place, s.slots.at[3].place, "two tensors at either end share a place");
	is_u64(grow, 8 * FX_MIB, "a tensor that stays takes a block whose rest is free");
	um_schedule_fini(&s);
}

/* Two activations of 3 MiB and one of 1 MiB, with their latest tensors at these distances from a room of 64 MiB. */
static void were_at(struct um_schedule *s, uint64_t first, uint64_t second, uint64_t third)
{
	const uint64_t at[] = {first, second, third};

	fx_slot(s, 3 * FX_MIB, 0, 2);
	fx_slot(s, 3 * FX_MIB, 2, 3);
	fx_slot(s, 1 * FX_MIB, 1, 3);
	fx_op(s, "a", 1, "w0");
	fx_op(s, "b", 1, "w2");
	fx_op(s, "c", 1, "w1");
	for (int i = 0; i < 3; i++)
		s->slots.at[i].last_addr = (1ull << 30) + at[i];
}

/* 1: all are placed where their latest tensors were; 0: none is moved to another place than without these. */
static int stay(uint64_t budget, uint64_t first, uint64_t second, uint64_t third)
{
	struct um_schedule s = {0}, anew = {0};
	struct um_plan_room room = {1ull << 30, 64 * FX_MIB};
	struct um_plan_request r = fx_request(&s, budget), other = fx_request(&anew, budget);
	uint64_t grow;
	int same = 1, moved = 0;

	were_at(&s, first, second, third);
	were_at(&anew, first, second, third);
	r.rooms = other.rooms = &room;
	r.n_rooms = other.n_rooms = 1;
	for (int i = 0; i < 3; i++)
		anew.slots.at[i].last_addr = 0;
	if (um_place_build(&r, &s, &grow) || um_place_build(&other, &anew, &grow))
		return -1;
	for (int i = 0; i < 3; i++) {
		same &= s.slots.at[i].place == s.slots.at[i].last_addr;
		moved |= s.slots.at[i].place != anew.slots.at[i].place;
	}
	um_schedule_fini(&s);
	um_schedule_fini(&anew);
	return same ? 1 : moved ? -1 : 0;
}

static void where_they_were(void)
{
	is_int(stay(8 * FX_MIB, 8 * FX_MIB, 8 * FX_MIB, 11 * FX_MIB), 1,
	       "tensors stay where they were if all fits in the budget there");
	is_int(stay(2 * FX_MIB, 8 * FX_MIB, 8 * FX_MIB, 11 * FX_MIB), 0,
	       "a schedule that exceeds the budget gets places anew");
	is_int(stay(8 * FX_MIB, 8 * FX_MIB, 8 * FX_MIB, 9 * FX_MIB), 0,
	       "places are made anew if two tensors that are alive at once were at one place");
	is_int(stay(8 * FX_MIB, 8 * FX_MIB, 16 * FX_MIB, 11 * FX_MIB), 0,
	       "places are made anew if blocks of one tensor could serve another one");
	is_int(stay(8 * FX_MIB, 8 * FX_MIB, 8 * FX_MIB, (1ull << 40) - (1ull << 30)), 0,
	       "places are made anew if one tensor was outside all rooms");
	is_int(stay(8 * FX_MIB, 8 * FX_MIB, 8 * FX_MIB, 11 * FX_MIB + 256), 0,
	       "places are made anew if one tensor was not at a multiple of 512 bytes");
}

/* Where all memory in use fits, only a tensor moves whose place another one has at the same time. */
static void some_stay(void)
{
	struct um_schedule s = {0};
	struct um_plan_room room = {1ull << 30, 64 * FX_MIB};
	struct um_plan_request r = fx_request(&s, 8 * FX_MIB);
	uint64_t grow;

	were_at(&s, 8 * FX_MIB, 16 * FX_MIB, 9 * FX_MIB);
	r.rooms = &room;
	r.n_rooms = 1;
	r.stay = 1;
	is_int(um_place_build(&r, &s, &grow), 0, "places are found where all memory in use fits");
	is_u64(s.slots.at[0].place, s.slots.at[0].last_addr, "then the first tensor stays");
	is_u64(s.slots.at[1].place, s.slots.at[1].last_addr, "so does one whose blocks could serve another one");
	ok(s.slots.at[2].place + s.slots.at[2].bytes <= s.slots.at[0].place ||
		   s.slots.at[2].place >= s.slots.at[0].place + s.slots.at[0].bytes,
	   "one that was where another one is goes elsewhere");
	um_schedule_fini(&s);
}

static void by_chance(void)
{
	int bad = 0, moved = 0, failed = 0, n = 0;

	for (uint64_t seed = 1; seed <= 300; seed += (uint64_t)tap_step(9), n++) {
		struct um_schedule s = {0}, before = {0};
		struct um_plan_request r = fx_request(&s, 1ull << 40);
		struct um_plan_room rooms[] = {{1ull << 30, 16 * FX_MIB}, {1ull << 31, 64 * FX_MIB}};
		uint64_t grow, blocks;

		fx_random(&s, seed);
		if (seed % 2) {
			r.rooms = rooms;
			r.n_rooms = 2;
		}
		/* Once for places to settle, then with some of them settled. */
		failed += um_place_build(&r, &s, &grow) != 0;
		for (size_t i = 0; i < s.slots.n; i += 3)
			s.slots.at[i].flags |= UM_SLOT_FIXED;
		um_schedule_copy(&before, &s);
		failed += um_place_build(&r, &s, &grow) != 0;
		for (size_t i = 0; i < s.slots.n; i += 3)
			moved += s.slots.at[i].place != before.slots.at[i].place;
		bad += overlaps(&s, &blocks);
		um_schedule_fini(&s);
		um_schedule_fini(&before);
	}
	is_int(failed, 0, "%d schedules by chance find places", n);
	is_int(bad, 0, "tensors alive at once never overlap");
	is_int(moved, 0, "settled tensors keep their places");
}

/* Bar: at most 2 per cent more blocks than the bytes alive fill, but for some that are only begun. */
static void recorded(const char *name)
{
	struct um_schedule s = {0};
	struct um_plan_request r = fx_request(&s, 1ull << 40);
	const char *dir = getenv("top_srcdir");
	char path[4096];
	uint64_t grow, blocks, peak;

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", dir ? dir : ".", name);
	if (fx_trace(&s, path)) {
		ok(0, "%s is read", name);
		return;
	}
	for (size_t i = 0; i < s.slots.n; i++)
		s.slots.at[i].flags &= ~(unsigned)UM_SLOT_FIXED;
	is_int(um_place_build(&r, &s, &grow), 0, "%s", name);
	peak = fx_peak(&s);
	is_int(overlaps(&s, &blocks), 0, "%s: no overlap", name);
	ok(blocks * UM_BLOCK_BYTES <= peak + peak / 50 + 16 * UM_BLOCK_BYTES, "%s: %d MiB of blocks for %d MiB alive",
	   name, (int)(2 * blocks), (int)(peak / FX_MIB));
	um_schedule_fini(&s);
}

/* More slots than are searched for: they are placed as they are born. */
static void as_a_stream(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r = fx_request(&s, 1ull << 40);
	uint64_t grow, blocks, seed = 3, peak;
	int32_t n = 300;

	for (int i = 0; i < 41000; i++) {
		int32_t birth = (int32_t)fx_draw(&seed, (uint64_t)n);
		int32_t long_lived = fx_draw(&seed, 8) == 0;

		fx_slot(&s, 1 + fx_draw(&seed, 1 << 16), birth,
			birth + 1 + (int32_t)fx_draw(&seed, long_lived ? (uint64_t)(n - birth) : 2) % (n - birth));
	}
	for (int i = 0; i < 100; i++)
		fx_slot(&s, 1 + fx_draw(&seed, 1 << 20), i, i / 2);
	fx_slot(&s, 1 << 20, -1, -1);
	s.slots.at[0].flags = UM_SLOT_FIXED;
	s.slots.at[0].place = r.grow_at + 4096;
	for (int32_t i = 0; i < n; i++)
		fx_op(&s, "op", 1, "");
	is_int(um_place_build(&r, &s, &grow), 0, "more than can be searched for");
	is_int(overlaps(&s, &blocks), 0, "tensors alive at once never overlap");
	is_u64(s.slots.at[0].place, r.grow_at + 4096, "settled tensors keep their places");
	peak = fx_peak(&s);
	ok(blocks * UM_BLOCK_BYTES <= peak + peak / 8, "%d MiB of blocks for %d MiB alive", (int)(2 * blocks),
	   (int)(peak / FX_MIB));
	um_schedule_fini(&s);
}

static int by_size(const void *a, const void *b)
{
	const struct um_slot *x = *(const struct um_slot *const *)a, *y = *(const struct um_slot *const *)b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->birth < y->birth ? -1 : x->birth > y->birth;
}

/* Blocks of the packing that is searched for nothing: the largest slot first, each into the smallest hole. */
static uint64_t blocks_by_size(struct um_schedule *s)
{
	struct um_slot *order[400];
	struct um_place_list l = {0};
	struct um_place_item item[400];
	uint64_t blocks;

	for (size_t i = 0; i < s->slots.n; i++)
		order[i] = &s->slots.at[i];
	qsort(order, s->slots.n, sizeof *order, by_size);
	for (size_t i = 0; i < s->slots.n; i++)
		item[i] = (struct um_place_item){
			(uint32_t)i, order[i]->bytes, UM_PLACE_GRANULE, {order[i]->birth, order[i]->death, 0}, 0};
	if (um_place_list_init(&l) || um_place_list_add(&l, 1ull << 40, UINT64_MAX, um_place_wall) ||
	    um_place_in_order(&l, item, s->slots.n))
		tap_bail("no memory");
	for (size_t i = 0; i < s->slots.n; i++)
		order[i]->place = item[i].place;
	overlaps(s, &blocks);
	um_place_list_fini(&l);
	return blocks;
}

/* Sizes and lifetimes by chance leave more free in blocks than those of programs. Bar: 3 per cent. */
static void densely(void)
{
	int bad = 0, wasteful = 0, fewer = 0, more = 0, over = 0;

	for (uint64_t seed = 1; seed <= 20; seed += (uint64_t)tap_step(5)) {
		struct um_schedule s = {0}, again = {0};
		struct um_plan_request r = fx_request(&s, 1ull << 40);
		uint64_t random = seed, grow, blocks, first, peak;
		int differ = 0;

		for (int32_t i = 0; i < 300; i++) {
			int32_t birth = (int32_t)fx_draw(&random, 300), left = 300 - birth;
			int32_t life = 1 + (int32_t)(fx_draw(&random, 60) * fx_draw(&random, 60) / 60);

			fx_slot(&s, 512 * (1 + fx_draw(&random, 1 << 15)), birth, birth + (life < left ? life : left));
		}
		for (int32_t i = 0; i < 300; i++)
			fx_op(&s, "op", 1, "");
		um_schedule_copy(&again, &s);
		first = blocks_by_size(&again);
		bad += um_place_build(&r, &s, &grow) != 0 || um_place_build(&r, &again, &grow) != 0;
		bad += overlaps(&s, &blocks);
		for (size_t i = 0; i < s.slots.n; i++)
			differ |= s.slots.at[i].place != again.slots.at[i].place;
		peak = fx_peak(&s);
		wasteful += first * UM_BLOCK_BYTES > peak + peak / 50 + UM_BLOCK_BYTES;
		fewer += blocks < first;
		more += blocks > first;
		over += blocks * UM_BLOCK_BYTES > peak + peak / 100 * 3 + UM_BLOCK_BYTES;
		bad += differ;
		um_schedule_fini(&s);
		um_schedule_fini(&again);
	}
	is_int(bad, 0, "a search finds places that never overlap, and finds them again");
	ok(wasteful > 0 && fewer >= wasteful, "where the first order wastes blocks (%d times) another one needs fewer",
	   wasteful);
	is_int(more, 0, "no packing needs more blocks than the first order");
	is_int(over, 0, "no packing needs more than 3 per cent of blocks beyond the bytes alive");
}

/* Slot 1 passes its tensor on to slot 0, and slot 2's tensor of the iteration before is where both would lie. */
static void passed_on(void)
{
	struct um_schedule s = {0};
	struct um_plan_room rooms[] = {{1ull << 30, 8 * FX_MIB}};
	struct um_plan_request r = fx_request(&s, 1ull << 40);
	uint64_t grow = 99;

	fx_slot(&s, 2 * FX_MIB, 0, -1);
	fx_slot(&s, 2 * FX_MIB, -1, 1);
	fx_slot(&s, 2 * FX_MIB, 2, 1);
	s.slots.at[1].carry = 0;
	for (int i = 1; i < 3; i++)
		s.slots.at[i].bound.v = (uint64_t)i;
	s.slots.at[1].bound_addr = 1ull << 35;
	s.slots.at[2].bound_addr = (1ull << 30) + FX_MIB;
	fx_op(&s, "a", 1, "w0 r1 r2");
	fx_op(&s, "b", 1, "r0");
	fx_op(&s, "c", 1, "w2");
	r.rooms = rooms;
	r.n_rooms = 1;
	for (int i = 0; i < 2; i++) {
		is_int(um_place_build(&r, &s, &grow), 0, "a tensor is passed on");
		is_u64(s.slots.at[0].place, (1ull << 30) + 4 * FX_MIB, "its place is free when it is born first");
		is_u64(s.slots.at[1].place, (1ull << 30) + 6 * FX_MIB, "and so is the one that it takes turns with");
	}
	um_schedule_fini(&s);
}

/* Slot 0's tensor of the iteration before, a gradient, lives until op `death` where slots 0 and 1 would lie. Returns
 * the place of slot 1, which is born at the first op. */
static uint64_t carried_over(int32_t death)
{
	struct um_schedule s = {0};
	struct um_plan_room rooms[] = {{1ull << 30, 8 * FX_MIB}};
	struct um_plan_request r = fx_request(&s, 1ull << 40);
	uint64_t grow, place;

	fx_slot(&s, 2 * FX_MIB, 12, death);
	fx_slot(&s, 2 * FX_MIB, 0, 10);
	s.slots.at[0].bound.v = 1;
	s.slots.at[0].bound_addr = 1ull << 30;
	for (int i = 0; i < 80; i++)
		fx_op(&s, "a", 1, "");
	r.rooms = rooms;
	r.n_rooms = 1;
	is_int(um_place_build(&r, &s, &grow), 0, "places are found beside a tensor of the iteration before");
	place = s.slots.at[1].place;
	um_schedule_fini(&s);
	return place;
}

static void elsewhere(void)
{
	ok(carried_over(8) >= (1ull << 30) + 2 * FX_MIB,
	   "no slot lies where a tensor that is born in one iteration and freed late in the next still is");
	ok(carried_over(1) < (1ull << 30) + 2 * FX_MIB, "a slot may lie where such a tensor is freed early");
}

int main(void)
{
	by_hand();
	passed_on();
	elsewhere();
	around_the_end();
	where_they_were();
	some_stay();
	by_chance();
	as_a_stream();
	densely();
	if (!tap_few()) {
		recorded("resnet50");
		recorded("vgg16");
		recorded("gpt2_small");
	}
	recorded("cifar_vgg16_b100");
	return tap_done();
}
