/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_causes.h - the tables of findings, reasons and hints: private to the tables*.c files
 */
#ifndef UM_REPORT_TABLES_CAUSES_H
#define UM_REPORT_TABLES_CAUSES_H

#include "report/tables.h"

#define UM_FINDING_COLUMNS 19
#define UM_REASON_COLUMNS 10
#define UM_HINT_COLUMNS 9
#define UM_VERDICT_COLUMNS 5

extern const struct um_column um_finding_columns[UM_FINDING_COLUMNS];
size_t um_finding_rows(const struct um_findings *f);
struct um_value um_finding_cell(const struct um_findings *f, size_t row, unsigned column);

extern const struct um_column um_verdict_columns[UM_VERDICT_COLUMNS];
size_t um_verdict_rows(const struct um_findings *f);
struct um_value um_verdict_cell(const struct um_findings *f, size_t row, unsigned column);

extern const struct um_column um_reason_columns[UM_REASON_COLUMNS];
size_t um_reason_rows(const struct um_findings *f);
struct um_value um_reason_cell(const struct um_findings *f, size_t row, unsigned column);

extern const struct um_column um_hint_columns[UM_HINT_COLUMNS];
size_t um_hint_rows(const struct um_findings *f);
struct um_value um_hint_cell(const struct um_findings *f, size_t row, unsigned column);

#endif
