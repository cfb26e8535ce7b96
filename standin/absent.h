/* SPDX-License-Identifier: Apache-2.0
 *
 * absent.h - functions of CUDA's libraries that the stand-ins lack
 *
 * in    a name
 * out   a line on standard error, once a process and library
 * owns  the names that were told
 *
 * A program that refers to such a function starts. A call of it prints one line, and returns the library's status for
 * what is not supported. The runtime's names are listed in rt_absent.h, because headers of one version do not name
 * another's. The build takes those of other libraries from CUDA's headers (absent.sh), if configure finds them.
 */
#ifndef UM_STANDIN_ABSENT_H
#define UM_STANDIN_ABSENT_H

/* `name` has static storage. Safe to call on any thread. */
void um_absent_tell(const char *name);

#endif
