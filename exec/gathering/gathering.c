/* SPDX-License-Identifier: Apache-2.0
 *
 * gathering.c - see gathering.h. A mesh without members, whose lobby hears HELLO, STATE and PIECE, and nothing else.
 */
#include "exec/gathering/gathering.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/signals.h"
#include "base/units.h"
#include "exec/keeping/saver.h"
#include "exec/serve/keys.h"
#include "exec/tcp/mesh.h"
#include "models/checkpoint/checkpoint_folder.h"

#define REST_NS 50000000u
#define LAST_NS (2 * SKEP_SECOND_NS) /* for what was told last to be on its way */

enum state { UNKNOWN, BRINGING, SAVING, GREETED, WAITING, TOLD };

struct guest {
	enum state state;
	struct skep_arrival *arrival;
	struct skep_state_word word;
};

struct skep_gathering {
	const struct skep_scenario *scenario;
	const struct skep_serve_options *options;
	struct skep_keys keys;
	struct skep_mesh *mesh;
	struct skep_saver *saver;
	struct skep_rejects rejects;
	struct skep_checkpoint_folder folder; /* as of the run that was lost */
	uint32_t parts, common;               /* common: the newest version that all parts have here */
	uint32_t *newest;                     /* [parts] that was brought, and is not presumed */
	struct guest guest[SKEP_GUESTS_MAX];
	uint64_t begun_ns, heard_ns; /* heard: of a state, last */
	uint32_t patience_s;
	uint32_t told;
	bool closes, over; /* nothing more is taken; and the run has reached its end */
	int signals;
};

/* ---- what guests say ------------------------------------------------------------------------------------------------- */

static void tell(struct skep_gathering *g, uint32_t number, uint8_t type, const union skep_words *words)
{
	skep_mesh_guest_tell(g->mesh, number, type, words);
}

static void refuse(struct skep_gathering *g, uint32_t number, bool for_good, const char *reason)
{
	union skep_words words = {.refused = {.for_good = for_good}};
	snprintf(words.refused.reason, sizeof words.refused.reason, "%.500s", reason);
	tell(g, number, SKEP_RECORD_REFUSED, &words);
	skep_mesh_guest_close(g->mesh, number);
}

/* It comes again, or never. */
static void let_go(struct skep_gathering *g, uint32_t number)
{
	assert(g->guest[number].state == GREETED || g->guest[number].state == WAITING);
	tell(g, number, g->over ? SKEP_RECORD_OVER : SKEP_RECORD_GATHERS, &(union skep_words){0});
	skep_mesh_guest_close(g->mesh, number);
	g->guest[number].state = TOLD;
	g->told++;
}

static void on_hello(struct skep_gathering *g, uint32_t number, const struct skep_hello *hello)
{
	assert(g->guest[number].state == UNKNOWN);
	if (hello->protocol != SKEP_PROTOCOL) {
		refuse(g, number, true, "it is another version of skep: take the same program on both sides");
	} else if (!skep_tickets_know(&g->keys.tickets, hello->secret)) {
		refuse(g, number, true, "the ticket is not one of this run");
	} else if (hello->asks && g->over) {
		refuse(g, number, false, "the run has reached its end");
	} else if (hello->asks) {
		refuse(g, number, false,
			"the run was lost, and goes on when the machines that it had are there, in a minute at most");
	} else {
		skep_mesh_guest_trust(g->mesh, number);
		g->guest[number].state = GREETED;
		if (g->closes)
			let_go(g, number);
		else
			tell(g, number, SKEP_RECORD_GATHERS, &(union skep_words){.gathers = g->folder.run});
	}
}

/* The newest version of which the folder has all parts; what it was where memory lacks. */
static bool look_into_folder(struct skep_gathering *g)
{
	struct skep_checkpoints list;
	if (!skep_checkpoints_find(g->folder.path, g->folder.job, g->parts, &list))
		return false;
	g->common = list.versions > 0 ? list.version[list.versions - 1] : 0;
	skep_checkpoints_finish(&list);
	return true;
}

/* It is on the disk here. */
static void is_here(struct skep_gathering *g, uint32_t number, const struct skep_state_word *word)
{
	assert(word->stage < g->parts);
	if (!word->presumed && word->version > g->newest[word->stage])
		g->newest[word->stage] = word->version;
	look_into_folder(g);
	if (number != SKEP_SAVER_NO_ONE)
		tell(g, number, SKEP_RECORD_STATE, &(union skep_words){0});
}

