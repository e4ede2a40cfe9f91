/* SPDX-License-Identifier: Apache-2.0
 *
 * memory-sanitizer.c - what clang's memory sanitizer has to be told of libraries that were not built with it, so that it can be
 * held against the whole program. tests/sanitize links it into all programs of its build, with ld's --wrap for each function that
 * is named here.
 *
 * What is kept true: memory that the program allocates is unwritten until the program, libc, or a library that was handed it
 * has written to it. Memory that a library allocates counts as written (poison_in_malloc=0 and poison_in_free=0), and so do what
 * a library is told to write to (WRITES below) and the stack below a call into a library: the frames there are its own.
 * A function that is missing here shows as a report that names a variable it was to write to; the cure is a line.
 */
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_vector.h>
#include <sanitizer/allocator_interface.h>
#include <sanitizer/msan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <yaml.h>

// ---- memory that the program allocates ---------------------------------------------------------------------------------

void *__real_malloc(size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes)
{
	void *memory = __real_malloc(bytes);
	if (memory != NULL)
		__msan_poison(memory, bytes);
	return memory;
}

// What it leaves counts as written, as that of free(); what is not written of it is not of the new one either.
void *__wrap_realloc(void *memory, size_t bytes)
{
	size_t before = memory != NULL ? __sanitizer_get_allocated_size(memory) : 0;
	void *moved = memory != NULL && bytes == 0 ? NULL : __wrap_malloc(bytes);
	if (moved != NULL && before > 0)
		memcpy(moved, memory, before < bytes ? before : bytes);
	if (moved != NULL || bytes == 0)
		__wrap_free(memory);
	return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	void *memory = __real_aligned_alloc(alignment, bytes);
	if (memory != NULL)
		__msan_poison(memory, bytes);
	return memory;
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	int status = __real_posix_memalign(memory, alignment, bytes);
	if (status == 0)
		__msan_poison(*memory, bytes);
	return status;
}

// What a library is given of it next counts as written.
void __wrap_free(void *memory)
{
	if (memory != NULL)
		__msan_unpoison(memory, __sanitizer_get_allocated_size(memory));
	__real_free(memory);
}

// ---- calls into libraries ------------------------------------------------------------------------------------------------

enum {
	FRAMES = 128 * 1024, // bytes of stack that the frames of a library may take
};

// What a function is called with in registers, by the System V ABI of x86-64: rdi, rsi, rdx, rcx, r8, r9.
struct call {
	uint64_t argument[6];
};

static void written(uint64_t at, uint64_t bytes)
{
	if (at != 0)
		__msan_unpoison((void *)(uintptr_t)at, bytes);
}

// Before a call that goes on with the stack below `top`.
static void clean_frames(uintptr_t top)
{
	written(top - FRAMES, FRAMES);
}

