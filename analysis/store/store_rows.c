/* SPDX-License-Identifier: Apache-2.0
 *
 * store_rows.c - one function per table: binds the columns of a row in the order of schema.sql.
 */
#include "analysis/store/store_rows.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/names.h"
#include "topologies/read/path.h"
#include "version.h"

#define PLACES_CAP 1024u

/* A kind that is not kept here is in rounds and stage_rounds. */
static const struct note_form {
	bool kept, stage, number, peer; /* the latter three: which fields mean something */
	bool capped;
} NOTE_FORM[SKEP_NOTE_KINDS] = {
	[SKEP_NOTE_ISSUED] = {true, false, true, true, true},
	[SKEP_NOTE_RERUN] = {true, false, true, true, true},
	[SKEP_NOTE_MEMBER] = {true, true, false, true, true},
	[SKEP_NOTE_LOST] = {true, true, true, false, false},
	[SKEP_NOTE_OUTER_UPDATED] = {true, true, true, true, true},
	[SKEP_NOTE_FENCED] = {true, true, false, true, false},
	[SKEP_NOTE_ADMITTED] = {true, true, false, true, false},
	[SKEP_NOTE_JOINED] = {true, true, false, true, false},
	[SKEP_NOTE_LEFT] = {true, true, false, true, false},
	[SKEP_NOTE_MIGRATED] = {true, true, false, true, false},
	[SKEP_NOTE_STAGE_EMPTY] = {true, true, false, false, false},
	[SKEP_NOTE_STAGE_RESTARTED] = {true, true, false, true, false},
	[SKEP_NOTE_CHECKPOINTED] = {true, true, false, true, false},
	[SKEP_NOTE_DIVERGED] = {true, true, true, true, false},
	[SKEP_NOTE_CHECKPOINT_FAILED] = {true, true, false, true, false},
	[SKEP_NOTE_STOPPED] = {true, false, false, false, false},
	[SKEP_NOTE_COUNTED] = {true, true, true, false, true},
	[SKEP_NOTE_OVERFLOW] = {true, false, true, false, true},
	[SKEP_NOTE_CANDIDATE_LOSS] = {true, false, true, false, false},
	[SKEP_NOTE_CANDIDATE_DROPPED] = {true, true, true, false, false},
	[SKEP_NOTE_CANDIDATE_CHOSEN] = {true, false, true, false, false},
	[SKEP_NOTE_ROUND_VOIDED] = {true, false, true, false, false},
	[SKEP_NOTE_UNEQUAL] = {true, true, false, true, false},
	[SKEP_NOTE_SCALED] = {true, true, true, false, false},
	[SKEP_NOTE_RETURNED] = {true, true, false, true, false},
	[SKEP_NOTE_SHARD_LOST] = {true, true, false, true, false},
	[SKEP_NOTE_RESUMED] = {true, false, false, false, false},
};

bool skep_note_kept(uint8_t kind)
{
	return NOTE_FORM[kind].kept;
}

bool skep_note_capped(uint8_t kind)
{
	return NOTE_FORM[kind].capped;
}

/* ---- one row ---------------------------------------------------------------------------------------------------- */

struct cursor { /* binds one column after the other; put() checks them all */
	sqlite3_stmt *statement;
	int column;
	int rc; /* of the first that failed */
};

static struct cursor fill(struct skep_store *store, enum skep_statement statement)
{
	return (struct cursor){.statement = store->statement[statement]};
}

static void bound(struct cursor *c, int rc)
{
	c->rc = c->rc == SQLITE_OK ? rc : c->rc;
}

static void integer(struct cursor *c, int64_t value)
{
	bound(c, sqlite3_bind_int64(c->statement, ++c->column, value));
}

static void integer_or_null(struct cursor *c, bool known, int64_t value)
{
	if (known)
		integer(c, value);
	else
		bound(c, sqlite3_bind_null(c->statement, ++c->column));
}

static void real(struct cursor *c, double value) /* NAN becomes NULL */
{
	bound(c, sqlite3_bind_double(c->statement, ++c->column, value));
}

static void seconds(struct cursor *c, skep_time ns)
{
	real(c, (double)ns / 1e9);
}

static void rate(struct cursor *c, double bytes_per_s) /* not limited becomes NULL */
{
	real(c, isfinite(bytes_per_s) ? bytes_per_s : NAN);
}

static void text(struct cursor *c, const char *value)
{
	bound(c, sqlite3_bind_text(c->statement, ++c->column, value, -1, SQLITE_TRANSIENT));
}

