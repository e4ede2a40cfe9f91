/* SPDX-License-Identifier: Apache-2.0
 *
 * print.c - the page that answers a question.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "asking/answer.h"
#include "asking/loss.h"
#include "base/layout.h"

#define SHOWN_SETTINGS 9u
#define SHOWN_HELPS 8u
#define WIDTH 100 /* of a line of text */
/* So many seeds have an interval that says something: of two or three, Student's t is a multiple of their spread. */
#define SEEDS_THAT_TELL 4u

/* ---- what it is -------------------------------------------------------------------------------------------------------- */

/* The group of the nth machine of the topology. */
static const struct skep_ask_group *group_of(const struct skep_ask_question *q, uint32_t machine)
{
	for (uint32_t site = 0; site < q->sites; site++)
		for (uint32_t i = 0; i < q->groups; i++) {
			if (q->group[i].site != site)
				continue;
			if (machine < q->group[i].count)
				return &q->group[i];
			machine -= q->group[i].count;
		}
	return NULL;
}

static uint32_t count_members(const struct skep_ask_answer *a, const struct skep_ask_group *g, uint32_t stage)
{
	const struct skep_scenario *s = &a->chosen;
	uint32_t count = 0, present = 0;
	for (uint32_t i = 0; i < s->plan.workers; i++) {
		if (group_of(&a->question, s->machine_of ? s->machine_of[i] : i) != g)
			continue;
		present++;
		count += s->first_stage_of[i] == stage;
	}
	return stage == SKEP_ASK_NO_STAGE ? g->count - present : count;
}

static void add_group(const struct skep_ask_question *q, uint32_t i, uint32_t count, char *ret, size_t size)
{
	size_t used = strlen(ret);
	if (count > 0)
		snprintf(ret + used, size - used, "%s%u x %s %s", used > 0 ? ", " : "", count, q->group[i].gpu,
			q->site[q->group[i].site].where);
}

void skep_ask_members(const struct skep_ask_answer *a, uint32_t stage, char *ret, size_t size)
{
	const struct skep_ask_question *q = &a->question;
	ret[0] = '\0';
	for (uint32_t i = 0; i < q->groups; i++)
		add_group(q, i, count_members(a, &q->group[i], stage), ret, size);
}

void skep_ask_taking_part(const struct skep_ask_answer *a, char *ret, size_t size)
{
	const struct skep_ask_question *q = &a->question;
	ret[0] = '\0';
	for (uint32_t i = 0; i < q->groups; i++)
		add_group(q, i, skep_ask_group_members(a, i), ret, size);
}

uint32_t skep_ask_group_members(const struct skep_ask_answer *a, uint32_t group)
{
	const struct skep_ask_group *g = &a->question.group[group];
	return g->count - count_members(a, g, SKEP_ASK_NO_STAGE);
}

static const char *bits_of(enum skep_codec codec, bool native)
{
	return codec == SKEP_CODEC_INT8             ? "int8"
	       : codec == SKEP_CODEC_E3M0           ? "4 bits (e3m0)"
	       : codec == SKEP_CODEC_FP16 || native ? "16 bits"
	                                            : "32 bits";
}

void skep_ask_method(const struct skep_scenario *s, char *ret, size_t size)
{
	static const char *const pipeline[] = {[SKEP_PIPELINE_SWARM] = "a swarm of",
		[SKEP_PIPELINE_GPIPE] = "GPipe in",
		[SKEP_PIPELINE_1F1B] = "1F1B in",
		[SKEP_PIPELINE_INTERLEAVED] = "interleaved 1F1B in",
		[SKEP_PIPELINE_PIPEDREAM] = "PipeDream in"};
	uint32_t every = skep_plan_most_steps(&s->plan);
	int used;
	if (s->plan.stages == 1)
		used = snprintf(ret, size, "the whole model on each machine");
	else
		used = snprintf(ret, size, "%s %u stages", pipeline[s->plan.pipeline], s->plan.stages);
	if (used > 0 && (size_t)used < size && every > 1)
		used += snprintf(ret + used, size - (size_t)used, ", DiLoCo with H = %u", every);
	else if (used > 0 && (size_t)used < size)
		used += snprintf(ret + used, size - (size_t)used, ", gradients summed in every step");
	if (used > 0 && (size_t)used < size && s->plan.reduction.collective == SKEP_COLLECTIVE_HIERARCHICAL)
		used += snprintf(ret + used, size - (size_t)used, ", sums inside of each site first");
	if (used > 0 && (size_t)used < size)
		snprintf(ret + used, size - (size_t)used, ", microbatches of %u sample%s", s->samples,
			skep_plural(s->samples));
}

