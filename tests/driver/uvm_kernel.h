/* SPDX-License-Identifier: Apache-2.0
 *
 * uvm_kernel.h - what the driver's files need of the Linux kernel, in user space
 *
 * One thread, so locks do nothing. Time is a variable, and a delayed work item is run by whoever asks for it.
 */
#ifndef UM_TESTS_UVM_KERNEL_H
#define UM_TESTS_UVM_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef uint8_t NvU8, u8;
typedef uint16_t NvU16;
typedef uint32_t NvU32;
typedef uint64_t NvU64, u64;
typedef int8_t NvS8, s8;
typedef int16_t NvS16;
typedef int32_t NvS32;
typedef int64_t NvS64;

#define PAGE_SIZE 4096ull
#define PAGE_SHIFT 12
#define PAGE_ALIGNED(x) ((x) % PAGE_SIZE == 0)
#define NUMA_NO_NODE (-1)
#define MAX_NUMNODES 64
#define EAGAIN 11
#define S_IRUGO 0
#define module_param(name, type, mode) struct uvm_param_##name /* swallows the semicolon */
#define BUILD_BUG_ON(x) ((void)sizeof(char[1 - 2 * !!(x)]))
#define likely(x) (x)
#define unlikely(x) (x)
#define __read_mostly
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define min(a, b)                                                                                                      \
	({                                                                                                             \
		__typeof__(a) a_ = (a);                                                                                \
		__typeof__(b) b_ = (b);                                                                                \
		a_ < b_ ? a_ : b_;                                                                                     \
	})
#define max(a, b)                                                                                                      \
	({                                                                                                             \
		__typeof__(a) a_ = (a);                                                                                \
		__typeof__(b) b_ = (b);                                                                                \
		a_ > b_ ? a_ : b_;                                                                                     \
	})
#define pr_info(...) ((void)0)

static inline int ilog2(unsigned long x)
{
	return 63 - __builtin_clzl(x);
}

static inline unsigned long roundup_pow_of_two(unsigned long x)
{
	return x <= 1 ? 1 : 1ul << (64 - __builtin_clzl(x - 1));
}

/* --- bitmaps ------------------------------------------------------------------------------------------------------ */

#define BITS_PER_LONG 64
#define BITS_TO_LONGS(n) (((n) + 63) / 64)
#define DECLARE_BITMAP(name, n) unsigned long name[BITS_TO_LONGS(n)]

static inline int test_bit(unsigned long i, const unsigned long *map)
{
	return map[i / 64] >> i % 64 & 1;
}

static inline void __set_bit(unsigned long i, unsigned long *map)
{
	map[i / 64] |= 1ul << i % 64;
}

static inline void __clear_bit(unsigned long i, unsigned long *map)
{
	map[i / 64] &= ~(1ul << i % 64);
}

static inline int __test_and_set_bit(unsigned long i, unsigned long *map)
{
	int was = test_bit(i, map);

	__set_bit(i, map);
	return was;
}

static inline int __test_and_clear_bit(unsigned long i, unsigned long *map)
{
	int was = test_bit(i, map);

	__clear_bit(i, map);
	return was;
}

/* The first bit of [i, n) that is set after the word was xored with `flip`; n: none. */
static inline unsigned long uvm_find(const unsigned long *map, unsigned long n, unsigned long i, unsigned long flip)
{
	while (i < n) {
		unsigned long word = (map[i / 64] ^ flip) >> i % 64;

		if (word) {
			i += (unsigned long)__builtin_ctzl(word);
			return i < n ? i : n;
		}
		i = (i / 64 + 1) * 64;
	}
	return n;
}

#define find_next_bit(map, n, i) uvm_find(map, n, i, 0)
#define find_next_zero_bit(map, n, i) uvm_find(map, n, i, ~0ul)
#define find_first_bit(map, n) uvm_find(map, n, 0, 0)
#define find_first_zero_bit(map, n) uvm_find(map, n, 0, ~0ul)

static inline unsigned long find_last_bit(const unsigned long *map, unsigned long n)
{
	for (unsigned long i = n; i--;)
		if (test_bit(i, map))
			return i;
	return n;
}

/* As in the kernel, a negative length sets nothing here. */
static inline void bitmap_set(unsigned long *map, unsigned i, int n)
{
	for (; n > 0; n--)
		__set_bit(i++, map);
}

static inline void bitmap_clear(unsigned long *map, unsigned i, int n)
{
	for (; n > 0; n--)
		__clear_bit(i++, map);
}

static inline void bitmap_zero(unsigned long *map, unsigned long n)
{
	memset(map, 0, BITS_TO_LONGS(n) * sizeof *map);
}

static inline void bitmap_fill(unsigned long *map, unsigned long n)
{
	bitmap_zero(map, n);
	bitmap_set(map, 0, (int)n);
}

#define bitmap_empty(map, n) (uvm_find(map, n, 0, 0) >= (n))
#define bitmap_full(map, n) (uvm_find(map, n, 0, ~0ul) >= (n))

static inline unsigned bitmap_weight(const unsigned long *map, unsigned long n)
{
	unsigned weight = 0;

	for (unsigned long i = 0; i < n / 64; i++)
		weight += (unsigned)__builtin_popcountl(map[i]);
	if (n % 64)
		weight += (unsigned)__builtin_popcountl(map[n / 64] & ((1ul << n % 64) - 1));
	return weight;
}

static inline void bitmap_copy(unsigned long *to, const unsigned long *from, unsigned long n)
{
	memmove(to, from, BITS_TO_LONGS(n) * sizeof *to);
}

