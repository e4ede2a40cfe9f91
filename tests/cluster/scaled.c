/* SPDX-License-Identifier: Apache-2.0
 *
 * scaled.c - a run that asks for machines (plan->scale): the books on what is asked for and given back, by what core/scale/ says
 * of itself and not by its arithmetic; and the world that has machines, late or never.
 */
#include "tests/cluster/internal.h"
#include "tests/cluster/ledger_internal.h"

#define RETURNS_AT_ONCE 8u
#define NS_PER_MS UINT64_C(1000000)

static void broken(struct ledger *ledger, uint32_t round, const char *what, uint32_t a, uint32_t b)
{
	verdict_break(ledger->verdict, "I25", round, ANY, ANY, what, a, b);
}

static bool leaves(const struct membership *m)
{
	return m->leaving_epoch == m->peer.epoch;
}

/* Serves, has not asked to leave and was not told to. */
static bool stays(const struct ledger *ledger, uint32_t w)
{
	const struct membership *m = &ledger->membership[w];
	return m->in && !leaves(m) && ledger->scale.returned[w] != m->peer.epoch;
}

static uint64_t price(const struct ledger *ledger, uint32_t kind)
{
	const struct skep_plan *plan = ledger->plan;
	uint64_t price = 1;
	if (plan->price.of == NULL)
		return price;
	uint32_t series = plan->price.of[plan->scale->kind[kind].example];
	for (uint32_t i = plan->price.first[series]; i < plan->price.first[series + 1]; i++)
		if (plan->price.step[i].from_ms <= ledger->scale.changed_ns / NS_PER_MS)
			price = plan->price.step[i].microusd_per_h;
	return price;
}

/* All that was said in one step is one decision: no more than there may be, and beyond the fewest no more than may be paid. */
static void check_whole(struct ledger *ledger)
{
	const struct skep_scale *scale = ledger->plan->scale;
	struct scale_books *books = &ledger->scale;
	uint64_t wanted = 0, cost = 0;
	if (!books->unchecked)
		return;
	books->unchecked = false;
	for (uint32_t k = 0; k < scale->kinds; k++) {
		wanted += books->wanted[k];
		cost += books->wanted[k] * price(ledger, k);
	}
	if (wanted > scale->max)
		broken(ledger, ledger->rounds_closed, "%u machines are wanted, and %u is the most", (uint32_t)wanted,
			scale->max);
	if (wanted > scale->min && scale->budget_microusd_per_h > 0 && cost > scale->budget_microusd_per_h)
		broken(ledger, ledger->rounds_closed, "machines for %u are wanted, and %u may be paid", (uint32_t)cost,
			(uint32_t)scale->budget_microusd_per_h);
}

static void wanted(struct ledger *ledger, const struct skep_note *note)
{
	const struct skep_scale *scale = ledger->plan->scale;
	struct scale_books *books = &ledger->scale;
	uint32_t k = note->stage, there = 0;
	if (books->begun && ledger->now != books->changed_ns) {
		check_whole(ledger);
		if (ledger->now < books->changed_ns + scale->period_ns)
			broken(ledger, note->round, "machines of kind %u are wanted %u ns after the last change", k,
				(uint32_t)(ledger->now - books->changed_ns));
	}
	for (uint32_t i = 0; i < scale->kinds && !books->begun; i++)
		books->wanted[i] = scale->kind[i].start;
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		there += scale->kind_of[w] == k && stays(ledger, w);
	if (note->round != ledger->rounds_closed || note->wanted == books->wanted[k] || books->unasked)
		broken(ledger, note->round, "%u machines of kind %u are wanted, which is no change when a round closes",
			(uint32_t)note->wanted, k);
	if (note->wanted > scale->kind[k].workers || note->there > scale->kind[k].workers || note->there < there)
		broken(ledger, note->round, "%u machines are wanted, and there are said to be %u",
			(uint32_t)note->wanted, (uint32_t)note->there);
	books->begun = books->unasked = books->unchecked = true;
	books->wanted[k] = (uint32_t)note->wanted;
	books->kind = k;
	books->changed_ns = ledger->now;
}

void scale_asked(struct ledger *ledger, const struct skep_action *action)
{
	struct scale_books *books = &ledger->scale;
	if (!books->unasked || action->u.scale.kind != books->kind ||
		action->u.scale.machines != books->wanted[books->kind])
		broken(ledger, ledger->rounds_closed,
			"the world is asked for %u machines of kind %u, the books were not told",
			action->u.scale.machines, action->u.scale.kind);
	books->unasked = false;
}

/* Of the stage in which most stay, and there the one with the highest number. A newcomer that has joined for a round that has
 * not opened serves or not: while there is one only that another stays is sure. */
