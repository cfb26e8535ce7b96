/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph: nodes are the words of the parameters, then names. An edge leads from what is computed to what it is
 * computed from. What is reached from what is written through is written.
 */
#include "kernel/ptx.h"

#include "base/hash.h"
#include "base/vec.h"
#include "kernel/ptx_text.h"

#define WORD 8u /* bytes */
#define NONE UINT32_MAX

struct name {
	const char *at;
	size_t bytes;
	uint32_t param; /* its number; NONE: a register, or anything else */
	uint32_t node;
};

struct edge {
	uint32_t to, next; /* next edge from the same node; NONE: the last */
};

/* A name in an instruction. */
struct operand {
	uint32_t name;
	unsigned position; /* of the operand, from 0 */
	int is_address; /* in brackets */
	uint64_t offset; /* after the name, in brackets */
};

struct graph {
	const struct um_ptx_param *param;
	UM_VEC(struct name) names;
	UM_VEC(uint32_t) slots; /* names by hash; 0: empty, otherwise the index plus 1 */
	UM_VEC(uint32_t) first; /* the first edge from each node */
	UM_VEC(struct edge) edges;
	UM_VEC(struct operand) operands; /* of the instruction at hand */
	UM_VEC(unsigned char) written;
	UM_VEC(uint32_t) reached; /* whose edges were not followed yet */
	int err;
};

/* --- nodes and edges ---------------------------------------------------------------------------------------------- */

static uint32_t node_new(struct graph *g)
{
	if (um_vec_push(&g->first, NONE) || um_vec_push(&g->written, 0))
		g->err = -ENOMEM;
	return (uint32_t)g->first.n - 1;
}

static void edge_add(struct graph *g, uint32_t from, uint32_t to)
{
	if (g->err || from == to)
		return;
	if (um_vec_push(&g->edges, ((struct edge){to, g->first.at[from]})))
		g->err = -ENOMEM;
	else
		g->first.at[from] = (uint32_t)g->edges.n - 1;
}

static void write_through(struct graph *g, uint32_t node)
{
	if (g->err || g->written.at[node])
		return;
	g->written.at[node] = 1;
	if (um_vec_push(&g->reached, node))
		g->err = -ENOMEM;
}

static void follow(struct graph *g)
{
	while (g->reached.n && !g->err) {
		uint32_t node = g->reached.at[--g->reached.n];

		for (uint32_t e = g->first.at[node]; e != NONE; e = g->edges.at[e].next)
			write_through(g, g->edges.at[e].to);
	}
}

static size_t slot_of(const struct graph *g, const char *at, size_t bytes)
{
	uint64_t hash = um_hash_bytes(at, bytes);
	size_t slot;

	for (slot = (hash ^ hash >> 32) % g->slots.n; g->slots.at[slot]; slot = (slot + 1) % g->slots.n) {
		const struct name *name = &g->names.at[g->slots.at[slot] - 1];

		if (name->bytes == bytes && !memcmp(name->at, at, bytes))
			break;
	}
	return slot;
}

static int slots_grow(struct graph *g)
{
	size_t n = g->slots.n ? 2 * g->slots.n : 256;

	um_vec_fini(&g->slots);
	if (um_vec_fill(&g->slots, n))
		return -ENOMEM;
	for (size_t i = 0; i < g->names.n; i++)
		g->slots.at[slot_of(g, g->names.at[i].at, g->names.at[i].bytes)] = (uint32_t)i + 1;
	return 0;
}

