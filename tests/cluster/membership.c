/* SPDX-License-Identifier: Apache-2.0
 *
 * membership.c - the ledger's part about workers: which one serves which stage, wants to leave and has been told that
 * it may, or migrates. A worker is in from the start or from JOINED until FENCED, LEFT or MIGRATED. From ADMITTED to
 * JOINED a newcomer is a member of reductions, and gets no work.
 */
#include "tests/cluster/ledger_internal.h"

#include <string.h>

static bool is_leaving(const struct membership *membership)
{
	return membership->in && membership->leaving_epoch == membership->peer.epoch;
}

/* Does any worker but `except` serve the stage? With `stays`: and has not said that it will leave. */
static bool another(const struct ledger *ledger, uint32_t stage, uint32_t except, uint32_t round, bool stays)
{
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		const struct membership *membership = &ledger->membership[w];
		if (w != except && membership->in && membership->stage == stage && membership->since_round < round &&
			books_able(ledger, membership, round) && !(stays && is_leaving(membership)))
			return true;
	}
	return false;
}

/* Rounds may overlap: it serves when the first reduction that it was a member of is committed. */
bool books_able(const struct ledger *ledger, const struct membership *membership, uint32_t round)
{
	if (!membership->in || membership->restorer || ledger->plan->async.on)
		return membership->in;
	const struct cell *first = &ledger->round[membership->since_round].cell[membership->stage];
	return membership->since_round < round && (!ledger->plan->delayed || first->committed);
}

bool books_round_stuck(const struct ledger *ledger, uint32_t round)
{
	bool able[CLUSTER_STAGES] = {false};
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		if (books_able(ledger, &ledger->membership[w], round))
			able[ledger->membership[w].stage] = true;
	for (uint32_t s = 0; s < ledger->plan->stages; s++)
		if (!able[s])
			return true;
	return false;
}

/* Does a worker of the one stage send new work to those of the other? */
static bool leads(const struct skep_plan *plan, uint32_t from, uint32_t to)
{
	return plan->routing == SKEP_ROUTING_TRAINER ? from == 0 && to != 0 && to != SKEP_NO_STAGE : to == from + 1;
}

void membership_begin(struct ledger *ledger)
{
	const struct skep_plan *plan = ledger->plan;
	for (uint32_t w = 0; w < plan->workers; w++) {
		struct membership *membership = &ledger->membership[w];
		membership->stage = plan->first_stage_of[w];
		membership->in = membership->restorer = membership->stage != SKEP_NO_STAGE;
		membership->peer = (struct skep_peer){w, membership->in};
		membership->known = ALL_KNOWN;
		ledger->news_epoch[w] = 1;
		for (uint32_t other = 0; membership->in && other < plan->workers; other++)
			if (leads(plan, membership->stage, plan->first_stage_of[other]))
				ledger->news[w][other] = (struct news){.serves = 1, .heard = true};
	}
}

bool books_seated(const struct ledger *ledger, struct skep_peer peer, uint32_t stage, uint32_t round)
{
	const struct membership *membership = &ledger->membership[peer.index];
	return membership->in && membership->peer.epoch == peer.epoch && membership->stage == stage &&
	       membership->since_round <= round;
}

bool books_member(const struct ledger *ledger, struct skep_peer peer, uint32_t stage, uint32_t round)
{
	const struct membership *membership = &ledger->membership[peer.index];
	return (membership->in || membership->admitted) && membership->peer.epoch == peer.epoch &&
	       membership->stage == stage && membership->since_round <= round;
}

bool books_stage_has_worker(const struct ledger *ledger, uint32_t stage)
{
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		if (ledger->membership[w].in && ledger->membership[w].stage == stage)
			return true;
	return false;
}

bool books_any_empty(const struct ledger *ledger)
{
	for (uint32_t s = 0; s < ledger->plan->stages; s++)
		if (ledger->empty[s])
			return true;
	return false;
}

/* ---- what the directory said ------------------------------------------------------------------------------------- */

/* A mover is next seen in the stage that was named, unless its new life was fenced on the way. */
static void check_destination(struct ledger *ledger, const struct membership *membership, const struct skep_note *note)
{
	if (membership->moved_epoch == 0 || membership->peer.epoch >= membership->moved_epoch)
		return;
	if (note->peer.epoch != membership->moved_epoch || note->stage != membership->moved_to)
		verdict_break(ledger->verdict, "I10", note->round, note->stage, ANY,
			"worker %u joins stage %u with epoch %u, but was to move to stage %u with epoch %u",
			note->peer.index, note->stage, note->peer.epoch, membership->moved_to, membership->moved_epoch);
}

void membership_fenced(struct ledger *ledger, const struct skep_note *note)
{
	struct membership *membership = &ledger->membership[note->peer.index];
	if (ledger->stopped)
		return;
	/* one that is still joining may be fenced under the epoch that it would have had */
	if (note->peer.epoch < membership->peer.epoch || (membership->in && note->peer.epoch != membership->peer.epoch))
		verdict_break(ledger->verdict, "I6", ANY, note->stage, ANY,
			"worker %u is fenced under epoch %u, but has %u", note->peer.index, note->peer.epoch,
			membership->peer.epoch);
	membership->peer = note->peer;
	membership->in = membership->admitted = false;
}

