/* SPDX-License-Identifier: Apache-2.0
 *
 * hook_copy.c - copies and fills of the program as ops
 *
 * Their ranges are known exactly. What they overwrite is declared as updated: if the driver refused the call, the
 * content would still be needed.
 */
#include "inject/driver.h"
#include "inject/session.h"

static uint64_t bytes_of(size_t pitch, size_t width, size_t rows)
{
	if (!rows || (rows > 1 && pitch > (SIZE_MAX / 2 - width) / (rows - 1)))
		return 0;
	return (rows - 1) * pitch + width;
}

static void op(const char *name, uint64_t to, uint64_t to_bytes, uint64_t from, uint64_t from_bytes, void *stream)
{
	struct um_inject_uses uses;

	if (!um_session_pressed() || !um_session_active() || um_session_captures(stream))
		return;
	um_inject_uses_init(&uses);
	if (!um_inject_uses_here(&uses))
		return;
	um_inject_use_range(&uses, to, to_bytes, UMADV_ACCESS_UPDATE);
	um_inject_use_range(&uses, from, from_bytes, UMADV_ACCESS_READ);
	if (uses.n)
		um_session_op(uses.device, stream, name, uses.at, uses.n);
}

#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))
#define OF_THREAD(stream) ((stream) ? (stream) : (void *)2)

