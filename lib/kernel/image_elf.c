/* SPDX-License-Identifier: Apache-2.0
 *
 * image_elf.c - reads ELF device images
 *
 * Kernels are symbols that are marked as entries; a section .nv.info.NAME lists attributes of a kernel, including its
 * parameters; variables are objects in the sections for globals and constants.
 */
#include "kernel/image.h"

#include <elf.h>

#define EM_GPU 190
#define OTHER_ENTRY 0x10 /* st_other of a kernel */
#define OTHER_MANAGED 0x04
#define ATTR_PARAM 0x17 /* index, ordinal, offset, and the size in the high bits of a word */
#define ATTR_PARAM_WIDE 0x45 /* the same with a 16-bit size of its own */
#define FORM_SIZED 4 /* an attribute with a length, followed by so many bytes */
#define COPIES 4 /* bytes copied for each byte of the image, at most: symbols may overlap, but not all of them do */

struct elf {
	const unsigned char *data;
	size_t bytes;
	const Elf64_Shdr *section; /* a copy, aligned */
	unsigned n;
	unsigned names;
	uint64_t left; /* bytes that may still be copied */
};

/* Limits copies: a small image whose symbols share names and values would need unbounded memory. */
static int may_copy(struct elf *e, uint64_t bytes)
{
	if (bytes > e->left)
		return -EINVAL;
	e->left -= bytes;
	return 0;
}

/* The string at `off` of a section, or NULL: not terminated. */
static const char *text_at(const struct elf *e, unsigned section, uint64_t off)
{
	const Elf64_Shdr *s;

	if (section >= e->n)
		return NULL;
	s = &e->section[section];
	if (s->sh_type == SHT_NOBITS || off >= s->sh_size)
		return NULL;
	return memchr(e->data + s->sh_offset + off, 0, s->sh_size - off) ? (const char *)e->data + s->sh_offset + off
									 : NULL;
}

/* Sections with content must lie inside the file. */
static int sections_open(struct elf *e, const unsigned char *data, size_t bytes)
{
	Elf64_Ehdr h;
	Elf64_Shdr *s;

	if (bytes < sizeof h)
		return -EINVAL;
	memcpy(&h, data, sizeof h);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != EM_GPU || h.e_shentsize != sizeof *s ||
	    h.e_shoff > bytes || h.e_shnum > (bytes - h.e_shoff) / sizeof *s || !h.e_shnum)
		return -EINVAL;
	s = malloc(h.e_shnum * sizeof *s);
	if (!s)
		return -ENOMEM;
	memcpy(s, data + h.e_shoff, h.e_shnum * sizeof *s);
	for (unsigned i = 0; i < h.e_shnum; i++)
		if (s[i].sh_type != SHT_NOBITS && (s[i].sh_offset > bytes || s[i].sh_size > bytes - s[i].sh_offset)) {
			free(s);
			return -EINVAL;
		}
	*e = (struct elf){data, bytes, s, h.e_shnum, h.e_shstrndx, COPIES * (uint64_t)bytes};
	return 0;
}

static int param_put(struct um_image_kernel *k, unsigned ordinal, struct um_image_param p)
{
	while (k->params.n <= ordinal)
		if (um_vec_push(&k->params, ((struct um_image_param){0, 0})))
			return -ENOMEM;
	k->params.at[ordinal] = p;
	return 0;
}

static int attributes_read(struct um_image_kernel *k, const unsigned char *at, size_t bytes)
{
	while (bytes >= 4) {
		unsigned form = at[0], id = at[1], n = at[2] | (unsigned)at[3] << 8;
		uint16_t ordinal, offset, wide;
		uint32_t word;
		int err;

		at += 4;
		bytes -= 4;
		if (form != FORM_SIZED)
			continue;
		if (n > bytes)
			return -EINVAL;
		if ((id == ATTR_PARAM || id == ATTR_PARAM_WIDE) && n >= 12) {
			memcpy(&ordinal, at + 4, 2);
			memcpy(&offset, at + 6, 2);
			memcpy(&word, at + 8, 4);
			memcpy(&wide, at + 8, 2);
			err = param_put(k, ordinal,
					(struct um_image_param){offset, id == ATTR_PARAM ? word >> 18 : wide});
			if (err)
				return err;
		}
		at += n;
		bytes -= n;
	}
	return 0;
}

