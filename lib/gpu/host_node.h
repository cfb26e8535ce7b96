/* SPDX-License-Identifier: Apache-2.0
 *
 * host_node.h - is a NUMA node one of several that have memory?
 *
 * in    the list of nodes with memory in /sys
 *
 * The driver says which node is nearest to a device, and the kernel which nodes there are, so no library for topologies
 * is needed. Start path.
 */
#ifndef UM_GPU_HOST_NODE_H
#define UM_GPU_HOST_NODE_H

/* True if the host has memory on `node` and on others. `root`: where sys is; "" but for tests. */
int um_host_node_matters(const char *root, int node);

#endif
