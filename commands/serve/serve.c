/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - `skep serve`: one scenario for real, on machines that join (join.c) and leave. This process is the directory and
 * records the run.
 */
#include <assert.h>
#include <dirent.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/store/store.h"
#include "analysis/summary/summary.h"
#include "base/files/outputs.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/record_run.h"
#include "commands/resume.h"
#include "exec/gathering/gathering.h"
#include "exec/replicas/replicas.h"
#include "exec/serve/keys.h"
#include "exec/serve/serve.h"
#include "exec/tcp/endpoint.h"
#include "planning/problem/resolve.h"
#include "scenarios/resume/resume.h"
#include "version.h"

#define ELECTION_LEAST_S 1.0 /* without a leader for a fifth of --silence, replicas choose another one, ... */
#define ELECTION_MOST_S 5.0  /* ... within these bounds */

struct serve_arguments {
	struct arguments common;
	const char *listen;
	char host[256]; /* of --listen; "": all addresses of this machine */
	char keys[SKEP_PATH_BYTES];
	enum skep_resuming resuming;
	const char *replicas;      /* NULL: none */
	const char *scale_command; /* NULL: no machines are asked for */
	uint32_t replica;
	uint64_t agreed_run; /* with replicas: the one that they have agreed on last; 0: none yet */
	struct skep_serve_options serve;
};

struct serving {
	const struct serve_arguments *arguments;
	const struct skep_manifest *manifest;
};

static bool run_with_scaler(const struct serving *s, const struct skep_scenario *scenario,
	struct skep_serve_options *options, const struct skep_recorder *recorder, struct skep_exec_result *ret,
	struct skep_diag *reterr)
{
	const struct skep_scaler_setup setup = {
		.scenario = scenario, .command = s->arguments->scale_command, .quiet = options->quiet};
	struct skep_recorder_pair pair = {.first = *recorder};
	if (setup.command == NULL)
		return skep_serve_run(scenario, s->manifest, options, recorder, ret, reterr);
	options->scaler = skep_scaler_create(&setup, reterr);
	if (options->scaler == NULL)
		return false;
	pair.second = skep_scaler_recorder(options->scaler);
	const struct skep_recorder both = skep_recorder_both(&pair);
	bool fine = skep_serve_run(scenario, s->manifest, options, &both, ret, reterr);
	skep_scaler_destroy(options->scaler, fine && ret->outcome == SKEP_DONE && ret->signal == 0);
	return fine;
}

static bool run_served(void *context, const struct skep_scenario *scenario, const struct skep_recorder *recorder,
	struct skep_exec_result *ret, struct skep_diag *reterr)
{
	const struct serving *s = context;
	struct skep_serve_options options = s->arguments->serve;
	struct skep_recorder_pair pair = {.first = *recorder};
	options.status = skep_status_create(scenario);
	if (options.status == NULL)
		return skep_fail(reterr, "no memory for what the run is asked");
	pair.second = skep_status_recorder(options.status);
	const struct skep_recorder both = skep_recorder_both(&pair);
	bool fine = run_with_scaler(s, scenario, &options, &both, ret, reterr);
	skep_status_destroy(options.status);
	return fine;
}

/* With the allocation that was searched for, if it was; *ret_allocation is to be freed. */
static bool read_scenario(struct serve_arguments *a, struct skep_scenario_options *options, struct skep_scenario *ret,
	char **ret_allocation, struct skep_diag *reterr)
{
	*ret_allocation = NULL;
	if (!skep_scenario_read(a->common.positional[0], options, ret, reterr))
		return false;
	if (!ret->unresolved)
		return true;
	*ret_allocation = skep_resolve_search(ret, options, reterr);
	a->serve.allocation = *ret_allocation;
	return *ret_allocation != NULL && skep_resolve_with(ret, options, *ret_allocation, reterr);
}

/* Where the authority and the tickets of a run of this job are kept: beside its database. */
static bool name_keys(struct serve_arguments *a, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	int length = snprintf(a->keys, sizeof a->keys, "%s-%016" PRIx64 ".serve", a->common.db, scenario->job);
	a->serve.keys = a->keys;
	return length < (int)sizeof a->keys || skep_fail(reterr, "the name of the database is too long");
}

