/* SPDX-License-Identifier: Apache-2.0 */
#include "report/survey_state.h"

#include "base/hash.h"
#include "report/report.h"
#include "report/window.h"

#define NAMES_MAX 65536u /* different names; one takes the rest */

/* --- kernels ------------------------------------------------------------------------------------------------------ */

struct key {
	const struct um_survey *s;
	const char *name;
	uint64_t shape;
};

static int same_name(const void *user, uint32_t row)
{
	const struct key *k = user;
	const struct um_survey_name *n = &k->s->names.at[row];

	return n->shape == k->shape && strcmp(n->name, k->name) == 0;
}

static int name_of(struct um_survey *s, const char *name, uint64_t shape, uint32_t *row)
{
	uint64_t hash = um_hash_u64(um_hash_str(name), shape);
	char *copy;

	*row = um_index_find(&s->name_index, hash, same_name, &(struct key){s, name, shape});
	if (*row != UM_INDEX_NONE)
		return 0;
	*row = (uint32_t)s->names.n;
	if (s->names.n > NAMES_MAX) {
		*row = NAMES_MAX;
		return 0;
	}
	copy = strdup(s->names.n == NAMES_MAX ? "(others)" : name);
	if (!copy || um_vec_reserve(&s->names, 1) || um_index_add(&s->name_index, hash, *row)) {
		free(copy);
		return -ENOMEM;
	}
	s->names.at[s->names.n++] = (struct um_survey_name){copy, shape};
	return 0;
}

static struct um_survey_lane *lane_of(struct um_survey *s, const struct um_activity *a)
{
	struct um_survey_lane fresh = {.process = a->process, .device = a->device};

	for (size_t i = 0; i < s->lanes.n; i++)
		if (s->lanes.at[i].process == a->process && s->lanes.at[i].device == a->device)
			return &s->lanes.at[i];
	return um_vec_push(&s->lanes, fresh) ? NULL : &s->lanes.at[s->lanes.n - 1];
}

static int on_kernel(struct um_survey *s, const struct um_activity *a)
{
	struct um_survey_lane *l = lane_of(s, a);
	struct um_survey_kernel k = {.key = a->correlation, .ns = (float)(a->end - a->begin)};

	if (!l)
		return -ENOMEM;
	l->ns += (double)k.ns;
	um_survey_in_ranges(s, a);
	if (s->kernels == UM_SURVEY_KERNELS) {
		s->skipped++;
		return 0;
	}
	s->kernels++;
	if (!k.key && !l->by_time) {
		/* Earlier ones had correlations, which are not comparable with times. */
		l->by_time = 1;
		um_vec_clear(&l->kernels);
	}
	if (l->by_time)
		k.key = (uint64_t)a->begin;
	l->unordered |= l->kernels.n && k.key < l->kernels.at[l->kernels.n - 1].key;
	return name_of(s, a->name, s->o.shapes ? a->shape : 0, &k.name) || um_vec_push(&l->kernels, k) ? -ENOMEM : 0;
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_survey *s = (struct um_survey *)sink;

	if ((a->kind != UM_ACT_RANGE && a->kind != UM_ACT_KERNEL) || !um_window_has(&s->window, a))
		return 0;
	if (a->kind == UM_ACT_KERNEL)
		return on_kernel(s, a);
	if (s->o.no_ranges)
		return 0;
	s->marked = a->domain && strcmp(a->domain, UM_REPORT_DOMAIN) == 0;
	return s->marked ? -ECANCELED : um_survey_on_range(s, a);
}

void um_survey_init(struct um_survey *s, const struct um_survey_options *o)
{
	memset(s, 0, sizeof *s);
	s->sink.feed = feed;
	s->o = *o;
	s->window = (struct um_window){o->from, o->to, o->within, INT64_MIN};
}

void um_survey_fini(struct um_survey *s)
{
	for (size_t i = 0; i < s->lanes.n; i++)
		um_vec_fini(&s->lanes.at[i].kernels);
	for (size_t i = 0; i < s->names.n; i++)
		free(s->names.at[i].name);
	um_vec_fini(&s->lanes);
	um_vec_fini(&s->names);
	um_index_fini(&s->name_index);
	um_survey_ranges_fini(s);
}

void um_survey_reset(struct um_survey *s)
{
	struct um_survey_options o = s->o;

	um_survey_fini(s);
	um_survey_init(s, &o);
}

/* --- what repeats ------------------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct um_survey_kernel *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* A lane as a sequence. */
struct sequence {
	uint32_t *names;
	float *ns;
	uint64_t *keys;
	size_t n;
	unsigned char *alone; /* by name */
	UM_VEC(uint64_t) graphs; /* hashes of the names from n_names on */
	struct um_index index;
};

static void sequence_fini(struct sequence *q)
{
	free(q->names);
	free(q->ns);
	free(q->keys);
	free(q->alone);
	um_vec_fini(&q->graphs);
	um_index_fini(&q->index);
}

