/* SPDX-License-Identifier: Apache-2.0
 *
 * cg_mpi.cu - the solver of cg_mpi.c for CUDA: ranks of MPI share a grid, each has a device or a part of one
 *
 *     mpirun -np 4 examples/cg_mpi-cuda [FILE [STEPS [direct]]]      FILE: the solution
 *
 * Each rank takes the device of its number on the node, and a context with a budget of two thirds of what its rows need
 * (UMADVISE_BUDGET: another one). Halo rows are in a buffer of the role UMADV_COMM, plain device memory. They pass
 * through pinned host memory, as an MPI without CUDA support needs it; `direct` gives MPI the device memory. The
 * build rounds each product and each sum, so the solution is that of cg_mpi.c, to the last bit.
 */
#include "cg_mpi.h"
#include "dual.h"

struct cg {
	struct grid grid;
	struct dual d;
	double *diag[DIAGONALS], *x, *r, *p, *q; /* q = A p */
	double *halo, *sums; /* UMADV_COMM, one allocation; `sums`: of each row */
	double *part; /* of the sums; UMADV_COMM: a kernel writes it for the next one */
	double *halo_host, *sums_host; /* pinned */
	int direct;
};

/* --- kernels ----------------------------------------------------------------------------------------------------- */

struct diagonals {
	double *at[DIAGONALS];
};

struct setup {
	struct diagonals diag;
	int first;

	__host__ __device__ void operator()(long i) const
	{
		for (int d = 0; d < DIAGONALS; d++)
			diag.at[d][i] = matrix(d, first + (int)(i / SIDE), (int)(i % SIDE));
	}
};

struct clear { /* what no neighbour sends */
	double *halo;

	__host__ __device__ void operator()(long i) const
	{
		halo[i] = 0;
	}
};

struct start {
	double *x, *r, *p;
	int first;

	__host__ __device__ void operator()(long i) const
	{
		x[i] = 0;
		r[i] = p[i] = right_side((long)first * SIDE + i); /* b - A 0 */
	}
};

struct pack {
	const double *p;
	double *halo;
	int rows;

	__host__ __device__ void operator()(long i) const
	{
		halo[TO_SOUTH * SIDE + i] = p[i];
		halo[TO_NORTH * SIDE + i] = p[(rows - 1l) * SIDE + i];
	}
};

struct product {
	struct diagonals diag;
	const double *p, *halo;
	double *q;
	int rows;
	long from;

	__host__ __device__ void operator()(long i) const
	{
		q[from + i] = matrix_times(diag.at, p, halo, rows, from + i);
	}
};

struct row_parts {
	const double *a, *b;
	double *part;

	__host__ __device__ void operator()(long t) const
	{
		long row = t / PARTS;

		part[t] = row_part(a + row * SIDE, b + row * SIDE, (int)(t % PARTS));
	}
};

struct row_sums {
	const double *part;
	double *sums;

	__host__ __device__ void operator()(long row) const
	{
		double sum = 0;

		for (int k = 0; k < PARTS; k++)
			sum += part[row * PARTS + k];
		sums[row] = sum;
	}
};

struct step {
	double *x, *r;
	const double *p, *q;
	double alpha;

	__host__ __device__ void operator()(long i) const
	{
		x[i] += alpha * p[i];
		r[i] -= alpha * q[i];
	}
};

struct direction {
	double *p;
	const double *r;
	double beta;

	__host__ __device__ void operator()(long i) const
	{
		p[i] = r[i] + beta * p[i];
	}
};

/* --- MPI: the device is synchronised before it, which cudaMemcpy does --------------------------------------------- */

static void copy(double *to, const double *from, long n)
{
	check_cuda(cudaMemcpy(to, from, n * sizeof(double), cudaMemcpyDefault), "cudaMemcpy");
}