static void label(struct cursor *c, const char *value) /* static storage */
{
	bound(c, sqlite3_bind_text(c->statement, ++c->column, value, -1, SQLITE_STATIC));
}

static void digest(struct cursor *c, uint64_t value)
{
	char digits[17];
	snprintf(digits, sizeof digits, "%016llx", (unsigned long long)value);
	text(c, digits);
}

static bool put(struct skep_store *store, struct cursor *c)
{
	assert(c->column == sqlite3_bind_parameter_count(c->statement));
	int rc = c->rc == SQLITE_OK ? sqlite3_step(c->statement) : c->rc;
	if (rc != SQLITE_DONE)
		skep_store_fail_sql(store, rc);
	sqlite3_reset(c->statement);
	return rc == SQLITE_DONE;
}

/* ---- the rows of a round ---------------------------------------------------------------------------------------- */

static void bind_note(const struct skep_store *store, struct cursor *c, const void *item)
{
	const struct skep_note_row *row = item;
	const struct note_form *form = &NOTE_FORM[row->note.kind];
	integer(c, store->run);
	seconds(c, row->now);
	integer(c, row->who.index);
	integer(c, row->who.epoch);
	label(c, skep_note_name(row->note.kind));
	integer(c, row->note.round);
	integer_or_null(c, form->stage, row->note.stage);
	integer_or_null(c, form->number, skep_note_number(&row->note));
	integer_or_null(c, form->peer, row->note.peer.index);
	integer_or_null(c, form->peer, row->note.peer.epoch);
	integer(c, skep_note_value(&row->note));
}

static void bind_op(const struct skep_store *store, struct cursor *c, const void *item)
{
	const struct skep_op_span *span = item;
	integer(c, store->run);
	integer(c, span->worker);
	integer(c, span->epoch);
	integer(c, span->round);
	integer(c, span->stage);
	integer(c, span->number);
	label(c, skep_op_name(span->kind));
	label(c, skep_lane_name(span->lane));
	seconds(c, span->begin_ns);
	seconds(c, span->end_ns);
	seconds(c, span->busy_ns);
}

static bool put_round(struct skep_store *store, const void *item)
{
	const struct skep_round_row *row = item;
	struct cursor c = fill(store, SKEP_INSERT_ROUND);
	integer(&c, store->run);
	integer(&c, row->round);
	seconds(&c, row->opened_ns);
	seconds(&c, row->closed_ns);
	integer(&c, row->issued);
	real(&c, row->loss);
	integer_or_null(&c, row->has_staleness, row->staleness);
	integer_or_null(&c, row->has_staleness && row->waves, row->local_staleness);
	integer(&c, (int64_t)row->sent[SKEP_TRAFFIC_PIPELINE]);
	integer(&c, (int64_t)row->sent[SKEP_TRAFFIC_SYNC]);
	return put(store, &c);
}

static bool put_stage(struct skep_store *store, const void *item)
{
	const struct skep_stage_row *row = item;
	struct cursor c = fill(store, SKEP_INSERT_STAGE_ROUND);
	integer(&c, store->run);
	integer(&c, row->round);
	integer(&c, row->stage);
	integer(&c, row->counted);
	integer(&c, row->lost);
	integer(&c, row->members);
	return put(store, &c);
}

static bool put_validation(struct skep_store *store, const void *item)
{
	const struct skep_validation_row *row = item;
	struct cursor c = fill(store, SKEP_INSERT_VALIDATION);
	integer(&c, store->run);
	integer(&c, row->round);
	integer(&c, (int64_t)skep_plan_steps_before(store->plan, row->round));
	seconds(&c, row->began_ns);
	seconds(&c, row->ended_ns);
	integer(&c, row->asked);
	integer(&c, row->counted);
	real(&c, row->loss);
	real(&c, store->has_tokens ? exp(row->loss) : NAN);
	integer(&c, (int64_t)row->sent[SKEP_TRAFFIC_PIPELINE]);
	integer(&c, (int64_t)row->sent[SKEP_TRAFFIC_SYNC]);
	return put(store, &c);
}

static bool add_link(struct skep_store *store, const struct skep_link_use *use)
{
	struct cursor c = fill(store, SKEP_ADD_LINK);
	integer(&c, (int64_t)use->messages);
	integer(&c, (int64_t)use->bytes);
	integer(&c, store->run);
	integer(&c, use->source);
	integer(&c, use->destination);
	label(&c, skep_traffic_name(use->traffic));
	return put(store, &c);
}

