/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_library.h - the tables of what libumadvise says of itself, and of what a program announced: private to the
 * tables*.c files
 */
#ifndef UM_REPORT_TABLES_LIBRARY_H
#define UM_REPORT_TABLES_LIBRARY_H

#include "report/tables.h"

#define UM_LIBRARY_COLUMNS 33
#define UM_DECLARED_OPS_COLUMNS 5

extern const struct um_column um_library_columns[UM_LIBRARY_COLUMNS];
size_t um_library_rows(const struct um_findings *f);
struct um_value um_library_cell(const struct um_findings *f, size_t row, unsigned column);

extern const struct um_column um_declared_ops_columns[UM_DECLARED_OPS_COLUMNS];
size_t um_declared_ops_rows(const struct um_findings *f);
struct um_value um_declared_ops_cell(const struct um_findings *f, size_t row, unsigned column);

#endif
