/* SPDX-License-Identifier: Apache-2.0
 *
 * mutate.h - mutated files: the same for the same seed, on every machine
 *
 * in    the files of a corpus, and words of the formats (formats.dict)
 * out   mutation `n`: one of the files with one to eight changes to its bytes, numbers, lines or blocks
 * owns  copies of the files
 */
#ifndef UM_TESTS_MUTATE_H
#define UM_TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#define MUTATE_LARGEST 131072 /* bytes of a mutated file */

struct mutate_file {
	uint8_t *data;
	size_t size;
};

struct mutate {
	struct mutate_file *files, *words;
	size_t n_files, n_words;
};

/* Takes a copy; 0 or -1: no memory. */
int mutate_file_add(struct mutate *m, const uint8_t *data, size_t size);

/* The words of a libFuzzer dictionary; without the file, there are none. */
void mutate_words_read(struct mutate *m, const char *path);
void mutate_fini(struct mutate *m);

/* Mutation `n` into `to`, of MUTATE_LARGEST bytes; its size. There is a file. */
size_t mutate_make(const struct mutate *m, uint64_t n, uint8_t *to);

#endif
