/* SPDX-License-Identifier: Apache-2.0
 *
 * svg.h - what drawings share
 */
#ifndef UM_TOOLS_SVG_H
#define UM_TOOLS_SVG_H

#include <stdio.h>

/* Begins a drawing on white, of so many pixels; "</svg>" ends it. */
void svg_begin(FILE *to, int wide, int high);

/* Escapes a text for XML. Hidden characters become U+FFFD. */
void svg_text(FILE *to, const char *s);

/* The step of an axis: 1, 2 or 5 times a power of ten, at most `n` steps up to `all`. */
double svg_step(double all, int n);

#endif
