/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_access.c - detects accesses of the program's CPU code to backed memory
 *
 * A page that the simulated CPU has not mapped has no entry in the process's page tables: dropping the entries of
 * shared memory keeps its content, and the operating system restores an entry, unnoticed by the program, when anything
 * (also a system call) touches the page. So nothing is protected, nothing traps, and results cannot change; the
 * program's next call finds the entries, and serves the CPU faults before the call itself, by allocation and in
 * ascending order.
 *
 * The system's count of page faults tells whether there is anything to look for. Faults of a thread inside the
 * simulator are subtracted.
 */
#include "sim/state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define AT_ONCE 8u /* number of blocks whose entries one call reads */
#define OS_PAGE_MIN 4096u

uint64_t um_sim_os_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static _Thread_local uint64_t mine; /* page faults of this thread that are accounted for */

/* Page faults so far: of the process (RUSAGE_SELF) or of this thread. */
static uint64_t faults(int who)
{
	struct rusage u;

	if (getrusage(who, &u))
		return 0;
	return (uint64_t)u.ru_minflt + (uint64_t)u.ru_majflt;
}

/* Subtracts the faults of this thread since the last call, which are not the program's. Returns their number. */
static uint64_t subtract_own(struct um_sim *sim)
{
	uint64_t now = faults(RUSAGE_THREAD), n = now - mine;

	sim->node->follow_faults += n;
	mine = now;
	return n;
}

int um_sim_entries_open(void)
{
	return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

int um_sim_entries_read(int fd, uint64_t addr, uint64_t *entry, size_t n)
{
	size_t bytes = n * sizeof *entry;

	return pread(fd, entry, bytes, (off_t)(addr / um_sim_os_page() * sizeof *entry)) == (ssize_t)bytes ? 0 : -EIO;
}

/* For each of `n` blocks, the pages of which at least one entry is there. */
static int present(int fd, uint64_t addr, uint32_t n, uint32_t *out)
{
	uint64_t entry[AT_ONCE * UM_BLOCK_BYTES / OS_PAGE_MIN];
	size_t in_page = UM_SIM_PAGE / um_sim_os_page(), in_block = in_page * UM_SIM_PAGES;
	int err = um_sim_entries_read(fd, addr, entry, n * in_block);

	for (size_t i = 0; !err && i < n * in_block; i++) {
		if (i % in_block == 0)
			out[i / in_block] = 0;
		if (entry[i] & UM_SIM_ENTRY_PRESENT)
			out[i / in_block] |= 1u << (i % in_block / in_page);
	}
	return err;
}

int um_sim_cpu_access_supported(void)
{
	uint64_t here = 0;
	int fd, can;

	if (um_sim_os_page() < OS_PAGE_MIN || um_sim_os_page() > UM_SIM_PAGE)
		return 0;
	fd = um_sim_entries_open();
	if (fd < 0)
		return 0;
	can = !um_sim_entries_read(fd, (uint64_t)(uintptr_t)&here, &here, 1) && here & UM_SIM_ENTRY_PRESENT;
	close(fd);
	return can;
}

/* Duplicates stay readable on the CPU: only there an access counts as a read. */
static void serve(struct um_sim *sim, struct um_sim_block *b, uint32_t touched, uint64_t *t)
{
	uint32_t read = touched & b->read_mostly, write = touched & ~b->read_mostly;

	if (write)
		um_sim_cpu_touch(sim, b, write, 0, 1, t);
	if (read)
		um_sim_cpu_touch(sim, b, read, 0, 0, t);
}

/* Pages that fault when the CPU writes them: not mapped, or read-only because they are discarded. */
static uint32_t not_on_cpu(const struct um_sim_block *b)
{
	return b->all & ~(b->cmap & ~b->disc);
}

/* On the device that has it. */
static struct um_sim_block *block_at(struct um_sim *sim, struct um_sim_mem *m, uint32_t i)
{
	return um_sim_active(&sim, &m->block[i]);
}

static int look_at(struct um_sim *sim, struct um_sim_mem *m, int fd, uint64_t *t)
{
	uint32_t found[AT_ONCE];

	for (uint32_t i = 0, n; i < m->n; i += n) {
		for (n = 0; n < AT_ONCE && i + n < m->n && not_on_cpu(block_at(sim, m, i + n)); n++)
			;
		if (!n) {
			n = 1;
			continue;
		}
		if (present(fd, m->addr + (uint64_t)i * UM_BLOCK_BYTES, n, found))
			return -EIO;
		for (uint32_t k = 0; k < n; k++)
			serve(sim, block_at(sim, m, i + k), found[k] & not_on_cpu(block_at(sim, m, i + k)), t);
	}
	return 0;
}

/* The end of a run of pages. If the system refuses, an access that did not happen is seen; nothing is lost. */
static void drop(uint64_t *from, uint64_t *to)
{
	if (*to > *from)
		madvise((void *)(uintptr_t)*from, *to - *from, MADV_DONTNEED);
	*from = *to = 0;
}

static void forget_in(struct um_sim *sim, struct um_sim_mem *m, int all)
{
	uint64_t from = 0, to = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		struct um_sim_block *b = block_at(sim, m, i);
		uint32_t gone = not_on_cpu(b) & (all ? UINT32_MAX : b->stale);
		uint64_t base = m->addr + (uint64_t)i * UM_BLOCK_BYTES;

		b->stale = 0;
		while (gone) {
			unsigned first = (unsigned)__builtin_ctz(gone), n;
			uint32_t rest = ~(gone >> first);

			n = rest ? (unsigned)__builtin_ctz(rest) : UM_SIM_PAGES;
			if (base + first * (uint64_t)UM_SIM_PAGE != to) {
				drop(&from, &to);
				from = base + first * (uint64_t)UM_SIM_PAGE;
			}
			to = base + (first + n) * (uint64_t)UM_SIM_PAGE;
			gone &= n == UM_SIM_PAGES ? 0 : ~(((1u << n) - 1) << first);
		}
	}
	drop(&from, &to);
}

