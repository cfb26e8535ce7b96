/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/leftovers.h"

#include "inject/declared.h"

#include "base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define FIRST_DOUBT 8
#define MOST_DOUBT 255 /* for ever */
#define NO_POINTER 4 /* launches until a word is uncertain */

/* A word at the latest launch, and what it pointed to. */
struct um_leftover_word {
	uint64_t word;
	uint32_t shape; /* 0: nothing */
	uint8_t doubt; /* launches that may not change its shape before it is a use */
	uint8_t declared_used, declared_unused; /* by a framework's operation at this place */
	uint8_t empty; /* it has pointed to nothing at this place */
	uint8_t varies; /* such an operation used it, after its shape had changed */
	uint8_t old; /* the same word pointed to something else before: it was not written for this launch */
	uint8_t shared, alone; /* while it was uncertain: a certain word pointed to its tensor; none did */
};

struct place {
	uint64_t key;
	struct um_leftover_word *at; /* NULL: an empty entry */
};

struct um_leftovers {
	pthread_mutex_t lock; /* guards what follows, but word[].open */
	struct place *places; /* by key, with linear probing */
	size_t n, room; /* room: a power of two, or 0 */
	int uncertain; /* a word is */
	struct {
		_Atomic uint8_t open; /* it may be one */
		int8_t votes; /* of frameworks' operations at all places: those that used it less those that did not */
		uint8_t no_pointer; /* launches in which it was neither NULL nor an address, up to NO_POINTER */
	} word[];
};

_Thread_local struct um_launch_row um_launch_row;

/* --- which parameters have some ----------------------------------------------------------------------------------- */

/* The kernel's, made if necessary, and kept as long as its layout. NULL: no memory. */
static struct um_leftovers *find(const struct um_function_layout *of)
{
	struct um_function_layout *f = (struct um_function_layout *)(uintptr_t)of;
	struct um_leftovers *l = atomic_load(&f->leftovers), *made;

	if (l)
		return l;
	made = calloc(1, sizeof *made + f->n * sizeof *made->word);
	if (!made)
		return NULL;
	pthread_mutex_init(&made->lock, NULL);
	if (atomic_compare_exchange_strong(&f->leftovers, &l, made))
		return made;
	pthread_mutex_destroy(&made->lock);
	free(made);
	return l;
}

/* Each word of the parameter of word `i` may be a leftover. */
static void open_param(struct um_leftovers *l, const struct um_function_layout *f, unsigned i)
{
	for (unsigned k = 0; k < f->n; k++)
		if (f->word[k].param == f->word[i].param)
			atomic_store_explicit(&l->word[k].open, 1, memory_order_relaxed);
}

void um_leftovers_saw(const struct um_function_layout *f, unsigned i)
{
	struct um_function_layout *own = (struct um_function_layout *)(uintptr_t)f;
	uint32_t other = atomic_exchange(&own->dead_word, i + 1);
	struct um_leftovers *l;

	if (!other || f->word[other - 1].param != f->word[i].param)
		return;
	l = find(f);
	if (l && other == i + 1)
		atomic_store_explicit(&l->word[i].open, 1, memory_order_relaxed);
	else if (l)
		open_param(l, f, i);
}

/* --- a launch ----------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const struct um_launch_row *row)
{
	return um_hash_u64(um_hash_fold(row->n, row->last), row->before);
}

/* The place of that key, or the empty entry for it. There is room. */
static struct place *find_place(struct place *places, size_t room, uint64_t key)
{
	size_t i = key & (room - 1);

	while (places[i].at && places[i].key != key)
		i = (i + 1) & (room - 1);
	return &places[i];
}

static void forget_places(struct um_leftovers *l)
{
	for (size_t i = 0; i < l->room; i++)
		free(l->places[i].at);
	free(l->places);
	l->places = NULL;
	l->n = l->room = 0;
}

/* Makes room for one more place. 0 or -ENOMEM. */
static int grow(struct um_leftovers *l, unsigned words)
{
	size_t room = l->room ? 2 * l->room : 16;
	struct place *places;

	if (l->n < l->room / 2)
		return 0;
	if (l->n * words > UM_LEFTOVER_WORDS) {
		forget_places(l);
		room = 16;
	}
	places = calloc(room, sizeof *places);
	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < l->room; i++)
		if (l->places[i].at)
			*find_place(places, room, l->places[i].key) = l->places[i];
	free(l->places);
	l->places = places;
	l->room = room;
	return 0;
}

