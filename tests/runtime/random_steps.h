/* SPDX-License-Identifier: Apache-2.0
 *
 * random_steps.h - steps of a random program (private to it)
 *
 * in    a thread of the program, its dice
 * out   calls of the library and of the device; versions of what they write
 *
 * Each call belongs to the thread that it is about.
 */
#ifndef UM_TESTS_RANDOM_STEPS_H
#define UM_TESTS_RANDOM_STEPS_H

#include "random_program.h"

#include "sim/sim.h"

uint32_t prog_roll(uint64_t *dice, uint32_t n);

/* The first one is kept. */
void prog_wrong(struct prog *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A call that returns an error is wrong. */
void prog_check(struct prog *p, int err, const struct prog_thread *w, const char *call);

/* Waits for the streams that use the tensor; NULL: for all streams of the thread. */
void prog_wait(struct prog_thread *w, struct prog_tensor *t);

/* Announces an operation on stream number `s` of the thread, and launches its kernel. */
void prog_launch(struct prog_thread *w, unsigned s, struct prog_use *uses, unsigned n, int announce_only);

void prog_undefine(struct prog_tensor *t);
void prog_step(struct prog_thread *w);
void prog_make_tensor(struct prog_thread *w, struct prog_tensor *t, int number);
void prog_check_content(struct prog *p); /* nothing may be running */

#endif
