/* SPDX-License-Identifier: Apache-2.0
 *
 * absent.h - functions of CUDA's libraries that the stand-ins lack
 *
 * in    a name
 * out   a line on standard error, once a process and library
 * owns  the names that were told
 *
 * A program that refers to such a function starts; a call of it is told and refused. The runtime's names are listed in
 * rt_absent.h, because headers of one version do not name another's; those of other libraries are taken from CUDA's
 * headers when this is built (absent.sh), if configure finds them.
 */
#ifndef UM_STANDIN_ABSENT_H
#define UM_STANDIN_ABSENT_H

/* `name` has static storage. Safe to call on any thread. */
void um_absent_tell(const char *name);

#endif
