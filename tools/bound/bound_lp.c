/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver is Clp. It is loaded for the first bound, so that other verbs do not depend on its libraries (LAPACK, a
 * Fortran runtime), which end the process if they lack memory at their start.
 */
#include "bound/bound_lp.h"

#include "base/vec.h"

#include <coin/Clp_C_Interface.h>
#include <dlfcn.h>
#include <float.h>

#define FUNCTIONS(F)                                                                                                   \
	F(newModel)                                                                                                    \
	F(deleteModel) F(setLogLevel) F(loadProblem) F(setMaximumSeconds) F(initialSolve) F(status) F(dualRowSolution)

#define FIELD(name) __typeof__(Clp_##name) *name;
static struct {
	FUNCTIONS(FIELD)
} clp;

static int find(void *lib, const char *name, void *fn)
{
	void *p = dlsym(lib, name);

	memcpy(fn, &p, sizeof p);
	return p != NULL;
}

int bound_lp_load(void)
{
	static int loaded;
	void *lib;

	if (loaded)
		return 0;
	lib = dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return -ENOENT;
#define FIND(name) &&find(lib, "Clp_" #name, &clp.name)
	loaded = 1 FUNCTIONS(FIND);
	return loaded ? 0 : -ENOENT;
}

struct bound_lp {
	Clp_Simplex *model;
	int failed;
	UM_VEC(double) row_low, row_high;
	UM_VEC(double) low, high, cost; /* by column */
	UM_VEC(CoinBigIndex) start; /* by column */
	UM_VEC(int) row; /* entries */
	UM_VEC(double) value;
};

struct bound_lp *bound_lp_new(void)
{
	struct bound_lp *lp = calloc(1, sizeof *lp);

	if (!lp)
		return NULL;
	lp->model = clp.newModel();
	if (!lp->model) {
		free(lp);
		return NULL;
	}
	clp.setLogLevel(lp->model, 0);
	return lp;
}

void bound_lp_free(struct bound_lp *lp)
{
	if (!lp)
		return;
	clp.deleteModel(lp->model);
	um_vec_fini(&lp->row_low);
	um_vec_fini(&lp->row_high);
	um_vec_fini(&lp->low);
	um_vec_fini(&lp->high);
	um_vec_fini(&lp->cost);
	um_vec_fini(&lp->start);
	um_vec_fini(&lp->row);
	um_vec_fini(&lp->value);
	free(lp);
}

static double limit(double x)
{
	return x >= BOUND_LP_FREE ? DBL_MAX : x <= -BOUND_LP_FREE ? -DBL_MAX : x;
}

int bound_lp_row(struct bound_lp *lp, double low, double high)
{
	lp->failed |= um_vec_push(&lp->row_low, limit(low)) || um_vec_push(&lp->row_high, limit(high));
	return (int)lp->row_high.n - 1;
}

int bound_lp_column(struct bound_lp *lp, double cost, double low, double high)
{
	lp->failed |= um_vec_push(&lp->cost, cost) || um_vec_push(&lp->low, limit(low)) ||
		      um_vec_push(&lp->high, limit(high)) || um_vec_push(&lp->start, (CoinBigIndex)lp->row.n);
	return (int)lp->start.n - 1;
}

void bound_lp_put(struct bound_lp *lp, int row, double value)
{
	if (lp->failed)
		return;
	for (size_t i = (size_t)lp->start.at[lp->start.n - 1]; i < lp->row.n; i++)
		if (lp->row.at[i] == row) {
			lp->value.at[i] += value;
			return;
		}
	lp->failed |= um_vec_push(&lp->row, row) || um_vec_push(&lp->value, value);
}

int bound_lp_solve(struct bound_lp *lp, double seconds, int *done)
{
	if (lp->failed || um_vec_push(&lp->start, (CoinBigIndex)lp->row.n))
		return -ENOMEM;
	clp.loadProblem(lp->model, (int)lp->cost.n, (int)lp->row_low.n, lp->start.at, lp->row.at, lp->value.at,
			lp->low.at, lp->high.at, lp->cost.at, lp->row_low.at, lp->row_high.at);
	lp->start.n--;
	if (seconds > 0)
		clp.setMaximumSeconds(lp->model, seconds);
	clp.initialSolve(lp->model);
	*done = clp.status(lp->model) == 0;
	return 0;
}

double bound_lp_price(const struct bound_lp *lp, int row)
{
	return clp.dualRowSolution(lp->model)[row];
}
