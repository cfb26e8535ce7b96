/* SPDX-License-Identifier: Apache-2.0
 *
 * bayes.c - fits the Gaussian process and chooses the next point
 */
#include "plan/bayes.h"

#include <math.h>
#include <string.h>

#define TRIED 256
#define NOISE 1e-6

struct process {
	const struct um_bayes *y;
	double root[UM_BAYES_MOST][UM_BAYES_MOST]; /* Cholesky factor of the kernel matrix */
	double weight[UM_BAYES_MOST]; /* the inverse of the matrix times the values */
	double mean, deviation, least; /* of the values; the least one is standardised */
};

static double kernel(const double *a, const double *b)
{
	double square = 0;

	for (int i = 0; i < UM_BAYES_DIMS; i++)
		square += (a[i] - b[i]) * (a[i] - b[i]);
	return exp(-square / 2);
}

/* Solves root * x = v, in place. */
static void forward(const struct process *p, double *v)
{
	for (int i = 0; i < p->y->n; i++) {
		for (int k = 0; k < i; k++)
			v[i] -= p->root[i][k] * v[k];
		v[i] /= p->root[i][i];
	}
}

static void fit(struct process *p, const struct um_bayes *y)
{
	int n = y->n;
	double square = 0;

	memset(p, 0, sizeof *p);
	p->y = y;
	for (int i = 0; i < n; i++)
		p->mean += y->value[i] / n;
	for (int i = 0; i < n; i++)
		square += (y->value[i] - p->mean) * (y->value[i] - p->mean) / n;
	p->deviation = square > 0 ? sqrt(square) : 1;
	for (int i = 0; i < n; i++) {
		for (int k = 0; k <= i; k++) {
			double sum = kernel(y->at[i], y->at[k]) + (i == k ? NOISE : 0);

			for (int j = 0; j < k; j++)
				sum -= p->root[i][j] * p->root[k][j];
			p->root[i][k] = i == k ? sqrt(sum > NOISE ? sum : NOISE) : sum / p->root[k][k];
		}
		p->weight[i] = (y->value[i] - p->mean) / p->deviation;
		if (p->weight[i] < p->least)
			p->least = p->weight[i];
	}
	forward(p, p->weight);
	for (int i = n; i-- > 0;) {
		for (int k = i + 1; k < n; k++)
			p->weight[i] -= p->root[k][i] * p->weight[k];
		p->weight[i] /= p->root[i][i];
	}
}

/* Expected improvement of a point over the least value. */
static double improvement(const struct process *p, const double *at)
{
	double v[UM_BAYES_MOST], mean = 0, spread = 1, z;

	for (int i = 0; i < p->y->n; i++) {
		v[i] = kernel(at, p->y->at[i]);
		mean += v[i] * p->weight[i];
	}
	forward(p, v);
	for (int i = 0; i < p->y->n; i++)
		spread -= v[i] * v[i];
	spread = sqrt(spread > 1e-12 ? spread : 1e-12);
	z = (p->least - mean) / spread;
	return spread * (z * erfc(-z / sqrt(2)) / 2 + exp(-z * z / 2) / sqrt(2 * 3.14159265358979323846));
}

/* The n-th number of a low-discrepancy sequence over (0, 1): its digits in some base, mirrored. */
static double mirrored(unsigned n, unsigned base)
{
	double sum = 0, digit = 1;

	for (; n; n /= base) {
		digit /= base;
		sum += digit * (n % base);
	}
	return sum;
}

void um_bayes_next(const struct um_bayes *y, double at[UM_BAYES_DIMS])
{
	static const unsigned base[UM_BAYES_DIMS] = {2, 3, 5, 7};
	struct process p;
	double best = -1;

	fit(&p, y);
	for (unsigned i = 1; i <= TRIED; i++) {
		double x[UM_BAYES_DIMS], gain;

		for (int k = 0; k < UM_BAYES_DIMS; k++)
			x[k] = 2 * mirrored(i + TRIED * (unsigned)y->n, base[k]) - 1;
		gain = improvement(&p, x);
		if (gain > best) {
			best = gain;
			memcpy(at, x, sizeof x);
		}
	}
}

void um_bayes_add(struct um_bayes *y, const double at[UM_BAYES_DIMS], double value)
{
	memcpy(y->at[y->n], at, sizeof y->at[y->n]);
	y->value[y->n++] = value;
}

int um_bayes_best(const struct um_bayes *y)
{
	int best = 0;

	for (int i = 1; i < y->n; i++)
		if (y->value[i] < y->value[best])
			best = i;
	return best;
}
