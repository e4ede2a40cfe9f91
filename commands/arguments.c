/* SPDX-License-Identifier: Apache-2.0
 *
 * arguments.c - reads a command's options and operands. What is kept true: a command gets only options that it takes, with
 * values in their range; every error names the word that is wrong.
 */
#include "commands/arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "planning/read.h"

#define CONFIRM_MIN 2u /* an interval takes two */

/* Every option; `val` is its letter in struct command. */
static const struct option long_options[] = {
	{"set", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'S'},
	{"db", required_argument, NULL, 'd'},
	{"json", no_argument, NULL, 'j'},
	{"quiet", no_argument, NULL, 'q'},
	{"ranks", required_argument, NULL, 'n'},
	{"pace", no_argument, NULL, 'p'},
	{"shape", no_argument, NULL, 'h'},
	{"device", required_argument, NULL, 'D'},
	{"spares", required_argument, NULL, 'P'},
	{"time-scale", required_argument, NULL, 't'},
	{"rounds", required_argument, NULL, 'r'},
	{"output", required_argument, NULL, 'o'},
	{"repeat", required_argument, NULL, 'R'},
	{"vary", required_argument, NULL, 'v'},
	{"seeds", required_argument, NULL, 'e'},
	{"jobs", required_argument, NULL, 'J'},
	{"threads", required_argument, NULL, 'T'},
	{"details", no_argument, NULL, 'k'},
	{"metric", required_argument, NULL, 'm'},
	{"step", required_argument, NULL, 'A'},
	{"x", required_argument, NULL, 'X'},
	{"y", required_argument, NULL, 'Y'},
	{"log", required_argument, NULL, 'L'},
	{"validation", no_argument, NULL, 'W'},
	{"from", required_argument, NULL, 'F'},
	{"bf16", no_argument, NULL, 'B'},
	{"resume", no_argument, NULL, 'U'},
	{"keep", no_argument, NULL, 'K'},
	{"budget", required_argument, NULL, 'b'},
	{"explain", no_argument, NULL, 'x'},
	{"pareto", no_argument, NULL, 'O'},
	{"confirm", required_argument, NULL, 'C'},
	{"help", no_argument, NULL, 'H'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

static const char *const option_help[] = {
	['s'] = "  --set KEY.PATH=VALUE  replace a value of the scenario; may be given several times\n",
	['S'] = "  --seed N              replace the scenario's seed\n",
	['d'] = "  --db FILE             database (default skep.db)\n",
	['j'] = "  --json                one JSON object on stdout, nothing else\n",
	['q'] = "  -q, --quiet           nothing on stderr but errors\n",
	['n'] = "  -n, --ranks RANKS     processes to start: the scenario's workers + 1 for the directory\n",
	['p'] = "  --pace                an operation takes at least the time that the GPU profile gives\n",
	['h'] = "  --shape               a message takes the time that the topology gives (one host only)\n",
	['D'] = "  --device cpu|cuda     what does the arithmetic (default cpu)\n",
	['P'] = "  --spares N            processes that stand by, each to take the place of a worker whose process "
		"dies; needs\n"
		"                        Open MPI 5 (default: as many as the trace starts anew, none without a "
		"trace)\n",
	['t'] = "  --time-scale X        short for --set cluster.trace.scale=X: 0.01 plays the trace 100 times as "
		"fast\n",
	['r'] = "  --rounds A-B|A|all    timeline: the operations of these rounds, or the whole run in bins of time\n"
		"                        (default: the first rounds; of runs with churn or more than 40 workers all)\n",
	['R'] = "  --repeat N            run each row so often and print the median (default 1)\n",
	['v'] = "  --vary KEY.PATH=A,B   all combinations of these values; may be given several times\n",
	['e'] = "  --seeds A..B          every combination with each of these seeds, also 1,2,5 (default: the "
		"scenario's)\n",
	['J'] = "  --jobs N              processes (default: one per core, under mpirun one per rank)\n",
	['T'] = "  --threads N           that do the arithmetic of maths: real, with the same result (default: one per "
		"core)\n",
	['m'] = "  --metric KEY          sweep: the figure to draw, a key of --json (default "
		"throughput_samples_per_s);\n"
		"                        pareto: time_s or time_to_target_s\n",
	['A'] = "  --step N              the checkpoint of this step, as results count them (default: the newest)\n",
	['X'] = "  --x AXIS              accuracy: time, steps, tokens, bytes or sync-bytes (default time)\n",
	['Y'] = "  --y FIGURE            accuracy: loss or perplexity (default loss)\n",
	['L'] = "  --log AXES            accuracy: none, x, y or xy (default: what spans more than a factor of 10, of y 5)\n",
	['W'] = "  --validation          accuracy: the loss of validations, not of training\n",
	['F'] = "  --from ROUND          leave out the rounds before this one (default: the warm-up and the first 5 %)\n",
	['b'] = "  --budget TIME         as in 2 s: half for searching, half for simulating; the result then depends on the "
		"machine\n"
		"                        (default: 20000 evaluations a search, and the result on the seed alone)\n",
	['x'] = "  --explain             also print the chosen allocation stage by stage, and what moves over which links\n",
	['O'] = "  --pareto              also print which settings nothing beats in both time and cost\n",
	['C'] = "  --confirm N           then simulate the plan and SWARM's random start to their ends with N seeds that the "
		"plan\n"
		"                        has not seen, and print means, their difference and ratio with intervals of 95 %\n",
	['B'] = "  --bf16                numbers of 16 bits, rounded\n",
	['U'] = "  --resume              go on with the newest states in the folder of checkpoint.to, which an earlier run has "
		"kept\n",
	['K'] = "  --keep                write states into the folder of checkpoint.to, as `skep run` does\n",
	['k'] = "  --details             keep of each run what `skep sim` keeps: all operations and notes\n",
};

/* What -o writes, by command. */
static const struct {
	const char *command, *help;
} output_help[] = {
	{"plan", "  -o, --output FILE     the best as a scenario, for check, sim and run (default: none is written)\n"},
	{"export", "  -o, --output FOLDER   for config.json and model.safetensors\n"},
	{"fit", "  -o, --output FILE     the law, as train.law.file takes it (default: none is written)\n"},
	{"plot", "  -o, --output FILE     the picture: .png, .svg or .pdf\n"},
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool parse_run(const char *text, int64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return *text != '\0' && *end == '\0' && errno == 0 && *ret > 0;
}

bool skep_arguments_runs(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count)
{
	*ret_count = arguments->positionals - first;
	for (uint32_t i = 0; i < *ret_count; i++) {
		if (parse_run(arguments->positional[first + i], &ret[i]))
			continue;
		fprintf(stderr, "skep: %s is not the number of a run; `skep compare` and `skep sim` print them\n",
			arguments->positional[first + i]);
		return false;
	}
	return true;
}

/* 7, or 3..14 for all of these. */
static bool parse_range(const char *text, int64_t *ret_first, int64_t *ret_last)
{
	char first[32];
	const char *dots = strstr(text, "..");
	if (!dots)
		return parse_run(text, ret_first) && ((*ret_last = *ret_first), true);
	if (dots - text >= (ptrdiff_t)sizeof first)
		return false;
	snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
	return parse_run(first, ret_first) && parse_run(dots + 2, ret_last) && *ret_first <= *ret_last;
}

bool skep_arguments_run_ranges(const struct arguments *arguments, uint32_t first, int64_t *ret, uint32_t *ret_count)
{
	*ret_count = 0;
	for (uint32_t i = first; i < arguments->positionals; i++) {
		int64_t from, to;
		if (!parse_range(arguments->positional[i], &from, &to)) {
			fprintf(stderr,
				"skep: %s is not the number of a run, or two of them as in 3..14; `skep sim` and `skep "
				"run` print them\n",
				arguments->positional[i]);
			return false;
		}
		if (to - from >= RUNS_MAX - (int64_t)*ret_count) {
			fprintf(stderr, "skep: at most %d runs\n", RUNS_MAX);
			return false;
		}
		while (from <= to)
			ret[(*ret_count)++] = from++;
	}
	return true;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *ret <= most;
}

/* all, A or A-B */
static bool parse_rounds(const char *text, struct skep_plot_rounds *ret)
{
	char *end;
	*ret = (struct skep_plot_rounds){.all = strcmp(text, "all") == 0};
	if (ret->all)
		return true;
	errno = 0;
	unsigned long long first = strtoull(text, &end, 10), last = first;
	const char *second = end + 1;
	bool good =
		text[0] >= '0' && text[0] <= '9' && (*end == '\0' || (*end == '-' && *second >= '0' && *second <= '9'));
	if (good && *end == '-')
		last = strtoull(second, &end, 10);
	ret->first = (uint32_t)first;
	ret->last = (uint32_t)last;
	return good && *end == '\0' && errno == 0 && first <= last && last < UINT32_MAX;
}

static enum status bad_value(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "skep: %s %s: expected %s\n", option, value, expected);
	return STATUS_BAD_INPUT;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static enum status take_plan_option(struct arguments *a, int letter)
{
	const char *expected;
	uint64_t number;
	if (letter == 'x')
		a->explain = true;
	else if (letter == 'O')
		a->pareto = true;
	else if (letter == 'C' && parse_number(optarg, PLAN_CONFIRM_SEEDS_MOST, &number) && number >= CONFIRM_MIN)
		a->confirm = (uint32_t)number;
	else if (letter == 'C')
		return bad_value("--confirm", optarg, "a number of seeds, from 2 to 1000");
	else if (!skep_quantity_parse(optarg, SKEP_TIME, &a->budget_s, &expected) || !(a->budget_s >= 1e-3) ||
		 a->budget_s > 86400)
		return bad_value("--budget", optarg, "a time with its unit, from 1 ms to 1 d, as in '2 s'");
	return STATUS_DONE;
}

static enum status take_export_option(struct arguments *a, int letter)
{
	uint64_t number;
	if (strchr("bxOC", letter))
		return take_plan_option(a, letter);
	if (letter == 'B')
		a->bf16 = true;
	else if (!parse_number(optarg, UINT32_MAX, &number) || number == 0)
		return bad_value("--step", optarg, "the number of a step, from 1");
	else
		a->step = (uint32_t)number;
	return STATUS_DONE;
}

/* What the words may be the picture says. */
static enum status take_axis(struct arguments *a, int letter)
{
	a->has_axes = true;
	if (letter == 'W')
		a->axes.validation = true;
	else
		*(letter == 'X' ? &a->axes.x : letter == 'Y' ? &a->axes.y : &a->axes.log) = optarg;
	return STATUS_DONE;
}

static enum status take_fit_option(struct arguments *a, int letter)
{
	uint64_t number;
	if (strchr("XYLW", letter))
		return take_axis(a, letter);
	if (letter != 'F')
		return take_export_option(a, letter);
	if (!parse_number(optarg, UINT32_MAX - 1, &number))
		return bad_value("--from", optarg, "the number of a round, from 0");
	a->has_from = true;
	a->from = (uint32_t)number;
	return STATUS_DONE;
}

static enum status take_sweep_option(struct arguments *a, int letter)
{
	uint64_t number;
	switch (letter) {
	case 'v':
		if (a->varies == VARIES_MAX)
			return bad_value("--vary", optarg, "at most 64 of them");
		a->vary[a->varies++] = optarg;
		break;
	case 'e':
		a->seeds = optarg;
		break;
	case 'J':
		if (!parse_number(optarg, 4096, &number) || number == 0)
			return bad_value("--jobs", optarg, "a number of processes, from 1 to 4096");
		a->jobs = (uint32_t)number;
		break;
	case 'm':
		a->metric = optarg;
		break;
	case 'k':
		a->details = true;
		break;
	default:
		return take_fit_option(a, letter);
	}
	return STATUS_DONE;
}

/* Those without a value. */
static enum status take_switch(struct arguments *a, int letter)
{
	switch (letter) {
	case 'j':
		a->json = true;
		break;
	case 'q':
		a->quiet = true;
		break;
	case 'p':
		a->exec.pace = true;
		break;
	case 'h':
		a->exec.shape = true;
		break;
	case 'U':
		a->resume = true;
		break;
	case 'K':
		a->keep = true;
		break;
	default:
		return take_sweep_option(a, letter);
	}
	return STATUS_DONE;
}

static enum status take_option(struct arguments *a, int letter)
{
	uint64_t number;
	switch (letter) {
	case 's':
		if (a->scenario.sets == SETS_MAX)
			return bad_value("--set", optarg, "at most 64 of them");
		a->set[a->scenario.sets++] = optarg;
		break;
	case 'S':
		if (!parse_number(optarg, INT64_MAX, &a->scenario.seed))
			return bad_value("--seed", optarg, "a whole number from 0 to 9223372036854775807");
		a->scenario.has_seed = true;
		break;
	case 'n':
		if (!parse_number(optarg, 1u << 20, &number) || number == 0)
			return bad_value("-n", optarg, "a number of processes, from 1");
		a->ranks = (uint32_t)number;
		break;
	case 'D':
		if (strcmp(optarg, "cpu") != 0 && strcmp(optarg, "cuda") != 0)
			return bad_value("--device", optarg, "cpu or cuda");
		a->exec.device = strcmp(optarg, "cuda") == 0 ? SKEP_DEVICE_CUDA : SKEP_DEVICE_CPU;
		break;
	case 'd':
		a->db = optarg;
		a->has_db = true;
		break;
	case 'r':
		if (!parse_rounds(optarg, &a->rounds))
			return bad_value("--rounds", optarg, "all, a round or two of them as in 10-12, from 0");
		a->has_rounds = true;
		break;
	case 'o':
		a->output = optarg;
		break;
	case 'P':
		if (!parse_number(optarg, SKEP_EXEC_SPARES_MAX, &number))
			return bad_value("--spares", optarg, "a number of processes, from 0");
		a->exec.has_spares = true;
		a->exec.spares = (uint32_t)number;
		break;
	case 'T':
		if (!parse_number(optarg, 1024, &number) || number == 0)
			return bad_value("--threads", optarg, "a number from 1 to 1024");
		a->threads = (uint32_t)number;
		break;
	case 'R':
		if (!parse_number(optarg, 1000, &number) || number == 0)
			return bad_value("--repeat", optarg, "a number from 1 to 1000");
		a->repeat = (uint32_t)number;
		break;
	case 't':
		if (a->scenario.sets == SETS_MAX || strlen(optarg) > 30)
			return bad_value("--time-scale", optarg, "a number above 0");
		snprintf(a->time_scale, sizeof a->time_scale, "cluster.trace.scale=%s", optarg);
		a->set[a->scenario.sets++] = a->time_scale;
		break;
	default:
		return take_switch(a, letter);
	}
	return STATUS_DONE;
}

void skep_arguments_print_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: skep %s %s [OPTIONS]\n\n%s\n", command->name, command->operands, command->help);
	for (const char *letter = command->options; *letter; letter++) {
		if (*letter != 'o') {
			fputs(option_help[(unsigned char)*letter], out);
			continue;
		}
		for (size_t i = 0; i < sizeof output_help / sizeof *output_help; i++)
			if (strcmp(output_help[i].command, command->name) == 0)
				fputs(output_help[i].help, out);
	}
}

enum status skep_arguments_read(
	const struct command *command, int argc, char **argv, struct arguments *ret, bool *ret_help)
{
	int letter, index = -1;
	*ret = (struct arguments){.db = "skep.db", .repeat = 1, .argv = argv};
	ret->scenario.set = ret->set;
	while ((letter = getopt_long(argc, argv, "n:o:qh", long_options, &index)) != -1) {
		if (letter == 'H' || (letter == 'h' && index < 0)) { /* the letter of --shape is no option */
			*ret_help = true;
			return STATUS_DONE;
		}
		if (letter == '?' || !strchr(command->options, letter)) {
			const char given[] = {(char)letter, 0};
			if (letter != '?') /* getopt has said what it is */
				fprintf(stderr, "skep: %s does not take the option -%s%s\n", command->name,
					index < 0 ? "" : "-", index < 0 ? given : long_options[index].name);
			skep_arguments_print_help(command, stderr);
			return STATUS_BAD_INPUT;
		}
		if (take_option(ret, letter) != STATUS_DONE)
			return STATUS_BAD_INPUT;
		index = -1;
	}
	ret->positional = argv + optind;
	ret->positionals = (uint32_t)(argc - optind);
	if (ret->positionals >= command->least && ret->positionals <= command->most)
		return STATUS_DONE;
	fprintf(stderr, "skep: %s takes %s", command->name, command->operands);
	if (ret->positionals > command->most)
		fprintf(stderr, "; '%s' is one word too many", ret->positional[command->most]);
	fprintf(stderr, "; see skep %s --help\n", command->name);
	return STATUS_BAD_INPUT;
}

bool skep_arguments_scenario(const struct arguments *arguments, struct skep_scenario *ret)
{
	struct skep_diag diag = {0};
	struct skep_scenario_options options = arguments->scenario;
	char text[2048];
	options.details = stderr;
	if (skep_planning_read(arguments->positional[0], &options, ret, &diag))
		return true;
	skep_diag_print(&diag, text, sizeof text);
	fputs(text, stderr);
	return false;
}
