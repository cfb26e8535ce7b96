/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver is Clp, which goes on from the last basis when columns were added.
 */
#include "bound_lp.h"

#include <coin/Clp_C_Interface.h>
#include <errno.h>
#include <float.h>
#include <stdlib.h>

struct bound_lp {
	Clp_Simplex *clp;
	int rows;
	int *index;
	double *value;
};

struct bound_lp *bound_lp_new(int rows, const double *low)
{
	struct bound_lp *lp = calloc(1, sizeof *lp);

	if (!lp)
		return NULL;
	lp->clp = Clp_newModel();
	lp->index = malloc(((size_t)rows + 1) * sizeof *lp->index);
	lp->value = malloc(((size_t)rows + 1) * sizeof *lp->value);
	lp->rows = rows;
	if (!lp->clp || !lp->index || !lp->value) {
		bound_lp_free(lp);
		return NULL;
	}
	Clp_setLogLevel(lp->clp, 0);
	Clp_resize(lp->clp, rows, 0);
	Clp_chgRowLower(lp->clp, low);
	return lp;
}

void bound_lp_free(struct bound_lp *lp)
{
	if (!lp)
		return;
	if (lp->clp)
		Clp_deleteModel(lp->clp);
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
	Clp_addColumns(lp->clp, 1, &low, &high, &cost, starts, lp->index, lp->value);
	return 0;
}

int bound_lp_solve(struct bound_lp *lp, double *objective, double *price)
{
	const double *dual;

	/* Columns were added since: the old basis is still primal feasible. */
	if (Clp_primal(lp->clp, 0) < 0 || Clp_status(lp->clp) != 0)
		return -EIO;
	*objective = Clp_objectiveValue(lp->clp);
	dual = Clp_dualRowSolution(lp->clp);
	for (int i = 0; i < lp->rows; i++)
		price[i] = dual[i];
	return 0;
}
