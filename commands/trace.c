/* SPDX-License-Identifier: Apache-2.0
 *
 * trace.c - `skep trace import|stats|generate`: options, and what is printed. The work is done in topologies/.
 */
#include "commands/trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands/values.h"
#include "scenarios/reader/replace.h"
#include "topologies/trace_generate.h"

enum { IMPORT = 1, STATS = 2, GENERATE = 4 };

static const char reading_help[] =
	"How a trace is read:\n"
	"  --format NAME      own, named, counts, log, gaps, tasks or nodes (default: by its first line)\n"
	"  --repair           put right, with a warning, what is an error otherwise: time that goes backwards,\n"
	"                     joins of the living, leaves of the unknown, unknown types\n"
	"  --per-gpu          log, tasks, nodes: a machine with 8 GPUs is 8 workers\n"
	"  --gpu TYPE         the GPU type where the trace names none\n"
	"  --gap TIME         gaps: the length of one, with its unit\n"
	"  --nodes FILE       tasks: table of nodes, to draw the type of a task that takes any\n"
	"  --victims RULE     counts: who goes: random (default), newest, oldest, or zone\n"
	"  --zones N          counts: zones that newcomers are spread over (default 1)\n";

static const char common_help[] = "Always:\n"
				  "  --seed N           of everything that is drawn (default 0)\n"
				  "  --json             one JSON object on stdout, nothing else\n"
				  "  -q, --quiet        nothing on stderr but errors\n";

static const struct sub_command {
	int command;
	const char *name, *operands, *summary, *sentence, *help;
} sub_commands[] = {
	{IMPORT, "import", "FILE -o OUT", "any trace format to ours",
		"Reads a trace in any of the formats below and writes it in ours",
		"  -o, --output FILE  the trace in our format\n"
		"  --force            replace a file of this name that skep has not written\n"
		"  --source TEXT      where it comes from, a comment in the file (default: the imported file's name)\n"
		"  --licence TEXT     its licence, the same (default: not stated)\n"},
	{STATS, "stats", "FILE", "how long machines live, how they go, how many there are",
		"Tells how long machines live, how they go, how many there are, and which law fits their lives", ""},
	{GENERATE, "generate", "-o OUT", "draw a trace from a law, or like another one",
		"Draws a trace from a law of how long machines live, or from one fitted to another trace",
		"  -o, --output FILE  the trace, in our format\n"
		"  --force            replace a file of this name that skep has not written\n"
		"  --like FILE        fit to this trace; the options below replace single values\n"
		"  --machines N       as many are wanted\n"
		"  --duration TIME    with its unit, such as 24 h\n"
		"  --life LAW         exponential or weibull (default with --like: what fits better)\n"
		"  --scale TIME       of the lives: the mean of an exponential law\n"
		"  --shape K          of Weibull lives: below 1 many die young\n"
		"  --bulks LIST       how often how many go at once: 39x1,13x2,15x3\n"
		"  --refusal P        a request is refused with this probability (default 0)\n"
		"  --wait TIME        mean time until a request is answered (default 60 s)\n"
		"  --diurnal A        so much fewer machines wanted after 12 h than at the start, 0 to 1 (default 0)\n"
		"  --gpu LIST         types with their shares: t4=3,a100=1\n"},
};

enum {
	OPTION_FORMAT = 256,
	OPTION_REPAIR,
	OPTION_PER_GPU,
	OPTION_GPU,
	OPTION_GAP,
	OPTION_NODES,
	OPTION_VICTIMS,
	OPTION_ZONES,
	OPTION_SEED,
	OPTION_JSON,
	OPTION_SOURCE,
	OPTION_LICENCE,
	OPTION_LIKE,
	OPTION_MACHINES,
	OPTION_DURATION,
	OPTION_LIFE,
	OPTION_SCALE,
	OPTION_SHAPE,
	OPTION_BULKS,
	OPTION_REFUSAL,
	OPTION_WAIT,
	OPTION_DIURNAL,
	OPTION_FORCE
};

