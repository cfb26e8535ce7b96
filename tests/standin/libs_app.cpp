/* SPDX-License-Identifier: Apache-2.0
 *
 * libs_app.cpp - a program that uses cuBLAS, cuBLASLt and cuSPARSE, and compares with plain loops
 *
 * Built with CUDA's headers and linked to its libraries; run under `umadvise dryrun`. A line a check; status 1 if one fails.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>

static int failed;
static cublasHandle_t blas;
static cudaStream_t stream;

static void check(bool good, const char *what)
{
	if (!good) {
		std::printf("wrong: %s\n", what);
		failed = 1;
	}
}

/* Small whole numbers and halves: sums of them are exact in any order. */
template <class R> static R number(size_t i)
{
	return (R)((int)(i * 7 + i / 5) % 9 - 4) / 2;
}

template <> __half number<__half>(size_t i)
{
	return __float2half(number<float>(i));
}

template <> __nv_bfloat16 number<__nv_bfloat16>(size_t i)
{
	return __float2bfloat16(number<float>(i));
}

static cudaDataType_t type_of(float) { return CUDA_R_32F; }
static cudaDataType_t type_of(__half) { return CUDA_R_16F; }
static cudaDataType_t type_of(__nv_bfloat16) { return CUDA_R_16BF; }
static float single(float x) { return x; }
static float single(__half x) { return __half2float(x); }
static float single(__nv_bfloat16 x) { return __bfloat162float(x); }
static float same(float x, float) { return x; }
static __half same(float x, __half) { return __float2half(x); }
static __nv_bfloat16 same(float x, __nv_bfloat16) { return __float2bfloat16(x); }

template <class R> struct memory {
	R *at;
	size_t n;
	explicit memory(size_t count) : at(nullptr), n(count)
	{
		if (cudaMallocManaged((void **)&at, n * sizeof(R)) != cudaSuccess)
			std::abort();
		if constexpr (!std::is_pointer<R>::value)
			for (size_t i = 0; i < n; i++)
				at[i] = number<R>(i);
	}
	~memory() { cudaFree(at); }
	memory(const memory &) = delete;
	operator R *() { return at; }
	std::vector<R> copy() { return std::vector<R>(at, at + n); }
	bool is(const std::vector<R> &want)
	{
		cudaStreamSynchronize(stream);
		return std::memcmp(at, want.data(), n * sizeof(R)) == 0;
	}
};