/* Of a run of another job in the same database: a scenario that has changed since, or other values of --set. */
static bool find_other_keys(const struct serve_arguments *a, char *ret, size_t room)
{
	char pattern[sizeof a->keys];
	glob_t found = {0};
	int length = snprintf(pattern, sizeof pattern, "%s-????????????????.serve", a->common.db);
	bool any = length < (int)sizeof pattern && glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
	if (any)
		snprintf(ret, room, "%s", found.gl_pathv[0]);
	globfree(&found);
	return any;
}

static bool find_keys(struct serve_arguments *a, struct skep_diag *reterr)
{
	bool there = access(a->keys, F_OK) == 0;
	a->serve.takes_keys = a->resuming != SKEP_ANEW && there;
	if (a->resuming == SKEP_ANEW && a->serve.new_ticket)
		return skep_fail(reterr, "--new-ticket goes with --resume: another run has a ticket of its own anyway");
	char other[sizeof a->keys];
	if (a->resuming == SKEP_RESUMES && !there && find_other_keys(a, other, sizeof other)) {
		skep_diag_set(reterr, a->keys, 0, 0, NULL,
			"is not there, but %.400s is: the run that was lost had another scenario, or another --set or "
			"--seed; put it as it was to go on with that run, or --resume=auto begins one, with a ticket of "
			"its own",
			other);
		return false;
	}
	if (a->resuming == SKEP_RESUMES && !there) {
		skep_diag_set(reterr, a->keys, 0, 0, NULL,
			"is not there: no run of this scenario that %s records was lost; --resume=auto begins one, with a "
			"ticket of its own",
			a->common.db);
		return false;
	}
	if (a->resuming == SKEP_ANEW && there && !a->common.quiet)
		fprintf(stderr,
			"skep: a run of this scenario has not ended (--resume goes on with it): this one is another, and "
			"its ticket replaces the other one's\n");
	return !a->serve.takes_keys || skep_keys_are_there(a->keys, reterr);
}

/* The line for those who join names the address that --listen does. */
static void name_host(struct serve_arguments *a)
{
	const char *port = strrchr(a->listen, ':');
	size_t length = port != NULL && strchr(port, ']') == NULL ? (size_t)(port - a->listen) : strlen(a->listen);
	snprintf(a->host, sizeof a->host, "%.*s", (int)length, a->listen);
	bool all = a->host[0] == '\0' || strcmp(a->host, "0.0.0.0") == 0 || strcmp(a->host, "[::]") == 0;
	a->serve.host = all ? NULL : a->host;
}

/* Machines are asked for by a command, and a command needs to be told how many. */
static bool check_scale(struct serve_arguments *a, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	const char *wrong = NULL;
	if (scenario->plan.scale == NULL && a->scale_command == NULL)
		return true;
	if (scenario->plan.scale == NULL)
		wrong = "--scale-command: nothing says how many machines are wanted: add `cluster.scale` to the scenario";
	else if (a->scale_command == NULL)
		wrong = "cluster.scale: --scale-command says what asks for machines: give it, or leave cluster.scale out (--set "
			"cluster.scale=null)";
	else if (scenario->has_trace)
		wrong = "cluster.trace: which machines may be had is for --scale-command to find out: leave the trace out (--set "
			"cluster.trace=null)";
	else if (a->serve.least > 0)
		wrong = "--at-least: cluster.scale.start says how many the run begins with: leave out either";
	a->serve.least = scenario->churn.presents;
	if (wrong != NULL)
		skep_diag_set(reterr, scenario->path, 0, 0, NULL, "%s", wrong);
	return wrong == NULL;
}

static bool check_least(const struct serve_arguments *a, const struct skep_scenario *scenario, struct skep_diag *reterr)
{
	uint32_t least = a->serve.least, workers = scenario->plan.workers;
	if (least > workers)
		return skep_fail(reterr, "--at-least %" PRIu32 ": the scenario has %" PRIu32 " worker%s", least,
			workers, workers == 1 ? "" : "s");
	if (least > 0 && least < scenario->plan.stages)
		return skep_fail(reterr,
			"--at-least %" PRIu32 ": the model has %" PRIu32 " stages, and each needs a worker", least,
			scenario->plan.stages);
	if (least > 0 && scenario->has_trace)
		return skep_fail(reterr, "--at-least: the scenario's trace says which workers are there at the start");
	if (least > 0 && scenario->plan.sharded)
		return skep_fail(reterr,
			"--at-least: with sync.zero each worker has a part of the optimizer's state, so all begin together");
	if (least > 0 && skep_plan_has_candidates(&scenario->plan))
		return skep_fail(reterr, "--at-least: a trial of candidates begins with all workers");
	return true;
}

