/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.c - `skep topology import|stats`. The work is done in topologies/.
 */
#include <stdarg.h>
#include <string.h>

#include "commands/arguments.h"
#include "commands/commands.h"
#include "topologies/import/import.h"
#include "topologies/read/topology_stats.h"

struct import_arguments {
	struct arguments common;
	struct skep_import_options import;
};

/* ---- values of options ------------------------------------------------------------------------------------------- */

/* A bandwidth of 1 bit/s to 1 PB/s, or a time of 0 to 1 h. */
static bool parse_quantity(const char *text, enum skep_dimension dimension, double *ret)
{
	const char *expected;
	bool bandwidth = dimension == SKEP_BANDWIDTH;
	return skep_quantity_parse(text, dimension, ret, &expected) && *ret >= (bandwidth ? 1 : 0) &&
	       *ret <= (bandwidth ? 1e15 : 3600);
}

static int word_index(const char *text, size_t length, const char *const *word)
{
	for (int i = 0; word[i]; i++)
		if (strlen(word[i]) == length && strncmp(word[i], text, length) == 0)
			return i;
	return -1;
}

/* reverse,median */
static bool parse_fill(const char *text, void *ret)
{
	struct skep_survey_rules *rules = ret;
	rules->fills = 0;
	for (const char *at = text;;) {
		size_t length = strcspn(at, ",");
		int rule = word_index(at, length, skep_fill_names);
		if (rule < 0 || rules->fills == SKEP_FILL_CONSTANT)
			return false;
		rules->fill[rules->fills++] = (enum skep_fill)rule;
		if (!at[length])
			return true;
		at += length + 1;
	}
}

/* '10 Gbit/s, 0.1 ms' */
static bool parse_inside(const char *text, void *ret)
{
	struct skep_import_options *options = ret;
	char rate[64] = "";
	const char *comma = strchr(text, ',');
	if (!comma || comma - text >= (int)sizeof rate)
		return false;
	memcpy(rate, text, (size_t)(comma - text));
	comma += 1 + strspn(comma + 1, " ");
	return parse_quantity(rate, SKEP_BANDWIDTH, &options->inside_Bps) &&
	       parse_quantity(comma, SKEP_TIME, &options->inside_s);
}

static bool parse_unit(const char *text, void *ret)
{
	*(double *)ret = strcmp(text, "ms") == 0 ? 1e-3 : 1;
	return strcmp(text, "ms") == 0 || strcmp(text, "s") == 0;
}

static bool parse_bandwidth(const char *text, void *ret)
{
	return parse_quantity(text, SKEP_BANDWIDTH, ret);
}

static bool parse_latency(const char *text, void *ret)
{
	return parse_quantity(text, SKEP_TIME, ret);
}

/* ---- import ------------------------------------------------------------------------------------------------------ */

#define FORMAT(name) (1u << SKEP_IMPORT_##name)
#define OF_PAIRS (~FORMAT(REGIONS))

/* Options that mean something to some formats only; the others refuse them. */
static const struct {
	const char *option;
	uint32_t formats;
} only[] = {
	{"provider", FORMAT(SKYPLANE)},
	{"tier", FORMAT(SKYPLANE)},
	{"unit", FORMAT(RTT)},
	{"one-way", FORMAT(SKYPLANE) | FORMAT(CITY_PAIRS) | FORMAT(RTT) | FORMAT(GCP_PING)},
	{"count", FORMAT(REGIONS)},
	{"seed", FORMAT(REGIONS)},
	{"between", OF_PAIRS},
	{"fill", OF_PAIRS},
	{"bandwidth", OF_PAIRS},
	{"latency", OF_PAIRS},
	{"up", OF_PAIRS},
	{"down", OF_PAIRS},
	{"machines", OF_PAIRS},
	{"inside", OF_PAIRS},
};

__attribute__((format(printf, 1, 2))) static bool refuse(const char *format, ...)
{
	char text[320];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	skep_report_error(STATUS_BAD_INPUT, text);
	return false;
}

static bool takes_all(const struct skep_command_line *line, enum skep_import_format format)
{
	for (uint32_t i = 0; i < line->givens; i++)
		for (size_t k = 0; k < sizeof only / sizeof *only; k++)
			if (strcmp(only[k].option, line->given[i]->name) == 0 && !(only[k].formats & 1u << format))
				return refuse("--%s is not an option of the format %s", only[k].option,
					skep_import_format_names[format]);
	return true;
}

static bool refuse_format(const char *name)
{
	char known[160] = "";
	for (const char *const *word = skep_import_format_names; *word; word++) {
		size_t used = strlen(known);
		snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", *word);
	}
	return refuse("there is no format '%.40s'; there are %s: see skep topology import --help", name, known);
}