/* Lines of text; those behind the first begin with as many blanks as the margin has. */
static void wrap(const char *margin, const char *text, FILE *out)
{
	int indent = fprintf(out, "%s", margin);
	skep_wrap(text, indent, indent, WIDTH, out);
}

/* ---- parts of the page --------------------------------------------------------------------------------------------------- */

static const char *days(double seconds, char ret[SKEP_TEXT_BYTES])
{
	if (seconds < 72 * 3600.0)
		return skep_time_text(seconds, ret);
	snprintf(ret, SKEP_TEXT_BYTES, "%.3g days", seconds / 86400);
	return ret;
}

static void print_question(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_question *q = &a->question;
	char text[1200], parameters[SKEP_TEXT_BYTES], tokens[SKEP_TEXT_BYTES];
	int used = snprintf(text, sizeof text, "%s (%s parameters), %s tokens, on", a->model.name,
		skep_count_text(a->model.parameters, parameters), skep_count_text(a->job.tokens, tokens));
	for (uint32_t i = 0; i < q->groups && used > 0 && (size_t)used < sizeof text; i++)
		used += snprintf(text + used, sizeof text - (size_t)used, "%s %u x %s %s", i > 0 ? "," : "",
			q->group[i].count, q->group[i].gpu, q->site[q->group[i].site].where);
	if (q->request->spot && used > 0 && (size_t)used < sizeof text)
		snprintf(text + used, sizeof text - (size_t)used, ", spot");
	wrap("", text, out);
}

/* How fast GPUs are is not known as well as the interval of runs suggests. */
static void print_uncertain(const struct skep_ask_answer *a, FILE *out)
{
	char text[400], low[SKEP_TEXT_BYTES], high[SKEP_TEXT_BYTES], money[80] = "";
	if (a->uncertain_gpus == 0 || a->figures.stretches < SEEDS_THAT_TELL)
		return;
	if (!isnan(a->usd.mean))
		snprintf(money, sizeof money, ", %.4g to %.4g USD", fmax(0, a->uncertain_usd.low),
			a->uncertain_usd.high);
	snprintf(text, sizeof text, "since how fast %s is not measured: %s to %s%s (95 %%)",
		a->uncertain_gpus > 1 ? "these GPUs are" : "this GPU is", days(fmax(0, a->uncertain_time_s.low), low),
		days(a->uncertain_time_s.high, high), money);
	wrap("  ", text, out);
}