/* cublasSgemm and cublasDgemm under one name. */
#define TYPED(name)                                                                                                    \
	template <class... A> static cublasStatus_t name(float, A... a) { return cublasS##name(blas, a...); }          \
	template <class... A> static cublasStatus_t name(double, A... a) { return cublasD##name(blas, a...); }
TYPED(dot) TYPED(axpy) TYPED(scal) TYPED(copy) TYPED(nrm2) TYPED(asum) TYPED(swap) TYPED(rot)
TYPED(gemv) TYPED(ger) TYPED(gemm) TYPED(gemmStridedBatched) TYPED(gemmBatched) TYPED(geam) TYPED(dgmm) TYPED(trsm)
TYPED(syrk)
static cublasStatus_t amax(float, int n, const float *x, int inc, int *r) { return cublasIsamax(blas, n, x, inc, r); }
static cublasStatus_t amax(double, int n, const double *x, int inc, int *r) { return cublasIdamax(blas, n, x, inc, r); }
static cublasStatus_t amin(float, int n, const float *x, int inc, int *r) { return cublasIsamin(blas, n, x, inc, r); }
static cublasStatus_t amin(double, int n, const double *x, int inc, int *r) { return cublasIdamin(blas, n, x, inc, r); }

/* --- vectors ---------------------------------------------------------------------------------------------------- */

template <class R> static void vectors(int n, int incx, int incy)
{
	const size_t lx = 1 + (size_t)(n - 1) * (size_t)std::abs(incx), ly = 1 + (size_t)(n - 1) * (size_t)std::abs(incy);
	memory<R> x(lx), y(ly);
	const R t = 0, alpha = 1.5, c = 0.5, s = 2;
	auto at = [n](int i, int inc) { return (size_t)(inc < 0 ? (i - n + 1) * inc : i * inc); };
	std::vector<R> wx = x.copy(), wy = y.copy();
	R got = 7, want = 0;
	int index = -1, best = 0;

	for (int i = 0; i < n; i++)
		want += wx[at(i, incx)] * wy[at(i, incy)];
	check(!dot(t, n, x.at, incx, y.at, incy, &got) && got == want, "dot");
	for (int i = 0; i < n; i++)
		wy[at(i, incy)] += alpha * wx[at(i, incx)];
	check(!axpy(t, n, &alpha, x.at, incx, y.at, incy) && y.is(wy), "axpy");
	for (int i = 0; i < n; i++)
		std::swap(wx[at(i, incx)], wy[at(i, incy)]);
	check(!swap(t, n, x.at, incx, y.at, incy) && x.is(wx) && y.is(wy), "swap");
	for (int i = 0; i < n; i++) {
		R a = wx[at(i, incx)], b = wy[at(i, incy)];

		wx[at(i, incx)] = c * a + s * b;
		wy[at(i, incy)] = c * b - s * a;
	}
	check(!rot(t, n, x.at, incx, y.at, incy, &c, &s) && x.is(wx) && y.is(wy), "rot");
	for (int i = 0; i < n; i++)
		wy[at(i, incy)] = wx[at(i, incx)];
	check(!copy(t, n, x.at, incx, y.at, incy) && y.is(wy), "copy");
	if (incx < 0)
		return;
	for (int i = 0; i < n; i++)
		wx[at(i, incx)] *= alpha;
	check(!scal(t, n, &alpha, x.at, incx) && x.is(wx), "scal");
	want = 0;
	for (int i = 0; i < n; i++)
		want += std::fabs(wx[at(i, incx)]);
	check(!asum(t, n, x.at, incx, &got) && got == want, "asum");
	want = 0;
	for (int i = 0; i < n; i++)
		want += wx[at(i, incx)] * wx[at(i, incx)];
	check(!nrm2(t, n, x.at, incx, &got) && std::fabs(got * got - want) <= want * (R)1e-6, "nrm2");
	for (int i = 1; i < n; i++)
		if (std::fabs(wx[at(i, incx)]) > std::fabs(wx[at(best, incx)]))
			best = i;
	check(!amax(t, n, x.at, incx, &index) && index == best + 1, "amax");
	for (int i = best = 0; i < n; i++)
		if (std::fabs(wx[at(i, incx)]) < std::fabs(wx[at(best, incx)]))
			best = i;
	check(!amin(t, n, x.at, incx, &index) && index == best + 1, "amin");
}

/* Factors and results that live on the device are met when the kernel runs, not at the call. */
template <class R> static void pointers(int n)
{
	memory<R> x((size_t)n), y((size_t)n), on_device(2);
	memory<int> where(1);
	std::vector<R> wx = x.copy(), wy = y.copy();
	R want = 0;

	cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
	for (int i = 0; i < n; i++)
		want += wx[(size_t)i] * wy[(size_t)i];
	check(!dot(R(), n, x.at, 1, y.at, 1, on_device.at), "dot to the device");
	check(!scal(R(), n, on_device.at, x.at, 1), "scaled by a result");
	check(!amax(R(), n, y.at, 1, where.at), "amax to the device");
	for (auto &v : wx)
		v *= want;
	check(x.is(wx) && on_device.at[0] == want && where.at[0] > 0, "results on the device");
	cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST);
}

/* --- matrices ---------------------------------------------------------------------------------------------------- */

template <class R> static R at(const std::vector<R> &a, int op, int ld, int i, int j, size_t off = 0)
{
	return op ? a[off + (size_t)j + (size_t)i * (size_t)ld] : a[off + (size_t)i + (size_t)j * (size_t)ld];
}

template <class R>
static void product(std::vector<R> &c, int ta, int tb, int m, int n, int k, R alpha, const std::vector<R> &a, int lda,
                    const std::vector<R> &b, int ldb, R beta, int ldc, size_t oa = 0, size_t ob = 0, size_t oc = 0)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			R sum = 0, &to = c[oc + (size_t)i + (size_t)j * (size_t)ldc];

			for (int l = 0; l < k; l++)
				sum += at(a, ta, lda, i, l, oa) * at(b, tb, ldb, l, j, ob);
			to = alpha * sum + (beta == 0 ? 0 : beta * to);
		}
}

template <class R> static void products(int m, int n, int k, int pad)
{
	const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
	const R alpha = 0.5, betas[] = {0, 1, 2};
	const int batch = 3;

	for (auto ta : ops)
		for (auto tb : ops)
			for (R beta : betas) {
				int lda = (ta ? k : m) + pad, ldb = (tb ? n : k) + pad, ldc = m + pad;
				size_t sa = (size_t)lda * (size_t)(ta ? m : k), sb = (size_t)ldb * (size_t)(tb ? k : n);
				size_t sc = (size_t)ldc * (size_t)n;
				memory<R> a(batch * sa), b(batch * sb), c(batch * sc);
				memory<R *> pa(batch), pb(batch), pc(batch);
				std::vector<R> wa = a.copy(), wb = b.copy(), wc = c.copy();

				if (beta == 0)
					c.at[0] = wc[0] = (R)NAN; /* is not read */
				product<R>(wc, ta, tb, m, n, k, alpha, wa, lda, wb, ldb, beta, ldc);
				check(!gemm(R(), ta, tb, m, n, k, &alpha, a.at, lda, b.at, ldb, &beta, c.at, ldc) && c.is(wc),
				      "gemm");
				for (int i = 0; i < batch; i++)
					product<R>(wc, ta, tb, m, n, k, alpha, wa, lda, wb, ldb, beta, ldc, (size_t)i * sa,
					           (size_t)i * sb, (size_t)i * sc);
				check(!gemmStridedBatched(R(), ta, tb, m, n, k, &alpha, a.at, lda, (long long)sa, b.at, ldb,
				                          (long long)sb, &beta, c.at, ldc, (long long)sc, batch) &&
				          c.is(wc),
				      "gemmStridedBatched");
				for (size_t i = 0; i < (size_t)batch; i++) {
					pa.at[i] = a.at + i * sa;
					pb.at[i] = b.at + i * sb;
					pc.at[i] = c.at + i * sc;
					product<R>(wc, ta, tb, m, n, k, alpha, wa, lda, wb, ldb, beta, ldc, i * sa, i * sb,
					           i * sc);
				}
				check(!gemmBatched(R(), ta, tb, m, n, k, &alpha, pa.at, lda, pb.at, ldb, &beta, pc.at, ldc,
				                   batch) &&
				          c.is(wc),
				      "gemmBatched");
			}
}

