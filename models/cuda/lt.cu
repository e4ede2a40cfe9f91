/* SPDX-License-Identifier: Apache-2.0
 *
 * lt.cu - products by cuBLASLt. The library is opened when the first device that needs it is made, not when skep starts: it is
 * half a gigabyte large. Matrices of ours, row by row, are theirs column by column, transposed, so c = a b is asked for as
 * c' = b' a'. What a shape needs is worked out once and kept.
 */
#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/portable.cuh"

#define PLANS_MAX 128
#define WORKSPACE_BYTES (32u << 20)
#define LIBRARY_(major) "libcublasLt.so." #major
#define LIBRARY(major) LIBRARY_(major)

struct key { /* what makes two products the same to plan */
	size_t rows, columns, inner, a_row, b_row, c_row;
	bool transpose_a, transpose_b, wide, bias, add;
	enum skep_cuda_bend bend;
};

struct plan {
	struct key key;
	bool there; /* the library has it */
	cublasLtMatmulDesc_t matmul;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulAlgo_t algorithm;
};

#define CALLS(call)                                                                                                    \
	call(cublasLtCreate) call(cublasLtDestroy) call(cublasLtMatmul) call(cublasLtMatmulAlgoGetHeuristic)           \
		call(cublasLtMatmulDescCreate) call(cublasLtMatmulDescDestroy) call(cublasLtMatmulDescSetAttribute)    \
			call(cublasLtMatrixLayoutCreate) call(cublasLtMatrixLayoutDestroy)                             \
				call(cublasLtMatmulPreferenceCreate) call(cublasLtMatmulPreferenceDestroy)             \
					call(cublasLtMatmulPreferenceSetAttribute)

struct skep_lt {
	void *library;
	cublasLtHandle_t handle;
	void *workspace;
	struct plan plan[PLANS_MAX];
	unsigned plans;
#define FIELD(name) decltype(&::name) name;
	CALLS(FIELD)
};

/* ---- the library ---------------------------------------------------------------------------------------------------- */

