/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of files for each process: %p and %r, and which variable of which launcher is the rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file_name.h"
#include "io/rank.h"
#include "tap.h"

static const char *const variables[] = {"RANK",
					"WORLD_SIZE",
					"LOCAL_RANK",
					"LOCAL_WORLD_SIZE",
					"OMPI_COMM_WORLD_RANK",
					"OMPI_COMM_WORLD_SIZE",
					"OMPI_COMM_WORLD_LOCAL_RANK",
					"OMPI_COMM_WORLD_LOCAL_SIZE",
					"PMI_RANK",
					"PMI_SIZE",
					"MPI_LOCALRANKID",
					"MPI_LOCALNRANKS",
					"SLURM_PROCID",
					"SLURM_NTASKS",
					"SLURM_LOCALID",
					"SLURM_NODEID",
					"SLURM_STEP_TASKS_PER_NODE"};

static struct um_rank rank;

static void clear(void)
{
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		unsetenv(variables[i]);
}

static void is_name(const char *pattern, const char *want, const char *what)
{
	char *got = um_file_name(pattern);

	if (!got)
		tap_bail("no memory");
	is_str(got, want, "%s: %s", pattern, what);
	free(got);
}

/* The variables as env(1) takes them, separated by blanks. */
static void set_all(const char *set)
{
	char text[300], *save = NULL;

	clear();
	snprintf(text, sizeof text, "%s", set);
	for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		char *value = strchr(s, '=');

		*value++ = '\0';
		setenv(s, value, 1);
	}
}

static void is_rank(const char *set, unsigned long want, const char *what)
{
	set_all(set);
	um_rank_find(&rank);
	is_u64(rank.rank, want, "%s: %s", set, what);
}

static void is_local(const char *set, unsigned long size, unsigned long local_rank, unsigned long local_size,
		     const char *what)
{
	set_all(set);
	um_rank_find(&rank);
	ok(rank.size == size && rank.local_rank == local_rank && rank.local_size == local_size,
	   "%s: %s (%lu; %lu of %lu)", set, what, rank.size, rank.local_rank, rank.local_size);
}

static void local_ranks(void)
{
	is_local("RANK=6 WORLD_SIZE=8 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4", 8, 2, 4, "torchrun's local rank");
	is_local("OMPI_COMM_WORLD_RANK=6 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=2 "
		 "OMPI_COMM_WORLD_LOCAL_SIZE=4",
		 8, 2, 4, "Open MPI's local rank");
	is_local("PMI_RANK=6 PMI_SIZE=8 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=4", 8, 2, 4, "Hydra's local rank");
	is_local("SLURM_PROCID=6 SLURM_NTASKS=8 SLURM_LOCALID=2 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=4(x2)", 8, 2,
		 4, "Slurm's local rank");
	is_local("SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=4(x2),3", 0, 2, 3,
		 "a node with another number of ranks");
	is_local("SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2", 0, 1, 2, "a job of one node");
	is_local("SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=4(x2),3", 0, 0, 1,
		 "a node that is not in the list");
	is_local("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=4 OMPI_COMM_WORLD_LOCAL_SIZE=4", 0, 0, 1,
		 "a local rank beyond their number is none");
	is_local("OMPI_COMM_WORLD_RANK=9 OMPI_COMM_WORLD_SIZE=8", 0, 0, 1, "a rank beyond their number: no number");
	is_local("RANK=1 WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2", 2, 0, 1,
		 "the variables of one launcher alone count");
	clear();
	um_rank_find(&rank);
	ok(!rank.launcher && rank.local_size == 1, "without a launcher there is one rank");
}

static void ranks(void)
{
	is_rank("OMPI_COMM_WORLD_RANK=3", 3, "Open MPI's rank");
	is_rank("PMI_RANK=4", 4, "MPICH's rank");
	is_rank("SLURM_PROCID=5", 5, "Slurm's rank");
	is_rank("RANK=6", 6, "torchrun's rank");
	is_rank("SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=3", 3, "mpirun in a job of Slurm");
	is_rank("SLURM_PROCID=0 PMI_RANK=2", 2, "MPICH's mpirun in a job of Slurm");
	is_rank("OMPI_COMM_WORLD_RANK=1 RANK=9 WORLD_SIZE=16", 9, "torchrun started by mpirun on each node");
	is_rank("SLURM_PROCID=1 RANK=9 WORLD_SIZE=16", 9, "torchrun started by srun on each node");
	is_rank("RANK=9 OMPI_COMM_WORLD_RANK=3", 3, "a RANK without WORLD_SIZE is not torchrun's");
	is_rank("OMPI_COMM_WORLD_RANK=18446744073709551615", 18446744073709551615ul, "the largest number");
	is_rank("OMPI_COMM_WORLD_RANK=../x PMI_RANK=2", 2, "no number is no rank");
	is_rank("OMPI_COMM_WORLD_RANK=-1", 0, "a negative number is no rank");
	is_rank("OMPI_COMM_WORLD_RANK=1/x", 0, "a number with more after it is no rank");
	is_rank("OMPI_COMM_WORLD_RANK=18446744073709551616", 0, "a number that is too large is no rank");
	is_rank("OMPI_COMM_WORLD_RANK=", 0, "an empty value is no rank");
	is_rank("", 0, "without a launcher the rank is 0");
}

static void names(void)
{
	char pid[64], longest[100];

	clear();
	is_name("a.log", "a.log", "kept");
	is_name("", "", "kept");
	is_name("run%r.log", "run0.log", "rank 0 without a launcher");
	setenv("OMPI_COMM_WORLD_RANK", "12", 1);
	is_name("run%r.log", "run12.log", "the rank");
	is_name("%r/%r", "12/12", "the rank twice");
	is_name("100%", "100%", "kept");
	is_name("%d%%rx", "%d%12x", "other uses of %% are kept");
	snprintf(pid, sizeof pid, "a%ld-12", (long)getpid());
	is_name("a%p-%r", pid, "process id and rank");
	setenv("OMPI_COMM_WORLD_RANK", "18446744073709551615", 1);
	snprintf(longest, sizeof longest, "%s%s%s", "18446744073709551615", "18446744073709551615", "x");
	is_name("%r%rx", longest, "the longest rank");
}

int main(void)
{
	ranks();
	local_ranks();
	names();
	return tap_done();
}
