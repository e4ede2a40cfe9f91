/* SPDX-License-Identifier: Apache-2.0
 *
 * serve.c - see serve.h: what a run needs before the first process joins, the time until all are there, and the loop.
 */
#include "exec/serve/serve.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/signals.h"
#include "exec/loop/loop.h"
#include "exec/serve/admissions.h"
#include "exec/serve/keys.h"
#include "models/checkpoint/checkpoint_folder.h"
#include "scenarios/resume/resume.h"

#define REST_NS 50000000u

struct serving {
	const struct skep_scenario *scenario;
	const struct skep_serve_options *options;
	struct skep_keys keys;
	struct skep_ticket ticket;
	struct skep_admissions *admissions;
	struct skep_mesh *mesh;
	struct skep_checkpoint_folder states;
	struct skep_rejects rejects;
	struct skep_clock clock;
	int listener, signals;
};

/* ---- keys and tickets ------------------------------------------------------------------------------------------------ */

/* The one of an earlier process that is still good, or a new one. */
static bool choose_ticket(struct serving *s, struct skep_diag *reterr)
{
	uint32_t uses = s->options->admissions > 0 ? s->options->admissions : SKEP_ADMISSIONS_UNLIMITED;
	skep_authority_fingerprint(s->keys.authority, s->ticket.fingerprint);
	for (uint32_t i = 0; i < s->keys.tickets.count; i++) {
		struct skep_ticket_entry *entry = &s->keys.tickets.entry[i];
		if (s->options->new_ticket)
			skep_tickets_revoke(&s->keys.tickets, entry->secret);
		if (entry->revoked)
			continue;
		entry->left = s->options->admissions > 0 ? uses : entry->left;
		memcpy(s->ticket.secret, entry->secret, sizeof s->ticket.secret);
		return true;
	}
	return skep_tickets_add(&s->keys.tickets, uses, s->ticket.secret, reterr);
}

static bool open_keys(struct serving *s, struct skep_diag *reterr)
{
	return skep_keys_open(&s->keys, s->options->takes_keys ? s->options->keys : NULL, reterr) &&
	       choose_ticket(s, reterr) &&
	       skep_authority_write(s->keys.authority, &s->keys.tickets, s->options->keys, reterr);
}

/* Who comes back to a later process finds as many admissions left as there are. */
static void on_spent(void *context)
{
	const struct serving *s = context;
	struct skep_diag why = {0};
	if (!skep_authority_write(s->keys.authority, &s->keys.tickets, s->options->keys, &why))
		fprintf(stderr, "skep: %s: %s: after --resume the ticket would admit more\n", s->options->keys,
			why.message);
}

/* What those who join are to be given. */
static void name_server(const struct skep_serve_options *options, char *ret, size_t size)
{
	char host[256] = "";
	if (options->host != NULL)
		snprintf(host, sizeof host, "%s", options->host);
	else
		gethostname(host, sizeof host - 1);
	if (options->servers != NULL)
		snprintf(ret, size, "%s", options->servers);
	else
		snprintf(ret, size, "%s:%u", host, options->port);
}

void skep_serve_say_ticket(const struct skep_scenario *scenario, const struct skep_serve_options *options,
	const struct skep_ticket *ticket)
{
	char text[SKEP_TICKET_TEXT], least[24] = "", server[512];
	if (options->least > 0)
		snprintf(least, sizeof least, "%" PRIu32 " to ", options->least);
	skep_ticket_format(ticket, text, sizeof text);
	name_server(options, server, sizeof server);
	fprintf(stderr,
		"skep: serving `%s` on port %u: %s%" PRIu32 " worker%s to come. On each machine:\n\n"
		"  skep join %s --ticket %s%s\n\n",
		scenario->name, options->port, least, scenario->plan.workers, scenario->plan.workers == 1 ? "" : "s",
		server, text, options->servers != NULL ? " --stay" : "");
}

