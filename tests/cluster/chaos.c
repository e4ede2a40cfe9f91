/* SPDX-License-Identifier: Apache-2.0
 *
 * chaos.c - runs swarms under drawn faults and asks the ledger about each.
 *
 *     chaos --seeds 1..100000 --jobs 2      exit status 0 if no promise was broken
 *     chaos --seed 4711 -v                  one seed, with its transcript
 *     chaos --pinned FILE                   the seeds listed in a file
 *     chaos --machine naive --reject 60     the canary: 0 if at least 60 of 100 seeds were rejected
 *     chaos --sabotage KIND --least 300     break a duty: 0 if the ledger named the right invariant for at least so many
 *                                           seeds (default 1), and ends there; with more than there are, it counts them all
 *     --calm: no faults    --fixed: fixed pipelines in every seed    --periodic: periodic sync in every seed,
 *       --async: without waiting    --gossip: in pairs    --trial: candidates in every seed
 *       --void: rounds that lose a worker are void    --wait: all wait for another, wherever these go with the rest
 *       --resumed: every run begins with some round, from what another one has kept; with any of these
 *       --timed: the run has a time at which it ends    --scaled: a swarm asks for machines, and gives them back
 *       --sharded: stages step in shards, wherever that goes with the rest
 *       --periods: with periodic sync each stage sums in one of so many rounds, wherever that goes with the rest
 *       --waves: pipelines without a flush are virtual workers, that step by themselves within a wave
 *       --outage: the directory is lost, and goes on at what is kept or held, wherever that goes with the rest
 *       --wire: messages travel as the bytes that processes send each other; repetitions do not, with the same digest
 *       --again N: repeat every Nth seed and compare digests (default 8, 0: never)
 *
 * Seeds are independent; --jobs shares them out among processes. Every seed that fails is run once more with a
 * transcript, so that nothing is recorded in runs that pass.
 */
#include "tests/cluster/fault_mix.h"
#include "tests/cluster/transcript.h"
#include "tests/cluster/wired.h"

#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS 64u
#define HISTORY 40u
#define REPORTS 5u /* failures that one job prints in full */

struct options {
	uint64_t first, last, again, least;
	uint32_t jobs, reject;
	bool calm, verbose, fixed, periodic, async, gossip, trial, resumed, voids, waits, wire, timed, scaled, sharded,
		periods, waves, outage;
	const struct machine *machine;
	enum sabotage sabotage;
	const char *pinned;
};

struct totals {
	uint64_t seeds, done, failed, broken, named, quiet, events, digest;
	uint64_t issued, counted, lost, rounds, kills, restarts, fences, joins, moves, leaves, kept, restored, voids,
		voiding, waiting, copies, returns, given_back, outages, held, undone;
	uint64_t hits[WEATHER_FAULTS];
};

struct job {
	const struct options *options;
	struct cluster *cluster;
	struct weather weather;
	struct verdict verdict;
	struct totals *totals;
	/* the second look at a failure: the last lines that concern it */
	bool all_lines;
	struct verdict wanted;
	char line[HISTORY][TRANSCRIPT_LINE];
	uint32_t lines;
};

/* ---- one run ------------------------------------------------------------------------------------------------------- */

static sigjmp_buf escape;

/* An assert inside a machine ends that seed, not the whole test. */
static void aborted(int signal)
{
	siglongjmp(escape, signal);
}