static const struct option long_options[] = {
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"repair", no_argument, NULL, OPTION_REPAIR},
	{"per-gpu", no_argument, NULL, OPTION_PER_GPU},
	{"gpu", required_argument, NULL, OPTION_GPU},
	{"gap", required_argument, NULL, OPTION_GAP},
	{"nodes", required_argument, NULL, OPTION_NODES},
	{"victims", required_argument, NULL, OPTION_VICTIMS},
	{"zones", required_argument, NULL, OPTION_ZONES},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"json", no_argument, NULL, OPTION_JSON},
	{"output", required_argument, NULL, 'o'},
	{"source", required_argument, NULL, OPTION_SOURCE},
	{"licence", required_argument, NULL, OPTION_LICENCE},
	{"like", required_argument, NULL, OPTION_LIKE},
	{"machines", required_argument, NULL, OPTION_MACHINES},
	{"duration", required_argument, NULL, OPTION_DURATION},
	{"life", required_argument, NULL, OPTION_LIFE},
	{"scale", required_argument, NULL, OPTION_SCALE},
	{"shape", required_argument, NULL, OPTION_SHAPE},
	{"bulks", required_argument, NULL, OPTION_BULKS},
	{"refusal", required_argument, NULL, OPTION_REFUSAL},
	{"wait", required_argument, NULL, OPTION_WAIT},
	{"diurnal", required_argument, NULL, OPTION_DIURNAL},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

#define BULK_MAX 4096u

struct arguments {
	int command;
	struct skep_trace_options trace;
	bool json, quiet, help, force;
	const char *file, *output, *source, *licence, *gpu;
	/* generate; NAN, 0, -1, NULL: not given */
	const char *bulks;
	uint64_t machines;
	double duration_s, scale_s, shape, refusal, wait_s, diurnal;
	int life;
	struct skep_complaint complaint;
};

/* ---- values of options ------------------------------------------------------------------------------------------------- */

static bool read_number(struct arguments *a, const char *name, const char *text, double *ret)
{
	char *end;
	*ret = strtod(text, &end);
	if (end == text || *end != 0 || !isfinite(*ret))
		return skep_value_refuse(&a->complaint, "--%s %.40s: expected a number", name, text);
	return true;
}

static bool read_time(struct arguments *a, const char *name, const char *text, double *ret)
{
	const char *expected;
	if (skep_quantity_parse(text, SKEP_TIME, ret, &expected) && *ret > 0 && *ret <= 1e10)
		return true;
	return skep_value_refuse(
		&a->complaint, "--%s %.40s: expected a time above 0 with its unit, such as 600 s or 24 h", name, text);
}

static bool read_word(struct arguments *a, const char *name, const char *text, const char *const *word, int *ret)
{
	for (*ret = 0; word[*ret]; (*ret)++)
		if (strcmp(word[*ret], text) == 0)
			return true;
	char what[64];
	snprintf(what, sizeof what, "--%s", name);
	return skep_value_refuse_word(&a->complaint, what, text, word);
}

/* Types go into a CSV cell. */
static bool check_gpu(struct arguments *a, const char *text)
{
	for (const char *c = text; *c; c++)
		if ((uint8_t)*c < 0x21 || *c == ',' || *c == 0x7f)
			return skep_value_refuse(&a->complaint, "--gpu: a type without blanks and commas is expected");
	return (strlen(text) > 0 && strlen(text) < 64) ||
	       skep_value_refuse(&a->complaint, "--gpu: expected a type of 1 to 63 bytes");
}

/* ---- the command line --------------------------------------------------------------------------------------------------- */

