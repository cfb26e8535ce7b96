/* SPDX-License-Identifier: Apache-2.0
 *
 * report.h - the report of a process under `umadvise dryrun`, as a file
 *
 * in    the device's sums and its ledger (sim/ledger.h)
 * out   UMADVISE_DRYRUN_OUT: one JSON object, schema "umdryrun/1" (doc/dryrun.md); %p in the name is the process id
 * owns  that file
 *
 * The file is written when the library is loaded (empty), when the device is opened, when the program has waited for
 * it, and when the process ends; always as a whole, first under another name. So a killed process leaves the figures of
 * its last wait: exact for the first 64 waits, later within a sixty-fourth. A child of fork writes nothing.
 */
#ifndef UM_STANDIN_REPORT_H
#define UM_STANDIN_REPORT_H

void um_report_open(void); /* the device was opened */
int um_report_sync(int err); /* the program has waited for it; returns `err` */

#endif
