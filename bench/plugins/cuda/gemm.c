// SPDX-License-Identifier: Apache-2.0
/*
 * Matrix products on the GPU through cuBLASLt. Row-major C = op(A)*op(B) is column-major
 * C^T = op(B)^T * op(A)^T over the same bytes, so the operands are swapped and nothing is copied.
 * f32 is computed in f32 (no TF32), bf16 accumulates in f32.
 *
 * cuBLASLt is opened by name, not linked: it weighs half a gigabyte, and where it is missing GPU
 * memory must still work.
 */
#include <cublasLt.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plugins/cuda/cuda_priv.h"
#include "bench/train/gemm_ops.h"

#define STRING2(x) #x
#define STRING(x)  STRING2(x)
#define LIBRARY    "libcublasLt.so." STRING(CUBLAS_VER_MAJOR)
/* What NVIDIA advises for Hopper and later; older devices use less of it. */
#define WORKSPACE (32u << 20)

#define LT_CALLS(X)                             \
	X(cublasLtCreate)                       \
	X(cublasLtDestroy)                      \
	X(cublasLtGetVersion)                   \
	X(cublasLtMatmul)                       \
	X(cublasLtMatmulDescCreate)             \
	X(cublasLtMatmulDescDestroy)            \
	X(cublasLtMatmulDescSetAttribute)       \
	X(cublasLtMatrixLayoutCreate)           \
	X(cublasLtMatrixLayoutDestroy)          \
	X(cublasLtMatmulPreferenceCreate)       \
	X(cublasLtMatmulPreferenceDestroy)      \
	X(cublasLtMatmulPreferenceSetAttribute) \
	X(cublasLtMatmulAlgoGetHeuristic)       \
	X(cublasLtMatmulAlgoConfigGetAttribute)

struct lt {
#define FIELD(name) __typeof__(&name) name;
	LT_CALLS(FIELD)
#undef FIELD
	char missing[256]; /**< why it cannot be used; empty when it can */
};

struct gemm_plan {
	const struct lt *lt;
	int device;
	cublasLtHandle_t handle;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t first, second, result; /**< as cuBLASLt sees them: B, A, C */
	cublasLtMatmulAlgo_t algo;
	cudaStream_t stream;
	void *workspace;
	float alpha, beta;
	char impl[64];
};

static pthread_once_t lt_once = PTHREAD_ONCE_INIT;
static struct lt lt_calls; /* the foreign library's entry points, written once */

static void lt_open(void)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		snprintf(lt_calls.missing, sizeof(lt_calls.missing), "%s", dlerror());
		return;
	}
#define FIND(name)                                    \
	*(void **)&lt_calls.name = dlsym(lib, #name); \
	if (!lt_calls.name)                           \
		snprintf(lt_calls.missing, sizeof(lt_calls.missing), LIBRARY " has no " #name);
	LT_CALLS(FIND)
#undef FIND
}

static const struct lt *lt_get(struct fb_err *e)
{
	pthread_once(&lt_once, lt_open);
	if (lt_calls.missing[0] == '\0')
		return &lt_calls;
	fb_fail(e, FB_EXIT_SKIP, ENODEV, "no GPU matrix products: %s", lt_calls.missing);
	fb_hint(e, "install cuBLAS of CUDA " STRING(CUBLAS_VER_MAJOR) " or add its folder to "
								      "LD_LIBRARY_PATH");
	return NULL;
}

static int lt_fail(struct fb_err *e, cublasStatus_t s, const char *what)
{
	int code = s == CUBLAS_STATUS_NOT_SUPPORTED  ? EOPNOTSUPP
		   : s == CUBLAS_STATUS_ALLOC_FAILED ? ENOMEM
						     : EIO;
	return fb_fail(e, FB_EXIT_UNMEASURED, code, "%s: cuBLAS status %d", what, (int)s);
}

static int probe(char *found, size_t len, struct fb_err *why)
{
	int rc = cuda_probe(found, len, why);
	if (rc != 0)
		return rc;
	const struct lt *lt = lt_get(why);
	if (!lt)
		return -ENODEV;
	size_t n = strlen(found);
	snprintf(found + n, len - n, "; cuBLASLt %zu", lt->cublasLtGetVersion());
	return 0;
}

static void destroy(struct gemm_plan *p)
{
	if (!p)
		return;
	cudaSetDevice(p->device);
	if (p->first)
		p->lt->cublasLtMatrixLayoutDestroy(p->first);
	if (p->second)
		p->lt->cublasLtMatrixLayoutDestroy(p->second);
	if (p->result)
		p->lt->cublasLtMatrixLayoutDestroy(p->result);
	if (p->desc)
		p->lt->cublasLtMatmulDescDestroy(p->desc);
	if (p->handle)
		p->lt->cublasLtDestroy(p->handle);
	if (p->workspace)
		cudaFree(p->workspace);
	if (p->stream)
		cudaStreamDestroy(p->stream);
	free(p);
}

/* The row-major matrix of rows x cols, seen column-major: cols x rows with the same ld. */
static cublasStatus_t layout(const struct lt *lt, cublasLtMatrixLayout_t *l, enum gemm_dtype t,
	int64_t rows, int64_t cols, int64_t ld)
{
	return lt->cublasLtMatrixLayoutCreate(
		l, t == GEMM_BF16 ? CUDA_R_16BF : CUDA_R_32F, (uint64_t)cols, (uint64_t)rows, ld);
}

static cublasStatus_t describe(struct gemm_plan *p, const struct gemm_shape *s)
{
	const struct lt *lt = p->lt;
	cublasOperation_t ta = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasOperation_t tb = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
	cublasStatus_t rc = lt->cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = lt->cublasLtMatmulDescSetAttribute(
			p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta));
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = lt->cublasLtMatmulDescSetAttribute(
			p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb));
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = layout(lt, &p->first, s->in, s->trans_b ? s->n : s->k,
			s->trans_b ? s->k : s->n, s->ldb);
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = layout(lt, &p->second, s->in, s->trans_a ? s->k : s->m,
			s->trans_a ? s->m : s->k, s->lda);
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = layout(lt, &p->result, s->out, s->m, s->n, s->ldc);
	return rc;
}