#define COPY(name, suffix, to_type, from_type)                                                                         \
	int name##suffix(to_type to, from_type from, size_t n)                                                         \
	{                                                                                                              \
		op("memcpy", ADDRESS(to), n, ADDRESS(from), n, NULL);                                                  \
		return UM_PASS(name##suffix, (to, from, n));                                                           \
	}                                                                                                              \
	int name##suffix##_ptds(to_type to, from_type from, size_t n)                                                  \
	{                                                                                                              \
		op("memcpy", ADDRESS(to), n, ADDRESS(from), n, (void *)2);                                             \
		return UM_PASS(name##suffix##_ptds, (to, from, n));                                                    \
	}                                                                                                              \
	int name##Async##suffix(to_type to, from_type from, size_t n, void *stream)                                    \
	{                                                                                                              \
		op("memcpy", ADDRESS(to), n, ADDRESS(from), n, stream);                                                \
		return UM_PASS(name##Async##suffix, (to, from, n, stream));                                            \
	}                                                                                                              \
	int name##Async##suffix##_ptsz(to_type to, from_type from, size_t n, void *stream)                             \
	{                                                                                                              \
		op("memcpy", ADDRESS(to), n, ADDRESS(from), n, OF_THREAD(stream));                                     \
		return UM_PASS(name##Async##suffix##_ptsz, (to, from, n, stream));                                     \
	}

COPY(cuMemcpy, , uint64_t, uint64_t)
COPY(cuMemcpyHtoD, _v2, uint64_t, const void *)
COPY(cuMemcpyDtoH, _v2, void *, uint64_t)
COPY(cuMemcpyDtoD, _v2, uint64_t, uint64_t)

#define PEER(suffix, on)                                                                                               \
	int cuMemcpyPeer##suffix(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n)           \
	{                                                                                                              \
		op("memcpy", to, n, from, n, on);                                                                      \
		return UM_PASS(cuMemcpyPeer##suffix, (to, to_context, from, from_context, n));                         \
	}
#define PEER_ASYNC(suffix, on)                                                                                         \
	int cuMemcpyPeerAsync##suffix(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t n,      \
				      void *stream)                                                                    \
	{                                                                                                              \
		op("memcpy", to, n, from, n, on);                                                                      \
		return UM_PASS(cuMemcpyPeerAsync##suffix, (to, to_context, from, from_context, n, stream));            \
	}

PEER(, NULL)
PEER(_ptds, (void *)2)
PEER_ASYNC(, stream)
PEER_ASYNC(_ptsz, OF_THREAD(stream))

/* --- rows and planes ---------------------------------------------------------------------------------------------- */

static void op_2d(const struct um_copy_2d *c, void *stream)
{
	uint64_t to, from;

	if (!c)
		return;
	to = c->to_device ? c->to_device : ADDRESS(c->to_host);
	from = c->from_device ? c->from_device : ADDRESS(c->from_host);
	op("memcpy2D", to + c->to_y * c->to_pitch + c->to_x, bytes_of(c->to_pitch, c->width, c->height),
	   from + c->from_y * c->from_pitch + c->from_x, bytes_of(c->from_pitch, c->width, c->height), stream);
}

static void op_3d(const struct um_copy_3d *c, void *stream)
{
	uint64_t to, from, to_plane, from_plane;

	if (!c)
		return;
	to = c->to_device ? c->to_device : ADDRESS(c->to_host);
	from = c->from_device ? c->from_device : ADDRESS(c->from_host);
	to_plane = c->to_pitch * c->to_height;
	from_plane = c->from_pitch * c->from_height;
	op("memcpy3D", to + c->to_z * to_plane + c->to_y * c->to_pitch + c->to_x,
	   bytes_of(to_plane, bytes_of(c->to_pitch, c->width, c->height), c->depth),
	   from + c->from_z * from_plane + c->from_y * c->from_pitch + c->from_x,
	   bytes_of(from_plane, bytes_of(c->from_pitch, c->width, c->height), c->depth), stream);
}

#define PLANES(name, type, announce)                                                                                   \
	int name##_v2(const type *copy)                                                                                \
	{                                                                                                              \
		announce(copy, NULL);                                                                                  \
		return UM_PASS(name##_v2, (copy));                                                                     \
	}                                                                                                              \
	int name##_v2_ptds(const type *copy)                                                                           \
	{                                                                                                              \
		announce(copy, (void *)2);                                                                             \
		return UM_PASS(name##_v2_ptds, (copy));                                                                \
	}
#define PLANES_ASYNC(name, type, announce)                                                                             \
	int name##_v2(const type *copy, void *stream)                                                                  \
	{                                                                                                              \
		announce(copy, stream);                                                                                \
		return UM_PASS(name##_v2, (copy, stream));                                                             \
	}                                                                                                              \
	int name##_v2_ptsz(const type *copy, void *stream)                                                             \
	{                                                                                                              \
		announce(copy, OF_THREAD(stream));                                                                     \
		return UM_PASS(name##_v2_ptsz, (copy, stream));                                                        \
	}

PLANES(cuMemcpy2D, struct um_copy_2d, op_2d)
PLANES(cuMemcpy2DUnaligned, struct um_copy_2d, op_2d)
PLANES_ASYNC(cuMemcpy2DAsync, struct um_copy_2d, op_2d)
PLANES(cuMemcpy3D, struct um_copy_3d, op_3d)
PLANES_ASYNC(cuMemcpy3DAsync, struct um_copy_3d, op_3d)

/* --- fills -------------------------------------------------------------------------------------------------------- */

#define SET(bits, type)                                                                                                \
	int cuMemsetD##bits##_v2(uint64_t at, type value, size_t n)                                                    \
	{                                                                                                              \
		op("memset", at, n *(bits / 8), 0, 0, NULL);                                                           \
		return UM_PASS(cuMemsetD##bits##_v2, (at, value, n));                                                  \
	}                                                                                                              \
	int cuMemsetD##bits##_v2_ptds(uint64_t at, type value, size_t n)                                               \
	{                                                                                                              \
		op("memset", at, n *(bits / 8), 0, 0, (void *)2);                                                      \
		return UM_PASS(cuMemsetD##bits##_v2_ptds, (at, value, n));                                             \
	}                                                                                                              \
	int cuMemsetD##bits##Async(uint64_t at, type value, size_t n, void *stream)                                    \
	{                                                                                                              \
		op("memset", at, n *(bits / 8), 0, 0, stream);                                                         \
		return UM_PASS(cuMemsetD##bits##Async, (at, value, n, stream));                                        \
	}                                                                                                              \
	int cuMemsetD##bits##Async_ptsz(uint64_t at, type value, size_t n, void *stream)                               \
	{                                                                                                              \
		op("memset", at, n *(bits / 8), 0, 0, OF_THREAD(stream));                                              \
		return UM_PASS(cuMemsetD##bits##Async_ptsz, (at, value, n, stream));                                   \
	}                                                                                                              \
	int cuMemsetD2D##bits##_v2(uint64_t at, size_t pitch, type value, size_t width, size_t rows)                   \
	{                                                                                                              \
		op("memset2D", at, bytes_of(pitch, width *(bits / 8), rows), 0, 0, NULL);                              \
		return UM_PASS(cuMemsetD2D##bits##_v2, (at, pitch, value, width, rows));                               \
	}                                                                                                              \
	int cuMemsetD2D##bits##_v2_ptds(uint64_t at, size_t pitch, type value, size_t width, size_t rows)              \
	{                                                                                                              \
		op("memset2D", at, bytes_of(pitch, width *(bits / 8), rows), 0, 0, (void *)2);                         \
		return UM_PASS(cuMemsetD2D##bits##_v2_ptds, (at, pitch, value, width, rows));                          \
	}                                                                                                              \
	int cuMemsetD2D##bits##Async(uint64_t at, size_t pitch, type value, size_t width, size_t rows, void *stream)   \
	{                                                                                                              \
		op("memset2D", at, bytes_of(pitch, width *(bits / 8), rows), 0, 0, stream);                            \
		return UM_PASS(cuMemsetD2D##bits##Async, (at, pitch, value, width, rows, stream));                     \
	}                                                                                                              \
	int cuMemsetD2D##bits##Async_ptsz(uint64_t at, size_t pitch, type value, size_t width, size_t rows,            \
					  void *stream)                                                                \
	{                                                                                                              \
		op("memset2D", at, bytes_of(pitch, width *(bits / 8), rows), 0, 0, OF_THREAD(stream));                 \
		return UM_PASS(cuMemsetD2D##bits##Async_ptsz, (at, pitch, value, width, rows, stream));                \
	}

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
