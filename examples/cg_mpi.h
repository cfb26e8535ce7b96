/* SPDX-License-Identifier: Apache-2.0
 *
 * cg_mpi.h - what cg_mpi.c and cg_mpi.cu share: the grid, its rows by rank, the arithmetic of an element, and MPI
 *
 * Both solve A x = b, an implicit time step of the heat equation, A kept as five diagonals. Each rank has some rows of
 * the grid. Every sum has a fixed order: a row is summed in PARTS parts, its parts are added up, and then the rows of
 * all ranks, in the order of the rows. So the solution is bitwise equal for any number of ranks, and in both programs.
 * MPI gets pointers to host memory, or to device memory where it knows CUDA.
 */
#ifndef CG_MPI_H
#define CG_MPI_H

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <umadvise.h>

enum { SIDE = 1024, ROWS = 2048, STRIPS = 4, STEPS = 20, PARTS = 32 };
enum { SOUTH, WEST, CENTRE, EAST, NORTH, DIAGONALS };
enum { TO_SOUTH, TO_NORTH, FROM_SOUTH, FROM_NORTH, HALO }; /* rows of the buffer for the exchange */

struct grid {
	int rank, ranks, rows; /* `rows` of this rank */
	double all[ROWS]; /* the sums of all ranks */
	int count[ROWS], first[ROWS]; /* of rows, by rank */
};

static inline void fail(const char *what, const char *why)
{
	fprintf(stderr, "cg_mpi: %s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- an element -------------------------------------------------------------------------------------------------- */

#ifdef __CUDACC__
#define ON_BOTH __host__ __device__
#else
#define ON_BOTH
#endif

/* Of A, for the element at a row of the whole grid. */
static inline ON_BOTH double matrix(int diagonal, int row, int column)
{
	switch (diagonal) {
	case SOUTH:
		return row ? -1 : 0;
	case WEST:
		return column ? -1 : 0;
	case CENTRE:
		return 5;
	case EAST:
		return column < SIDE - 1 ? -1 : 0;
	default:
		return row < ROWS - 1 ? -1 : 0;
	}
}

static inline ON_BOTH double right_side(long element)
{
	return 1 + element % 7;
}

/* Element i of A p in the rows of a rank, whose neighbours' rows are in the halo. */
static inline ON_BOTH double matrix_times(const double *const diag[DIAGONALS], const double *p, const double *halo,
					  int rows, long i)
{
	int row = (int)(i / SIDE), column = (int)(i % SIDE);
	double south = row ? p[i - SIDE] : halo[FROM_SOUTH * SIDE + column];
	double north = row < rows - 1 ? p[i + SIDE] : halo[FROM_NORTH * SIDE + column];
	double sum = diag[SOUTH][i] * south + diag[CENTRE][i] * p[i] + diag[NORTH][i] * north;

	if (column > 0)
		sum += diag[WEST][i] * p[i - 1];
	if (column < SIDE - 1)
		sum += diag[EAST][i] * p[i + 1];
	return sum;
}

/* Of the dot product of a row. */
static inline ON_BOTH double row_part(const double *a, const double *b, int part)
{
	double sum = 0;

	for (int k = part; k < SIDE; k += PARTS)
		sum += a[k] * b[k];
	return sum;
}

/* --- MPI --------------------------------------------------------------------------------------------------------- */

/* Rows are split as evenly as they can be. */
static inline void grid_split(struct grid *g)
{
	MPI_Comm_rank(MPI_COMM_WORLD, &g->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g->ranks);
	if (g->ranks > ROWS)
		fail("start", "more ranks than rows");
	for (int k = 0; k < g->ranks; k++) {
		g->first[k] = ROWS * k / g->ranks;
		g->count[k] = ROWS * (k + 1) / g->ranks - g->first[k];
	}
	g->rows = g->count[g->rank];
}

/* Sends the first two rows of the halo to the neighbours, and receives the last two. */
static inline void grid_exchange(struct grid *g, double *halo)
{
	int south = g->rank ? g->rank - 1 : MPI_PROC_NULL, north = g->rank < g->ranks - 1 ? g->rank + 1 : MPI_PROC_NULL;

	MPI_Sendrecv(halo + TO_SOUTH * SIDE, SIDE, MPI_DOUBLE, south, 0, halo + FROM_NORTH * SIDE, SIDE, MPI_DOUBLE,
		     north, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(halo + TO_NORTH * SIDE, SIDE, MPI_DOUBLE, north, 0, halo + FROM_SOUTH * SIDE, SIDE, MPI_DOUBLE,
		     south, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The sum over the rows of all ranks. MPI_Allreduce would add in an order that depends on their number. */
static inline double grid_total(struct grid *g, const double *sums)
{
	double sum = 0;

	MPI_Allgatherv(sums, g->rows, MPI_DOUBLE, g->all, g->count, g->first, MPI_DOUBLE, MPI_COMM_WORLD);
	for (int row = 0; row < ROWS; row++)
		sum += g->all[row];
	return sum;
}

/* Writes the solution of all ranks, row by row. `x` may be accessed by the CPU. */
static inline void grid_save(struct grid *g, const double *x, const char *path)
{
	double *all = g->rank ? NULL : (double *)malloc((size_t)ROWS * SIDE * sizeof(double));
	int count[ROWS], first[ROWS];
	FILE *f;

	for (int k = 0; k < g->ranks; k++) {
		count[k] = g->count[k] * SIDE;
		first[k] = g->first[k] * SIDE;
	}
	if (!g->rank && !all)
		fail("save", "out of memory");
	MPI_Gatherv(x, g->rows * SIDE, MPI_DOUBLE, all, count, first, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (!g->rank) {
		f = fopen(path, "wb");
		if (!f || fwrite(all, (size_t)SIDE * sizeof(double), ROWS, f) != ROWS || fclose(f))
			fail(path, "cannot be written");
	}
	free(all);
}

/* The first rank prints a line for each, and the last residual. What main returns. */
static inline int grid_show(struct grid *g, struct umadv *adv, double ms, const char *clock, double rr)
{
	struct umadv_stats stats;
	double mine[3], *all = (double *)malloc(sizeof(mine) * (size_t)g->ranks);
	int err;

	stats.struct_size = sizeof(stats);
	err = umadv_stats_get(adv, &stats);
	if (err)
		fail("stats", umadv_strerror(err));
	if (!all)
		fail("show", "out of memory");
	mine[0] = ms;
	mine[1] = (double)stats.hinted_iterations;
	mine[2] = (double)stats.iterations;
	MPI_Gather(mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int k = 0; !g->rank && k < g->ranks; k++)
		printf("rank %d: %d rows, %.3f ms %s, %.0f of %.0f iterations hinted\n", k, g->count[k], all[3 * k],
		       clock, all[3 * k + 1], all[3 * k + 2]);
	if (!g->rank)
		printf("|r| = %.6e: %s\n", sqrt(rr), rr < 1e-3 ? "solved" : "not solved");
	free(all);
	return !(rr < 1e-3);
}

#endif