static cublasStatus_t choose(struct gemm_plan *p)
{
	const struct lt *lt = p->lt;
	cublasLtMatmulPreference_t pref = NULL;
	cublasLtMatmulHeuristicResult_t best;
	memset(&best, 0, sizeof(best));
	size_t workspace = WORKSPACE;
	int n = 0;
	cublasStatus_t rc = lt->cublasLtMatmulPreferenceCreate(&pref);
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = lt->cublasLtMatmulPreferenceSetAttribute(pref,
			CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
	if (rc == CUBLAS_STATUS_SUCCESS)
		rc = lt->cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->first, p->second,
			p->result, p->result, pref, 1, &best, &n);
	if (rc == CUBLAS_STATUS_SUCCESS && n == 0)
		rc = CUBLAS_STATUS_NOT_SUPPORTED;
	if (pref)
		lt->cublasLtMatmulPreferenceDestroy(pref);
	if (rc != CUBLAS_STATUS_SUCCESS)
		return rc;
	p->algo = best.algo;
	int id = -1;
	lt->cublasLtMatmulAlgoConfigGetAttribute(
		&p->algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof(id), NULL);
	snprintf(p->impl, sizeof(p->impl), "cublasLt %zu algo %d", lt->cublasLtGetVersion(), id);
	return rc;
}

static int create(int device, const struct gemm_shape *s, struct gemm_plan **out, struct fb_err *e)
{
	const struct lt *lt = lt_get(e);
	if (!lt)
		return -ENODEV;
	if (s->in == GEMM_F64 || s->out == GEMM_F64)
		return fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
			"cuBLASLt products here are of bf16 and f32: fp64 is the reference on the CPU");
	struct gemm_plan *p = calloc(1, sizeof(*p));
	if (!p)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a matrix product's plan");
	*p = (struct gemm_plan){.lt = lt, .device = device, .alpha = s->alpha, .beta = s->beta};
	int rc;
	cudaError_t cr = cudaSetDevice(device);
	if (cr == cudaSuccess)
		cr = cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking);
	if (cr == cudaSuccess)
		cr = cudaMalloc(&p->workspace, WORKSPACE);
	if (cr != cudaSuccess) {
		rc = cuda_fail(e, cr, "preparing a matrix product on device %d", device);
		goto free_plan;
	}
	const char *what = "cublasLtCreate";
	cublasStatus_t lr = lt->cublasLtCreate(&p->handle);
	if (lr == CUBLAS_STATUS_SUCCESS) {
		what = "describing the matrix product";
		lr = describe(p, s);
	}
	if (lr == CUBLAS_STATUS_SUCCESS) {
		what = "cublasLtMatmulAlgoGetHeuristic";
		lr = choose(p);
	}
	if (lr == CUBLAS_STATUS_SUCCESS) {
		*out = p;
		return 0;
	}
	rc = lt_fail(e, lr, what);
free_plan:
	destroy(p);
	return rc;
}

static int run(struct gemm_plan *p, const void *a, const void *b, void *c, struct fb_err *e)
{
	cudaError_t cr = cudaSetDevice(p->device);
	if (cr != cudaSuccess)
		return cuda_fail(e, cr, "cudaSetDevice(%d)", p->device);
	cublasStatus_t rc = p->lt->cublasLtMatmul(p->handle, p->desc, &p->alpha, b, p->first, a,
		p->second, &p->beta, c, p->result, c, p->result, &p->algo, p->workspace, WORKSPACE,
		p->stream);
	return rc == CUBLAS_STATUS_SUCCESS ? 0 : lt_fail(e, rc, "cublasLtMatmul");
}

static int sync_plan(struct gemm_plan *p, struct fb_err *e)
{
	cudaSetDevice(p->device);
	return cuda_poll(p->stream, NULL, "a matrix product", e);
}

static const char *impl_name(const struct gemm_plan *p)
{
	return p->impl;
}

const struct gemm_ops cuda_gemm_ops = {
	.name = "cublaslt",
	.memory = "device",
	.probe = probe,
	.create = create,
	.run = run,
	.sync = sync_plan,
	.impl = impl_name,
	.destroy = destroy,
};