static void print_answer(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_figures *f = &a->figures;
	char method[400], text[800], mean[SKEP_TEXT_BYTES], low[SKEP_TEXT_BYTES], high[SKEP_TEXT_BYTES];
	const char *seeds = a->question.request->spot ? "seeds, each with a trace of its own" : "seeds";
	skep_ask_method(&a->chosen, method, sizeof method);
	fputs("\nanswer\n", out);
	wrap("  ", method, out);
	bool alike = f->stretches > 1 && a->time_s.high - a->time_s.low < 0.015 * a->time_s.mean;
	if (alike)
		snprintf(text, sizeof text, "%s (%u seeds differ by less than 1 %%)", days(a->time_s.mean, mean),
			f->stretches);
	else if (f->stretches >= SEEDS_THAT_TELL)
		snprintf(text, sizeof text, "%s (95 %% of runs: %s to %s; %u %s)", days(a->time_s.mean, mean),
			days(fmax(0, a->time_s.low), low), days(a->time_s.high, high), f->stretches, seeds);
	else
		snprintf(text, sizeof text, "%s (%u seed%s alone came to an end)", days(a->time_s.mean, mean),
			f->stretches, skep_plural(f->stretches));
	wrap("  ", text, out);
	if (isnan(a->usd.mean)) {
		wrap("  ", "USD unknown: a price is missing (below)", out);
	} else {
		if (alike || f->stretches < SEEDS_THAT_TELL)
			snprintf(low, sizeof low, "%s", "");
		else
			snprintf(low, sizeof low, " (95 %% of runs: %.4g to %.4g)", fmax(0, a->usd.low), a->usd.high);
		snprintf(text, sizeof text, "%.4g USD%s: %.4g for machines, %.3g for egress", a->usd.mean, low,
			f->usd_machines, f->usd_egress);
		wrap("  ", text, out);
	}
	print_uncertain(a, out);
	snprintf(text, sizeof text,
		"to the loss of synchronous training behind %s tokens, %.3f by the law: %s tokens, %.0f steps%s%s%s",
		skep_count_text(a->job.tokens, low), a->job.target_loss, skep_count_text(f->tokens, high), f->steps,
		f->extrapolated ? " (extrapolated: " : "", f->extrapolated ? f->how : "", f->extrapolated ? ")" : "");
	wrap("  ", text, out);
	if (f->lost > 0)
		fprintf(out, "  %u of %u seeds came to no end: a stage lost its last machine for an hour or longer\n",
			f->lost, f->lost + f->stretches);
}

static void print_stages(const struct skep_ask_answer *a, FILE *out)
{
	static const char *const head[] = {"  stage", "layers", "memory", "machines"};
	struct skep_layout layout;
	char members[600], text[SKEP_TEXT_BYTES];
	const struct skep_scenario *s = &a->chosen;
	fputs("\nwho serves what\n", out);
	skep_layout_begin(&layout, "lrrl", head);
	for (uint32_t i = 0; i < s->plan.stages; i++) {
		uint32_t first, layers;
		skep_model_cut(&s->model, skep_plan_vstages(&s->plan), i, &first, &layers);
		skep_ask_members(a, i, members, sizeof members);
		skep_layout_cell(&layout, "  %u", i);
		skep_layout_cell(&layout, "%u-%u", first, first + layers - 1);
		skep_layout_cell(&layout, "%s", skep_bytes_text(s->memory_bytes[i], text));
		skep_layout_cell(&layout, "%s", members);
	}
	skep_layout_end(&layout, out);
	skep_ask_members(a, SKEP_ASK_NO_STAGE, members, sizeof members);
	if (members[0] != '\0')
		fprintf(out, "  left out, since without them a step is faster or costs less: %s\n", members);
	fprintf(out, "  sums travel in %s, activations in %s%s\n",
		bits_of(s->plan.reduction.codec, s->native_gradients),
		s->plan.stages > 1 ? bits_of(s->activation_codec, s->native_activations) : "no link",
		s->checkpoint_activations != SKEP_CHECKPOINTING_NONE
			? "; activations are computed twice, for want of memory"
			: "");
}

/* What interval the seeds leave around what it takes more than the choice: nothing where they hardly differ. */
static void lay_spread(struct skep_layout *layout, const struct skep_ask_figures *f, const struct skep_ask_figures *own)
{
	struct skep_interval r = skep_ask_times(f, own, false);
	if (f == own || r.high - r.low < 0.01)
		skep_layout_cell(layout, "%s", "");
	else if (r.count < SEEDS_THAT_TELL)
		skep_layout_cell(layout, "%" PRIu32 " seed%s", r.count, skep_plural(r.count));
	else
		skep_layout_cell(layout, "%+.0f to %+.0f", 100 * (fmax(0, r.low) - 1), 100 * (r.high - 1));
}

