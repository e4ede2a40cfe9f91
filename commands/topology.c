/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.c - `skep topology import|stats`: options, and what is printed. The work is done in topologies/.
 */
#include "commands/topology.h"

#include <stdlib.h>
#include <string.h>

#include "commands/values.h"
#include "topologies/import.h"
#include "topologies/topology_stats.h"

static const char import_help[] =
	"Formats (topologies/README.md says what each measures and how it is taken):\n"
	"  skyplane     throughput and ping tables of cloud regions: one file of each, told apart by their columns\n"
	"  city-pairs   region_a,region_b,delay_ms,bandwidth_gbps\n"
	"  rtt          a square matrix of round trips\n"
	"  gcp-ping     REGION.dat for each source: min/avg/max/mdev:destination\n"
	"  regions      a region table, from which home peers are drawn\n"
	"  nccl         output of nccl-tests, a file for each group of hosts\n"
	"  osu          output of osu_bw and osu_latency; each operand FROM,TO=FILE\n"
	"  iperf3       output of iperf3 --json; FROM,TO=FILE where addresses do not tell the machines\n"
	"  simgrid      a platform file of SimGrid: hosts, links, routes of a zone with Full routing\n"
	"\n"
	"  -o, --output NAME     NAME.yaml, with its matrices beside it; or a folder\n"
	"  --force               replace files of these names that no import has written\n"
	"  --between A,B,...     these places only, in this order\n"
	"  --fill RULE,...       what fills holes, tried in this order: reverse (the other direction), worst (the "
	"least\n"
	"                        bandwidth or longest latency of both ends), median (of all pairs)\n"
	"  --bandwidth RATE      of pairs that were not measured and that no rule fills, such as '100 Mbit/s'\n"
	"  --latency TIME        the same, one way, such as '50 ms'\n"
	"  --up RATE, --down RATE  what one machine sends or receives in all\n"
	"  --machines N          machines at each place (default 1)\n"
	"  --inside 'RATE, TIME' between machines of one place, where that was not measured\n"
	"  --gpu NAME            profile of all machines (default v100)\n"
	"  --directory PLACE     where the directory runs (default: the first place)\n"
	"  --name TEXT, --source TEXT  of the topology (default: the file's name, and what was measured)\n"
	"  --one-way             skyplane, city-pairs, rtt, gcp-ping: delays are one way already, do not halve them\n"
	"  --provider NAME,...   skyplane: regions of these providers only: aws, azure, gcp\n"
	"  --tier TIER           skyplane: premium (default), standard or any\n"
	"  --unit ms|s           rtt: of the numbers; recognised if their median is 5 or more\n"
	"  --count N, --seed N   regions: peers to draw (default 1024), and how (default 0)\n";

static const struct sub_command {
	const char *name, *operands, *summary, *sentence, *help;
} sub_commands[] = {
	{"import", "FORMAT FILE... -o NAME.yaml", "measurements and platforms of others to a topology of ours",
		"Makes a topology of measurements and platforms of others", import_help},
	{"stats", "FILE", "who is where, and quantiles of bandwidth and latency",
		"Tells which machines are where, and how bandwidth and latency between two of them are spread", ""},
};

enum {
	OPTION_BETWEEN = 256,
	OPTION_FILL,
	OPTION_BANDWIDTH,
	OPTION_LATENCY,
	OPTION_UP,
	OPTION_DOWN,
	OPTION_MACHINES,
	OPTION_INSIDE,
	OPTION_GPU,
	OPTION_DIRECTORY,
	OPTION_NAME,
	OPTION_SOURCE,
	OPTION_ONE_WAY,
	OPTION_PROVIDER,
	OPTION_TIER,
	OPTION_UNIT,
	OPTION_COUNT,
	OPTION_SEED,
	OPTION_JSON,
	OPTION_FORCE
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"between", required_argument, NULL, OPTION_BETWEEN},
	{"fill", required_argument, NULL, OPTION_FILL},
	{"bandwidth", required_argument, NULL, OPTION_BANDWIDTH},
	{"latency", required_argument, NULL, OPTION_LATENCY},
	{"up", required_argument, NULL, OPTION_UP},
	{"down", required_argument, NULL, OPTION_DOWN},
	{"machines", required_argument, NULL, OPTION_MACHINES},
	{"inside", required_argument, NULL, OPTION_INSIDE},
	{"gpu", required_argument, NULL, OPTION_GPU},
	{"directory", required_argument, NULL, OPTION_DIRECTORY},
	{"name", required_argument, NULL, OPTION_NAME},
	{"source", required_argument, NULL, OPTION_SOURCE},
	{"one-way", no_argument, NULL, OPTION_ONE_WAY},
	{"provider", required_argument, NULL, OPTION_PROVIDER},
	{"tier", required_argument, NULL, OPTION_TIER},
	{"unit", required_argument, NULL, OPTION_UNIT},
	{"count", required_argument, NULL, OPTION_COUNT},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"json", no_argument, NULL, OPTION_JSON},
	{"force", no_argument, NULL, OPTION_FORCE},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct arguments {
	struct skep_import_options import;
	bool json, quiet, help, importing;
	uint32_t given; /* bits of options that only some formats take */
	char **operand;
	int operands;
	struct skep_complaint complaint;
};