/* Not in one statement: that takes SQLite eight times as long, and nearly all rows are new. */
static bool put_link(struct skep_store *store, const void *item)
{
	const struct skep_link_use *use = item;
	bool inside = store->place[use->source] == store->place[use->destination];
	struct cursor c = fill(store, SKEP_INSERT_LINK);
	integer(&c, store->run);
	integer(&c, use->source);
	integer(&c, use->destination);
	label(&c, skep_traffic_name(use->traffic));
	label(&c, inside ? "inside" : "between");
	integer(&c, (int64_t)use->messages);
	integer(&c, (int64_t)use->bytes);
	return put(store, &c) && (sqlite3_changes(store->db) > 0 || add_link(store, use));
}

static bool put_use(struct skep_store *store, const void *item)
{
	const struct skep_worker_use *use = item;
	struct cursor c = fill(store, SKEP_UPDATE_WORKER);
	integer_or_null(&c, use->stage < store->stages, use->stage);
	integer(&c, use->epoch);
	seconds(&c, use->alive_ns);
	seconds(&c, use->compute_ns);
	seconds(&c, use->arithmetic_ns);
	integer_or_null(&c, !use->torn, (int64_t)use->events);
	if (use->torn)
		text(&c, NULL);
	else
		digest(&c, use->digest);
	integer(&c, store->run);
	integer(&c, use->index);
	return put(store, &c);
}

/* For tables of which a run has very many rows: what SQLite does for a statement is half of what it does for one row. */
static bool put_many(struct skep_store *store, struct skep_rows *rows, enum skep_statement statement,
	void (*bind)(const struct skep_store *, struct cursor *, const void *))
{
	bool ok = true;
	for (size_t i = 0; ok && i < rows->count;) {
		bool many = rows->count - i >= SKEP_ROWS_AT_ONCE;
		struct cursor c = {.statement = many ? store->many[statement] : store->statement[statement]};
		for (size_t end = i + (many ? SKEP_ROWS_AT_ONCE : 1); i < end; i++)
			bind(store, &c, (const char *)rows->item + i * rows->item_size);
		ok = put(store, &c);
	}
	rows->count = 0;
	return ok;
}

static bool put_rows(
	struct skep_store *store, struct skep_rows *rows, bool (*put_item)(struct skep_store *, const void *))
{
	bool ok = true;
	for (size_t i = 0; ok && i < rows->count; i++)
		ok = put_item(store, (const char *)rows->item + i * rows->item_size);
	rows->count = 0;
	return ok;
}

bool skep_store_put_waiting(struct skep_store *store)
{
	return put_rows(store, &store->rounds, put_round) && put_rows(store, &store->stage_rounds, put_stage) &&
	       put_rows(store, &store->validations, put_validation) &&
	       put_many(store, &store->notes, SKEP_INSERT_NOTE, bind_note) &&
	       put_many(store, &store->ops, SKEP_INSERT_OP, bind_op) && put_rows(store, &store->links, put_link) &&
	       put_rows(store, &store->uses, put_use) && skep_store_put_logs(store);
}

struct cell { /* of a worker's activity */
	uint32_t worker, bin;
};

static void bind_cell(const struct skep_store *store, struct cursor *c, const void *item)
{
	const struct cell *cell = item;
	const skep_time *busy_ns = skep_activity_cell(&store->activity, cell->worker, cell->bin);
	integer(c, store->run);
	integer(c, cell->worker);
	integer(c, cell->bin);
	for (int i = 0; i < SKEP_ACTIVITY_GROUPS; i++)
		seconds(c, busy_ns[i]);
}

static bool idle(const struct skep_activity *activity, uint32_t worker, uint32_t bin)
{
	const skep_time *busy_ns = skep_activity_cell(activity, worker, bin);
	for (int i = 0; i < SKEP_ACTIVITY_GROUPS; i++)
		if (busy_ns[i] != 0)
			return false;
	return true;
}

bool skep_store_put_activity(struct skep_store *store)
{
	struct skep_rows cells = {.item_size = sizeof(struct cell)};
	for (uint32_t worker = 0; worker < store->workers; worker++)
		for (uint32_t bin = 0; bin < store->activity.used; bin++)
			if (!idle(&store->activity, worker, bin))
				skep_rows_push(store, &cells, &(struct cell){worker, bin});
	bool ok = !store->error.set && put_many(store, &cells, SKEP_INSERT_ACTIVITY, bind_cell);
	free(cells.item);
	return ok;
}

