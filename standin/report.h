/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - what memory did in a process, as a file for whoever started it
 *
 * in    the device's sums and its ledger (gpu/sim_ledger.h)
 * out   UMADVISE_DRYRUN_OUT: one JSON object, schema "umdryrun/1" (doc/dryrun.md); %p in the name is the process's id
 * owns  that file
 *
 * The file is written when the library is loaded (empty), when the device is opened, when the program has waited for
 * it, and when the process ends; always as a whole, under another name first. So a process that is killed leaves what
 * it had done when it last waited: of the first 64 waits exactly, later on within a sixty-fourth. A child of fork
 * writes nothing.
 */
#ifndef UM_STANDIN_REPORT_H
#define UM_STANDIN_REPORT_H

void um_report_open(void); /* the device is there */
int um_report_sync(int err); /* the program has waited for it; returns `err` */

#endif
