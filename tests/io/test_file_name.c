/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of files for each process: %p and %r, and which variable of which launcher is the rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file_name.h"
#include "tap.h"

static const char *const variables[] = {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};

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
static void is_rank(const char *set, unsigned long want, const char *what)
{
	char text[200], *save = NULL;

	clear();
	snprintf(text, sizeof text, "%s", set);
	for (char *s = strtok_r(text, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		char *value = strchr(s, '=');

		*value++ = '\0';
		setenv(s, value, 1);
	}
	is_u64(um_file_rank(), want, "%s: %s", set, what);
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
	names();
	return tap_done();
}
