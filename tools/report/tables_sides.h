/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_sides.h - the iterations of several processes side by side, by number: private to the tables*.c files
 */
#ifndef UM_REPORT_TABLES_SIDES_H
#define UM_REPORT_TABLES_SIDES_H

#include "report/tables.h"

#define UM_SIDE_COLUMNS 9

extern const struct um_column um_side_columns[UM_SIDE_COLUMNS];
size_t um_side_rows(const struct um_findings *f);
struct um_value um_side_cell(const struct um_findings *f, size_t row, unsigned column);

#endif
