/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c - `skep status`: how a run is that another machine serves (serve.c), once, or again and again on a terminal.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/arguments.h"
#include "commands/commands.h"
#include "exec/joining/join.h"
#include "version.h"

struct status_arguments {
	struct arguments common;
	const char *ticket;
	double every_s; /* 0: once */
	bool has_every;
};

/* NAN: null, or not there. */
static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

static const char *text(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	return cJSON_IsString(item) ? item->valuestring : "-";
}

static void print_seconds(double s)
{
	long whole = lround(s);
	if (whole >= 3600)
		printf("%ld h %02ld min", whole / 3600, whole / 60 % 60);
	else if (whole >= 60)
		printf("%ld min %02ld s", whole / 60, whole % 60);
	else
		printf("%ld s", whole);
}

static void print_figures(const cJSON *root)
{
	double left = number(root, "left_s"), loss = number(root, "loss");
	double rate = number(root, "throughput_samples_per_s"), cost = number(root, "cost_usd");
	double validation = number(root, "validation_loss");
	printf("%s: step %.0f of %.0f after ", text(root, "scenario"), number(root, "steps"),
		number(root, "steps_total"));
	print_seconds(number(root, "time_s"));
	if (isfinite(left)) {
		fputs(", ", stdout);
		print_seconds(left);
		fputs(" left", stdout);
	}
	fputs("\n", stdout);
	if (isfinite(loss))
		printf("loss %.4g", loss);
	if (isfinite(validation))
		printf(", on validation data %.4g", validation);
	if (isfinite(rate))
		printf("%s%.4g samples/s", isfinite(loss) ? ", " : "", rate);
	if (isfinite(cost))
		printf("%s%.3f USD so far", isfinite(loss) || isfinite(rate) ? ", " : "", cost);
	double lost = number(root, "preemptions");
	printf("%s%.0f worker%s lost\n", isfinite(loss) || isfinite(rate) || isfinite(cost) ? ", " : "", lost,
		lost == 1 ? "" : "s");
}

static void print_members(const cJSON *root)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "members"), *member;
	uint32_t working = 0;
	cJSON_ArrayForEach(member, list) working += isfinite(number(member, "worker"));
	printf("%u of %.0f workers are here, %d stand by", working, number(root, "workers"),
		cJSON_GetArraySize(list) - (int)working);
	int pairs = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, "relayed"));
	if (pairs > 0)
		printf("; %d pair%s cannot connect to each other: relayed", pairs, pairs == 1 ? "" : "s");
	fputs("\n", stdout);
	if (cJSON_GetArraySize(list) == 0)
		return;
	printf("\n%6s  %-20s %-12s %7s %6s %7s  %s\n", "rank", "host", "gpu", "worker", "stage", "relayed", "for");
	cJSON_ArrayForEach(member, list)
	{
		double worker = number(member, "worker"), stage = number(member, "stage");
		double since = number(member, "since_s");
		printf("%6.0f  %-20.20s %-12.12s ", number(member, "rank"), text(member, "host"), text(member, "gpu"));
		if (!isfinite(worker)) {
			puts("stands by");
			continue;
		}
		printf("%7.0f ", worker);
		if (isfinite(stage))
			printf("%6.0f ", stage);
		else
			printf("%6s ", "-");
		printf("%7.0f  ", number(member, "relayed"));
		if (isfinite(since))
			print_seconds(number(root, "time_s") - since);
		fputs("\n", stdout);
	}
}

static void print_status(const char *json)
{
	cJSON *root = cJSON_Parse(json);
	if (strcmp(text(root, "state"), "waiting") == 0)
		printf("%s: has not begun, workers are missing\n", text(root, "scenario"));
	else
		print_figures(root);
	print_members(root);
	cJSON_Delete(root);
}

/* `again`: it has answered before, so that its silence is the end. */
static enum status ask_once(const struct status_arguments *a, bool screen, bool again)
{
	struct skep_diag error = {0};
	char *json = skep_status_ask(a->common.positional[0], a->ticket, SKEP_VERSION, &error);
	if (json == NULL && again) {
		fputs("skep: the run is over, or its server is gone\n", stderr);
		return STATUS_FAILED;
	}
	if (json == NULL)
		return skep_report_diag(STATUS_FAILED, &error);
	if (screen)
		fputs("\033[H\033[J", stdout);
	if (a->common.json)
		puts(json);
	else
		print_status(json);
	fflush(stdout);
	free(json);
	return STATUS_DONE;
}

/* On a terminal the screen is drawn anew; a signal ends it. */
static enum status run(struct skep_command_line *line)
{
	struct status_arguments a = {0};
	enum status status;
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	struct skep_diag error = {0};
	if (!skep_joining_check(a.common.positional[0], a.ticket, &error))
		return skep_report_diag(STATUS_BAD_INPUT, &error);
	bool screen = a.has_every && isatty(STDOUT_FILENO) && !a.common.json;
	struct timespec pause = {(time_t)a.every_s, (long)(fmod(a.every_s, 1) * 1e9)};
	status = ask_once(&a, screen, false);
	bool answered = status == STATUS_DONE;
	while (a.has_every && status == STATUS_DONE) {
		nanosleep(&pause, NULL);
		status = ask_once(&a, screen, true);
	}
	return answered ? STATUS_DONE : status;
}

static const struct skep_option rows[] = {
	{"ticket", 0, SKEP_OPTION_TEXT, offsetof(struct status_arguments, ticket), "TICKET",
		.help = "what `skep serve` has printed", .environment = "SKEP_TICKET"},
	{"every", 0, SKEP_OPTION_QUANTITY, offsetof(struct status_arguments, every_s), "TIME",
		.help = "ask again and again, until the run is over", .dimension = SKEP_TIME, .low = 0.1, .high = 3600,
		.usual = "once", .example = "2 s", .expected = "a time of 100 ms to 1 h, such as '2 s'",
		.given_at = offsetof(struct status_arguments, has_every)},
	{"json", 0, SKEP_OPTION_FLAG, offsetof(struct status_arguments, common.json),
		.help = "print one JSON object on stdout and nothing else"},
};
static const struct skep_option_group groups[] = {SKEP_OWN_OPTIONS("Status", rows), {0}};
static const struct skep_example examples[] = {
	{"skep status node7:7337 --ticket skep1-... --every 2s", "who is there and how far the run is"},
	{0},
};

const struct skep_command skep_command_status = {
	.name = "status",
	.operands = "HOST:PORT[,HOST:PORT...]",
	.summary = "who takes part in a run that is served, and how far it is",
	.text = "Asks `skep serve` who is there and what each does, how far the run is, what it has learnt, what the "
		"machines have cost so far, and how long it will take. Needs a ticket of the run.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = run,
};
