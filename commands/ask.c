/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.c - `skep ask`: a question without a file; all of it is done in asking/.
 */
#include "asking/ask.h"

#include "base/process/stop.h"
#include "base/process/thread_pool.h"
#include "commands/arguments.h"
#include "commands/commands.h"

struct ask_arguments {
	struct arguments common;
	struct skep_ask_request ask;
	bool cheapest;
	int pipeline; /* 0: free */
};

static const char *const pipelines[] = {"any", "swarm", "gpipe", "1f1b", NULL};

static enum status run(struct skep_command_line *line)
{
	struct ask_arguments a = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (!a.ask.gpus || !a.ask.model) {
		fprintf(stderr,
			"skep: ask: %s is missing: skep ask --gpus 8xl4@us-central1 --model gpt2-medium --tokens 1B\n",
			a.ask.gpus ? "--model" : "--gpus");
		return STATUS_BAD_INPUT;
	}
	if (a.ask.trace && !a.ask.spot) {
		fputs("skep: ask: --trace: machines are taken away with --spot alone: give that as well\n", stderr);
		return STATUS_BAD_INPUT;
	}
	a.ask.pipeline = a.pipeline > 0 ? pipelines[a.pipeline] : NULL;
	a.ask.objective = a.cheapest ? SKEP_ASK_MONEY : SKEP_ASK_TIME;
	a.ask.seed = a.common.scenario.has_seed ? a.common.scenario.seed : 1;
	a.ask.folder = a.common.output;
	a.ask.combinations = a.ask.combinations > 0 ? a.ask.combinations : SKEP_ASK_COMBINATIONS;
	a.ask.force = a.common.force;
	a.ask.processes = a.common.jobs > 0 ? a.common.jobs : skep_thread_pool_cores();
	a.ask.json = a.common.json;
	a.ask.quiet = a.common.quiet;
	skep_stop_listen();
	return skep_ask(&a.ask);
}

#define AT(member) offsetof(struct ask_arguments, ask.member)

static const struct skep_option question_rows[] = {
	{"gpus", 0, SKEP_OPTION_TEXT, AT(gpus), "LIST",
		.help = "COUNTxGPU[:SPEED][@SITE], with commas between; SITE: a region of a cloud, home, home-REGION, "
			"or a name of --site; SPEED: in times of that GPU",
		.usual = "at one place, here", .example = "8xl4@us-central1,8xt4@europe-west4"},
	{"model", 0, SKEP_OPTION_TEXT, AT(model), "MODEL",
		.help = "gpt2-medium, llama-2-7b ..., a number of parameters, config.json of Hugging Face, "
			"or a model file",
		.example = "350M"},
	{"tokens", 0, SKEP_OPTION_TEXT, AT(tokens), "N",
		.help = "tokens of synchronous training whose loss is to be reached", .usual = "20 for each parameter",
		.example = "1B"},
	{"spot", 0, SKEP_OPTION_FLAG, AT(spot), .help = "machines that are taken away and come back, at their price"},
	{"trace", 0, SKEP_OPTION_PATH, AT(trace), "FILE",
		.help = "with --spot: a recording whose lifetimes machines have",
		.usual = "topologies/traces/gcp-2020-03.csv with a region of Google Cloud, else aws-p3.csv"},
	{"cheapest", 0, SKEP_OPTION_FLAG, offsetof(struct ask_arguments, cheapest), .help = "look for the least money",
		.usual = "for the least time"},
};

