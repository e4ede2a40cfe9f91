/* SPDX-License-Identifier: Apache-2.0
 *
 * outage.c - the process of the directory is lost, and another one goes on in its place: what becomes of the test world, and the
 * referee on it (I27). All processes end; those that live begin again, with the epochs of a new run, at the newest version of
 * which the states of all stages are kept.
 *
 * Kept true: nothing that was sent, or was to be done, before a loss is heard or done behind it. Deaths and restarts go on
 * meanwhile: a process that is dead when all begin again is one that the directory waits for in vain.
 */
#include "tests/cluster/internal.h"
#include "tests/cluster/ledger_internal.h"

#include <string.h>

/* ---- the referee ------------------------------------------------------------------------------------------------- */

/* The newest version of which the directory has called the states of all stages kept, and none is removed; else what all began
 * with. */
static uint32_t kept_of_all(const struct ledger *ledger, uint32_t began)
{
	uint32_t newest = began;
	for (uint32_t version = began + 1; version <= ledger->plan->rounds; version++) {
		bool all = true;
		for (uint32_t s = 0; s < ledger->plan->stages; s++) {
			const uint32_t *whole = ledger->whole[s];
			all &= whole[0] == version || whole[1] == version || whole[2] == version;
		}
		newest = all ? version : newest;
	}
	return newest;
}

struct past { /* what outlasts a loss, of the books */
	struct ledger_totals round[CLUSTER_ROUNDS];
	uint64_t parameter[CLUSTER_STAGES][CLUSTER_ELEMENTS];
	uint32_t rounds_before;
	uint64_t undone;
};

/* Of the rounds that stay, what was summed up of them; of the others nothing: they are closed once more, or the run fails. */
static struct past keep(const struct ledger *ledger, uint32_t first)
{
	const struct skep_plan *plan = ledger->plan;
	struct past past = {.rounds_before = ledger->rounds_before, .undone = ledger->undone};
	past.undone += ledger->rounds_closed > first ? ledger->rounds_closed - first : 0;
	for (uint32_t r = 0; r < first; r++) {
		past.round[r].issued = ledger->round[r].issued_count;
		for (uint32_t v = 0; v < skep_plan_vstages(plan); v++) {
			past.round[r].counted += ledger->round[r].cell[v].counted;
			past.round[r].lost += ledger->round[r].cell[v].lost_count;
		}
	}
	for (uint32_t s = 0; s < plan->stages; s++)
		for (uint32_t e = 0; e < CLUSTER_ELEMENTS; e++)
			past.parameter[s][e] = first > 0 ? ledger->checkpoint[s][first].parameter[e]
			                                 : symbol_parameter(plan, ledger->candidate, s, e);
	return past;
}

/* Stages that step together do so by word of one moment: a directory that is lost has sent it to all, or to none. */
void outage_committed(struct ledger *ledger, const struct skep_note *note)
{
	struct round *round = &ledger->round[note->round];
	if (round->committed_ns == 0)
		round->committed_ns = ledger->now;
	if (ledger->plan->together && round->committed_ns != ledger->now)
		verdict_break(ledger->verdict, "I27", note->round, note->stage, ANY,
			"stage %u is committed at %llu ns, and the first one of the round at %llu", note->stage,
			(unsigned long long)ledger->now, (unsigned long long)round->committed_ns);
}

void outage_begins(struct ledger *ledger, uint32_t began, uint64_t stayed)
{
	uint32_t first = ledger->plan->first_round, kept = kept_of_all(ledger, began),
		 held = held_of_all(ledger, stayed);
	kept = held > kept ? held : kept;
	bool right = first == kept || (first > kept && held_by_all(ledger, stayed, first));
	uint32_t most = ledger->rounds_closed + ledger->plan->together; /* where all presume a step */
	if (!right || (first > most && !pipes_stream(ledger))) {
		verdict_break(ledger->verdict, "I27", first, ANY, ANY,
			"all begin again at version %u, and %u is the newest that is kept or held of all stages, of %u rounds",
			first, kept, ledger->rounds_closed);
		return;
	}
	struct past past = keep(ledger, first);
	uint32_t candidate = ledger->candidate;
	ledger_begin(ledger, ledger->plan, ledger->capacity, ledger->view, ledger->verdict);
	ledger->candidate = candidate;
	ledger->rounds_before = past.rounds_before;
	ledger->undone = past.undone;
	ledger->resumed = ledger->resumed_due = true;
	memcpy(ledger->begun, past.parameter, sizeof(ledger->begun));
	resumed_books(ledger);
	for (uint32_t r = 0; r < first; r++) { /* of all stages together: they are only added up */
		ledger->round[r].issued_count = (uint32_t)past.round[r].issued;
		ledger->round[r].cell[0].counted = (uint32_t)past.round[r].counted;
		ledger->round[r].cell[0].lost_count = (uint32_t)past.round[r].lost;
	}
}

