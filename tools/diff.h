/* SPDX-License-Identifier: Apache-2.0
 *
 * diff.h - two reports compared: is the second slower, and what changed
 *
 *     cmd_diff.c      the command line, and reading
 *     diff_compare.c  what is compared, and what counts as a change
 *     diff_differ.c   what makes the two hard to compare
 *     diff_show.c     the forms: a text, csv, "umdiff/1"
 */
#ifndef UM_TOOLS_DIFF_H
#define UM_TOOLS_DIFF_H

#include "io/out.h"
#include "formats/sheets.h"

#define DIFF_MEASURES 6
#define DIFF_KEYS 3

/* What of a report's table is compared. Rows with equal keys are added up. */
struct diff_table {
	const char *name, *keys[DIFF_KEYS + 1];
	const char *measures[DIFF_MEASURES + 1]; /* the first that changed says whether it is more */
};

extern const struct diff_table diff_tables[];
extern const unsigned diff_n_tables;

enum diff_state { DIFF_SAME, DIFF_LESS, DIFF_MORE, DIFF_NEW, DIFF_GONE, DIFF_UNKNOWN };

struct diff_row {
	const struct diff_table *table;
	char *key;
	int in[2];
	double value[2][DIFF_MEASURES];
	int unknown[2][DIFF_MEASURES]; /* not recorded there: null */
	int changed[DIFF_MEASURES];
	enum diff_state state;
};

/* The two ran on different devices, or differ otherwise in what should be the same. */
struct diff_difference {
	const char *what; /* static */
	char *of[2];
};

struct diff {
	const char *file[2]; /* borrowed */
	struct um_sheets sheets[2];
	double threshold; /* percent */
	double iterations[2], ns[2], mad_ns[2]; /* the iterations that are compared, or 0 and all kernels */
	double recorded[2]; /* iterations, all of them */
	double change, noise; /* percent; noise < 0: not known */
	enum diff_state verdict; /* not NEW and GONE */
	int per_iteration; /* values of rows are: the numbers of iterations recorded differ */
	UM_VEC(struct diff_difference) differences;
	UM_VEC(struct diff_row) rows; /* table by table, the largest change first */
	const struct diff_row *why; /* of the verdict, or NULL */
};

/* Compares the two sheets, which are there. 0 or -ENOMEM. */
int diff_compare(struct diff *d);
void diff_fini(struct diff *d); /* the sheets, too */

/* Fills the differences. 0 or -ENOMEM, as of the next one. */
int diff_differences(struct diff *d);

/* The same for a measure of the summary that only one of the two has recorded. */
int diff_unrecorded(struct diff *d, const struct diff_row *row, int m);

/* Is a key's value a time, or bytes? */
int diff_is_ns(const char *key);
int diff_is_bytes(const char *key);

const char *diff_word(const struct diff_row *row); /* "slower", "new" */

void diff_text(struct um_out *out, const struct diff *d);
void diff_csv(struct um_out *out, const struct diff *d);
void diff_json(struct um_out *out, const struct diff *d);

#endif