static void check_choice(struct ledger *ledger, const struct skep_note *note)
{
	const struct membership *told = &ledger->membership[note->peer.index];
	uint32_t stay[CLUSTER_STAGES] = {0}, best = SKEP_NO_INDEX, most = 2, joined = 0;
	uint32_t k = ledger->plan->scale->kind_of[note->peer.index];
	for (uint32_t w = 0; w < ledger->plan->workers; w++) {
		const struct membership *m = &ledger->membership[w];
		joined += m->in && m->since_round + 1 >= ledger->rounds_closed;
		if (stays(ledger, w))
			stay[m->stage]++;
	}
	for (uint32_t w = 0; w < ledger->plan->workers; w++)
		if (stays(ledger, w) && ledger->plan->scale->kind_of[w] == k &&
			stay[ledger->membership[w].stage] >= most) {
			most = stay[ledger->membership[w].stage];
			best = w;
		}
	bool may = stays(ledger, note->peer.index) && told->peer.epoch == note->peer.epoch &&
	           told->stage == note->stage && stay[told->stage] > 1;
	if (!may || (joined == 0 && best != note->peer.index))
		broken(ledger, note->round, "worker %u is told to leave, and not worker %u", note->peer.index, best);
}

static void returned(struct ledger *ledger, const struct skep_note *note)
{
	struct scale_books *books = &ledger->scale;
	check_whole(ledger);
	check_choice(ledger, note);
	books->returns = books->returned_ns == ledger->now ? books->returns + 1 : 1;
	books->returned_ns = ledger->now;
	if (books->returns > RETURNS_AT_ONCE || !books->begun)
		broken(ledger, note->round, "worker %u is told to leave as the %uth, or though all are wanted",
			note->peer.index, books->returns);
	books->returned[note->peer.index] = note->peer.epoch;
}

void scale_noted(struct ledger *ledger, const struct skep_note *note)
{
	const struct skep_plan *plan = ledger->plan;
	bool known = plan->scale && (note->kind == SKEP_NOTE_SCALED ? note->stage < plan->scale->kinds
								    : note->peer.index < plan->workers);
	if (!known)
		broken(ledger, note->round, "a note of kind %u, about %u", note->kind, note->stage);
	else
		(note->kind == SKEP_NOTE_SCALED ? wanted : returned)(ledger, note);
}

static bool tells(const struct skep_message *m)
{
	return m->kind == SKEP_MESSAGE_PEER && m->u.peer.alive && m->u.peer.leaving &&
	       m->u.peer.who.index == m->to.index;
}

void scale_sent(struct ledger *ledger, const struct skep_message *m)
{
	if (tells(m))
		ledger->scale.told[m->to.index] = m->u.peer.who.epoch;
	else if (m->kind == SKEP_MESSAGE_LEAVE)
		ledger->scale.asked[m->from.index] = m->from.epoch;
}

void scale_arrived(struct ledger *ledger, struct skep_peer who, const struct skep_message *m)
{
	if (tells(m) && m->u.peer.who.epoch == who.epoch)
		ledger->scale.heard[who.index] = who.epoch;
}

/* It is sent again in the same step, or has not been sent. */
void ledger_came_back(struct ledger *ledger, const struct skep_message *m)
{
	if (tells(m))
		ledger->scale.told[m->to.index] = 0;
	else if (m->kind == SKEP_MESSAGE_LEAVE)
		ledger->scale.asked[m->from.index] = 0;
}

/* Who is to leave is told so, asks to as soon as it has heard it, and goes between two rounds when that has arrived (I10).
 * Each of these messages may take as long as it likes. */
void scale_round_opens(struct ledger *ledger, uint32_t round)
{
	const struct skep_plan *plan = ledger->plan;
	const struct scale_books *books = &ledger->scale;
	if (plan->scale == NULL)
		return;
	check_whole(ledger);
	for (uint32_t w = 0; w < plan->workers; w++) {
		const struct membership *m = &ledger->membership[w];
		uint32_t epoch = m->peer.epoch;
		if (!m->in || epoch == 0 || books->returned[w] != epoch || leaves(m))
			continue;
		if (books->heard[w] == epoch ? books->asked[w] != epoch : books->told[w] != epoch)
			broken(ledger, round, "worker %u is to leave in epoch %u, and was not told or does not ask to",
				w, epoch);
	}
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

bool scaled_returned(const struct cluster *c, uint32_t index)
{
	return c->setup.plan->scale != NULL && index < c->setup.plan->workers &&
	       skep_node_returned(c->process[index].node);
}

/* Machines that are off, or were given back, are had after a while; one in four never is. */
void scaled_asked(struct cluster *c, const struct skep_action *action)
{
	const struct skep_plan *plan = c->setup.plan;
	uint32_t there = 0;
	for (uint32_t w = 0; w < plan->workers; w++)
		there += plan->scale->kind_of[w] == action->u.scale.kind && c->process[w].alive && !c->process[w].left;
	for (uint32_t w = 0; w < plan->workers && there < action->u.scale.machines; w++) {
		uint64_t random = mix64(c->setup.seed ^ mix64(c->now + w));
		bool is_off = !c->process[w].alive || c->process[w].left;
		if (plan->scale->kind_of[w] != action->u.scale.kind || !is_off || random % 4 == 0)
			continue;
		agenda_add(c, c->now + 1 + (random >> 8) % (8 * plan->liveness.fence_after_ns), EVENT_RESTART, w);
		there++;
	}
}
