/* SPDX-License-Identifier: Apache-2.0
 *
 * copy.c - cuMemcpy and cuMemset in all forms
 *
 * Every form becomes rows to copy or to fill. A copy of three dimensions is one for each plane.
 */
#include "standin/graph.h"

/* Required memory type of a side of a copy. */
enum side { HOST, DEVICE, ANY };

static int is_side(const void *ptr, enum side side)
{
	struct um_sim_memory m;

	if (side == ANY || side == HOST)
		return ptr != NULL;
	return um_sim_memory(um_standin()->gpu, ptr, &m) == 0;
}

static int copy(void *to, enum side to_side, const void *from, enum side from_side, size_t bytes, void *stream,
		int wait)
{
	const struct um_work w = {
		.kind = UM_WORK_COPY,
		.copy = {.to = to, .from = from, .to_pitch = bytes, .from_pitch = bytes, .bytes = bytes, .rows = 1}};

	if (!bytes)
		return UM_CUDA_OK;
	if (!is_side(to, to_side) || !is_side(from, from_side))
		return UM_CUDA_INVALID_VALUE;
	return um_work_do(stream, &w, wait);
}

static void *ptr(uint64_t device)
{
	return (void *)(uintptr_t)device;
}

/* --- one row ------------------------------------------------------------------------------------------------------ */

