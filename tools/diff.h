/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.h - compares two reports: is the second slower, and what changed
 *
 *     cmd_diff.c      the command line, and reading the inputs
 *     diff_compare.c  the comparison and its thresholds
 *     diff_differ.c   differences that make the comparison doubtful
 *     diff_show.c     output as text, CSV or JSON ("umdiff/1")
 */
#ifndef UM_TOOLS_DIFF_H
#define UM_TOOLS_DIFF_H

#include "io/out.h"
#include "formats/sheets.h"

#define DIFF_MEASURES 6
#define DIFF_KEYS 3

/* How one table of a report is compared. Rows with equal keys are added up. */
struct diff_table {
	const char *name, *keys[DIFF_KEYS + 1];
	const char *measures[DIFF_MEASURES + 1]; /* the first changed one decides the direction */
};

extern const struct diff_table diff_tables[];
extern const unsigned diff_n_tables;

enum diff_state { DIFF_SAME, DIFF_LESS, DIFF_MORE, DIFF_NEW, DIFF_GONE, DIFF_UNKNOWN };

struct diff_row {
	const struct diff_table *table;
	char *key;
	int in[2];
	double value[2][DIFF_MEASURES];
	int unknown[2][DIFF_MEASURES]; /* null: not recorded */
	int changed[DIFF_MEASURES];
	enum diff_state state;
};

/* A difference in the conditions of the two runs, for example in their devices. */
struct diff_difference {
	const char *what; /* static */
	char *of[2];
};

struct diff {
	const char *file[2]; /* borrowed */
	struct um_sheets sheets[2];
	double threshold; /* percent */
	double iterations[2], ns[2], mad_ns[2]; /* compared iterations, or 0: all kernels */
	double recorded[2]; /* iterations, all of them */
	double change, noise; /* percent; noise < 0: unknown */
	enum diff_state verdict; /* not NEW and GONE */
	int per_iteration; /* values are per iteration, because the runs recorded different numbers of iterations */
	UM_VEC(struct diff_difference) differences;
	UM_VEC(struct diff_row) rows; /* table by table, the largest change first */
	const struct diff_row *why; /* of the verdict, or NULL */
};

/* Compares the two sheets, which must exist. 0 or -ENOMEM. */
int diff_compare(struct diff *d);
void diff_fini(struct diff *d); /* the sheets, too */

/* Fills the differences. 0 or -ENOMEM. */
int diff_differences(struct diff *d);

/* The same for a measure of the summary that only one run has recorded. 0 or -ENOMEM. */
int diff_unrecorded(struct diff *d, const struct diff_row *row, int m);

/* Is a key's value a time, or bytes? */
int diff_is_ns(const char *key);
int diff_is_bytes(const char *key);

const char *diff_word(const struct diff_row *row); /* "slower", "new" */

void diff_text(struct um_out *out, const struct diff *d);
void diff_csv(struct um_out *out, const struct diff *d);
void diff_json(struct um_out *out, const struct diff *d);

#endif
