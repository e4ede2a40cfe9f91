/* SPDX-License-Identifier: Apache-2.0
 *
 * trace_generate.c - `skep trace generate`: a trace drawn from a law of lifetimes, or like another trace.
 */
#include "topologies/churn/trace_generate.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/trace/trace.h"

#define BURST_MAX 4096u

struct generate_arguments { /* NAN, 0, -1, NULL: not given */
	struct trace_arguments trace;
	const char *like;
	struct skep_bursts bursts;
	struct skep_generate_options gpus; /* only its types */
	uint64_t burst[BURST_MAX];
	uint32_t machines;
	double duration_s, scale_s, shape, refusal, wait_s, diurnal;
	int life;
};

/* ---- values of options ------------------------------------------------------------------------------------------- */

/* "39x1,13x2": how often, how many. */
static bool parse_bursts(const char *at, void *to)
{
	struct generate_arguments *a = to;
	struct skep_bursts *ret = &a->bursts;
	*ret = (struct skep_bursts){.count = a->burst, .room = BURST_MAX};
	memset(a->burst, 0, sizeof a->burst);
	while (*at) {
		char *end, *last;
		uint64_t often = strtoull(at, &end, 10);
		uint64_t many = *end == 'x' && end > at ? strtoull(end + 1, &last, 10) : 0;
		if (*at < '0' || *at > '9' || many < 1 || many > BURST_MAX || often < 1 || often > 1000000000 ||
			(*last != 0 && *last != ',') || end[1] < '0' || end[1] > '9')
			return false;
		a->burst[many - 1] += often;
		ret->bursts += often;
		ret->losses += often * many;
		ret->most = many > ret->most ? (uint32_t)many : ret->most;
		at = *last == ',' ? last + 1 : last;
	}
	return ret->bursts > 0;
}

/* "t4=3,a100=1" or "t4" */
static bool parse_gpus(const char *at, void *to)
{
	struct skep_generate_options *o = to;
	o->gpus = 0;
	for (; *at; at += *at == ',') {
		size_t length = strcspn(at, ","), name = strcspn(at, "=,");
		char share[32] = "1", *end;
		if (o->gpus == SKEP_GENERATE_GPUS_MAX || name >= sizeof o->gpu->name || length - name > 30)
			return false;
		snprintf(o->gpu[o->gpus].name, sizeof o->gpu->name, "%.*s", (int)name, at);
		if (name < length)
			snprintf(share, sizeof share, "%.*s", (int)(length - name - 1), at + name + 1);
		o->gpu[o->gpus].share = strtod(share, &end);
		if (!skep_trace_is_gpu(o->gpu[o->gpus].name) || end == share || *end != 0 ||
			!isfinite(o->gpu[o->gpus].share))
			return false;
		o->gpus++;
		at += length;
	}
	return true;
}

/* ---- what is drawn ------------------------------------------------------------------------------------------------ */

