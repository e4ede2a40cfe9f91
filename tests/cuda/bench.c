/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c - tokens per second of a model on one GPU, or with --threads on the CPU, forwards, backwards and with the step, and
 * the part of a peak that the model's FLOPs come to. With --stages 2 the model is cut and payloads go through the host's memory,
 * as between two workers.
 *
 *     bench_cuda models/gpt2-124m.yaml --samples 16 --steps 20 --peak 989e12     (bf16 of an H100 SXM, dense)
 *     bench_device models/gpt2-256x4.yaml --samples 8 --steps 20 --threads 2     (tests/torch/speed.py is the same in PyTorch)
 *
 * FLOPs are those of models/read/model.h, which counts attention as the causal mask leaves it; beside them
 * is the customary count of
 * 6 per parameter and 12 blocks x hidden x sequence (Chowdhery et al., arXiv 2204.02311), which does not. Time is the
 * median over the steps. Each begins when the one before has been waited for.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "models/device/device.h"
#include "tests/unit/fresh.h"
#include "tests/unit/text.h"

enum { STAGES_MAX = 8, STEPS_MAX = 1000, WARM_UP = 3 };

struct bench {
	struct skep_model model;
	struct skep_plan plan;
	struct skep_training training;
	struct skep_device *device[STAGES_MAX];
	uint32_t steps, threads; /* 0: a GPU */
	double peak;
	double processor_s; /* of all threads, for all steps */
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct skep_device_result run(struct skep_device *device, struct skep_op op)
{
	struct skep_device_result result;
	skep_device_run(device, &op, &result);
	if (result.failed) {
		fprintf(stderr, "bench: %s\n", result.why ? result.why : "an operation failed");
		abort();
	}
	return result;
}

/* A payload from one worker's memory to the other's. */
static struct skep_buf carry(struct skep_device *from, struct skep_buf buf, struct skep_device *to)
{
	uint64_t bytes;
	void *memory;
	const void *data = skep_device_buffer_read(from, buf, &bytes);
	struct skep_buf copy = skep_device_buffer_create(to, bytes, &memory);
	assert(data && memory);
	memcpy(memory, data, bytes);
	skep_device_buffer_release(from, buf);
	return copy;
}

/* One round of one microbatch; its loss. */
static double step(struct bench *b, uint32_t round)
{
	const uint32_t stages = b->plan.stages;
	struct skep_buf in[STAGES_MAX] = {{0}}, stash[STAGES_MAX], gradient = {0};
	double loss = 0;
	for (uint32_t s = 0; s < stages; s++) {
		struct skep_op op = {.kind = SKEP_OP_FORWARD, .stage = (uint16_t)s, .round = round, .version = round};
		op.in = in[s];
		struct skep_device_result result = run(b->device[s], op);
		stash[s] = result.stash;
		loss = (double)result.loss_nano * 1e-9;
		if (s + 1 < stages)
			in[s + 1] = carry(b->device[s], result.out, b->device[s + 1]);
	}
	for (uint32_t s = stages; s-- > 0;) {
		struct skep_op op = {.kind = SKEP_OP_BACKWARD, .stage = (uint16_t)s, .round = round, .version = round};
		op.in = in[s], op.stash = stash[s], op.gradient = gradient;
		struct skep_device_result result = run(b->device[s], op);
		skep_device_buffer_release(b->device[s], in[s]);
		skep_device_buffer_release(b->device[s], stash[s]);
		skep_device_buffer_release(b->device[s], gradient);
		gradient = s > 0 ? carry(b->device[s], result.out, b->device[s - 1]) : (struct skep_buf){0};
		op = (struct skep_op){.kind = SKEP_OP_STEP, .stage = (uint16_t)s, .round = round, .size = 1};
		op.microbatches = 1;
		run(b->device[s], op);
	}
	return loss;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(const struct bench *b, double *seconds, double loss)
{
	struct skep_cost cost;
	double flop = 0, parameters = 0;
	const struct skep_model *m = &b->model;
	for (uint32_t s = 0; s < b->plan.stages; s++) {
		skep_model_cost(m, b->plan.stages, s, &cost);
		flop += cost.forward_flop + cost.backward_flop;
		parameters += (double)cost.parameters;
	}
	qsort(seconds, b->steps, sizeof *seconds, by_size);
	const double median = seconds[b->steps / 2], tokens = (double)b->training.samples * m->sequence;
	const double customary = 6 * parameters + 12.0 * ((double)m->layers - 2) * m->shared * m->hidden * m->sequence;
	printf("%s: %.1f million parameters, %u x %u tokens, %u stage%s\n", m->name, parameters * 1e-6,
		b->training.samples, m->sequence, b->plan.stages, b->plan.stages > 1 ? "s" : "");
	printf("  step: %.2f ms median, %.2f least, %.2f most of %u; %.2f of processor time; loss %.9f\n", median * 1e3,
		seconds[0] * 1e3, seconds[b->steps - 1] * 1e3, b->steps, b->processor_s / b->steps * 1e3, loss);
	printf("  %.0f tokens/s; %.1f TFLOP/s, %.1f as customarily counted\n", tokens / median,
		flop * b->training.samples / median * 1e-12, customary * tokens / median * 1e-12);
	if (b->peak > 0)
		printf("  model-flop utilisation: %.1f %%, %.1f %% as customarily counted\n",
			100 * flop * b->training.samples / median / b->peak,
			100 * customary * tokens / median / b->peak);
}

static bool parse(struct bench *b, int argc, char **argv)
{
	struct skep_diag diag = {0};
	uint32_t samples = 16, stages = 1;
	b->steps = 20;
	for (int i = 2; i + 1 < argc; i += 2) {
		const double value = atof(argv[i + 1]);
		if (!strcmp(argv[i], "--samples"))
			samples = (uint32_t)value;
		else if (!strcmp(argv[i], "--steps"))
			b->steps = (uint32_t)value;
		else if (!strcmp(argv[i], "--stages"))
			stages = (uint32_t)value;
		else if (!strcmp(argv[i], "--threads"))
			b->threads = (uint32_t)value;
		else if (!strcmp(argv[i], "--peak"))
			b->peak = value;
		else
			return false;
	}
	if (argc < 2 || argc % 2 != 0 || samples == 0 || stages == 0 || stages > STAGES_MAX || b->steps == 0 ||
		b->steps > STEPS_MAX)
		return false;
	if (!skep_model_read(argv[1], &b->model, &diag)) {
		fprintf(stderr, "%s: %s\n", argv[1], diag.message);
		return false;
	}
	if (b->model.sequence == 0 || stages > b->model.layers) {
		fprintf(stderr, "%s: %s\n", argv[1],
			b->model.sequence == 0 ? "a perceptron, which has no tokens to count"
					       : "it has fewer layers than --stages");
		return false;
	}
	b->model.tied = b->model.tied && stages == 1; /* a tied head is in the stage of the embedding */
	b->plan = (struct skep_plan){.workers = stages, .stages = stages, .microbatches = 1, .seed = 1};
	b->training = (struct skep_training){.model = &b->model,
		.plan = &b->plan,
		.corpus = SKEP_CORPUS_TOKENS,
		.samples = samples,
		.optimizer = {.kind = SKEP_OPTIMIZER_ADAMW,
			.learning_rate = 3e-4f,
			.beta1 = 0.9f,
			.beta2 = 0.95f,
			.epsilon = 1e-8f,
			.weight_decay = 0.1f}};
	return true;
}

static const struct skep_tokens *open_text(uint32_t length)
{
	struct skep_diag diag = {0};
	struct skep_tokens *tokens = text_open(".", length, &diag);
	if (!tokens)
		fprintf(stderr, "%s: %s (run this in the root of the source tree)\n", diag.file, diag.message);
	return tokens;
}

static bool create(struct bench *b)
{
	struct skep_diag error;
	for (uint32_t s = 0; s < b->plan.stages; s++) {
		b->device[s] = skep_device_create_on(b->threads ? SKEP_DEVICE_CPU : SKEP_DEVICE_CUDA,
			&(struct skep_device_place){.threads = b->threads}, &b->training, s, fresh(&error));
		if (b->device[s])
			continue;
		fprintf(stderr, "bench: %s\n", error.message);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static struct bench b;
	static double seconds[STEPS_MAX];
	double loss = 0;
	if (!parse(&b, argc, argv)) {
		fprintf(stderr,
			"usage: %s MODEL [--samples N] [--steps N] [--stages N] [--threads N] [--peak FLOP/S]\n",
			argv[0]);
		return 2;
	}
	b.training.tokens = open_text(b.model.sequence);
	bool good = b.training.tokens && create(&b);
	for (uint32_t i = 0; good && i < WARM_UP + b.steps; i++) {
		const double begin = now_s();
		if (i == WARM_UP)
			b.processor_s = -processor_s();
		loss = step(&b, i);
		if (i >= WARM_UP)
			seconds[i - WARM_UP] = now_s() - begin;
	}
	b.processor_s += processor_s();
	if (good)
		report(&b, seconds, loss);
	for (uint32_t s = 0; s < b.plan.stages; s++)
		skep_device_destroy(b.device[s]);
	skep_tokens_close((struct skep_tokens *)b.training.tokens);
	skep_model_finish(&b.model);
	return good ? 0 : 1;
}
