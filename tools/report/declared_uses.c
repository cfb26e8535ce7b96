/* SPDX-License-Identifier: Apache-2.0 */
#include "report/declared_uses.h"

#include <errno.h>
#include <stdlib.h>

#define OPS 32768u
#define USES 262144u

struct um_declared_uses_op {
	uint64_t op, first; /* of its uses */
	uint32_t process, n;
	int known; /* all of its uses are stored */
};

void um_declared_uses_fini(struct um_declared_uses *s)
{
	free(s->ops);
	free(s->uses);
	*s = (struct um_declared_uses){0};
}

int um_declared_uses_on_op(struct um_declared_uses *s, uint32_t process, const struct um_activity *a)
{
	if (!s->ops) {
		s->ops = calloc(OPS, sizeof *s->ops);
		s->uses = calloc(USES, sizeof *s->uses);
		if (!s->ops || !s->uses) {
			um_declared_uses_fini(s);
			return -ENOMEM;
		}
	}
	s->ops[a->op % OPS] =
		(struct um_declared_uses_op){.op = a->op, .first = s->n_uses, .process = process, .known = 1};
	return 0;
}

/* The uses of an op must be contiguous; another thread's use in between makes them unknown. */
void um_declared_uses_on_use(struct um_declared_uses *s, uint32_t process, const struct um_activity *a)
{
	struct um_declared_uses_op *op = s->ops ? &s->ops[a->op % OPS] : NULL;

	if (!op || op->op != a->op || op->process != process)
		return;
	if (op->first + op->n != s->n_uses) {
		op->known = 0;
		return;
	}
	s->uses[s->n_uses++ % USES] = (struct um_declared_use){a->address, a->bytes, a->access};
	op->n++;
}

uint32_t um_declared_uses_of(const struct um_declared_uses *s, uint32_t process, uint64_t op, uint64_t *first)
{
	const struct um_declared_uses_op *o = s->ops && op != UM_ACT_NO_OP ? &s->ops[op % OPS] : NULL;

	if (!o || o->op != op || o->process != process || !o->known || o->first + USES < s->n_uses)
		return 0;
	*first = o->first;
	return o->n;
}

const struct um_declared_use *um_declared_uses_at(const struct um_declared_uses *s, uint64_t index)
{
	return &s->uses[index % USES];
}
