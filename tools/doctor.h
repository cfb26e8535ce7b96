/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor.h - umadvise doctor: what its files share
 *
 *     cmd_doctor.c     options; what a context says when it opens here, and the verdict
 *     doctor_show.c    that as text
 *
 * What was found is one JSON document, in the order in which it is shown (umadvise(1) has its keys).
 */
#ifndef UM_TOOLS_DOCTOR_H
#define UM_TOOLS_DOCTOR_H

#include <jansson.h>
#include <stdio.h>

void doctor_show(const json_t *found, FILE *to);

#endif