/* What a loss of this server costs, where that is more than the open round; NULL: it is not. */
static const char *loss_costs(const struct skep_plan *plan)
{
	if (plan->checkpoint_every == 0)
		return "the run begins with its first step: nothing is kept (add `checkpoint`)";
	if (plan->sharded && plan->together)
		return "the run goes on from what all workers hold, or from its newest checkpoint if one is gone too, or within "
		       "a step (`sync.zero`)";
	if (plan->async.on)
		return "the run goes on from its newest checkpoint: with `sync.method: async` the server alone knows what is in "
		       "a state";
	if (skep_plan_no_flush(plan))
		return "the run goes on from what workers hold, or from its newest checkpoint if stages are a step apart then "
		       "(`pipeline: pipedream`)";
	return plan->together ? NULL
	                      : "the run goes on from its newest checkpoint (`directory.back_with: checkpoints`)";
}

static void say_what_a_loss_costs(const struct serving *s)
{
	const char *costs = loss_costs(&s->scenario->plan);
	if (costs != NULL && !s->options->quiet)
		fprintf(stderr, "skep: if this server is lost, %s\n", costs);
}

/* From now on machines are asked for, if they are. */
static bool begin_scaling(const struct serving *s, struct skep_diag *reterr)
{
	char text[SKEP_TICKET_TEXT], server[512];
	if (s->options->scaler == NULL)
		return true;
	skep_ticket_format(&s->ticket, text, sizeof text);
	name_server(s->options, server, sizeof server);
	return skep_scaler_begin(s->options->scaler, server, text, reterr);
}

/* ---- until all are there --------------------------------------------------------------------------------------------- */

static void *no_landing(void *context, uint32_t peer, const struct skep_frame *frame, struct skep_buf *ret)
{
	(void)context;
	(void)peer;
	(void)frame;
	(void)ret;
	return NULL;
}

/* False: a signal or an error has come first. */
static bool wait_for_all(struct serving *s, struct skep_exec_result *ret, struct skep_diag *reterr)
{
	const struct skep_landing nowhere = {.memory = no_landing};
	struct skep_transport transport = skep_mesh_transport(s->mesh);
	struct skep_transport_event event;
	struct signalfd_siginfo info;
	while (!skep_admissions_complete(s->admissions)) {
		while (transport.poll(transport.self, &nowhere, &event)) {
			if (event.kind == SKEP_TRANSPORT_ARRIVED) /* before the run there is nothing to say */
				transport.bury(transport.self, event.peer);
			if (event.kind == SKEP_TRANSPORT_GONE || event.kind == SKEP_TRANSPORT_ARRIVED)
				skep_admissions_lost(s->admissions, event.peer);
			if (event.kind == SKEP_TRANSPORT_BROKEN)
				return skep_fail(reterr, "%s", event.reason);
		}
		if (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info) {
			ret->signal = (int)info.ssi_signo;
			return skep_fail(reterr, "ended by SIG%s before all workers were there",
				sigabbrev_np((int)info.ssi_signo));
		}
		transport.wait(transport.self, REST_NS);
	}
	return true;
}

/* ---- the run --------------------------------------------------------------------------------------------------------- */

static bool loop(struct serving *s, const struct skep_recorder *recorder, struct skep_exec_result *ret, bool *ret_clean,
	struct skep_diag *reterr)
{
	struct skep_transport transport = skep_mesh_transport(s->mesh);
	s->clock.start_ns = skep_monotonic_ns();
	s->keys.tickets.run = s->scenario->kept_as;
	on_spent(s);
	bool *absent = skep_admissions_begin(s->admissions, &s->clock);
	if (absent == NULL)
		return skep_fail(reterr, "no memory for those who join");
	struct skep_loop_setup setup = {.scenario = s->scenario,
		.pace = s->options->pace,
		.transport = &transport,
		.clock = &s->clock,
		.recorder = recorder,
		.rejects = &s->rejects,
		.signal_fd = s->signals,
		.absent = absent,
		.scale = s->options->scaler != NULL ? skep_scaler_want : NULL,
		.scale_context = s->options->scaler,
		.newcomers = skep_admissions_newcomers(s->admissions)};
	bool fine = skep_loop_run(&setup, ret, ret_clean, reterr);
	if (fine)
		skep_admissions_settle(s->admissions);
	skep_rejects_close(&s->rejects);
	free(absent);
	return fine;
}

