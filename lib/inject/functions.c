/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/functions.h"

#include "inject/code.h"
#include "inject/driver.h"
#include "inject/settings.h"

#include "base/vec.h"
#include "kernel/signature.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define LISTS 1024u
#define NOT_SUPPORTED 801

static const struct um_function_layout *_Atomic lists[LISTS];
static _Atomic uint64_t modules;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for additions */

typedef UM_VEC(struct um_param_word) words;

/* The words of one parameter. */
static int add_words(words *w, size_t param, size_t offset, size_t bytes)
{
	size_t first = (offset + 7) / 8 * 8;

	for (size_t at = first; at + 8 <= offset + bytes; at += 8) {
		struct um_param_word word = {(uint16_t)param, (uint16_t)(at - offset), (uint16_t)at,
					     UMADV_ACCESS_UPDATE};

		if (um_vec_push(w, word))
			return -ENOMEM;
	}
	return 0;
}

/* Of all parameters. */
struct size {
	size_t params, words;
};

/* 1: the layout is known, 0: it is not; -ENOMEM. A kernel without parameters answers the first one with an error. */
static int ask(words *w, struct size *size, int (*info)(void *, size_t, size_t *, size_t *), void *handle)
{
	size_t offset, bytes, i;
	int err = NOT_SUPPORTED;

	for (i = 0; info && i < UINT16_MAX; i++) {
		err = info(handle, i, &offset, &bytes);
		if (err)
			break;
		if (add_words(w, i, offset, bytes))
			return -ENOMEM;
		size->words = (offset + bytes + 7) / 8;
	}
	size->params = i;
	return i > 0 || err == 1;
}

/* What the code does not write through is only read, and without code, what the name calls const. If that is wrong, the
 * driver withdraws advice that says so, at the price of page faults: results stay the same. */
static void read_only(words *w, const struct size *size, void *handle, const char *name)
{
	size_t room = size->params > size->words ? size->params : size->words;
	unsigned char *mark = um_settings_reads_names() && room ? calloc(room, 1) : NULL;
	int code = mark && um_code_written(mark, size->words, handle, name);

	if (code || (mark && um_signature_constants(mark, size->params, name)))
		for (size_t i = 0; i < w->n; i++)
			if (code ? !mark[w->at[i].offset / 8] : mark[w->at[i].param])
				w->at[i].access = UMADV_ACCESS_READ;
	free(mark);
}

static const char *name_of(void *handle)
{
	const char *name = NULL;

	if (um_real.cuFuncGetName && !um_real.cuFuncGetName(&name, handle) && name)
		return name;
	if (um_real.cuKernelGetName && !um_real.cuKernelGetName(&name, handle) && name)
		return name;
	return "kernel";
}

static int is_wide(const words *w)
{
	for (size_t i = UM_WIDE_WORDS - 1; i < w->n; i++)
		if (w->at[i].param == w->at[i - (UM_WIDE_WORDS - 1)].param)
			return 1;
	return 0;
}

static struct um_function_layout *make(void *handle, uint64_t when)
{
	const char *name = name_of(handle);
	struct um_function_layout *f = NULL;
	words w = {0};
	struct size size = {0};
	size_t bytes;
	int known = ask(&w, &size, um_real.cuFuncGetParamInfo, handle);

	if (known >= 0 && !w.n)
		known |= ask(&w, &size, um_real.cuKernelGetParamInfo, handle);
	bytes = w.n * sizeof *w.at;
	if (known > 0)
		read_only(&w, &size, handle, name);
	if (known >= 0)
		f = calloc(1, sizeof *f + bytes + strlen(name) + 1);
	if (f) {
		f->handle = handle;
		f->modules = when;
		f->known = known;
		f->wide = is_wide(&w);
		f->n = (unsigned)w.n;
		if (w.n)
			memcpy(f->word, w.at, bytes);
		f->name = strcpy((char *)f->word + bytes, name);
	}
	um_vec_fini(&w);
	return f;
}

static const struct um_function_layout *find(const struct um_function_layout *f, const void *handle, uint64_t when)
{
	while (f && (f->handle != handle || f->modules != when))
		f = f->next;
	return f;
}

static __attribute__((noinline)) const struct um_function_layout *add(const struct um_function_layout *_Atomic *list,
								      void *handle, uint64_t when)
{
	struct um_function_layout *made = make(handle, when);
	const struct um_function_layout *f;

	if (!made)
		return NULL;
	pthread_mutex_lock(&lock);
	f = find(atomic_load(list), handle, when);
	if (f) {
		free(made);
	} else {
		made->next = atomic_load(list);
		atomic_store_explicit(list, made, memory_order_release);
		f = made;
	}
	pthread_mutex_unlock(&lock);
	return f;
}

const struct um_function_layout *um_function_find(void *handle)
{
	const struct um_function_layout *_Atomic *list = &lists[((uintptr_t)handle >> 4) % LISTS];
	uint64_t when = atomic_load_explicit(&modules, memory_order_acquire);
	const struct um_function_layout *f = find(atomic_load_explicit(list, memory_order_acquire), handle, when);

	return f ? f : add(list, handle, when);
}

void um_functions_forget(void)
{
	atomic_fetch_add(&modules, 1);
}