/* What machines have made since the newest states that are kept here is asked for, unless these are known to be of the last
 * round that was closed. *ret_number: a signal came meanwhile. False: the reason is in reterr. */
static bool gather(
	struct serve_arguments *a, const struct skep_scenario *scenario, int *ret_number, struct skep_diag *reterr)
{
	struct skep_resume from = {0};
	struct skep_diag why = {0};
	uint32_t rounds = 0;
	uint64_t run = a->serve.lease != NULL ? a->agreed_run : skep_gathering_run(&a->serve);
	bool known = run > 0 && skep_store_rounds_closed(a->common.db, run, &rounds);
	bool refused = !skep_resume_find(scenario, &from, &why) && !from.nothing; /* as the caller will find and say */
	bool newest = (known && from.version >= rounds) || skep_resume_is_over(scenario, &from);
	if (run == 0 || refused || newest || !skep_plan_leaves_states(&scenario->plan))
		return true;
	struct skep_gathering *gathering = skep_gathering_open(scenario, &a->serve, run, reterr);
	if (gathering == NULL)
		return false;
	*ret_number = skep_gathering_wait(gathering, rounds);
	a->serve.announced = true;
	skep_gathering_close(gathering);
	return true;
}

/* The run was lost behind its last step, and those that stay do not know it. */
static enum status say_over(const struct serve_arguments *a, const struct skep_scenario *scenario)
{
	struct skep_diag diag = {0};
	int number = 0;
	fflush(stdout);
	if (a->serve.takes_keys) {
		struct skep_gathering *gathering = skep_gathering_open(scenario, &a->serve, 0, &diag);
		number = gathering != NULL ? skep_gathering_tell_over(gathering) : 0;
		skep_gathering_close(gathering);
	}
	if (diag.set)
		return skep_report_diag(STATUS_FAILED, &diag);
	if (number != 0)
		return STATUS_SIGNAL + (enum status)number;
	unlink(a->keys);
	return STATUS_DONE;
}

/* With which of the states that are kept, or that machines bring, the run goes on. False: it does not, *ret says why. */
static bool take_up(struct serve_arguments *a, struct skep_scenario *scenario, enum status *ret)
{
	struct skep_diag diag = {0};
	int number = 0;
	bool alone = a->replicas == NULL;
	if (a->resuming != SKEP_ANEW && !gather(a, scenario, &number, &diag))
		*ret = skep_report_diag(STATUS_FAILED, &diag);
	else if (number != 0)
		*ret = STATUS_SIGNAL + (enum status)number;
	else if (skep_take_up_or_begin(&a->common, a->resuming, scenario, ret))
		return true;
	else if (*ret == STATUS_DONE && alone)
		*ret = say_over(a, scenario);
	return false;
}

static enum status record(
	struct serve_arguments *a, const struct skep_manifest *manifest, struct skep_scenario *scenario)
{
	enum status over;
	struct serving serving = {a, manifest};
	struct skep_exec_result result = {0};
	const struct record_run how = {
		.device = a->serve.device, .pace = a->serve.pace, .run = run_served, .context = &serving};
	skep_keep_as_of_now(scenario);
	if (scenario->kept_as <= a->agreed_run)
		scenario->kept_as = a->agreed_run + 1; /* the clock of the machine that served before was ahead */
	if (!take_up(a, scenario, &over))
		return over;
	skep_say_beforehand(scenario, a->common.quiet);
	skep_say_unscaled(scenario, a->serve.pace || a->common.quiet);
	enum status status = skep_record_run(&a->common, &how, scenario, &result);
	if (status == STATUS_DONE && result.outcome == SKEP_DONE) /* after the database has it */
		unlink(a->keys);
	else if (result.signal != 0 && !a->common.quiet && a->replicas == NULL)
		fprintf(stderr,
			"skep: %s has the keys and the ticket of this run, so that `skep serve --resume` goes on with it and its "
			"machines come back; without that remove it\n",
			a->keys);
	return result.signal != 0 ? STATUS_SIGNAL + (enum status)result.signal : status;
}

