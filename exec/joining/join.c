/* SPDX-License-Identifier: Apache-2.0
 *
 * join.c - see join.h, and words.h for what is said in which order. Until the run begins this process has nothing else to do, so
 * it waits for each answer; afterwards its connection belongs to the mesh.
 */
#include "exec/joining/join_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/options.h"
#include "base/process/signals.h"
#include "base/process/thread_pool.h"
#include "exec/joining/states.h"
#include "exec/loop/loop.h"
#include "exec/tcp/mesh.h"
#include "models/checkpoint/checkpoint_folder.h"

#define CONNECT_MS 10000
#define CONNECT_EACH_MS 3000   /* where there are several servers, of which most are not expected to answer */
#define ANSWER_NS 30000000000u /* serve answers at once, or not at all */
#define BUSY_MS 200            /* between two looks at a file that another process receives */
#define SHOW_NS 1000000000u

/* ---- one record after the other -------------------------------------------------------------------------------------- */

/* Waits for something to happen on the connection. */
static void turn(struct skep_joining *j, int most_ms)
{
	struct pollfd ready = {.fd = j->channel.fd, .events = POLLIN};
	if (j->channel.wants_write)
		ready.events |= POLLOUT;
	poll(&ready, 1, most_ms);
	bool open = j->channel.state == SKEP_CHANNEL_OPEN;
	uint64_t often_ns = j->offer.silence_ns > 0 && j->offer.silence_ns / 5 < SKEP_CHANNEL_PING_NS
	                            ? j->offer.silence_ns / 5
	                            : SKEP_CHANNEL_PING_NS;
	if (open && skep_monotonic_ns() > j->channel.spoke_ns + often_ns && skep_channel_has_room(&j->channel, 0))
		skep_channel_put(&j->channel, SKEP_RECORD_PING, NULL, 0, NULL, 0);
	skep_channel_advance(&j->channel);
}

void skep_joining_say(struct skep_joining *j, uint8_t type, const union skep_words *words)
{
	assert(type > 0 && type < SKEP_RECORD_TYPES);
	uint8_t content[SKEP_RECORD_MAX];
	size_t bytes = skep_words_encode(type, words, content);
	while (j->channel.state == SKEP_CHANNEL_OPEN && !skep_channel_has_room(&j->channel, bytes))
		turn(j, 100);
	if (j->channel.state != SKEP_CHANNEL_OPEN)
		return;
	skep_channel_put(&j->channel, type, content, bytes, NULL, 0);
	skep_channel_advance(&j->channel);
}

static bool lost(const struct skep_joining *j, struct skep_diag *reterr)
{
	return skep_fail(reterr, "the connection to %.200s has ended: %s", j->options.server,
		j->channel.why != NULL ? j->channel.why : "closed");
}

/* Has a server that speaks to its members all the time said nothing for longer than it would bear itself? */
static bool is_silent(const struct skep_joining *j)
{
	return j->waits && skep_monotonic_ns() > j->channel.heard_ns + j->offer.silence_ns;
}

/* The next record, of one of `types`, which end with 0; within `most_ns` of silence. */
static bool hear(struct skep_joining *j, const char *types, uint64_t most_ns, uint8_t *ret_type, union skep_words *ret,
	struct skep_diag *reterr)
{
	assert(types[0] != 0);
	uint64_t until_ns = skep_monotonic_ns() + most_ns;
	struct skep_record record;
	for (;;) {
		while (!skep_channel_read(&j->channel, &record)) {
			if (j->channel.state == SKEP_CHANNEL_CLOSED)
				return lost(j, reterr);
			if (skep_monotonic_ns() > until_ns || is_silent(j))
				return skep_fail(reterr, "%.200s does not answer", j->options.server);
			turn(j, 100);
		}
		if (record.type == SKEP_RECORD_PING) {
			until_ns = skep_monotonic_ns() + most_ns;
			continue;
		}
		if (!skep_words_decode(&record, ret) ||
			(record.type != SKEP_RECORD_REFUSED && strchr(types, record.type) == NULL))
			return skep_fail(reterr, "%.200s says what no skep says", j->options.server);
		*ret_type = record.type;
		if (record.type != SKEP_RECORD_REFUSED)
			return true;
		j->for_good = ret->refused.for_good;
		return skep_fail(reterr, "%.200s refuses this machine: %s", j->options.server, ret->refused.reason);
	}
}

