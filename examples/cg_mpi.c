/* SPDX-License-Identifier: Apache-2.0
 *
 * cg_mpi.c - conjugate gradients on a grid that ranks of MPI share, each with less memory than its part needs
 *
 *     mpirun -np 4 examples/cg_mpi [FILE [STEPS]]      FILE: the solution
 *
 * Each rank has some rows of the grid, and a context of its own with a budget of two thirds of what its rows need
 * (UMADVISE_BUDGET: another one). The rows next to a neighbour's are exchanged through buffers of the role UMADV_COMM:
 * plain device memory, which MPI may read and write. The solution is bitwise equal for any number of ranks. It runs on
 * the simulated GPU: communication takes no simulated time. cg_mpi.cu is the same for CUDA.
 */
#include "cg_mpi.h"

struct cg {
	struct grid grid;
	struct umadv *adv;
	double *diag[DIAGONALS], *x, *r, *p, *q; /* q = A p */
	double *halo, *sums; /* UMADV_COMM, one allocation; `sums`: of each row */
	double alpha, beta;
	struct strip {
		struct cg *c;
		int from, to; /* rows */
	} strip[STRIPS];
};

static void check(int err, const char *what)
{
	if (err)
		fail(what, umadv_strerror(err));
}

/* --- the kernels ------------------------------------------------------------------------------------------------- */

static double row_dot(const double *a, const double *b)
{
	double sum = 0;

	for (int part = 0; part < PARTS; part++)
		sum += row_part(a, b, part);
	return sum;
}

static void setup(void *arg)
{
	struct cg *c = arg;
	int first = c->grid.first[c->grid.rank];

	for (int i = 0; i < c->grid.rows * SIDE; i++)
		for (int d = 0; d < DIAGONALS; d++)
			c->diag[d][i] = matrix(d, first + i / SIDE, i % SIDE);
	for (int i = 0; i < HALO * SIDE; i++)
		c->halo[i] = 0; /* what no neighbour sends */
}

static void start(void *arg)
{
	struct cg *c = arg;
	long first = (long)c->grid.first[c->grid.rank] * SIDE;

	for (int row = 0; row < c->grid.rows; row++) {
		for (int i = row * SIDE; i < (row + 1) * SIDE; i++) {
			c->x[i] = 0;
			c->r[i] = c->p[i] = right_side(first + i); /* b - A 0 */
		}
		c->sums[row] = row_dot(c->r + row * SIDE, c->r + row * SIDE);
	}
}

static void pack(void *arg)
{
	struct cg *c = arg;

	for (int i = 0; i < SIDE; i++) {
		c->halo[TO_SOUTH * SIDE + i] = c->p[i];
		c->halo[TO_NORTH * SIDE + i] = c->p[(c->grid.rows - 1) * SIDE + i];
	}
}

/* Also the sum of p.q of each row. */
static void product(void *arg)
{
	const struct strip *s = arg;
	struct cg *c = s->c;

	for (int row = s->from; row < s->to; row++) {
		for (int i = row * SIDE; i < (row + 1) * SIDE; i++)
			c->q[i] = matrix_times((const double *const *)c->diag, c->p, c->halo, c->grid.rows, i);
		c->sums[row] = row_dot(c->p + row * SIDE, c->q + row * SIDE);
	}
}

/* Also the sum of r.r of each row. */
static void step(void *arg)
{
	struct cg *c = arg;

	for (int row = 0; row < c->grid.rows; row++) {
		for (int i = row * SIDE; i < (row + 1) * SIDE; i++) {
			c->x[i] += c->alpha * c->p[i];
			c->r[i] -= c->alpha * c->q[i];
		}
		c->sums[row] = row_dot(c->r + row * SIDE, c->r + row * SIDE);
	}
}

static void direction(void *arg)
{
	struct cg *c = arg;

	for (int i = 0; i < c->grid.rows * SIDE; i++)
		c->p[i] = c->r[i] + c->beta * c->p[i];
}

/* --- MPI: the device is synchronised before it ------------------------------------------------------------------- */

static void exchange(struct cg *c)
{
	check(umadv_sim_sync(c->adv), "sync");
	grid_exchange(&c->grid, c->halo);
}

