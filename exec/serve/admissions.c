/* SPDX-License-Identifier: Apache-2.0
 *
 * admissions.c - see admissions.h. A guest goes through its states in one order; a record that does not belong to its state ends
 * its connection.
 */
#include "exec/serve/admissions_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/serve/slot_fit.h"

#define REFUSALS_TOLD 20u /* who has no ticket must not fill the disk where the messages go */

uint32_t skep_admissions_ranks(const struct skep_scenario *scenario)
{
	return scenario->plan.workers + 1 + SKEP_NEWCOMERS_MAX;
}

/* ---- saying ---------------------------------------------------------------------------------------------------------- */

void skep_admissions_refuse(struct skep_admissions *a, uint32_t guest, bool for_good, const char *format, ...)
{
	union skep_words words = {.refused = {.for_good = for_good}};
	assert(guest < SKEP_GUESTS_MAX);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(words.refused.reason, sizeof words.refused.reason, format, arguments);
	va_end(arguments);
	if (a->refused++ < REFUSALS_TOLD)
		fprintf(stderr, "skep: refused %s: %s%s\n",
			a->guest[guest].hello.host[0] ? a->guest[guest].hello.host : "a guest", words.refused.reason,
			a->refused == REFUSALS_TOLD ? " (further ones are only counted)" : "");
	admissions_tell(a, guest, SKEP_RECORD_REFUSED, &words);
	skep_mesh_guest_close(a->mesh, guest);
}

static void say_who_came(const struct skep_admissions *a, const struct process *process)
{
	char what[SKEP_NAME_MAX + 32] = "";
	if (a->setup.quiet)
		return;
	if (process->hello.gpu[0] != '\0')
		snprintf(what, sizeof what, " (%s)", process->hello.gpu);
	if (process->worker == SKEP_NO_INDEX)
		fprintf(stderr, "skep: %s%s is here and stands by\n", process->hello.host, what);
	else
		fprintf(stderr, "skep: %s%s is worker %" PRIu32 "; %" PRIu32 " of %" PRIu32 " are here\n",
			process->hello.host, what, process->worker, a->here, a->setup.scenario->plan.workers);
}

/* ---- who asks ------------------------------------------------------------------------------------------------------ */

static bool is_here(const void *admissions, uint32_t rank)
{
	const struct skep_admissions *a = admissions;
	assert(rank > 0 && rank < a->ranks);
	return a->process[rank].there && skep_mesh_is_member(a->mesh, rank);
}

/* NULL: no memory. */
static char *report(struct skep_admissions *a)
{
	uint32_t members = 0;
	struct skep_status_member *member = calloc(a->ranks, sizeof *member);
	skep_relays_keep(&a->relays, is_here, a);
	for (uint32_t rank = 1; member != NULL && rank < a->ranks; rank++) {
		const struct process *process = &a->process[rank];
		if (is_here(a, rank))
			member[members++] = (struct skep_status_member){rank, process->worker, process->hello.host,
				process->hello.gpu, process->member.address, skep_relays_of(&a->relays, rank)};
	}
	bool running = a->clock != NULL;
	char *text = NULL;
	if (member != NULL)
		text = skep_status_json(
			a->setup.status, running, running ? skep_clock_now(a->clock) : 0, member, members, &a->relays);
	free(member);
	return text;
}

static void on_question(struct skep_admissions *a, uint32_t number, const struct skep_hello *hello)
{
	struct guest *guest = &a->guest[number];
	assert(hello->asks && guest->report == NULL);
	if (!skep_tickets_know(a->setup.tickets, hello->secret)) {
		skep_admissions_refuse(a, number, true, "%s", skep_admission_text(SKEP_TICKET_UNKNOWN));
		return;
	}
	guest->state = ASKING;
	guest->report = report(a);
	if (guest->report == NULL) {
		skep_mesh_guest_close(a->mesh, number);
		return;
	}
	skep_mesh_guest_trust(a->mesh, number);
	guest->memory = (const uint8_t *)guest->report;
	guest->fd = -1;
	guest->at = 0;
	guest->end = strlen(guest->report);
	guest->fetching = true;
	admissions_tell(a, number, SKEP_RECORD_STATUS, &(union skep_words){.status = guest->end});
}