/* Gaps in the list, overlapping parameters and too many bytes are damage. */
static int params_check(const struct um_image_kernel *k)
{
	uint32_t end = 0;

	for (size_t i = 0; i < k->params.n; i++) {
		const struct um_image_param *p = &k->params.at[i];

		if (!p->bytes || p->offset < end)
			return -EINVAL;
		end = p->offset + p->bytes;
		if (end > UM_IMAGE_PARAM_MAX)
			return -EINVAL;
	}
	return 0;
}

static int kernel_add(struct um_image *out, struct elf *e, const char *name)
{
	static const char prefix[] = ".nv.info.";
	struct um_image_kernel k = {0};
	int err = may_copy(e, strlen(name) + 1);

	if (err)
		return err;
	k.name = strdup(name);
	if (!k.name || um_vec_reserve(&out->kernels, 1)) {
		free(k.name);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < e->n && !err; i++) {
		const char *s = text_at(e, e->names, e->section[i].sh_name);

		if (s && e->section[i].sh_type != SHT_NOBITS && !strncmp(s, prefix, sizeof prefix - 1) &&
		    !strcmp(s + sizeof prefix - 1, name))
			err = attributes_read(&k, e->data + e->section[i].sh_offset, e->section[i].sh_size);
	}
	out->kernels.at[out->kernels.n++] = k;
	err = err ? err : may_copy(e, k.params.n * sizeof *k.params.at);
	return err ? err : params_check(&k);
}

static int var_add(struct um_image *out, struct elf *e, const char *name, const Elf64_Sym *sym)
{
	const Elf64_Shdr *s = &e->section[sym->st_shndx];
	struct um_image_var v = {NULL, sym->st_size, (sym->st_other & OTHER_MANAGED) != 0, NULL};

	if (sym->st_value > s->sh_size || sym->st_size > s->sh_size - sym->st_value || may_copy(e, strlen(name) + 1) ||
	    (s->sh_type != SHT_NOBITS && may_copy(e, v.bytes)))
		return -EINVAL;
	if (s->sh_type != SHT_NOBITS) {
		v.init = malloc(v.bytes);
		if (!v.init)
			return -ENOMEM;
		memcpy(v.init, e->data + s->sh_offset + sym->st_value, v.bytes);
	}
	v.name = strdup(name);
	if (!v.name || um_vec_push(&out->vars, v)) {
		free(v.name);
		free(v.init);
		return -ENOMEM;
	}
	return 0;
}

static int holds_vars(const char *section)
{
	static const char constant[] = ".nv.constant3";

	return !strncmp(section, ".nv.global", 10) || !strcmp(section, constant);
}

static int symbol_read(struct um_image *out, struct elf *e, unsigned strings, const Elf64_Sym *sym)
{
	const char *name = text_at(e, strings, sym->st_name), *section;

	if (!name || !*name || !sym->st_shndx || sym->st_shndx >= e->n)
		return 0;
	if (ELF64_ST_TYPE(sym->st_info) == STT_FUNC)
		return sym->st_other & OTHER_ENTRY ? kernel_add(out, e, name) : 0;
	section = text_at(e, e->names, e->section[sym->st_shndx].sh_name);
	if (ELF64_ST_TYPE(sym->st_info) != STT_OBJECT || !sym->st_size || !section || !holds_vars(section))
		return 0;
	return var_add(out, e, name, sym);
}

int um_image_elf(struct um_image *out, const unsigned char *data, size_t bytes)
{
	struct elf e;
	int err = sections_open(&e, data, bytes);

	if (err)
		return err;
	for (unsigned i = 0, tables = 0; i < e.n && !err; i++) {
		if (e.section[i].sh_type != SHT_SYMTAB)
			continue;
		if (tables++) { /* the format has a size */
			err = -EINVAL;
			break;
		}
		for (uint64_t k = 0; k < e.section[i].sh_size / sizeof(Elf64_Sym) && !err; k++) {
			Elf64_Sym sym;

			memcpy(&sym, data + e.section[i].sh_offset + k * sizeof sym, sizeof sym);
			err = symbol_read(out, &e, e.section[i].sh_link, &sym);
		}
	}
	free((void *)e.section);
	return err;
}