static bool put_life(struct skep_store *store, const void *item)
{
	const struct skep_incarnation_row *row = item;
	struct cursor c = fill(store, SKEP_INSERT_INCARNATION);
	integer(&c, store->run);
	integer(&c, row->worker);
	seconds(&c, row->started_ns);
	seconds(&c, row->ended_ns);
	real(&c, skep_topology_cost_usd(store->topology, row->worker, row->started_ns, row->ended_ns));
	return put(store, &c);
}

/* What all lives cost between two instants. */
static double cost_between(const struct skep_store *store, skep_time from_ns, skep_time to_ns)
{
	const struct skep_incarnation_row *life = store->lives.item;
	double cost = 0;
	for (size_t i = 0; i < store->lives.count; i++) {
		skep_time started_ns = life[i].started_ns > from_ns ? life[i].started_ns : from_ns;
		skep_time ended_ns = life[i].ended_ns < to_ns ? life[i].ended_ns : to_ns;
		if (started_ns < ended_ns)
			cost += skep_topology_cost_usd(store->topology, life[i].worker, started_ns, ended_ns);
	}
	return cost;
}

bool skep_store_put_costs(struct skep_store *store)
{
	const struct skep_closed_row *closed = store->closed.item;
	double cost = 0;
	skep_time until_ns = 0;
	bool ok = true;
	for (uint32_t i = 0; i < store->workers; i++)
		cost += skep_topology_cost_usd(store->topology, i, 0, 0); /* 0, or NAN if a price is not known */
	for (size_t i = 0; ok && i < store->closed.count && store->lives.count > 0 && !isnan(cost); i++) {
		cost += cost_between(store, until_ns, closed[i].closed_ns);
		until_ns = closed[i].closed_ns > until_ns ? closed[i].closed_ns : until_ns;
		struct cursor c = fill(store, SKEP_UPDATE_ROUND_COST);
		real(&c, cost + closed[i].egress_usd);
		integer(&c, store->run);
		integer(&c, closed[i].round);
		ok = put(store, &c);
	}
	return ok && put_rows(store, &store->lives, put_life);
}

/* ---- the start and the end of a run ----------------------------------------------------------------------------- */

static void bind_origin(struct cursor *c)
{
	char host[256] = "", started[32] = "";
	gethostname(host, sizeof host - 1);
	skep_date_text(skep_date_now(), "%Y-%m-%dT%H:%M:%SZ", started, sizeof started);
	label(c, SKEP_VERSION);
	text(c, host);
	integer(c, getpid());
	text(c, started);
}

static bool put_run(struct skep_store *store, const struct skep_scenario *scenario, const char *world,
	const char *device, bool pace, bool shape)
{
	static const char *const ARITHMETIC[] = {[SKEP_ARITHMETIC_NONE] = "none",
		[SKEP_ARITHMETIC_REAL] = "real",
		[SKEP_ARITHMETIC_SCALING_LAW] = "law"};
	const struct skep_plan *plan = &scenario->plan;
	char format[SKEP_NUMBER_FORMAT_BYTES];
	struct cursor c = fill(store, SKEP_INSERT_RUN);
	text(&c, scenario->name);
	text(&c, scenario->path);
	text(&c, scenario->text ? scenario->text : "");
	text(&c, world);
	text(&c, device);
	integer(&c, pace);
	integer(&c, shape);
	integer(&c, (int64_t)scenario->seed);
	bind_origin(&c);
	text(&c, scenario->model.name);
	text(&c, scenario->topology.name);
	label(&c, ARITHMETIC[scenario->arithmetic]);
	integer(&c, plan->workers);
	integer(&c, plan->stages);
	integer(&c, plan->rounds);
	integer(&c, llround((double)plan->microbatches / skep_plan_most_steps(plan) * skep_plan_mean_steps(plan)));
	integer(&c, scenario->samples);
	real(&c, scenario->target_loss);
	integer(&c, skep_plan_vstages(plan));
	integer(&c, plan->first_round);
	skep_number_format_text(scenario, world, device, pace, format);
	text(&c, format);
	integer_or_null(&c, scenario->kept_as > 0, (int64_t)scenario->kept_as);
	integer_or_null(&c, scenario->kept_from > 0, (int64_t)scenario->kept_from);
	bool ok = put(store, &c);
	store->run = ok ? sqlite3_last_insert_rowid(store->db) : 0;
	struct cursor earlier = fill(store, SKEP_UPDATE_EARLIER); /* its host may never come back to say so */
	integer_or_null(&earlier, scenario->kept_from > 0, (int64_t)scenario->kept_from);
	return ok && put(store, &earlier);
}