static bool concerns(const struct job *job, const struct trace *trace)
{
	uint32_t round = SKEP_NO_INDEX, microbatch = SKEP_NO_INDEX;
	bool numbered = true;
	if (trace->message) {
		uint8_t kind = trace->message->kind;
		round = trace->message->round;
		microbatch = trace->message->microbatch;
		numbered = kind <= SKEP_MESSAGE_ABANDON || kind == SKEP_MESSAGE_FINISHED ||
		           kind == SKEP_MESSAGE_OUTPUT || kind == SKEP_MESSAGE_INPUT || kind == SKEP_MESSAGE_CANCEL ||
		           kind == SKEP_MESSAGE_CANCELLED;
		if (kind == SKEP_MESSAGE_HEARTBEAT)
			return false;
	} else if (trace->op) {
		round = trace->op->round;
		microbatch = trace->op->microbatch;
		numbered = trace->op->kind <= SKEP_OP_BACKWARD;
	} else if (trace->note) {
		round = trace->note->round;
		microbatch = trace->note->microbatch;
		numbered = trace->note->kind == SKEP_NOTE_COUNTED;
	}
	bool round_fits = job->wanted.round == SKEP_NO_INDEX || round == SKEP_NO_INDEX || round == job->wanted.round;
	return round_fits &&
	       (!numbered || job->wanted.microbatch == SKEP_NO_INDEX || microbatch == job->wanted.microbatch);
}

static void remember(void *context, const struct trace *trace)
{
	struct job *job = context;
	if (job->all_lines) {
		char line[TRANSCRIPT_LINE];
		transcript_line(&job->weather.plan, trace, line);
		puts(line);
	} else if (concerns(job, trace)) {
		transcript_line(&job->weather.plan, trace, job->line[job->lines++ % HISTORY]);
	}
}

struct variant { /* what may differ between two runs of a seed without changing its digest */
	uint8_t padding;
	bool move_nodes, traced, wire;
	int64_t loss_bias_nano;
};

static enum weather_kind kind_of(const struct options *options)
{
	return options->async      ? WEATHER_ASYNC
	       : options->gossip   ? WEATHER_GOSSIP
	       : options->fixed    ? WEATHER_FIXED
	       : options->periodic ? WEATHER_PERIODIC
	       : options->trial    ? WEATHER_TRIAL
	       : options->voids    ? WEATHER_VOID
	       : options->waits    ? WEATHER_WAIT
	                           : WEATHER_ANY;
}

static void draw(struct job *job, uint64_t seed)
{
	weather_draw(&job->weather, seed, job->options->calm, kind_of(job->options));
	if (job->options->resumed)
		resumed_draw(&job->weather.plan, seed);
	if (job->options->scaled)
		weather_scale(&job->weather);
	if (job->options->sharded)
		weather_shard(&job->weather);
	if (job->options->periods)
		weather_periods(&job->weather);
	if (job->options->waves)
		weather_waves(&job->weather);
	if (job->options->outage)
		weather_outage(&job->weather);
	if (job->options->timed && job->weather.plan.candidates.count == 0) /* 1 ms to 4 s */
		job->weather.plan.until.end_ns = UINT64_C(1000000) << mix64(seed ^ UINT64_C(0x656e6473)) % 13;
}

static struct result run_once(struct job *job, struct variant variant)
{
	if (job->options->machine == &machine_naive) { /* it knows nothing of these */
		job->weather.plan.delayed = false;
		job->weather.plan.on_loss = SKEP_ON_LOSS_REPORT;
		job->weather.plan.pipeline = SKEP_PIPELINE_SWARM;
		job->weather.plan.model_chunks = 0;
		job->weather.plan.vstage_bytes = NULL;
		job->weather.plan.wiring = SKEP_WIRING_UNIFORM;
		job->weather.plan.eager = job->weather.plan.clip = false;
		job->weather.plan.inner.steps = job->weather.plan.inner.cycle = job->weather.plan.candidates.count =
			job->weather.plan.candidates.rounds = 0;
		job->weather.plan.reduction.gather = job->weather.plan.async.on = job->weather.plan.gossip = false;
		job->weather.plan.validation.every = 0;
		job->weather.plan.tied = 0;
		weather_thaw(&job->weather);
		job->weather.plan.checkpoint_every = job->weather.infinite = 0;
	}
	struct setup setup = weather_setup(&job->weather);
	struct result result = {0};
	setup.machine = job->options->machine;
	if (setup.machine == &machine_naive) {
		setup.calm_ns = SKEP_TIME_NEVER;               /* it cannot join at all, and has enough other faults */
		job->weather.plan.routing = SKEP_ROUTING_PEER; /* nor does it know another one */
	}
	setup.padding = variant.padding;
	setup.move_nodes = variant.move_nodes;
	setup.loss_bias_nano = variant.loss_bias_nano;
	setup.carry = variant.wire ? wired_message : NULL;
	setup.trace = variant.traced ? remember : NULL;
	setup.trace_context = job;
#ifdef SKEP_VIEW_MAX /* this build tries small views */
	setup.view = SKEP_VIEW_MAX;
#endif
	setup.sabotage = job->options->sabotage;
	bool rare = setup.sabotage >= SABOTAGE_MOVED_HIDDEN;
	setup.sabotage_at = (uint32_t)(mix64(job->weather.seed) % (rare ? 2 : 40) + 1);
	int signal = sigsetjmp(escape, 1);
	if (signal != 0) {
		verdict_break(&job->verdict, "assert", SKEP_NO_INDEX, SKEP_NO_INDEX, SKEP_NO_INDEX,
			"a machine was stopped by signal %d", signal);
		return result;
	}
	cluster_begin(job->cluster, &setup, &job->verdict);
	weather_schedule(&job->weather, job->cluster);
	weather_lose(&job->weather, job->cluster);
	if (setup.sabotage == SABOTAGE_RERUN_DIFFERS && !variant.move_nodes)
		cluster_start_at(job->cluster, 0, 1);
	return cluster_run(job->cluster);
}

