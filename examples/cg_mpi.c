/* SPDX-License-Identifier: Apache-2.0
 *
 * cg_mpi.c - conjugate gradients on a grid that ranks of MPI share, each with less memory than its part needs
 *
 *     mpirun -np 4 examples/cg_mpi [FILE [STEPS]]      FILE: the solution
 *
 * Solves A x = b, an implicit time step of the heat equation, A kept as five diagonals. Each rank has some rows of the
 * grid, and a context of its own with a budget of two thirds of what its rows need (UMADVISE_BUDGET: another one). The
 * rows next to a neighbour's are exchanged through buffers of the role UMADV_COMM: plain device memory, which MPI may
 * read and write. Dot products are sums of rows, gathered and added in the order of the rows, so the solution is
 * bitwise equal for any number of ranks. It runs on the simulated GPU: communication takes no simulated time.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <umadvise.h>

enum { SIDE = 1024, ROWS = 2048, STRIPS = 4, STEPS = 20 };
enum { TO_SOUTH, TO_NORTH, FROM_SOUTH, FROM_NORTH, HALO }; /* rows of the buffer for the exchange */

struct cg {
	struct umadv *adv;
	int rank, ranks, rows; /* `rows` of this rank */
	double *diag[5], *x, *r, *p, *q; /* q = A p */
	double *halo, *sums; /* UMADV_COMM, one allocation; `sums`: of each row */
	double alpha, beta;
	double all[ROWS]; /* the sums of all ranks */
	int count[ROWS], first[ROWS]; /* of rows, by rank */
	struct strip {
		struct cg *c;
		int from, to; /* rows */
	} strip[STRIPS];
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "cg_mpi: %s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int err, const char *what)
{
	if (err)
		fail(what, umadv_strerror(err));
}

/* --- the kernels ------------------------------------------------------------------------------------------------- */

static void setup(void *arg)
{
	struct cg *c = arg;
	int first = c->first[c->rank];

	for (int i = 0; i < c->rows * SIDE; i++) {
		int row = first + i / SIDE, column = i % SIDE;

		c->diag[0][i] = row ? -1 : 0;
		c->diag[1][i] = column ? -1 : 0;
		c->diag[2][i] = 5;
		c->diag[3][i] = column < SIDE - 1 ? -1 : 0;
		c->diag[4][i] = row < ROWS - 1 ? -1 : 0;
	}
	for (int i = 0; i < HALO * SIDE; i++)
		c->halo[i] = 0; /* what no neighbour sends */
}

static void start(void *arg)
{
	struct cg *c = arg;
	int first = c->first[c->rank];

	for (int row = 0; row < c->rows; row++) {
		c->sums[row] = 0;
		for (int i = row * SIDE; i < (row + 1) * SIDE; i++) {
			c->x[i] = 0;
			c->r[i] = c->p[i] = 1 + (first * SIDE + i) % 7; /* b - A 0 */
			c->sums[row] += c->r[i] * c->r[i];
		}
	}
}

static void pack(void *arg)
{
	struct cg *c = arg;

	for (int i = 0; i < SIDE; i++) {
		c->halo[TO_SOUTH * SIDE + i] = c->p[i];
		c->halo[TO_NORTH * SIDE + i] = c->p[(c->rows - 1) * SIDE + i];
	}
}

/* Also the sum of p.q of each row. */
static void product(void *arg)
{
	const struct strip *s = arg;
	struct cg *c = s->c;

	for (int row = s->from; row < s->to; row++) {
		const double *p = c->p + row * SIDE;
		const double *south = row ? p - SIDE : c->halo + FROM_SOUTH * SIDE;
		const double *north = row < c->rows - 1 ? p + SIDE : c->halo + FROM_NORTH * SIDE;
		double dot = 0;

		for (int k = 0; k < SIDE; k++) {
			int i = row * SIDE + k;
			double sum = c->diag[0][i] * south[k] + c->diag[2][i] * p[k] + c->diag[4][i] * north[k];

			if (k > 0)
				sum += c->diag[1][i] * p[k - 1];
			if (k < SIDE - 1)
				sum += c->diag[3][i] * p[k + 1];
			c->q[i] = sum;
			dot += p[k] * sum;
		}
		c->sums[row] = dot;
	}
}

/* Also the sum of r.r of each row. */
static void step(void *arg)
{
	struct cg *c = arg;

	for (int row = 0; row < c->rows; row++) {
		c->sums[row] = 0;
		for (int i = row * SIDE; i < (row + 1) * SIDE; i++) {
			c->x[i] += c->alpha * c->p[i];
			c->r[i] -= c->alpha * c->q[i];
			c->sums[row] += c->r[i] * c->r[i];
		}
	}
}

static void direction(void *arg)
{
	struct cg *c = arg;

	for (int i = 0; i < c->rows * SIDE; i++)
		c->p[i] = c->r[i] + c->beta * c->p[i];
}

/* --- MPI: the device is synchronised before it ------------------------------------------------------------------- */

static void exchange(struct cg *c)
{
	int south = c->rank ? c->rank - 1 : MPI_PROC_NULL, north = c->rank < c->ranks - 1 ? c->rank + 1 : MPI_PROC_NULL;

	check(umadv_sim_sync(c->adv), "sync");
	MPI_Sendrecv(c->halo + TO_SOUTH * SIDE, SIDE, MPI_DOUBLE, south, 0, c->halo + FROM_NORTH * SIDE, SIDE,
		     MPI_DOUBLE, north, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(c->halo + TO_NORTH * SIDE, SIDE, MPI_DOUBLE, north, 0, c->halo + FROM_SOUTH * SIDE, SIDE,
		     MPI_DOUBLE, south, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The sum over the rows of all ranks. MPI_Allreduce would add in an order that depends on their number. */
static double total(struct cg *c)
{
	double sum = 0;

	check(umadv_sim_sync(c->adv), "sync");
	MPI_Allgatherv(c->sums, c->rows, MPI_DOUBLE, c->all, c->count, c->first, MPI_DOUBLE, MPI_COMM_WORLD);
	for (int row = 0; row < ROWS; row++)
		sum += c->all[row];
	return sum;
}

/* --- the program ------------------------------------------------------------------------------------------------- */

/* Announces an op and launches it. The cost is what a bandwidth-bound kernel moves: the bytes that it touches. */
static void launch(struct cg *c, const char *name, const struct umadv_use *uses, size_t n, void (*fn)(void *),
		   void *arg)
{
	struct umadv_op_info info = {.struct_size = sizeof(info), .uses = uses, .n_uses = n};

	for (size_t i = 0; i < n; i++)
		info.bytes += (double)(uses[i].bytes ? uses[i].bytes : (size_t)c->rows * SIDE * sizeof(double));
	check(umadv_op_ex(c->adv, NULL, name, &info), name);
	check(umadv_sim_run(c->adv, NULL, fn, arg), name);
}

static void multiply(struct cg *c)
{
	for (struct strip *s = c->strip; s < c->strip + STRIPS; s++) {
		size_t n = (size_t)(s->to - s->from), bytes = n * SIDE * sizeof(double), at = (size_t)s->from * SIDE;
		struct umadv_use uses[9] = {UMADV_READ(c->p), UMADV_READ_RANGE(c->halo, HALO * SIDE * sizeof(double)),
					    UMADV_WRITE_RANGE(c->q + at, bytes),
					    UMADV_WRITE_RANGE(c->sums + s->from, n * sizeof(double))};

		for (int d = 0; d < 5; d++)
			uses[4 + d] = UMADV_READ_RANGE(c->diag[d] + at, bytes);
		if (n)
			launch(c, "product", uses, 9, product, s);
	}
}

/* Returns r.r after the iteration. */
static double iteration(struct cg *c, double rr)
{
	const size_t row = SIDE * sizeof(double), last = (size_t)(c->rows - 1) * SIDE;
	const size_t sums = (size_t)c->rows * sizeof(double);
	double after;

	check(umadv_iter(c->adv, NULL), "iter");
	launch(c, "pack",
	       UMADV_USES(UMADV_READ_RANGE(c->p, row), UMADV_READ_RANGE(c->p + last, row),
			  UMADV_WRITE_RANGE(c->halo, 2 * row)),
	       pack, c);
	exchange(c);
	multiply(c);
	c->alpha = rr / total(c);
	launch(c, "step",
	       UMADV_USES(UMADV_UPDATE(c->x), UMADV_UPDATE(c->r), UMADV_READ(c->p), UMADV_READ(c->q),
			  UMADV_WRITE_RANGE(c->sums, sums)),
	       step, c);
	after = total(c);
	c->beta = after / rr;
	launch(c, "direction", UMADV_USES(UMADV_READ(c->r), UMADV_UPDATE(c->p)), direction, c);
	return after;
}

static double *tensor(struct cg *c, size_t n, const char *name, enum umadv_role role)
{
	void *p;

	check(umadv_alloc(c->adv, &p, n * sizeof(double), name, role), name);
	return p;
}

/* Rows are split as evenly as they can be. */
static void split(struct cg *c)
{
	for (int k = 0; k < c->ranks; k++) {
		c->first[k] = ROWS * k / c->ranks;
		c->count[k] = ROWS * (k + 1) / c->ranks - c->first[k];
	}
	c->rows = c->count[c->rank];
	for (int k = 0; k < STRIPS; k++)
		c->strip[k] = (struct strip){c, c->rows * k / STRIPS, c->rows * (k + 1) / STRIPS};
}

static void begin(struct cg *c)
{
	static const char *const names[5] = {"A-south", "A-west", "A", "A-east", "A-north"};
	size_t n = (size_t)c->rows * SIDE;
	struct umadv_options options;

	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	if (!options.budget)
		options.budget = 9 * n * sizeof(double) * 2 / 3;
	check(umadv_open(&c->adv, &options), "open");
	for (int d = 0; d < 5; d++)
		c->diag[d] = tensor(c, n, names[d], UMADV_PARAM);
	c->x = tensor(c, n, "x", UMADV_OTHER);
	c->r = tensor(c, n, "r", UMADV_OTHER);
	c->p = tensor(c, n, "p", UMADV_OTHER);
	c->q = tensor(c, n, "q", UMADV_OTHER);
	check(umadv_transient(c->adv, c->q), "transient"); /* written before it is read, in every iteration */
	c->halo = tensor(c, (size_t)HALO * SIDE + (size_t)c->rows, "communication", UMADV_COMM);
	c->sums = c->halo + HALO * SIDE;

	launch(c, "setup",
	       UMADV_USES(UMADV_WRITE(c->diag[0]), UMADV_WRITE(c->diag[1]), UMADV_WRITE(c->diag[2]),
			  UMADV_WRITE(c->diag[3]), UMADV_WRITE(c->diag[4]),
			  UMADV_WRITE_RANGE(c->halo, HALO * SIDE * sizeof(double))),
	       setup, c);
	launch(c, "start",
	       UMADV_USES(UMADV_WRITE(c->x), UMADV_WRITE(c->r), UMADV_WRITE(c->p),
			  UMADV_WRITE_RANGE(c->sums, (size_t)c->rows * sizeof(double))),
	       start, c);
}

/* Writes the solution of all ranks, row by row. */
static void save(struct cg *c, const char *path)
{
	double *x = c->rank ? NULL : malloc((size_t)ROWS * SIDE * sizeof(double));
	int count[ROWS], first[ROWS];
	FILE *f;

	for (int k = 0; k < c->ranks; k++) {
		count[k] = c->count[k] * SIDE;
		first[k] = c->first[k] * SIDE;
	}
	if (!c->rank && !x)
		fail("save", "out of memory");
	check(umadv_host(c->adv, "save", UMADV_USES(UMADV_READ(c->x))), "host");
	MPI_Gatherv(c->x, c->rows * SIDE, MPI_DOUBLE, x, count, first, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (!c->rank) {
		f = fopen(path, "wb");
		if (!f || fwrite(x, (size_t)SIDE * sizeof(double), ROWS, f) != ROWS || fclose(f))
			fail(path, "cannot be written");
	}
	free(x);
}

/* The first rank prints a line for each. */
static void show(struct cg *c)
{
	struct umadv_stats stats = {.struct_size = sizeof(stats)};
	unsigned long long mine[3], *all = malloc(sizeof(mine) * (size_t)c->ranks);

	if (!all)
		fail("show", "out of memory");
	check(umadv_stats_get(c->adv, &stats), "stats");
	mine[0] = umadv_sim_now(c->adv);
	mine[1] = stats.hinted_iterations;
	mine[2] = stats.iterations;
	MPI_Gather(mine, 3, MPI_UNSIGNED_LONG_LONG, all, 3, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
	for (int k = 0; !c->rank && k < c->ranks; k++)
		printf("rank %d: %d rows, %.3f ms simulated, %llu of %llu iterations hinted\n", k, c->count[k],
		       (double)all[3 * k] / 1e6, all[3 * k + 1], all[3 * k + 2]);
	free(all);
}

int main(int argc, char **argv)
{
	static struct cg c;
	int steps = argc > 2 ? atoi(argv[2]) : STEPS;
	double rr;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &c.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &c.ranks);
	if (c.ranks > ROWS)
		fail("start", "more ranks than rows");
	split(&c);
	begin(&c);
	rr = total(&c);
	for (int i = 0; i < steps; i++)
		rr = iteration(&c, rr);
	check(umadv_sim_sync(c.adv), "sync");
	if (argc > 1)
		save(&c, argv[1]);
	show(&c);
	if (!c.rank)
		printf("|r| = %.6e: %s\n", sqrt(rr), rr < 1e-3 ? "solved" : "not solved");
	umadv_close(c.adv);
	MPI_Finalize();
	return !(rr < 1e-3);
}