static bool put_pair(struct skep_store *store, const struct skep_topology *topology, uint32_t from, uint32_t to)
{
	const struct skep_pair *pair = &topology->pair[(size_t)from * topology->places + to];
	double flow_Bps = fmin(pair->capacity_Bps, skep_path_cap_Bps(topology, from, to)),
	       shared_Bps = pair->shared_Bps;
	if (topology->site_link && from != to)
		shared_Bps = fmin(shared_Bps, fmin(topology->site_link[from].up_Bps, topology->site_link[to].down_Bps));
	struct cursor c = fill(store, SKEP_INSERT_PAIR);
	integer(&c, store->run);
	integer(&c, from);
	integer(&c, to);
	rate(&c, flow_Bps);
	real(&c, pair->latency_s);
	rate(&c, shared_Bps);
	real(&c, 1e9 * skep_topology_price_between(topology, from, to));
	return put(store, &c);
}

static bool put_places(struct skep_store *store, const struct skep_topology *topology)
{
	bool ok = true, paired = topology->places <= PLACES_CAP;
	for (uint32_t i = 0; ok && i < topology->places; i++) {
		struct cursor c = fill(store, SKEP_INSERT_PLACE);
		integer(&c, store->run);
		integer(&c, i);
		text(&c, topology->place_name[i]);
		ok = put(store, &c);
		for (uint32_t j = 0; ok && paired && j < topology->places; j++)
			ok = put_pair(store, topology, i, j);
	}
	return ok;
}

static bool put_worker(struct skep_store *store, const struct skep_scenario *scenario, uint32_t worker)
{
	const struct skep_machine *machine = &scenario->topology.machine[worker];
	bool directory = worker == store->workers;
	uint32_t stage = directory ? SKEP_NO_STAGE : scenario->plan.first_stage_of[worker];
	struct cursor c = fill(store, SKEP_INSERT_WORKER);
	integer(&c, store->run);
	integer(&c, worker);
	label(&c, directory ? "directory" : "worker");
	text(&c, directory ? NULL : scenario->topology.gpu[machine->gpu].name);
	integer(&c, machine->place);
	rate(&c, machine->up_Bps);
	rate(&c, machine->down_Bps);
	real(&c, skep_machine_has_price(machine) ? machine->price_usd_per_h : NAN);
	integer_or_null(&c, stage != SKEP_NO_STAGE, stage);
	return put(store, &c);
}

bool skep_store_put_start(struct skep_store *store, const struct skep_scenario *scenario, const char *world,
	const char *device, bool pace, bool shape)
{
	bool ok = put_run(store, scenario, world, device, pace, shape) && skep_store_put_sources(store, scenario) &&
	          put_places(store, &scenario->topology);
	for (uint32_t i = 0; ok && i <= store->workers; i++)
		ok = put_worker(store, scenario, i);
	return ok;
}

bool skep_store_put_result(struct skep_store *store, const struct skep_summary *summary)
{
	struct cursor c = fill(store, SKEP_UPDATE_RUN);
	label(&c, summary->ok ? "done" : "failed");
	digest(&c, summary->digest);
	integer(&c, (int64_t)summary->steps);
	integer(&c, (int64_t)summary->samples);
	integer(&c, (int64_t)summary->tokens);
	const double paces[] = {summary->time_s, summary->throughput_samples_per_s, summary->utilisation,
		summary->passes_s, summary->reduction_s};
	for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++)
		real(&c, paces[i]);
	integer(&c, (int64_t)summary->bytes_pipeline);
	integer(&c, (int64_t)summary->bytes_sync);
	integer(&c, (int64_t)summary->issued);
	integer(&c, (int64_t)summary->counted);
	integer(&c, (int64_t)summary->lost);
	integer(&c, (int64_t)summary->preemptions);
	integer(&c, (int64_t)summary->joins);
	integer(&c, (int64_t)summary->migrations);
	const double ends[] = {summary->final_loss, summary->final_validation_loss, summary->time_to_target_s,
		summary->cost_to_target_usd, summary->cost_usd, summary->egress_usd, summary->expert_imbalance,
		summary->expert_dropped, summary->expert_balance};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		real(&c, ends[i]);
	integer(&c, (int64_t)summary->events);
	real(&c, summary->wall_s);
	integer(&c, (int64_t)store->ops_dropped);
	integer(&c, (int64_t)store->notes_dropped);
	real(&c, store->activity.used > 0 ? ldexp(1e-9, (int)store->activity.shift) : NAN);
	integer_or_null(&c, strcmp(summary->world, "real") == 0, (int64_t)summary->damaged);
	integer_or_null(&c, summary->has_law, summary->extrapolated);
	integer(&c, store->run);
	return put(store, &c);
}