static double total(struct cg *c)
{
	check(umadv_sim_sync(c->adv), "sync");
	return grid_total(&c->grid, c->sums);
}

/* --- the program ------------------------------------------------------------------------------------------------- */

/* Announces an op and launches it. The cost is what a bandwidth-bound kernel moves: the bytes that it touches. */
static void launch(struct cg *c, const char *name, const struct umadv_use *uses, size_t n, void (*fn)(void *),
		   void *arg)
{
	struct umadv_op_info info = {.struct_size = sizeof(info), .uses = uses, .n_uses = n};

	for (size_t i = 0; i < n; i++)
		info.bytes += (double)(uses[i].bytes ? uses[i].bytes : (size_t)c->grid.rows * SIDE * sizeof(double));
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

		for (int d = 0; d < DIAGONALS; d++)
			uses[4 + d] = UMADV_READ_RANGE(c->diag[d] + at, bytes);
		if (n)
			launch(c, "product", uses, 9, product, s);
	}
}

/* Returns r.r after the iteration. */
static double iteration(struct cg *c, double rr)
{
	const size_t row = SIDE * sizeof(double), last = (size_t)(c->grid.rows - 1) * SIDE;
	const size_t sums = (size_t)c->grid.rows * sizeof(double);
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

static void begin(struct cg *c)
{
	static const char *const names[DIAGONALS] = {"A-south", "A-west", "A", "A-east", "A-north"};
	size_t n = (size_t)c->grid.rows * SIDE;
	struct umadv_options options;

	for (int k = 0; k < STRIPS; k++)
		c->strip[k] = (struct strip){c, c->grid.rows * k / STRIPS, c->grid.rows * (k + 1) / STRIPS};
	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	if (!options.budget)
		options.budget = 9 * n * sizeof(double) * 2 / 3;
	check(umadv_open(&c->adv, &options), "open");
	for (int d = 0; d < DIAGONALS; d++)
		c->diag[d] = tensor(c, n, names[d], UMADV_PARAM);
	c->x = tensor(c, n, "x", UMADV_OTHER);
	c->r = tensor(c, n, "r", UMADV_OTHER);
	c->p = tensor(c, n, "p", UMADV_OTHER);
	c->q = tensor(c, n, "q", UMADV_OTHER);
	check(umadv_transient(c->adv, c->q), "transient"); /* written before it is read, in every iteration */
	c->halo = tensor(c, (size_t)HALO * SIDE + (size_t)c->grid.rows, "communication", UMADV_COMM);
	c->sums = c->halo + HALO * SIDE;

	launch(c, "setup",
	       UMADV_USES(UMADV_WRITE(c->diag[0]), UMADV_WRITE(c->diag[1]), UMADV_WRITE(c->diag[2]),
			  UMADV_WRITE(c->diag[3]), UMADV_WRITE(c->diag[4]),
			  UMADV_WRITE_RANGE(c->halo, HALO * SIDE * sizeof(double))),
	       setup, c);
	launch(c, "start",
	       UMADV_USES(UMADV_WRITE(c->x), UMADV_WRITE(c->r), UMADV_WRITE(c->p),
			  UMADV_WRITE_RANGE(c->sums, (size_t)c->grid.rows * sizeof(double))),
	       start, c);
}

int main(int argc, char **argv)
{
	static struct cg c;
	int steps = argc > 2 ? atoi(argv[2]) : STEPS, status;
	double rr;

	MPI_Init(&argc, &argv);
	grid_split(&c.grid);
	begin(&c);
	rr = total(&c);
	for (int i = 0; i < steps; i++)
		rr = iteration(&c, rr);
	check(umadv_sim_sync(c.adv), "sync");
	if (argc > 1) {
		check(umadv_host(c.adv, "save", UMADV_USES(UMADV_READ(c.x))), "host");
		grid_save(&c.grid, c.x, argv[1]);
	}
	status = grid_show(&c.grid, c.adv, (double)umadv_sim_now(c.adv) / 1e6, "simulated", rr);
	umadv_close(c.adv);
	MPI_Finalize();
	return status;
}