static void on_state(struct skep_gathering *g, uint32_t number, const struct skep_state_word *word)
{
	struct guest *guest = &g->guest[number];
	struct skep_diag why = {0};
	assert(guest->state == UNKNOWN && guest->arrival == NULL);
	if (!skep_tickets_know(&g->keys.tickets, word->secret) || !word->keep || g->closes || word->stage >= g->parts ||
		word->version > g->scenario->plan.rounds) {
		skep_mesh_guest_close(g->mesh, number);
		return;
	}
	skep_mesh_guest_trust(g->mesh, number);
	guest->state = BRINGING;
	guest->word = *word;
	if (skep_arrival_needless(&g->folder, word)) {
		is_here(g, number, word);
		return;
	}
	guest->arrival = skep_arrival_begin(&g->folder, word, &why);
	if (guest->arrival != NULL)
		tell(g, number, SKEP_RECORD_STATE, &(union skep_words){.state = {.bytes = word->bytes}});
	else
		refuse(g, number, false, why.message);
}

static void on_piece(struct skep_gathering *g, uint32_t number, const struct skep_piece *piece)
{
	struct guest *guest = &g->guest[number];
	struct skep_diag why = {0};
	bool whole = false;
	assert(guest->state == BRINGING);
	g->heard_ns = skep_monotonic_ns();
	bool fine = guest->arrival != NULL && skep_arrival_add(guest->arrival, piece, &whole, &why);
	if (fine && whole) {
		fine = skep_saver_give(g->saver, guest->arrival, number);
		guest->arrival = NULL;
		guest->state = fine ? SAVING : BRINGING;
	}
	if (!fine)
		refuse(g, number, false, why.set ? why.message : "it sends a state that nothing asked for");
}

static void on_record(void *self, uint32_t number, const struct skep_record *record)
{
	struct skep_gathering *g = self;
	struct guest *guest = &g->guest[number];
	union skep_words words;
	assert(number < SKEP_GUESTS_MAX);
	bool fine = skep_words_decode(record, &words);
	if (fine && guest->state == UNKNOWN && record->type == SKEP_RECORD_HELLO)
		on_hello(g, number, &words.hello);
	else if (fine && guest->state == UNKNOWN && record->type == SKEP_RECORD_STATE)
		on_state(g, number, &words.state);
	else if (fine && guest->state == BRINGING && record->type == SKEP_RECORD_PIECE)
		on_piece(g, number, &words.piece);
	else if (fine && guest->state == GREETED && record->type == SKEP_RECORD_GATHERS)
		guest->state = WAITING;
	else if (guest->state != TOLD)
		skep_mesh_guest_close(g->mesh, number);
}

static void on_room(void *self, uint32_t number)
{
	(void)self, (void)number;
}

static void on_left(void *self, uint32_t number, const char *why)
{
	struct skep_gathering *g = self;
	struct guest *guest = &g->guest[number];
	(void)why;
	assert(number < SKEP_GUESTS_MAX);
	skep_arrival_abandon(guest->arrival);
	if (guest->state == SAVING)
		skep_saver_forget(g->saver, number);
	*guest = (struct guest){0};
}

static void on_turn(void *self)
{
	struct skep_gathering *g = self;
	struct skep_state_word word;
	struct skep_diag why;
	uint32_t number;
	while (skep_saver_take(g->saver, &number, &word, &why)) {
		assert(number == SKEP_SAVER_NO_ONE || g->guest[number].state == SAVING);
		if (number != SKEP_SAVER_NO_ONE)
			g->guest[number].state = BRINGING;
		if (!why.set)
			is_here(g, number, &word);
		else if (number != SKEP_SAVER_NO_ONE)
			refuse(g, number, false, why.message);
	}
}

/* ---- up and down ------------------------------------------------------------------------------------------------- */

uint64_t skep_gathering_run(const struct skep_serve_options *options)
{
	struct skep_tickets tickets = {0};
	struct skep_diag why = {0};
	if (!options->takes_keys || options->new_ticket)
		return 0;
	struct skep_authority *authority = skep_authority_read(options->keys, &tickets, &why);
	uint64_t run = 0;
	for (uint32_t i = 0; i < tickets.count; i++)
		run = tickets.entry[i].revoked ? run : tickets.run;
	skep_tickets_finish(&tickets);
	skep_authority_destroy(authority);
	return run;
}

