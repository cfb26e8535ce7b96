/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.c - memory and copies of a schedule, successors of slots
 */
#include "model/schedule.h"

void um_schedule_init(struct um_schedule *s)
{
	memset(s, 0, sizeof *s);
}

void um_schedule_fini(struct um_schedule *s)
{
	for (size_t i = 0; i < s->slots.n; i++)
		free(s->slots.at[i].name);
	for (size_t i = 0; i < s->ops.n; i++)
		free(s->ops.at[i].name);
	um_vec_fini(&s->slots);
	um_vec_fini(&s->ops);
	um_vec_fini(&s->uses);
	um_vec_fini(&s->relaunch);
	um_vec_fini(&s->births);
	um_vec_fini(&s->ws);
}

/* NULL stays NULL: not a failure. */
static int name_copy(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

#define copy_plain(to, from)                                                                                           \
	(um_vec_reserve((to), (from)->n)                                                                               \
		 ? -ENOMEM                                                                                             \
		 : ((from)->n ? (void)memcpy((to)->at, (from)->at, (from)->n * sizeof *(to)->at) : (void)0,            \
		    (to)->n = (from)->n, 0))

int um_schedule_copy(struct um_schedule *to, const struct um_schedule *from)
{
	struct um_schedule s;

	um_schedule_init(&s);
	if (um_vec_reserve(&s.slots, from->slots.n) || um_vec_reserve(&s.ops, from->ops.n) ||
	    copy_plain(&s.uses, &from->uses) || copy_plain(&s.relaunch, &from->relaunch) ||
	    copy_plain(&s.births, &from->births) || copy_plain(&s.ws, &from->ws))
		goto no_memory;
	/* One by one, so that on failure exactly the copied ones are freed. */
	for (size_t i = 0; i < from->slots.n; i++) {
		s.slots.at[i] = from->slots.at[i];
		s.slots.n = i + 1;
		if (name_copy(&s.slots.at[i].name, from->slots.at[i].name))
			goto no_memory;
	}
	for (size_t i = 0; i < from->ops.n; i++) {
		s.ops.at[i] = from->ops.at[i];
		s.ops.n = i + 1;
		if (name_copy(&s.ops.at[i].name, from->ops.at[i].name))
			goto no_memory;
	}
	s.signature = from->signature;
	um_schedule_fini(to);
	*to = s;
	return 0;
no_memory:
	um_schedule_fini(&s);
	return -ENOMEM;
}

uint32_t *um_schedule_successors(const struct um_schedule *s)
{
	uint32_t *successor = malloc((s->slots.n + 1) * sizeof *successor);

	if (!successor)
		return NULL;
	for (size_t i = 0; i < s->slots.n; i++)
		successor[i] = UM_NO_SLOT;
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].carry < s->slots.n)
			successor[s->slots.at[i].carry] = i;
	return successor;
}

int um_slot_alive_first(const struct um_slot *slot)
{
	return slot->birth < 0 || slot->death <= slot->birth;
}

int um_slot_alive_last(const struct um_slot *slot, int32_t n_ops)
{
	return slot->birth < 0 ? slot->death < 0 || slot->death >= n_ops
			       : slot->death <= slot->birth || slot->death >= n_ops;
}

double um_sched_touched(const struct um_schedule *s, const struct um_sched_op *op)
{
	double bytes = 0;

	for (uint32_t u = 0; u < op->n_uses; u++)
		bytes += (double)s->uses.at[op->first_use + u].touched;
	return bytes;
}

int um_schedule_merge_births(struct um_schedule *s, const uint32_t *program, size_t n, uint32_t first)
{
	if (um_vec_reserve(&s->births, s->slots.n + 1))
		return -ENOMEM;
	for (size_t i = 0;;) {
		uint32_t slot;

		while (i < n && program[i] == UM_NO_SLOT)
			i++;
		if (i == n && first == s->slots.n)
			return 0;
		if (i == n || (first < s->slots.n && s->slots.at[first].birth < s->slots.at[program[i]].birth))
			slot = first++;
		else
			slot = program[i++];
		s->slots.at[slot].born_ord = (uint32_t)s->births.n;
		s->births.at[s->births.n++] = slot;
	}
}

int um_schedule_uses_cpu(const struct um_schedule *s)
{
	size_t i = 0;

	while (i < s->ops.n && s->ops.at[i].stream != UM_STREAM_CPU)
		i++;
	return i < s->ops.n;
}