template <class R> static void matrices(int m, int n)
{
	const R alpha = 1.5, beta = 0.5, two = 2, zero = 0;
	const int ld = m + 2;
	memory<R> a((size_t)ld * (size_t)n), b((size_t)ld * (size_t)n), c((size_t)ld * (size_t)n), x(300), y(300);
	std::vector<R> wa = a.copy(), wb = b.copy(), wc = c.copy(), wx = x.copy(), wy = y.copy();

	for (int t = 0; t < 2; t++) {
		for (int j = 0; j < (t ? n : m); j++) {
			R sum = 0;

			for (int i = 0; i < (t ? m : n); i++)
				sum += at(wa, t, ld, j, i) * wx[(size_t)(2 * i)];
			wy[(size_t)j] = alpha * sum + beta * wy[(size_t)j];
		}
		check(!gemv(R(), t ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, &alpha, a.at, ld, x.at, 2, &beta, y.at, 1) && y.is(wy),
		      "gemv");
	}
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++)
			wb[(size_t)(i + j * ld)] += two * wx[(size_t)i] * wx[(size_t)(n - 1 - j)];
	check(!ger(R(), m, n, &two, x.at, 1, x.at, -1, b.at, ld) && b.is(wb), "ger");
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++)
			wc[(size_t)(i + j * ld)] = alpha * at(wa, 0, ld, i, j) + beta * at(wb, 0, ld, i, j);
	check(!geam(R(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, &alpha, a.at, ld, &beta, b.at, ld, c.at, ld) && c.is(wc), "geam");
	wc = c.copy();
	memory<R> turned((size_t)n * (size_t)m);
	std::vector<R> wt((size_t)n * (size_t)m);
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++)
			wt[(size_t)(j + i * n)] = at(wa, 0, ld, i, j);
	R one = 1;
	check(!geam(R(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, &one, a.at, ld, &zero, (R *)nullptr, n, turned.at, n) &&
	          turned.is(wt),
	      "geam turns");
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++)
			wc[(size_t)(i + j * ld)] = at(wa, 0, ld, i, j) * wx[(size_t)j];
	check(!dgmm(R(), CUBLAS_SIDE_RIGHT, m, n, a.at, ld, x.at, 1, c.at, ld) && c.is(wc), "dgmm");
}

/* A triangle with 1, 2 or 4 on its diagonal: what is solved comes out exactly. */
template <class R> static void triangles(int m, int n)
{
	const cublasSideMode_t sides[] = {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT};
	const cublasFillMode_t fills[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};
	const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
	const cublasDiagType_t diags[] = {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT};
	const R one = 1, zero = 0;

	for (auto side : sides)
		for (auto fill : fills)
			for (auto op : ops)
				for (auto diag : diags) {
					int order = side == CUBLAS_SIDE_LEFT ? m : n;
					memory<R> a((size_t)order * (size_t)order), b((size_t)m * (size_t)n);
					std::vector<R> full((size_t)order * (size_t)order), x = b.copy(), wb((size_t)m * (size_t)n);

					for (int j = 0; j < order; j++)
						for (int i = 0; i < order; i++) {
							bool kept = fill == CUBLAS_FILL_MODE_LOWER ? i > j : i < j;
							R &e = a.at[i + j * order];

							if (i == j)
								e = (R)(1 << (i % 3));
							full[(size_t)(i + j * order)] = i == j ? (diag ? 1 : e) : kept ? e : 0;
						}
					if (side == CUBLAS_SIDE_LEFT)
						product<R>(wb, op, 0, m, n, m, one, full, m, x, m, zero, m);
					else
						product<R>(wb, 0, op, m, n, n, one, x, m, full, n, zero, m);
					std::memcpy(b.at, wb.data(), wb.size() * sizeof(R));
					check(!trsm(R(), side, fill, op, diag, m, n, &one, a.at, order, b.at, m) && b.is(x),
					      "trsm");
				}
	memory<R> a((size_t)m * (size_t)n), c((size_t)m * (size_t)m);
	std::vector<R> wa = a.copy(), wc = c.copy(), all = wc;
	product<R>(all, 0, 1, m, m, n, one, wa, m, wa, m, one, m);
	for (int j = 0; j < m; j++)
		for (int i = j; i < m; i++)
			wc[(size_t)(i + j * m)] = all[(size_t)(i + j * m)];
	check(!syrk(R(), CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, m, n, &one, a.at, m, &one, c.at, m) && c.is(wc), "syrk");
}

