/* SPDX-License-Identifier: Apache-2.0
 *
 * tables_tensors.h - the tables of tensors: private to the tables*.c files
 */
#ifndef UM_REPORT_TABLES_TENSORS_H
#define UM_REPORT_TABLES_TENSORS_H

#include "report/tables.h"

#define UM_TENSOR_SUMS 12 /* columns */

extern const struct um_column um_tensor_columns[4 + UM_TENSOR_SUMS];
size_t um_tensor_rows(const struct um_findings *f);
struct um_value um_tensor_cell(const struct um_findings *f, size_t row, unsigned column);

extern const struct um_column um_tensor_iteration_columns[4 + UM_TENSOR_SUMS];
size_t um_tensor_iteration_rows(const struct um_findings *f);
struct um_value um_tensor_iteration_cell(const struct um_findings *f, size_t row, unsigned column);

#endif