static void forget(struct um_sim *sim, int all)
{
	for (size_t i = 0; i < sim->mem.n; i++)
		if (sim->mem.at[i]->kind == UM_SIM_MANAGED)
			forget_in(sim, sim->mem.at[i], all);
}

void um_sim_cpu_access_serve(struct um_sim *sim, uint64_t *t)
{
	uint64_t total;
	int fd;

	if (!sim->follow)
		return;
	if (sim->node->follow_ran || sim->node->follow_stale) /* another thread's call is still in progress */
		forget(sim, sim->node->follow_ran);
	sim->node->follow_ran = sim->node->follow_stale = 0;
	total = faults(RUSAGE_SELF);
	mine = faults(RUSAGE_THREAD);
	if (total == sim->node->follow_faults)
		return;
	sim->node->follow_faults = total;
	fd = um_sim_entries_open();
	for (size_t i = 0; fd >= 0 && i < sim->mem_order.n; i++)
		if (sim->mem_order.at[i]->kind == UM_SIM_MANAGED && look_at(sim, sim->mem_order.at[i], fd, t))
			break;
	if (fd >= 0)
		close(fd);
	subtract_own(sim);
}

void um_sim_cpu_access_rearm(struct um_sim *sim)
{
	uint64_t own;

	if (!sim->follow)
		return;
	/* Host code of a kernel faults like any other; its accesses are the device's. */
	own = subtract_own(sim);
	if (sim->node->follow_stale || (sim->node->follow_ran && own))
		forget(sim, sim->node->follow_ran && own);
	sim->node->follow_ran = sim->node->follow_stale = 0;
}

void um_sim_cpu_access_prepare(void *span, size_t bytes)
{
	/* No huge pages, because one access would count for many; and not inherited by fork: as under CUDA, a child has
	 * no managed memory. */
	madvise(span, bytes, MADV_NOHUGEPAGE);
	madvise(span, bytes, MADV_DONTFORK);
}
