/* SPDX-License-Identifier: Apache-2.0
 *
 * cg.c - conjugate gradients on a matrix that exceeds the memory, with hints and without
 *
 * Solves A x = b, an implicit time step of the heat equation on a square grid, A kept as five diagonals: 72 MiB with
 * the vectors, and a budget of 48. One iteration of the solver is one iteration of the library. The product A p is
 * launched in strips, each with the parts of the tensors that it touches, because an operation must fit into the budget
 * by itself. It runs twice, by the driver alone and by plan: the times differ, the results are bitwise equal.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umadvise.h>

enum { SIDE = 1024, N = SIDE * SIDE, STRIPS = 4, STRIP = N / STRIPS, STEPS = 20, BUDGET = 48 << 20 };

struct cg {
	struct umadv *adv;
	double *diag[5], *x, *r, *p, *q; /* q = A p */
	double rr, pq; /* r.r and p.q; a real program keeps them on the device, too */
	struct strip {
		struct cg *c;
		int from;
	} strip[STRIPS];
};

static const int offset[5] = {-SIDE, -1, 0, 1, SIDE};

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "cg: %s: %s\n", what, umadv_strerror(err));
	exit(1);
}

/* --- the kernels ------------------------------------------------------------------------------------------------- */

static void setup(void *arg)
{
	struct cg *c = arg;

	for (int i = 0; i < N; i++) {
		c->diag[0][i] = i >= SIDE ? -1 : 0;
		c->diag[1][i] = i % SIDE ? -1 : 0;
		c->diag[2][i] = 5;
		c->diag[3][i] = (i + 1) % SIDE ? -1 : 0;
		c->diag[4][i] = i < N - SIDE ? -1 : 0;
	}
}

static void start(void *arg)
{
	struct cg *c = arg;

	c->rr = 0;
	for (int i = 0; i < N; i++) {
		c->x[i] = 0;
		c->r[i] = c->p[i] = 1 + i % 7; /* b - A 0 */
		c->rr += c->r[i] * c->r[i];
	}
}

static void product(void *arg)
{
	const struct strip *s = arg;
	struct cg *c = s->c;

	for (int i = s->from; i < s->from + STRIP; i++) {
		double sum = 0;

		for (int d = 0; d < 5; d++)
			if (c->diag[d][i] != 0)
				sum += c->diag[d][i] * c->p[i + offset[d]];
		c->q[i] = sum;
	}
}

static void dot(void *arg)
{
	struct cg *c = arg;

	c->pq = 0;
	for (int i = 0; i < N; i++)
		c->pq += c->p[i] * c->q[i];
}

static void step(void *arg)
{
	struct cg *c = arg;
	double alpha = c->rr / c->pq, rr = 0, beta;

	for (int i = 0; i < N; i++) {
		c->x[i] += alpha * c->p[i];
		c->r[i] -= alpha * c->q[i];
		rr += c->r[i] * c->r[i];
	}
	beta = rr / c->rr;
	c->rr = rr;
	for (int i = 0; i < N; i++)
		c->p[i] = c->r[i] + beta * c->p[i];
}

/* --- the program ------------------------------------------------------------------------------------------------- */

/* Announces an op and launches it. The cost is what a bandwidth-bound kernel moves: the bytes that it touches. */
static void launch(struct cg *c, const char *name, const struct umadv_use *uses, size_t n, void (*fn)(void *),
		   void *arg)
{
	struct umadv_op_info info = {.struct_size = sizeof(info), .uses = uses, .n_uses = n};

	for (size_t i = 0; i < n; i++)
		info.bytes += (double)(uses[i].bytes ? uses[i].bytes : N * sizeof(double));
	check(umadv_op_ex(c->adv, NULL, name, &info), name);
	check(umadv_sim_run(c->adv, NULL, fn, arg), name);
}

static void iteration(struct cg *c)
{
	const size_t bytes = STRIP * sizeof(double);

	check(umadv_iter(c->adv, NULL), "iter");
	for (int k = 0; k < STRIPS; k++) {
		struct strip *s = &c->strip[k];
		struct umadv_use uses[7] = {UMADV_READ(c->p), UMADV_WRITE_RANGE(c->q + s->from, bytes)};

		for (int d = 0; d < 5; d++)
			uses[2 + d] = UMADV_READ_RANGE(c->diag[d] + s->from, bytes);
		launch(c, "product", uses, 7, product, s);
	}
	launch(c, "dot", UMADV_USES(UMADV_READ(c->p), UMADV_READ(c->q)), dot, c);
	launch(c, "step", UMADV_USES(UMADV_UPDATE(c->x), UMADV_UPDATE(c->r), UMADV_UPDATE(c->p), UMADV_READ(c->q)),
	       step, c);
}

static void alloc(struct cg *c, double **v, const char *name, enum umadv_role role)
{
	check(umadv_alloc(c->adv, (void **)v, N * sizeof(double), name, role), name);
}

/* Solves by one strategy and copies the solution to `x`. Returns the square of what is left of the residual. */
static double solve(const char *strategy, double *x)
{
	static const char *const names[5] = {"A-south", "A-west", "A", "A-east", "A-north"};
	struct umadv_options options;
	struct cg c = {0};

	umadv_options_init(&options);
	options.device = UMADV_DEVICE_SIM;
	options.budget = BUDGET;
	options.strategy = strategy;
	check(umadv_open(&c.adv, &options), "open");
	for (int d = 0; d < 5; d++)
		alloc(&c, &c.diag[d], names[d], UMADV_PARAM);
	alloc(&c, &c.x, "x", UMADV_OTHER);
	alloc(&c, &c.r, "r", UMADV_OTHER);
	alloc(&c, &c.p, "p", UMADV_OTHER);
	alloc(&c, &c.q, "q", UMADV_OTHER);
	check(umadv_transient(c.adv, c.q), "transient"); /* written before it is read, in every iteration */
	for (int k = 0; k < STRIPS; k++)
		c.strip[k] = (struct strip){&c, k * STRIP};

	launch(&c, "setup",
	       UMADV_USES(UMADV_WRITE(c.diag[0]), UMADV_WRITE(c.diag[1]), UMADV_WRITE(c.diag[2]),
			  UMADV_WRITE(c.diag[3]), UMADV_WRITE(c.diag[4])),
	       setup, &c);
	launch(&c, "start", UMADV_USES(UMADV_WRITE(c.x), UMADV_WRITE(c.r), UMADV_WRITE(c.p)), start, &c);
	for (int i = 0; i < STEPS; i++)
		iteration(&c);
	check(umadv_sim_sync(c.adv), "sync");
	memcpy(x, c.x, N * sizeof(double));
	printf("%-12s %9.3f ms simulated, |r| = %.6e\n", strategy, (double)umadv_sim_now(c.adv) / 1e6, sqrt(c.rr));
	umadv_close(c.adv);
	return c.rr;
}

int main(void)
{
	double *alone = malloc(N * sizeof(double)), *planned = malloc(N * sizeof(double));
	int differ, solved;

	if (!alone || !planned)
		return 1;
	solved = solve("on-demand", alone) < 1e-3;
	solved &= solve("lookahead", planned) < 1e-3;
	differ = memcmp(alone, planned, N * sizeof(double));
	puts(differ ? "the results differ" : solved ? "the results are the same" : "not solved");
	free(alone);
	free(planned);
	return differ || !solved;
}
