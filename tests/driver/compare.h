/* SPDX-License-Identifier: Apache-2.0
 *
 * compare.h - the simulated GPU and the driver's code, side by side on random inputs
 */
#ifndef UM_TESTS_COMPARE_H
#define UM_TESTS_COMPARE_H

#include "sim/state.h"
#include "uvm.h"

struct compare_row {
	const char *name;
	const char *documented; /* why the two differ here; NULL: they may not */
	unsigned long states, differ;
};

/* Random numbers, the same in each run. */
uint64_t compare_random(void);
uint32_t compare_below(uint32_t n);

/* A device with one managed allocation of that size; the simulation's clock stands still. */
struct um_sim *compare_open(uint64_t driver, unsigned capacity, uint64_t bytes, void (*log)(void *, const char *));
void compare_close(struct um_sim *sim);

/* Each adds rows and returns their number. `driver`: its major version. */
unsigned compare_density(struct compare_row *rows, unsigned long states, uint64_t driver);
unsigned compare_fights(struct compare_row *rows, unsigned long states, uint64_t driver);
unsigned compare_policies(struct compare_row *rows, unsigned long states, uint64_t driver);
unsigned compare_copies(struct compare_row *rows, unsigned long states);
unsigned compare_lists(struct compare_row *rows, unsigned long states, uint64_t driver);

/* Counts a state; prints the first differences of a row that may not differ. Returns `same`. */
int compare_judge(struct compare_row *row, int same);

#endif