/* From the saver's thread. */
static void wake(void *context)
{
	const struct skep_gathering *g = context;
	const struct skep_transport transport = skep_mesh_transport(g->mesh);
	transport.wake(transport.self);
}

static bool listen_on(struct skep_gathering *g, struct skep_diag *reterr)
{
	const struct skep_mesh_setup setup = {.ranks = 2,
		.run = g->keys.run,
		.host = g->keys.host,
		.listener = dup(g->options->listener),
		.silence_ns = (uint64_t)(g->options->silence_s * 1e9),
		.rejects = &g->rejects,
		.lobby = {.self = g, .record = on_record, .room = on_room, .left = on_left, .turn = on_turn}};
	g->mesh = skep_mesh_create(&setup, reterr);
	g->saver = g->mesh != NULL ? skep_saver_create(wake, g) : NULL;
	return g->saver != NULL || skep_fail(reterr, "no memory or no thread to keep states with");
}

/* Where what is brought is put, and what is there. */
static bool open_folder(struct skep_gathering *g, uint64_t run, struct skep_diag *reterr)
{
	g->folder = skep_scenario_folder(g->scenario);
	g->folder.run = run;
	g->folder.keep = g->folder.from_version = 0;
	g->parts = skep_plan_parts(&g->scenario->plan);
	g->newest = calloc(g->parts, sizeof *g->newest);
	return (g->newest != NULL && look_into_folder(g)) || skep_fail(reterr, "no memory for what is kept");
}

static void say_ticket(struct skep_gathering *g)
{
	const struct skep_tickets *tickets = &g->keys.tickets;
	struct skep_ticket ticket;
	uint32_t at = 0;
	while (at < tickets->count && tickets->entry[at].revoked)
		at++;
	if (at == tickets->count || g->options->announced)
		return;
	skep_authority_fingerprint(g->keys.authority, ticket.fingerprint);
	memcpy(ticket.secret, tickets->entry[at].secret, sizeof ticket.secret);
	skep_serve_say_ticket(g->scenario, g->options, &ticket);
}

/* Of replicas the next one serves within seconds, and those that have lost the last one knock on it as soon as they notice. */
static uint32_t patience_s(const struct skep_serve_options *options)
{
	double silences_s = 2 * options->silence_s;
	return options->lease != NULL && silences_s < SKEP_GATHERING_S ? (uint32_t)silences_s : SKEP_GATHERING_S;
}

struct skep_gathering *skep_gathering_open(const struct skep_scenario *scenario,
	const struct skep_serve_options *options, uint64_t run, struct skep_diag *reterr)
{
	struct skep_gathering *g = calloc(1, sizeof *g);
	if (g == NULL) {
		skep_fail(reterr, "no memory for those who join");
		return NULL;
	}
	g->scenario = scenario;
	g->options = options;
	g->patience_s = patience_s(options);
	skep_quit_block(NULL);
	signal(SIGPIPE, SIG_IGN);
	g->signals = skep_quit_open();
	g->begun_ns = skep_monotonic_ns();
	if (skep_keys_open(&g->keys, options->keys, reterr) && open_folder(g, run, reterr) && listen_on(g, reterr))
		return g;
	skep_gathering_close(g);
	return NULL;
}

/* ---- for whom it waits ------------------------------------------------------------------------------------------- */

static uint32_t count(const struct skep_gathering *g, enum state state)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++)
		found += g->guest[i].state == state;
	return found;
}

/* Has one part of the model a state that is newer than the newest version of all of them? */
static bool is_partial(const struct skep_gathering *g)
{
	for (uint32_t i = 0; i < g->parts; i++)
		if (g->newest[i] > g->common)
			return true;
	return false;
}

static bool is_late(const struct skep_gathering *g, uint64_t most_ns)
{
	return skep_monotonic_ns() > g->begun_ns + most_ns;
}

/* States that are on their way are waited for, while something of them comes. */
static bool is_given_up(const struct skep_gathering *g)
{
	uint64_t silence_ns = (uint64_t)(g->options->silence_s * 1e9);
	bool comes = count(g, BRINGING) > 0 && skep_monotonic_ns() < g->heard_ns + silence_ns;
	return is_late(g, g->patience_s * SKEP_SECOND_NS) && !comes && count(g, SAVING) == 0;
}

