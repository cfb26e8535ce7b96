/* SPDX-License-Identifier: Apache-2.0
 *
 * rt_binary.c - registrations of nvcc's start-up code, kernel launches and symbols of the runtime
 *
 * Images are loaded when they are first used.
 */
#include "standin/rt.h"

#include "base/vec.h"

#include <pthread.h>

struct binary {
	const void *image; /* nvcc's wrapper, owned by the program */
	void *library; /* once loaded */
};

struct kernel {
	const void *host; /* the program's host address of it */
	const char *name;
	struct binary *binary;
	void *function; /* after the first look-up */
};

struct var {
	const void *host; /* MANAGED: the program's pointer to it */
	const char *name;
	struct binary *binary;
	int managed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static UM_VEC(struct kernel) kernels;
static UM_VEC(struct var) vars;

/* A launch between the parts of <<<>>>. */
struct call {
	struct um_rt_dim3 grid, block;
	size_t shared;
	void *stream;
};

static _Thread_local struct call calls[16];
static _Thread_local unsigned depth;

/* --- registration ------------------------------------------------------------------------------------------------- */

UM_EXPORT void **__cudaRegisterFatBinary(void *image);
void **__cudaRegisterFatBinary(void *image)
{
	struct binary *b = calloc(1, sizeof *b);

	if (b)
		b->image = image;
	return (void **)b;
}

UM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

/* Removes its kernels; its module stays loaded, because the driver may already be closed. */
UM_EXPORT void __cudaUnregisterFatBinary(void **handle);
void __cudaUnregisterFatBinary(void **handle)
{
	size_t n = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < kernels.n; i++)
		if (kernels.at[i].binary != (struct binary *)handle)
			kernels.at[n++] = kernels.at[i];
	kernels.n = n;
	n = 0;
	for (size_t i = 0; i < vars.n; i++)
		if (vars.at[i].binary != (struct binary *)handle)
			vars.at[n++] = vars.at[i];
	vars.n = n;
	pthread_mutex_unlock(&lock);
	free(handle);
}

/* Without memory the kernel stays unknown, and its launch fails. */
UM_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
				      void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid,
			    void *bid, void *block, void *grid, int *warp)
{
	struct kernel k = {host, name, (struct binary *)handle, NULL};

	(void)device;
	(void)limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
	pthread_mutex_lock(&lock);
	if (handle)
		(void)um_vec_push(&kernels, k);
	pthread_mutex_unlock(&lock);
}

static void var_register(void **handle, const void *host, const char *name, int managed)
{
	struct var v = {host, name, (struct binary *)handle, managed};

	pthread_mutex_lock(&lock);
	if (handle)
		(void)um_vec_push(&vars, v);
	pthread_mutex_unlock(&lock);
}

UM_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
				 int constant, int global);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t bytes,
		       int constant, int global)
{
	(void)device;
	(void)external;
	(void)bytes;
	(void)constant;
	(void)global;
	var_register(handle, host, name, 0);
}

UM_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
					size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external, size_t bytes,
			      int constant, int global)
{
	(void)device;
	(void)external;
	(void)bytes;
	(void)constant;
	(void)global;
	var_register(handle, host, name, 1);
}

/* Under lock. A module's managed variables get their addresses when it is loaded. */
static int load(struct binary *b)
{
	int err;

	if (b->library)
		return UM_CUDA_OK;
	err = um_rt.cuLibraryLoadData ? um_rt.cuLibraryLoadData(&b->library, b->image, NULL, NULL, 0, NULL, NULL, 0)
				      : UM_CUDA_NOT_SUPPORTED;
	for (size_t i = 0; i < vars.n && !err && um_rt.cuLibraryGetManaged; i++)
		if (vars.at[i].binary == b && vars.at[i].managed) {
			void *at = NULL;

			err = um_rt.cuLibraryGetManaged(&at, NULL, b->library, vars.at[i].name);
			if (!err)
				*(void **)vars.at[i].host = at;
		}
	return err;
}

/* Initialises managed variables before their use. */
UM_EXPORT char __cudaInitModule(void **handle);
char __cudaInitModule(void **handle)
{
	int err = um_rt_enter();

	if (!err) {
		pthread_mutex_lock(&lock);
		err = load((struct binary *)handle);
		pthread_mutex_unlock(&lock);
	}
	um_rt_done(err);
	return !err;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* The function of a kernel's host address or handle. Error code. */
static int find_function(const void *kernel, void **function)
{
	int err = UM_CUDA_OK, handle = 0;
	struct kernel *k = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < kernels.n && !k && !handle; i++) {
		if (kernels.at[i].host == kernel)
			k = &kernels.at[i];
		handle = kernels.at[i].function == kernel; /* a cudaKernel_t is accepted as a symbol, too */
	}
	if (k && !k->function) {
		err = load(k->binary);
		if (!err)
			err = um_rt.cuLibraryGetKernel(&k->function, k->binary->library, k->name);
	}
	if (!err && !kernel)
		err = UM_RT_INVALID_FUNCTION;
	if (!err)
		*function = handle ? (void *)(uintptr_t)kernel : k ? k->function : NULL;
	if (!err && !*function)
		err = UM_RT_INVALID_FUNCTION;
	pthread_mutex_unlock(&lock);
	return err == UM_RT_NOT_FOUND ? UM_RT_INVALID_FUNCTION : err;
}

