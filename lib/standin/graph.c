/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: none yet.
 */
#include "standin/work.h"

const struct um_entry um_graph_entries[] = {{0}};
