/* SPDX-License-Identifier: Apache-2.0
 *
 * hash.h - 64-bit hash functions for fingerprints (not for hostile keys)
 */
#ifndef UM_BASE_HASH_H
#define UM_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Folds one word into a running hash; the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA'14). */
static inline uint64_t um_hash_u64(uint64_t h, uint64_t x)
{
	h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
	return h ^ (h >> 31);
}

/* A tenfold cheaper fold for the inner words of a key; the last word goes through um_hash_u64. The rotation moves the
 * well mixed high bits of the product to the position of the next word. */
static inline uint64_t um_hash_fold(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h << 29 | h >> 35;
}

/* FNV-1a over bytes. */
static inline uint64_t um_hash_bytes(const char *at, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)at[i]) * 0x100000001b3ull;
	return h;
}

/* The same over a string; NULL hashes like "". */
static inline uint64_t um_hash_str(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; s && *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h;
}

#endif