static void mixed()
{
	const float alpha = 1, beta = 0;
	memory<float> a(64), b(64), c(64);
	std::vector<float> wa = a.copy(), wb = b.copy(), wc = c.copy();

	product<float>(wc, 1, 0, 8, 8, 8, 1, wa, 8, wb, 8, 0, 8);
	check(!cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 8, 8, 8, &alpha, a, CUDA_R_32F, 8, b, CUDA_R_32F, 8, &beta, c,
	                    CUDA_R_32F, 8, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT) &&
	          c.is(wc),
	      "GemmEx");
	std::memset(c.at, 0, 64 * sizeof(float));
	check(!cublasGemmStridedBatchedEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 8, 8, 8, &alpha, a, CUDA_R_32F, 8, 64, b,
	                                  CUDA_R_32F, 8, 64, &beta, c, CUDA_R_32F, 8, 64, 1, CUBLAS_COMPUTE_32F,
	                                  CUBLAS_GEMM_DEFAULT) &&
	          c.is(wc),
	      "GemmStridedBatchedEx");
	check(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, a, CUDA_R_8I, 8, b, CUDA_R_8I, 8, &beta, c,
	                   CUDA_R_32I, 8, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED,
	      "whole numbers are refused");
	check(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, a, CUDA_R_16F, 8, b, CUDA_R_16BF, 8, &beta, c,
	                   CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED,
	      "two types of factors are refused");
	check(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, a, 7, b, 8, &beta, c, 8) ==
	          CUBLAS_STATUS_INVALID_VALUE,
	      "too few rows are refused");
	check(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, a, 8, b, 8, &beta, c, 8) ==
	          CUBLAS_STATUS_NOT_INITIALIZED,
	      "no handle is refused");
}

/* A and B of type T, C of type U: exact sums, rounded once. */
template <class T, class U> static void narrow(int ta, int tb, int m, int n, int k, float beta)
{
	const int lda = (ta ? k : m) + 1, ldb = (tb ? n : k) + 2, ldc = m + 3, batch = 2;
	const size_t sa = (size_t)lda * (size_t)(ta ? m : k), sb = (size_t)ldb * (size_t)(tb ? k : n);
	const size_t sc = (size_t)ldc * (size_t)n;
	const cudaDataType_t type = type_of(T()), result = type_of(U());
	const auto op_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
	const float alpha = 0.5;
	memory<T> a(batch * sa), b(batch * sb);
	memory<U> c(batch * sc), again(batch * sc), strided(batch * sc);
	memory<T *> pa(batch), pb(batch);
	memory<U *> pc(batch);
	std::vector<float> wa, wb, wc;
	std::vector<U> want;

	if (beta == 0)
		c.at[0] = again.at[0] = strided.at[0] = same(NAN, U()); /* is not read */
	for (size_t i = 0; i < batch * sa; i++)
		wa.push_back(single(a.at[i]));
	for (size_t i = 0; i < batch * sb; i++)
		wb.push_back(single(b.at[i]));
	for (size_t i = 0; i < batch * sc; i++)
		wc.push_back(single(c.at[i]));
	for (size_t l = 0; l < batch; l++) {
		pa.at[l] = a.at + l * sa;
		pb.at[l] = b.at + l * sb;
		pc.at[l] = again.at + l * sc;
		product<float>(wc, ta, tb, m, n, k, alpha, wa, lda, wb, ldb, beta, ldc, l * sa, l * sb, l * sc);
	}
	for (float x : wc)
		want.push_back(same(x, U()));
	check(!cublasGemmEx(blas, op_a, op_b, m, n, k, &alpha, a, type, lda, b, type, ldb, &beta, c, result, ldc,
	                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
	      "GemmEx of 16 bits");
	cudaStreamSynchronize(stream);
	check(!std::memcmp(c.at, want.data(), sc * sizeof(U)), "its result");
	check(!cublasGemmStridedBatchedEx(blas, op_a, op_b, m, n, k, &alpha, a, type, lda, (long long)sa, b, type, ldb,
	                                  (long long)sb, &beta, strided, result, ldc, (long long)sc, batch,
	                                  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) &&
	          strided.is(want),
	      "GemmStridedBatchedEx of 16 bits");
	check(!cublasGemmBatchedEx(blas, op_a, op_b, m, n, k, &alpha, (const void *const *)pa.at, type, lda,
	                           (const void *const *)pb.at, type, ldb, &beta, (void *const *)pc.at, result, ldc, batch,
	                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) &&
	          again.is(want),
	      "GemmBatchedEx of 16 bits");
}

/* Every number of the type times alpha: the products are those of the header's conversions. */
template <class T> static void numbers(float alpha)
{
	const int n = 65536;
	const float beta = 0;
	const cudaDataType_t type = type_of(T());
	memory<T> a(n), one(1), c(n);
	bool good = true;

	one.at[0] = same(1, T());
	for (int i = 0; i < n; i++) {
		uint16_t bits = (uint16_t)i;

		std::memcpy((void *)&a.at[i], &bits, sizeof bits);
	}
	check(!cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, 1, 1, &alpha, a, type, n, one, type, 1, &beta, c, type, n,
	                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
	      "a product with 1");
	cudaStreamSynchronize(stream);
	for (int i = 0; i < n; i++) {
		float x = single(a.at[i]);
		T want = same(alpha * x, T());

		good &= std::isnan(x) ? std::isnan(single(c.at[i])) : single(c.at[i]) == single(want);
	}
	check(good, "numbers are rounded as the header does");
}

/* In half precision the factors are halves, too. */
static void half_factors()
{
	const __half alpha = __float2half(0.25f), beta = __float2half(2);
	memory<__half> a(64), b(64), c(64);
	std::vector<float> wa, wb, wc;
	std::vector<__half> want;

	for (size_t i = 0; i < 64; i++) {
		wa.push_back(single(a.at[i]));
		wb.push_back(single(b.at[i]));
		wc.push_back(single(c.at[i]));
	}
	product<float>(wc, 0, 0, 8, 8, 8, 0.25f, wa, 8, wb, 8, 2, 8);
	for (float x : wc)
		want.push_back(__float2half(x));
	check(!cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &alpha, a, CUDA_R_16F, 8, b, CUDA_R_16F, 8, &beta, c,
	                    CUDA_R_16F, 8, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT) &&
	          c.is(want),
	      "half precision");
}