static int same_graph(const void *user, uint32_t row)
{
	const struct sequence *q = user;

	return q->graphs.at[row] == q->graphs.at[q->graphs.n - 1];
}

/* The name of all kernels of one launch, independent of their order. */
static int graph_name(struct sequence *q, const struct um_survey_kernel *k, size_t n, size_t n_names, uint32_t *name)
{
	uint64_t hash = n;

	for (size_t i = 0; i < n; i++)
		hash += um_hash_u64(0, k[i].name);
	if (um_vec_push(&q->graphs, hash))
		return -ENOMEM;
	*name = um_index_find(&q->index, hash, same_graph, q);
	if (*name != UM_INDEX_NONE)
		q->graphs.n--;
	else if (um_index_add(&q->index, hash, *name = (uint32_t)(q->graphs.n - 1)))
		return -ENOMEM;
	*name += (uint32_t)n_names;
	return 0;
}

static int sequence_build(struct sequence *q, const struct um_survey_lane *l, size_t n_names)
{
	size_t same;

	q->names = malloc((l->kernels.n + 1) * sizeof *q->names);
	q->ns = malloc((l->kernels.n + 1) * sizeof *q->ns);
	q->keys = malloc((l->kernels.n + 1) * sizeof *q->keys);
	if (!q->names || !q->ns || !q->keys)
		return -ENOMEM;
	for (size_t i = 0; i < l->kernels.n; i += same) {
		const struct um_survey_kernel *k = &l->kernels.at[i];

		q->keys[q->n] = k->key;
		q->names[q->n] = k->name;
		q->ns[q->n] = k->ns;
		for (same = 1; !l->by_time && i + same < l->kernels.n && k[same].key == k->key; same++)
			q->ns[q->n] += k[same].ns;
		if (same > 1 && graph_name(q, k, same, n_names, &q->names[q->n]))
			return -ENOMEM;
		q->n++;
	}
	q->alone = calloc(n_names + q->graphs.n + 1, 1);
	if (!q->alone)
		return -ENOMEM;
	memset(q->alone + n_names, 1, q->graphs.n);
	return 0;
}

static int add_process(struct um_iteration_spans *f, const struct um_survey *s, const struct um_survey_lane *l,
		       const struct sequence *q, const struct um_period *p)
{
	struct um_iteration_spans_process fresh = {.process = l->process,
						   .number = l->process,
						   .device = l->device,
						   .by_time = l->by_time,
						   .kernels = p->kernels,
						   .other = p->other,
						   .covered = p->covered,
						   .trust = p->trust};
	struct um_iteration_spans_process *to;
	const char *first = "";

	if (um_vec_push(&f->processes, fresh))
		return -ENOMEM;
	to = &f->processes.at[f->processes.n - 1];
	if (um_vec_reserve(&to->spans, p->spans.n + 1))
		return -ENOMEM;
	for (size_t i = 0; i < p->spans.n; i++) {
		const struct um_period_span *x = &p->spans.at[i];

		to->spans.at[to->spans.n++] = (struct um_iteration_spans_span){
			q->keys[x->from], q->keys[x->to - 1], x->whole, i && p->spans.at[i - 1].to == x->from};
	}
	if (p->spans.n > 1) {
		uint32_t name = q->names[p->spans.at[1].from];

		first = name < s->names.n ? s->names.at[name].name : "a graph";
	}
	to->first = strdup(first);
	return to->first ? 0 : -ENOMEM;
}

static int find_in(struct um_survey *s, struct um_survey_lane *l, struct um_iteration_spans *f)
{
	struct sequence q = {0};
	struct um_period p = {0};
	int err;

	if (l->unordered)
		qsort(l->kernels.at, l->kernels.n, sizeof *l->kernels.at, by_key);
	err = sequence_build(&q, l, s->names.n);
	um_vec_fini(&l->kernels);
	if (!err)
		err = um_period_find(&p, q.names, q.ns, q.n, q.alone, s->names.n + q.graphs.n);
	if (!err)
		err = add_process(f, s, l, &q, &p);
	um_period_fini(&p);
	sequence_fini(&q);
	return err;
}

/* Is this the device with the most kernel time of its process? */
static int leads(const struct um_survey *s, const struct um_survey_lane *l)
{
	for (const struct um_survey_lane *other = s->lanes.at; other < s->lanes.at + s->lanes.n; other++)
		if (other->process == l->process && (other->ns > l->ns || (other->ns == l->ns && other < l)))
			return 0;
	return 1;
}

int um_survey_find(struct um_survey *s, struct um_iteration_spans *f)
{
	int err;

	memset(f, 0, sizeof *f);
	err = um_survey_choose_range(s, f);
	for (size_t i = 0; i < s->lanes.n && !err && !f->name; i++)
		if (leads(s, &s->lanes.at[i]))
			err = find_in(s, &s->lanes.at[i], f);
	f->skipped = s->skipped;
	return err;
}