/* ---- with replicas -------------------------------------------------------------------------------------------------- */

struct replica {
	const struct serve_arguments *arguments;
	const struct skep_manifest *manifest;
	struct skep_scenario *scenario;
	uint64_t election_ns;
};

/* In a process of its own: this replica leads, and goes on with what it has, or begins. */
static int lead(void *context, int fd, uint64_t agreed_run)
{
	const struct replica *replica = context;
	struct serve_arguments a = *replica->arguments;
	struct skep_diag diag = {0};
	a.agreed_run = agreed_run;
	a.resuming = SKEP_RESUMES_OR_BEGINS;
	a.serve.lease = skep_lease_open(fd, 2 * replica->election_ns, &diag);
	if (a.serve.lease != NULL)
		a.serve.listener = skep_endpoint_listen(a.listen, &a.serve.port, &diag);
	if (diag.set)
		return (int)skep_report_diag(STATUS_BAD_INPUT, &diag);
	enum status status = record(&a, replica->manifest, replica->scenario);
	skep_lease_close(a.serve.lease);
	return (int)status;
}

/* The address of this replica, and the key that all of them have. */
static bool prepare_replica(struct serve_arguments *a, const struct skep_scenario *scenario,
	char own[SKEP_ENDPOINT_TEXT], struct skep_diag *reterr)
{
	const char *left = a->replicas;
	uint32_t count = skep_replicas_count(a->replicas, reterr);
	if (count == 0)
		return false;
	if (a->replica == 0 || a->replica > count)
		return skep_fail(reterr,
			"--replica: expected which of the %" PRIu32 " addresses is this machine, from 1", count);
	if (a->resuming != SKEP_ANEW || a->serve.new_ticket || a->serve.admissions > 0)
		return skep_fail(reterr,
			"--replicas: replicas go on by themselves, and admit as many as come: leave out %s",
			a->serve.admissions > 0 ? "--admit"
			: a->serve.new_ticket   ? "--new-ticket"
						: "--resume");
	if (scenario->plan.checkpoint_every == 0) {
		skep_diag_set(reterr, scenario->path, 0, 0, NULL,
			"--replicas: another machine goes on with states that were kept: add `checkpoint: {every: 10, "
			"to: FOLDER}`");
		return false;
	}
	for (uint32_t i = 0; i < a->replica; i++)
		skep_endpoint_next(&left, own);
	a->listen = a->listen != NULL ? a->listen : own;
	a->serve.takes_keys = true;
	if (access(a->keys, F_OK) == 0)
		return skep_keys_are_there(a->keys, reterr);
	if (a->replica > 1) {
		skep_diag_set(reterr, a->keys, 0, 0, NULL,
			"is not there: copy it from where it lies beside the database of replica 1, which makes it "
			"when it is started");
		return false;
	}
	return skep_keys_make(a->keys, reterr);
}

/* What this replica remembers of a run that is over. */
static void forget_run(const char *folder, const char *keys)
{
	char path[SKEP_PATH_BYTES];
	DIR *open = opendir(folder);
	struct dirent *entry;
	while (open != NULL && (entry = readdir(open)) != NULL) {
		if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
			unlink(path); /* no folder, whatever the file system says of types */
	}
	if (open != NULL)
		closedir(open);
	rmdir(folder);
	unlink(keys);
}