// A jump through `skep_before_NAME`: the arguments stand on the stack meanwhile, numbers in xmm registers and the count of them
// in al as well; then the function itself goes on with its caller's stack. A program that does not link the library has no use
// for it.
#define JUMP(name)                                                                                                     \
	__asm__(".text\n.weak __real_" #name "\n.globl __wrap_" #name "\n.type __wrap_" #name ",@function\n"           \
		"__wrap_" #name ":\n"                                                                                  \
		"push %rbp\nmov %rsp, %rbp\nsub $160, %rsp\nand $-16, %rsp\n"                                          \
		"mov %rdi, 0(%rsp)\nmov %rsi, 8(%rsp)\nmov %rdx, 16(%rsp)\n"                                           \
		"mov %rcx, 24(%rsp)\nmov %r8, 32(%rsp)\nmov %r9, 40(%rsp)\nmov %rax, 48(%rsp)\n"                       \
		"movups %xmm0, 64(%rsp)\nmovups %xmm1, 80(%rsp)\nmovups %xmm2, 96(%rsp)\nmovups %xmm3, 112(%rsp)\n"    \
		"mov %rsp, %rdi\nlea 8(%rbp), %rsi\ncall skep_before_" #name "\n"                                      \
		"mov 0(%rsp), %rdi\nmov 8(%rsp), %rsi\nmov 16(%rsp), %rdx\n"                                           \
		"mov 24(%rsp), %rcx\nmov 32(%rsp), %r8\nmov 40(%rsp), %r9\nmov 48(%rsp), %rax\n"                       \
		"movups 64(%rsp), %xmm0\nmovups 80(%rsp), %xmm1\nmovups 96(%rsp), %xmm2\nmovups 112(%rsp), %xmm3\n"    \
		"mov %rbp, %rsp\npop %rbp\njmp __real_" #name "@PLT\n.size __wrap_" #name ", .-__wrap_" #name "\n")

// CALLS: what it writes to is the library's own. WRITES: and to `bytes` at argument `a`; SIZED: to as many as argument `n` says.
#define BEFORE(name, body)                                                                                             \
	void skep_before_##name(const struct call *call, uintptr_t top);                                               \
	__attribute__((used)) void skep_before_##name(const struct call *call, uintptr_t top)                          \
	{                                                                                                              \
		clean_frames(top);                                                                                     \
		(void)call;                                                                                            \
		body;                                                                                                  \
	}                                                                                                              \
	JUMP(name)
#define CALLS(name) BEFORE(name, (void)0)
#define WRITES(name, a, bytes) BEFORE(name, written(call->argument[a], bytes))
#define WRITES_BOTH(name, a, bytes, b, more)                                                                           \
	BEFORE(name, (written(call->argument[a], bytes), written(call->argument[b], more)))
#define SIZED(name, a, n) BEFORE(name, written(call->argument[a], call->argument[n]))

// Functions of libc since 2.33, which the sanitizer of clang 14 does not know by these names.
SIZED(fmemopen, 0, 1); // what is written to it is written behind its back
WRITES(epoll_pwait2, 1, call->argument[2] * sizeof(struct epoll_event));
WRITES(stat, 1, sizeof(struct stat));
WRITES(lstat, 1, sizeof(struct stat));
WRITES(fstat, 1, sizeof(struct stat));
WRITES(fstatat, 2, sizeof(struct stat));
WRITES(stat64, 1, sizeof(struct stat));
WRITES(lstat64, 1, sizeof(struct stat));
WRITES(fstat64, 1, sizeof(struct stat));
WRITES(fstatat64, 2, sizeof(struct stat));

WRITES(yaml_parser_initialize, 0, sizeof(yaml_parser_t));
WRITES(yaml_parser_parse, 1, sizeof(yaml_event_t));
WRITES(yaml_emitter_initialize, 0, sizeof(yaml_emitter_t));
CALLS(yaml_emitter_emit);
WRITES(yaml_stream_start_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_stream_end_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_document_start_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_document_end_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_mapping_start_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_mapping_end_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_sequence_start_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_sequence_end_event_initialize, 0, sizeof(yaml_event_t));
WRITES(yaml_scalar_event_initialize, 0, sizeof(yaml_event_t));

WRITES(sqlite3_open, 1, sizeof(void *));
WRITES(sqlite3_open_v2, 1, sizeof(void *));
WRITES_BOTH(sqlite3_prepare_v2, 3, sizeof(void *), 4, sizeof(void *));
WRITES_BOTH(sqlite3_prepare_v3, 4, sizeof(void *), 5, sizeof(void *));
WRITES(sqlite3_exec, 4, sizeof(void *));
WRITES(sqlite3_serialize, 2, sizeof(int64_t));
CALLS(sqlite3_deserialize);
BEFORE(sqlite3_snprintf, written(call->argument[1], (uint32_t)call->argument[0]));
CALLS(sqlite3_step);
CALLS(sqlite3_reset);
CALLS(sqlite3_finalize);
CALLS(sqlite3_close);
CALLS(sqlite3_mprintf);
CALLS(sqlite3_str_appendf);
CALLS(sqlite3_column_text);

CALLS(cJSON_Print);
CALLS(cJSON_PrintUnformatted);
CALLS(cJSON_Parse);
WRITES(cJSON_ParseWithLengthOpts, 2, sizeof(char *));

CALLS(XML_Parse);

WRITES(gsl_multifit_nlinear_default_parameters, 0, sizeof(gsl_multifit_nlinear_parameters));
WRITES(gsl_vector_const_view_array, 0, sizeof(gsl_vector_const_view));
WRITES(gsl_matrix_const_row, 0, sizeof(gsl_vector_const_view));
WRITES(gsl_multifit_nlinear_rcond, 0, sizeof(double));
WRITES(gsl_multifit_nlinear_driver, 3, sizeof(int));
CALLS(gsl_multifit_nlinear_init);
CALLS(gsl_root_fsolver_set);
CALLS(gsl_root_fsolver_iterate);
CALLS(gsl_sort);
CALLS(gsl_sort2);

WRITES(EVP_Digest, 2, 32); // SHA-256, as all others here
WRITES(EVP_DigestFinal_ex, 1, 32);
WRITES(X509_digest, 2, 32);
SIZED(RAND_bytes, 0, 1);
WRITES(BIO_ctrl, 3, sizeof(void *));
BEFORE(SSL_read, written(call->argument[1], (uint32_t)call->argument[2]));
CALLS(EVP_MD_CTX_new);
CALLS(EVP_DigestInit_ex);
CALLS(EVP_sha256);
CALLS(SSL_CTX_new);
CALLS(SSL_CTX_set_ciphersuites);
CALLS(SSL_CTX_use_PrivateKey);
CALLS(SSL_CTX_use_certificate);
CALLS(SSL_CTX_check_private_key);
CALLS(SSL_new);
CALLS(X509_STORE_add_cert);
CALLS(X509V3_EXT_conf_nid);
CALLS(X509_sign);
CALLS(X509_verify);
CALLS(X509_verify_cert);
CALLS(X509_check_private_key);
CALLS(X509_NAME_add_entry_by_NID);
CALLS(ASN1_TIME_set_string_X509);
CALLS(EVP_PKEY_Q_keygen);
CALLS(d2i_PUBKEY);
CALLS(d2i_X509);
CALLS(SSL_write);
CALLS(SSL_do_handshake);
CALLS(SSL_shutdown);
SIZED(EVP_PKEY_get_group_name, 1, 2);
SIZED(X509_NAME_get_text_by_NID, 2, 3);
CALLS(PEM_write_X509);
CALLS(PEM_write_PKCS8PrivateKey);
CALLS(PEM_read_bio_X509);
CALLS(PEM_read_bio_PrivateKey);

// The bytes that it would write are as many as it says when it is to write none.
int __real_i2d_PUBKEY(const void *key, unsigned char **at) __attribute__((weak));
int __real_i2d_X509(const void *certificate, unsigned char **at) __attribute__((weak));
int __wrap_i2d_PUBKEY(const void *key, unsigned char **at);
int __wrap_i2d_X509(const void *certificate, unsigned char **at);

int __wrap_i2d_PUBKEY(const void *key, unsigned char **at)
{
	unsigned char *start = at != NULL ? *at : NULL;
	int bytes = __real_i2d_PUBKEY(key, at);
	if (start != NULL && bytes > 0)
		__msan_unpoison(start, (size_t)bytes);
	return bytes;
}

int __wrap_i2d_X509(const void *certificate, unsigned char **at)
{
	unsigned char *start = at != NULL ? *at : NULL;
	int bytes = __real_i2d_X509(certificate, at);
	if (start != NULL && bytes > 0)
		__msan_unpoison(start, (size_t)bytes);
	return bytes;
}

// ---- matrix products --------------------------------------------------------------------------------------------------------

// CBLAS's word for a matrix that is not transposed; its header and that of GSL do not go together.
enum { AS_IT_IS = 111 };

// All that is read has to be written, and all of C is afterwards: C is `m` by `n`, in rows of `ld` numbers.
static void rows(bool check, const void *matrix, size_t m, size_t n, size_t ld, size_t bytes)
{
	for (size_t i = 0; i < m; i++) {
		const char *row = (const char *)matrix + i * ld * bytes;
		if (check)
			__msan_check_mem_is_initialized(row, n * bytes);
		else
			__msan_unpoison(row, n * bytes);
	}
}

#define PRODUCT(name, real)                                                                                            \
	void __real_##name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,         \
		const real *b, int ldb, real beta, real *c, int ldc) __attribute__((weak));                            \
	void __wrap_##name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,         \
		const real *b, int ldb, real beta, real *c, int ldc);                                                  \
	void __wrap_##name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda,         \
		const real *b, int ldb, real beta, real *c, int ldc)                                                   \
	{                                                                                                              \
		rows(true, a, (size_t)(ta == AS_IT_IS ? m : k), (size_t)(ta == AS_IT_IS ? k : m), (size_t)lda,         \
			sizeof *a);                                                                                    \
		rows(true, b, (size_t)(tb == AS_IT_IS ? k : n), (size_t)(tb == AS_IT_IS ? n : k), (size_t)ldb,         \
			sizeof *b);                                                                                    \
		if (beta < 0 || beta > 0)                                                                              \
			rows(true, c, (size_t)m, (size_t)n, (size_t)ldc, sizeof *c);                                   \
		__real_##name(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                            \
		rows(false, c, (size_t)m, (size_t)n, (size_t)ldc, sizeof *c);                                          \
	}

PRODUCT(cblas_sgemm, float)
PRODUCT(cblas_dgemm, double)
