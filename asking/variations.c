/* SPDX-License-Identifier: Apache-2.0
 *
 * variations.c - which other settings an answer compares, and which other machines and lines it tries.
 */
#include "asking/answer.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/layout.h"
#include "core/collective/collective.h"

#define MORE 10.0 /* times the bandwidth of a line that might be better */
#define CONNECTIONS 8u

/* ---- settings ------------------------------------------------------------------------------------------------------ */

static struct skep_ask_variation *add_other(struct skep_ask_answer *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static struct skep_ask_variation *add_other(struct skep_ask_answer *a, const char *format, ...)
{
	va_list list;
	if (a->others == SKEP_ASK_VARIATIONS_MAX)
		return NULL;
	struct skep_ask_variation *v = &a->other[a->others++].variation;
	*v = (struct skep_ask_variation){.question = &a->question, .keeps = true};
	va_start(list, format);
	vsnprintf(v->label, sizeof v->label, format, list);
	va_end(list);
	return v;
}

static void set(struct skep_ask_variation *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set(struct skep_ask_variation *v, const char *format, ...)
{
	va_list list;
	if (!v || v->sets == SKEP_ASK_SETS_MAX)
		return;
	va_start(list, format);
	vsnprintf(v->set[v->sets++], sizeof v->set[0], format, list);
	va_end(list);
}

/* Of a choice that has local steps already all else stays as it is; `codec` is for one that has none. */
static void set_period(struct skep_ask_variation *v, uint32_t every, bool has_local_steps, const char *codec)
{
	if (every == 1)
		set(v, "sync={method: step}");
	else if (has_local_steps)
		set(v, "sync.every=%u", every);
	else
		set(v,
			"sync={method: diloco, every: %u, compression: %s, outer: {optimizer: nesterov, "
			"lr: 0.7, momentum: 0.9}}",
			every, codec);
}

static bool has_local_steps(const struct skep_scenario *s)
{
	return skep_plan_most_steps(&s->plan) > 1;
}

static void list_syncs(struct skep_ask_answer *a, const struct skep_scenario *s)
{
	static const uint32_t every[] = {10, 30, 100, 300, 1000};
	uint32_t own = skep_plan_most_steps(&s->plan);
	if (has_local_steps(s)) {
		struct skep_ask_variation *v = add_other(a, "sums of every step (H = 1), no DiLoCo, in full");
		set(v, "sync={method: step, collective: %s}",
			s->plan.reduction.collective == SKEP_COLLECTIVE_HIERARCHICAL ? "hierarchical" : "ring");
	}
	for (uint32_t i = 0; i < sizeof every / sizeof every[0]; i++) {
		bool far = every[i] > 300 && own < 300; /* it takes long to simulate, and little speaks for it */
		if (every[i] == own || every[i] > a->job.steps_most || far)
			continue;
		struct skep_ask_variation *v = add_other(a, "DiLoCo, H = %u", every[i]);
		set_period(v, every[i], has_local_steps(s), "e3m0");
	}
	if (has_local_steps(s)) {
		if (s->plan.reduction.codec != SKEP_CODEC_FP16)
			set(add_other(a, "sums in 16 bits"), "sync.compression=fp16");
		if (s->plan.reduction.codec != SKEP_CODEC_INT8)
			set(add_other(a, "sums in 8 bits (int8)"), "sync.compression=int8");
		if (s->plan.reduction.codec != SKEP_CODEC_E3M0)
			set(add_other(a, "sums in 4 bits (e3m0)"), "sync.compression=e3m0");
	}
}

/* Can sums go inside of each site first? */
static bool has_sites(const struct skep_ask_question *q)
{
	return q->sites > 1 && q->machines > q->sites && q->machines <= SKEP_ROSTER_MAX;
}

/* The same, of all groups of machines but one; 0: of all. */
static bool crosses(const struct skep_ask_question *q, uint32_t out)
{
	uint32_t first = UINT32_MAX;
	bool several = false;
	for (uint32_t i = 0; i < q->groups; i++) {
		if (i + 1 == out)
			continue;
		several = several || (first != UINT32_MAX && q->group[i].site != first);
		first = first == UINT32_MAX ? q->group[i].site : first;
	}
	return several && has_sites(q);
}

/* Which way sums take where there are several sites: what crosses between them costs time and money. */
static void list_collectives(struct skep_ask_answer *a, const struct skep_scenario *s)
{
	const struct skep_ask_question *q = &a->question;
	bool sites_first = s->plan.reduction.collective == SKEP_COLLECTIVE_HIERARCHICAL;
	if (!has_sites(q))
		return;
	if (sites_first)
		set(add_other(a, "sums in one ring over all sites"), "sync.collective=ring");
	else
		set(add_other(a, "sums inside of each site, then between sites (hierarchical)"),
			"sync.collective=hierarchical");
}

static void list_pipelines(struct skep_ask_answer *a, const struct skep_scenario *s)
{
	static const char *const name[] = {"swarm", "gpipe", "1f1b"};
	static const enum skep_pipeline pipeline[] = {SKEP_PIPELINE_SWARM, SKEP_PIPELINE_GPIPE, SKEP_PIPELINE_1F1B};
	static const char *const label[] = {"a swarm, wired by throughput", "GPipe", "1F1B"};
	uint32_t stages[] = {1, 2, 4, 8}, own = s->plan.stages;
	for (uint32_t i = 0; own > 1 && i < 3 && !a->question.request->pipeline; i++) {
		if (s->plan.pipeline == pipeline[i])
			continue;
		struct skep_ask_variation *v = add_other(a, "%s, %u stages", label[i], own);
		set(v, "schedule.pipeline=%s", name[i]);
		set(v, i == 0 ? "schedule.wiring=throughput" : "schedule.wiring=null");
		if (v)
			v->replan = v->fit = true;
	}
	for (uint32_t i = 0; i < 4 && a->question.request->stages == 0; i++) {
		if (stages[i] == own || stages[i] > a->question.machines || stages[i] > a->model.layers ||
			stages[i] < a->job.stages_least)
			continue;
		struct skep_ask_variation *v = add_other(
			a, stages[i] == 1 ? "the whole model on each machine" : "the model in %u stages", stages[i]);
		set(v, "model.stages=%u", stages[i]);
		set(v, "model.cut=null");
		if (v) {
			v->replan = v->fit = true;
			v->keeps = false;
		}
	}
}

/* Whole models on the first so many machines of each group. */
static void set_members(struct skep_ask_answer *a, struct skep_ask_variation *v, const uint32_t *members)
{
	const struct skep_ask_question *q = &a->question;
	if (!v)
		return;
	char *text = v->set[v->sets++];
	size_t size = sizeof v->set[0];
	int used = snprintf(text, size, "cluster.allocation={method: explicit, stage_of: [");
	bool first = true;
	for (uint32_t site = 0; site < q->sites; site++)
		for (uint32_t i = 0; i < q->groups; i++)
			for (uint32_t n = 0;
				q->group[i].site == site && n < q->group[i].count && used > 0 && (size_t)used < size;
				n++) {
				used += snprintf(text + used, size - (size_t)used, "%s%s", first ? "" : ", ",
					n < members[i] ? "0" : "unused");
				first = false;
			}
	if (used > 0 && (size_t)used < size)
		used += snprintf(text + used, size - (size_t)used, "]}");
	v->fit = true;
	if (used < 0 || (size_t)used >= size) /* too many machines to list them */
		a->others--;
}

/* On all machines but those of one group, or on all. `out`: that group; UINT32_MAX: none. */
static void set_without(struct skep_ask_answer *a, struct skep_ask_variation *v, uint32_t out)
{
	uint32_t members[SKEP_ASK_GROUPS_MAX];
	for (uint32_t i = 0; i < a->question.groups; i++)
		members[i] = i == out ? 0 : a->question.group[i].count;
	set_members(a, v, members);
}

/* Where some are left out: with twice as many as take part, and twice as many again. */
static void list_more_members(struct skep_ask_answer *a)
{
	const struct skep_ask_question *q = &a->question;
	uint32_t members[SKEP_ASK_GROUPS_MAX], all = 0;
	for (uint32_t i = 0; i < q->groups; i++) {
		members[i] = skep_ask_group_members(a, i);
		all += members[i];
	}
	for (uint32_t times = 2; times <= 8 && times * all < q->machines; times *= 2) {
		uint32_t more = times * all;
		for (uint32_t i = 0; i < q->groups; i++)
			more -= members[i];
		for (uint32_t i = 0; i < q->groups; i++) {
			uint32_t room = q->group[i].count - members[i], takes = more < room ? more : room;
			members[i] += takes;
			more -= takes;
		}
		set_members(a, add_other(a, "with %u machines", times * all), members);
	}
}

/* Who takes part, where each machine holds the whole model. */
static void list_members(struct skep_ask_answer *a, const struct skep_scenario *s)
{
	const struct skep_ask_question *q = &a->question;
	bool left_out = false;
	if (s->plan.stages > 1)
		return;
	for (uint32_t i = 0; i < q->groups; i++)
		left_out = left_out || skep_ask_group_members(a, i) < q->group[i].count;
	if (left_out) {
		list_more_members(a);
		set_without(a, add_other(a, "with all machines"), UINT32_MAX);
	}
	for (uint32_t i = 0; q->groups > 1 && i < q->groups && i < 4; i++)
		if (skep_ask_group_members(a, i) > 0)
			set_without(a,
				add_other(a, "without the %u x %s %s", q->group[i].count, q->group[i].gpu,
					q->site[q->group[i].site].where),
				i);
}

void skep_ask_list_first(struct skep_ask_answer *a)
{
	static const uint32_t periods[] = {1, 10, 30, 100};
	const struct skep_ask_question *q = &a->question;
	const struct skep_ask_request *r = q->request;
	a->others = 0;
	add_other(a, "chosen");
	if (a->job.stages_least > 1 || r->stages > 1)
		return;
	for (uint32_t out = 0; out <= q->groups && out < 4; out++)
		for (uint32_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
			uint32_t every = r->every > 0 ? r->every : periods[i];
			if ((r->every > 0 && i > 0) || (out > 0 && q->groups == 1))
				continue;
			struct skep_ask_variation *v = add_other(a, "whole models, H = %u", every);
			set(v, "model.stages=1");
			set(v, "model.cut=null");
			set(v, "schedule.checkpoint_activations=false");
			set_period(v, every, false, "e3m0");
			if (crosses(q, out) && every > 1)
				set(v, "sync.collective=hierarchical");
			set_without(a, v, out == 0 ? UINT32_MAX : out - 1);
		}
}

void skep_ask_list_others(struct skep_ask_answer *a, const struct skep_scenario *s)
{
	uint32_t samples = s->samples;
	a->others = 0;
	add_other(a, "chosen");
	list_members(a, s);
	list_pipelines(a, s);
	if (a->question.request->every == 0)
		list_syncs(a, s);
	list_collectives(a, s);
	if (a->job.samples % (2 * samples) == 0)
		set(add_other(a, "microbatches of %u samples", 2 * samples), "schedule.microbatch=%u", 2 * samples);
	if (samples % 2 == 0)
		set(add_other(a, "microbatches of %u sample%s", samples / 2, skep_plural(samples / 2)),
			"schedule.microbatch=%u", samples / 2);
	if (s->checkpoint_activations != SKEP_CHECKPOINTING_NONE) {
		struct skep_ask_variation *v = add_other(a, "activations that are kept, in the microbatches that fit");
		set(v, "schedule.checkpoint_activations=false");
		if (v)
			v->fit = true;
	}
	if (s->plan.stages > 1)
		set(add_other(a, "activations in 16 bits"), "schedule.compression=fp16");
}

/* ---- machines and lines ---------------------------------------------------------------------------------------------- */

/* A copy of the question to be changed; NULL: no memory, or no room. */
static struct skep_ask_question *add_help(struct skep_ask_answer *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static struct skep_ask_question *add_help(struct skep_ask_answer *a, const char *format, ...)
{
	va_list list;
	struct skep_ask_question *q = a->helps < SKEP_ASK_VARIATIONS_MAX ? malloc(sizeof *q) : NULL;
	if (!q)
		return NULL;
	*q = a->question;
	struct skep_ask_tried *t = &a->help[a->helps++];
	*t = (struct skep_ask_tried){.question = q, .variation = {.question = q, .replan = true, .keeps = true}};
	va_start(list, format);
	vsnprintf(t->variation.label, sizeof t->variation.label, format, list);
	va_end(list);
	return q;
}

static const char *rate(double Bps, char ret[SKEP_TEXT_BYTES])
{
	return skep_rate_text(Bps, ret);
}

/* Several connections for the newest change. A message takes one, and leaders of sites tell each other all in one message: where
 * sums go by sites a ring, whose chunks come in segments, has more of it. */
static void take_connections(struct skep_ask_answer *a, struct skep_ask_question *with)
{
	struct skep_ask_variation *v = &a->help[a->helps - 1].variation;
	size_t used = strlen(v->label);
	with->streams = CONNECTIONS;
	if (a->chosen.plan.reduction.collective != SKEP_COLLECTIVE_HIERARCHICAL)
		return;
	set(v, "sync.collective=ring");
	snprintf(v->label + used, sizeof v->label - used, ", and sums in one ring");
}

/* A connection gets no more than its window in a round trip: on a faster line it takes several to get more. Says so. */
static void connect_more(struct skep_ask_answer *a, struct skep_ask_question *with, double Bps, double latency_s)
{
	char *label = a->help[a->helps - 1].variation.label;
	size_t used = strlen(label), size = sizeof a->help[0].variation.label;
	if (!(Bps * 2 * latency_s > with->window_bytes))
		return;
	snprintf(label + used, size - used, ", with %u connections", CONNECTIONS);
	take_connections(a, with);
}

/* --what-if asks for it, so that its own row says it. */
static bool is_asked(const struct skep_ask_question *q, uint32_t from, uint32_t to, double Bps)
{
	for (uint32_t i = 0; i < q->changes; i++) {
		const struct skep_ask_change *c = &q->change[i];
		bool same = (c->from == from && c->to == to) || (c->from == to && c->to == from);
		if (same && isnan(c->latency_s) && fabs(c->Bps - Bps) < 1e-9 * Bps)
			return true;
	}
	return false;
}

static void list_lines(struct skep_ask_answer *a)
{
	const struct skep_ask_question *q = &a->question;
	char now[SKEP_TEXT_BYTES], then[SKEP_TEXT_BYTES];
	bool far = false;
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = i + 1; j < q->sites && a->helps < 10; j++) {
			const struct skep_ask_link *l = &q->link[i][j];
			far = far || l->latency_s > 5e-3;
			if (is_asked(q, i, j, MORE * l->Bps))
				continue;
			struct skep_ask_question *with = add_help(a, "%s between %s and %s instead of %s",
				rate(MORE * l->Bps, then), q->site[i].name, q->site[j].name, rate(l->Bps, now));
			if (!with)
				return;
			with->link[i][j].Bps *= MORE;
			with->link[j][i].Bps *= MORE;
			connect_more(a, with, MORE * l->Bps, l->latency_s);
		}
	for (uint32_t i = 0; i < q->sites; i++) {
		const struct skep_ask_site *s = &q->site[i];
		struct skep_ask_question *with = NULL;
		if (s->kind == SKEP_ASK_HOME)
			with = add_help(a, "%s upwards from each machine at %s instead of %s",
				rate(MORE * s->up_Bps, then), s->name, rate(s->up_Bps, now));
		else if (q->sites == 1 && !is_asked(q, i, i, MORE * s->inside_Bps))
			with = add_help(a, "%s between two machines %s instead of %s", rate(MORE * s->inside_Bps, then),
				s->where, rate(s->inside_Bps, now));
		if (!with)
			continue;
		with->site[i].up_Bps *= s->kind == SKEP_ASK_HOME ? MORE : 1;
		with->site[i].down_Bps *= s->kind == SKEP_ASK_HOME ? MORE : 1;
		with->site[i].inside_Bps *= MORE;
	}
	struct skep_ask_question *with =
		far ? add_help(a, "%u connections between two machines instead of one (streams)", CONNECTIONS) : NULL;
	if (with)
		take_connections(a, with);
}

/* The machines of the topology change, so that the allocation of the choice says nothing: who is left out stays out. */
static void change_machines(struct skep_ask_answer *a, struct skep_ask_question *with)
{
	for (uint32_t i = 0; i < a->question.groups; i++)
		if (skep_ask_group_members(a, i) == 0)
			with->group[i].count = 0;
	a->help[a->helps - 1].variation.keeps = false;
	a->help[a->helps - 1].variation.fit = true;
}

/* FLOP/s of a machine of the group as it trains; 0: its profile cannot be read. */
static double speed_of(const struct skep_ask_answer *a, const struct skep_ask_group *g)
{
	struct skep_gpu gpu;
	struct skep_diag ignored = {0};
	if (!skep_gpu_read(a->files.topology, g->base, &gpu, &ignored))
		return 0;
	enum skep_type type = skep_gpu_training_type(&gpu);
	double speed = type == SKEP_TYPE_FP32 ? gpu.flops * gpu.efficiency : gpu.peak[type] * gpu.reached[type];
	skep_gpu_finish(&gpu);
	return speed * g->speed;
}

static void replace_card(struct skep_ask_group *g, const struct skep_ask_group *by)
{
	memcpy(g->gpu, by->gpu, sizeof g->gpu);
	memcpy(g->base, by->base, sizeof g->base);
	g->speed = by->speed;
	memcpy(g->price, by->price, sizeof g->price);
}

static void list_cards(struct skep_ask_answer *a)
{
	const struct skep_ask_question *q = &a->question;
	uint32_t slow = 0, fast = 0;
	for (uint32_t i = 1; i < q->groups; i++) {
		slow = speed_of(a, &q->group[i]) < speed_of(a, &q->group[slow]) ? i : slow;
		fast = speed_of(a, &q->group[i]) > speed_of(a, &q->group[fast]) ? i : fast;
	}
	const struct skep_ask_group *s = &q->group[slow], *f = &q->group[fast];
	if (strcmp(s->gpu, f->gpu) != 0) {
		struct skep_ask_question *with =
			add_help(a, "%u x %s %s instead of the %s", s->count, f->gpu, q->site[s->site].where, s->gpu);
		if (with) {
			change_machines(a, with);
			with->group[slow].count = s->count;
			replace_card(&with->group[slow], f);
		}
	}
	/* With whole models that is one of the settings (list_members()), and is not said twice. */
	if (q->groups > 1 && a->chosen.plan.stages > 1 && skep_ask_group_members(a, slow) > 0) {
		struct skep_ask_question *with =
			add_help(a, "without the %u x %s %s", s->count, s->gpu, q->site[s->site].where);
		if (with) {
			change_machines(a, with);
			with->group[slow].count = 0;
		}
	}
	uint32_t more = (f->count + 3) / 4;
	struct skep_ask_question *with = add_help(a, "%u more %s %s", more, f->gpu, q->site[f->site].where);
	if (with) {
		change_machines(a, with);
		a->help[a->helps - 1].variation.more = true;
		with->group[fast].count += more;
	}
	const uint32_t half = (s->count + 1) / 2;
	/* Where fewer take part anyway, the others' absence changes nothing. */
	const bool taken = skep_ask_group_members(a, slow) > half;
	if (q->groups == 1 && taken && (with = add_help(a, "%u of the %u %s", half, s->count, s->gpu)) != NULL) {
		change_machines(a, with);
		with->group[0].count = half;
	}
}

/* Says what it is now and what it would be, unless its time changes too. */
static struct skep_ask_question *add_change(struct skep_ask_answer *a, const struct skep_ask_change *c)
{
	const struct skep_ask_question *q = &a->question;
	const struct skep_ask_site *s = &q->site[c->from];
	char now[SKEP_TEXT_BYTES], then[SKEP_TEXT_BYTES];
	rate(c->Bps, then);
	if (!isnan(c->latency_s))
		return add_help(a, "as asked (--what-if): %s", c->text);
	if (c->from != c->to)
		return add_help(a, "as asked (--what-if): %s between %s and %s instead of %s", then, s->name,
			q->site[c->to].name, rate(q->link[c->from][c->to].Bps, now));
	if (s->kind == SKEP_ASK_HOME)
		return add_help(a, "as asked (--what-if): %s down and up for each machine at %s", then, s->name);
	return add_help(a, "as asked (--what-if): %s between two machines %s instead of %s", then, s->where,
		rate(s->inside_Bps, now));
}

static void list_changes(struct skep_ask_answer *a)
{
	const struct skep_ask_question *q = &a->question;
	for (uint32_t i = 0; i < q->changes; i++) {
		const struct skep_ask_change *c = &q->change[i];
		struct skep_ask_question *with = add_change(a, c);
		if (!with)
			return;
		struct skep_ask_site *s = &with->site[c->from];
		if (c->from != c->to) {
			with->link[c->from][c->to].Bps = with->link[c->to][c->from].Bps = c->Bps;
			if (!isnan(c->latency_s))
				with->link[c->from][c->to].latency_s = with->link[c->to][c->from].latency_s =
					c->latency_s;
			connect_more(a, with, c->Bps, with->link[c->from][c->to].latency_s);
			continue;
		}
		s->inside_Bps = c->Bps;
		if (s->kind == SKEP_ASK_HOME)
			s->up_Bps = s->down_Bps = c->Bps;
		if (!isnan(c->latency_s))
			s->inside_s = c->latency_s;
	}
}

static void list_on_demand(struct skep_ask_answer *a)
{
	if (!a->question.request->spot)
		return;
	struct skep_ask_question *with = add_help(a, "machines that stay, at the price on demand");
	if (!with)
		return;
	for (uint32_t i = 0; i < with->groups; i++)
		with->group[i].price[1] = with->group[i].price[0];
	set(&a->help[a->helps - 1].variation, "cluster.trace=null");
	a->help[a->helps - 1].variation.stays = true;
}

static uint32_t machines_of(const struct skep_ask_question *q)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < q->groups; i++)
		count += q->group[i].count;
	return count;
}

