/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/code.h"

#include "inject/driver.h"
#include "inject/settings.h"

#include "kernel/image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define PTX_MOST (64ull << 20) /* bytes of copies at once; the code of other modules stays unknown */

struct module {
	struct module *next; /* loaded before */
	const void *handle;
	enum um_code_kind kind;
	struct um_fat_part code; /* PTX that is not read yet, in `ptx` */
	unsigned char *ptx; /* NULL: there is none, or it was read */
	struct um_image image; /* once it was read */
};

static struct module *modules;
static uint64_t held; /* bytes of PTX */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void drop_ptx(struct module *m)
{
	if (m->ptx)
		held -= m->code.bytes;
	free(m->ptx);
	m->ptx = NULL;
}

/* Modules without PTX are known, too: their kernels may have the names of others. */
static void keep(const void *handle, enum um_code_kind kind, const void *image, size_t bytes)
{
	struct module *m = calloc(1, sizeof *m);

	if (!m)
		return;
	m->handle = handle;
	m->kind = kind;
	if (um_image_code(&m->code, image, bytes) && m->code.bytes)
		m->ptx = malloc(m->code.bytes);
	if (m->ptx)
		m->code.data = memcpy(m->ptx, m->code.data, m->code.bytes);
	pthread_mutex_lock(&lock);
	if (m->ptx)
		held += m->code.bytes;
	if (held > PTX_MOST)
		drop_ptx(m);
	m->next = modules;
	modules = m;
	pthread_mutex_unlock(&lock);
}

void um_code_loaded(void *handle, enum um_code_kind kind, const void *image)
{
	if (!um_settings_reads_code() || !image)
		return;
	image = um_fat_image(image);
	keep(handle, kind, image, um_fat_bytes(image));
}

void um_code_loaded_file(void *handle, enum um_code_kind kind, const char *path)
{
	FILE *f = um_settings_reads_code() && path ? fopen(path, "rbe") : NULL;
	UM_VEC(unsigned char) image = {0};
	size_t got = 1;

	while (f && got && image.n <= PTX_MOST && !um_vec_reserve(&image, 1 << 16)) {
		got = fread(image.at + image.n, 1, 1 << 16, f);
		image.n += got;
	}
	if (f)
		fclose(f);
	if (f && !got)
		keep(handle, kind, image.at, image.n);
	um_vec_fini(&image);
}

void um_code_unloaded(const void *handle)
{
	pthread_mutex_lock(&lock);
	for (struct module **at = &modules; *at;) {
		struct module *m = *at;

		if (m->handle != handle) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		drop_ptx(m);
		um_image_fini(&m->image);
		free(m);
	}
	pthread_mutex_unlock(&lock);
}

static struct um_unpack unpack;

static void find_unpackers(void)
{
	um_dlsym_fn look_up = um_real_dlsym();
	void *zstd = dlopen("libzstd.so.1", RTLD_NOW), *lz4 = dlopen("liblz4.so.1", RTLD_NOW);

	if (zstd && look_up) {
		*(void **)&unpack.zstd = look_up(zstd, "ZSTD_decompress");
		*(void **)&unpack.zstd_failed = look_up(zstd, "ZSTD_isError");
	}
	if (lz4 && look_up)
		*(void **)&unpack.lz4 = look_up(lz4, "LZ4_decompress_safe");
}

/* Is there code to be read? It may then be unpacked. Without the lock: a library that another thread loads may load a
 * module when it begins. */
static int prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint64_t waiting;

	pthread_mutex_lock(&lock);
	waiting = held;
	pthread_mutex_unlock(&lock);
	if (waiting)
		pthread_once(&once, find_unpackers);
	return waiting > 0;
}

/* The kernel in a module, whose code is read at first. `prepared`: as above. Under lock. */
static const struct um_image_kernel *find(struct module *m, const char *name, int prepared)
{
	struct um_image image = {0};

	if (m->ptx && prepared) {
		if (!um_image_code_read(&image, &m->code, &unpack))
			m->image = image;
		drop_ptx(m);
	}
	return um_image_kernel_find(&m->image, name);
}

/* The module or library of a kernel, as the driver says. */
static const void *handle_of(void *function)
{
	void *of = NULL;

	if (um_real.cuFuncGetModule && !um_real.cuFuncGetModule(&of, function))
		return of;
	return um_real.cuKernelGetLibrary && !um_real.cuKernelGetLibrary(&of, function) ? of : NULL;
}

int um_code_written(unsigned char *written, size_t words, void *function, const char *name)
{
	const struct um_image_kernel *k = NULL;
	struct module *m;
	const void *of;
	int prepared;

	if (!um_settings_reads_code())
		return 0;
	prepared = prepare();
	of = handle_of(function);
	pthread_mutex_lock(&lock);
	for (m = modules; m && m->handle != of; m = m->next)
		;
	if (m)
		k = find(m, name, prepared);
	else /* the module that a library was loaded into has a handle of its own */
		for (m = modules; m && !k; m = m->next)
			k = m->kind == UM_CODE_LIBRARY ? find(m, name, prepared) : NULL;
	if (k && um_image_words(k) == words)
		memcpy(written, k->written, words);
	else
		k = NULL;
	pthread_mutex_unlock(&lock);
	return k != NULL;
}
