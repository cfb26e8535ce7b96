/* SPDX-License-Identifier: Apache-2.0
 *
 * paint.h - colour for terminals
 */
#ifndef UM_TOOLS_PAINT_H
#define UM_TOOLS_PAINT_H

enum paint { PAINT_OFF, PAINT_HEADING, PAINT_HIGH, PAINT_MEDIUM, PAINT_LOW, PAINT_GOOD };
enum paint_when { PAINT_AUTO, PAINT_ALWAYS, PAINT_NEVER };

/* Evaluates --color. `fd`: descriptor of the tables; -1: a file. */
void paint_init(enum paint_when when, int fd);

/* The escape sequence, or "". PAINT_OFF ends all others. */
const char *paint(enum paint p);

#endif