/* From the trace to be like, or from nothing. *ret_stats owns what *ret borrows. */
static enum status begin_options(
	const struct generate_arguments *a, struct skep_generate_options *ret, struct skep_trace_stats *ret_stats)
{
	struct skep_diag diag = {0};
	char error[300];
	*ret_stats = (struct skep_trace_stats){0};
	*ret = (struct skep_generate_options){.life = {.shape = 1}, .wait_s = 60};
	if (!a->like)
		return STATUS_DONE;
	if (!skep_trace_stats_read(a->like, &a->trace.trace, ret_stats, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	skep_trace_say_repairs(&a->trace.common, &ret_stats->report, a->like);
	snprintf(error, sizeof error, "%.200s: no life ends in it, so that none can be fitted", a->like);
	if (!skep_generate_like(ret_stats, ret))
		return skep_report_error(STATUS_BAD_INPUT, error);
	if (a->life == SKEP_LIFETIME_EXPONENTIAL)
		ret->life = skep_generate_life(ret_stats, &ret_stats->exponential);
	else if (a->life == SKEP_LIFETIME_WEIBULL)
		ret->life = skep_generate_life(ret_stats, &ret_stats->weibull);
	return STATUS_DONE;
}

/* What the options replace. */
static enum status set_options(const struct generate_arguments *a, struct skep_generate_options *o)
{
	o->seed = a->trace.trace.seed;
	o->machines = a->machines > 0 ? a->machines : o->machines;
	o->duration_s = isnan(a->duration_s) ? o->duration_s : a->duration_s;
	o->life.scale_s = isnan(a->scale_s) ? o->life.scale_s : a->scale_s;
	o->life.shape = isnan(a->shape) ? o->life.shape : a->shape;
	o->refusal = isnan(a->refusal) ? o->refusal : a->refusal;
	o->wait_s = isnan(a->wait_s) ? o->wait_s : a->wait_s;
	o->diurnal = isnan(a->diurnal) ? o->diurnal : a->diurnal;
	if (a->life == SKEP_LIFETIME_EXPONENTIAL && !isnan(a->shape) && a->shape != 1)
		return skep_report_error(STATUS_BAD_INPUT, "--shape: an exponential life has no shape: --life weibull");
	if (o->life.shape != 1)
		o->life.law = SKEP_LIFETIME_WEIBULL;
	if (a->bursts.bursts > 0)
		o->bursts = a->bursts;
	o->gpus = a->gpus.gpus;
	memcpy(o->gpu, a->gpus.gpu, sizeof o->gpu);
	if (!a->like && (a->machines == 0 || isnan(a->duration_s) || isnan(a->scale_s)))
		return skep_report_error(
			STATUS_BAD_INPUT, "expected --like FILE, or --machines, --duration and --scale");
	const char *wrong = skep_generate_check(o);
	return wrong ? skep_report_error(STATUS_BAD_INPUT, wrong) : STATUS_DONE;
}

static bool write_generated(
	const struct generate_arguments *a, const struct skep_generate_options *o, struct skep_diag *reterr)
{
	char source[1024];
	snprintf(source, sizeof source,
		"generated%s%.300s: %u machines, %.10g s, %s lives of shape %.10g and scale %.10g s,\n"
		"bursts of %.4g on average, refusal %.10g, wait %.10g s, diurnal %.10g, seed %" PRIu64,
		a->like ? " like " : "", a->like ? a->like : "", o->machines, o->duration_s,
		skep_lifetime_distribution_names[o->life.law], o->life.shape, o->life.scale_s,
		o->bursts.bursts > 0 ? (double)o->bursts.losses / (double)o->bursts.bursts : 1.0, o->refusal, o->wait_s,
		o->diurnal, o->seed);
	struct skep_trace_writer *writer = skep_trace_writer_create(
		a->trace.common.output, source, "none needed, a product of the options above", reterr);
	if (!writer)
		return false;
	if (skep_trace_generate(o, skep_trace_write, writer))
		return skep_trace_writer_close(writer);
	skep_trace_writer_destroy(writer);
	skep_diag_set(reterr, "", 0, 0, NULL, "not enough memory");
	return false;
}

static enum status generate(const struct generate_arguments *a)
{
	struct skep_generate_options o;
	struct skep_trace_stats like;
	struct skep_diag diag = {0};
	const struct skep_trace_options own = {.format = SKEP_TRACE_OWN};
	enum status status = begin_options(a, &o, &like);
	if (status == STATUS_DONE)
		status = set_options(a, &o);
	if (status == STATUS_DONE && !write_generated(a, &o, &diag))
		status = skep_report_diag(STATUS_BAD_INPUT, &diag);
	skep_trace_stats_finish(&like);
	if (status == STATUS_DONE)
		status = skep_trace_print_stats(&a->trace.common, a->trace.common.output, &own);
	return status;
}

static enum status run(struct skep_command_line *line)
{
	struct generate_arguments a = {.duration_s = NAN,
		.scale_s = NAN,
		.shape = NAN,
		.refusal = NAN,
		.wait_s = NAN,
		.diurnal = NAN,
		.life = -1};
	enum status status;
	if (!skep_trace_arguments_read(line, &a.trace, &status))
		return status;
	bool ready = skep_trace_output_ready(&a.trace.common, "the trace", SKEP_TRACE_WRITTEN, a.like, "the trace");
	return ready ? generate(&a) : STATUS_BAD_INPUT;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct generate_arguments, member)
#define ABOVE_0                                                                                                        \
	.dimension = SKEP_TIME, .low = 1e-300, .high = 1e10,                                                           \
	.expected = "a time above 0 with its unit, such as 600 s or 24 h"
#define ANY .low = -DBL_MAX, .high = DBL_MAX, .expected = "a number"

static const struct skep_option law_rows[] = {
	{"like", 0, SKEP_OPTION_PATH, AT(like), "FILE",
		.help = "fit the law to this trace; the options below replace single values"},
	{"machines", 0, SKEP_OPTION_U32, AT(machines), "N", .least = 1, .most = 1000000, .help = "machines wanted"},
	{"duration", 0, SKEP_OPTION_QUANTITY, AT(duration_s), "TIME", ABOVE_0,
		.help = "length of the trace, such as '24 h'", .example = "24 h"},
	{"life", 0, SKEP_OPTION_CHOICE, AT(life), "LAW", .choice = skep_lifetime_distribution_names,
		.help = "law of lifetimes, exponential or weibull; with --like the one that fits better"},
	{"scale", 0, SKEP_OPTION_QUANTITY, AT(scale_s), "TIME", ABOVE_0,
		.help = "scale of the lifetimes: the mean of an exponential law", .example = "20 min"},
	{"shape", 0, SKEP_OPTION_NUMBER, AT(shape), "K", ANY,
		.help = "shape of Weibull lifetimes; below 1 many end early", .example = "0.7"},
	{"bursts", 0, SKEP_OPTION_PARSED, 0, "LIST", .parse = parse_bursts, .once = "bulks",
		.help = "how often how many machines are lost at once: 39x1,13x2,15x3", .example = "39x1,13x2",
		.expected = "how often how many go at once, such as 39x1,13x2"},
	{"refusal", 0, SKEP_OPTION_NUMBER, AT(refusal), "P", ANY,
		.help = "probability that a request for a machine is refused", .usual = "0", .example = "0.1"},
	{"wait", 0, SKEP_OPTION_QUANTITY, AT(wait_s), "TIME", ABOVE_0, .help = "mean time until a request is answered",
		.usual = "60 s", .example = "60 s"},
	{"diurnal", 0, SKEP_OPTION_NUMBER, AT(diurnal), "A", ANY,
		.help = "fraction by which fewer machines are wanted after 12 h than at the start, 0 to 1",
		.usual = "0", .example = "0.5"},
	{"gpu", 0, SKEP_OPTION_PARSED, AT(gpus), "LIST", .parse = parse_gpus,
		.help = "GPU types with their shares: t4=3,a100=1", .example = "t4=3,a100=1",
		.expected = "types of 1 to 63 bytes with their shares, such as t4=3,a100=1"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("What is drawn", law_rows), SKEP_TRACE_OPTIONS,
	{"Output", skep_trace_output_row, 1, 0}, SKEP_FORCE_OPTION, SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep trace generate --like topologies/traces/aws-p3.csv -o big.csv",
		"a trace with the same lifetimes and bursts of losses"},
	{"skep trace generate --machines 32 --duration '24 h' --scale '2 h' -o day.csv",
		"a day of exponential lifetimes"},
	{0},
};

const struct skep_command skep_command_trace_generate = {
	.name = "trace generate",
	.operands = "-o OUT",
	.summary = "draw a trace from a law, or like another trace",
	.text = "Draws a preemption trace from a law of lifetimes, or from one fitted to another trace.",
	.group = groups,
	.example = examples,
	.run = run,
};
