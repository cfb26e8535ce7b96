/* SPDX-License-Identifier: Apache-2.0
 *
 * half.h - 16-bit floating-point numbers (__half, __nv_bfloat16) to and from float
 *
 * in    bits
 * out   the same value; from float: the nearest, ties to even
 * owns  nothing
 *
 * Written with integers, because not every compiler and machine has the types.
 */
#ifndef UM_STANDIN_HALF_H
#define UM_STANDIN_HALF_H

#include <stdint.h>
#include <string.h>

#define UM_FLOAT_INFINITY 0x7f800000u /* its bits */

static inline uint32_t um_float_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float um_float_of(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

static inline float um_half_load(uint16_t h)
{
	uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;

	if (magnitude >= 0x0f800000) /* infinite, or no number */
		return um_float_of(magnitude | UM_FLOAT_INFINITY | sign);
	return um_float_of(um_float_bits(um_float_of(magnitude) * 0x1p112f) | sign); /* the bias is 15, not 127 */
}

static inline uint16_t um_half_store(float x)
{
	uint32_t u = um_float_bits(x), sign = u >> 16 & 0x8000;

	u &= 0x7fffffff;
	if (u > UM_FLOAT_INFINITY)
		return (uint16_t)(sign | 0x7e00);
	if (u >= 0x477ff000) /* 65520 is halfway to what would follow the largest */
		return (uint16_t)(sign | 0x7c00);
	if (u < 0x38800000) /* subnormal: the last bit of a float in [0.5, 1) has its weight, 2^-24 */
		return (uint16_t)(sign | (um_float_bits(um_float_of(u) + 0.5f) - 0x3f000000));
	u += 0xfff + (u >> 13 & 1);
	return (uint16_t)(sign | (u - 0x38000000) >> 13);
}

static inline float um_bfloat_load(uint16_t b)
{
	return um_float_of((uint32_t)b << 16);
}

static inline uint16_t um_bfloat_store(float x)
{
	uint32_t u = um_float_bits(x);

	if ((u & 0x7fffffff) > UM_FLOAT_INFINITY)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