#define UVM_BITMAP_OP(name, word)                                                                                      \
	static inline int name(unsigned long *to, const unsigned long *a, const unsigned long *b, unsigned long n)     \
	{                                                                                                              \
		unsigned long any = 0;                                                                                 \
                                                                                                                       \
		for (unsigned long i = 0; i < BITS_TO_LONGS(n); i++) {                                                 \
			to[i] = (word);                                                                                \
			any |= to[i];                                                                                  \
		}                                                                                                      \
		return any != 0;                                                                                       \
	}
UVM_BITMAP_OP(bitmap_and, a[i] & b[i])
UVM_BITMAP_OP(bitmap_andnot, a[i] & ~b[i])
UVM_BITMAP_OP(bitmap_or, a[i] | b[i])

static inline void bitmap_complement(unsigned long *to, const unsigned long *from, unsigned long n)
{
	for (unsigned long i = 0; i < BITS_TO_LONGS(n); i++)
		to[i] = ~from[i];
}

#define UVM_BITMAP_TEST(name, fails)                                                                                   \
	static inline int name(const unsigned long *a, const unsigned long *b, unsigned long n)                        \
	{                                                                                                              \
		for (unsigned long i = 0; i < BITS_TO_LONGS(n); i++)                                                   \
			if (fails)                                                                                     \
				return 0;                                                                              \
		return 1;                                                                                              \
	}
UVM_BITMAP_TEST(bitmap_subset, a[i] & ~b[i])
UVM_BITMAP_TEST(bitmap_equal, a[i] ^ b[i])
UVM_BITMAP_TEST(uvm_bitmap_disjoint, a[i] & b[i])
#define bitmap_intersects(a, b, n) (!uvm_bitmap_disjoint(a, b, n))

static inline void bitmap_shift_right(unsigned long *to, const unsigned long *from, unsigned by, unsigned n)
{
	DECLARE_BITMAP(out, 512) = {0};

	for (unsigned i = by; i < n; i++)
		if (test_bit(i, from))
			__set_bit(i - by, out);
	bitmap_copy(to, out, n);
}

static inline void bitmap_shift_left(unsigned long *to, const unsigned long *from, unsigned by, unsigned n)
{
	DECLARE_BITMAP(out, 512) = {0};

	for (unsigned i = 0; i + by < n; i++)
		if (test_bit(i, from))
			__set_bit(i + by, out);
	bitmap_copy(to, out, n);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *h)
{
	h->next = h->prev = h;
}

static inline int list_empty(const struct list_head *h)
{
	return h->next == h;
}

static inline int list_is_singular(const struct list_head *h)
{
	return !list_empty(h) && h->next == h->prev;
}

static inline void uvm_list_insert(struct list_head *e, struct list_head *prev, struct list_head *next)
{
	e->prev = prev;
	e->next = next;
	prev->next = e;
	next->prev = e;
}

static inline void list_add(struct list_head *e, struct list_head *h)
{
	uvm_list_insert(e, h, h->next);
}

static inline void list_add_tail(struct list_head *e, struct list_head *h)
{
	uvm_list_insert(e, h->prev, h);
}

static inline void list_del_init(struct list_head *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	INIT_LIST_HEAD(e);
}

static inline void list_move(struct list_head *e, struct list_head *h)
{
	list_del_init(e);
	list_add(e, h);
}

static inline void list_move_tail(struct list_head *e, struct list_head *h)
{
	list_del_init(e);
	list_add_tail(e, h);
}

#define list_entry(p, type, member) container_of(p, type, member)
#define list_first_entry(h, type, member) list_entry((h)->next, type, member)
#define list_first_entry_or_null(h, type, member) (list_empty(h) ? NULL : list_first_entry(h, type, member))
#define list_for_each_entry(p, h, member)                                                                              \
	for (p = list_entry((h)->next, __typeof__(*p), member); &p->member != (h);                                     \
	     p = list_entry(p->member.next, __typeof__(*p), member))

/* --- time, work, memory, procfs ----------------------------------------------------------------------------------- */

extern NvU64 uvm_now; /* ns */

struct work_struct {
	int unused;
};

struct delayed_work {
	struct work_struct work;
	void (*fn)(struct work_struct *work);
	int armed;
	NvU64 at;
};

extern struct delayed_work *uvm_work; /* the last one that was initialised */

#define to_delayed_work(w) container_of(w, struct delayed_work, work)
#define INIT_DELAYED_WORK(d, f) ((d)->fn = (f), (d)->armed = 0, uvm_work = (d))
#define usecs_to_jiffies(us) (us)

static inline int schedule_delayed_work(struct delayed_work *d, NvU64 us)
{
	int was = d->armed;

	d->armed = 1;
	d->at = uvm_now + us * 1000;
	return !was;
}

static inline int cancel_delayed_work(struct delayed_work *d)
{
	int was = d->armed;

	d->armed = 0;
	return was;
}

#define cancel_delayed_work_sync cancel_delayed_work

struct kmem_cache {
	size_t bytes;
};

static inline struct kmem_cache *uvm_cache(size_t bytes)
{
	struct kmem_cache *c = malloc(sizeof *c);

	if (c)
		c->bytes = bytes;
	return c;
}

#define kmem_cache_free(cache, p) free(p)

typedef struct {
	long value;
} atomic64_t;

#define atomic64_inc(a) ((a)->value++)
#define atomic64_read(a) ((a)->value)

struct seq_file {
	void *private;
};

struct proc_dir_entry {
	int unused;
};

struct file;
struct mm_struct;
struct vm_area_struct;
struct page;

#define proc_remove(entry) ((void)(entry))

#endif