void membership_admitted(struct ledger *ledger, const struct skep_note *note)
{
	struct membership *membership = &ledger->membership[note->peer.index];
	if (membership->in || membership->admitted || note->peer.epoch <= membership->peer.epoch)
		verdict_break(ledger->verdict, "I6", note->round, note->stage, ANY,
			"worker %u is admitted with epoch %u, but is in, or had %u before", note->peer.index,
			note->peer.epoch, membership->peer.epoch);
	check_destination(ledger, membership, note);
	*membership = (struct membership){
		.peer = note->peer, .stage = note->stage, .since_round = note->round, .admitted = true};
}

/* A worker that joins was admitted, is where it was, and holds all of the state. */
void membership_joined(struct ledger *ledger, const struct skep_note *note)
{
	struct membership *membership = &ledger->membership[note->peer.index];
	uint32_t all = device_chunk_mask(ledger->plan, note->stage, 0, 1);
	if (membership->in || !membership->admitted || note->peer.epoch != membership->peer.epoch)
		verdict_break(ledger->verdict, "I6", note->round, note->stage, ANY,
			"worker %u joins with epoch %u, but was not admitted under it", note->peer.index,
			note->peer.epoch);
	if (note->stage != membership->stage || note->round < membership->since_round ||
		(membership->known & all) != all)
		verdict_break(ledger->verdict, "I3", note->round, note->stage, ANY,
			"worker %u joins stage %u in round %u, but was admitted to stage %u from round %u on, or lacks "
			"some of its state",
			note->peer.index, note->stage, note->round, membership->stage, membership->since_round);
	membership->in = true;
	membership->admitted = false;
	membership->since_round = note->round;
}

/* An epoch ends without harm only between two rounds, and not the last one of its stage. */
static void retire(struct ledger *ledger, const struct skep_note *note, const char *how)
{
	struct membership *membership = &ledger->membership[note->peer.index];
	uint32_t round = ledger->rounds_closed;
	if (!membership->in || note->peer.epoch != membership->peer.epoch)
		verdict_break(ledger->verdict, "I10", round, membership->stage, ANY,
			"worker %u %s under epoch %u, but has %u%s", note->peer.index, how, note->peer.epoch,
			membership->peer.epoch, membership->in ? "" : " and is out");
	if (round == 0 || ledger->round[round - 1].open || ledger->round[round].open)
		verdict_break(ledger->verdict, "I10", round, membership->stage, ANY,
			"worker %u %s, but not between two rounds", note->peer.index, how);
	if (!another(ledger, membership->stage, note->peer.index, round + 1, false)) /* who has joined by now serves */
		verdict_break(ledger->verdict, "I10", round, membership->stage, ANY,
			"worker %u %s, but is the last one of stage %u", note->peer.index, how, membership->stage);
	membership->in = false;
}

void membership_left(struct ledger *ledger, const struct skep_note *note)
{
	const struct membership *membership = &ledger->membership[note->peer.index];
	if (!is_leaving(membership) || note->stage != membership->stage)
		verdict_break(ledger->verdict, "I10", ANY, note->stage, ANY,
			"worker %u leaves stage %u, but did not ask, or serves stage %u", note->peer.index, note->stage,
			membership->stage);
	retire(ledger, note, "leaves");
}

void membership_moved(struct ledger *ledger, const struct skep_note *note)
{
	struct membership *membership = &ledger->membership[note->peer.index];
	skep_time period = ledger->plan->rebalance.period_ns;
	if (period == 0 || (ledger->moved && ledger->now - ledger->moved_ns < period))
		verdict_break(ledger->verdict, "I10", note->round, note->stage, ANY,
			"worker %u moves %llu us after another did, the period is %llu us", note->peer.index,
			(unsigned long long)(ledger->now - ledger->moved_ns) / 1000, (unsigned long long)period / 1000);
	if (is_leaving(membership) || note->stage == membership->stage)
		verdict_break(ledger->verdict, "I10", note->round, note->stage, ANY,
			"worker %u moves to stage %u, but is there, or wants to leave", note->peer.index, note->stage);
	const struct membership *last = &ledger->membership[ledger->mover];
	bool arriving =
		last->moved_epoch > last->peer.epoch || (last->moved_epoch == last->peer.epoch && last->admitted);
	if (ledger->moved && arriving)
		verdict_break(ledger->verdict, "I10", note->round, note->stage, ANY,
			"worker %u moves though worker %u, which moved before, has not arrived", note->peer.index,
			ledger->mover);
	ledger->mover = note->peer.index;
	retire(ledger, note, "moves");
	membership->moved_epoch = note->peer.epoch + 1;
	membership->moved_to = note->stage;
	ledger->moved = true;
	ledger->moved_ns = ledger->now;
}