/* ---- the first words ------------------------------------------------------------------------------------------------- */

static void on_hello(struct skep_admissions *a, uint32_t number, const struct skep_hello *hello)
{
	struct guest *guest = &a->guest[number];
	struct skep_diag why = {0};
	assert(guest->state == UNKNOWN && guest->arrival == NULL);
	guest->hello = *hello;
	if (hello->protocol != SKEP_PROTOCOL) {
		skep_admissions_refuse(a, number, true,
			"it is skep %s, which speaks version %u of the protocol; this is skep %s, version %u: take the same "
			"program on both sides",
			hello->version, hello->protocol, a->setup.version, SKEP_PROTOCOL);
		return;
	}
	if (hello->asks) {
		on_question(a, number, hello);
		return;
	}
	bool known = skep_tickets_know(a->setup.tickets, hello->secret);
	if (known && !skep_slot_any(a->setup.scenario, hello, &why)) { /* takes nothing of the ticket */
		skep_admissions_refuse(a, number, true, "%s", why.message);
		return;
	}
	enum skep_admission admission = skep_tickets_admit(a->setup.tickets, hello->secret);
	if (admission != SKEP_ADMITTED) {
		skep_admissions_refuse(a, number, true, "%s", skep_admission_text(admission));
		return;
	}
	if (a->setup.spent != NULL && !skep_tickets_endless(a->setup.tickets, hello->secret))
		a->setup.spent(a->setup.spent_context);
	if (strcmp(hello->version, a->setup.version) != 0 && !a->setup.quiet)
		fprintf(stderr, "skep: %s runs skep %s, and this is %s\n", hello->host, hello->version,
			a->setup.version);
	skep_mesh_guest_trust(a->mesh, number);
	guest->state = OFFERED;
	admissions_tell(a, number, SKEP_RECORD_OFFER, &(union skep_words){.offer = a->setup.offer});
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static void stop_fetching(struct guest *guest)
{
	if (guest->fetching && guest->fd >= 0)
		close(guest->fd);
	free(guest->report);
	guest->report = NULL;
	guest->fetching = false;
}

/* Where the bytes of that hash are; false: nothing that was offered has it. */
static bool find_bytes(
	struct skep_admissions *a, struct guest *guest, const uint8_t hash[SKEP_HASH_BYTES], struct skep_diag *reterr)
{
	const struct skep_offer *offer = &a->setup.offer;
	assert(!guest->fetching);
	guest->fd = -1;
	if (memcmp(hash, offer->list, SKEP_HASH_BYTES) == 0) {
		guest->memory = a->list;
		guest->end = a->list_bytes;
	} else if (offer->allocation_bytes > 0 && memcmp(hash, offer->allocation, SKEP_HASH_BYTES) == 0) {
		guest->memory = (const uint8_t *)a->setup.allocation;
		guest->end = offer->allocation_bytes;
	} else {
		guest->fd = skep_manifest_open(a->setup.manifest, hash, &guest->end, reterr);
		return guest->fd >= 0;
	}
	return true;
}

static void send_piece(struct skep_admissions *a, uint32_t number)
{
	struct guest *guest = &a->guest[number];
	uint8_t bytes[SKEP_PIECE_BYTES];
	assert(guest->fetching && guest->at < guest->end);
	uint64_t left = guest->end - guest->at;
	size_t count = left < sizeof bytes ? (size_t)left : sizeof bytes;
	const uint8_t *from = bytes;
	if (guest->fd < 0) {
		from = guest->memory + guest->at;
	} else if (pread(guest->fd, bytes, count, (off_t)guest->at) != (ssize_t)count) {
		stop_fetching(guest);
		skep_admissions_refuse(a, number, false, "a file of the scenario has changed since `serve` began");
		return;
	}
	union skep_words words = {.piece = {.offset = guest->at, .bytes = from, .count = (uint32_t)count}};
	admissions_tell(a, number, SKEP_RECORD_PIECE, &words);
	guest->at += count;
	if (guest->at == guest->end)
		stop_fetching(guest);
}

static void on_fetch(struct skep_admissions *a, uint32_t number, const struct skep_fetch *fetch)
{
	struct guest *guest = &a->guest[number];
	struct skep_diag why = {0};
	assert(guest->state == OFFERED);
	stop_fetching(guest);
	if (!find_bytes(a, guest, fetch->hash, &why)) {
		skep_admissions_refuse(
			a, number, false, "%.200s%s%s", why.file, why.file[0] != '\0' ? " " : "", why.message);
		return;
	}
	guest->fetching = true;
	guest->at = fetch->offset;
	if (guest->at >= guest->end) {
		stop_fetching(guest);
		skep_admissions_refuse(a, number, false, "it asked for what is behind the end of a file");
		return;
	}
	send_piece(a, number);
}

static void on_room(void *self, uint32_t number)
{
	struct skep_admissions *a = self;
	assert(number < SKEP_GUESTS_MAX);
	if (a->guest[number].fetching)
		send_piece(a, number);
}

/* ---- slots ----------------------------------------------------------------------------------------------------------- */

static void free_place(struct skep_admissions *a, uint32_t worker)
{
	assert(worker == SKEP_NO_INDEX || a->taken[worker]);
	if (worker != SKEP_NO_INDEX)
		a->taken[worker] = false;
}

/* False: none is left. */
static bool choose_slot(struct skep_admissions *a, struct guest *guest)
{
	const struct skep_scenario *scenario = a->setup.scenario;
	guest->worker = SKEP_NO_INDEX;
	if (a->clock == NULL)
		guest->worker = skep_slot_best(scenario, a->taken, &guest->hello);
	if (guest->worker == SKEP_NO_INDEX && a->next == a->ranks)
		return false;
	guest->rank = guest->worker != SKEP_NO_INDEX ? guest->worker + 1 : a->next++;
	assert(guest->rank > 0 && guest->rank < a->ranks);
	if (guest->worker != SKEP_NO_INDEX)
		a->taken[guest->worker] = true;
	return true;
}

static void on_ready(struct skep_admissions *a, uint32_t number, const struct skep_blob *key)
{
	struct guest *guest = &a->guest[number];
	union skep_words words = {0};
	struct skep_admitted *process = &words.admitted;
	assert(guest->state == OFFERED);
	if (!choose_slot(a, guest)) {
		skep_admissions_refuse(a, number, true, "%u processes have come to this run, and it takes no more",
			SKEP_NEWCOMERS_MAX);
		return;
	}
	guest->state = PREPARING;
	process->rank = guest->rank;
	process->ranks = a->ranks;
	process->worker = guest->worker;
	process->certificate.count = (uint16_t)skep_authority_issue(
		a->setup.authority, a->setup.offer.run, guest->rank, key->byte, key->count, process->certificate.byte);
	process->authority.count = (uint16_t)skep_authority_certificate(a->setup.authority, process->authority.byte);
	if (process->certificate.count == 0 || process->authority.count == 0) {
		free_place(a, guest->worker);
		guest->state = OFFERED;
		skep_admissions_refuse(a, number, true, "its key is none that a run's processes have");
		return;
	}
	admissions_tell(a, number, SKEP_RECORD_ADMITTED, &words);
}

/* All who are there, and what time it is. */
static void welcome(struct skep_admissions *a, uint32_t rank)
{
	assert(a->clock != NULL && rank > 0 && rank < a->ranks);
	for (uint32_t other = 1; other < a->ranks; other++) {
		if (other != rank && is_here(a, other))
			skep_mesh_tell(a->mesh, rank, SKEP_RECORD_MEMBER,
				&(union skep_words){.member = a->process[other].member});
	}
	skep_mesh_tell(a->mesh, rank, SKEP_RECORD_GO, &(union skep_words){.go = skep_clock_now(a->clock)});
}

static void announce(struct skep_admissions *a, uint32_t rank)
{
	assert(a->clock != NULL && a->process[rank].there);
	for (uint32_t other = 1; other < a->ranks; other++) {
		if (other != rank && is_here(a, other))
			skep_mesh_tell(a->mesh, other, SKEP_RECORD_MEMBER,
				&(union skep_words){.member = a->process[rank].member});
	}
}

static void on_prepared(struct skep_admissions *a, uint32_t number, const struct skep_prepared *prepared)
{
	struct guest *guest = &a->guest[number];
	struct process *process = &a->process[guest->rank];
	assert(guest->state == PREPARING);
	if (!prepared->fine) {
		free_place(a, guest->worker);
		guest->state = OFFERED;
		skep_admissions_refuse(a, number, true, "%s", prepared->reason);
		return;
	}
	*process = (struct process){.hello = guest->hello, .worker = guest->worker, .there = true};
	process->member = (struct skep_member){.rank = guest->rank, .port = guest->hello.port};
	snprintf(process->member.address, sizeof process->member.address, "%s",
		skep_mesh_guest_address(a->mesh, number));
	if (a->clock == NULL && skep_mesh_was_lost(a->mesh, guest->rank))
		skep_mesh_forgive(a->mesh, guest->rank);
	if (!skep_mesh_guest_admit(a->mesh, number, &process->member, a->clock != NULL)) {
		process->there = false;
		return;
	}
	guest->state = UNKNOWN;
	a->here += process->worker != SKEP_NO_INDEX;
	say_who_came(a, process);
	if (a->clock == NULL)
		return;
	process->since_ns = skep_clock_now(a->clock);
	welcome(a, process->member.rank);
	announce(a, process->member.rank);
}

/* ---- what the mesh calls --------------------------------------------------------------------------------------------- */

static void on_record(void *self, uint32_t number, const struct skep_record *record)
{
	struct skep_admissions *a = self;
	struct guest *guest = &a->guest[number];
	union skep_words words;
	assert(number < SKEP_GUESTS_MAX);
	bool fine = skep_words_decode(record, &words);
	if (fine && guest->state == UNKNOWN && record->type == SKEP_RECORD_HELLO)
		on_hello(a, number, &words.hello);
	else if (fine && guest->state == UNKNOWN && record->type == SKEP_RECORD_STATE)
		skep_admissions_on_state(a, number, &words.state);
	else if (fine && guest->state == BRINGING && record->type == SKEP_RECORD_PIECE)
		skep_admissions_on_piece(a, number, &words.piece);
	else if (fine && guest->state == OFFERED && record->type == SKEP_RECORD_FETCH)
		on_fetch(a, number, &words.fetch);
	else if (fine && guest->state == OFFERED && record->type == SKEP_RECORD_READY)
		on_ready(a, number, &words.ready);
	else if (fine && guest->state == OFFERED && record->type == SKEP_RECORD_PREPARED && !words.prepared.fine)
		skep_admissions_refuse(
			a, number, true, "%s", words.prepared.reason); /* it could not read the scenario */
	else if (fine && guest->state == PREPARING && record->type == SKEP_RECORD_PREPARED)
		on_prepared(a, number, &words.prepared);
	else
		skep_mesh_guest_close(a->mesh, number);
}

static void on_left(void *self, uint32_t number, const char *why)
{
	struct skep_admissions *a = self;
	struct guest *guest = &a->guest[number];
	assert(number < SKEP_GUESTS_MAX);
	stop_fetching(guest);
	skep_arrival_abandon(guest->arrival);
	if (guest->state == SAVING)
		skep_saver_forget(a->saver, number);
	if (guest->state == PREPARING)
		free_place(a, guest->worker);
	if (guest->state >= OFFERED && !a->setup.quiet)
		fprintf(stderr, "skep: %s has left before it was admitted: %s\n", guest->hello.host, why);
	*guest = (struct guest){.fd = -1};
}

/* Who stands by has no machine of the topology until it gets a place. */
static void compare_pair(struct skep_admissions *a, uint32_t rank, uint32_t other)
{
	assert(rank > 0 && rank < a->ranks && other > 0 && other < a->ranks);
	uint32_t worker = a->process[rank].worker, of_other = a->process[other].worker;
	if (worker != SKEP_NO_INDEX && of_other != SKEP_NO_INDEX && worker != of_other)
		skep_relays_between(&a->relays, a->setup.scenario, worker, of_other);
}

static void on_relayed(void *self, uint32_t from, uint32_t to)
{
	struct skep_admissions *a = self;
	if (!skep_relays_add(&a->relays, from, to))
		return;
	compare_pair(a, from, to);
	if (!a->setup.quiet)
		skep_relays_say(&a->relays, a->process[from].hello.host, a->process[to].hello.host);
}

static void on_direct(void *self, uint32_t from, uint32_t to)
{
	struct skep_admissions *a = self;
	if (!skep_relays_remove(&a->relays, from, to))
		return;
	uint32_t worker = a->process[from].worker, of_other = a->process[to].worker;
	if (worker != SKEP_NO_INDEX && of_other != SKEP_NO_INDEX && worker != of_other)
		skep_relays_not_between(&a->relays, a->setup.scenario, worker, of_other);
	if (!a->setup.quiet)
		skep_relays_say_direct(&a->relays, a->process[from].hello.host, a->process[to].hello.host);
}

struct skep_lobby skep_admissions_lobby(struct skep_admissions *admissions)
{
	return (struct skep_lobby){.self = admissions,
		.record = on_record,
		.room = on_room,
		.left = on_left,
		.relayed = on_relayed,
		.direct = on_direct,
		.turn = skep_admissions_on_turn};
}

/* From the saver's thread. */
static void wake(void *context)
{
	const struct skep_admissions *a = context;
	const struct skep_transport transport = skep_mesh_transport(a->mesh);
	transport.wake(transport.self);
}

bool skep_admissions_attach(struct skep_admissions *admissions, struct skep_mesh *mesh, struct skep_diag *reterr)
{
	admissions->mesh = mesh;
	if (admissions->setup.states == NULL)
		return true;
	admissions->saver = skep_saver_create(wake, admissions);
	return admissions->saver != NULL || skep_fail(reterr, "no memory or no thread to keep states with");
}

void skep_admissions_detach(struct skep_admissions *admissions)
{
	if (admissions == NULL)
		return;
	skep_saver_destroy(admissions->saver);
	admissions->saver = NULL;
}

/* ---- the run --------------------------------------------------------------------------------------------------------- */

void skep_admissions_lost(struct skep_admissions *a, uint32_t rank)
{
	struct process *process = &a->process[rank];
	assert(a->clock == NULL);
	if (!process->there)
		return;
	fprintf(stderr, "skep: %s has left before the run began\n", process->hello.host);
	assert(process->worker == SKEP_NO_INDEX || a->here > 0);
	a->here -= process->worker != SKEP_NO_INDEX;
	free_place(a, process->worker);
	*process = (struct process){0};
}

uint64_t skep_admissions_refused(const struct skep_admissions *admissions)
{
	return admissions->refused;
}

static bool has_stage(const struct skep_admissions *a, uint32_t stage)
{
	for (uint32_t worker = 0; worker < a->setup.scenario->plan.workers; worker++) {
		if (a->setup.scenario->first_stage_of[worker] == stage && is_here(a, worker + 1))
			return true;
	}
	return false;
}

bool skep_admissions_complete(const struct skep_admissions *admissions)
{
	const struct skep_plan *plan = &admissions->setup.scenario->plan;
	if (admissions->setup.least == 0 || admissions->here == plan->workers)
		return admissions->here == plan->workers;
	for (uint32_t stage = 0; stage < plan->stages; stage++) {
		if (!has_stage(admissions, stage))
			return false;
	}
	return admissions->here >= admissions->setup.least;
}

bool *skep_admissions_begin(struct skep_admissions *a, const struct skep_clock *clock)
{
	bool *absent = calloc(a->ranks, sizeof *absent);
	assert(a->clock == NULL);
	if (absent == NULL)
		return NULL;
	a->clock = clock;
	for (uint32_t rank = 1; rank < a->ranks; rank++) {
		absent[rank] = !is_here(a, rank);
		if (absent[rank])
			continue;
		welcome(a, rank);
		if (a->process[rank].worker != SKEP_NO_INDEX)
			skep_status_begins(a->setup.status, a->process[rank].worker, 0);
	}
	return absent;
}

void skep_admissions_compare_relays(const struct skep_admissions *a)
{
	const struct skep_scenario *scenario = a->setup.scenario;
	bool *settled = calloc(scenario->topology.places, sizeof *settled);
	for (uint32_t rank = 1; settled != NULL && a->clock != NULL && rank < a->ranks; rank++) {
		const struct process *process = &a->process[rank];
		if (process->there && process->worker != SKEP_NO_INDEX && skep_mesh_stays(a->mesh, rank) &&
			skep_clock_now(a->clock) > process->since_ns + SKEP_SETTLED_NS)
			settled[skep_scenario_place(scenario, process->worker)] = true;
	}
	if (settled != NULL)
		skep_relays_compare(&a->relays, scenario, settled, stderr);
	free(settled);
}

static uint32_t fit(void *self, uint32_t worker, uint32_t rank)
{
	const struct skep_admissions *a = self;
	assert(worker < a->setup.scenario->plan.workers && rank < a->ranks);
	return skep_slot_fit(a->setup.scenario, worker, &a->process[rank].hello);
}

static void on_placed(void *self, uint32_t worker, uint32_t rank)
{
	struct skep_admissions *a = self;
	assert(worker < a->setup.scenario->plan.workers && rank < a->ranks);
	a->process[rank].worker = worker;
	for (uint32_t i = 0; i < a->relays.pairs; i++) {
		const uint32_t *pair = a->relays.pair[i];
		if (pair[0] == rank || pair[1] == rank)
			compare_pair(a, pair[0], pair[1]);
	}
	skep_status_begins(a->setup.status, worker, skep_clock_now(a->clock));
	if (!a->setup.quiet)
		fprintf(stderr, "skep: %s takes the place of worker %" PRIu32 "\n", a->process[rank].hello.host,
			worker);
}

struct skep_newcomers skep_admissions_newcomers(struct skep_admissions *admissions)
{
	return (struct skep_newcomers){.context = admissions, .fit = fit, .placed = on_placed};
}

struct skep_admissions *skep_admissions_create(const struct skep_admissions_setup *setup, struct skep_diag *reterr)
{
	struct skep_admissions *a = calloc(1, sizeof *a);
	if (a == NULL) {
		skep_fail(reterr, "no memory for those who join");
		return NULL;
	}
	a->setup = *setup;
	a->ranks = skep_admissions_ranks(setup->scenario);
	a->next = setup->scenario->plan.workers + 1;
	a->process = calloc(a->ranks, sizeof *a->process);
	a->taken = calloc(setup->scenario->plan.workers, sizeof *a->taken);
	a->agreeing = calloc(skep_plan_parts(&setup->scenario->plan), sizeof *a->agreeing);
	struct skep_offer *offer = &a->setup.offer;
	bool fine = a->process != NULL && a->taken != NULL && a->agreeing != NULL &&
	            skep_manifest_encode(setup->manifest, &a->list, &a->list_bytes) &&
	            skep_digest_of(a->list, a->list_bytes, offer->list);
	offer->list_bytes = a->list_bytes;
	offer->allocation_bytes = setup->allocation != NULL ? strlen(setup->allocation) : 0;
	if (fine && offer->allocation_bytes > 0)
		fine = skep_digest_of(setup->allocation, offer->allocation_bytes, offer->allocation);
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++)
		a->guest[i].fd = -1;
	for (uint32_t i = 0; fine && setup->scenario->plan.scale != NULL && i < setup->scenario->plan.workers; i++)
		a->taken[i] = setup->scenario->first_stage_of[i] == SKEP_NO_STAGE; /* until they are asked for */
	if (fine)
		return a;
	skep_fail(reterr, "no memory for those who join");
	skep_admissions_destroy(a);
	return NULL;
}

void skep_admissions_destroy(struct skep_admissions *admissions)
{
	if (admissions == NULL)
		return;
	for (uint32_t i = 0; i < SKEP_GUESTS_MAX; i++) {
		stop_fetching(&admissions->guest[i]);
		skep_arrival_abandon(admissions->guest[i].arrival);
	}
	skep_relays_finish(&admissions->relays);
	free(admissions->list);
	free(admissions->process);
	free(admissions->taken);
	free(admissions->agreeing);
	free(admissions);
}
