/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_program.c - reads a program's use of CUDA, managed memory, the library and NVTX off its file
 *
 * The file is read, not run: its needed libraries, its symbols, and strings that the static runtime, the library and
 * NVTX carry. Libraries that the program loads are not examined. Offsets and sizes in the file are not trusted.
 */
#include "doctor.h"

#include "tool.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
	const char *at;
	size_t n;
};

/* Facts read off the file. */
struct traits {
	char runtime[32]; /* file name of the shared runtime, or empty */
	int static_runtime, driver, library, nvtx;
	int managed_runtime; /* cudaMallocManaged is called, and not only a function of the static runtime */
	int managed_driver;
	int cuda; /* major version; 0: unknown */
	int no_symbols;
};

/* --- the file ----------------------------------------------------------------------------------------------------- */

/* Finds it as execvp would. 0: not found. */
static int find(const char *name, char *path, size_t size)
{
	const char *folder = getenv("PATH"), *end;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return stat(path, &st) == 0 && S_ISREG(st.st_mode);
	}
	for (folder = folder ? folder : "/usr/bin:/bin"; *folder; folder = *end ? end + 1 : end) {
		end = strchrnul(folder, ':');
		snprintf(path, size, "%.*s/%s", end > folder ? (int)(end - folder) : 1, end > folder ? folder : ".",
			 name);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return 1;
	}
	return 0;
}