static void say_strangers(const struct serving *s)
{
	struct skep_mesh_counts counts = skep_mesh_counts(s->mesh);
	if (counts.refused_handshakes + counts.crowded_out > 0)
		fprintf(stderr, "skep: refused %" PRIu64 " connections that did not prove who they are\n",
			counts.refused_handshakes + counts.crowded_out);
	if (skep_admissions_refused(s->admissions) > 0)
		fprintf(stderr, "skep: refused %" PRIu64 " machine%s that asked to join\n",
			skep_admissions_refused(s->admissions), skep_admissions_refused(s->admissions) == 1 ? "" : "s");
	if (counts.relayed_bytes > 0 && !s->options->quiet)
		fprintf(stderr, "skep: passed on %" PRIu64 " bytes for processes that cannot connect to each other\n",
			counts.relayed_bytes);
	if (!s->options->quiet)
		skep_admissions_compare_relays(s->admissions);
}

/* Where the states of all stages are kept. */
static bool open_states(struct serving *s, struct skep_diag *reterr)
{
	uint32_t moved;
	if (s->scenario->plan.checkpoint_every == 0)
		return true;
	s->states = skep_scenario_folder(s->scenario);
	if (!skep_checkpoint_folder_usable(&s->states, &moved, reterr))
		return false;
	skep_checkpoint_say_moved(&s->states, moved, stderr);
	return skep_resume_note_files(s->scenario, reterr);
}

static bool open_mesh(struct serving *s, const struct skep_manifest *manifest, struct skep_diag *reterr)
{
	const struct skep_admissions_setup admissions = {.scenario = s->scenario,
		.manifest = manifest,
		.authority = s->keys.authority,
		.tickets = &s->keys.tickets,
		.spent = on_spent,
		.spent_context = s,
		.status = s->options->status,
		.states = s->states.path != NULL ? &s->states : NULL,
		.lease = s->options->lease,
		.allocation = s->options->allocation,
		.version = s->options->version,
		.offer = {.run = s->keys.run,
			.seed = s->scenario->seed,
			.seeded = s->options->has_seed,
			.pace = s->options->pace,
			.device = (uint8_t)s->options->device,
			.silence_ns = (uint64_t)(s->options->silence_s * 1e9),
			.kept_as = s->scenario->kept_as,
			.kept_from = s->scenario->kept_from,
			.first_round = s->scenario->plan.first_round},
		.least = s->options->least,
		.quiet = s->options->quiet};
	s->admissions = skep_admissions_create(&admissions, reterr);
	if (s->admissions == NULL)
		return false;
	const struct skep_mesh_setup mesh = {.ranks = skep_admissions_ranks(s->scenario),
		.run = s->keys.run,
		.host = s->keys.host,
		.listener = s->listener,
		.silence_ns = admissions.offer.silence_ns,
		.rejects = &s->rejects,
		.lobby = skep_admissions_lobby(s->admissions)};
	s->mesh = skep_mesh_create(&mesh, reterr);
	s->listener = -1; /* the mesh closes it, also where it could not be made */
	return s->mesh != NULL && skep_admissions_attach(s->admissions, s->mesh, reterr);
}

bool skep_serve_run(const struct skep_scenario *scenario, const struct skep_manifest *manifest,
	const struct skep_serve_options *options, const struct skep_recorder *recorder, struct skep_exec_result *ret,
	struct skep_diag *reterr)
{
	struct serving s = {.scenario = scenario, .options = options, .listener = options->listener, .signals = -1};
	bool clean = false, fine;
	*ret = (struct skep_exec_result){.outcome = SKEP_FAILED};
	skep_quit_block(NULL);
	signal(SIGPIPE, SIG_IGN);
	s.signals = skep_quit_open();
	if (options->lease != NULL) {
		const struct skep_checkpoint_folder folder = skep_scenario_folder(scenario);
		skep_lease_begin(options->lease, &folder);
	}
	fine = open_keys(&s, reterr) && open_states(&s, reterr) && open_mesh(&s, manifest, reterr);
	if (fine) {
		if (!options->announced)
			skep_serve_say_ticket(scenario, options, &s.ticket);
		say_what_a_loss_costs(&s);
		fine = begin_scaling(&s, reterr) && wait_for_all(&s, ret, reterr) &&
		       loop(&s, recorder, ret, &clean, reterr);
		say_strangers(&s);
	}
	skep_admissions_detach(s.admissions);
	skep_mesh_destroy(s.mesh, clean);
	skep_admissions_destroy(s.admissions);
	skep_keys_close(&s.keys);
	if (s.listener >= 0)
		close(s.listener);
	if (s.signals >= 0)
		close(s.signals);
	return fine;
}