/* Blocking and not; the blocking form for per-thread default streams ends in _ptds, as in CUDA. */
#define COPY(name, suffix, sync, async, to_type, from_type, to, to_side, from, from_side)                              \
	static int name##_on(const char *fn, to_type t, from_type f, size_t n, void *stream, int wait)                 \
	{                                                                                                              \
		int err = um_standin_enter(fn);                                                                        \
                                                                                                                       \
		return err ? err : copy(to, to_side, from, from_side, n, stream, wait);                                \
	}                                                                                                              \
	UM_FORWARD(sync##suffix, (to_type t, from_type f, size_t n), name##_on(__func__, t, f, n, NULL, 1))            \
	UM_FORWARD(sync##suffix##_ptds, (to_type t, from_type f, size_t n),                                            \
		   name##_on(#sync #suffix, t, f, n, UM_THREAD_STREAM, 1))                                             \
	UM_FORWARD(async##suffix, (to_type t, from_type f, size_t n, void *s), name##_on(__func__, t, f, n, s, 0))     \
	UM_FORWARD(async##suffix##_ptsz, (to_type t, from_type f, size_t n, void *s),                                  \
		   name##_on(#async #suffix, t, f, n, um_ptsz(s), 0))

COPY(any, , cuMemcpy, cuMemcpyAsync, uint64_t, uint64_t, ptr(t), ANY, ptr(f), ANY)
COPY(to_device, _v2, cuMemcpyHtoD, cuMemcpyHtoDAsync, uint64_t, const void *, ptr(t), DEVICE, f, HOST)
COPY(to_host, _v2, cuMemcpyDtoH, cuMemcpyDtoHAsync, void *, uint64_t, t, HOST, ptr(f), DEVICE)
COPY(in_device, _v2, cuMemcpyDtoD, cuMemcpyDtoDAsync, uint64_t, uint64_t, ptr(t), DEVICE, ptr(f), DEVICE)

static int wait_for_all(void)
{
	int err = 0;

	for (int i = 0; i < um_standin_devices() && !err; i++)
		err = um_context_sync(um_standin_device(i));
	return err;
}

/* In order with all work of both devices, unlike other copies between devices. Addresses tell which they are. */
static int between(int (*copy_on)(uint64_t, uint64_t, size_t), uint64_t to, uint64_t from, size_t bytes)
{
	int err = um_standin_enter("cuMemcpyPeer");

	if (!err)
		err = wait_for_all();
	if (!err)
		err = copy_on(to, from, bytes);
	return err ? err : wait_for_all();
}

UM_FORWARD(cuMemcpyPeer, (uint64_t t, void *tc, uint64_t f, void *fc, size_t n),
	   ((void)tc, (void)fc, between(cuMemcpy, t, f, n)))
UM_FORWARD(cuMemcpyPeer_ptds, (uint64_t t, void *tc, uint64_t f, void *fc, size_t n),
	   ((void)tc, (void)fc, between(cuMemcpy_ptds, t, f, n)))
UM_FORWARD(cuMemcpyPeerAsync, (uint64_t t, void *tc, uint64_t f, void *fc, size_t n, void *s),
	   ((void)tc, (void)fc, cuMemcpyAsync(t, f, n, s)))
UM_FORWARD(cuMemcpyPeerAsync_ptsz, (uint64_t t, void *tc, uint64_t f, void *fc, size_t n, void *s),
	   ((void)tc, (void)fc, cuMemcpyAsync(t, f, n, um_ptsz(s))))

/* --- rows and planes ---------------------------------------------------------------------------------------------- */

enum memory_type { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_ARRAY = 3, TYPE_UNIFIED = 4 };

/* CUDA_MEMCPY2D and CUDA_MEMCPY3D. */
struct copy_2d {
	size_t from_x, from_y;
	int from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	size_t to_pitch;
	size_t width, height;
};

struct copy_3d {
	size_t from_x, from_y, from_z, from_lod;
	int from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array, *reserved0;
	size_t from_pitch, from_height;
	size_t to_x, to_y, to_z, to_lod;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array, *reserved1;
	size_t to_pitch, to_height;
	size_t width, height, depth;
};

/* Address of the first byte of a side. NULL: not supported. */
static char *place(int type, const void *host, uint64_t device, size_t x, size_t row, size_t pitch)
{
	char *base = type == TYPE_HOST ? (char *)(uintptr_t)host : (char *)ptr(device);

	return base ? base + row * pitch + x : NULL;
}

static int type_known(int type)
{
	return type == TYPE_HOST || type == TYPE_DEVICE || type == TYPE_UNIFIED;
}

int um_copy_planes(const void *params, int (*each)(void *arg, const struct um_work *work), void *arg)
{
	const struct copy_3d *c = params;
	size_t from_pitch = c->from_pitch ? c->from_pitch : c->width, to_pitch = c->to_pitch ? c->to_pitch : c->width;
	int err = UM_CUDA_OK;

	if (c->from_type == TYPE_ARRAY || c->to_type == TYPE_ARRAY)
		return um_standin_unsupported("copies of arrays");
	if (!type_known(c->from_type) || !type_known(c->to_type) || c->from_x + c->width > from_pitch ||
	    c->to_x + c->width > to_pitch)
		return UM_CUDA_INVALID_VALUE;
	for (size_t z = 0; z < c->depth && c->width && c->height && !err; z++) {
		struct um_work w = {.kind = UM_WORK_COPY};

		w.copy.to = place(c->to_type, c->to_host, c->to_device, c->to_x, (c->to_z + z) * c->to_height + c->to_y,
				  to_pitch);
		w.copy.from = place(c->from_type, c->from_host, c->from_device, c->from_x,
				    (c->from_z + z) * c->from_height + c->from_y, from_pitch);
		w.copy.to_pitch = to_pitch;
		w.copy.from_pitch = from_pitch;
		w.copy.bytes = c->width;
		w.copy.rows = c->height;
		if (!w.copy.to || !w.copy.from)
			return UM_CUDA_INVALID_VALUE;
		err = each(arg, &w);
	}
	return err;
}

void um_copy_describe(const struct um_work *plane, size_t n, void *params)
{
	const struct um_work *next = plane + (n > 1);
	size_t to_step = (size_t)((const char *)next->copy.to - (const char *)plane->copy.to);
	size_t from_step = (size_t)((const char *)next->copy.from - (const char *)plane->copy.from);

	*(struct copy_3d *)params = (struct copy_3d){.from_type = TYPE_UNIFIED,
						     .from_device = (uintptr_t)plane->copy.from,
						     .from_pitch = plane->copy.from_pitch,
						     .from_height = from_step / plane->copy.from_pitch,
						     .to_type = TYPE_UNIFIED,
						     .to_device = (uintptr_t)plane->copy.to,
						     .to_pitch = plane->copy.to_pitch,
						     .to_height = to_step / plane->copy.to_pitch,
						     .width = plane->copy.bytes,
						     .height = plane->copy.rows,
						     .depth = n};
}

struct on {
	void *stream;
	int wait;
};

static int plane_do(void *arg, const struct um_work *w)
{
	const struct on *on = arg;

	return um_work_do(on->stream, w, on->wait);
}

static int planes_do(const struct copy_3d *c, void *stream, int wait)
{
	if (c->to_type == TYPE_DEVICE && c->to_device && !is_side(ptr(c->to_device), DEVICE))
		return UM_CUDA_INVALID_VALUE;
	if (c->from_type == TYPE_DEVICE && c->from_device && !is_side(ptr(c->from_device), DEVICE))
		return UM_CUDA_INVALID_VALUE;
	return um_copy_planes(c, plane_do, &(struct on){stream, wait});
}

static int copy_3d(const char *name, const struct copy_3d *c, void *stream, int wait)
{
	int err = um_standin_enter(name);

	return err ? err : c ? planes_do(c, stream, wait) : UM_CUDA_INVALID_VALUE;
}

static int copy_2d(const char *name, const struct copy_2d *c, void *stream, int wait)
{
	int err = um_standin_enter(name);
	struct copy_3d d;

	if (err || !c)
		return err ? err : UM_CUDA_INVALID_VALUE;
	d = (struct copy_3d){.from_x = c->from_x,
			     .from_y = c->from_y,
			     .from_type = c->from_type,
			     .from_host = c->from_host,
			     .from_device = c->from_device,
			     .from_pitch = c->from_pitch,
			     .to_x = c->to_x,
			     .to_y = c->to_y,
			     .to_type = c->to_type,
			     .to_host = c->to_host,
			     .to_device = c->to_device,
			     .to_pitch = c->to_pitch,
			     .width = c->width,
			     .height = c->height,
			     .depth = 1};
	return planes_do(&d, stream, wait);
}

UM_FORWARD(cuMemcpy2D_v2, (const struct copy_2d *c), copy_2d(__func__, c, NULL, 1))
UM_FORWARD(cuMemcpy2D_v2_ptds, (const struct copy_2d *c), copy_2d("cuMemcpy2D_v2", c, UM_THREAD_STREAM, 1))
UM_FORWARD(cuMemcpy2DUnaligned_v2, (const struct copy_2d *c), copy_2d(__func__, c, NULL, 1))
UM_FORWARD(cuMemcpy2DUnaligned_v2_ptds, (const struct copy_2d *c),
	   copy_2d("cuMemcpy2DUnaligned_v2", c, UM_THREAD_STREAM, 1))
UM_FORWARD(cuMemcpy2DAsync_v2, (const struct copy_2d *c, void *s), copy_2d(__func__, c, s, 0))
UM_FORWARD(cuMemcpy2DAsync_v2_ptsz, (const struct copy_2d *c, void *s), copy_2d("cuMemcpy2DAsync_v2", c, um_ptsz(s), 0))
UM_FORWARD(cuMemcpy3D_v2, (const struct copy_3d *c), copy_3d(__func__, c, NULL, 1))
UM_FORWARD(cuMemcpy3D_v2_ptds, (const struct copy_3d *c), copy_3d("cuMemcpy3D_v2", c, UM_THREAD_STREAM, 1))
UM_FORWARD(cuMemcpy3DAsync_v2, (const struct copy_3d *c, void *s), copy_3d(__func__, c, s, 0))
UM_FORWARD(cuMemcpy3DAsync_v2_ptsz, (const struct copy_3d *c, void *s), copy_3d("cuMemcpy3DAsync_v2", c, um_ptsz(s), 0))

/* --- memsets ------------------------------------------------------------------------------------------------------ */

/* A call without Async waits for pinned or managed targets, but not for device memory. */
static int set(const char *name, uint64_t at, size_t pitch, uint32_t value, unsigned size, size_t width, size_t rows,
	       void *stream, int wait)
{
	const struct um_work w = {
		.kind = UM_WORK_SET,
		.set = {.at = ptr(at), .pitch = pitch, .width = width, .rows = rows, .value = value, .size = size}};
	struct um_sim_memory m;
	int err = um_standin_enter(name), ok;
	um_stream sim;

	if (err || !width || !rows)
		return err;
	if (um_sim_memory(um_standin()->gpu, ptr(at), &m))
		return UM_CUDA_INVALID_VALUE;
	err = um_work_do(stream, &w, 0);
	if (err || !wait || m.kind == UM_SIM_DEVICE)
		return err;
	sim = um_standin_stream(stream, &ok);
	return um_standin()->gpu->api->cudaStreamSynchronize(um_standin()->gpu, sim);
}

#define SET(bits, type)                                                                                                \
	UM_FORWARD(cuMemsetD##bits##_v2, (uint64_t at, type v, size_t n),                                              \
		   set(__func__, at, 0, v, bits / 8, n, 1, NULL, 1))                                                   \
	UM_FORWARD(cuMemsetD##bits##_v2_ptds, (uint64_t at, type v, size_t n),                                         \
		   set("cuMemsetD" #bits "_v2", at, 0, v, bits / 8, n, 1, UM_THREAD_STREAM, 1))                        \
	UM_FORWARD(cuMemsetD##bits##Async, (uint64_t at, type v, size_t n, void *s),                                   \
		   set(__func__, at, 0, v, bits / 8, n, 1, s, 0))                                                      \
	UM_FORWARD(cuMemsetD##bits##Async_ptsz, (uint64_t at, type v, size_t n, void *s),                              \
		   set("cuMemsetD" #bits "Async", at, 0, v, bits / 8, n, 1, um_ptsz(s), 0))                            \
	UM_FORWARD(cuMemsetD2D##bits##_v2, (uint64_t at, size_t pitch, type v, size_t width, size_t rows),             \
		   set(__func__, at, pitch, v, bits / 8, width, rows, NULL, 1))                                        \
	UM_FORWARD(cuMemsetD2D##bits##_v2_ptds, (uint64_t at, size_t pitch, type v, size_t width, size_t rows),        \
		   set("cuMemsetD2D" #bits "_v2", at, pitch, v, bits / 8, width, rows, UM_THREAD_STREAM, 1))           \
	UM_FORWARD(cuMemsetD2D##bits##Async, (uint64_t at, size_t pitch, type v, size_t width, size_t rows, void *s),  \
		   set(__func__, at, pitch, v, bits / 8, width, rows, s, 0))                                           \
	UM_FORWARD(cuMemsetD2D##bits##Async_ptsz,                                                                      \
		   (uint64_t at, size_t pitch, type v, size_t width, size_t rows, void *s),                            \
		   set("cuMemsetD2D" #bits "Async", at, pitch, v, bits / 8, width, rows, um_ptsz(s), 0))

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)

#define SYNC(name, since)                                                                                              \
	{                                                                                                              \
#name, since, name##_v2, name##_v2_ptds                                                                \
	}
#define ASYNC(name, suffix, since)                                                                                     \
	{                                                                                                              \
#name, since, name##suffix, name##suffix##_ptsz                                                        \
	}

const struct um_entry um_copy_entries[] = {
	{"cuMemcpy", 4000, cuMemcpy, cuMemcpy_ptds},
	ASYNC(cuMemcpyAsync, , 4000),
	SYNC(cuMemcpyHtoD, 3020),
	ASYNC(cuMemcpyHtoDAsync, _v2, 3020),
	SYNC(cuMemcpyDtoH, 3020),
	ASYNC(cuMemcpyDtoHAsync, _v2, 3020),
	SYNC(cuMemcpyDtoD, 3020),
	ASYNC(cuMemcpyDtoDAsync, _v2, 3020),
	{"cuMemcpyPeer", 4000, cuMemcpyPeer, cuMemcpyPeer_ptds},
	ASYNC(cuMemcpyPeerAsync, , 4000),
	SYNC(cuMemcpy2D, 3020),
	SYNC(cuMemcpy2DUnaligned, 3020),
	ASYNC(cuMemcpy2DAsync, _v2, 3020),
	SYNC(cuMemcpy3D, 3020),
	ASYNC(cuMemcpy3DAsync, _v2, 3020),
	SYNC(cuMemsetD8, 3020),
	SYNC(cuMemsetD16, 3020),
	SYNC(cuMemsetD32, 3020),
	SYNC(cuMemsetD2D8, 3020),
	SYNC(cuMemsetD2D16, 3020),
	SYNC(cuMemsetD2D32, 3020),
	ASYNC(cuMemsetD8Async, , 3020),
	ASYNC(cuMemsetD16Async, , 3020),
	ASYNC(cuMemsetD32Async, , 3020),
	ASYNC(cuMemsetD2D8Async, , 3020),
	ASYNC(cuMemsetD2D16Async, , 3020),
	ASYNC(cuMemsetD2D32Async, , 3020),
	{0},
};