/* ---- values of options ------------------------------------------------------------------------------------------- */

static bool read_quantity(
	struct arguments *a, const char *name, const char *text, enum skep_dimension dimension, double *ret)
{
	const char *expected;
	bool bandwidth = dimension == SKEP_BANDWIDTH;
	if (skep_quantity_parse(text, dimension, ret, &expected) && *ret >= (bandwidth ? 1 : 0) &&
		*ret <= (bandwidth ? 1e15 : 3600))
		return true;
	return skep_value_refuse(&a->complaint, "--%s %.60s: expected %s with its unit, such as '%s'", name, text,
		bandwidth ? "a bandwidth above 0" : "a time of 0 to 1 h", bandwidth ? "100 Mbit/s" : "50 ms");
}

static int word_index(const char *text, size_t length, const char *const *word)
{
	for (int i = 0; word[i]; i++)
		if (strlen(word[i]) == length && strncmp(word[i], text, length) == 0)
			return i;
	return -1;
}

static bool read_fill(struct arguments *a, const char *text)
{
	struct skep_survey_rules *rules = &a->import.rules;
	rules->fills = 0;
	for (const char *at = text;;) {
		size_t length = strcspn(at, ",");
		int rule = word_index(at, length, skep_fill_names);
		if (rule < 0 || rules->fills == SKEP_FILL_CONSTANT)
			return skep_value_refuse_word(&a->complaint, "--fill", text, skep_fill_names);
		rules->fill[rules->fills++] = (enum skep_fill)rule;
		if (!at[length])
			return true;
		at += length + 1;
	}
}