static bool take_reading(struct arguments *a, int option, const char *name, const char *value)
{
	int word = 0;
	double seconds = 0;
	uint64_t number = 0;
	bool ok = true;
	switch (option) {
	case OPTION_FORMAT:
		ok = read_word(a, name, value, skep_trace_format_names, &word);
		a->trace.format = (enum skep_trace_format)word;
		return ok;
	case OPTION_VICTIMS:
		ok = read_word(a, name, value, skep_trace_victim_names, &word);
		a->trace.victims = (enum skep_trace_victims)word;
		return ok;
	case OPTION_GAP:
		ok = read_time(a, name, value, &seconds);
		a->trace.gap_ns = ok ? (skep_time)(seconds * 1e9) : 0;
		return ok && (a->trace.gap_ns > 0 || skep_value_refuse(&a->complaint, "--gap %.40s: too short", value));
	case OPTION_ZONES:
		ok = skep_value_integer(&a->complaint, name, value, 0, 1000, &number);
		a->trace.zones = (uint32_t)number;
		return ok;
	case OPTION_SEED:
		return skep_value_integer(&a->complaint, name, value, 0, INT64_MAX, &a->trace.seed);
	case OPTION_REPAIR:
		a->trace.repair = true;
		return true;
	case OPTION_PER_GPU:
		a->trace.per_gpu = true;
		return true;
	case OPTION_NODES:
		a->trace.nodes_path = value;
		return true;
	default:
		return false;
	}
}

static bool take_generating(struct arguments *a, int option, const char *name, const char *value)
{
	switch (option) {
	case OPTION_LIKE:
		a->file = value;
		return true;
	case OPTION_MACHINES:
		return skep_value_integer(&a->complaint, name, value, 0, 1000000, &a->machines) &&
		       (a->machines > 0 || skep_value_refuse(&a->complaint, "--machines: expected at least one"));
	case OPTION_DURATION:
		return read_time(a, name, value, &a->duration_s);
	case OPTION_LIFE:
		return read_word(a, name, value, skep_life_law_names, &a->life);
	case OPTION_SCALE:
		return read_time(a, name, value, &a->scale_s);
	case OPTION_SHAPE:
		return read_number(a, name, value, &a->shape);
	case OPTION_BULKS:
		a->bulks = value;
		return true;
	case OPTION_REFUSAL:
		return read_number(a, name, value, &a->refusal);
	case OPTION_WAIT:
		return read_time(a, name, value, &a->wait_s);
	case OPTION_DIURNAL:
		return read_number(a, name, value, &a->diurnal);
	default:
		return false;
	}
}

static bool take(void *context, int option, const char *name, const char *value)
{
	struct arguments *a = context;
	bool generating = option >= OPTION_LIKE && option <= OPTION_DIURNAL;
	bool importing = option == OPTION_SOURCE || option == OPTION_LICENCE;
	if ((generating && a->command != GENERATE) || (importing && a->command != IMPORT) ||
		((option == 'o' || option == OPTION_FORCE) && a->command == STATS))
		return skep_value_refuse(&a->complaint, "--%s is not an option of this command", name);
	if (generating)
		return take_generating(a, option, name, value);
	switch (option) {
	case OPTION_JSON:
		a->json = true;
		return true;
	case 'q':
		a->quiet = true;
		return true;
	case 'h':
		a->help = true;
		return true;
	case OPTION_FORCE:
		a->force = true;
		return true;
	case OPTION_SOURCE:
		a->source = value;
		return true;
	case OPTION_LICENCE:
		a->licence = value;
		return true;
	case OPTION_GPU:
		a->gpu = value;
		return true;
	case 'o':
		a->output = value;
		return true;
	default:
		return take_reading(a, option, name, value);
	}
}

static bool may_write(struct arguments *a)
{
	struct skep_complaint *c = &a->complaint;
	return (!a->file || skep_replace_not_read(a->output, a->file, "the trace", c->text, c->size)) &&
	       (a->force || skep_replace_written(a->output, SKEP_TRACE_WRITTEN, c->text, c->size));
}

static bool parse_files(struct arguments *a, char **file, int files)
{
	if (files != (a->command == GENERATE ? 0 : 1))
		return skep_value_refuse(
			&a->complaint, a->command == GENERATE ? "generate takes no file: --like FILE"
				       : a->command == STATS  ? "expected one trace file; see skep trace stats --help"
							     : "expected one trace file; see skep trace import --help");
	if (files == 1)
		a->file = file[0];
	if (a->command != STATS && !a->output)
		return skep_value_refuse(&a->complaint, "expected -o FILE, the trace that is written");
	if (a->command != STATS && !may_write(a))
		return false;
	if (a->command != GENERATE && a->gpu && !check_gpu(a, a->gpu))
		return false;
	a->trace.gpu = a->command == GENERATE ? NULL : a->gpu;
	return true;
}