static void copies()
{
	float host[60], back[60] = {0}, *dev;

	for (int i = 0; i < 60; i++)
		host[i] = number<float>((size_t)i);
	cudaMalloc((void **)&dev, sizeof host);
	cudaMemset(dev, 0, sizeof host);
	check(!cublasSetMatrix(5, 6, sizeof *host, host, 10, dev, 5) && !cublasGetMatrix(5, 6, sizeof *host, dev, 5, back, 7),
	      "matrices are copied");
	for (int j = 0; j < 6; j++)
		check(!std::memcmp(back + 7 * j, host + 10 * j, 5 * sizeof *host) && !back[7 * j + 5], "a matrix came back");
	check(!cublasSetVector(20, sizeof *host, host, 3, dev, 1) && !cublasGetVector(20, sizeof *host, dev, 1, back, 2),
	      "vectors are copied");
	for (int i = 0; i < 20; i++)
		check(back[2 * i] == host[3 * i], "a vector came back");
	cudaFree(dev);
}

/* A captured call is done by the graph, and not before. */
static void capture()
{
	const float two = 2;
	memory<float> x(100);
	std::vector<float> want = x.copy();
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	cudaStreamSynchronize(stream);
	if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
		return;
	check(!cublasSscal(blas, 100, &two, x, 1), "a captured call");
	check(!cudaStreamEndCapture(stream, &graph) && !cudaGraphInstantiate(&exec, graph, 0), "is in a graph");
	check(x.is(want), "and not done yet");
	check(!cudaGraphLaunch(exec, stream) && !cudaGraphLaunch(exec, stream), "the graph runs twice");
	for (auto &v : want)
		v *= 4;
	check(x.is(want), "and does it twice");
	cudaGraphExecDestroy(exec);
	cudaGraphDestroy(graph);
}

/* --- cuBLASLt ---------------------------------------------------------------------------------------------------- */