/* 0 or errno. */
static int image_open(const char *path, struct image *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return errno;
	errno = 0;
	if (!fstat(fd, &st) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		err = errno ? errno : ENOEXEC;
	else
		*out = (struct image){p, (size_t)st.st_size};
	close(fd);
	return err;
}

static int has(const struct image *f, const char *text)
{
	return memmem(f->at, f->n, text, strlen(text)) != NULL;
}

/* Copies `size` bytes of the file. 0: they lie beyond its end. */
static int take(const struct image *f, uint64_t at, void *out, size_t size)
{
	if (at > f->n || size > f->n - at)
		return 0;
	memcpy(out, f->at + at, size);
	return 1;
}

static int section_at(const struct image *f, uint32_t i, Elf64_Shdr *out)
{
	Elf64_Ehdr h;

	return take(f, 0, &h, sizeof h) && i < h.e_shnum && h.e_shentsize == sizeof *out && h.e_shoff <= f->n &&
	       take(f, h.e_shoff + i * (uint64_t)sizeof *out, out, sizeof *out) &&
	       (out->sh_type == SHT_NOBITS || (out->sh_offset <= f->n && out->sh_size <= f->n - out->sh_offset));
}

/* A string of the string section, or "". */
static const char *text_at(const struct image *f, const Elf64_Shdr *strings, uint64_t at)
{
	const char *s;

	if (strings->sh_type != SHT_STRTAB || at >= strings->sh_size)
		return "";
	s = f->at + strings->sh_offset + at;
	return memchr(s, 0, strings->sh_size - at) ? s : "";
}

/* --- what it shows ------------------------------------------------------------------------------------------------ */

static int starts(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static void see_needed(struct traits *t, const char *name)
{
	if (starts(name, "libcudart.so")) {
		snprintf(t->runtime, sizeof t->runtime, "%s", name);
		t->cuda = starts(name, "libcudart.so.") ? atoi(name + strlen("libcudart.so.")) : 0;
	}
	t->driver |= starts(name, "libcuda.so");
	t->library |= starts(name, "libumadvise.so");
	t->nvtx |= starts(name, "libnvToolsExt.so");
}

static void see_symbol(struct traits *t, const char *name, int defined)
{
	int managed = strcmp(name, "cudaMallocManaged") == 0;

	t->static_runtime |= defined && (managed || strcmp(name, "cudaGetErrorName") == 0);
	/* The static runtime defines this function in every program, but its template form is the program's own. */
	t->managed_runtime |= (managed && !defined) || (starts(name, "_Z") && strstr(name, "17cudaMallocManagedI"));
	t->managed_driver |= strcmp(name, "cuMemAllocManaged") == 0 && !defined;
	t->library |= strcmp(name, "umadv_open") == 0;
	t->nvtx |= starts(name, "nvtxRange") || starts(name, "nvtxMark");
}

static void see_section(struct traits *t, const struct image *f, const Elf64_Shdr *s)
{
	Elf64_Shdr strings;
	Elf64_Sym symbol;
	Elf64_Dyn d;

	if (s->sh_type != SHT_DYNAMIC && s->sh_type != SHT_DYNSYM && s->sh_type != SHT_SYMTAB)
		return;
	if (!section_at(f, s->sh_link, &strings))
		return;
	for (uint64_t at = 0; s->sh_type == SHT_DYNAMIC && s->sh_size - at >= sizeof d; at += sizeof d)
		if (take(f, s->sh_offset + at, &d, sizeof d) && d.d_tag == DT_NEEDED)
			see_needed(t, text_at(f, &strings, d.d_un.d_val));
	for (uint64_t at = 0; s->sh_type != SHT_DYNAMIC && s->sh_size - at >= sizeof symbol; at += sizeof symbol)
		if (take(f, s->sh_offset + at, &symbol, sizeof symbol))
			see_symbol(t, text_at(f, &strings, symbol.st_name), symbol.st_shndx != SHN_UNDEF);
	t->no_symbols &= s->sh_type == SHT_DYNAMIC;
}

/* "Cuda compilation tools, release 12.4": a comment in device code that is not compressed. */
static int compiled_by(const struct image *f)
{
	static const char text[] = "Cuda compilation tools, release ";
	const char *at = memmem(f->at, f->n, text, sizeof text - 1);
	size_t left = at ? f->n - (size_t)(at - f->at) - (sizeof text - 1) : 0;
	int n = 0;

	for (size_t i = 0; i < left && i < 3 && at[sizeof text - 1 + i] >= '0' && at[sizeof text - 1 + i] <= '9'; i++)
		n = n * 10 + at[sizeof text - 1 + i] - '0';
	return n;
}

static void look(struct traits *t, const struct image *f)
{
	Elf64_Shdr s;

	t->no_symbols = 1;
	for (uint32_t i = 0; section_at(f, i, &s); i++)
		see_section(t, f, &s);
	if (*t->runtime)
		t->static_runtime = 0;
	else
		t->static_runtime |= has(f, "cudaErrorMissingConfiguration");
	t->driver |= has(f, "libcuda.so.1");
	t->library |= has(f, "UMADVISE_STRATEGY");
	t->nvtx |= has(f, "NVTX_INJECTION64_PATH");
	if (!t->cuda)
		t->cuda = compiled_by(f);
}

/* --- in words ----------------------------------------------------------------------------------------------------- */

static json_t *fact(const char *value, const char *meaning)
{
	return json_pack("{s:s, s:s}", "value", value, "meaning", meaning);
}

static json_t *runtime(const struct traits *t)
{
	char value[64];

	if (*t->runtime) {
		snprintf(value, sizeof value, "shared, %s", t->runtime);
		return fact(value, "the library uses the same one; umadvise dryrun replaces it with its own");
	}
	if (t->static_runtime)
		return fact("static", "the library uses the driver; for umadvise dryrun link with nvcc -cudart shared");
	if (t->no_symbols)
		return fact("unknown", "the file has no symbols");
	if (t->driver)
		return fact("none", "the program calls the driver, and so does the library");
	return fact("none", "the program itself calls no CUDA; libraries that it loads are not examined");
}

static json_t *cuda(const struct traits *t)
{
	char value[16];

	if (!t->cuda)
		return fact("unknown", "the library works with any driver of CUDA 12.0 or later");
	snprintf(value, sizeof value, "%d", t->cuda);
	return fact(value, t->cuda < 12	  ? "too old for the library: build with CUDA 12 or 13"
			   : t->cuda > 12 ? "needs a driver of this version or later; the library can discard memory"
					  : "needs a driver of this version or later; discards need CUDA 13");
}

static json_t *managed(const struct traits *t)
{
	static const char keep[] = "managed memory migrates; umadv_adopt registers it with the library";

	if (t->managed_runtime && t->managed_driver)
		return fact("cudaMallocManaged, cuMemAllocManaged", keep);
	if (t->managed_runtime || t->managed_driver)
		return fact(t->managed_runtime ? "cudaMallocManaged" : "cuMemAllocManaged", keep);
	if (t->static_runtime || t->no_symbols)
		return fact("unknown", t->no_symbols ? "the file has no symbols"
						     : "the static runtime always contains the function");
	if (t->library)
		return fact("by the library", "umadv_alloc allocates managed memory");
	return fact("none", "cudaMalloc's memory does not migrate: allocate with umadv_alloc or cudaMallocManaged");
}

json_t *doctor_program(const char *name, int *calls)
{
	struct traits t = {.cuda = 0};
	struct image f = {NULL, 0};
	char path[4096];
	json_t *found;
	int err;

	if (!find(name, path, sizeof path)) {
		tool_say("doctor", "%s: no such program%s", name, strchr(name, '/') ? "" : " in PATH");
		return NULL;
	}
	err = image_open(path, &f);
	if (err) {
		tool_say("doctor", "%s: %s", path, strerror(err));
		return NULL;
	}
	if (f.n < sizeof(Elf64_Ehdr) || memcmp(f.at, ELFMAG, SELFMAG) != 0 || f.at[EI_CLASS] != ELFCLASS64) {
		tool_say("doctor", "%s: not a 64-bit ELF program%s", path,
			 f.n > 2 && starts(f.at, "#!") ? ": name the program that this script starts" : "");
		munmap((void *)f.at, f.n);
		return NULL;
	}
	look(&t, &f);
	munmap((void *)f.at, f.n);
	*calls = t.library;
	found = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "path", doctor_text(path), "runtime", runtime(&t), "cuda",
			  cuda(&t), "managed", managed(&t), "library",
			  t.library ? fact("yes", "the program calls it")
				    : fact("no", "hints need its calls (umadvise(3)); umadvise report works without "
						 "them"),
			  "nvtx",
			  t.nvtx ? fact("yes", "umadvise report shows the program's own ranges")
				 : fact("no", "a range around each iteration lets umadvise report show iterations"));
	if (!found)
		tool_say("doctor", "out of memory");
	return found;
}