static bool parse(struct arguments *a, int command, int argc, char **argv, char *error, size_t size)
{
	char **file;
	int files;
	*a = (struct arguments){.command = command,
		.duration_s = NAN,
		.scale_s = NAN,
		.shape = NAN,
		.refusal = NAN,
		.wait_s = NAN,
		.diurnal = NAN,
		.life = -1,
		.complaint = {error, size}};
	return skep_options_read(argc, argv, long_options, take, a, &a->complaint, &file, &files) &&
	       (a->help || parse_files(a, file, files));
}

static bool print_help(int command, FILE *out)
{
	for (size_t i = 0; i < sizeof sub_commands / sizeof *sub_commands; i++) {
		const struct sub_command *sub = &sub_commands[i];
		if (sub->command == command)
			fprintf(out, "usage: skep trace %s %s [OPTIONS]\n\n%s.\n\n%s%s%s\n%s", sub->name, sub->operands,
				sub->sentence, sub->help, sub->help[0] ? "\n" : "", reading_help, common_help);
	}
	return true;
}

/* ---- stats ---------------------------------------------------------------------------------------------------------------- */

static void print_repairs(
	const struct arguments *a, const struct skep_trace_report *report, const char *path, FILE *warn)
{
	char text[2048];
	if (a->quiet)
		return;
	skep_trace_repairs_print(report, path, text, sizeof text);
	fputs(text, warn);
}

static bool print_stats(
	struct arguments *a, const char *path, const struct skep_trace_options *options, FILE *out, FILE *warn)
{
	struct skep_trace_stats stats;
	struct skep_diag diag = {0};
	if (!skep_trace_stats_read(path, options, &stats, &diag))
		return skep_value_refuse_diag(&a->complaint, &diag);
	print_repairs(a, &stats.report, path, warn);
	if (a->json)
		skep_trace_stats_print_json(&stats, path, out);
	else
		skep_trace_stats_print(&stats, path, out);
	skep_trace_stats_finish(&stats);
	return true;
}

static bool stats(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size)
{
	struct arguments a;
	if (!parse(&a, STATS, argc, argv, error, size))
		return false;
	return a.help ? print_help(STATS, out) : print_stats(&a, a.file, &a.trace, out, warn);
}

/* ---- import --------------------------------------------------------------------------------------------------------------- */

static bool import_file(struct arguments *a, struct skep_trace_report *ret)
{
	struct skep_diag diag = {0};
	char source[512];
	const char *slash = strrchr(a->file, '/');
	snprintf(source, sizeof source, "imported from %.400s", slash ? slash + 1 : a->file);
	struct skep_trace_writer *writer = skep_trace_writer_create(
		a->output, a->source ? a->source : source, a->licence ? a->licence : "not stated", &diag);
	if (!writer)
		return skep_value_refuse_diag(&a->complaint, &diag);
	if (!skep_trace_read(a->file, &a->trace, skep_trace_write, writer, ret, &diag)) {
		skep_trace_writer_destroy(writer);
		return skep_value_refuse_diag(&a->complaint, &diag);
	}
	return skep_trace_writer_close(writer) || skep_value_refuse_diag(&a->complaint, &diag);
}

static bool import(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size)
{
	struct arguments a;
	struct skep_trace_report report;
	if (!parse(&a, IMPORT, argc, argv, error, size))
		return false;
	if (a.help)
		return print_help(IMPORT, out);
	if (!import_file(&a, &report))
		return false;
	print_repairs(&a, &report, a.file, warn);
	struct skep_trace_options own = {.format = SKEP_TRACE_OWN};
	return print_stats(&a, a.output, &own, out, warn);
}