static double gelu(double x)
{
	return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

template <class T> static void light_once(int epilogue, int order, bool turned)
{
	const int m = 13, n = 9, k = 11;
	const float alpha = 0.25, beta = 0.5;
	const cublasOperation_t op = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
	const int rows_a = turned ? k : m, cols_a = turned ? m : k;
	const cublasLtOrder_t by = order ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
	const double exact = sizeof(T) == 4 ? 1e-5 : 0x1p-7; /* of the larger of 1 and the result */
	memory<T> a((size_t)(m * k)), b((size_t)(k * n)), c((size_t)(m * n)), d((size_t)(m * n)), bias((size_t)m);
	cublasLtHandle_t lt;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t la, lb, lc, ld;
	cublasLtMatmulPreference_t pref;
	cublasLtMatmulHeuristicResult_t found[2];
	size_t room = 1 << 20;
	int n_found = 0;
	uint32_t aligned = 16;
	const T *pb = bias;

	cublasLtCreate(&lt);
	cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof op);
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pb, sizeof pb);
	cublasLtMatrixLayoutCreate(&la, type_of(T()), (uint64_t)rows_a, (uint64_t)cols_a, order ? cols_a : rows_a);
	cublasLtMatrixLayoutCreate(&lb, type_of(T()), k, n, order ? n : k);
	cublasLtMatrixLayoutCreate(&lc, type_of(T()), m, n, order ? n : m);
	cublasLtMatrixLayoutCreate(&ld, type_of(T()), m, n, order ? n : m);
	for (auto l : {la, lb, lc, ld})
		cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &by, sizeof by);
	cublasLtMatmulPreferenceCreate(&pref);
	cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
	check(!cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned,
	                                            sizeof aligned),
	      "an alignment is taken");
	check(!cublasLtMatmulAlgoGetHeuristic(lt, desc, la, lb, lc, ld, pref, 1, found, &n_found) && n_found == 1 &&
	          found[0].state == CUBLAS_STATUS_SUCCESS && found[0].workspaceSize <= room,
	      "an algorithm is found");
	check(!cublasLtMatmul(lt, desc, &alpha, a, la, b, lb, &beta, c, lc, d, ld, &found[0].algo, nullptr, 0, stream),
	      "cublasLtMatmul");
	cudaStreamSynchronize(stream);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;

			for (int l = 0; l < k; l++) {
				int r = turned ? l : i, s = turned ? i : l;

				sum += (double)single(a.at[order ? r * cols_a + s : r + s * rows_a]) *
				       (double)single(b.at[order ? l * n + j : l + j * k]);
			}
			sum = (double)alpha * sum + (double)beta * (double)single(c.at[order ? i * n + j : i + j * m]);
			if (epilogue & CUBLASLT_EPILOGUE_BIAS)
				sum += (double)single(bias.at[i]);
			if (epilogue & CUBLASLT_EPILOGUE_GELU)
				sum = gelu(sum);
			if (epilogue & CUBLASLT_EPILOGUE_RELU)
				sum = sum > 0 ? sum : 0;
			check(std::fabs((double)single(d.at[order ? i * n + j : i + j * m]) - sum) < exact * std::fmax(1, std::fabs(sum)),
			      "cublasLtMatmul's result");
		}
	cublasLtMatmulPreferenceDestroy(pref);
	for (auto l : {la, lb, lc, ld})
		cublasLtMatrixLayoutDestroy(l);
	cublasLtMatmulDescDestroy(desc);
	cublasLtDestroy(lt);
}

static void light()
{
	const int epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,      CUBLASLT_EPILOGUE_RELU,
	                         CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS};

	for (int e : epilogues)
		for (int order = 0; order < 2; order++)
			for (int turned = 0; turned < 2; turned++) {
				light_once<float>(e, order, turned);
				light_once<__half>(e, order, turned);
				light_once<__nv_bfloat16>(e, order, turned);
			}
}

/* --- cuSPARSE ---------------------------------------------------------------------------------------------------- */

/* A matrix of 40 x 30, a third of it full, in three formats. */
template <class R, class I> static void sparse(cusparseIndexBase_t base)
{
	const cudaDataType type = sizeof(R) == 8 ? CUDA_R_64F : CUDA_R_32F;
	const cusparseIndexType_t index = sizeof(I) == 8 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
	const cusparseOperation_t ops[] = {CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE};
	const int rows = 40, cols = 30, n = 5;
	const R alpha = 2, betas[] = {0, 0.5};
	std::vector<R> full((size_t)(rows * cols));
	int64_t entries = 0;
	cusparseHandle_t h;

	for (int i = 0; i < rows; i++)
		for (int j = 0; j < cols; j++)
			if ((i * 5 + j * 3) % 7 < 2 && i != 11) {
				full[(size_t)(i + j * rows)] = number<R>((size_t)(i * cols + j)) + 5;
				entries++;
			}
	memory<I> row_off((size_t)rows + 1), col_off((size_t)cols + 1), col_of((size_t)entries), row_of((size_t)entries),
	    row_csc((size_t)entries);
	memory<R> by_row((size_t)entries), by_col((size_t)entries);
	I e = 0;
	for (int i = 0; i < rows; i++) {
		row_off.at[i] = e + (I)base;
		for (int j = 0; j < cols; j++)
			if (full[(size_t)(i + j * rows)] != 0) {
				col_of.at[e] = (I)j + (I)base;
				row_of.at[e] = (I)i + (I)base;
				by_row.at[e++] = full[(size_t)(i + j * rows)];
			}
	}
	row_off.at[rows] = e + (I)base;
	e = 0;
	for (int j = 0; j < cols; j++) {
		col_off.at[j] = e + (I)base;
		for (int i = 0; i < rows; i++)
			if (full[(size_t)(i + j * rows)] != 0) {
				row_csc.at[e] = (I)i + (I)base;
				by_col.at[e++] = full[(size_t)(i + j * rows)];
			}
	}
	col_off.at[cols] = e + (I)base;

	cusparseSpMatDescr_t formats[3];
	check(!cusparseCreate(&h) && !cusparseSetStream(h, stream), "cusparseCreate");
	cusparseCreateCsr(&formats[0], rows, cols, entries, row_off, col_of, by_row, index, index, base, type);
	cusparseCreateCsc(&formats[1], rows, cols, entries, col_off, row_csc, by_col, index, index, base, type);
	cusparseCreateCoo(&formats[2], rows, cols, entries, row_of, col_of, by_row, index, base, type);
	for (auto a : formats)
		for (auto op : ops)
			for (R beta : betas) {
				int in = op ? rows : cols, out = op ? cols : rows;
				memory<R> x((size_t)in), y((size_t)out), b((size_t)(in * n)), c((size_t)(out * n));
				std::vector<R> wx = x.copy(), wy = y.copy(), wb = b.copy(), wc = c.copy();
				cusparseDnVecDescr_t vx, vy;
				cusparseDnMatDescr_t mb, mc;
				size_t bytes = 0;

				cusparseCreateDnVec(&vx, in, x, type);
				cusparseCreateDnVec(&vy, out, y, type);
				product<R>(wy, op, 0, out, 1, in, alpha, full, rows, wx, in, beta, out);
				check(!cusparseSpMV_bufferSize(h, op, &alpha, a, vx, &beta, vy, type, CUSPARSE_SPMV_ALG_DEFAULT,
				                               &bytes) &&
				          bytes && !cusparseSpMV(h, op, &alpha, a, vx, &beta, vy, type,
				                                 CUSPARSE_SPMV_ALG_DEFAULT, nullptr) && y.is(wy),
				      "SpMV");
				cusparseCreateDnMat(&mb, n, in, n, b, type, CUSPARSE_ORDER_COL); /* is used turned over */
				cusparseCreateDnMat(&mc, out, n, n, c, type, CUSPARSE_ORDER_ROW);
				std::vector<R> result((size_t)(out * n));
				for (int i = 0; i < out; i++)
					for (int j = 0; j < n; j++)
						result[(size_t)(i + j * out)] = wc[(size_t)(i * n + j)];
				product<R>(result, op, 1, out, n, in, alpha, full, rows, wb, n, beta, out);
				for (int i = 0; i < out; i++)
					for (int j = 0; j < n; j++)
						wc[(size_t)(i * n + j)] = result[(size_t)(i + j * out)];
				check(!cusparseSpMM(h, op, CUSPARSE_OPERATION_TRANSPOSE, &alpha, a, mb, &beta, mc, type,
				                    CUSPARSE_SPMM_ALG_DEFAULT, nullptr) &&
				          c.is(wc),
				      "SpMM");
				cusparseDestroyDnVec(vx);
				cusparseDestroyDnVec(vy);
				cusparseDestroyDnMat(mb);
				cusparseDestroyDnMat(mc);
			}
	for (auto a : formats)
		cusparseDestroySpMat(a);
	cusparseDestroy(h);
}

