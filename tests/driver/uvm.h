/* SPDX-License-Identifier: Apache-2.0
 *
 * uvm.h - the driver's code behind plain C: one block, one detector, one GPU's lists
 *
 * Page masks are of 512 pages of 4 KiB where they are 8 words, of 32 pages of 64 KiB where they are 32 bits. Processors
 * are 0 the CPU and 1 the GPU.
 */
#ifndef UM_TESTS_UVM_H
#define UM_TESTS_UVM_H

#include <stdint.h>

extern unsigned long uvm_asserts; /* of the driver, that failed */

/* --- prefetch_uvm.c: uvm_perf_prefetch.c -------------------------------------------------------------------------- */

struct uvm_visit {
	unsigned first, pages; /* 4 KiB pages: begin of the block in its slot of 2 MiB, and its size */
	int to_gpu; /* where the pages go */
	int preferred; /* processor; -1: none */
	/* masks of the block's pages: resident there, resident elsewhere, faulted, thrashing, mapped on the CPU */
	uint64_t here[8], there[8], faulted[8], hot[8], mapped[8];
};

/* The pages that the visit serves. */
void uvm_density(const struct uvm_visit *v, uint64_t served[8]);

/* --- thrash_uvm.c: uvm_perf_thrashing.c --------------------------------------------------------------------------- */

enum uvm_hint { UVM_HINT_NONE, UVM_HINT_PIN, UVM_HINT_THROTTLE };

void uvm_fight_open(void); /* a full block without preferred location */
void uvm_fight_prefer(int processor); /* -1: none */
void uvm_fight_place(unsigned page, int processor); /* the page (of 64 KiB) is resident there alone; -1: nowhere */
/* A fault at `ns`. `*where`: of a pin; `*until`: of a throttle. */
enum uvm_hint uvm_fight_hint(unsigned page, int processor, uint64_t ns, int *where, uint64_t *until);
enum uvm_moved { UVM_MOVED_FAULT, UVM_MOVED_ADDED, UVM_MOVED_API };
void uvm_fight_moved(unsigned page, int processor, enum uvm_moved cause, uint64_t ns);
void uvm_fight_timer(uint64_t ns); /* runs the worker that unpins, as often as it is due */
uint32_t uvm_fight_thrashing(void);
uint64_t uvm_fight_lapse(void);

/* --- policy_uvm.c: block_select_processor_residency of uvm_va_block.c --------------------------------------------- */

struct uvm_fault {
	int by, writes;
	int on_gpu, on_cpu; /* the page is resident there */
	int preferred; /* processor; -1: none */
	int accessed_by_gpu, read_mostly; /* advice */
	int pinned; /* to this processor by thrashing; -1: not */
};

/* The processor on which the page becomes resident. `*duplicate`: in addition to where it is. */
int uvm_residency(const struct uvm_fault *f, int *duplicate);

/* --- copies_uvm.c: block_copy_resident_pages_between of uvm_va_block.c -------------------------------------------- */

struct uvm_copy {
	unsigned first, pages; /* of 4 KiB */
	int added; /* by the density rule */
};

/* The copies that move `pages`, of which `added` did not fault; of pages that `there` are at the destination none. Not
 * `by_fault`: for a prefetch or an eviction. Returns their number. */
unsigned uvm_copies(int to_gpu, int by_fault, const uint64_t pages[8], const uint64_t added[8], const uint64_t there[8],
		    struct uvm_copy out[512]);

/* --- lists_uvm.c: the list functions of uvm_pmm_gpu.c and uvm_va_block.c ------------------------------------------ */

#define UVM_LIST_BLOCKS 64

void uvm_lists_open(unsigned chunks);
int uvm_lists_visit(unsigned block, uint32_t served, uint32_t written); /* of the GPU: 1, or 0 without memory */
int uvm_lists_prefetch(unsigned first, unsigned n, uint32_t pages); /* of each block: 1, or 0 without memory */
void uvm_lists_home(unsigned first, unsigned n); /* a prefetch to the host */
void uvm_lists_discard(unsigned block, uint32_t pages, int unmap);
void uvm_lists_prefer(unsigned block, int processor); /* -1: none */
void uvm_lists_host_write(unsigned block);
void uvm_lists_read_mostly(unsigned block);

struct uvm_list_state {
	uint32_t gpu, cpu, disc;
	int chunk;
	int list; /* the driver's number; -1: none */
	unsigned place; /* in the list */
};
struct uvm_list_state uvm_lists_state(unsigned block);
/* Victims since opening, in order. */
unsigned uvm_lists_victims(const unsigned **victims);

#endif
