/* SPDX-License-Identifier: Apache-2.0
 *
 * link_booking.c - books the copies of swaps in the link's idle time, op by op
 */
#include "plan/link_booking.h"

struct taken {
	const struct um_swap *swap;
	int64_t from, to; /* off the device for ops [from, to) */
};

int um_link_booking_init(struct um_link_booking *t, const struct um_scheme_input *s)
{
	t->n = s->b->n_ops;
	t->left = malloc((size_t)t->n * sizeof *t->left);
	t->skip = malloc((size_t)t->n * sizeof *t->skip);
	if (!t->left || !t->skip)
		return -ENOMEM;
	for (int32_t i = 0; i < t->n; i++) {
		t->left[i] = s->clock[i + 1] - s->clock[i];
		t->skip[i] = 1;
	}
	return 0;
}

void um_link_booking_fini(struct um_link_booking *t)
{
	free(t->left);
	free(t->skip);
}

int64_t um_link_booking_add(struct um_link_booking *t, int64_t from, int64_t to, int step, uint64_t ns, int book)
{
	int64_t at = from;

	while (ns && (to - at) * step > 0) {
		int32_t op = (int32_t)(at % t->n);
		uint64_t part = t->left[op] < ns ? t->left[op] : ns;

		if (!t->left[op]) {
			/* adjacent full ops are skipped in one step the next time */
			int32_t next = (int32_t)((at + step * (int64_t)t->skip[op] + t->n) % t->n);

			if (!t->left[next] && t->skip[op] + t->skip[next] < t->n)
				t->skip[op] += t->skip[next];
			at += step * (int64_t)t->skip[op];
			continue;
		}
		ns -= part;
		if (book)
			t->left[op] -= part;
		if (!ns)
			return at;
		at += step;
	}
	return ns ? to : from - step;
}

static void evict_from(const struct um_swaps *w, const struct um_swap *x, int64_t position, struct um_scheme_result *a)
{
	for (uint32_t k = x->first; k < x->first + x->n; k++) {
		a->choice.evicted[w->visit[k]] = 1;
		a->not_before[w->visit[k]] = (int32_t)position;
	}
}

int um_link_booking_choose(const struct um_swaps *w, const struct um_scheme_input *s, const uint32_t *order,
			   int32_t limit, struct um_scheme_result *a, int32_t *most)
{
	struct um_load *load = &a->choice.load;
	struct um_link_booking out = {0}, in = {0};
	UM_VEC(struct taken) taken = {0};
	int err = um_link_booking_init(&out, s);

	if (!err)
		err = um_link_booking_init(&in, s);
	for (uint32_t i = 0; !err && i < w->n; i++) {
		const struct um_swap *x = &w->at[order[i]];
		int64_t from, to;

		if (um_load_max(load, x->from, x->to) <= limit)
			continue;
		from = um_link_booking_add(&out, x->from, x->to, 1, x->out_ns, 0) + 1;
		to = um_link_booking_add(&in, x->to - 1, x->from - 1, -1, x->in_ns, 0);
		if (from >= to || um_load_max(load, from, to) <= limit)
			continue;
		um_link_booking_add(&out, x->from, x->to, 1, x->out_ns, 1);
		um_link_booking_add(&in, x->to - 1, x->from - 1, -1, x->in_ns, 1);
		evict_from(w, x, to, a);
		um_load_add(load, from, to, -(int32_t)x->n);
		err = um_vec_push(&taken, ((struct taken){x, from, to}));
	}
	if (!err)
		*most = um_load_max(load, 0, load->n);
	/* the load of a result excludes copies in progress */
	for (size_t i = 0; !err && i < taken.n; i++) {
		um_load_add(load, taken.at[i].swap->from, taken.at[i].from, -(int32_t)taken.at[i].swap->n);
		um_load_add(load, taken.at[i].to, taken.at[i].swap->to, -(int32_t)taken.at[i].swap->n);
	}
	um_vec_fini(&taken);
	um_link_booking_fini(&out);
	um_link_booking_fini(&in);
	return err;
}