/* ---- generate ------------------------------------------------------------------------------------------------------------- */

/* "39x1,13x2": how often, how many. */
static bool read_bulks(struct arguments *a, uint64_t count[BULK_MAX], struct skep_bulks *ret)
{
	const char *at = a->bulks;
	*ret = (struct skep_bulks){.count = count, .room = BULK_MAX};
	memset(count, 0, BULK_MAX * sizeof *count);
	while (*at) {
		char *end, *last;
		uint64_t often = strtoull(at, &end, 10);
		uint64_t many = *end == 'x' && end > at ? strtoull(end + 1, &last, 10) : 0;
		if (*at < '0' || *at > '9' || many < 1 || many > BULK_MAX || often < 1 || often > 1000000000 ||
			(*last != 0 && *last != ',') || end[1] < '0' || end[1] > '9')
			return skep_value_refuse(
				&a->complaint, "--bulks: expected how often how many go at once, such as 39x1,13x2");
		count[many - 1] += often;
		ret->bulks += often;
		ret->losses += often * many;
		ret->most = many > ret->most ? (uint32_t)many : ret->most;
		at = *last == ',' ? last + 1 : last;
	}
	return ret->bulks > 0 || skep_value_refuse(&a->complaint, "--bulks: expected at least one, such as 39x1,13x2");
}

/* "t4=3,a100=1" or "t4" */
static bool read_gpus(struct arguments *a, struct skep_generate_options *o)
{
	for (const char *at = a->gpu; at && *at;) {
		size_t length = strcspn(at, ","), name = strcspn(at, "=,");
		if (o->gpus == SKEP_GENERATE_GPUS_MAX || name >= sizeof o->gpu->name || length - name > 30)
			return skep_value_refuse(
				&a->complaint, "--gpu: at most %u types of less than 64 bytes", SKEP_GENERATE_GPUS_MAX);
		memcpy(o->gpu[o->gpus].name, at, name);
		o->gpu[o->gpus].share = 1;
		char share[32] = "1";
		if (name < length)
			snprintf(share, sizeof share, "%.*s", (int)(length - name - 1), at + name + 1);
		if (!check_gpu(a, o->gpu[o->gpus].name) || !read_number(a, "gpu", share, &o->gpu[o->gpus].share))
			return false;
		o->gpus++;
		at += length + (at[length] == ',');
	}
	return true;
}

static bool set_options(struct arguments *a, struct skep_generate_options *o, uint64_t bulk[BULK_MAX])
{
	o->seed = a->trace.seed;
	o->machines = a->machines > 0 ? (uint32_t)a->machines : o->machines;
	o->duration_s = isnan(a->duration_s) ? o->duration_s : a->duration_s;
	o->life.scale_s = isnan(a->scale_s) ? o->life.scale_s : a->scale_s;
	o->life.shape = isnan(a->shape) ? o->life.shape : a->shape;
	o->refusal = isnan(a->refusal) ? o->refusal : a->refusal;
	o->wait_s = isnan(a->wait_s) ? o->wait_s : a->wait_s;
	o->diurnal = isnan(a->diurnal) ? o->diurnal : a->diurnal;
	if (a->life == SKEP_LIFE_EXPONENTIAL && !isnan(a->shape) && a->shape != 1)
		return skep_value_refuse(&a->complaint, "--shape: an exponential life has no shape: --life weibull");
	if (o->life.shape != 1)
		o->life.law = SKEP_LIFE_WEIBULL;
	if ((a->bulks && !read_bulks(a, bulk, &o->bulks)) || !read_gpus(a, o))
		return false;
	if (!a->file && (a->machines == 0 || isnan(a->duration_s) || isnan(a->scale_s)))
		return skep_value_refuse(&a->complaint, "expected --like FILE, or --machines, --duration and --scale");
	const char *wrong = skep_generate_check(o);
	return !wrong || skep_value_refuse(&a->complaint, "%s", wrong);
}

