/* SPDX-License-Identifier: Apache-2.0
 *
 * A statically linked program loads no library, and the loader searches DT_RPATH before LD_LIBRARY_PATH (DT_RUNPATH
 * after it). Only 64-bit programs of this machine are examined.
 */
#include "dryrun.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
	const unsigned char *at;
	size_t n;
};

static int image_open(const char *path, struct image *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0)
		return -1;
	p = fstat(fd, &st) || st.st_size < (off_t)sizeof(Elf64_Ehdr)
		    ? MAP_FAILED
		    : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -1;
	*out = (struct image){p, (size_t)st.st_size};
	return 0;
}

/* Program header i; 0 if there is none or its content lies outside of the file. */
static int header_at(const struct image *f, unsigned i, Elf64_Phdr *out)
{
	Elf64_Ehdr h;
	uint64_t at;

	memcpy(&h, f->at, sizeof h);
	at = h.e_phoff + i * (uint64_t)h.e_phentsize;
	if (i >= h.e_phnum || h.e_phentsize < sizeof *out || h.e_phoff > f->n || at > f->n || f->n - at < sizeof *out)
		return 0;
	memcpy(out, f->at + at, sizeof *out);
	if (out->p_offset > f->n || out->p_filesz > f->n - out->p_offset)
		out->p_type = PT_NULL;
	return 1;
}

/* The first program header of a kind, or 0. */
static int segment(const struct image *f, uint32_t type, Elf64_Phdr *out)
{
	for (unsigned i = 0; header_at(f, i, out); i++)
		if (out->p_type == type)
			return 1;
	return 0;
}

/* Offset of an address of the loaded program in the file; f->n: none. */
static uint64_t offset_of(const struct image *f, uint64_t addr)
{
	Elf64_Phdr p;

	for (unsigned i = 0; header_at(f, i, &p); i++)
		if (p.p_type == PT_LOAD && addr >= p.p_vaddr && addr - p.p_vaddr < p.p_filesz)
			return p.p_offset + (addr - p.p_vaddr);
	return f->n;
}

/* The text of DT_RPATH where there is no DT_RUNPATH, or NULL. */
static const char *rpath(const struct image *f)
{
	uint64_t strings = 0, name = 0, at;
	int has = 0, later = 0;
	Elf64_Phdr p;
	Elf64_Dyn d;

	if (!segment(f, PT_DYNAMIC, &p))
		return NULL;
	for (at = p.p_offset; at + sizeof d <= p.p_offset + p.p_filesz; at += sizeof d) {
		memcpy(&d, f->at + at, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_STRTAB)
			strings = d.d_un.d_ptr;
		later |= d.d_tag == DT_RUNPATH;
		if (d.d_tag == DT_RPATH) {
			has = 1;
			name = d.d_un.d_val;
		}
	}
	at = offset_of(f, strings);
	if (!has || later || name >= f->n - at || !memchr(f->at + at + name, 0, f->n - at - name))
		return NULL;
	return (const char *)f->at + at + name;
}

/* A directory of the path that contains a driver. */
static int other_driver(const char *program, const char *path, char *why, size_t size)
{
	const char *end, *slash = strrchr(program, '/');
	char file[4096];

	for (; *path; path = *end ? end + 1 : end) {
		int own = strncmp(path, "$ORIGIN", 7) == 0, skip = own ? 7 : strncmp(path, "${ORIGIN}", 9) ? 0 : 9;

		end = strchrnul(path, ':');
		snprintf(file, sizeof file, "%.*s%.*s/libcuda.so.1", skip && slash ? (int)(slash - program) : 0,
			 program, (int)(end - path) - skip, path + skip);
		if (access(file, R_OK) == 0) {
			snprintf(why, size, "its RPATH comes before LD_LIBRARY_PATH and has %.500s", file);
			return 1;
		}
	}
	return 0;
}

int dryrun_cut_off(const char *program, char *why, size_t size)
{
	struct image f;
	Elf64_Phdr p;
	int cut = 0;

	if (image_open(program, &f))
		return 0;
	if (memcmp(f.at, ELFMAG, SELFMAG) == 0 && f.at[EI_CLASS] == ELFCLASS64) {
		const char *path = rpath(&f);

		if (!segment(&f, PT_INTERP, &p)) {
			snprintf(why, size, "it is linked statically and loads no library");
			cut = 1;
		} else if (path) {
			cut = other_driver(program, path, why, size);
		}
	}
	munmap((void *)f.at, f.n);
	return cut;
}

int dryrun_is_static(const char *program)
{
	struct image f;
	Elf64_Phdr p;
	int is;

	if (image_open(program, &f))
		return 0;
	is = memcmp(f.at, ELFMAG, SELFMAG) == 0 && f.at[EI_CLASS] == ELFCLASS64 && !segment(&f, PT_INTERP, &p);
	munmap((void *)f.at, f.n);
	return is;
}

int dryrun_loads(const char *program)
{
	struct image f;
	Elf64_Phdr p;
	int loads;

	if (image_open(program, &f))
		return 0;
	loads = memcmp(f.at, ELFMAG, SELFMAG) == 0 && f.at[EI_CLASS] == ELFCLASS64 && segment(&f, PT_INTERP, &p);
	munmap((void *)f.at, f.n);
	return loads;
}