static void lay_row(struct skep_layout *layout, const struct skep_ask_tried *t, const struct skep_ask_figures *own,
	bool spot, bool prices)
{
	char text[SKEP_TEXT_BYTES];
	const struct skep_ask_figures *f = &t->figures;
	if (f->lost > 0) /* why it stands last, whatever its time */
		skep_layout_cell(layout, "  %s (%u of %u seeds came to no end)", t->variation.label, f->lost,
			f->lost + f->stretches);
	else
		skep_layout_cell(layout, "  %s", t->variation.label);
	skep_layout_cell(layout, "%s", days(f->time_s, text));
	skep_layout_cell(layout, "%+.0f %%", 100 * (f->time_s / own->time_s - 1));
	if (spot)
		lay_spread(layout, f, own);
	if (prices)
		skep_layout_cell(layout, "%.4g", skep_ask_usd(f));
	skep_layout_cell(layout, "%s", skep_count_text(f->tokens, text));
	skep_layout_cell(layout, "%.0f %%", 100 * f->utilisation);
	bool other = f->extrapolated && !strstr(own->how, f->how); /* what is said of the choice is not said again */
	skep_layout_cell(layout, "%s", other ? f->how : "");
}

/* A row above that of the choice wants a reason. */
static void print_above(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_figures *own = &a->other[0].figures;
	bool dear = false, alike = false, money = a->question.request->objective == SKEP_ASK_MONEY;
	for (uint32_t i = 1; i < a->others; i++) {
		const struct skep_ask_figures *f = &a->other[i].figures;
		struct skep_interval r = skep_ask_times(f, own, money);
		bool little =
			f->time_s < SKEP_ASK_BETTER * own->time_s && f->time_s >= SKEP_ASK_MUCH_BETTER * own->time_s;
		dear = dear || (!money && f->ok && little && skep_ask_usd(f) > SKEP_ASK_DEAR * skep_ask_usd(own));
		alike = alike || (f->ok && r.mean < SKEP_ASK_BETTER && !(r.high < 1));
	}
	if (dear)
		fputs("  What is faster by less than 5 % and more than twice as dear is not taken.\n", out);
	if (alike)
		fputs("  What is better within the spread of its seeds is not taken.\n", out);
	if (a->cut_short)
		wrap("  ",
			"Settings were compared for as many events as one answer may take: another row above the choice may "
			"be better.",
			out);
}

#define SPREAD_BYTES (2 * SKEP_TEXT_BYTES + 32)

/* " (95 % of runs: 2.5 h to 3.87 h)"; "": there is hardly any. */
static void name_spread(const struct skep_interval *r, bool time, char ret[SPREAD_BYTES])
{
	char low[SKEP_TEXT_BYTES], high[SKEP_TEXT_BYTES];
	if (!(r->high - r->low > 0.015 * r->mean))
		ret[0] = '\0';
	else if (time)
		snprintf(ret, SPREAD_BYTES, " (95 %% of runs: %s to %s)", days(fmax(0, r->low), low),
			days(r->high, high));
	else
		snprintf(ret, SPREAD_BYTES, " (%.4g to %.4g)", fmax(0, r->low), r->high);
}

/* What is best if money counts and not time, or the other way round. */
static void print_other_aim(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_other_aim *o = &a->other_aim;
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	char text[1600], time[SKEP_TEXT_BYTES], times[SPREAD_BYTES], usd[SPREAD_BYTES], lost[80] = "";
	if (!o->known || (money ? o->time_s.mean > 0.95 * a->time_s.mean : o->usd.mean > 0.95 * a->usd.mean))
		return;
	name_spread(&o->time_s, true, times);
	name_spread(&o->usd, false, usd);
	if (o->lost > 0)
		snprintf(lost, sizeof lost, "; %u of %u seeds came to no end", o->lost, o->lost + o->seeds);
	snprintf(text, sizeof text, "For the least %s, by a search of its own: %s, on %s: %s%s and %.4g USD%s%s (%s).",
		money ? "time" : "money", o->method, o->machines, days(o->time_s.mean, time), times, o->usd.mean, usd,
		lost, money ? "without --cheapest" : "--cheapest");
	wrap("  ", text, out);
}

/* Why each variation that could not be simulated could not; TRIED[0] is the answer's own. */
static void print_failed(const struct skep_ask_tried *tried, uint32_t count, FILE *out)
{
	char text[sizeof tried->variation.label + sizeof tried->figures.why + 2];
	for (uint32_t i = 1; i < count; i++)
		if (!tried[i].figures.ok) {
			snprintf(text, sizeof text, "%s: %s", tried[i].variation.label, tried[i].figures.why);
			wrap("  ", text, out);
		}
}

