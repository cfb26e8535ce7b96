/* SPDX-License-Identifier: Apache-2.0
 *
 * module.c - cuModule and cuLibrary: loaded device images
 *
 * Modules and libraries are the same here: a parsed image, its kernels, and memory for its variables. All handles of
 * one are the same address; so are a kernel's as a CUkernel and as a CUfunction.
 */
#include "standin/module.h"

#include <lz4.h>
#include <stdio.h>
#include <zstd.h>

static const struct um_unpack unpack = {LZ4_decompress_safe, ZSTD_decompress, ZSTD_isError};
static struct um_module *modules; /* under lock */

/* --- loading ------------------------------------------------------------------------------------------------------ */

static void module_free(struct um_module *m)
{
	struct um_gpu *gpu = um_standin()->gpu;

	for (int d = 0; d < UM_SIM_DEVICES_MAX; d++)
		um_var_room_give(&m->room[d]);
	if (m->managed)
		gpu->api->cudaFree(gpu, m->managed);
	um_image_fini(&m->image);
	free(m->var);
	free(m->function);
	free(m);
}

#define VAR_ALIGN 256u

/* Variables of one kind share memory, with their initial values: managed ones once, the others on each device that uses
 * one. */
static int vars_make(struct um_module *m, int managed)
{
	const struct um_standin *s = um_standin();
	struct um_var_room *room = &m->room[s->ordinal];
	uint64_t bytes = 0;
	char *at;
	int err;

	if (managed ? m->managed != NULL : room->block != NULL)
		return UM_CUDA_OK;
	for (size_t i = 0; i < m->n_vars; i++)
		if (m->image.vars.at[i].managed == managed) {
			m->var[i] = bytes;
			bytes += (m->image.vars.at[i].bytes + VAR_ALIGN - 1) / VAR_ALIGN * VAR_ALIGN;
		}
	if (!bytes)
		return UM_CUDA_OK;
	err = managed ? s->gpu->api->cudaMallocManaged(s->gpu, &m->managed, bytes, 1)
		      : um_var_room_take(room, s->gpu, bytes);
	if (err)
		return err;
	at = managed ? m->managed : room->at;
	for (size_t i = 0; i < m->n_vars; i++) {
		const struct um_image_var *v = &m->image.vars.at[i];

		if (v->managed == managed && v->init)
			memcpy(at + m->var[i], v->init, v->bytes);
	}
	return UM_CUDA_OK;
}

static int module_fill(struct um_module *m)
{
	size_t n = m->image.kernels.n;
	int err;

	m->function = calloc(n + 1, sizeof *m->function);
	m->var = calloc(m->image.vars.n + 1, sizeof *m->var);
	if (!m->function || !m->var)
		return UM_CUDA_NO_MEMORY;
	m->n_functions = n;
	for (size_t i = 0; i < n; i++) {
		const struct um_image_kernel *k = &m->image.kernels.at[i];
		const struct um_image_param *last = k->params.n ? &k->params.at[k->params.n - 1] : NULL;

		m->function[i] = (struct um_function){.kernel = k, .module = m, .shared = 49152};
		m->function[i].bytes = last ? last->offset + last->bytes : 0;
	}
	m->n_vars = m->image.vars.n;
	err = vars_make(m, 0);
	return err ? err : vars_make(m, 1);
}

static int load_image(const void *data, size_t bytes, struct um_module **out)
{
	struct um_module *m;
	int err;

	um_standin_on(NULL);
	if (!um_standin())
		return UM_CU_NOT_INITIALIZED;
	err = um_sim_module(um_standin()->gpu, "cuModuleLoadData");
	if (err)
		return err;
	m = calloc(1, sizeof *m);
	if (!m)
		return UM_CUDA_NO_MEMORY;
	err = um_image_read(&m->image, data, bytes, um_standin_sm(), &unpack);
	if (err) {
		free(m);
		return err == -ENOMEM ? UM_CUDA_NO_MEMORY : UM_CU_INVALID_IMAGE;
	}
	err = module_fill(m);
	if (err) {
		module_free(m);
		return err;
	}
	um_standin_lock();
	m->next = modules;
	modules = m;
	um_standin_unlock();
	*out = m;
	return UM_CUDA_OK;
}

static int load(const void *image, struct um_module **out)
{
	if (!image || !out)
		return UM_CUDA_INVALID_VALUE;
	image = um_fat_image(image);
	return load_image(image, um_fat_bytes(image), out);
}