static const struct skep_option place_rows[] = {
	{"link", 0, SKEP_OPTION_TEXTS, AT(link), "A:B=RATE[,TIME]",
		.help = "the line between two sites, shared by their machines, and its latency one way; "
			"repeated for more",
		.usual = "as measured between regions of clouds", .example = "us-central1:europe-west4=200Mbit/s",
		.given_at = AT(links), .most = SKEP_ASK_GIVEN_MAX},
	{"site", 0, SKEP_OPTION_TEXTS, AT(site), "SITE=RATE[,TIME]",
		.help = "the network inside a site; repeated for more", .example = "lab=10Gbit/s",
		.given_at = AT(sites), .most = SKEP_ASK_GIVEN_MAX},
	{"line", 0, SKEP_OPTION_TEXT, AT(line), "DOWN[,UP]", .help = "of each machine at home",
		.usual = "the mean of its region", .example = "100Mbit/s"},
	{"price", 0, SKEP_OPTION_TEXTS, AT(price), "GPU[@SITE]=PRICE", .help = "of one machine; repeated for more",
		.usual = "as published", .example = "l4=0.25USD/h", .given_at = AT(prices), .most = SKEP_ASK_GIVEN_MAX},
	{"what-if", 0, SKEP_OPTION_TEXTS, AT(what_if), "A:B=RATE[,TIME]",
		.help = "what this line, or with A=RATE the inside of a site, would bring; repeated for more",
		.example = "us-central1:europe-west4=10Gbit/s", .given_at = AT(what_ifs), .most = SKEP_ASK_GIVEN_MAX},
};

static const struct skep_option settings_rows[] = {
	{"stages", 0, SKEP_OPTION_U32, AT(stages), "N", .help = "pieces that the model is cut into", .usual = "chosen",
		.least = 1, .most = 256},
	{"pipeline", 0, SKEP_OPTION_CHOICE, offsetof(struct ask_arguments, pipeline), "NAME",
		.help = "how microbatches go through the stages", .usual = "chosen", .choice = pipelines},
	{"every", 0, SKEP_OPTION_U32, AT(every), "H", .help = "inner steps of DiLoCo between two sums; 1: none",
		.usual = "chosen", .least = 1, .most = 100000},
	{"batch", 0, SKEP_OPTION_TEXT, AT(batch), "N", .help = "tokens of a step",
		.usual = "as of GPT-3's models of this size", .example = "0.5M"},
	{"combinations", 0, SKEP_OPTION_U32, AT(combinations), "N",
		.help = "of settings, that the planner looks at; with fewer it also searches less for each",
		.usual = "128", .least = 1, .most = 512},
	{"seed", 0, SKEP_OPTION_U64, offsetof(struct ask_arguments, common.scenario.seed), "N",
		.help = "of all that is drawn", .usual = "1",
		.given_at = offsetof(struct ask_arguments, common.scenario.has_seed), .most = INT64_MAX - 5000},
};

static const struct skep_option output_rows[] = {
	{"output", 'o', SKEP_OPTION_PATH, offsetof(struct ask_arguments, common.output), "FOLDER",
		.help = "where the scenario, its topology, model and law are written", .usual = "ask-MODEL"},
};

static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Question", question_rows),
	SKEP_OWN_OPTIONS("Places", place_rows), SKEP_OWN_OPTIONS("Settings", settings_rows),
	{"Settings", skep_jobs_row, 1, 0}, SKEP_OWN_OPTIONS("Output", output_rows), SKEP_FORCE_OPTION,
	SKEP_OUTPUT_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep ask --gpus 8xl4@us-central1,8xt4@europe-west4 --spot --model 350M",
		"two continents: who serves what, how long, how much?"},
	{"skep ask --gpus 8xrtx-3090@home --line 100Mbit/s --model 150M", "volunteers: which H?"},
	{"skep ask --gpus 3xl4,1xl4:0.5 --stages 4 --model 350M", "one GPU is half as fast: GPipe or a swarm?"},
	{"skep ask --gpus 8xl4 --site here=1Gbit/s --what-if here=10Gbit/s --model 350M",
		"a network of 1 Gbit/s: what would 10 Gbit/s bring?"},
	{0},
};

const struct skep_command skep_command_ask = {
	.name = "ask",
	.operands = "--gpus LIST --model MODEL",
	.summary = "a question without a file: who serves what, how long, how much",
	.text = "Answers on one page: who serves what with which settings and why, hours and USD with an interval, what "
		"holds it back and what would help most, what was assumed and what to measure. Writes the scenario, "
		"from which check, sim, run and serve go on.\n"
		"Links between regions of clouds, homes, prices, GPUs and recorded losses of machines are data of skep; "
		"losses fall by published laws.",
	.group = groups,
	.example = examples,
	.run = run,
};