/* '10 Gbit/s, 0.1 ms' */
static bool read_inside(struct arguments *a, const char *text)
{
	char rate[64] = "";
	const char *comma = strchr(text, ',');
	if (!comma || comma - text >= (int)sizeof rate)
		return skep_value_refuse(&a->complaint,
			"--inside %.60s: expected a bandwidth and a latency, such as '10 Gbit/s, 0.1 ms'", text);
	memcpy(rate, text, (size_t)(comma - text));
	comma += 1 + strspn(comma + 1, " ");
	return read_quantity(a, "inside", rate, SKEP_BANDWIDTH, &a->import.inside_Bps) &&
	       read_quantity(a, "inside", comma, SKEP_TIME, &a->import.inside_s);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static bool take_number(struct arguments *a, int option, const char *name, const char *value)
{
	struct skep_import_options *o = &a->import;
	uint64_t number = 0;
	bool ok;
	switch (option) {
	case OPTION_BANDWIDTH:
		return read_quantity(a, name, value, SKEP_BANDWIDTH, &o->rules.constant[SKEP_BANDWIDTH_SAMPLE]);
	case OPTION_LATENCY:
		return read_quantity(a, name, value, SKEP_TIME, &o->rules.constant[SKEP_LATENCY_SAMPLE]);
	case OPTION_UP:
		return read_quantity(a, name, value, SKEP_BANDWIDTH, &o->up_Bps);
	case OPTION_DOWN:
		return read_quantity(a, name, value, SKEP_BANDWIDTH, &o->down_Bps);
	case OPTION_INSIDE:
		return read_inside(a, value);
	case OPTION_FILL:
		return read_fill(a, value);
	case OPTION_MACHINES:
		ok = skep_value_integer(&a->complaint, name, value, 1, 65536, &number);
		o->machines = (uint32_t)number;
		return ok;
	case OPTION_COUNT:
		ok = skep_value_integer(&a->complaint, name, value, 1, 1048576, &number);
		o->count = (uint32_t)number;
		return ok;
	default:
		return skep_value_integer(&a->complaint, name, value, 0, INT64_MAX, &o->seed);
	}
}

static bool take_word(struct arguments *a, int option, const char *value)
{
	static const char *const units[] = {"ms", "s", NULL};
	struct skep_import_options *o = &a->import;
	int word = -1;
	switch (option) {
	case OPTION_BETWEEN:
		o->between = value;
		return true;
	case OPTION_GPU:
		o->gpu = value;
		return true;
	case OPTION_DIRECTORY:
		o->directory = value;
		return true;
	case OPTION_NAME:
		o->name = value;
		return (value[0] && strlen(value) < 64) ||
		       skep_value_refuse(&a->complaint, "--name: expected a text of 1 to 63 bytes");
	case OPTION_SOURCE:
		o->source = value;
		return value[0] || skep_value_refuse(&a->complaint, "--source: expected a text");
	case OPTION_ONE_WAY:
		return o->one_way = true;
	case OPTION_PROVIDER:
		o->provider = value;
		return true;
	case OPTION_TIER:
		word = word_index(value, strlen(value), skep_import_tier_names);
		o->tier = (enum skep_import_tier)word;
		return word >= 0 || skep_value_refuse_word(&a->complaint, "--tier", value, skep_import_tier_names);
	default:
		word = word_index(value, strlen(value), units);
		o->unit_s = word == 0 ? 1e-3 : 1;
		return word >= 0 || skep_value_refuse_word(&a->complaint, "--unit", value, units);
	}
}

/* Options that mean something to some formats only; the others refuse them. */
static bool check_format(struct arguments *a, int option, const char *name)
{
	enum skep_import_format f = a->import.format;
	bool fits = true;
	if (option == OPTION_PROVIDER || option == OPTION_TIER)
		fits = f == SKEP_IMPORT_SKYPLANE;
	else if (option == OPTION_UNIT)
		fits = f == SKEP_IMPORT_RTT;
	else if (option == OPTION_ONE_WAY)
		fits = f <= SKEP_IMPORT_GCP_PING;
	else if (option == OPTION_COUNT || option == OPTION_SEED)
		fits = f == SKEP_IMPORT_REGIONS;
	else if (f == SKEP_IMPORT_REGIONS)
		fits = option == OPTION_GPU || option == OPTION_DIRECTORY || option == OPTION_NAME ||
		       option == OPTION_SOURCE;
	return fits || skep_value_refuse(&a->complaint, "--%s is not an option of the format %s", name,
			       skep_import_format_names[f]);
}

static bool take(void *context, int option, const char *name, const char *value)
{
	struct arguments *a = context;
	switch (option) {
	case OPTION_JSON:
		return a->json = true;
	case 'q':
		return a->quiet = true;
	case 'h':
		return a->help = true;
	}
	if (!a->importing)
		return skep_value_refuse(&a->complaint, "--%s is not an option of this command", name);
	if (option == 'o') {
		a->import.output = value;
		return true;
	}
	if (option == OPTION_FORCE)
		return a->import.force = true;
	a->given |= 1u << (option - OPTION_BETWEEN);
	if (option == OPTION_FILL || (option >= OPTION_BANDWIDTH && option <= OPTION_INSIDE) ||
		option == OPTION_COUNT || option == OPTION_SEED)
		return take_number(a, option, name, value);
	return take_word(a, option, value);
}

/* After all of them: the format stands among the operands. */
static bool check_given(struct arguments *a)
{
	for (const struct option *o = long_options; o->name; o++)
		if (o->val >= OPTION_BETWEEN && o->val < OPTION_JSON && a->given & 1u << (o->val - OPTION_BETWEEN) &&
			!check_format(a, o->val, o->name))
			return false;
	return true;
}

static bool parse_operands(struct arguments *a)
{
	struct skep_import_options *o = &a->import;
	if (!a->importing)
		return a->operands == 1 ||
		       skep_value_refuse(&a->complaint, "expected one topology file; see skep topology stats --help");
	if (a->operands == 0)
		return skep_value_refuse(
			&a->complaint, "expected a format and its files; see skep topology import --help");
	int format = word_index(a->operand[0], strlen(a->operand[0]), skep_import_format_names);
	if (format < 0)
		return skep_value_refuse_word(
			&a->complaint, "skep topology import", a->operand[0], skep_import_format_names);
	o->format = (enum skep_import_format)format;
	o->file = a->operand + 1;
	o->files = (uint32_t)a->operands - 1;
	if (o->files == 0)
		return skep_value_refuse(&a->complaint, "expected files of the format %s", a->operand[0]);
	if (o->files > 1 && (o->format == SKEP_IMPORT_REGIONS || o->format == SKEP_IMPORT_SIMGRID))
		return skep_value_refuse(&a->complaint, "the format %s takes one file", a->operand[0]);
	if (!o->output)
		return skep_value_refuse(&a->complaint, "expected -o NAME.yaml, the topology that is written");
	return check_given(a);
}

static bool parse(struct arguments *a, bool importing, int argc, char **argv, char *error, size_t size)
{
	*a = (struct arguments){.import = skep_import_defaults(), .importing = importing, .complaint = {error, size}};
	return skep_options_read(argc, argv, long_options, take, a, &a->complaint, &a->operand, &a->operands) &&
	       (a->help || parse_operands(a));
}

static bool print_help(bool importing, FILE *out)
{
	const struct sub_command *sub = &sub_commands[importing ? 0 : 1];
	fprintf(out, "usage: skep topology %s %s [OPTIONS]\n\n%s.\n\n%s%s", sub->name, sub->operands, sub->sentence,
		sub->help, sub->help[0] ? "\n" : "");
	fputs("Always:\n  --json                one JSON object on stdout, nothing else\n  -q, --quiet           "
	      "nothing on stderr but errors\n",
		out);
	return true;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static bool print_stats(struct arguments *a, const char *path, FILE *out)
{
	struct skep_topology topology;
	struct skep_topology_stats stats;
	struct skep_diag diag = {0};
	if (!skep_topology_read(path, &topology, &diag))
		return skep_value_refuse_diag(&a->complaint, &diag);
	bool ok = skep_topology_stats_make(&topology, &stats);
	if (ok && a->json)
		skep_topology_stats_print_json(&topology, &stats, out);
	else if (ok)
		skep_topology_stats_print(&topology, &stats, out);
	skep_topology_finish(&topology);
	return ok || skep_value_refuse(&a->complaint, "not enough memory");
}

static bool import(struct arguments *a, FILE *out, FILE *warn)
{
	struct skep_import_report report;
	struct skep_diag diag = {0};
	if (!skep_import(&a->import, &report, &diag))
		return skep_value_refuse_diag(&a->complaint, &diag);
	for (char *end, *at = report.notes; !a->quiet && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		fprintf(warn, "note: %s\n", at);
	}
	return print_stats(a, report.path, out);
}

static void print_usage(FILE *out)
{
	fputs("usage: skep topology SUB-COMMAND [OPTIONS]\n\nMachines and the links between them.\n\n", out);
	for (size_t i = 0; i < sizeof sub_commands / sizeof *sub_commands; i++)
		fprintf(out, "  skep topology %-6s %-31s  %s\n", sub_commands[i].name, sub_commands[i].operands,
			sub_commands[i].summary);
	fputs("\n`skep topology SUB-COMMAND --help` lists its options.\n", out);
}

bool skep_topology_command(int argc, char **argv, FILE *out, FILE *warn, char *error, size_t size)
{
	struct arguments a;
	const char *name = argc > 0 ? argv[0] : "";
	bool importing = strcmp(name, "import") == 0;
	if (importing || strcmp(name, "stats") == 0) {
		if (!parse(&a, importing, argc, argv, error, size))
			return false;
		if (a.help)
			return print_help(importing, out);
		return importing ? import(&a, out, warn) : print_stats(&a, a.operand[0], out);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_usage(out);
		return true;
	}
	if (argc == 0)
		print_usage(warn);
	snprintf(error, size, "expected skep topology import or stats%s%.40s", argc > 0 ? ", not " : "", name);
	return false;
}