static int load_file(const char *path, struct um_module **out)
{
	UM_VEC(char) text = {0};
	FILE *f = path ? fopen(path, "rbe") : NULL;
	int err = f ? UM_CUDA_OK : UM_CU_FILE_NOT_FOUND;
	size_t got;

	while (!err) {
		if (um_vec_reserve(&text, 1 << 16)) {
			err = UM_CUDA_NO_MEMORY;
			break;
		}
		got = fread(text.at + text.n, 1, 1 << 16, f);
		if (!got)
			break;
		text.n += got;
	}
	if (f)
		fclose(f);
	if (!err)
		err = load_image(text.at, text.n, out);
	um_vec_fini(&text);
	return err;
}

/* NULL unless it is loaded. */
static struct um_module *module_at(void *handle)
{
	struct um_module *m;

	um_standin_lock();
	for (m = modules; m && m != handle; m = m->next)
		;
	um_standin_unlock();
	return m;
}

static int unload(void *handle)
{
	struct um_module **at;
	int err;

	if (!module_at(handle))
		return UM_CU_INVALID_HANDLE;
	um_standin_on(NULL);
	err = um_sim_module(um_standin()->gpu, "cuModuleUnload");
	for (int d = 0; d < um_standin_devices() && !err; d++)
		err = um_sim_sync(um_standin_device(d)->gpu); /* its kernels may still run */
	um_standin_lock();
	for (at = &modules; *at && *at != handle; at = &(*at)->next)
		;
	if (*at)
		*at = (*at)->next;
	um_standin_unlock();
	module_free(handle);
	return err;
}

UM_EXPORT int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image)
{
	int err = um_standin_fail("cuModuleLoadData");

	return err ? err : load(image, (struct um_module **)module);
}

/* Options of the JIT compiler are ignored. */
UM_EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values);
int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
	(void)n;
	(void)options;
	(void)values;
	return cuModuleLoadData(module, image);
}

UM_EXPORT int cuModuleLoadFatBinary(void **module, const void *image);
int cuModuleLoadFatBinary(void **module, const void *image)
{
	return cuModuleLoadData(module, image);
}

UM_EXPORT int cuModuleLoad(void **module, const char *path);
int cuModuleLoad(void **module, const char *path)
{
	return module ? load_file(path, (struct um_module **)module) : UM_CUDA_INVALID_VALUE;
}

UM_EXPORT int cuModuleUnload(void *module);
int cuModuleUnload(void *module)
{
	return unload(module);
}

UM_EXPORT int cuModuleGetLoadingMode(int *mode);
int cuModuleGetLoadingMode(int *mode)
{
	const char *s = secure_getenv("CUDA_MODULE_LOADING");

	if (!mode)
		return UM_CUDA_INVALID_VALUE;
	*mode = s && !strcmp(s, "EAGER") ? 1 : 2; /* lazy; without effect here */
	return UM_CUDA_OK;
}

UM_EXPORT int cuLibraryLoadData(void **library, const void *image, int *jit, void **jit_values, unsigned n_jit,
				int *options, void **values, unsigned n);
int cuLibraryLoadData(void **library, const void *image, int *jit, void **jit_values, unsigned n_jit, int *options,
		      void **values, unsigned n)
{
	int err = um_standin_fail("cuLibraryLoadData");

	(void)jit;
	(void)jit_values;
	(void)n_jit;
	(void)options;
	(void)values;
	(void)n;
	return err ? err : load(image, (struct um_module **)library);
}

UM_EXPORT int cuLibraryLoadFromFile(void **library, const char *path, int *jit, void **jit_values, unsigned n_jit,
				    int *options, void **values, unsigned n);
int cuLibraryLoadFromFile(void **library, const char *path, int *jit, void **jit_values, unsigned n_jit, int *options,
			  void **values, unsigned n)
{
	(void)jit;
	(void)jit_values;
	(void)n_jit;
	(void)options;
	(void)values;
	(void)n;
	return library ? load_file(path, (struct um_module **)library) : UM_CUDA_INVALID_VALUE;
}

UM_EXPORT int cuLibraryUnload(void *library);
int cuLibraryUnload(void *library)
{
	return unload(library);
}

UM_EXPORT int cuLibraryGetModule(void **module, void *library);
int cuLibraryGetModule(void **module, void *library)
{
	if (!module_at(library) || !module)
		return UM_CU_INVALID_HANDLE;
	*module = library;
	return UM_CUDA_OK;
}

/* --- what is in one ----------------------------------------------------------------------------------------------- */

static int function_find(void **out, void *module, const char *name)
{
	struct um_module *m = module_at(module);

	if (!m)
		return UM_CU_INVALID_HANDLE;
	if (!out || !name || !*name)
		return UM_CUDA_INVALID_VALUE;
	for (size_t i = 0; i < m->n_functions; i++)
		if (!strcmp(m->function[i].kernel->name, name)) {
			*out = &m->function[i];
			return UM_CUDA_OK;
		}
	return UM_CU_NOT_FOUND;
}

