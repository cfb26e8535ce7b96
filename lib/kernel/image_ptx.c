/* SPDX-License-Identifier: Apache-2.0
 *
 * image_ptx.c - reads the text of PTX modules
 *
 * Reads entries with their parameters and what their code may write through these, and variables.
 */
#include "kernel/image.h"

#include "kernel/ptx.h"
#include "kernel/ptx_text.h"

/* Declaration of a parameter or variable, before its name. */
struct decl {
	unsigned align, size; /* of an element */
	int managed;
	char name[512];
	uint64_t n; /* elements */
};

/* The next word or character; 0 at the end. Longer words are cut. */
static int token(struct um_ptx_text *t, char *out, size_t size)
{
	size_t n = 0;

	um_ptx_space_skip(t);
	if (t->at == t->end)
		return 0;
	do {
		if (n < size - 1)
			out[n++] = *t->at;
		t->at++;
	} while (um_ptx_is_word(out[0]) && t->at < t->end && um_ptx_is_word(*t->at));
	out[n] = 0;
	return 1;
}

static unsigned type_bytes(const char *s)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} wide[] = {{".b128", 16}, {".f16x2", 4}, {".bf16x2", 4}, {".texref", 8}, {".samplerref", 8}, {".surfref", 8}};
	unsigned bits;

	for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
		if (!strcmp(s, wide[i].name))
			return wide[i].bytes;
	if (s[0] != '.' || !s[1] || !strchr("busf", s[1]))
		return 0;
	bits = (unsigned)strtoul(s + (s[1] == 'b' && s[2] == 'f' ? 3 : 2), NULL, 10);
	return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
}

/* Parses a declaration after .param or .global; returns the character that ends it: , ) ; = or 0. */
static char decl_read(struct um_ptx_text *t, struct decl *d)
{
	char s[512];

	*d = (struct decl){.n = 1};
	while (token(t, s, sizeof s)) {
		if (!strcmp(s, ".align") && token(t, s, sizeof s)) {
			d->align = (unsigned)strtoul(s, NULL, 10);
		} else if (!strcmp(s, ".attribute")) {
			while (token(t, s, sizeof s) && s[0] != ')')
				d->managed |= !strcmp(s, ".managed");
		} else if (!strcmp(s, ".v2") || !strcmp(s, ".v4")) {
			d->n *= (unsigned)(s[2] - '0');
		} else if (s[0] == '.' && type_bytes(s)) {
			d->size = type_bytes(s);
		} else if (s[0] == '[') {
			if (!token(t, s, sizeof s))
				break;
			d->n = s[0] == ']' || d->n > UINT32_MAX ? 0 : d->n * strtoul(s, NULL, 10);
		} else if (strchr(",);={", s[0])) {
			return s[0];
		} else if (isalpha((unsigned char)s[0]) || strchr("_$%", s[0])) {
			memcpy(d->name, s, sizeof s); /* the last word; attributes may precede it */
		}
	}
	return 0;
}

/* The entry whose body comes next. */
struct entry {
	int any;
	UM_VEC(struct um_ptx_param) params; /* with names of their own */
};

static void entry_forget(struct entry *e)
{
	for (size_t i = 0; i < e->params.n; i++)
		free((char *)e->params.at[i].name);
	um_vec_clear(&e->params);
	e->any = 0;
}

static int param_add(struct um_image_kernel *k, struct entry *e, const struct decl *d, uint64_t *end)
{
	char *name;

	uint64_t bytes = (uint64_t)d->size * d->n, align = d->align ? d->align : d->size, at;

	if (!bytes || !align || align > 4096 || bytes > UINT16_MAX)
		return -EINVAL;
	at = (*end + align - 1) / align * align;
	*end = at + bytes;
	if (*end > UM_IMAGE_PARAM_MAX)
		return -EINVAL;
	name = strdup(d->name);
	if (!name || um_vec_push(&e->params, ((struct um_ptx_param){name, (uint32_t)at, (uint32_t)bytes}))) {
		free(name);
		return -ENOMEM;
	}
	return um_vec_push(&k->params, ((struct um_image_param){(uint32_t)at, (uint32_t)bytes}));
}

