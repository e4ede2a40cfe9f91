/* SPDX-License-Identifier: Apache-2.0
 *
 * jobs.c - see jobs.h.
 */
#include "tests/cuda/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/corpus/tokens.h"

void jobs_init(struct job *job, const char *name, uint32_t stages, enum skep_device_kind kind)
{
	char path[512], wanted[64];
	struct skep_diag diag = {0};
	job_init(job, 1, SKEP_ACTIVATION_GELU, 1, 0);
	snprintf(wanted, sizeof wanted, "models/%s.yaml", name);
	assert_true(skep_file_find(NULL, __FILE__, wanted, path, sizeof path));
	if (!skep_model_read(path, &job->model, &diag))
		fail_msg("%s: %s", path, diag.message);
	skep_model_set_sequence(&job->model, SEQUENCE);
	job->plan.stages = job->plan.workers = stages;
	job->training.samples = 2;
	job->training.corpus = SKEP_CORPUS_TOKENS;
	job->training.tokens = job_open_text(SEQUENCE);
	job->kind = kind;
}

void jobs_finish(struct job *job)
{
	job_finish(job);
	skep_tokens_close((struct skep_tokens *)job->training.tokens);
	skep_model_finish(&job->model);
}

void jobs_check_frozen(struct job *job, float *before)
{
	size_t n;
	float *after = job_parameters(job, &n);
	const float *was = before, *is = after;
	for (uint32_t s = 0; s < job->plan.stages; s++) {
		struct skep_cost cost;
		skep_model_cost(&job->model, job->plan.stages, s, &cost);
		assert_memory_equal(was, is, cost.frozen * sizeof *is);
		assert_true(cost.trained == 0 ||
			    memcmp(was + cost.frozen, is + cost.frozen, cost.trained * sizeof *is) != 0);
		was += cost.parameters, is += cost.parameters;
	}
	free(before), free(after);
}