static const char *behind_folders(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

/* What all replicas have to have read, [*ret_count]: to be freed. NULL: no memory. */
static struct skep_replica_source *sources_of(const struct skep_manifest *manifest, uint32_t *ret_count)
{
	struct skep_replica_source *source = calloc(manifest->entries + manifest->overrides + 1, sizeof *source);
	static_assert(sizeof source->digest == SKEP_DIGEST_BYTES, "both are SHA-256");
	*ret_count = 0;
	for (uint32_t i = 0; source != NULL && i < manifest->entries; i++) {
		const struct skep_manifest_entry *entry = &manifest->entry[i];
		if (entry->kind != SKEP_MANIFEST_FILE)
			continue;
		struct skep_replica_source *own = &source[(*ret_count)++];
		snprintf(own->name, sizeof own->name, "%s", behind_folders(entry->path));
		own->bytes = entry->bytes;
		memcpy(own->digest, entry->digest, sizeof own->digest);
	}
	for (uint32_t i = 0; source != NULL && i < manifest->overrides; i++) {
		struct skep_replica_source *own = &source[(*ret_count)++];
		own->bytes = strlen(manifest->override[i]);
		snprintf(own->name, sizeof own->name, "--set %s", manifest->override[i]);
		if (!skep_digest_of(manifest->override[i], own->bytes, own->digest)) {
			free(source);
			return NULL;
		}
	}
	return source;
}

static enum status replicate(
	struct serve_arguments *a, const struct skep_manifest *manifest, struct skep_scenario *scenario)
{
	char folder[SKEP_PATH_BYTES];
	struct skep_diag diag = {0};
	double election_s = a->serve.silence_s / 5;
	struct replica replica = {a, manifest, scenario,
		(uint64_t)(1e9 * (election_s < ELECTION_LEAST_S         ? ELECTION_LEAST_S
					 : election_s > ELECTION_MOST_S ? ELECTION_MOST_S
									: election_s))};
	if (snprintf(folder, sizeof folder, "%s-%016" PRIx64 ".replica", a->common.db, scenario->job) >=
		(int)sizeof folder)
		return skep_report_error(STATUS_BAD_INPUT, "the name of the database is too long");
	uint32_t sources;
	struct skep_replica_source *source = sources_of(manifest, &sources);
	if (source == NULL)
		return skep_report_error(STATUS_FAILED, "no memory for the list of files");
	struct skep_replicas_setup setup = {.list = a->replicas,
		.own = a->replica,
		.keys = a->keys,
		.folder = folder,
		.states = skep_scenario_folder(scenario),
		.source = source,
		.stages = skep_plan_parts(&scenario->plan),
		.sources = sources,
		.election_ns = replica.election_ns,
		.quiet = a->common.quiet,
		.serve = lead,
		.context = &replica};
	bool over;
	if (!a->common.quiet)
		fprintf(stderr,
			"skep: replica %" PRIu32 " of %s; %s is the key that each of them needs beside its database\n",
			a->replica, a->replicas, a->keys);
	a->serve.servers = a->replicas;
	int status = skep_replicas_run(&setup, &over, &diag);
	free(source);
	if (over)
		forget_run(folder, a->keys);
	return status < 0 ? skep_report_diag(STATUS_BAD_INPUT, &diag) : (enum status)status;
}

static enum status serve(struct skep_command_line *line)
{
	struct serve_arguments a = {.serve = {.silence_s = SKEP_SILENCE_S, .version = SKEP_VERSION}};
	struct skep_scenario scenario = {0};
	struct skep_manifest manifest = {0};
	struct skep_diag diag = {0};
	enum status status;
	char *allocation, own[SKEP_ENDPOINT_TEXT];
	if (!skep_arguments_read(line, &a.common, &status))
		return status;
	if (a.replica > 0 && a.replicas == NULL)
		return skep_report_error(
			STATUS_BAD_INPUT, "--replica goes with --replicas A,B,C: give both, or neither");
	struct skep_scenario_options options = a.common.scenario;
	options.details = stderr;
	options.real = true;
	options.pace = a.serve.pace;
	a.serve.has_seed = options.has_seed;
	a.serve.quiet = a.common.quiet;
	bool fine = read_scenario(&a, &options, &scenario, &allocation, &diag) && check_least(&a, &scenario, &diag) &&
	            check_scale(&a, &scenario, &diag) && name_keys(&a, &scenario, &diag) &&
	            (a.replicas != NULL ? prepare_replica(&a, &scenario, own, &diag) : find_keys(&a, &diag)) &&
	            skep_manifest_make(&scenario, &options, NULL, NULL, &manifest, &diag);
	a.listen = a.listen != NULL ? a.listen : ":" SKEP_PORT;
	name_host(&a);
	if (fine && a.replicas == NULL)
		a.serve.listener = skep_endpoint_listen(a.listen, &a.serve.port, &diag);
	if (diag.set)
		status = skep_report_diag(STATUS_BAD_INPUT, &diag);
	else
		status = a.replicas != NULL ? replicate(&a, &manifest, &scenario) : record(&a, &manifest, &scenario);
	skep_manifest_finish(&manifest);
	free(allocation);
	skep_scenario_finish(&scenario);
	return status;
}

/* ---- options -------------------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct serve_arguments, serve.member)
static const struct skep_option rows[] = {
	{"listen", 0, SKEP_OPTION_TEXT, offsetof(struct serve_arguments, listen), "ADDR:PORT",
		.help = "where machines that join find this one",
		.usual = ":" SKEP_PORT ", on all addresses; with --replicas: this machine's address in that list"},
	{"admit", 0, SKEP_OPTION_U32, AT(admissions), "N", .help = "how many processes the ticket admits", .least = 1,
		.most = 1 << 20, .usual = "as many as come"},
	{"resume", 0, SKEP_OPTION_FLAG, offsetof(struct serve_arguments, resuming),
		.help = "go on with the states and the ticket of a run that was lost; =auto: begin anew if nothing was kept",
		.choice = skep_resuming_words},
	{"new-ticket", 0, SKEP_OPTION_FLAG, AT(new_ticket),
		.help = "with --resume: revoke the ticket, and print another one"},
	{"at-least", 0, SKEP_OPTION_U32, AT(least), "N",
		.help = "begin with so many workers, one of each stage at least", .least = 1, .most = 1 << 20,
		.usual = "all of the scenario"},
	{"replicas", 0, SKEP_OPTION_TEXT, offsetof(struct serve_arguments, replicas), "A,B,C",
		.help = "addresses of three or five machines that run this command: when the one that serves is lost, "
			"another goes on"},
	{"replica", 0, SKEP_OPTION_U32, offsetof(struct serve_arguments, replica), "N",
		.help = "with --replicas: which address of the list is this machine's, from 1", .least = 1,
		.most = SKEP_REPLICAS_MAX},
	{"scale-command", 0, SKEP_OPTION_TEXT, offsetof(struct serve_arguments, scale_command), "COMMAND",
		.help = "with cluster.scale: is called with SKEP_SCALE_KIND and SKEP_SCALE_WANTED in its environment to have "
			"so many machines join SKEP_SERVER with SKEP_TICKET"},
	{"silence", 0, SKEP_OPTION_QUANTITY, AT(silence_s), "TIME",
		.help = "a machine that is not heard for so long is lost", .dimension = SKEP_TIME,
		.low = SKEP_SILENCE_LEAST_S, .high = SKEP_SILENCE_MOST_S, .usual = "10 s", .example = "30 s",
		.expected = "a time of 1 s to 1 h, such as '30 s'"},
	{"device", 0, SKEP_OPTION_CHOICE, AT(device), "cpu|cuda", .help = "what does the arithmetic",
		.choice = skep_device_words, .usual = "cpu"},
	{"pace", 0, SKEP_OPTION_FLAG, AT(pace), .help = "slow each operation down to the time in the GPU profile"},
};

static const struct skep_option_group groups[] = {
	SKEP_SCENARIO_AND_TRACE_OPTIONS, SKEP_OWN_OPTIONS("Machines", rows), SKEP_DATABASE_OPTIONS, {0}};
static const struct skep_example examples[] = {
	{"skep serve scenarios/diloco.yaml", "prints the line that each machine joins with"},
	{"skep serve scenarios/diloco.yaml --listen 10.0.0.7:9000 --device cuda",
		"on one address, for machines with GPUs"},
	{"skep serve mine.yaml --replicas a:7337,b:7337,c:7337 --replica 1",
		"and on b and c with 2 and 3: any of them may be lost; mine.yaml has a checkpoint"},
	{"skep serve mine.yaml --scale-command ./machines",
		"mine.yaml has cluster.scale: ./machines starts as many as are wanted"},
	{"skep serve mine.yaml --resume", "goes on after this machine was lost, with the same ticket"},
	{0},
};

const struct skep_command skep_command_serve = {
	.name = "serve",
	.operands = "SCENARIO",
	.summary = "train for real on machines that join and leave",
	.text = "Runs the directory of a run and records it; each worker is a process that `skep join` starts on some "
		"machine, over TCP and TLS 1.3. Prints a ticket and the line to paste there; the files that a machine "
		"lacks are sent to it. The run begins when all workers of the scenario, or --at-least N, are there. A "
		"machine that is lost loses its work and nothing else; one that comes later takes its place.",
	.least = 1,
	.most = 1,
	.group = groups,
	.example = examples,
	.run = serve,
};
