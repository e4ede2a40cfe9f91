/* SPDX-License-Identifier: Apache-2.0
 *
 * flush.h - the parts of a round with a flush, for methods that differ from it in some of them alone (flush.c).
 */
#pragma once

#include "core/methods/method.h"

/* The directory's. */
size_t skep_flush_lay_out(struct directory *d, const struct skep_plan *plan, size_t at);
void skep_flush_given_up(struct directory *d);
void skep_flush_refill(struct directory *d, struct step *step, uint32_t preferred);
void skep_flush_complete(struct directory *d, struct step *step);
void skep_flush_reduce(struct directory *d, struct step *step);
void skep_flush_on_tally(struct directory *d, struct step *step, const struct skep_message *message);
void skep_flush_on_outer_update(struct directory *d, struct step *step, const struct skep_message *message);
void skep_flush_counted(struct directory *d, uint32_t vstage, uint32_t lost, uint32_t *total, int64_t *loss_nano_sum);
void skep_flush_committed(struct directory *d, struct step *step);
uint32_t skep_flush_stop_version(struct directory *d, const struct row *row);
void skep_flush_stepped(struct directory *d, struct step *step);
uint32_t skep_flush_since(struct directory *d, uint32_t worker);
uint32_t skep_flush_next_reduction(struct directory *d, const struct row *row);
void skep_flush_ready(struct directory *d, struct step *step, uint32_t worker);
bool skep_flush_serves_late(struct directory *d, uint32_t worker);
void skep_flush_admit(struct directory *d, const struct row *row, struct skep_message *admit);
void skep_flush_keep(struct directory *d, uint32_t stage, struct skep_message *keep);
void skep_flush_carry_on(struct directory *d, struct step *step, uint32_t worker);
bool skep_flush_none_can(struct directory *d, const struct skep_plan *plan);

/* Entries of struct skep_losses for those who go on with who is left. */
bool skep_losses_none_again(
	struct directory *d, const struct skep_plan *plan, uint32_t *ret_microbatch, struct skep_span *ret_span);
void skep_losses_reduce(struct directory *d, struct step *step);
void skep_losses_never_counted(struct directory *d, struct step *step);
void skep_losses_go_on(struct directory *d, struct step *step, bool served);
void skep_losses_ignore(struct directory *d, struct step *step, uint32_t worker);
bool skep_losses_no_hold(struct directory *d, const struct skep_plan *plan);
void skep_losses_no_timer(struct directory *d, struct step *step);

/* A worker's. */
size_t skep_flush_worker_lay_out(struct worker *w, const struct skep_plan *plan, size_t at);
void skep_flush_derive(struct worker *w);
void skep_flush_forget(struct worker *w);
void skep_flush_reads(const struct worker *w, const struct skep_plan *plan, struct skep_work *work, struct skep_op *op);
uint64_t skep_flush_staleness(const struct worker *w, const struct skep_plan *plan, const struct skep_work *work);
bool skep_flush_first_visit(struct worker *w, uint32_t round, uint32_t item);
bool skep_flush_wants_gradient(struct worker *w, const struct skep_message *gradient);
void skep_flush_make_way(struct worker *w, struct step *step);
uint32_t skep_flush_parts(struct worker *w, const struct skep_plan *plan);
void skep_flush_part_ended(struct worker *w, struct step *step);
void skep_flush_backward_ended(struct worker *w, struct step *step, bool open);
void skep_flush_take(struct worker *w, struct step *step, const struct skep_message *reduce);
void skep_flush_taken(struct worker *w, const struct skep_message *reduce);
bool skep_flush_may_begin(const struct worker *w);
uint32_t skep_flush_brought(const struct worker *w);
void skep_flush_step_committed(struct worker *w, struct step *step);
bool skep_flush_may_step(struct worker *w);
void skep_flush_worker_stepped(struct worker *w);
void skep_flush_notice(struct worker *w, struct step *step);
void skep_flush_gate(struct worker *w, struct step *step);
uint32_t skep_flush_kept_as(const struct worker *w);
void skep_flush_on_checkpoint(struct worker *w, const struct skep_message *keep);

/* The entries of a table that belong together. A reduction that all stages make in the same round: */
#define SKEP_FLUSH_COMMIT                                                                                              \
	.replicas = true, .lay_out = skep_flush_lay_out, .counted_rounds = 1, .refills = 2,                            \
	.on_outer_update = skep_flush_on_outer_update, .keeper = skep_checkpoints_keeper,                              \
	.counted = skep_flush_counted, .validate = skep_validate_begin, .stop_version = skep_flush_stop_version,       \
	.stepped = skep_flush_stepped, .keep = skep_flush_keep
/* Newcomers that are members of the open round's reduction as soon as their device has room: */
#define SKEP_FLUSH_NEWCOMERS                                                                                           \
	.entered = skep_directory_admit_from_any, .since = skep_flush_since, .ready = skep_flush_ready,                \
	.admit = skep_flush_admit
/* Newcomers that serve from the round on in which they hold all of the state: */
#define SKEP_FLUSH_SERVICE                                                                                             \
	.next_reduction = skep_flush_next_reduction, .serves_late = skep_flush_serves_late,                            \
	.carry_on = skep_flush_carry_on, .none_can = skep_flush_none_can

/* A round that is granted until enough has come back, and then reduced whole: */
#define SKEP_FLUSH_ROUND                                                                                               \
	.begin = skep_rounds_begin, .on_finished = skep_rounds_on_finished, .given_up = skep_flush_given_up,           \
	.refill = skep_flush_refill, .resume = skep_rounds_resume, .complete = skep_flush_complete,                    \
	.on_tally = skep_flush_on_tally, .worker_gone = skep_rounds_worker_gone

/* A worker whose passes go whole, each marked as seen: */
#define SKEP_FLUSH_PASSES                                                                                              \
	.first_visit = skep_flush_first_visit, .wants_gradient = skep_flush_wants_gradient,                            \
	.make_way = skep_flush_make_way, .parts = skep_flush_parts, .part_ended = skep_flush_part_ended,               \
	.forget = skep_flush_forget, .notice = skep_flush_notice, .gate = skep_flush_gate
/* What it does at the end of a round and after: */
#define SKEP_FLUSH_SEAL                                                                                                \
	.backward_ended = skep_flush_backward_ended, .take = skep_flush_take, .taken = skep_flush_taken,               \
	.may_begin = skep_flush_may_begin, .brought = skep_flush_brought, .tell = skep_reduce_send_tally,              \
	.committed = skep_flush_step_committed, .may_step = skep_flush_may_step, .stepped = skep_flush_worker_stepped, \
	.kept_as = skep_flush_kept_as, .held_as = skep_flush_kept_as, .on_checkpoint = skep_flush_on_checkpoint

/* What tables of losses have in common. A lost gradient is reported, and the round goes on: */
#define SKEP_LOSSES_REPORTED                                                                                           \
	.voids = false, .wanted = skep_rounds_wanted, .again = skep_losses_none_again, .complete = skep_losses_reduce, \
	.counted = skep_losses_never_counted, .member_gone = skep_rounds_sum_anew
/* No round waits for a worker: */
#define SKEP_LOSSES_WITHOUT_WAIT                                                                                       \
	.joined = skep_losses_ignore, .holds = skep_losses_no_hold, .timer = skep_losses_no_timer