/* Without faults there is no excuse: all is counted, no worker is fenced, what is granted is what was asked for. */
static void check_quiet(struct job *job, const struct result *result)
{
	const struct skep_plan *plan = &job->weather.plan;
	const struct ledger_totals *t = &result->totals;
	uint64_t quota = 0;
	for (uint32_t round = 0; round < t->rounds; round++)
		quota += (uint64_t)inner_quota(plan, plan->first_round + round) *
		         (plan->candidates.count > 1 && round < plan->candidates.rounds ? plan->candidates.count : 1);
	job->totals->quiet++;
	bool hands_back = plan->scale && plan->delayed; /* who is told to leave has some of the round that is open */
	if (result->outcome != SKEP_DONE || (t->lost > 0 && !hands_back) || result->fences > 0 ||
		t->issued != quota + t->lost / skep_plan_vstages(plan) ||
		t->counted + t->lost != t->issued * skep_plan_vstages(plan))
		verdict_break(&job->verdict, "I7", SKEP_NO_INDEX, SKEP_NO_INDEX, SKEP_NO_INDEX,
			"without any fault: outcome %d, %llu issued, %llu counted, %llu lost, %llu fenced",
			(int)result->outcome, (unsigned long long)t->issued, (unsigned long long)t->counted,
			(unsigned long long)t->lost, (unsigned long long)result->fences);
}

static void add_up(struct job *job, const struct result *result)
{
	struct totals *t = job->totals;
	t->done += result->outcome == SKEP_DONE;
	t->failed += result->outcome == SKEP_FAILED;
	t->events += result->events;
	t->digest += mix64(job->weather.seed ^ result->digest); /* a sum: the order of the jobs does not matter */
	t->issued += result->totals.issued;
	t->counted += result->totals.counted;
	t->lost += result->totals.lost;
	t->given_back += result->totals.given_back;
	t->undone += result->totals.undone;
	t->outages += result->outages;
	t->held += result->held;
	t->rounds += result->totals.rounds;
	t->kills += result->kills;
	t->restarts += result->restarts;
	t->fences += result->fences;
	t->joins += result->joins;
	t->moves += result->moves;
	t->leaves += result->leaves;
	t->kept += result->kept;
	t->restored += result->restored;
	t->voids += result->voids;
	t->voiding += job->weather.plan.on_loss == SKEP_ON_LOSS_VOID;
	t->waiting += job->weather.plan.on_loss == SKEP_ON_LOSS_WAIT;
	t->copies += result->copies;
	t->returns += result->failed;
	for (uint32_t f = 0; f < WEATHER_FAULTS; f++)
		t->hits[f] += job->weather.hits[f];
}