static void print_others(const struct skep_ask_answer *a, FILE *out)
{
	struct skep_layout layout;
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX];
	bool prices = !isnan(a->usd.mean), spot = a->question.request->spot;
	const char *head[8] = {"  setting", "time", ""};
	char align[sizeof head / sizeof *head + 1] = "lrrrrrrr";
	uint32_t columns = 3;
	if (spot)
		head[columns++] = "95 %";
	if (prices)
		head[columns++] = "USD";
	head[columns++] = "tokens";
	head[columns++] = "machines compute";
	head[columns++] = "the law is asked outside of its data";
	align[columns - 1] = 'l';
	align[columns] = '\0';
	uint32_t ranked = skep_ask_rank(a->other, a->others, a->question.request->objective == SKEP_ASK_MONEY, rank);
	fprintf(out,
		"\nwhy these settings: others to the same loss, all else equal (of %u combinations %u were "
		"simulated before)\n",
		a->looked_at, a->simulated);
	skep_layout_begin(&layout, align, head);
	lay_row(&layout, &a->other[0], &a->other[0].figures, spot, prices);
	for (uint32_t i = 0; i < ranked; i++)
		lay_row(&layout, &a->other[rank[i]], &a->other[0].figures, spot, prices);
	skep_layout_end(&layout, out);
	print_above(a, out);
	print_other_aim(a, out);
	print_failed(a->other, a->others, out);
}

/* "how fast an l4 at us-central1 computes". */
static void name_bound(const struct skep_ask_answer *a, char *ret, size_t size)
{
	static const char *const of[] = {[SKEP_EXPECTED_COMPUTE] = "how fast %s %s %s computes",
		[SKEP_EXPECTED_UP] = "what %s %s %s can send",
		[SKEP_EXPECTED_DOWN] = "what %s %s %s can receive"};
	const struct skep_ask_figures *f = &a->figures;
	const struct skep_ask_group *g = group_of(&a->question, f->bound_machine);
	if (f->expected.shared_out)
		snprintf(ret, size,
			"how fast all machines compute together: each takes microbatches as fast as it computes,"
			" so that the slower hold none up");
	else if (g && f->expected.bound <= SKEP_EXPECTED_DOWN)
		snprintf(ret, size, of[f->expected.bound], skep_article(g->gpu), g->gpu,
			a->question.site[g->site].where);
	else
		snprintf(ret, size, "%s", f->bound);
}

static void print_bottleneck(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_figures *f = &a->figures;
	char text[700], bound[200];
	bool sums = f->reduction_part > f->passes_part, both = f->passes_part + f->reduction_part > 1.005;
	double passes = round(100 * f->passes_part), summing = round(100 * f->reduction_part);
	name_bound(a, bound, sizeof bound);
	fputs("\nwhat holds it back\n", out);
	snprintf(text, sizeof text,
		"%s: passes take %.0f %% of a round, sums %.0f %%%s; machines compute %.0f %% of the time "
		"they are there (in the table above: machines compute).",
		sums                    ? "The sums between machines"
		: f->utilisation > 0.65 ? "Computing"
					: "Waiting for each other in the passes",
		passes, both ? summing : fmin(summing, 100 - passes), both ? ", in part at the same time" : "",
		100 * f->utilisation);
	wrap("  ", text, out);
	if (bound[0] != '\0') {
		int used = snprintf(text, sizeof text, "What sets the pace of passes is %s", bound);
		if (f->expected.shared_out) /* all are busy, for all of the time */
			snprintf(text + used, sizeof text - (size_t)used, ".");
		else
			snprintf(text + used, sizeof text - (size_t)used, "; it is busy for %.0f %% of the time%s.",
				100 * f->expected.busy,
				f->expected.starved ? ", for want of microbatches in flight" : "");
		wrap("  ", text, out);
	}
	if (a->question.request->spot) {
		snprintf(text, sizeof text, "%.2g machines an hour are taken away.", f->preemptions_per_h);
		wrap("  ", text, out);
	}
}