/* From the trace to be like, or from nothing. *ret_stats owns what *ret borrows. */
static bool begin_options(
	struct arguments *a, struct skep_generate_options *ret, struct skep_trace_stats *ret_stats, FILE *warn)
{
	struct skep_diag diag = {0};
	*ret_stats = (struct skep_trace_stats){0};
	*ret = (struct skep_generate_options){.life = {.shape = 1}, .wait_s = 60};
	if (!a->file)
		return true;
	if (!skep_trace_stats_read(a->file, &a->trace, ret_stats, &diag))
		return skep_value_refuse_diag(&a->complaint, &diag);
	print_repairs(a, &ret_stats->report, a->file, warn);
	if (!skep_generate_like(ret_stats, ret))
		return skep_value_refuse(
			&a->complaint, "%.200s: no life ends in it, so that none can be fitted", a->file);
	if (a->life == SKEP_LIFE_EXPONENTIAL)
		ret->life = ret_stats->exponential;
	else if (a->life == SKEP_LIFE_WEIBULL)
		ret->life = ret_stats->weibull;
	return true;
}

static bool write_generated(struct arguments *a, const struct skep_generate_options *o)
{
	struct skep_diag diag = {0};
	char source[1024];
	snprintf(source, sizeof source,
		"generated%s%.300s: %u machines, %.10g s, %s lives of shape %.10g and scale %.10g s,\n"
		"bulks of %.4g on average, refusal %.10g, wait %.10g s, diurnal %.10g, seed %" PRIu64,
		a->file ? " like " : "", a->file ? a->file : "", o->machines, o->duration_s,
		skep_life_law_names[o->life.law], o->life.shape, o->life.scale_s,
		o->bulks.bulks > 0 ? (double)o->bulks.losses / (double)o->bulks.bulks : 1.0, o->refusal, o->wait_s,
		o->diurnal, o->seed);
	struct skep_trace_writer *writer =
		skep_trace_writer_create(a->output, source, "none needed, a product of the options above", &diag);
	if (!writer)
		return skep_value_refuse_diag(&a->complaint, &diag);
	if (!skep_trace_generate(o, skep_trace_write, writer)) {
		skep_trace_writer_destroy(writer);
		return skep_value_refuse(&a->complaint, "not enough memory");
	}
	return skep_trace_writer_close(writer) || skep_value_refuse_diag(&a->complaint, &diag);
}

static bool generate(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size)
{
	struct arguments a;
	struct skep_generate_options o;
	struct skep_trace_stats like;
	uint64_t bulk[BULK_MAX];
	if (!parse(&a, GENERATE, argc, argv, error, size))
		return false;
	if (a.help)
		return print_help(GENERATE, out);
	bool ok = begin_options(&a, &o, &like, warn) && set_options(&a, &o, bulk) && write_generated(&a, &o);
	skep_trace_stats_finish(&like);
	struct skep_trace_options own = {.format = SKEP_TRACE_OWN};
	return ok && print_stats(&a, a.output, &own, out, warn);
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------- */

static void print_usage(FILE *out)
{
	fputs("usage: skep trace SUB-COMMAND [OPTIONS]\n\n"
	      "Traces of machines that come and go.\n\n",
		out);
	for (size_t i = 0; i < sizeof sub_commands / sizeof *sub_commands; i++)
		fprintf(out, "  skep trace %-8s %-12s %s\n", sub_commands[i].name, sub_commands[i].operands,
			sub_commands[i].summary);
	fputs("\n`skep trace SUB-COMMAND --help` lists its options.\n", out);
}

bool skep_trace_command(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size)
{
	const char *name = argc > 0 ? argv[0] : "";
	if (strcmp(name, "import") == 0)
		return import(argc, argv, out, warn, error, size);
	if (strcmp(name, "stats") == 0)
		return stats(argc, argv, out, warn, error, size);
	if (strcmp(name, "generate") == 0)
		return generate(argc, argv, out, warn, error, size);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_usage(out);
		return true;
	}
	if (argc == 0)
		print_usage(warn);
	snprintf(error, size, "expected skep trace import, stats or generate%s%.40s", argc > 0 ? ", not " : "", name);
	return false;
}