static int function_of(const void *kernel, void **function)
{
	int err = um_rt_enter();

	return err ? err : find_function(kernel, function);
}

UM_EXPORT int cudaGetFuncBySymbol(void **function, const void *kernel);
int cudaGetFuncBySymbol(void **function, const void *kernel)
{
	return um_rt_done(function_of(kernel, function));
}

UM_EXPORT int cudaGetKernel(void **handle, const void *kernel);
int cudaGetKernel(void **handle, const void *kernel)
{
	return um_rt_done(function_of(kernel, handle));
}

UM_EXPORT int __cudaGetKernel(void **handle, const void *kernel);
int __cudaGetKernel(void **handle, const void *kernel)
{
	*handle = NULL;
	return um_rt_done(function_of(kernel, handle));
}

UM_EXPORT unsigned __cudaPushCallConfiguration(struct um_rt_dim3 grid, struct um_rt_dim3 block, size_t shared,
					       void *stream);
unsigned __cudaPushCallConfiguration(struct um_rt_dim3 grid, struct um_rt_dim3 block, size_t shared, void *stream)
{
	if (depth == sizeof calls / sizeof calls[0])
		return 1;
	calls[depth++] = (struct call){grid, block, shared, stream};
	return 0;
}

UM_EXPORT int __cudaPopCallConfiguration(struct um_rt_dim3 *grid, struct um_rt_dim3 *block, size_t *shared,
					 void *stream);
int __cudaPopCallConfiguration(struct um_rt_dim3 *grid, struct um_rt_dim3 *block, size_t *shared, void *stream)
{
	const struct call *c;

	if (!depth)
		return um_rt_done(UM_CUDA_INVALID_VALUE);
	c = &calls[--depth];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	memcpy(stream, &c->stream, sizeof c->stream);
	return UM_CUDA_OK;
}

static int launch(const void *kernel, struct um_rt_dim3 g, struct um_rt_dim3 b, void **args, size_t shared,
		  void *stream)
{
	void *f = NULL;
	int err = function_of(kernel, &f);

	if (!err)
		err = um_rt.cuLaunchKernel(f, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, stream, args, NULL);
	return um_rt_done(err);
}

#define LAUNCH(name)                                                                                                   \
	UM_EXPORT int name(const void *kernel, struct um_rt_dim3 grid, struct um_rt_dim3 block, void **args,           \
			   size_t shared, void *stream);                                                               \
	int name(const void *kernel, struct um_rt_dim3 grid, struct um_rt_dim3 block, void **args, size_t shared,      \
		 void *stream)                                                                                         \
	{                                                                                                              \
		return launch(kernel, grid, block, args, shared, stream);                                              \
	}                                                                                                              \
	UM_EXPORT int name##_ptsz(const void *kernel, struct um_rt_dim3 grid, struct um_rt_dim3 block, void **args,    \
				  size_t shared, void *stream);                                                        \
	int name##_ptsz(const void *kernel, struct um_rt_dim3 grid, struct um_rt_dim3 block, void **args,              \
			size_t shared, void *stream)                                                                   \
	{                                                                                                              \
		return launch(kernel, grid, block, args, shared, stream ? stream : (void *)2);                         \
	}

LAUNCH(cudaLaunchKernel)
LAUNCH(__cudaLaunchKernel)

/* Cooperative launches equal plain ones: a kernel is one step of the simulation. */
LAUNCH(cudaLaunchCooperativeKernel)

struct config { /* cudaLaunchConfig_t */
	struct um_rt_dim3 grid, block;
	size_t shared;
	void *stream, *attributes;
	unsigned n_attributes;
};

UM_EXPORT int cudaLaunchKernelExC(const struct config *c, const void *kernel, void **args);
int cudaLaunchKernelExC(const struct config *c, const void *kernel, void **args)
{
	return c ? launch(kernel, c->grid, c->block, args, c->shared, c->stream) : um_rt_done(UM_CUDA_INVALID_VALUE);
}

UM_EXPORT int cudaLaunchKernelExC_ptsz(const struct config *c, const void *kernel, void **args);
int cudaLaunchKernelExC_ptsz(const struct config *c, const void *kernel, void **args)
{
	return c ? launch(kernel, c->grid, c->block, args, c->shared, c->stream ? c->stream : (void *)2)
		 : um_rt_done(UM_CUDA_INVALID_VALUE);
}

