/* SPDX-License-Identifier: Apache-2.0 */
#include "io/rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_MOST 65536 /* ranks of a node */

/* The innermost launcher first: a job of Slurm starts mpirun or torchrun, and mpirun may start torchrun on each node.
 * RANK is a common name, so it counts before the others only together with torchrun's other variable. */
static const struct launcher {
	const char *name;
	const char *rank;
	const char *with; /* or NULL */
	const char *size, *local_rank, *local_size;
} launchers[] = {
	{"torchrun", "RANK", "WORLD_SIZE", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", NULL, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	 "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"Hydra", "PMI_RANK", NULL, "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
	{"Slurm", "SLURM_PROCID", NULL, "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
	{"RANK", "RANK", NULL, "", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

/* Nothing but a number is accepted: the value becomes part of a file's name. `*end`: what follows; NULL: nothing. */
static int read_number(const char *text, unsigned long *n, const char **end)
{
	char *stop;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoul(text, &stop, 10);
	if (end)
		*end = stop;
	return errno || (!end && *stop) ? -EINVAL : 0;
}

static int read_variable(const char *name, unsigned long *n)
{
	return read_number(secure_getenv(name), n, NULL);
}

/* The entry of this node in a list of Slurm: "4(x2),3" is 4, 4, 3. */
static int read_list(const char *name, unsigned long node, unsigned long *n)
{
	const char *text = secure_getenv(name);
	unsigned long times;

	while (text && !read_number(text, n, &text)) {
		times = 1;
		if (strncmp(text, "(x", 2) == 0 && (read_number(text + 2, &times, &text) || *text++ != ')'))
			return -EINVAL;
		if (node < times)
			return 0;
		node -= times;
		text = *text == ',' ? text + 1 : NULL;
	}
	return -EINVAL;
}

static void find_local(const struct launcher *l, struct um_rank *r)
{
	unsigned long rank, size, node;
	int err = read_variable(l->local_rank, &rank);

	if (!err && read_variable(l->local_size, &size))
		err = read_variable("SLURM_NODEID", &node) ? -EINVAL : read_list(l->local_size, node, &size);
	if (err || rank >= size || size > LOCAL_MOST)
		return;
	r->local_rank = rank;
	r->local_size = size;
}

void um_rank_find(struct um_rank *r)
{
	*r = (struct um_rank){.local_size = 1};
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		const struct launcher *l = &launchers[i];

		if ((l->with && !secure_getenv(l->with)) || read_variable(l->rank, &r->rank))
			continue;
		r->launcher = l->name;
		if (read_variable(l->size, &r->size) || r->rank >= r->size)
			r->size = 0;
		find_local(l, r);
		return;
	}
	r->rank = 0;
}