static void lay_help(struct skep_layout *layout, const struct skep_ask_answer *a, uint32_t help, bool alike)
{
	char text[SKEP_TEXT_BYTES];
	const struct skep_ask_figures *f = &a->help[help].figures;
	struct skep_interval gain;
	skep_ask_gain(a, help, &gain);
	skep_layout_cell(layout, "  %s%+.0f %%", alike ? "~" : "", 100 * (gain.mean - 1));
	if (gain.count > 1)
		skep_layout_cell(layout, "%+.0f to %+.0f", 100 * (gain.low - 1), 100 * (gain.high - 1));
	else
		skep_layout_cell(layout, "%s", "");
	skep_layout_cell(layout, "%s", days(f->time_s, text));
	if (!isnan(a->usd.mean))
		skep_layout_cell(layout, "%.4g", skep_ask_usd(f));
	skep_layout_cell(layout, "%s", a->help[help].variation.label);
}

/* Do these seeds not tell which of the two is better? */
static bool are_alike(const struct skep_ask_answer *a, uint32_t one, uint32_t other)
{
	bool money = a->question.request->objective == SKEP_ASK_MONEY;
	struct skep_interval r = skep_ask_times(&a->help[one].figures, &a->help[other].figures, money);
	return !(r.low > 1 || r.high < 1);
}

/* `ret_alike`: does the order of some of them mean nothing? NULL: that of none does. */
static void lay_helps(
	const struct skep_ask_answer *a, const uint32_t *rank, uint32_t from, uint32_t to, FILE *out, bool *ret_alike)
{
	bool prices = !isnan(a->usd.mean), money = a->question.request->objective == SKEP_ASK_MONEY;
	const char *const head[] = {money ? "  cheaper" : "  faster", "95 %", "time", prices ? "USD" : "with", "with"};
	struct skep_layout layout;
	if (from == to)
		return;
	skep_layout_begin(&layout, prices ? "rrrrl" : "rrrl", head);
	for (uint32_t i = from; i < to; i++) {
		bool alike = ret_alike && i > from && are_alike(a, rank[i - 1], rank[i]);
		if (alike)
			*ret_alike = true;
		lay_help(&layout, a, rank[i], alike);
	}
	skep_layout_end(&layout, out);
}

static void print_helps(const struct skep_ask_answer *a, FILE *out)
{
	uint32_t rank[SKEP_ASK_VARIATIONS_MAX], told, ranked = skep_ask_rank_helps(a, rank, &told);
	bool alike = false;
	fprintf(out,
		"\nwhat would help most, each with the same settings, an allocation of its own and the same %u seeds\n",
		a->help_seeds);
	lay_helps(a, rank, 0, told, out, &alike);
	if (alike)
		fputs("  ~: these seeds do not tell it from the row above.\n", out);
	if (told < ranked)
		fputs("  Within the spread of seeds, or less than half a percent: none of these is shown to help or to harm.\n",
			out);
	lay_helps(a, rank, told, ranked, out, NULL);
	print_failed(a->help, a->helps, out);
}

static void print_egress(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_question *q = &a->question;
	char text[SKEP_TEXT_BYTES];
	bool any = false;
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = 0; j < q->sites; j++) {
			double bytes = a->figures.bytes[i][j], price = q->link[i][j].usd_per_byte;
			if (i == j || !(bytes > 0))
				continue;
			if (!any)
				fputs("\nwhat travels between sites\n", out);
			any = true;
			fprintf(out, "  %s to %s: %s", q->site[i].name, q->site[j].name, skep_bytes_text(bytes, text));
			if (price > 0)
				fprintf(out, ", %.3g USD at %.3g USD/GB", bytes * price, 1e9 * price);
			fputc('\n', out);
		}
	if (a->figures.state_bytes > 0)
		fprintf(out, "  of that %s for newcomers, which download the parameters\n",
			skep_bytes_text(a->figures.state_bytes, text));
}