/* A band matrix of halves with 1, 2, 4 on its diagonal: what is solved comes out exactly. Its incomplete LU is complete,
 * since nothing is filled in: L U is the matrix again. */
template <class R> static void sparse_triangles(cusparseIndexBase_t base)
{
	const cudaDataType type = sizeof(R) == 8 ? CUDA_R_64F : CUDA_R_32F;
	const int n = 24;
	const R two = 2;
	std::vector<R> full((size_t)(n * n));
	memory<int> off((size_t)n + 1), other((size_t)(3 * n));
	memory<R> values((size_t)(3 * n)), turned((size_t)(3 * n)), x((size_t)n), y((size_t)n);
	cusparseHandle_t h;
	int e = 0;

	for (int i = 0; i < n; i++) {
		off.at[i] = e + (int)base;
		for (int j = i ? i - 1 : 0; j < n && j <= i + 1; j++) {
			full[(size_t)(i + j * n)] = i == j ? (R)(1 << i % 3) : (R)(j < i ? 0.5 : -0.5);
			other.at[e] = j + (int)base;
			values.at[e] = full[(size_t)(i + j * n)];
			turned.at[e++] = i == j ? (R)(1 << i % 3) : (R)(j < i ? -0.5 : 0.5); /* by column */
		}
	}
	off.at[n] = e + (int)base;
	check(!cusparseCreate(&h) && !cusparseSetStream(h, stream), "cusparseCreate");
	for (int k = 0; k < 16; k++) {
		auto fill = k & 1 ? CUSPARSE_FILL_MODE_UPPER : CUSPARSE_FILL_MODE_LOWER;
		auto diag = k & 2 ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT;
		auto op = k & 4 ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
		std::vector<R> triangle(full), want((size_t)n), right((size_t)n);
		cusparseSpMatDescr_t a;
		cusparseDnVecDescr_t vx, vy;
		cusparseSpSVDescr_t s;
		size_t bytes = 0;

		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++) {
				R &v = triangle[(size_t)(i + j * n)];

				v = i == j ? (diag ? 1 : v) : (fill ? j > i : j < i) ? v : 0;
			}
		for (int i = 0; i < n; i++)
			want[(size_t)i] = number<R>((size_t)(i + k));
		product<R>(right, op, 0, n, 1, n, (R)0.5, triangle, n, want, n, (R)0, n);
		std::memcpy(x.at, right.data(), (size_t)n * sizeof(R));
		if (k & 8)
			cusparseCreateCsc(&a, n, n, e, off, other, turned, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, base,
			                  type);
		else
			cusparseCreateCsr(&a, n, n, e, off, other, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, base,
			                  type);
		cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill);
		cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_DIAG_TYPE, &diag, sizeof diag);
		cusparseCreateDnVec(&vx, n, x, type);
		cusparseCreateDnVec(&vy, n, y, type);
		cusparseSpSV_createDescr(&s);
		check(!cusparseSpSV_bufferSize(h, op, &two, a, vx, vy, type, CUSPARSE_SPSV_ALG_DEFAULT, s, &bytes) &&
		          bytes &&
		          !cusparseSpSV_analysis(h, op, &two, a, vx, vy, type, CUSPARSE_SPSV_ALG_DEFAULT, s, nullptr) &&
		          !cusparseSpSV_solve(h, op, &two, a, vx, vy, type, CUSPARSE_SPSV_ALG_DEFAULT, s) && y.is(want),
		      "SpSV");
		cusparseSpSV_destroyDescr(s);
		cusparseDestroyDnVec(vx);
		cusparseDestroyDnVec(vy);
		cusparseDestroySpMat(a);
	}

	cusparseMatDescr_t d;
	csrilu02Info_t info;
	int bytes = 0, zero = 0;
	cusparseCreateMatDescr(&d);
	cusparseSetMatIndexBase(d, base);
	cusparseCreateCsrilu02Info(&info);
	if constexpr (sizeof(R) == 8)
		check(!cusparseDcsrilu02_bufferSize(h, n, e, d, values, off, other, info, &bytes) &&
		          !cusparseDcsrilu02(h, n, e, d, values, off, other, info, CUSPARSE_SOLVE_POLICY_NO_LEVEL, nullptr),
		      "csrilu02");
	else
		check(!cusparseScsrilu02_bufferSize(h, n, e, d, values, off, other, info, &bytes) &&
		          !cusparseScsrilu02(h, n, e, d, values, off, other, info, CUSPARSE_SOLVE_POLICY_NO_LEVEL, nullptr),
		      "csrilu02");
	check(!cusparseXcsrilu02_zeroPivot(h, info, &zero) && zero == -1 && bytes > 0, "no pivot is zero");
	std::vector<R> lower((size_t)(n * n)), upper((size_t)(n * n)), again((size_t)(n * n));
	for (int i = 0; i < n; i++) {
		lower[(size_t)(i + i * n)] = 1;
		for (int k = off.at[i] - (int)base; k < off.at[i + 1] - (int)base; k++) {
			int j = other.at[k] - (int)base;

			(j < i ? lower : upper)[(size_t)(i + j * n)] = values.at[k];
		}
	}
	product<R>(again, 0, 0, n, n, n, (R)1, lower, n, upper, n, (R)0, n);
	for (size_t i = 0; i < again.size(); i++)
		check(std::fabs(again[i] - full[i]) < (R)1e-5, "L U is the matrix");
	cusparseDestroyCsrilu02Info(info);
	cusparseDestroyMatDescr(d);
	cusparseDestroy(h);
}

