/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.h - umadvise doctor: what its files share
 *
 *     cmd_doctor.c     options; what a context says when it opens here, and the verdict
 *     doctor_program.c what the file of a program shows
 *     doctor_show.c    all that as text
 *
 * What was found is one JSON document, in the order in which it is shown (umadvise(1) has its keys).
 */
#ifndef UM_TOOLS_DOCTOR_H
#define UM_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdio.h>

/* Bytes that are no UTF-8 are shown as question marks; NULL is null. */
json_t *doctor_text(const char *s);

/* What the program's file shows: an object, and whether it calls the library. NULL: said. */
json_t *doctor_program(const char *name, int *calls);

void doctor_show(const json_t *found, FILE *to);

#endif