/* The words of the place where the thread is. NULL: no memory. */
static struct um_leftover_word *find_words(struct um_leftovers *l, unsigned words, int *is_new)
{
	uint64_t key = key_of(&um_launch_row);
	struct place *p = l->room ? find_place(l->places, l->room, key) : NULL;

	*is_new = !p || !p->at;
	if (!*is_new)
		return p->at;
	if (grow(l, words))
		return NULL;
	p = find_place(l->places, l->room, key);
	p->at = calloc(words, sizeof *p->at);
	p->key = key;
	l->n += p->at != NULL;
	return p->at;
}

void um_leftovers_begin(struct um_leftovers_scan *s, const struct um_function_layout *f)
{
	struct um_leftovers *l = find(f);

	*s = (struct um_leftovers_scan){.f = f, .l = l};
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	s->at = find_words(l, f->n, &s->is_new);
	s->uncertain = s->at && l->uncertain;
}

int um_leftovers_holds_others(const struct um_leftovers_scan *s, unsigned i)
{
	return s->l->word[i].no_pointer == NO_POINTER;
}

/* Of the tensor and the place in it that the address names. Never 0 if there is one. */
static uint32_t shape_of(const struct um_range_seen *r, uint64_t addr)
{
	return r ? (uint32_t)(um_hash_u64(r->bytes, addr - r->at) >> 32) | 1 : 0;
}

/* A framework's operation makes the launch. */
static void note_declared(struct um_leftovers_scan *s, struct um_leftover_word *w, unsigned i,
			  const struct um_range_seen *r)
{
	enum um_declared declared = um_declared_of(r);
	int8_t *votes = &s->l->word[i].votes;

	if (declared == UM_DECLARED_USED) {
		w->declared_used = 1;
		w->varies |= w->doubt > 0;
		*votes += *votes < INT8_MAX;
	} else if (declared == UM_DECLARED_UNUSED) {
		*votes -= *votes > INT8_MIN;
		if (r && !w->declared_unused)
			open_param(s->l, s->f, i);
		w->declared_unused = 1;
	}
}

/* Compares the word with the one of the latest launch at the place. */
static void compare(struct um_leftover_word *w, uint64_t word, uint32_t shape)
{
	if (w->shape == shape)
		w->doubt -= w->doubt > 0 && w->doubt < MOST_DOUBT;
	else if (w->doubt)
		w->doubt = MOST_DOUBT;
	else
		w->doubt = FIRST_DOUBT;
	w->old = w->word == word && (w->old || w->shape != shape);
	w->word = word;
	w->shape = shape;
	w->empty |= !shape;
}

static int in_struct(const struct um_function_layout *f, unsigned i)
{
	return (i && f->word[i - 1].param == f->word[i].param) ||
	       (i + 1 < f->n && f->word[i + 1].param == f->word[i].param);
}

/* The word is neither NULL nor an address. A parameter of one word is always written. */
static void note_no_pointer(struct um_leftovers_scan *s, unsigned i)
{
	uint8_t *n = &s->l->word[i].no_pointer;

	if (*n < NO_POINTER && in_struct(s->f, i) && ++*n == NO_POINTER)
		s->l->uncertain = 1;
}

int um_leftovers_is_use(struct um_leftovers_scan *s, unsigned i, uint64_t addr, int shared)
{
	const struct um_range_seen *r = um_ranges_see(addr);
	struct um_leftover_word *w;
	uint32_t shape = shape_of(r, addr);

	if (!s->at)
		return 1;
	w = &s->at[i];
	if (s->is_new)
		*w = (struct um_leftover_word){.word = addr, .shape = shape};
	compare(w, addr, shape);
	if (addr && !shape)
		note_no_pointer(s, i);
	else if (um_leftovers_is_uncertain(s, i))
		*(shared ? &w->shared : &w->alone) = 1;
	if (um_declared_on)
		note_declared(s, w, i, r);
	if (w->old)
		atomic_store_explicit(&s->l->word[i].open, 1, memory_order_relaxed);
	if (w->declared_unused)
		return 0;
	if (!w->declared_used && (w->empty || s->l->word[i].votes < 0 || (w->shared && w->alone)))
		return 0;
	return !atomic_load_explicit(&s->l->word[i].open, memory_order_relaxed) ||
	       (!w->old && (w->varies || !w->doubt));
}

void um_leftovers_end(struct um_leftovers_scan *s)
{
	if (s->l)
		pthread_mutex_unlock(&s->l->lock);
}