static bool read_operands(const struct skep_command_line *line, struct import_arguments *a)
{
	struct skep_import_options *o = &a->import;
	const char *name = line->operand[0];
	int format = word_index(name, strlen(name), skep_import_format_names);
	if (format < 0)
		return refuse_format(name);
	o->format = (enum skep_import_format)format;
	o->file = line->operand + 1;
	o->files = line->operands - 1;
	o->output = a->common.output;
	o->force = a->common.force;
	if (o->files == 0)
		return refuse("expected files of the format %s", name);
	if (o->files > 1 && (o->format == SKEP_IMPORT_REGIONS || o->format == SKEP_IMPORT_SIMGRID))
		return refuse("the format %s takes one file", name);
	if (!o->output)
		return refuse("expected -o NAME.yaml, the topology that is written");
	return takes_all(line, o->format);
}

static enum status print_stats(const struct arguments *a, const char *path)
{
	struct skep_topology topology;
	struct skep_topology_stats stats;
	struct skep_diag diag = {0};
	if (!skep_topology_read(path, &topology, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	bool made = skep_topology_stats_make(&topology, &stats);
	if (made && a->json)
		skep_topology_stats_print_json(&topology, &stats, stdout);
	else if (made)
		skep_topology_stats_print(&topology, &stats, stdout);
	skep_topology_finish(&topology);
	return made ? STATUS_DONE : skep_report_error(STATUS_BAD_INPUT, "not enough memory");
}

static enum status run_import(struct skep_command_line *line)
{
	struct import_arguments a = {.import = skep_import_defaults()};
	struct skep_import_report report;
	struct skep_diag diag = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!read_operands(line, &a))
		return STATUS_BAD_INPUT;
	if (!skep_import(&a.import, &report, &diag))
		return skep_report_diag(STATUS_BAD_INPUT, &diag);
	for (char *end, *at = report.notes; !a.common.quiet && (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		fprintf(stderr, "note: %s\n", at);
	}
	return print_stats(&a.common, report.path);
}

static enum status run_stats(struct skep_command_line *line)
{
	struct arguments a = {0};
	enum status status;
	return skep_arguments_read(line, &a, &status) ? print_stats(&a, line->operand[0]) : status;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct import_arguments, import.member)
#define BANDWIDTH(option, member, text)                                                                                \
	{                                                                                                              \
		.name = option, .type = SKEP_OPTION_PARSED, .parse = parse_bandwidth, .at = AT(member),                \
		.value = "RATE", .help = text, .example = "100 Mbit/s",                                                \
		.expected = "a bandwidth above 0 with its unit, such as '100 Mbit/s'"                                  \
	}
#define TEXT(option, member, called, text)                                                                             \
	{                                                                                                              \
		.name = option, .type = SKEP_OPTION_TEXT, .at = AT(member), .value = called, .help = text              \
	}

static const struct skep_option place_rows[] = {
	TEXT("between", between, "A,B,...", "these places only, in this order"),
	{"machines", 0, SKEP_OPTION_U32, AT(machines), "N", .help = "machines at each place", .least = 1, .most = 65536,
		.usual = "1"},
	TEXT("gpu", gpu, "NAME", "GPU profile of all machines (default: v100)"),
	TEXT("directory", directory, "PLACE", "where the directory runs (default: the first place)"),
	BANDWIDTH("up", up_Bps, "what one machine sends in all"),
	BANDWIDTH("down", down_Bps, "what one machine receives in all"),
	{"inside", 0, SKEP_OPTION_PARSED, offsetof(struct import_arguments, import), "'RATE, TIME'",
		.help = "bandwidth and latency between machines of one place, where they were not measured",
		.parse = parse_inside, .example = "10 Gbit/s, 0.1 ms",
		.expected = "a bandwidth and a latency, such as '10 Gbit/s, 0.1 ms'"},
};

static const struct skep_option hole_rows[] = {
	{"fill", 0, SKEP_OPTION_PARSED, AT(rules), "RULE,...",
		.help = "rules tried in this order: reverse (the other direction), worst (the lowest bandwidth or "
			"longest latency of both ends), median (of all pairs)",
		.parse = parse_fill, .example = "reverse,median",
		.expected = "one of reverse, worst, median, or several with commas between them"},
	BANDWIDTH("bandwidth", rules.constant[SKEP_BANDWIDTH_SAMPLE],
		"of pairs that no rule fills, such as '100 Mbit/s'"),
	{"latency", 0, SKEP_OPTION_PARSED, AT(rules.constant[SKEP_LATENCY_SAMPLE]), "TIME",
		.help = "the same, one way, such as '50 ms'", .parse = parse_latency, .example = "50 ms",
		.expected = "a time of 0 to 1 h with its unit, such as '50 ms'"},
};

static const struct skep_option format_rows[] = {
	{"one-way", 0, SKEP_OPTION_FLAG, AT(one_way),
		.help = "skyplane, city-pairs, rtt, gcp-ping: delays are one way already; do not halve them"},
	TEXT("provider", provider, "NAME,...", "skyplane: regions of these providers only: aws, azure, gcp"),
	{"tier", 0, SKEP_OPTION_CHOICE, AT(tier), "TIER", .help = "skyplane: premium, standard or any",
		.choice = skep_import_tier_names, .usual = "premium"},
	{"unit", 0, SKEP_OPTION_PARSED, AT(unit_s), "ms|s",
		.help = "rtt: unit of the numbers; recognised if their median is 5 or more", .parse = parse_unit,
		.example = "ms", .expected = "one of ms, s"},
	{"count", 0, SKEP_OPTION_U32, AT(count), "N", .help = "regions: home peers to draw", .least = 1,
		.most = 1048576, .usual = "1024"},
	{"seed", 0, SKEP_OPTION_U64, AT(seed), "N", .help = "regions: seed of the draw", .most = INT64_MAX,
		.usual = "0"},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct import_arguments, common.output), "NAME",
		.help = "NAME.yaml, with its matrices beside it; or a folder; required"},
	{"name", 0, SKEP_OPTION_TEXT, AT(name), "TEXT", .help = "name of the topology", .least = 1, .most = 63,
		.usual = "the file's name"},
	{"source", 0, SKEP_OPTION_TEXT, AT(source), "TEXT", .help = "where it comes from, for its first lines",
		.least = 1, .most = UINT32_MAX, .usual = "what was measured", .expected = "a text"},
};

