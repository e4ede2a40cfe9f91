/* SPDX-License-Identifier: Apache-2.0
 *
 * uncertain.c - how much the answer leans on how fast GPUs are, which is taken from data sheets where nothing was measured. For
 * each kind of GPU that serves a stage the choice is simulated again with passes that take one deviation longer (`uncertainty` of
 * its profile, the deviation of ln(real / predicted)), with the same allocation, while no machine is lost: losses would add noise
 * to both. Kinds are off each by itself, so that to first order ln(time) has the variance that is the sum of what they add: the
 * interval of runs becomes wider by that.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "asking/answer.h"
#include "topologies/gpu/gpu.h"

#define SEEDS 2u
#define TWO_SIDED_95 1.959964 /* of the normal law */

/* The first group of each kind that serves a stage stands for all. */
static bool stands_for_kind(const struct skep_ask_answer *a, uint32_t group)
{
	const struct skep_ask_question *q = &a->question;
	bool serves = false;
	for (uint32_t i = 0; i < q->groups; i++) {
		if (strcmp(q->group[i].base, q->group[group].base) != 0)
			continue;
		if (i < group)
			return false;
		serves = serves || skep_ask_group_members(a, i) > 0;
	}
	return serves;
}

static void stay(struct skep_ask_answer *a, struct skep_ask_tried *t, const struct skep_ask_question *q)
{
	t->variation = (struct skep_ask_variation){.question = q, .keeps = true, .stays = true};
	if (a->question.request->spot)
		snprintf(t->variation.set[t->variation.sets++], sizeof t->variation.set[0], "cluster.trace=null");
	skep_ask_stretch(a, &t->variation, SKEP_ASK_COMPARED_EVENTS, SEEDS);
}

static bool add_kind(struct skep_ask_answer *a, uint32_t group, struct skep_diag *reterr)
{
	struct skep_ask_uncertain *d = &a->uncertain[a->uncertain_gpus];
	struct skep_ask_variation *v = &d->tried.variation;
	struct skep_gpu gpu;
	if (!skep_gpu_read(a->files.topology, a->question.group[group].base, &gpu, reterr))
		return false;
	*d = (struct skep_ask_uncertain){.gpu = a->question.group[group].gpu, .deviation = gpu.uncertainty};
	skep_gpu_finish(&gpu);
	if (!(d->deviation > 0))
		return true;
	d->tried.question = malloc(sizeof *d->tried.question);
	if (d->tried.question == NULL)
		return skep_fail(reterr, "not enough memory to look at slower GPUs");
	*d->tried.question = a->question;
	for (uint32_t i = 0; i < a->question.groups; i++) {
		if (strcmp(a->question.group[i].base, a->question.group[group].base) == 0)
			d->tried.question->group[i].speed *= exp(-d->deviation);
	}
	stay(a, &d->tried, d->tried.question);
	snprintf(d->tried.topology, sizeof d->tried.topology, "%.1000s/.slower-%u.yaml", a->files.folder,
		a->uncertain_gpus);
	snprintf(v->set[v->sets++], sizeof v->set[0], "cluster.topology=.slower-%u.yaml", a->uncertain_gpus);
	a->uncertain_gpus++;
	return skep_ask_write_topology(d->tried.question, d->tried.topology, reterr);
}

/* Both sides by themselves: what runs differ by, and what GPUs may be off. */
static struct skep_interval widen(const struct skep_interval *runs, double deviation)
{
	struct skep_interval ret = *runs;
	double up = runs->mean * expm1(TWO_SIDED_95 * deviation), down = -runs->mean * expm1(-TWO_SIDED_95 * deviation);
	ret.low = runs->mean - hypot(isfinite(runs->low) ? runs->mean - runs->low : 0, down);
	ret.high = runs->mean + hypot(isfinite(runs->high) ? runs->high - runs->mean : 0, up);
	return ret;
}

static void take(struct skep_ask_answer *a, const struct skep_ask_figures *own)
{
	double time = 0, money = 0;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < a->uncertain_gpus; i++) {
		struct skep_ask_uncertain *d = &a->uncertain[i];
		d->time = skep_ask_times(&d->tried.figures, own, false).mean;
		d->money = skep_ask_times(&d->tried.figures, own, true).mean;
		if (!d->tried.figures.ok || !isfinite(d->time))
			continue;
		time += log(d->time) * log(d->time);
		money += isfinite(d->money) ? log(d->money) * log(d->money) : 0;
		a->uncertain[kept++] = *d;
	}
	a->uncertain_gpus = kept;
	a->uncertain_time_s = widen(&a->time_s, sqrt(time));
	a->uncertain_usd = widen(&a->usd, sqrt(money));
}

enum status skep_ask_find_uncertain(struct skep_ask_answer *a, struct skep_diag *reterr)
{
	struct skep_ask_tried *tried = calloc(SKEP_ASK_GROUPS_MAX + 1, sizeof *tried);
	bool ok = tried != NULL || skep_fail(reterr, "not enough memory to look at slower GPUs");
	int by = 0;
	for (uint32_t i = 0; ok && i < a->question.groups; i++)
		ok = !stands_for_kind(a, i) || add_kind(a, i, reterr);
	enum status status = ok ? STATUS_DONE : STATUS_FAILED;
	for (uint32_t i = 0; ok && i < a->uncertain_gpus; i++)
		tried[i + 1] = a->uncertain[i].tried;
	if (ok)
		stay(a, &tried[0], &a->question);
	if (ok && a->uncertain_gpus > 0 && !skep_ask_try(a, tried, a->uncertain_gpus + 1, &by))
		status = skep_ask_died(by, reterr);
	for (uint32_t i = 0; i < a->uncertain_gpus; i++) {
		struct skep_ask_uncertain *d = &a->uncertain[i];
		if (status == STATUS_DONE)
			d->tried.figures = tried[i + 1].figures;
		if (d->tried.topology[0] != '\0')
			unlink(d->tried.topology);
		free(d->tried.question);
		d->tried.question = NULL;
	}
	if (status == STATUS_DONE)
		take(a, &tried[0].figures);
	free(tried);
	return status;
}