static bool open_library(struct skep_lt *lt, struct skep_diag *reterr)
{
	lt->library = dlopen(LIBRARY(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
#ifdef SKEP_CUDA_LIBRARIES
	if (!lt->library)
		lt->library = dlopen(SKEP_CUDA_LIBRARIES "/" LIBRARY(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
#endif
	if (!lt->library)
		return skep_fail(reterr, "%s: install cuBLAS of CUDA %d, or name its folder in LD_LIBRARY_PATH",
			dlerror(), CUBLAS_VER_MAJOR);
	const char *missing = NULL;
#define FIND(name)                                                                                                     \
	lt->name = (decltype(lt->name))dlsym(lt->library, #name);                                                      \
	missing = lt->name ? missing : #name;
	CALLS(FIND)
	if (missing)
		skep_fail(reterr, "%s has no %s", LIBRARY(CUBLAS_VER_MAJOR), missing);
	return missing == NULL;
}

struct skep_lt *skep_lt_create(struct skep_diag *reterr)
{
	struct skep_lt *lt = (struct skep_lt *)calloc(1, sizeof *lt);
	if (!lt) {
		skep_fail(reterr, "not enough memory for products");
		return NULL;
	}
	if (open_library(lt, reterr)) {
		if (lt->cublasLtCreate(&lt->handle) != CUBLAS_STATUS_SUCCESS)
			skep_fail(reterr, "cuBLAS does not start: no GPU, no driver, or no memory");
		else if (cudaMalloc(&lt->workspace, WORKSPACE_BYTES) != cudaSuccess)
			skep_fail(reterr, "not enough memory on the GPU for products");
		else
			return lt;
	}
	skep_lt_destroy(lt);
	return NULL;
}

static void forget(struct skep_lt *lt, struct plan *plan)
{
	if (plan->matmul)
		lt->cublasLtMatmulDescDestroy(plan->matmul);
	cublasLtMatrixLayout_t layout[] = {plan->a, plan->b, plan->c};
	for (cublasLtMatrixLayout_t one : layout)
		if (one)
			lt->cublasLtMatrixLayoutDestroy(one);
}

void skep_lt_destroy(struct skep_lt *lt)
{
	if (!lt)
		return;
	for (unsigned i = 0; i < lt->plans; i++)
		forget(lt, &lt->plan[i]);
	cudaFree(lt->workspace);
	if (lt->handle)
		lt->cublasLtDestroy(lt->handle);
	if (lt->library)
		dlclose(lt->library);
	free(lt);
}

/* ---- plans ---------------------------------------------------------------------------------------------------------- */

/* As it lies: rows of our matrix. */
static size_t row_of(size_t given, bool transposed, size_t straight, size_t other)
{
	return given ? given : transposed ? other : straight;
}

static struct key key_of(const struct skep_cuda_product *p)
{
	struct key key;
	memset(&key, 0, sizeof key); /* it is compared whole */
	key.rows = p->rows;
	key.columns = p->columns;
	key.inner = p->inner;
	key.a_row = row_of(p->a_row, p->transpose_a, p->inner, p->rows);
	key.b_row = row_of(p->b_row, p->transpose_b, p->columns, p->inner);
	key.c_row = row_of(p->c_row, false, p->columns, 0);
	key.transpose_a = p->transpose_a;
	key.transpose_b = p->transpose_b;
	key.wide = p->wide;
	key.bias = p->bias != NULL;
	key.add = p->add != NULL;
	key.bend = p->bend;
	return key;
}

static cublasLtEpilogue_t epilogue_of(const struct key *key)
{
	if (key->bend == SKEP_CUDA_GELU)
		return key->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
	if (key->bend == SKEP_CUDA_GELU_BACK)
		return CUBLASLT_EPILOGUE_DGELU;
	return key->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

template <typename Value>
static void set(struct skep_lt *lt, struct plan *plan, cublasLtMatmulDescAttributes_t name, Value value)
{
	lt->cublasLtMatmulDescSetAttribute(plan->matmul, name, &value, sizeof value);
}

static bool describe(struct skep_lt *lt, struct plan *plan)
{
	const struct key *k = &plan->key;
	const cudaDataType_t type = k->wide ? CUDA_R_32F : CUDA_R_16BF;
	if (lt->cublasLtMatmulDescCreate(&plan->matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS)
		return false;
	set(lt, plan, CUBLASLT_MATMUL_DESC_TRANSA, k->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
	set(lt, plan, CUBLASLT_MATMUL_DESC_TRANSB, k->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
	set(lt, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(k));
	if (k->bias)
		set(lt, plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
	if (k->bend != SKEP_CUDA_STRAIGHT)
		set(lt, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)k->columns);
	return lt->cublasLtMatrixLayoutCreate(&plan->a, CUDA_R_16BF, k->transpose_b ? k->inner : k->columns,
		       k->transpose_b ? k->columns : k->inner, (int64_t)k->b_row) == CUBLAS_STATUS_SUCCESS &&
	       lt->cublasLtMatrixLayoutCreate(&plan->b, CUDA_R_16BF, k->transpose_a ? k->rows : k->inner,
		       k->transpose_a ? k->inner : k->rows, (int64_t)k->a_row) == CUBLAS_STATUS_SUCCESS &&
	       lt->cublasLtMatrixLayoutCreate(&plan->c, type, k->columns, k->rows, (int64_t)k->c_row) ==
	               CUBLAS_STATUS_SUCCESS;
}

/* Pointers are part of what an algorithm is chosen for only by their alignment, which is the same in all calls. */
static void point(struct skep_lt *lt, struct plan *plan, const struct skep_cuda_product *p)
{
	if (p->bias)
		set(lt, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p->bias);
	if (p->bend != SKEP_CUDA_STRAIGHT)
		set(lt, plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (void *)p->aux);
}

static bool choose(struct skep_lt *lt, struct plan *plan)
{
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t found;
	const uint64_t workspace = WORKSPACE_BYTES;
	int count = 0;
	if (lt->cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS)
		return false;
	lt->cublasLtMatmulPreferenceSetAttribute(
		preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
	cublasStatus_t status = lt->cublasLtMatmulAlgoGetHeuristic(
		lt->handle, plan->matmul, plan->a, plan->b, plan->c, plan->c, preference, 1, &found, &count);
	lt->cublasLtMatmulPreferenceDestroy(preference);
	plan->algorithm = found.algo;
	return status == CUBLAS_STATUS_SUCCESS && count > 0;
}

/* NULL: there are more shapes than a stage can have. */
static struct plan *plan_for(struct skep_lt *lt, const struct skep_cuda_product *p)
{
	const struct key key = key_of(p);
	for (unsigned i = 0; i < lt->plans; i++)
		if (memcmp(&lt->plan[i].key, &key, sizeof key) == 0)
			return &lt->plan[i];
	if (lt->plans == PLANS_MAX)
		return NULL;
	struct plan *plan = &lt->plan[lt->plans++];
	plan->key = key;
	plan->there = describe(lt, plan);
	if (plan->there) {
		point(lt, plan, p);
		plan->there = choose(lt, plan);
	}
	return plan;
}

bool skep_lt_multiply(struct skep_cuda_queue *queue, const struct skep_cuda_product *p)
{
	struct skep_lt *lt = queue->lt;
	struct plan *plan = plan_for(lt, p);
	const float one = 1, beta = p->add ? 1 : 0;
	cudaSetDevice(queue->ordinal);
	if (!plan || !plan->there)
		return false;
	point(lt, plan, p);
	cublasStatus_t status = lt->cublasLtMatmul(lt->handle, plan->matmul, &one, p->b, plan->a, p->a, plan->b, &beta,
		p->add ? p->add : p->c, plan->c, p->c, plan->c, &plan->algorithm, lt->workspace, WORKSPACE_BYTES,
		queue->stream);
	if (status != CUBLAS_STATUS_SUCCESS)
		note_error(queue, cudaErrorInvalidValue, "a product");
	return true;
}