static void exchange(struct cg *c)
{
	if (c->direct) {
		check_cuda(cudaStreamSynchronize(0), "cudaStreamSynchronize");
		grid_exchange(&c->grid, c->halo);
		return;
	}
	copy(c->halo_host, c->halo, FROM_SOUTH * SIDE);
	grid_exchange(&c->grid, c->halo_host); /* a row that no neighbour sends stays 0 */
	copy(c->halo + FROM_SOUTH * SIDE, c->halo_host + FROM_SOUTH * SIDE, (HALO - FROM_SOUTH) * SIDE);
}

static double total(struct cg *c)
{
	copy(c->sums_host, c->sums, c->grid.rows);
	return grid_total(&c->grid, c->sums_host);
}

/* --- the program ------------------------------------------------------------------------------------------------- */

/* The sums of a.b of some rows. */
static void sum_rows(struct cg *c, const double *a, const double *b, long from, long n)
{
	each(0, n * PARTS, row_parts{a + from * SIDE, b + from * SIDE, c->part});
	each(0, n, row_sums{c->part, c->sums + from});
}

static struct diagonals diagonals_of(const struct cg *c)
{
	struct diagonals of;

	memcpy(of.at, c->diag, sizeof(of.at));
	return of;
}

static void multiply(struct cg *c)
{
	for (int k = 0; k < STRIPS; k++) {
		long from = (long)c->grid.rows * k / STRIPS, n = (long)c->grid.rows * (k + 1) / STRIPS - from;
		long at = from * SIDE, bytes = n * SIDE * sizeof(double);

		if (!n)
			continue;
		USES(&c->d, 0, "product", UMADV_READ(c->p), UMADV_READ(c->halo), UMADV_UPDATE(c->part),
		     UMADV_WRITE_RANGE(c->q + at, bytes), UMADV_READ_RANGE(c->diag[SOUTH] + at, bytes),
		     UMADV_READ_RANGE(c->diag[WEST] + at, bytes), UMADV_READ_RANGE(c->diag[CENTRE] + at, bytes),
		     UMADV_READ_RANGE(c->diag[EAST] + at, bytes), UMADV_READ_RANGE(c->diag[NORTH] + at, bytes));
		each(0, n * SIDE, product{diagonals_of(c), c->p, c->halo, c->q, c->grid.rows, at});
		sum_rows(c, c->p, c->q, from, n);
	}
}

/* Returns r.r after the iteration. */
static double iteration(struct cg *c, double rr)
{
	const long n = (long)c->grid.rows * SIDE;
	const size_t row = SIDE * sizeof(double);
	double alpha, after;

	dual_iter(&c->d);
	USES(&c->d, 0, "pack", UMADV_READ_RANGE(c->p, row), UMADV_READ_RANGE(c->p + n - SIDE, row),
	     UMADV_WRITE_RANGE(c->halo, 2 * row));
	each(0, SIDE, pack{c->p, c->halo, c->grid.rows});
	exchange(c);
	multiply(c);
	alpha = rr / total(c);
	USES(&c->d, 0, "step", UMADV_UPDATE(c->x), UMADV_UPDATE(c->r), UMADV_READ(c->p), UMADV_READ(c->q),
	     UMADV_UPDATE(c->halo), UMADV_UPDATE(c->part));
	each(0, n, step{c->x, c->r, c->p, c->q, alpha});
	sum_rows(c, c->r, c->r, 0, c->grid.rows);
	after = total(c);
	USES(&c->d, 0, "direction", UMADV_READ(c->r), UMADV_UPDATE(c->p));
	each(0, n, direction{c->p, c->r, after / rr});
	return after;
}

/* The ranks of a node take its devices in turn. */
static void choose_device(void)
{
	MPI_Comm node;
	int rank, devices;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_rank(node, &rank);
	MPI_Comm_free(&node);
	check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
	check_cuda(cudaSetDevice(rank % devices), "cudaSetDevice");
}