static int entry_read(struct um_image *out, struct entry *e, struct um_ptx_text *t)
{
	struct um_image_kernel k = {0};
	struct um_ptx_text ahead;
	uint64_t end = 0;
	char s[512];
	int err = 0;

	if (!token(t, s, sizeof s) || !um_ptx_is_word(s[0]))
		return -EINVAL;
	k.name = strdup(s);
	if (!k.name || um_vec_push(&out->kernels, k)) {
		free(k.name);
		return -ENOMEM;
	}
	e->any = 1;
	ahead = *t;
	if (!token(&ahead, s, sizeof s) || s[0] != '(')
		return 0; /* no list: no parameters */
	*t = ahead;
	while (!err && token(t, s, sizeof s) && !strcmp(s, ".param")) {
		struct decl d;
		char stop = decl_read(t, &d);

		err = stop == ',' || stop == ')' ? param_add(&out->kernels.at[out->kernels.n - 1], e, &d, &end)
						 : -EINVAL;
		if (stop == ')')
			break;
	}
	return err;
}

static int var_add(struct um_image *out, const struct decl *d)
{
	struct um_image_var v = {NULL, (uint64_t)d->size * d->n, d->managed, NULL};

	if (!v.bytes || !d->name[0])
		return 0; /* external, or without content */
	v.name = strdup(d->name);
	if (!v.name || um_vec_push(&out->vars, v)) {
		free(v.name);
		return -ENOMEM;
	}
	return 0;
}

/* The values after '=': bytes of an array, or one number. */
static int init_read(struct um_image_var *v, const struct decl *d, struct um_ptx_text *t)
{
	char s[512];
	uint64_t at = 0;

	v->init = calloc(1, v->bytes);
	if (!v->init)
		return -ENOMEM;
	while (token(t, s, sizeof s) && s[0] != ';') {
		int bits = s[0] == '0' && s[1] && strchr("fFdD", s[1]); /* of a floating-point number */
		unsigned long long x;

		if (!isdigit((unsigned char)s[0]) || at + d->size > v->bytes || d->size > sizeof x)
			continue;
		x = bits ? strtoull(s + 2, NULL, 16) : strtoull(s, NULL, 0);
		memcpy(v->init + at, &x, d->size);
		at += d->size;
	}
	return 0;
}

static int global_read(struct um_image *out, struct um_ptx_text *t)
{
	size_t before = out->vars.n;
	struct decl d;
	char stop = decl_read(t, &d);
	int err = var_add(out, &d);

	if (err || stop != '=' || out->vars.n == before)
		return err;
	if (out->vars.at[before].bytes > (uint64_t)(t->end - t->at))
		return 0; /* more than a list in this text can fill: left zero */
	return init_read(&out->vars.at[before], &d, t);
}

static struct um_ptx_text body_read(struct um_ptx_text *t)
{
	struct um_ptx_text body = *t;
	int depth = 1;

	for (; depth && t->at < t->end; t->at++)
		depth += (*t->at == '{') - (*t->at == '}');
	body.end = t->at;
	return body;
}

static int code_read(struct um_image_kernel *k, const struct entry *e, struct um_ptx_text body)
{
	k->written = calloc(um_image_words(k) + 1, 1);
	if (!k->written)
		return -ENOMEM;
	return um_ptx_written(k->written, body.at, (size_t)(body.end - body.at), e->params.at, e->params.n);
}

int um_image_ptx(struct um_image *out, const char *text, size_t bytes)
{
	struct um_ptx_text t = {text, text + bytes};
	struct entry e = {0};
	char s[512];
	int version = 0, err = 0;

	while (!err && token(&t, s, sizeof s)) {
		if (!version && strcmp(s, ".version"))
			break; /* the first word of every module */
		version = 1;
		if (!strcmp(s, ".entry") || !strcmp(s, ".func"))
			entry_forget(&e);
		if (!strcmp(s, ".target") && token(&t, s, sizeof s))
			out->sm = !strncmp(s, "sm_", 3) ? atoi(s + 3) : 0;
		else if (!strcmp(s, ".entry"))
			err = entry_read(out, &e, &t);
		else if (!strcmp(s, ".global") || !strcmp(s, ".const"))
			err = global_read(out, &t);
		else if (s[0] == '{') {
			struct um_ptx_text body = body_read(&t);

			if (e.any)
				err = code_read(&out->kernels.at[out->kernels.n - 1], &e, body);
			entry_forget(&e);
		}
	}
	entry_forget(&e);
	um_vec_fini(&e.params);
	return err ? err : version ? 0 : -EINVAL;
}
