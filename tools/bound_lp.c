/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver is Clp, which goes on from the last basis when columns were added. It is loaded when the first bound is
 * asked for: what comes with it (LAPACK, a Fortran runtime) ends the process when memory runs out at its start, and is
 * no burden for other verbs.
 */
#include "bound_lp.h"

#include <coin/Clp_C_Interface.h>
#include <dlfcn.h>
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(F)                                                                                                   \
	F(newModel) F(deleteModel) F(setLogLevel) F(resize) F(chgRowLower) F(addColumns) F(primal) F(status)           \
	F(objectiveValue) F(dualRowSolution)

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
	int rows;
	int *index;
	double *value;
};

struct bound_lp *bound_lp_new(int rows, const double *low)
{
	struct bound_lp *lp = calloc(1, sizeof *lp);

	if (!lp)
		return NULL;
	lp->model = clp.newModel();
	lp->index = malloc(((size_t)rows + 1) * sizeof *lp->index);
	lp->value = malloc(((size_t)rows + 1) * sizeof *lp->value);
	lp->rows = rows;
	if (!lp->model || !lp->index || !lp->value) {
		bound_lp_free(lp);
		return NULL;
	}
	clp.setLogLevel(lp->model, 0);
	clp.resize(lp->model, rows, 0);
	clp.chgRowLower(lp->model, low);
	return lp;
}

void bound_lp_free(struct bound_lp *lp)
{
	if (!lp)
		return;
	if (lp->model)
		clp.deleteModel(lp->model);
	free(lp->index);
	free(lp->value);
	free(lp);
}

int bound_lp_add(struct bound_lp *lp, double cost, double low, double high, int n, const struct bound_lp_entry *e)
{
	CoinBigIndex starts[2] = {0, n};

	for (int i = 0; i < n; i++) {
		lp->index[i] = e[i].row;
		lp->value[i] = e[i].value;
	}
	if (high < low)
		high = DBL_MAX;
	clp.addColumns(lp->model, 1, &low, &high, &cost, starts, lp->index, lp->value);
	return 0;
}

int bound_lp_solve(struct bound_lp *lp, double *objective, double *price)
{
	const double *dual;

	/* Columns were added since: the old basis is still primal feasible. */
	if (clp.primal(lp->model, 0) < 0 || clp.status(lp->model) != 0)
		return -EIO;
	*objective = clp.objectiveValue(lp->model);
	dual = clp.dualRowSolution(lp->model);
	for (int i = 0; i < lp->rows; i++)
		price[i] = dual[i];
	return 0;
}