static void begin(struct cg *c)
{
	static const char *const names[DIAGONALS] = {"A-south", "A-west", "A", "A-east", "A-north"};
	const long rows = c->grid.rows, n = rows * SIDE;
	const int first = c->grid.first[c->grid.rank];
	struct umadv_options options;

	c->d.name = "cg_mpi";
	umadv_options_init(&options);
	if (!options.budget)
		options.budget = 9 * n * sizeof(double) * 2 / 3;
	check(umadv_open(&c->d.adv, &options), "umadv_open");
	for (int d = 0; d < DIAGONALS; d++)
		c->diag[d] = dual_alloc<double>(&c->d, n, names[d], UMADV_PARAM);
	c->x = dual_alloc<double>(&c->d, n, "x", UMADV_OTHER);
	c->r = dual_alloc<double>(&c->d, n, "r", UMADV_OTHER);
	c->p = dual_alloc<double>(&c->d, n, "p", UMADV_OTHER);
	c->q = dual_alloc<double>(&c->d, n, "q", UMADV_OTHER);
	dual_transient(&c->d, c->q); /* written before it is read, in every iteration */
	c->halo = dual_alloc<double>(&c->d, HALO * SIDE + rows, "communication", UMADV_COMM);
	c->sums = c->halo + HALO * SIDE;
	c->part = dual_alloc<double>(&c->d, rows * PARTS, "parts", UMADV_COMM);
	check_cuda(cudaMallocHost(&c->halo_host, (HALO * SIDE + rows) * sizeof(double)), "cudaMallocHost");
	c->sums_host = c->halo_host + HALO * SIDE;
	memset(c->halo_host, 0, HALO * SIDE * sizeof(double));

	USES(&c->d, 0, "setup", UMADV_WRITE(c->diag[SOUTH]), UMADV_WRITE(c->diag[WEST]), UMADV_WRITE(c->diag[CENTRE]),
	     UMADV_WRITE(c->diag[EAST]), UMADV_WRITE(c->diag[NORTH]), UMADV_UPDATE(c->halo));
	each(0, n, setup{diagonals_of(c), first});
	each(0, HALO * SIDE, clear{c->halo});
	USES(&c->d, 0, "start", UMADV_WRITE(c->x), UMADV_WRITE(c->r), UMADV_WRITE(c->p), UMADV_UPDATE(c->halo),
	     UMADV_UPDATE(c->part));
	each(0, n, start{c->x, c->r, c->p, first});
	sum_rows(c, c->r, c->r, 0, rows);
}

int main(int argc, char **argv)
{
	static struct cg c;
	int steps = argc > 2 ? atoi(argv[2]) : STEPS, status;
	cudaEvent_t before, after;
	float ms;
	double rr;

	MPI_Init(&argc, &argv);
	c.direct = argc > 3 && !strcmp(argv[3], "direct");
	grid_split(&c.grid);
	choose_device();
	begin(&c);
	check_cuda(cudaEventCreate(&before), "cudaEventCreate");
	check_cuda(cudaEventCreate(&after), "cudaEventCreate");
	rr = total(&c);
	check_cuda(cudaEventRecord(before, 0), "cudaEventRecord");
	for (int i = 0; i < steps; i++)
		rr = iteration(&c, rr);
	check_cuda(cudaEventRecord(after, 0), "cudaEventRecord");
	check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	check_cuda(cudaEventElapsedTime(&ms, before, after), "cudaEventElapsedTime");
	if (argc > 1) {
		check(umadv_host(c.d.adv, "save", UMADV_USES(UMADV_READ(c.x))), "umadv_host");
		check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
		grid_save(&c.grid, c.x, argv[1]);
	}
	status = grid_show(&c.grid, c.d.adv, ms, "on the device", rr);
	umadv_close(c.d.adv);
	check_cuda(cudaFreeHost(c.halo_host), "cudaFreeHost");
	MPI_Finalize();
	return status;
}
