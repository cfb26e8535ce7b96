/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pages.h"

#include "base/hash.h"

struct key {
	const struct um_pages *p;
	uint64_t number;
	uint32_t process;
};

static int same(const void *user, uint32_t row)
{
	const struct key *k = user;
	const struct um_page_block *b = &k->p->blocks.at[row];

	return b->number == k->number && b->process == k->process;
}

void um_pages_fini(struct um_pages *p)
{
	um_vec_fini(&p->blocks);
	um_index_fini(&p->index);
}

struct um_page_block *um_pages_find(struct um_pages *p, uint32_t process, uint64_t address)
{
	struct key k = {p, address / UM_PAGES_BLOCK, process};
	uint32_t row = p->last;

	if (row >= p->blocks.n || !same(&k, row))
		row = um_index_find(&p->index, um_hash_u64(process, k.number), same, &k);
	if (row == UM_INDEX_NONE)
		return NULL;
	p->last = row;
	return &p->blocks.at[row];
}

int um_pages_at(struct um_pages *p, uint32_t process, uint64_t address, struct um_page_block **out)
{
	struct um_page_block fresh = {.number = address / UM_PAGES_BLOCK,
				      .process = process,
				      .fault_row = UM_PAGES_NONE,
				      .fault_tensor = UM_PAGES_NONE,
				      .cpu_tensor = UM_PAGES_NONE,
				      .iteration = UM_PAGES_NONE,
				      .hint = UM_PAGES_NONE};

	*out = um_pages_find(p, process, address);
	if (*out)
		return 0;
	if (p->blocks.n >= UM_PAGES_BLOCKS) {
		p->left_out++;
		return 0;
	}
	if (um_vec_push(&p->blocks, fresh))
		return -ENOMEM;
	if (um_index_add(&p->index, um_hash_u64(process, fresh.number), (uint32_t)(p->blocks.n - 1))) {
		p->blocks.n--;
		return -ENOMEM;
	}
	p->last = (uint32_t)(p->blocks.n - 1);
	*out = &p->blocks.at[p->last];
	return 0;
}