/* Between which sites the window limits a connection, and not the line. */
static void add_caps(const struct skep_ask_question *q, char *ret, size_t size)
{
	char rate[SKEP_TEXT_BYTES];
	for (uint32_t i = 0; i < q->sites; i++)
		for (uint32_t j = i + 1; j < q->sites; j++) {
			double cap_Bps = q->window_bytes / (2 * q->link[i][j].latency_s);
			size_t used = strlen(ret);
			if (cap_Bps < q->link[i][j].Bps)
				snprintf(ret + used, size - used, "; between %s and %s that is at most %s",
					q->site[i].name, q->site[j].name, skep_rate_text(cap_Bps, rate));
		}
}

static void print_assumed(const struct skep_ask_answer *a, FILE *out)
{
	const struct skep_ask_question *q = &a->question;
	char text[500];
	fputs("\nwhat was assumed\n", out);
	for (uint32_t i = 0; i < q->notes; i++)
		wrap("  - ", q->note[i], out);
	snprintf(text, sizeof text,
		"losses fall as published (Hoffmann et al. 2022; DiLoCo: Charles et al. 2025, up to 8 replicas, H = "
		"30): with H = %u and %u replica%s %.3g times the tokens, in whole rounds%s",
		a->figures.every, a->figures.replicas, skep_plural(a->figures.replicas),
		a->figures.tokens / a->job.tokens, a->law_outside ? "; the model is outside of their sizes" : "");
	wrap("  - ", text, out);
	wrap("  - ",
		"int8 and 4 bits are taken to cost no loss (SWARM; Streaming DiLoCo), and DiLoCo's "
		"learning rates to be tuned",
		out);
	if (q->request->spot) {
		bool gcp = skep_ask_is_gcp(q);
		char span[80] = "whole runs";
		if (!a->figures.whole)
			snprintf(span, sizeof span, "stretches of %u rounds, spread over the run", a->figures.rounds);
		snprintf(text, sizeof text,
			"machines leave and join as in %s%.200s, whatever the GPU; simulated are %s",
			q->request->trace ? "the recording " : "a recording of ",
			q->request->trace ? q->request->trace
			: gcp             ? "Google Cloud in March 2020"
					  : "AWS p3 machines",
			span);
		wrap("  - ", text, out);
	} else if (!a->figures.whole) {
		snprintf(text, sizeof text, "%u rounds were simulated, of which the last %u count for all",
			a->figures.rounds, a->figures.rounds - a->figures.warm_up);
		wrap("  - ", text, out);
	}
	snprintf(text, sizeof text, "one connection of TCP between two machines, with %.3g MiB under way (window)",
		q->window_bytes / (1 << 20));
	add_caps(q, text, sizeof text);
	wrap("  - ", text, out);
}

static void print_next(const struct skep_ask_answer *a, FILE *out)
{
	const char *folder = a->files.folder;
	fputs("\nwhat to measure before you pay for it\n", out);
	for (uint32_t i = 0; i < a->uncertain_gpus; i++) {
		const struct skep_ask_uncertain *d = &a->uncertain[i];
		char text[400], money[40] = "";
		if (isfinite(d->money))
			snprintf(money, sizeof money, " and costs %.0f %% more", 100 * (d->money - 1));
		snprintf(text, sizeof text,
			"how fast the %s is with this model: if its passes take %.0f %% longer than is assumed (one standard "
			"deviation), all of it takes %.0f %% longer%s",
			d->gpu, 100 * expm1(d->deviation), 100 * (d->time - 1), money);
		wrap("  - ", text, out);
	}
	wrap("  - ",
		"the links; both by skep probe --model on the machines, then put its topology in place of this one",
		out);
	wrap("  - ", "the law: skep fit from a few short runs of your data", out);
	fprintf(out,
		"\ngo on with\n  skep sim %s/scenario.yaml\n  skep plan %s/scenario.yaml --explain\n  skep serve "
		"%s/scenario.yaml --set train.arithmetic=real ...   (data: see the head of the file)\n",
		folder, folder, folder);
}

void skep_ask_print(const struct skep_ask_answer *a, FILE *out)
{
	print_question(a, out);
	print_answer(a, out);
	print_stages(a, out);
	print_others(a, out);
	print_bottleneck(a, out);
	print_helps(a, out);
	print_egress(a, out);
	print_assumed(a, out);
	print_next(a, out);
}