static const struct skep_option_group import_groups[] = {SKEP_OWN_OPTIONS("Machines", place_rows),
	SKEP_OWN_OPTIONS("Pairs that were not measured", hole_rows), SKEP_OWN_OPTIONS("Of some formats", format_rows),
	SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION, SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_option_group stats_groups[] = {SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_word formats[] = {
	{"skyplane", "throughput and ping tables of cloud regions: one file of each, told apart by their columns"},
	{"city-pairs", "region_a,region_b,delay_ms,bandwidth_gbps"},
	{"rtt", "a square matrix of round-trip times"},
	{"gcp-ping", "REGION.dat for each source: min/avg/max/mdev:destination"},
	{"regions", "a table of regions, from which home peers are drawn"},
	{"nccl", "output of nccl-tests, a file for each group of hosts"},
	{"osu", "output of osu_bw and osu_latency; each operand is FROM,TO=FILE"},
	{"iperf3", "output of iperf3 --json; FROM,TO=FILE where addresses do not tell the machines"},
	{"simgrid", "a platform file of SimGrid: hosts, links and routes of a zone with Full routing"},
	{0},
};
static const struct skep_example import_examples[] = {
	{"skep topology import rtt rtt.txt --bandwidth '1 Gbit/s' -o net.yaml",
		"round-trip times from a matrix, one bandwidth for all pairs"},
	{0},
};
static const struct skep_example stats_examples[] = {
	{"skep topology stats topologies/two-datacentres.yaml", "quantiles of bandwidth and latency between machines"},
	{0},
};

static const struct skep_command import_command = {
	.name = "topology import",
	.operands = "FORMAT FILE... -o NAME.yaml",
	.summary = "make a topology from measurements or platform files",
	.text = "Makes a topology from measurements and platform files of other tools. docs/networks.md says what each format "
		"measures and how to get such files.",
	.least = 1,
	.most = UINT32_MAX,
	.words = "Formats",
	.word = formats,
	.group = import_groups,
	.example = import_examples,
	.run = run_import,
};

static const struct skep_command stats_command = {
	.name = "topology stats",
	.operands = "FILE",
	.summary = "print machines, and quantiles of bandwidth and latency",
	.text = "Prints which machines are where, and quantiles of bandwidth and latency between two of them.",
	.least = 1,
	.most = 1,
	.group = stats_groups,
	.example = stats_examples,
	.run = run_stats,
};

static const struct skep_command *const sub_commands[] = {&import_command, &stats_command, NULL};
const struct skep_command skep_command_topology = {
	.name = "topology",
	.operands = "",
	.summary = "import measured networks; describe a topology",
	.text = "Machines and the links between them.",
	.sub = sub_commands,
};
