/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_module.c - modules and libraries that the program loads and unloads
 */
#include "inject/code.h"
#include "inject/driver.h"
#include "inject/functions.h"

static int loaded(int err, void *const *handle, enum um_code_kind kind, const void *image)
{
	if (!err && handle)
		um_code_loaded(*handle, kind, image);
	return err;
}

static int loaded_file(int err, void *const *handle, enum um_code_kind kind, const char *path)
{
	if (!err && handle)
		um_code_loaded_file(*handle, kind, path);
	return err;
}

static void unloads(const void *handle)
{
	um_functions_forget();
	um_code_unloaded(handle);
}

int cuModuleLoad(void **module, const char *path)
{
	return loaded_file(UM_PASS(cuModuleLoad, (module, path)), module, UM_CODE_MODULE, path);
}

int cuModuleLoadData(void **module, const void *image)
{
	return loaded(UM_PASS(cuModuleLoadData, (module, image)), module, UM_CODE_MODULE, image);
}

int cuModuleLoadDataEx(void **module, const void *image, unsigned n, int *options, void **values)
{
	return loaded(UM_PASS(cuModuleLoadDataEx, (module, image, n, options, values)), module, UM_CODE_MODULE, image);
}

int cuModuleLoadFatBinary(void **module, const void *image)
{
	return loaded(UM_PASS(cuModuleLoadFatBinary, (module, image)), module, UM_CODE_MODULE, image);
}

int cuModuleUnload(void *module)
{
	unloads(module);
	return UM_PASS(cuModuleUnload, (module));
}

int cuLibraryLoadData(void **library, const void *image, int *jit, void **jit_values, unsigned n_jit, int *options,
		      void **values, unsigned n)
{
	int err = UM_PASS(cuLibraryLoadData, (library, image, jit, jit_values, n_jit, options, values, n));

	return loaded(err, library, UM_CODE_LIBRARY, image);
}

int cuLibraryLoadFromFile(void **library, const char *path, int *jit, void **jit_values, unsigned n_jit, int *options,
			  void **values, unsigned n)
{
	int err = UM_PASS(cuLibraryLoadFromFile, (library, path, jit, jit_values, n_jit, options, values, n));

	return loaded_file(err, library, UM_CODE_LIBRARY, path);
}

int cuLibraryUnload(void *library)
{
	unloads(library);
	return UM_PASS(cuLibraryUnload, (library));
}