static int var_find(void **at, size_t *bytes, void *module, const char *name, int managed)
{
	struct um_module *m = module_at(module);

	if (!m)
		return UM_CU_INVALID_HANDLE;
	if (!name)
		return UM_CUDA_INVALID_VALUE;
	um_standin_on(NULL);
	for (size_t i = 0; i < m->n_vars; i++) {
		const struct um_image_var *v = &m->image.vars.at[i];
		int err = UM_CUDA_OK;

		if (strcmp(v->name, name) || (managed && !v->managed))
			continue;
		if (at && !v->managed)
			err = vars_make(m, 0);
		if (err)
			return err;
		if (at)
			*at = (char *)(v->managed ? m->managed : m->room[um_standin()->ordinal].at) + m->var[i];
		if (bytes)
			*bytes = v->bytes;
		return UM_CUDA_OK;
	}
	return UM_CU_NOT_FOUND;
}

UM_EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name)
{
	int err = um_standin_fail("cuModuleGetFunction");

	return err ? err : function_find(function, module, name);
}

UM_EXPORT int cuModuleGetFunctionCount(unsigned *count, void *module);
int cuModuleGetFunctionCount(unsigned *count, void *module)
{
	struct um_module *m = module_at(module);

	if (!m || !count)
		return UM_CU_INVALID_HANDLE;
	*count = (unsigned)m->n_functions;
	return UM_CUDA_OK;
}

UM_EXPORT int cuModuleEnumerateFunctions(void **functions, unsigned n, void *module);
int cuModuleEnumerateFunctions(void **functions, unsigned n, void *module)
{
	struct um_module *m = module_at(module);

	if (!m || !functions)
		return UM_CU_INVALID_HANDLE;
	for (unsigned i = 0; i < n && i < m->n_functions; i++)
		functions[i] = &m->function[i];
	return UM_CUDA_OK;
}

UM_EXPORT int cuModuleGetGlobal_v2(void **at, size_t *bytes, void *module, const char *name);
int cuModuleGetGlobal_v2(void **at, size_t *bytes, void *module, const char *name)
{
	return var_find(at, bytes, module, name, 0);
}

UM_EXPORT int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
	int err = um_standin_fail("cuLibraryGetKernel");

	return err ? err : function_find(kernel, library, name);
}

UM_EXPORT int cuLibraryGetGlobal(void **at, size_t *bytes, void *library, const char *name);
int cuLibraryGetGlobal(void **at, size_t *bytes, void *library, const char *name)
{
	return var_find(at, bytes, library, name, 0);
}

UM_EXPORT int cuLibraryGetManaged(void **at, size_t *bytes, void *library, const char *name);
int cuLibraryGetManaged(void **at, size_t *bytes, void *library, const char *name)
{
	return var_find(at, bytes, library, name, 1);
}

const struct um_entry um_module_entries[] = {
	UM_ENTRY(cuModuleLoad, 2000, cuModuleLoad),
	UM_ENTRY(cuModuleLoadData, 2000, cuModuleLoadData),
	UM_ENTRY(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx),
	UM_ENTRY(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary),
	UM_ENTRY(cuModuleUnload, 2000, cuModuleUnload),
	UM_ENTRY(cuModuleGetLoadingMode, 11070, cuModuleGetLoadingMode),
	UM_ENTRY(cuModuleGetFunction, 2000, cuModuleGetFunction),
	UM_ENTRY(cuModuleGetFunctionCount, 12040, cuModuleGetFunctionCount),
	UM_ENTRY(cuModuleEnumerateFunctions, 12040, cuModuleEnumerateFunctions),
	UM_ENTRY(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2),
	UM_ENTRY(cuLibraryLoadData, 12000, cuLibraryLoadData),
	UM_ENTRY(cuLibraryLoadFromFile, 12000, cuLibraryLoadFromFile),
	UM_ENTRY(cuLibraryUnload, 12000, cuLibraryUnload),
	UM_ENTRY(cuLibraryGetModule, 12000, cuLibraryGetModule),
	UM_ENTRY(cuLibraryGetKernel, 12000, cuLibraryGetKernel),
	UM_ENTRY(cuLibraryGetKernelCount, 12040, cuModuleGetFunctionCount),
	UM_ENTRY(cuLibraryEnumerateKernels, 12040, cuModuleEnumerateFunctions),
	UM_ENTRY(cuLibraryGetGlobal, 12000, cuLibraryGetGlobal),
	UM_ENTRY(cuLibraryGetManaged, 12000, cuLibraryGetManaged),
	{NULL, 0, NULL, NULL},
};