static void report(struct job *job)
{
	struct verdict verdict = job->verdict;
	uint64_t seed = job->weather.seed;
	const char *sabotage = sabotage_kind[job->options->sabotage].name;
	job->lines = 0;
	if (strcmp(verdict.invariant, "I8") != 0) {
		job->wanted = verdict;
		draw(job, seed);
		run_once(job, (struct variant){0xa5, true, true, job->options->wire, 0});
	}
	flockfile(stdout);
	printf("seed %llu breaks %s: %s\n", (unsigned long long)seed, verdict.invariant, verdict.text);
	weather_print(&job->weather, stdout);
	for (uint32_t i = job->lines > HISTORY ? job->lines - HISTORY : 0; i < job->lines; i++)
		printf("  | %s\n", job->line[i % HISTORY]);
	printf("  again: chaos --seed %llu -v%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s\n\n", (unsigned long long)seed,
		job->options->machine == &machine_naive ? " --machine naive" : "", job->options->calm ? " --calm" : "",
		job->options->fixed ? " --fixed" : "",
		job->options->async      ? " --async"
		: job->options->gossip   ? " --gossip"
		: job->options->periodic ? " --periodic"
		: job->options->voids    ? " --void"
		: job->options->waits    ? " --wait"
					 : "",
		job->options->trial ? " --trial" : "", job->options->resumed ? " --resumed" : "",
		job->options->wire ? " --wire" : "", job->options->timed ? " --timed" : "",
		job->options->scaled ? " --scaled" : "", job->options->sharded ? " --sharded" : "",
		job->options->periods ? " --periods" : "", job->options->waves ? " --waves" : "",
		job->options->outage ? " --outage" : "", sabotage ? " --sabotage " : "", sabotage ? sabotage : "");
	fflush(stdout);
	funlockfile(stdout);
}

static bool failures_expected(const struct options *options)
{
	return options->sabotage != SABOTAGE_NONE || options->reject > 0;
}

static void run_seed(struct job *job, uint64_t seed)
{
	const struct options *options = job->options;
	draw(job, seed);
	struct result result = run_once(job, (struct variant){0xa5, true, false, options->wire, 0});
	if (!job->verdict.broken && weather_faultless(&job->weather))
		check_quiet(job, &result);
	if (!job->verdict.broken)
		add_up(job, &result);
	if (!job->verdict.broken && options->again > 0 && seed % options->again == 0) {
		/* losses decide nothing, unless there is a target, or a choice */
		bool idle = job->weather.plan.until.target_loss_nano == INT64_MIN &&
		            job->weather.plan.candidates.count == 0;
		int64_t bias = idle ? 1000000007 : 0;
		struct result second = run_once(job, (struct variant){0x5a, false, false, false, bias});
		if (second.digest != result.digest)
			verdict_break(&job->verdict, "I8", SKEP_NO_INDEX, SKEP_NO_INDEX, SKEP_NO_INDEX,
				"a second run of the seed has digest %016llx, not %016llx",
				(unsigned long long)second.digest, (unsigned long long)result.digest);
	}
	job->totals->seeds++;
	if (!job->verdict.broken)
		return;
	const char *named = sabotage_kind[options->sabotage].invariant;
	job->totals->broken++;
	job->totals->named += named && strcmp(named, job->verdict.invariant) == 0;
	if (options->verbose || (!failures_expected(options) && job->totals->broken <= REPORTS))
		report(job);
}

/* ---- many runs ------------------------------------------------------------------------------------------------------ */

static void run_pinned(struct job *job, const char *path)
{
	char line[256];
	FILE *file = fopen(path, "r");
	if (!file) {
		perror(path);
		job->totals->broken++;
		return;
	}
	while (fgets(line, sizeof(line), file)) {
		unsigned long long seed;
		if (line[0] != '#' && sscanf(line, "%llu", &seed) == 1)
			run_seed(job, seed);
	}
	fclose(file);
}