bool skep_joining_answer(struct skep_joining *j, uint8_t type, union skep_words *ret, struct skep_diag *reterr)
{
	uint8_t got;
	return hear(j, (const char[]){(char)type, 0}, ANSWER_NS, &got, ret, reterr);
}

/* ---- the way there --------------------------------------------------------------------------------------------------- */

/* To the one that is named j->server. */
static bool connect_one(struct skep_joining *j, int timeout_ms, struct skep_diag *reterr)
{
	int fd = skep_endpoint_connect(j->server, timeout_ms, reterr);
	assert(j->channel.state == SKEP_CHANNEL_CLOSED);
	if (fd < 0)
		return false;
	if (!skep_channel_open(&j->channel, fd, true, j->guest, false)) /* which has closed it */
		return skep_fail(reterr, "no memory for a connection");
	uint64_t until_ns = skep_monotonic_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
	while (j->channel.state < SKEP_CHANNEL_OPEN) {
		if (skep_monotonic_ns() > until_ns)
			return skep_fail(reterr, "%.200s does not answer as `skep serve` does", j->server);
		turn(j, 100);
	}
	if (j->channel.state == SKEP_CHANNEL_OPEN)
		return true;
	return skep_fail(reterr,
		"%.200s is not the server that the ticket is of (%s): copy the whole line that the server of this run "
		"has printed",
		j->server, j->channel.why != NULL ? j->channel.why : "closed");
}

bool skep_joining_connect(struct skep_joining *j, const struct skep_ticket *ticket, struct skep_diag *reterr)
{
	const char *left = j->options.server;
	bool several = strchr(left, ',') != NULL;
	struct skep_diag why = {0};
	assert(j->guest == NULL);
	j->guest = skep_tls_guest(ticket->fingerprint, reterr);
	while (j->guest != NULL && skep_endpoint_next(&left, j->server)) {
		why = (struct skep_diag){0};
		if (connect_one(j, several ? CONNECT_EACH_MS : CONNECT_MS, &why)) {
			j->options.server = j->server;
			return true;
		}
		skep_channel_close(&j->channel);
	}
	if (reterr->set)
		return false;
	return several ? skep_fail(reterr, "no server of %.200s: %.250s", j->options.server, why.message)
	               : skep_fail(reterr, "%s", why.message);
}

