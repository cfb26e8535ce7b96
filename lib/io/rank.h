/* SPDX-License-Identifier: Apache-2.0
 *
 * rank.h - the place of this process in a job, as its launcher tells it
 *
 * in    the environment: variables of torchrun, Open MPI, Hydra (MPICH and others) and Slurm
 * out   rank and number of ranks, of the job and of this node
 *
 * doc/ranks.md lists the variables. Start path.
 */
#ifndef UM_IO_RANK_H
#define UM_IO_RANK_H

struct um_rank {
	const char *launcher; /* static; NULL: no launcher, and a job of one rank */
	unsigned long rank, size; /* of the job; size 0: not known */
	unsigned long local_rank, local_size; /* of the node; where they are not known 0 and 1 */
};

void um_rank_find(struct um_rank *r);

#endif
