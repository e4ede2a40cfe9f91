/* SPDX-License-Identifier: Apache-2.0
 *
 * other_aim.c - what would be chosen if money counted and not time, or the other way round: found as the answer itself is, by a
 * search, comparisons and seeds of its own, so that it is what the same question with --cheapest, or without, is answered with.
 * A row of the table would not do: it has the settings of the choice, which are not those that its own machines are best used
 * with.
 */
#include <math.h>
#include <stdlib.h>

#include "asking/answer.h"

/* Of the files, the model and the law those of the answer; what is noted of its search is not the page's. */
static void begin(struct skep_ask_answer *other, const struct skep_ask_answer *a, struct skep_ask_request *request)
{
	*request = *a->question.request;
	request->objective = request->objective == SKEP_ASK_MONEY ? SKEP_ASK_TIME : SKEP_ASK_MONEY;
	other->question = a->question;
	other->question.request = request;
	other->model = a->model;
	other->law = a->law;
	other->files = a->files;
	other->job = a->job;
	other->job.question = &other->question;
	other->job.model = &other->model;
	other->job.law = &other->law;
}

static void end(struct skep_ask_answer *other)
{
	if (other->has_chosen)
		skep_scenario_finish(&other->chosen);
	skep_assignments_finish(&other->base);
	free(other);
}

/* Is it better by both aims, though it was found by the other one alone? */
static bool is_better(const struct skep_ask_answer *other, const struct skep_ask_answer *a)
{
	return other->figures.lost <= a->figures.lost && other->time_s.mean < a->time_s.mean &&
	       other->usd.mean < a->usd.mean;
}

/* Its scenario, and what was stated of it; others are compared with it anew. */
static enum status take(struct skep_ask_answer *a, struct skep_ask_answer *other, struct skep_diag *reterr)
{
	struct skep_assignments base = a->base;
	a->base = other->base;
	a->base.path = a->files.scenario;
	other->base = base;
	enum status status = skep_ask_compare_chosen(a, reterr);
	a->figures = other->figures;
	a->time_s = other->time_s;
	a->usd = other->usd;
	return status;
}

static void keep(struct skep_ask_answer *a, const struct skep_ask_answer *other)
{
	struct skep_ask_other_aim *o = &a->other_aim;
	o->known = true;
	o->time_s = other->time_s;
	o->usd = other->usd;
	o->seeds = other->figures.stretches;
	o->lost = other->figures.lost;
	skep_ask_method(&other->chosen, o->method, sizeof o->method);
	skep_ask_taking_part(other, o->machines, sizeof o->machines);
}

enum status skep_ask_find_other_aim(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	struct skep_ask_request request;
	struct skep_diag why = {0};
	a->other_aim.known = false;
	if (isnan(a->usd.mean))
		return STATUS_DONE;
	struct skep_ask_answer *other = calloc(1, sizeof *other);
	if (!other)
		return skep_ask_died(0, reterr);
	begin(other, a, &request);
	enum status status = skep_ask_plan(other, &why);
	if (status == STATUS_DONE)
		status = skep_ask_compare(other, &why);
	if (status == STATUS_DONE)
		status = skep_ask_state(other, &why);
	if (status == STATUS_DONE && is_better(other, a))
		status = take(a, other, reterr);
	else if (status == STATUS_DONE)
		keep(a, other);
	else if (status < STATUS_SIGNAL)
		status = STATUS_DONE; /* there is none: the answer is none the less one */
	else
		*reterr = why;
	end(other);
	return status;
}