/* The index of the name. */
static uint32_t name_find(struct graph *g, const char *at, size_t bytes)
{
	struct name name = {at, bytes, NONE, NONE};
	size_t slot;

	if (g->err || (2 * g->names.n >= g->slots.n && slots_grow(g))) {
		g->err = -ENOMEM;
		return NONE;
	}
	slot = slot_of(g, at, bytes);
	if (!g->slots.at[slot]) {
		name.node = node_new(g);
		if (um_vec_push(&g->names, name))
			g->err = -ENOMEM;
		g->slots.at[slot] = (uint32_t)g->names.n;
	}
	return g->slots.at[slot] - 1;
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

static struct um_ptx_text name_read(struct um_ptx_text *t)
{
	struct um_ptx_text name = {t->at, t->at};

	while (t->at < t->end && um_ptx_is_word(*t->at))
		t->at++;
	name.end = t->at;
	return name;
}

static int has(struct um_ptx_text op, const char *part)
{
	return memmem(op.at, (size_t)(op.end - op.at), part, strlen(part)) != NULL;
}

/* Is the word before the first dot one of the list, which has a space around each? */
static int is_one_of(struct um_ptx_text op, const char *list)
{
	const char *dot = memchr(op.at, '.', (size_t)(op.end - op.at));
	size_t n = (size_t)((dot ? dot : op.end) - op.at);

	for (const char *at = list; (at = strchr(at, ' ')) && at[1]; at++)
		if (!strncmp(at + 1, op.at, n) && at[1 + n] == ' ')
			return 1;
	return 0;
}

/* The number after a name in brackets, as in [name+8] and [name+0x8]. Others are 0. */
static uint64_t offset_read(struct um_ptx_text *t)
{
	struct um_ptx_text number;
	unsigned base = 10;
	uint64_t n = 0;

	um_ptx_space_skip(t);
	if (t->at == t->end || *t->at != '+')
		return 0;
	t->at++;
	um_ptx_space_skip(t);
	for (number = name_read(t); number.at < number.end; number.at++) {
		unsigned digit = (unsigned char)*number.at;

		if (digit == 'x')
			base = 16;
		else
			n = n * base + (digit & 15) + (digit > '9' ? 9 : 0);
	}
	return n;
}

/* Reads the operands up to the semicolon. */
static void operands_read(struct graph *g, struct um_ptx_text *t)
{
	unsigned position = 0, depth = 0;
	int in_brackets = 0;

	um_vec_clear(&g->operands);
	for (um_ptx_space_skip(t); t->at < t->end && *t->at != ';' && !g->err; um_ptx_space_skip(t)) {
		char c = *t->at;

		if (isdigit((unsigned char)c)) {
			name_read(t); /* a number */
		} else if (um_ptx_is_word(c)) {
			struct um_ptx_text name = name_read(t);
			struct operand o = {.position = position, .is_address = in_brackets};

			o.name = name_find(g, name.at, (size_t)(name.end - name.at));
			o.offset = in_brackets ? offset_read(t) : 0;
			if (um_vec_push(&g->operands, o))
				g->err = -ENOMEM;
		} else {
			in_brackets += (c == '[') - (c == ']');
			depth += (c == '{' || c == '[' || c == '(');
			depth -= depth && (c == '}' || c == ']' || c == ')');
			position += c == ',' && !depth;
			t->at++;
		}
	}
	if (t->at < t->end)
		t->at++;
}

/* Bytes that a load with this operation reads. */
static uint64_t loaded(struct um_ptx_text op)
{
	static const char *const wide[] = {"8", "16", "32", "64", "128"};
	uint64_t bytes = WORD, n = has(op, ".v2") ? 2 : has(op, ".v4") ? 4 : has(op, ".v8") ? 8 : 1;

	for (unsigned i = 0; i < sizeof wide / sizeof *wide; i++) {
		size_t k = strlen(wide[i]);

		if ((size_t)(op.end - op.at) > k && !memcmp(op.end - k, wide[i], k) &&
		    isalpha((unsigned char)op.end[-(long)k - 1]))
			bytes = 1u << i;
	}
	return bytes * n;
}

static uint32_t node_of(const struct graph *g, const struct operand *o)
{
	return g->names.at[o->name].node;
}

/* All words of a parameter, for good: where they are loaded does not matter any more. */
static void write_param(struct graph *g, struct name *name)
{
	const struct um_ptx_param *p = &g->param[name->param];

	name->param = NONE;
	for (uint32_t w = p->offset / WORD; w < (p->offset + p->bytes + WORD - 1) / WORD; w++)
		write_through(g, w);
}

/* A load from a parameter: what it loads is the words. */
static void load_param(struct graph *g, struct um_ptx_text op, const struct operand *from)
{
	const struct um_ptx_param *p = &g->param[g->names.at[from->name].param];
	uint64_t at = from->offset, end = at + loaded(op);

	if (at > p->bytes || end > p->bytes)
		return; /* no valid code */
	for (uint64_t w = (p->offset + at) / WORD; w < (p->offset + end + WORD - 1) / WORD; w++)
		for (size_t i = 0; i < g->operands.n; i++)
			if (!g->operands.at[i].is_address)
				edge_add(g, node_of(g, &g->operands.at[i]), (uint32_t)w);
}

/* The first operand is computed from the others. */
static void compute(struct graph *g)
{
	uint32_t all = node_new(g);

	for (size_t i = 0; i < g->operands.n && !g->err; i++) {
		const struct operand *o = &g->operands.at[i];

		if (o->position)
			edge_add(g, all, node_of(g, o));
		else
			edge_add(g, node_of(g, o), all);
	}
}

enum effect {
	READS, /* and computes no address */
	COMPUTES,
	WRITES, /* through its addresses, or passes on its operands */
	WRITES_ELSEWHERE, /* to memory that is no parameter's */
};

static enum effect effect_of(struct um_ptx_text op, int has_address)
{
	int elsewhere = !has(op, ".global") && (has(op, ".shared") || has(op, ".local") || has(op, ".param"));

	if (is_one_of(op, " ld ldu ldmatrix tex tld4 txq suld prefetch prefetchu isspacep set setp bra brx bar barrier "
			  "membar fence ret exit trap nanosleep applypriority createpolicy griddepcontrol elect "
			  "activemask vote match setmaxnreg pmevent "))
		return READS;
	if (is_one_of(op, " st atom red stmatrix mbarrier "))
		return elsewhere ? WRITES_ELSEWHERE : WRITES;
	if (is_one_of(op, " cp ") && !has(op, ".reduce") && !has(op, ".global.shared"))
		return has(op, ".shared") || has(op, ".prefetch") ? READS : WRITES;
	if (is_one_of(op, " wmma multimem tcgen05 ") && (has(op, ".load") || has(op, ".ld")))
		return READS;
	return has_address || is_one_of(op, " cp call wmma multimem ") ? WRITES : COMPUTES;
}

static void instruct(struct graph *g, struct um_ptx_text op)
{
	const struct operand *param = NULL;
	int has_address = 0;
	enum effect effect;

	for (size_t i = 0; i < g->operands.n; i++) {
		const struct operand *o = &g->operands.at[i];
		uint32_t p = g->names.at[o->name].param;

		has_address |= o->is_address;
		if (p != NONE && o->is_address && is_one_of(op, " ld "))
			param = o;
		else if (p != NONE)
			write_param(g, &g->names.at[o->name]);
	}
	if (param && g->names.at[param->name].param != NONE) {
		load_param(g, op, param);
		return;
	}
	effect = effect_of(op, has_address);
	if (effect == COMPUTES && !has(op, "wmma"))
		compute(g);
	for (size_t i = 0; i < g->operands.n && (effect == WRITES || effect == WRITES_ELSEWHERE); i++) {
		const struct operand *o = &g->operands.at[i];

		if ((effect == WRITES || !o->is_address) && (o->position || !is_one_of(op, " atom ")))
			write_through(g, node_of(g, o));
	}
}

static int is_directive(struct um_ptx_text op, const char *name)
{
	return (size_t)(op.end - op.at) == strlen(name) && !memcmp(op.at, name, strlen(name));
}

static void statement_read(struct graph *g, struct um_ptx_text *t)
{
	struct um_ptx_text op;

	if (!um_ptx_is_word(*t->at) && *t->at != '@') {
		t->at++; /* a brace, or nothing that is known */
		return;
	}
	if (*t->at == '@') { /* a condition */
		while (t->at < t->end && !um_ptx_is_word(*t->at))
			t->at++;
		name_read(t);
		um_ptx_space_skip(t);
	}
	op = name_read(t);
	um_ptx_space_skip(t);
	if (t->at < t->end && *t->at == ':') { /* a label */
		t->at++;
	} else if (op.at < op.end && *op.at == '.') {
		char stop = is_directive(op, ".loc") || is_directive(op, ".file") ? '\n' : ';';

		t->at = memchr(op.end, stop, (size_t)(t->end - op.end));
		t->at = t->at ? t->at + 1 : t->end;
	} else {
		operands_read(g, t);
		if (!g->err)
			instruct(g, op);
	}
}

int um_ptx_written(unsigned char *written, const char *body, size_t bytes, const struct um_ptx_param *param, size_t n)
{
	struct graph g = {.param = param};
	struct um_ptx_text t = {body, body + bytes};
	uint32_t words = n ? (param[n - 1].offset + param[n - 1].bytes + WORD - 1) / WORD : 0;

	if (um_vec_fill(&g.written, words) || um_vec_fill(&g.first, words))
		g.err = -ENOMEM;
	for (uint32_t w = 0; w < words && !g.err; w++)
		g.first.at[w] = NONE;
	for (uint32_t i = 0; i < n && !g.err; i++) {
		uint32_t name = name_find(&g, param[i].name, strlen(param[i].name));

		if (!g.err)
			g.names.at[name].param = i;
	}
	for (um_ptx_space_skip(&t); t.at < t.end && !g.err; um_ptx_space_skip(&t))
		statement_read(&g, &t);
	follow(&g);
	for (uint32_t w = 0; w < words && !g.err; w++)
		written[w] |= g.written.at[w];
	um_vec_fini(&g.names);
	um_vec_fini(&g.slots);
	um_vec_fini(&g.first);
	um_vec_fini(&g.edges);
	um_vec_fini(&g.operands);
	um_vec_fini(&g.written);
	um_vec_fini(&g.reached);
	return g.err;
}