/* It says so before all else. */
void outage_noted(struct ledger *ledger, const struct skep_note *note)
{
	bool says = note->kind == SKEP_NOTE_RESUMED;
	if (says != ledger->resumed_due || (says && note->round != ledger->plan->first_round))
		verdict_break(ledger->verdict, "I27", note->round, ANY, ANY,
			"a note of kind %u about round %u: all %s begun again, with round %u", note->kind, note->round,
			ledger->resumed_due ? "have" : "have not, or were said to have,", ledger->plan->first_round);
	ledger->resumed_due = false;
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

void cluster_lose_directory(struct cluster *c, skep_time at, skep_time back_at, bool with_held)
{
	struct event *event = agenda_add(c, at, EVENT_OUTAGE, c->setup.plan->workers);
	event->until = back_at;
	event->gentle = with_held;
}

/* With what is held operations go on too. */
static bool goes_on(const struct event *event)
{
	return event->kind == EVENT_OP || event->kind == EVENT_KILL || event->kind == EVENT_RESTART ||
	       event->kind == EVENT_OUTAGE;
}

static bool outlasts(const struct event *event)
{
	return event->kind == EVENT_KILL || event->kind == EVENT_RESTART || event->kind == EVENT_OUTAGE;
}

static void lose(struct cluster *c, const struct event *event)
{
	const struct skep_plan *plan = c->setup.plan;
	const struct process *directory = &c->process[plan->workers];
	if (c->setup.machine->outcome(directory->node) != SKEP_RUNNING)
		return;
	trace(c, (struct trace){.what = TRACE_FAULT,
			 .who = {plan->workers, directory->epoch},
			 .fault = event->gentle ? "is lost, and workers keep what they hold"
	                                        : "is lost, and all processes end"});
	c->kept_round = c->setup.machine->kept(directory->node, plan);
	if (c->kept_round > 0 && sabotaged(c, SABOTAGE_RESUMED_EARLY))
		c->kept_round--;
	for (uint32_t m = 0; m <= plan->workers; m++) {
		struct process *p = &c->process[m];
		if (p->alive)
			c->digest = mix64(c->digest ^ c->setup.machine->digest(p->node));
		p->alive = p->alive && !p->left;
	}
	agenda_keep(c, event->gentle ? goes_on : outlasts);
	c->is_lost = true;
	c->with_held = event->gentle;
	if (c->with_held)
		referee_lost(c->referee);
	for (uint32_t m = 0; m < plan->workers && c->with_held; m++)
		held_begin(c, m);
	if (!c->with_held)
		tensors_free_all(&c->tensors);
	c->work++; /* the run is not over */
	agenda_add(c, event->until, EVENT_RESUME, plan->workers);
}

static void begin_again(struct cluster *c, uint32_t index)
{
	struct process *p = &c->process[index];
	bool there = p->alive;
	uint32_t epoch = skep_plan_first_epoch(c->setup.plan, index);
	process_init(c, index, epoch);
	p->alive = there;
	p->epoch_at_death = epoch;
	p->seated = there && epoch > 0;
	if (there)
		agenda_add(c, c->now, EVENT_START, index);
}

static void resume(struct cluster *c)
{
	uint32_t held = c->with_held ? held_newest(c) : 0;
	c->result.held += held > c->kept_round;
	c->plan = *c->setup.plan;
	c->plan.first_round = held > c->kept_round ? held : c->kept_round;
	c->setup.plan = &c->plan;
	const struct skep_plan *plan = c->setup.plan;
	if (c->with_held) {
		agenda_keep(c, outlasts);
		tensors_free_all(&c->tensors);
	}
	c->is_lost = false;
	c->work--;
	c->result.outages++;
	referee_resumes(c->referee, plan, held_stayed(c));
	for (uint32_t s = 0; s < plan->stages; s++)
		for (uint32_t v = plan->first_round + 1; v <= CLUSTER_ROUNDS; v++)
			c->tensors.kept[s][v] = (struct kept){0};
	for (uint32_t m = 0; m <= plan->workers && !c->verdict->broken; m++)
		begin_again(c, m);
}

/* While the directory is lost processes come and go, and nothing else happens. */
static void meanwhile(struct cluster *c, const struct event *event)
{
	struct process *p = &c->process[event->machine];
	bool restarts = event->kind == EVENT_RESTART;
	if (event->kind == EVENT_OP && p->keeping && p->life == event->life)
		process_op_ends(c, event);
	if (event->kind == EVENT_OP || event->kind == EVENT_OUTAGE || p->alive == restarts ||
		(!restarts && event->gentle))
		return;
	p->alive = restarts;
	held_forget(p);
	c->result.restarts += restarts;
	c->result.kills += !restarts;
}

bool outage_takes(struct cluster *c, const struct event *event)
{
	if (event->kind == EVENT_RESUME)
		resume(c);
	else if (c->is_lost)
		meanwhile(c, event);
	else if (event->kind == EVENT_OUTAGE)
		lose(c, event);
	else
		return false;
	return true;
}

/* A stage's parameters are those that were kept, in all places where a version can be. */
void outage_device(struct cluster *c, struct device *device)
{
	const struct skep_plan *plan = c->setup.plan;
	if (c->result.outages == 0 || plan->first_round == 0)
		return;
	const struct kept *kept = &c->tensors.kept[device->stage][plan->first_round];
	for (uint32_t v = 0; v < CLUSTER_VERSIONS; v++)
		memcpy(device->parameter[v], kept->parameter, sizeof(device->parameter[v]));
	if (sabotaged(c, SABOTAGE_RESUMED_STALE))
		for (uint32_t v = 0; v < CLUSTER_VERSIONS; v++)
			device->parameter[v][0] ^= 1;
}