int main()
{
	int version = 0;

	if (cudaStreamCreate(&stream) != cudaSuccess || cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS) {
		std::printf("no device\n");
		return 2;
	}
	check(!cublasGetVersion(blas, &version) && version >= 120000, "a version");
	version = 0;
	check(!cublasGetVersion(nullptr, &version) && version >= 120000, "a version without a handle");
	cublasSetStream(blas, stream);
	vectors<float>(1000, 1, 1);
	vectors<double>(777, 1, 1);
	vectors<float>(100, 2, -3);
	vectors<double>(50, -1, 2);
	pointers<float>(100);
	pointers<double>(100);
	products<float>(1, 1, 1, 0);
	products<float>(100, 9, 300, 3);
	products<double>(33, 17, 5, 0);
	matrices<float>(20, 30);
	matrices<double>(31, 7);
	triangles<float>(7, 5);
	triangles<double>(4, 6);
	mixed();
	for (int i = 0; i < 8; i++) {
		narrow<__half, __half>(i & 1, i >> 1 & 1, 100, 260, 300, i & 4 ? 1 : 0);
		narrow<__half, float>(i & 1, i >> 1 & 1, 5, 3, 7, i & 4 ? 2 : 0);
		narrow<__nv_bfloat16, __nv_bfloat16>(i & 1, i >> 1 & 1, 33, 7, 257, i & 4 ? 1 : 0);
		narrow<__nv_bfloat16, float>(i & 1, i >> 1 & 1, 97, 2, 20, i & 4 ? 1 : 0);
	}
	for (float alpha : {1.0f, 0.5f, 1.5f, 1.0007f, 3e-5f, 3e5f}) {
		numbers<__half>(alpha);
		numbers<__nv_bfloat16>(alpha);
	}
	half_factors();
	copies();
	capture();
	light();
	sparse<float, int>(CUSPARSE_INDEX_BASE_ZERO);
	sparse<double, int64_t>(CUSPARSE_INDEX_BASE_ONE);
	sparse_triangles<float>(CUSPARSE_INDEX_BASE_ONE);
	sparse_triangles<double>(CUSPARSE_INDEX_BASE_ZERO);
	check(!cublasDestroy(blas), "cublasDestroy");
	std::printf("%s\n", failed ? "not all is right" : "all is right");
	return failed;
}
