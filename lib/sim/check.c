/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c - compares the memory that a kernel's host code touches with the ranges declared for the kernel
 *
 * Before the host code runs, the entries of the process's page tables are dropped: shared memory keeps its content. The
 * entries found afterwards are the pages that it touched. A hash of each page, computed when the page was last known,
 * shows which of them it wrote.
 *
 * The system maps up to 64 KiB around a page that is read, so a page that was only read counts only if no declared
 * range is that near. Another thread that faults meanwhile may have touched a page, and swapped-out memory has lost its
 * entries: such a run is not checked. In some virtual machines one touched page in a million has no entry. If it was
 * written, its hash would be out of date, and the next kernel that reads it would seem to write it: so pages that a
 * kernel, or a discard, may have written are looked at without an entry, too.
 */
#include "sim/check.h"

#include "base/hash.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define AROUND 65536u
#define AT_ONCE 512u /* entries read in one call */

struct judge {
	const struct um_sim_check *check;
	struct um_sim_stray run; /* bytes 0: empty */
	int unsure; /* other threads have touched pages, too: nothing is reported */
};

/* A page of zeros, the initial content of memory, has hash 0. Other threads of the program may write meanwhile. */
__attribute__((no_sanitize("thread"))) static uint64_t page_hash(uint64_t addr, uint64_t bytes)
{
	const uint64_t *word = (const uint64_t *)(uintptr_t)addr, *end = word + bytes / sizeof *word;
	uint64_t h[4] = {0}; /* four independent chains */

	for (; word < end; word += 4)
		for (int i = 0; i < 4; i++)
			h[i] = um_hash_fold(h[i], word[i]);
	return um_hash_fold(um_hash_fold(um_hash_fold(h[0], h[1]), h[2]), h[3]);
}

static void report(struct judge *j)
{
	if (j->run.bytes && !j->unsure)
		j->check->stray(j->check->arg, &j->run);
	j->run.bytes = 0;
}

static void found(struct judge *j, uint64_t addr, uint64_t bytes, int declared, int written)
{
	struct um_sim_stray *run = &j->run;

	if (!run->bytes || run->addr + run->bytes != addr || run->declared != declared || run->written != written) {
		report(j);
		*run = (struct um_sim_stray){addr, 0, declared, written};
	}
	run->bytes += bytes;
}

/* Combines the accesses of all ranges that intersect [from, to); and of those that contain all of it. */
static void declared_for(const struct um_sim_check *c, uint64_t from, uint64_t to, uint32_t *meet, uint32_t *hold)
{
	*meet = *hold = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		uint64_t begin = (uint64_t)(uintptr_t)c->touch[i].ptr, end = begin + c->touch[i].bytes;

		if (begin < to && end > from)
			*meet |= c->touch[i].access;
		if (begin <= from && end >= to)
			*hold |= c->touch[i].access;
	}
}

static int may_have_written(const struct um_sim_check *c, uint64_t addr, uint64_t page)
{
	uint32_t meet, unused;

	declared_for(c, addr, addr + page, &meet, &unused);
	return meet & UM_WRITE;
}

static void judge_page(struct judge *j, uint64_t addr, uint64_t page, int written)
{
	uint64_t around = addr & ~(uint64_t)(AROUND - 1);
	uint32_t meet, hold, near, unused;

	declared_for(j->check, addr, addr + page, &meet, &hold);
	declared_for(j->check, around, around + AROUND, &near, &unused);
	if (written ? !meet : !near)
		found(j, addr, page, 0, written);
	else if (written && meet == UM_READ && hold == UM_READ)
		found(j, addr, page, 1, 1);
}

/* Hashes each page with an entry. `j` (may be NULL) collects violations of the kernel that ran since. */
static int look_at(struct um_sim_mem *m, int fd, struct judge *j)
{
	uint64_t entry[AT_ONCE], page = um_sim_os_page(), pages = (m->bytes + page - 1) / page;

	for (uint64_t i = 0, n; i < pages; i += n) {
		n = pages - i < AT_ONCE ? pages - i : AT_ONCE;
		if (um_sim_entries_read(fd, m->addr + i * page, entry, n))
			return -EIO;
		for (uint64_t k = 0; k < n; k++) {
			uint64_t addr = m->addr + (i + k) * page, was = m->seen[i + k];
			int present = (entry[k] & UM_SIM_ENTRY_PRESENT) != 0;

			if (!present && !(j && may_have_written(j->check, addr, page)))
				continue;
			m->seen[i + k] = page_hash(addr, page);
			if (j && present)
				judge_page(j, addr, page, m->seen[i + k] != was);
		}
	}
	return 0;
}

/* Afterwards no page has an entry. Locked memory keeps its entries: an error. */
static int look(struct um_sim *sim, struct judge *j)
{
	int fd = um_sim_entries_open(), err = fd < 0 ? -EIO : 0;

	for (size_t i = 0; i < sim->mem.n && !err; i++) {
		struct um_sim_mem *m = sim->mem.at[i];

		if (!m->seen)
			continue;
		err = look_at(m, fd, j);
		if (!err && madvise(m->span, m->span_bytes, MADV_DONTNEED))
			err = -EBUSY;
	}
	if (j)
		report(j);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Faults of other threads so far, and swapped pages that this thread has read. */
static uint64_t disturbed(void)
{
	struct rusage all, own;

	if (getrusage(RUSAGE_SELF, &all) || getrusage(RUSAGE_THREAD, &own))
		return 0;
	return (uint64_t)(all.ru_minflt + all.ru_majflt - own.ru_minflt);
}

void um_sim_check_run(struct um_sim *sim, const struct um_sim_check *check, void (*fn)(void *arg))
{
	struct judge j = {.check = check};
	int err = look(sim, NULL);
	uint64_t before;

	before = disturbed();
	fn(check->arg);
	j.unsure = err || disturbed() != before;
	look(sim, &j);
}

void um_sim_check_wrote(struct um_sim_mem *m, uint64_t addr, uint64_t bytes)
{
	uint64_t page = um_sim_os_page(), i = (addr - m->addr) / page;

	for (; m->seen && m->addr + i * page < addr + bytes; i++)
		m->seen[i] = page_hash(m->addr + i * page, page);
}

int um_sim_check_begin(struct um_sim_mem *m)
{
	uint64_t page = um_sim_os_page();

	um_sim_cpu_access_prepare(m->span, m->span_bytes);
	m->seen = calloc((m->bytes + page - 1) / page, sizeof *m->seen);
	return m->seen ? 0 : -ENOMEM;
}