/* What is sabotaged has been named as often as it must: further seeds would not change the exit status. */
static bool noticed(const struct options *options, const struct totals *totals)
{
	return options->sabotage != SABOTAGE_NONE && totals->named > 0 && totals->named >= options->least;
}

static void run_job(const struct options *options, uint32_t number, struct totals *totals)
{
	struct job *job = calloc(1, sizeof(*job));
	assert(job);
	job->options = options;
	job->totals = totals;
	job->cluster = cluster_create();
	job->all_lines = options->verbose;
	signal(SIGABRT, aborted);
	signal(SIGSEGV, aborted);
	if (options->pinned)
		run_pinned(job, options->pinned);
	else
		for (uint64_t seed = options->first + number; seed <= options->last && !noticed(options, totals);
			seed += options->jobs)
			run_seed(job, seed);
	cluster_destroy(job->cluster);
	free(job);
}

static bool run_jobs(const struct options *options, struct totals *totals)
{
	pid_t child[JOBS];
	bool good = true;
	if (options->jobs == 1) {
		run_job(options, 0, &totals[0]);
		return true;
	}
	for (uint32_t j = 0; j < options->jobs; j++) {
		child[j] = fork();
		if (child[j] == 0) {
			run_job(options, j, &totals[j]);
			_exit(0);
		}
	}
	for (uint32_t j = 0; j < options->jobs; j++) {
		int status = 1;
		good = child[j] > 0 && waitpid(child[j], &status, 0) == child[j] && status == 0 && good;
	}
	return good;
}

static struct totals sum_up(const struct totals *totals, uint32_t jobs)
{
	struct totals sum = {0};
	uint64_t *to = (uint64_t *)(void *)&sum;
	for (uint32_t j = 0; j < jobs; j++)
		for (size_t i = 0; i < sizeof(sum) / sizeof(*to); i++)
			to[i] += ((const uint64_t *)(const void *)&totals[j])[i];
	return sum;
}

static void print_totals(const struct totals *t)
{
	printf("faults:");
	for (uint32_t f = 0; f < WEATHER_FAULTS; f++)
		if (f != WEATHER_KILL && f != WEATHER_RESTART && f != WEATHER_NOTICE)
			printf(" %s %llu,", weather_fault_name(f), (unsigned long long)t->hits[f]);
	printf(" copies %llu, deaths %llu, restarts %llu; fenced %llu, joined %llu, moved %llu, "
	       "left %llu, given back %llu; states kept %llu, stages restored %llu; "
	       "the directory lost %llu times, %llu times workers held more than was kept, rounds undone %llu\n"
	       "losses: %llu seeds in which rounds are void, %llu times; %llu in which all wait\n",
		(unsigned long long)t->copies, (unsigned long long)t->kills, (unsigned long long)t->restarts,
		(unsigned long long)t->fences, (unsigned long long)t->joins, (unsigned long long)t->moves,
		(unsigned long long)t->leaves, (unsigned long long)t->given_back, (unsigned long long)t->kept,
		(unsigned long long)t->restored, (unsigned long long)t->outages, (unsigned long long)t->held,
		(unsigned long long)t->undone, (unsigned long long)t->voiding, (unsigned long long)t->voids,
		(unsigned long long)t->waiting);
	printf("%llu seeds: %llu done, %llu failed, for an empty stage or bad numbers, %llu broken; "
	       "%llu without faults; %llu rounds, "
	       "%llu microbatches issued, %llu counted and %llu lost in stages; %llu events; digest %016llx\n",
		(unsigned long long)t->seeds, (unsigned long long)t->done, (unsigned long long)t->failed,
		(unsigned long long)t->broken, (unsigned long long)t->quiet, (unsigned long long)t->rounds,
		(unsigned long long)t->issued, (unsigned long long)t->counted, (unsigned long long)t->lost,
		(unsigned long long)t->events, (unsigned long long)t->digest);
}

/* ---- the command line ----------------------------------------------------------------------------------------------- */