void skep_joining_introduce(struct skep_joining *j, const struct skep_ticket *ticket)
{
	union skep_words words = {0};
	struct skep_hello *hello = &words.hello;
	assert(j->channel.state == SKEP_CHANNEL_OPEN);
	hello->protocol = SKEP_PROTOCOL;
	snprintf(hello->version, sizeof hello->version, "%s", j->options.version);
	memcpy(hello->secret, ticket->secret, sizeof hello->secret);
	gethostname(hello->host, sizeof hello->host - 1);
	snprintf(hello->gpu, sizeof hello->gpu, "%s", j->options.gpu != NULL ? j->options.gpu : "");
	hello->memory_bytes = (uint64_t)j->options.memory_bytes;
	hello->cores = skep_thread_pool_cores();
	hello->port = j->port;
	hello->worker = j->options.worker;
	hello->asks = j->asks;
	skep_joining_say(j, SKEP_RECORD_HELLO, &words);
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static void show(struct skep_joining *j, bool last)
{
	uint64_t now_ns = skep_monotonic_ns();
	bool terminal = skep_say_draws();
	if (j->options.quiet || !terminal || j->to_fetch == 0 || (!last && now_ns < j->shown_ns + SHOW_NS))
		return;
	j->shown_ns = now_ns;
	fprintf(stderr, "\rskep: %.1f of %.1f MB received%s", (double)j->fetched / 1e6, (double)j->to_fetch / 1e6,
		last ? "\n" : "");
}

static bool fetch_to_memory(struct skep_joining *j, const uint8_t hash[SKEP_HASH_BYTES], uint64_t bytes, uint8_t **ret,
	struct skep_diag *reterr)
{
	union skep_words words = {0};
	uint8_t digest[SKEP_HASH_BYTES];
	uint64_t have = 0;
	assert(j->channel.state != SKEP_CHANNEL_CONNECTING);
	if (bytes == 0 || bytes > SKEP_MANIFEST_BYTES_MAX)
		return skep_fail(reterr, "%.200s offers a list of files that cannot be", j->options.server);
	*ret = malloc(bytes + 1);
	if (*ret == NULL)
		return skep_fail(reterr, "no memory for a list of files");
	memcpy(words.fetch.hash, hash, SKEP_HASH_BYTES);
	skep_joining_say(j, SKEP_RECORD_FETCH, &words);
	while (have < bytes && skep_joining_answer(j, SKEP_RECORD_PIECE, &words, reterr)) {
		if (words.piece.offset != have || words.piece.count > bytes - have)
			return skep_fail(reterr, "%.200s sends other bytes than were asked for", j->options.server);
		memcpy(*ret + have, words.piece.bytes, words.piece.count);
		have += words.piece.count;
	}
	(*ret)[have] = '\0';
	if (have < bytes)
		return false;
	if (!skep_digest_of(*ret, bytes, digest) || memcmp(digest, hash, sizeof digest) != 0)
		return skep_fail(reterr, "%.200s sends other bytes than it has offered", j->options.server);
	return true;
}

static bool receive(struct skep_joining *j, struct skep_cache_part *part, struct skep_diag *reterr)
{
	union skep_words words = {0};
	assert(part->offset <= part->bytes);
	memcpy(words.fetch.hash, part->digest, SKEP_HASH_BYTES);
	words.fetch.offset = part->offset;
	j->fetched += part->offset;
	if (part->offset < part->bytes)
		skep_joining_say(j, SKEP_RECORD_FETCH, &words);
	while (part->offset < part->bytes) {
		if (!skep_joining_answer(j, SKEP_RECORD_PIECE, &words, reterr) ||
			!skep_cache_append(part, words.piece.offset, words.piece.bytes, words.piece.count, reterr)) {
			skep_cache_leave(part);
			return false;
		}
		j->fetched += words.piece.count;
		show(j, false);
	}
	return true;
}

/* What is wrong with a file that has come is said of the file as the server calls it. */
static bool name_file(const struct skep_manifest_entry *entry, struct skep_diag *reterr)
{
	char message[sizeof reterr->message];
	if (reterr->file[0] != '\0')
		return false;
	snprintf(message, sizeof message, "%s", reterr->message);
	*reterr = (struct skep_diag){.files = reterr->files};
	return skep_fail(reterr, "%.300s %.600s", entry->path, message);
}

static bool fetch_file(struct skep_joining *j, const struct skep_manifest_entry *entry, struct skep_diag *reterr)
{
	struct skep_cache_part part;
	enum skep_cache_begun begun;
	if (entry->kind != SKEP_MANIFEST_FILE || skep_cache_has(&j->cache, entry->digest, entry->bytes))
		return true;
	j->to_fetch += entry->bytes;
	while ((begun = skep_cache_begin(&j->cache, entry->digest, entry->bytes, &part, reterr)) == SKEP_CACHE_BUSY)
		turn(j, BUSY_MS);
	if (begun == SKEP_CACHE_BEGUN)
		return receive(j, &part, reterr) && (skep_cache_commit(&part, reterr) || name_file(entry, reterr));
	j->fetched += entry->bytes;
	return begun == SKEP_CACHE_WHOLE;
}

static bool fetch_all(struct skep_joining *j, struct skep_joined *ret, struct skep_diag *reterr)
{
	char name[32];
	uint8_t *bytes = NULL;
	bool fine = fetch_to_memory(j, j->offer.list, j->offer.list_bytes, &bytes, reterr) &&
	            skep_manifest_decode(bytes, j->offer.list_bytes, &j->manifest, reterr);
	free(bytes);
	if (fine && j->offer.allocation_bytes > 0)
		fine = fetch_to_memory(
			j, j->offer.allocation, j->offer.allocation_bytes, (uint8_t **)&j->allocation, reterr);
	for (uint32_t i = 0; fine && i < j->manifest.entries; i++)
		fine = fetch_file(j, &j->manifest.entry[i], reterr);
	show(j, true);
	snprintf(name, sizeof name, "%016" PRIx64, j->offer.run);
	return fine && skep_cache_tree(&j->cache, name, &j->manifest, ret->root, ret->scenario, reterr);
}

struct skep_joining *skep_joining_create(const struct skep_join_options *options)
{
	struct skep_joining *j = calloc(1, sizeof *j);
	signal(SIGPIPE, SIG_IGN);
	if (j != NULL)
		*j = (struct skep_joining){
			.options = *options, .listener = -1, .channel = {.state = SKEP_CHANNEL_CLOSED, .fd = -1}};
	return j;
}

bool skep_joining_check(const char *server, const char *ticket, struct skep_diag *reterr)
{
	struct skep_ticket parsed;
	if (!skep_endpoint_check_list(server, reterr))
		return false;
	return ticket != NULL ? skep_ticket_parse(ticket, &parsed, reterr)
	                      : skep_fail(reterr, "expected --ticket, which `skep serve` has printed");
}

/* What is left of the run is handed over, and then all begin anew, or it is over. */
static bool hand_over(struct skep_joining *j, uint64_t run, uint8_t *ret_type, struct skep_diag *reterr)
{
	union skep_words words;
	skep_left_bring(&j->options, run);
	skep_joining_say(j, SKEP_RECORD_GATHERS, &(union skep_words){0});
	return hear(j, (const char[]){SKEP_RECORD_GATHERS, SKEP_RECORD_OVER, 0}, ANSWER_NS, ret_type, &words, reterr);
}

/* To the same server, from the beginning. */
static bool connect_again(struct skep_joining *j, const struct skep_ticket *ticket, struct skep_diag *reterr)
{
	skep_channel_close(&j->channel);
	SSL_CTX_free(j->guest);
	j->guest = skep_tls_guest(ticket->fingerprint, reterr);
	return j->guest != NULL && connect_one(j, CONNECT_MS, reterr);
}

/* Until there is an offer, or the run is over. */
static bool hear_offer(
	struct skep_joining *j, const struct skep_ticket *ticket, bool *ret_over, struct skep_diag *reterr)
{
	static const char offers[] = {SKEP_RECORD_OFFER, SKEP_RECORD_OVER, SKEP_RECORD_GATHERS, 0};
	union skep_words words;
	uint8_t type = SKEP_RECORD_GATHERS;
	if (!skep_joining_connect(j, ticket, reterr))
		return false;
	for (bool again = false; type == SKEP_RECORD_GATHERS; again = true) {
		if (again && !connect_again(j, ticket, reterr))
			return false;
		skep_joining_introduce(j, ticket);
		if (!hear(j, offers, ANSWER_NS, &type, &words, reterr) ||
			(type == SKEP_RECORD_GATHERS && !hand_over(j, words.gathers, &type, reterr)))
			return false;
	}
	*ret_over = type == SKEP_RECORD_OVER;
	j->offer = words.offer;
	return true;
}

struct skep_joining *skep_joining_begin(
	const struct skep_join_options *options, struct skep_joined *ret, bool *ret_for_good, struct skep_diag *reterr)
{
	struct skep_ticket ticket;
	struct skep_joining *j = skep_joining_create(options);
	*ret_for_good = true;
	if (j == NULL) {
		skep_fail(reterr, "no memory");
		return NULL;
	}
	j->for_good = true;
	bool fine = skep_joining_check(options->server, options->ticket, reterr) &&
	            skep_ticket_parse(options->ticket, &ticket, reterr) &&
	            skep_cache_open(options->cache, &j->cache, reterr);
	if (fine)
		j->listener = skep_endpoint_listen(options->listen != NULL ? options->listen : ":0", &j->port, reterr);
	if (fine && j->listener >= 0) {
		j->for_good = false;
		fine = hear_offer(j, &ticket, &ret->over, reterr) && !ret->over && fetch_all(j, ret, reterr);
	}
	*ret_for_good = j->for_good;
	if (!fine || j->listener < 0) {
		skep_joining_finish(j);
		return NULL;
	}
	ret->manifest = &j->manifest;
	ret->allocation = j->allocation;
	ret->offer = j->offer;
	return j;
}

/* ---- a process ---------------------------------------------------------------------------------------------------------- */

static bool take_slot(struct skep_joining *j, struct skep_diag *reterr)
{
	union skep_words words = {0};
	assert(j->identity == NULL);
	j->identity = skep_identity_create(reterr);
	if (j->identity == NULL)
		return false;
	words.ready.count = (uint16_t)skep_identity_public(j->identity, words.ready.byte);
	skep_joining_say(j, SKEP_RECORD_READY, &words);
	if (!skep_joining_answer(j, SKEP_RECORD_ADMITTED, &words, reterr))
		return false;
	j->admitted = words.admitted;
	const struct skep_blob *own = &j->admitted.certificate, *authority = &j->admitted.authority;
	if (!skep_identity_adopt(j->identity, own->byte, own->count, authority->byte, authority->count, reterr))
		return false;
	j->host = skep_tls_server(j->identity, false, reterr);
	j->client = j->host != NULL ? skep_tls_client(j->identity, reterr) : NULL;
	return j->client != NULL;
}

static bool slot_fits(const struct skep_joining *j, const struct skep_scenario *scenario)
{
	uint32_t workers = scenario->plan.workers, rank = j->admitted.rank;
	bool begins = rank <= workers && j->admitted.worker == rank - 1;
	return rank > 0 && rank < j->admitted.ranks && j->admitted.ranks > workers &&
	       (begins || (rank > workers && j->admitted.worker == SKEP_NO_INDEX));
}

/* The device, and the folder for checkpoints where the scenario has one. */
static bool prepare(struct skep_joining *j, const struct skep_scenario *scenario, struct skep_loop_setup *setup,
	struct skep_states *states, struct skep_diag *reterr)
{
	assert(setup->device == NULL);
	uint32_t moved = 0, worker = j->admitted.worker, cores = skep_thread_pool_cores();
	uint32_t stage = worker == SKEP_NO_INDEX ? SKEP_NO_STAGE : scenario->first_stage_of[worker];
	struct skep_device_place place = setup->device_place;
	if (!slot_fits(j, scenario))
		return skep_fail(reterr, "%.200s gives a place that the scenario has not", j->options.server);
	if (place.threads > cores)
		return skep_fail(reterr, "cluster.threads: %" PRIu32 " threads, but this machine has %" PRIu32 " cores",
			place.threads, cores);
	place.candidate = stage == SKEP_NO_STAGE ? 0 : skep_plan_candidate_of(&scenario->plan, worker);
	setup->device = skep_device_create_on(setup->device_kind, &place, &scenario->training, stage, reterr);
	if (setup->device == NULL || scenario->plan.checkpoint_every == 0)
		return setup->device != NULL;
	*states = (struct skep_states){
		.folder = skep_scenario_folder(scenario), .options = &j->options, .left = j->options.left};
	if (states->left != NULL) /* of what this process makes, the state will be newer */
		states->left->version = states->left->presumed = 0;
	setup->orphaned = states->left != NULL ? skep_states_orphaned : NULL;
	setup->orphaned_context = states;
	setup->keeper = skep_states_keeper(states);
	if (!skep_checkpoint_folder_usable(&states->folder, &moved, reterr))
		return false;
	skep_device_set_keeper(setup->device, &setup->keeper);
	skep_device_take_up(setup->device, scenario->plan.first_round,
		stage == SKEP_NO_STAGE ? 0 : skep_plan_first_rank(&scenario->plan, worker), reterr);
	return !reterr->set;
}

void skep_joining_decline(struct skep_joining *j, const char *reason)
{
	union skep_words words = {0};
	snprintf(words.prepared.reason, sizeof words.prepared.reason, "%s", reason);
	for (char *c = words.prepared.reason; *c != '\0'; c++)
		*c = (unsigned char)*c < 32 || *c == 127 ? ' ' : *c;
	skep_joining_say(j, SKEP_RECORD_PREPARED, &words);
	uint64_t until_ns = skep_monotonic_ns() + UINT64_C(1000000000);
	while (j->channel.state == SKEP_CHANNEL_OPEN && !skep_channel_idle(&j->channel) &&
		skep_monotonic_ns() < until_ns)
		turn(j, 10);
}

/* Until the run begins. Who is there comes before it. */
static bool wait_for_go(struct skep_joining *j, struct skep_diag *reterr)
{
	union skep_words words = {0};
	uint8_t type;
	assert(!j->waits && j->members == 0);
	words.prepared.fine = true;
	skep_joining_say(j, SKEP_RECORD_PREPARED, &words);
	j->channel.heard_ns = skep_monotonic_ns();
	j->waits = true;
	if (!j->options.quiet && j->admitted.worker != SKEP_NO_INDEX)
		fprintf(stderr, "skep: this is worker %" PRIu32 "; the run begins when all are there\n",
			j->admitted.worker);
	else if (!j->options.quiet)
		fputs("skep: this machine stands by for the place of a worker that is lost\n", stderr);
	for (;;) {
		if (!hear(j, (const char[]){SKEP_RECORD_MEMBER, SKEP_RECORD_GO, 0}, UINT64_MAX / 2, &type, &words,
			    reterr))
			return false;
		if (type == SKEP_RECORD_GO)
			break;
		if (words.member.rank == 0 || words.member.rank >= j->admitted.ranks ||
			words.member.rank == j->admitted.rank)
			return skep_fail(reterr, "%.200s says what no skep says", j->options.server);
		if (!skep_grow(&j->member, j->members, sizeof *j->member))
			return skep_fail(reterr, "no memory for the members of the run");
		j->member[j->members++] = words.member;
	}
	uint64_t now_ns = skep_monotonic_ns();
	j->clock.start_ns = now_ns > words.go ? now_ns - words.go : 0;
	if (!j->options.quiet && j->admitted.worker != SKEP_NO_INDEX)
		fputs("skep: the run has begun\n", stderr);
	return true;
}

/* ---- the run --------------------------------------------------------------------------------------------------------- */

/* The mesh with all ranks in it; *ret_absent [ranks] is to be freed. */
static struct skep_mesh *enter(
	struct skep_joining *j, struct skep_rejects *rejects, bool **ret_absent, struct skep_diag *reterr)
{
	const struct skep_mesh_setup setup = {.rank = j->admitted.rank,
		.ranks = j->admitted.ranks,
		.run = j->offer.run,
		.host = j->host,
		.client = j->client,
		.listener = j->listener,
		.silence_ns = j->offer.silence_ns,
		.rejects = rejects};
	struct skep_mesh *mesh = skep_mesh_create(&setup, reterr);
	assert(j->listener >= 0 && j->admitted.rank < j->admitted.ranks);
	j->listener = -1;
	*ret_absent = calloc(j->admitted.ranks, sizeof **ret_absent);
	if (mesh == NULL || *ret_absent == NULL) {
		skep_mesh_destroy(mesh, false);
		return NULL;
	}
	for (uint32_t rank = 1; rank < j->admitted.ranks; rank++)
		(*ret_absent)[rank] = rank != j->admitted.rank;
	skep_mesh_member(mesh, &(struct skep_member){0}, false);
	if (!skep_mesh_attach(mesh, 0, &j->channel))
		skep_fail(reterr, "no memory for a connection");
	for (size_t i = 0; i < j->members; i++) {
		(*ret_absent)[j->member[i].rank] = false;
		skep_mesh_member(mesh, &j->member[i], false);
	}
	return mesh;
}

static bool take_part(
	struct skep_joining *j, struct skep_loop_setup *setup, struct skep_exec_result *ret, struct skep_diag *reterr)
{
	struct skep_rejects rejects = {.rank = j->admitted.rank};
	bool clean = false, *absent = NULL, fine = false;
	assert(j->waits && setup->device != NULL);
	struct skep_mesh *mesh = enter(j, &rejects, &absent, reterr);
	if (mesh != NULL && !reterr->set) {
		struct skep_transport transport = skep_mesh_transport(mesh);
		setup->transport = &transport;
		setup->clock = &j->clock;
		setup->rejects = &rejects;
		setup->absent = absent;
		setup->farewell_ns = (uint64_t)(j->options.farewell_s * 1e9);
		fine = skep_loop_run(setup, ret, &clean, reterr);
		if (!fine && skep_mesh_parted(mesh) != NULL) {
			*reterr = (struct skep_diag){0}; /* the loop knows that rank 0 is gone, and not why */
			skep_fail(reterr, "lost %.200s: %s", j->options.server, skep_mesh_parted(mesh));
		}
		skep_rejects_close(&rejects);
	}
	skep_mesh_destroy(mesh, clean);
	free(absent);
	return fine;
}

bool skep_joining_run(struct skep_joining *j, const struct skep_scenario *scenario, struct skep_exec_result *ret,
	bool *ret_for_good, struct skep_diag *reterr)
{
	struct skep_states states = {0};
	struct skep_loop_setup setup = {.scenario = scenario,
		.pace = j->offer.pace,
		.device_kind = (enum skep_device_kind)j->offer.device,
		.device_place = {.threads = j->offer.device == SKEP_DEVICE_CPU ? scenario->threads : 1},
		.signal_fd = -1};
	*ret = (struct skep_exec_result){.outcome = SKEP_FAILED};
	bool prepared = take_slot(j, reterr);
	if (prepared && !prepare(j, scenario, &setup, &states, reterr)) {
		j->for_good = !states.lost;
		skep_joining_decline(j, reterr->message);
		prepared = false;
	}
	bool fine = false;
	if (prepared && wait_for_go(j, reterr)) {
		skep_quit_block(NULL);
		setup.signal_fd = skep_quit_open();
		fine = take_part(j, &setup, ret, reterr);
		if (setup.signal_fd >= 0)
			close(setup.signal_fd);
	}
	skep_device_destroy(setup.device);
	*ret_for_good = j->for_good;
	return fine;
}

void skep_joining_finish(struct skep_joining *j)
{
	if (j == NULL)
		return;
	skep_channel_close(&j->channel);
	SSL_CTX_free(j->guest);
	SSL_CTX_free(j->host);
	SSL_CTX_free(j->client);
	skep_identity_destroy(j->identity);
	skep_manifest_finish(&j->manifest);
	skep_cache_close(&j->cache);
	if (j->listener >= 0)
		close(j->listener);
	free(j->allocation);
	free(j->member);
	free(j);
}
