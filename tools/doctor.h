/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.h - umadvise doctor: what its files share
 *
 *     cmd_doctor.c     options, the state of a context on this machine, and the verdict
 *     doctor_program.c examines a program's file
 *     doctor_show.c    prints the document as text
 *
 * The result is one JSON document in the order of the text (umadvise(1) has its keys).
 */
#ifndef UM_TOOLS_DOCTOR_H
#define UM_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdio.h>

/* Invalid UTF-8 becomes question marks; NULL becomes null. */
json_t *doctor_text(const char *s);

/* Examines the program's file: an object, and whether it calls the library. NULL after an error message. */
json_t *doctor_program(const char *name, int *calls);

void doctor_show(const json_t *found, FILE *to);

#endif