bool skep_ask_list_helps(struct skep_ask_answer *a, const struct skep_scenario *s, struct skep_diag *reterr)
{
	a->helps = 1;
	a->help[0] =
		(struct skep_ask_tried){.variation = {.label = "as it is", .question = &a->question, .keeps = true}};
	list_lines(a);
	list_cards(a);
	list_on_demand(a);
	list_changes(a);
	uint32_t kept = 1;
	for (uint32_t i = 1; i < a->helps; i++) {
		struct skep_ask_tried *t = &a->help[i];
		if (machines_of(t->question) < s->plan.stages) {
			free(t->question);
			continue;
		}
		a->help[kept] = *t;
		t = &a->help[kept++];
		snprintf(t->topology, sizeof t->topology, "%.1000s/.what-if-%u.yaml", a->files.folder, i);
		set(&t->variation, "cluster.topology=.what-if-%u.yaml", i);
		if (!skep_ask_write_topology(t->question, t->topology, reterr)) {
			a->helps = kept;
			return false;
		}
	}
	a->helps = kept;
	return true;
}

void skep_ask_finish_helps(struct skep_ask_answer *a)
{
	for (uint32_t i = 0; i < a->helps; i++) {
		if (a->help[i].topology[0] != '\0')
			unlink(a->help[i].topology);
		free(a->help[i].question);
		a->help[i].question = NULL;
		a->help[i].topology[0] = '\0';
	}
}