struct attributes { /* cudaFuncAttributes, as far as it is filled */
	size_t shared, constant, local;
	int max_threads, registers, ptx, binary, cache_ca, max_shared, carveout;
};

UM_EXPORT int cudaFuncGetAttributes(struct attributes *a, const void *kernel);
int cudaFuncGetAttributes(struct attributes *a, const void *kernel)
{
	int v[10] = {0}, err;
	void *f = NULL;

	if (!a)
		return um_rt_done(UM_CUDA_INVALID_VALUE);
	err = function_of(kernel, &f);
	for (int i = 0; i < 10 && !err; i++)
		err = um_rt.cuFuncGetAttribute(&v[i], i, f);
	if (!err)
		*a = (struct attributes){(size_t)v[1], (size_t)v[2], (size_t)v[3], v[0], v[4],
					 v[5],	       v[6],	     v[7],	   v[8], v[9]};
	return um_rt_done(err);
}

#define OF_KERNEL(name, params, kernel, fn, args)                                                                      \
	UM_EXPORT int name params;                                                                                     \
	int name params                                                                                                \
	{                                                                                                              \
		void *f = NULL;                                                                                        \
		int err = function_of(kernel, &f);                                                                     \
                                                                                                                       \
		return um_rt_done(err ? err : um_rt.fn ? um_rt.fn args : um_rt_absent(#fn));                           \
	}

OF_KERNEL(cudaFuncSetAttribute, (const void *kernel, int attribute, int value), kernel, cuFuncSetAttribute,
	  (f, attribute, value))
OF_KERNEL(cudaFuncSetCacheConfig, (const void *kernel, int config), kernel, cuFuncSetCacheConfig, (f, config))
OF_KERNEL(cudaFuncGetParamInfo, (const void *kernel, size_t index, size_t *offset, size_t *bytes), kernel,
	  cuFuncGetParamInfo, (f, index, offset, bytes))
OF_KERNEL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *kernel, int threads, size_t shared),
	  kernel, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (blocks, f, threads, shared, 0))
OF_KERNEL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	  (int *blocks, const void *kernel, int threads, size_t shared, unsigned flags), kernel,
	  cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (blocks, f, threads, shared, flags))

/* --- variables ---------------------------------------------------------------------------------------------------- */

static int symbol_find(const void *symbol, void **at, size_t *bytes)
{
	int err = um_rt_enter(), found = 0;

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < vars.n && !found && !err; i++) {
		const struct var *v = &vars.at[i];

		if (v->host != symbol && !(v->managed && *(void *const *)v->host == symbol))
			continue;
		found = 1;
		err = load(v->binary);
		if (!err)
			err = um_rt.cuLibraryGetGlobal(at, bytes, v->binary->library, v->name);
	}
	pthread_mutex_unlock(&lock);
	return err ? err : found ? UM_CUDA_OK : UM_RT_INVALID_SYMBOL;
}

UM_EXPORT int cudaGetSymbolAddress(void **at, const void *symbol);
int cudaGetSymbolAddress(void **at, const void *symbol)
{
	return um_rt_done(symbol_find(symbol, at, NULL));
}

UM_EXPORT int cudaGetSymbolSize(size_t *bytes, const void *symbol);
int cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
	return um_rt_done(symbol_find(symbol, NULL, bytes));
}

/* Copies to (or from) a variable; on a stream unless `wait`. */
static int symbol_copy(const void *symbol, size_t off, void *other, size_t bytes, int to, int wait, void *stream)
{
	size_t size = 0;
	void *at = NULL;
	int err = symbol_find(symbol, &at, &size);

	if (!err && (off > size || bytes > size - off))
		err = UM_CUDA_INVALID_VALUE;
	if (err)
		return um_rt_done(err);
	at = (char *)at + off;
	return um_rt_done(wait ? um_rt.cuMemcpy(to ? at : other, to ? other : at, bytes)
			       : um_rt.cuMemcpyAsync(to ? at : other, to ? other : at, bytes, stream));
}

UM_EXPORT int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t off, int kind);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t off, int kind)
{
	(void)kind;
	return symbol_copy(symbol, off, (void *)(uintptr_t)from, bytes, 1, 1, NULL);
}

UM_EXPORT int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t off, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t off, int kind)
{
	(void)kind;
	return symbol_copy(symbol, off, to, bytes, 0, 1, NULL);
}

UM_EXPORT int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t off, int kind,
				      void *stream);
int cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t off, int kind, void *stream)
{
	(void)kind;
	return symbol_copy(symbol, off, (void *)(uintptr_t)from, bytes, 1, 0, stream);
}

UM_EXPORT int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t off, int kind, void *stream);
int cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t off, int kind, void *stream)
{
	(void)kind;
	return symbol_copy(symbol, off, to, bytes, 0, 0, stream);
}
