/* SPDX-License-Identifier: Apache-2.0
 *
 * vec.h - growable arrays
 *
 * A vector is three fields in the owner's struct: pointer, count, capacity. Nothing shrinks; um_vec_clear keeps the
 * memory, so that a structure that is refilled every iteration stops allocating once warm. Errors: um_vec_reserve
 * returns 0 or -ENOMEM; on failure the vector is unchanged.
 */
#ifndef UM_BASE_VEC_H
#define UM_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UM_VEC(type)                                                                                                   \
	struct {                                                                                                       \
		type *at;                                                                                              \
		size_t n;                                                                                              \
		size_t cap;                                                                                            \
	}

/* Makes room for `more` elements after the last one. */
static inline int um_vec_grow_(void **at, size_t n, size_t *cap, size_t more, size_t size)
{
	if (more <= *cap - n)
		return 0;
	if (more > SIZE_MAX / size / 2 - n)
		return -ENOMEM;
	size_t want = *cap ? *cap : 8;
	while (want < n + more)
		want *= 2;
	void *p = realloc(*at, want * size);
	if (!p)
		return -ENOMEM;
	*at = p;
	*cap = want;
	return 0;
}

#define um_vec_reserve(v, more) um_vec_grow_((void **)&(v)->at, (v)->n, &(v)->cap, (more), sizeof(*(v)->at))

/* Appends `x`; evaluates to 0 or -ENOMEM. */
#define um_vec_push(v, x) (um_vec_reserve((v), 1) ? -ENOMEM : ((v)->at[(v)->n++] = (x), 0))

/* Lengthens a vector to `count` elements, all zero; evaluates to 0 or -ENOMEM. */
static inline int um_vec_fill_(void **at, size_t *n, size_t *cap, size_t count, size_t size)
{
	if (*n >= count)
		return 0;
	if (um_vec_grow_(at, *n, cap, count - *n, size))
		return -ENOMEM;
	memset((char *)*at + *n * size, 0, (count - *n) * size);
	*n = count;
	return 0;
}

#define um_vec_fill(v, count) um_vec_fill_((void **)&(v)->at, &(v)->n, &(v)->cap, (count), sizeof(*(v)->at))

#define um_vec_clear(v) ((void)((v)->n = 0))

#define um_vec_fini(v) (free((v)->at), (v)->at = NULL, (v)->n = 0, (v)->cap = 0)

#endif