/* Those who want to leave are let go as soon as a round has ended, if others stay. */
void membership_round_opens(struct ledger *ledger, uint32_t round)
{
	scale_round_opens(ledger, round);
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		const struct membership *membership = &ledger->membership[w];
		if (is_leaving(membership) && round > 0 && !ledger->plan->sharded && membership->since_round < round &&
			another(ledger, membership->stage, w, round + 1, false))
			verdict_break(ledger->verdict, "I10", round, membership->stage, ANY,
				"round %u opens, and worker %u of stage %u, which wants to leave, is kept", round, w,
				membership->stage);
	}
}

void membership_granted(struct ledger *ledger, const struct skep_note *note)
{
	bool others = pipes_fixed(ledger) ? pipes_other_stays(ledger)
	                                  : another(ledger, 0, note->peer.index, note->round, true);
	if (is_leaving(&ledger->membership[note->peer.index]) && others)
		verdict_break(ledger->verdict, "I10", note->round, 0, note->microbatch,
			"granted to worker %u, which wants to leave, though others stay", note->peer.index);
}

/* A standby worker is called in place of a missing one, and for no other reason; then it may be moved as any other. Of
 * those that are on their way the books know only who moves or was admitted. What came back is sent again. */
void membership_assigned(struct ledger *ledger, const struct skep_message *m)
{
	const struct skep_plan *plan = ledger->plan;
	uint32_t began = 0, now = 0, *newest = &ledger->assigned_epoch[m->to.index];
	bool known = m->to.epoch <= *newest || m->to.epoch == ledger->membership[m->to.index].moved_epoch;
	*newest = m->to.epoch > *newest ? m->to.epoch : *newest;
	for (uint32_t w = 0; w < plan->workers; w++) {
		const struct membership *membership = &ledger->membership[w];
		began += plan->first_stage_of[w] != SKEP_NO_STAGE;
		bool moves = membership->moved_epoch > membership->peer.epoch;
		now += w != m->to.index && (membership->in || membership->admitted || moves) && !is_leaving(membership);
	}
	bool waits = plan->stands_by && plan->stands_by[m->to.index] && plan->candidates.count < 2;
	if (waits && !known && now >= began)
		verdict_break(ledger->verdict, "I20", ANY, m->stage, ANY,
			"worker %u stands by, and is given stage %u though %u serve of the %u there were at the start",
			m->to.index, m->stage, now, began);
}

/* ---- what was heard ---------------------------------------------------------------------------------------------- */

static void heard_of_peer(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	struct skep_peer about = m->u.peer.who;
	struct news *news = &ledger->news[who.index][about.index];
	if (ledger->news_epoch[who.index] != who.epoch) /* a new incarnation knows no other worker */
		memset(ledger->news[who.index], 0, sizeof(ledger->news[who.index]));
	ledger->news_epoch[who.index] = who.epoch;
	news->heard |= m->u.peer.alive;
	if (!m->u.peer.alive &&
		about.epoch >= news->leaves) /* old news may make it known once more, as one that stays */
		news->leaves = 0;
	else if (m->u.peer.alive && m->u.peer.leaving)
		news->leaves = about.epoch > news->leaves ? about.epoch : news->leaves;
	else if (m->u.peer.alive)
		news->serves = about.epoch > news->serves ? about.epoch : news->serves;
}

void ledger_arrived(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	if (m->kind == SKEP_MESSAGE_LEAVE && who.index == ledger->plan->workers) {
		struct membership *membership = &ledger->membership[m->from.index];
		if (m->from.epoch == membership->peer.epoch)
			membership->leaving_epoch = m->from.epoch;
	} else if (m->kind == SKEP_MESSAGE_PEER && who.index < ledger->plan->workers && m->to.epoch == who.epoch &&
		   m->u.peer.who.index < ledger->plan->workers) {
		heard_of_peer(ledger, who, m);
		scale_arrived(ledger, who, m);
		held_arrived(ledger, who, m);
	}
}

/* May the worker have forgotten some of those it has heard of? */
static bool knows_a_sample(const struct ledger *ledger, uint32_t worker)
{
	uint32_t known = 0;
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		known += ledger->news[worker][w].heard;
	return ledger->view > 0 && known > ledger->view;
}

/* New work for one who will leave, though the sender has heard so and knows of another that stays. */
void membership_forward(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	const struct news *news = ledger->news[who.index];
	if (ledger->news_epoch[who.index] != who.epoch || news[m->to.index].leaves != m->to.epoch ||
		knows_a_sample(ledger, who.index) || pipes_fixed(ledger) || /* these have one partner, staying or not */
		ledger->plan->liveness.ban ==
			SKEP_BAN_AT_ONCE) /* and here those that stay may be banned, which no message tells */
		return;
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		const struct membership *membership = &ledger->membership[w];
		if (w != m->to.index && membership->in && !is_leaving(membership) &&
			membership->stage == m->stage + 1u && news[w].serves == membership->peer.epoch)
			verdict_break(ledger->verdict, "I10", m->round, m->stage, m->microbatch,
				"worker %u sends new work to worker %u, which will leave, and not to worker %u",
				who.index, m->to.index, w);
	}
}