static bool is_complete(const struct skep_gathering *g, uint32_t rounds)
{
	uint32_t workers = g->scenario->plan.workers, waiting = count(g, WAITING);
	uint32_t least = g->options->least > 0 ? g->options->least : workers;
	if (count(g, BRINGING) + count(g, SAVING) > 0)
		return false;
	if (rounds > 0 && g->common >= rounds)
		return true;
	return count(g, GREETED) == 0 && (waiting >= workers || (waiting >= least && !is_partial(g)));
}

static void turn(struct skep_gathering *g)
{
	struct skep_transport transport = skep_mesh_transport(g->mesh);
	const struct skep_landing nowhere = {0};
	struct skep_transport_event event;
	while (transport.poll(transport.self, &nowhere, &event))
		;
	transport.wait(transport.self, REST_NS);
}

/* 0, or the number of a signal that has come. */
static int look(struct skep_gathering *g)
{
	struct signalfd_siginfo info;
	turn(g);
	bool any = g->signals >= 0 && read(g->signals, &info, sizeof info) == (ssize_t)sizeof info;
	return any ? (int)info.ssi_signo : 0;
}

static void say_what_is_here(const struct skep_gathering *g, uint32_t rounds)
{
	const struct skep_plan *plan = &g->scenario->plan;
	char made[48] = "";
	if (g->options->quiet)
		return;
	if (rounds > 0)
		snprintf(made, sizeof made, ", and %" PRIu64 " were made", skep_plan_steps_before(plan, rounds));
	fprintf(stderr,
		"skep: the newest states here are those behind step %" PRIu64
		"%s: waits for machines that have newer ones, for %u s at most\n",
		skep_plan_steps_before(plan, g->common), made, g->patience_s);
}

/* What workers are told to go on from may be lost with this machine no more than what they were told is kept. */
static void hand_on(const struct skep_gathering *g)
{
	char path[SKEP_CHECKPOINT_PATH_BYTES];
	struct stat about;
	assert(g->options->lease != NULL && g->common > 0);
	for (uint32_t part = 0; part < g->parts; part++) {
		skep_checkpoint_path(&g->folder, part, g->common, path);
		if (stat(path, &about) == 0)
			skep_lease_hand_on(g->options->lease, part, g->common, (uint64_t)about.st_size);
	}
}

int skep_gathering_wait(struct skep_gathering *g, uint32_t rounds)
{
	int number = 0;
	uint32_t before = g->common;
	assert(!g->closes);
	say_ticket(g);
	say_what_is_here(g, rounds);
	while (number == 0 && !is_complete(g, rounds) && !is_given_up(g))
		number = look(g);
	if (!g->options->quiet && number == 0)
		fprintf(stderr, "skep: %s states of all stages have come\n", g->common > before ? "newer" : "no newer");
	if (number == 0 && g->options->lease != NULL && g->common > before)
		hand_on(g);
	return number;
}

/* Those who wait hear what is to be heard. */
static void let_all_go(struct skep_gathering *g)
{
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++) {
		if (g->guest[i].state == GREETED || g->guest[i].state == WAITING)
			let_go(g, i);
	}
}

int skep_gathering_tell_over(struct skep_gathering *g)
{
	int number = 0;
	g->closes = g->over = true;
	g->begun_ns = skep_monotonic_ns();
	if (!g->options->quiet)
		fprintf(stderr, "skep: tells so to the machines that knock on port %u, for %u s at most\n",
			g->options->port, SKEP_GATHERING_S);
	let_all_go(g);
	while (number == 0 && g->told < g->scenario->plan.workers && !is_late(g, SKEP_GATHERING_S * SKEP_SECOND_NS))
		number = look(g);
	return number;
}

void skep_gathering_close(struct skep_gathering *g)
{
	if (g == NULL)
		return;
	g->closes = true;
	if (g->mesh != NULL)
		skep_mesh_stop_listening(g->mesh); /* those who come again are the next server's */
	if (g->saver != NULL)
		let_all_go(g);
	g->begun_ns = skep_monotonic_ns();
	while (g->saver != NULL && count(g, TOLD) > 0 && !is_late(g, LAST_NS))
		turn(g); /* a signal is left to those who come next */
	skep_saver_destroy(g->saver);
	skep_mesh_destroy(g->mesh, false);
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++)
		skep_arrival_abandon(g->guest[i].arrival);
	skep_keys_close(&g->keys);
	if (g->signals >= 0)
		close(g->signals);
	free(g->newest);
	free(g);
}