static bool parse_sabotage(struct options *options, const char *name)
{
	for (uint32_t k = 1; k < SABOTAGES; k++) {
		if (strcmp(name, "list") == 0)
			printf("%-16s %s\n", sabotage_kind[k].name, sabotage_kind[k].invariant);
		if (strcmp(name, sabotage_kind[k].name) == 0)
			options->sabotage = k;
	}
	if (strcmp(name, "list") == 0)
		exit(0);
	return options->sabotage != SABOTAGE_NONE;
}

static bool parse_value(struct options *o, const char *key, const char *value)
{
	unsigned long long first, last;
	char end;
	if (strcmp(key, "--seeds") == 0 && sscanf(value, "%llu..%llu%c", &first, &last, &end) == 2 && first <= last)
		return o->first = first, o->last = last, true;
	if (strcmp(key, "--sabotage") == 0)
		return parse_sabotage(o, value);
	if (strcmp(key, "--pinned") == 0)
		return o->pinned = value, o->jobs = 1, true;
	if (strcmp(key, "--machine") == 0) {
		o->machine = strcmp(value, "naive") == 0 ? &machine_naive : &machine_skep;
		return strcmp(value, o->machine->name) == 0;
	}
	if (sscanf(value, "%llu%c", &first, &end) != 1)
		return false;
	if (strcmp(key, "--seed") == 0)
		return o->first = o->last = first, true;
	if (strcmp(key, "--jobs") == 0 && first >= 1 && first <= JOBS)
		return o->jobs = (uint32_t)first, true;
	if (strcmp(key, "--reject") == 0 && first <= 100)
		return o->reject = (uint32_t)first, true;
	if (strcmp(key, "--least") == 0)
		return o->least = first, true;
	if (strcmp(key, "--again") == 0)
		return o->again = first, true;
	return false;
}

static bool parse(struct options *o, int argc, char **argv)
{
	const struct {
		const char *key;
		bool *flag;
	} flag[] = {{"-v", &o->verbose}, {"--calm", &o->calm}, {"--fixed", &o->fixed}, {"--periodic", &o->periodic},
		{"--async", &o->async}, {"--gossip", &o->gossip}, {"--trial", &o->trial}, {"--void", &o->voids},
		{"--wait", &o->waits}, {"--resumed", &o->resumed}, {"--wire", &o->wire}, {"--timed", &o->timed},
		{"--scaled", &o->scaled}, {"--sharded", &o->sharded}, {"--periods", &o->periods},
		{"--waves", &o->waves}, {"--outage", &o->outage}};
	for (int i = 1; i < argc; i++) {
		bool known = false;
		for (size_t f = 0; f < sizeof flag / sizeof *flag && !known; f++)
			if (strcmp(argv[i], flag[f].key) == 0)
				known = *flag[f].flag = true;
		if (!known && i + 1 < argc && parse_value(o, argv[i], argv[i + 1]))
			known = ++i > 0;
		if (!known)
			return fprintf(stderr,
				       "chaos: cannot use '%s'; the head of tests/cluster/chaos.c lists the options\n",
				       argv[i]),
			       false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options options = {
		.first = 1, .last = 1000, .again = 8, .least = 1, .jobs = 1, .machine = &machine_skep};
	if (!parse(&options, argc, argv))
		return 2;
	struct totals *totals =
		mmap(NULL, JOBS * sizeof(*totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (totals == MAP_FAILED)
		return perror("chaos"), 1;
	bool good = run_jobs(&options, totals);
	struct totals sum = sum_up(totals, options.jobs);
	print_totals(&sum);
	if (options.sabotage != SABOTAGE_NONE) {
		const struct sabotage_kind *kind = &sabotage_kind[options.sabotage];
		printf("%s: %llu seeds break %s, at least %llu must\n", kind->name, (unsigned long long)sum.named,
			kind->invariant, (unsigned long long)options.least);
		return good && sum.named > 0 && sum.named >= options.least ? 0 : 1;
	}
	if (options.reject > 0)
		return good && sum.broken * 100 >= sum.seeds * options.reject ? 0 : 1;
	return good && sum.seeds > 0 && sum.broken == 0 ? 0 : 1;
}
