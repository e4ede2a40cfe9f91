/* SPDX-License-Identifier: Apache-2.0
 *
 * describe_machines.c - see describe_groups.h: which machines there are and come and go, how many are asked for, and how a
 * stage is spread over GPUs and hosts.
 */
#include <inttypes.h>
#include <math.h>

#include "base/layout.h"
#include "scenarios/describe/describe_groups.h"
#include "scenarios/plan/split.h"
#include "scenarios/read/groups.h"
#include "scenarios/read/pool.h"

/* ---- what fills the memory of each GPU that serves a stage ------------------------------------------------------- */

static void lay_row(const struct skep_scenario *s, uint32_t stage, uint32_t gpu, struct skep_layout *layout)
{
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	const struct skep_memory *m = &s->memory[(size_t)gpu * s->plan.stages + stage];
	double column[] = {
		m->weights, m->gradients, m->optimizer, m->activations, m->buffers, m->total, type->memory_bytes};
	char text[SKEP_TEXT_BYTES];
	uint32_t gpus = skep_split_of(s, gpu).gpus;
	skep_layout_cell(layout, "%u", stage);
	if (gpus > 1)
		skep_layout_cell(layout, "%u x %s", gpus, type->name);
	else
		skep_layout_cell(layout, "%s", type->name);
	for (uint32_t i = 0; i < sizeof column / sizeof column[0]; i++)
		skep_layout_cell(layout, "%s", skep_bytes_text(column[i], text));
	skep_layout_cell(layout, "%.1f %%", 100 * m->total / type->memory_bytes);
	skep_layout_cell(layout, "%u", m->held);
	if (s->offload != SKEP_OFFLOAD_NONE)
		skep_layout_cell(layout, "%s", skep_bytes_text(m->host, text));
}

void skep_memory_print(const struct skep_scenario *s, FILE *out)
{
	static const char *const head[] = {"stage", "GPU", "weights", "gradients", "optimizer", "in flight", "buffers",
		"total", "capacity", "share", "held", "host"};
	struct skep_layout layout;
	fprintf(out, "\nmemory of each GPU, and what fills it\n");
	skep_layout_begin(&layout, s->offload == SKEP_OFFLOAD_NONE ? "rlrrrrrrrrr" : "rlrrrrrrrrrr", head);
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++)
			if (s->memory[(size_t)gpu * s->plan.stages + stage].workers > 0)
				lay_row(s, stage, gpu, &layout);
	skep_layout_end(&layout, out);
}

void skep_memory_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON *rows = cJSON_AddArrayToObject(root, "memory");
	for (uint32_t i = 0; i < s->plan.stages * s->topology.gpus; i++) {
		uint32_t stage = i / s->topology.gpus, gpu = i % s->topology.gpus;
		const struct skep_memory *m = &s->memory[(size_t)gpu * s->plan.stages + stage];
		if (m->workers == 0)
			continue;
		cJSON *row = skep_json_add_row(rows);
		cJSON_AddNumberToObject(row, "stage", stage);
		cJSON_AddStringToObject(row, "gpu", s->topology.gpu[gpu].name);
		cJSON_AddNumberToObject(row, "gpus_per_worker", skep_split_of(s, gpu).gpus);
		cJSON_AddNumberToObject(row, "weights_bytes", m->weights);
		cJSON_AddNumberToObject(row, "gradients_bytes", m->gradients);
		cJSON_AddNumberToObject(row, "optimizer_bytes", m->optimizer);
		cJSON_AddNumberToObject(row, "activations_bytes", m->activations);
		cJSON_AddNumberToObject(row, "buffers_bytes", m->buffers);
		cJSON_AddNumberToObject(row, "total_bytes", m->total);
		cJSON_AddNumberToObject(row, "capacity_bytes", s->topology.gpu[gpu].memory_bytes);
		cJSON_AddNumberToObject(row, "host_bytes", m->host);
		cJSON_AddNumberToObject(row, "held", m->held);
	}
}

/* ---- machines of the topology ------------------------------------------------------------------------------------- */

/* The nth machine that is out. */
static uint32_t nth_out(const struct skep_scenario *s, uint32_t nth)
{
	uint32_t worker = 0, machine = 0;
	for (;; machine++) {
		if (worker < s->plan.workers && s->machine_of[worker] == machine)
			worker++;
		else if (nth-- == 0)
			return machine;
	}
}

static uint32_t standing(const struct skep_scenario *s)
{
	uint32_t count = 0;
	for (uint32_t i = 0; s->plan.stands_by && i < s->plan.workers; i++)
		count += s->plan.stands_by[i];
	return count;
}

#define NAMED 12u /* in a line */

static void print_more(uint32_t count, FILE *out)
{
	if (count > NAMED)
		fprintf(out, " and %" PRIu32 " more", count - NAMED);
}

void skep_pool_print(const struct skep_scenario *s, FILE *out)
{
	uint32_t waiting = standing(s), said = 0;
	if (waiting > 0)
		fprintf(out, "  standby   %" PRIu32 " worker%s, called in when one is lost:", waiting,
			skep_plural(waiting));
	for (uint32_t i = 0; waiting > 0 && i < s->plan.workers; i++)
		if (s->plan.stands_by[i] && said++ < NAMED)
			fprintf(out, " %" PRIu32, i);
	print_more(waiting, out);
	if (waiting > 0)
		fprintf(out, "\n");
	if (s->machines_out == 0)
		return;
	fprintf(out, "  left out  %" PRIu32 " of the %" PRIu32 " machines of the topology:", s->machines_out,
		skep_pool_machines(s));
	for (uint32_t i = 0; i < s->machines_out && i < NAMED; i++)
		fprintf(out, " %" PRIu32, nth_out(s, i));
	print_more(s->machines_out, out);
	fprintf(out, "; workers are numbered without them\n");
}

void skep_pool_add_json(const struct skep_scenario *s, cJSON *root)
{
	cJSON *waiting = cJSON_AddArrayToObject(root, "standby");
	for (uint32_t i = 0; s->plan.stands_by && i < s->plan.workers; i++)
		if (s->plan.stands_by[i])
			cJSON_AddItemToArray(waiting, cJSON_CreateNumber(i));
	cJSON *out = cJSON_AddArrayToObject(root, "machines_out");
	uint32_t worker = 0;
	for (uint32_t machine = 0; s->machine_of && machine < skep_pool_machines(s); machine++)
		if (worker < s->plan.workers && s->machine_of[worker] == machine)
			worker++;
		else
			cJSON_AddItemToArray(out, cJSON_CreateNumber(machine));
}

/* ---- a trace ------------------------------------------------------------------------------------------------------ */

static void print_law(const struct skep_lifetime_fit *law, FILE *out)
{
	char mean[SKEP_TEXT_BYTES];
	if (!(law->scale_s > 0))
		return;
	fprintf(out, ", drawn by the seed from its law: %s lives of %s on the mean",
		skep_lifetime_distribution_names[law->law], skep_time_text(skep_lifetime_mean_s(law), mean));
	if (law->law == SKEP_LIFETIME_WEIBULL)
		fprintf(out, ", shape %.3g", law->shape);
}

void skep_traced_print(const struct skep_scenario *s, FILE *out)
{
	char left_out[320], span[SKEP_TEXT_BYTES];
	if (!s->has_trace)
		return;
	fprintf(out, "  churn     %s%s", s->churn.drawn_from.scale_s > 0 ? "like " : "", s->trace_path);
	print_law(&s->churn.drawn_from, out);
	fprintf(out, ": %" PRIu64 " loss%s, %" PRIu64 " join%s in %s\n", s->churn.leaves,
		s->churn.leaves == 1 ? "" : "es", s->churn.joins, skep_plural(s->churn.joins),
		skep_time_text((double)s->churn.end_ns * 1e-9, span));
	if (s->churn.unbound)
		fputs("            its names are none of the places here: a join takes any free machine of its GPU\n",
			out);
	if (skep_traced_left_out(s, left_out, sizeof left_out))
		fprintf(out, "            %s\n", left_out);
	if (s->admission_ns > 0) {
		char time[SKEP_TEXT_BYTES];
		fprintf(out, "            a process begins up to %s after its machine has joined",
			skep_time_text((double)s->admission_ns * 1e-9, time));
		if (s->churn.unadmitted > 0)
			fprintf(out, "; %" PRIu64 " machine%s taken away before", s->churn.unadmitted,
				s->churn.unadmitted == 1 ? " is" : "s are");
		fputs("\n", out);
	}
}

void skep_traced_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_lifetime_fit *law = &s->churn.drawn_from;
	bool drawn = s->has_trace && law->scale_s > 0;
	skep_json_add_text(root, "trace", s->has_trace ? s->trace_path : "");
	skep_json_add_text(root, "trace_law", drawn ? skep_lifetime_distribution_names[law->law] : "");
	cJSON_AddBoolToObject(root, "trace_unbound", s->churn.unbound);
	cJSON_AddNumberToObject(root, "trace_left_out", (double)s->churn.unplaced);
	cJSON_AddNumberToObject(root, "trace_admission_s", (double)s->admission_ns * 1e-9);
	cJSON_AddNumberToObject(root, "trace_unadmitted", (double)s->churn.unadmitted);
	skep_json_add_number(root, "trace_mean_life_s", drawn ? skep_lifetime_mean_s(law) : NAN);
}

/* ---- machines that are asked for ---------------------------------------------------------------------------------- */

static const char *policy_name(const struct skep_scenario *s)
{
	return s->scale.policy == SKEP_SCALE_DEADLINE ? "deadline" : "price";
}

void skep_scaled_print(const struct skep_scenario *s, FILE *out)
{
	const struct skep_scale *scale = &s->scale;
	char time[SKEP_TEXT_BYTES];
	if (s->plan.scale == NULL)
		return;
	fprintf(out, "  scale     by %s", policy_name(s));
	if (scale->policy == SKEP_SCALE_DEADLINE)
		fprintf(out, " (%s)", skep_time_text((double)scale->deadline_ns * 1e-9, time));
	fprintf(out, ": %" PRIu32 " to %" PRIu32 " machines, %" PRIu32 " at the start", scale->min, scale->max,
		s->churn.presents);
	if (scale->budget_microusd_per_h > 0)
		fprintf(out, ", %.4g USD/h at most", (double)scale->budget_microusd_per_h * 1e-6);
	fputs("; what is said of a step is with those\n            ", out);
	for (uint32_t k = 0; k < scale->kinds; k++)
		fprintf(out, "%s%" PRIu32 " %s", k > 0 ? ", " : "", scale->kind[k].workers, s->scale_name[k]);
	fputc('\n', out);
}

static cJSON *kinds_json(const struct skep_scenario *s)
{
	cJSON *list = cJSON_CreateArray();
	for (uint32_t k = 0; k < s->scale.kinds; k++) {
		cJSON *kind = skep_json_add_row(list);
		cJSON_AddStringToObject(kind, "name", s->scale_name[k]);
		cJSON_AddNumberToObject(kind, "machines", s->scale_kind[k].workers);
		cJSON_AddNumberToObject(kind, "start", s->scale_kind[k].start);
		cJSON_AddNumberToObject(kind, "speed", (double)s->scale_kind[k].speed / SKEP_SPEED_MAX);
	}
	return list;
}

/* Null where there is no such limit. */
static void add_limit(cJSON *object, const char *key, uint64_t value, double unit)
{
	skep_json_add_number(object, key, value > 0 ? (double)value * unit : NAN);
}

void skep_scaled_add_json(const struct skep_scenario *s, cJSON *root)
{
	const struct skep_scale *scale = &s->scale;
	cJSON *object = skep_json_add_object(root, "scale", s->plan.scale != NULL);
	if (object == NULL)
		return;
	cJSON_AddStringToObject(object, "policy", policy_name(s));
	cJSON_AddNumberToObject(object, "min", scale->min);
	cJSON_AddNumberToObject(object, "max", scale->max);
	cJSON_AddNumberToObject(object, "start", s->churn.presents);
	add_limit(object, "deadline_s", scale->deadline_ns, 1e-9);
	cJSON_AddNumberToObject(object, "share", (double)scale->share_ppm * 1e-6);
	cJSON_AddNumberToObject(object, "margin", (double)scale->margin_ppm * 1e-6);
	cJSON_AddNumberToObject(object, "period_s", (double)scale->period_ns * 1e-9);
	cJSON_AddNumberToObject(object, "cool_down_s", (double)scale->cool_down_ns * 1e-9);
	add_limit(object, "budget_usd_per_h", scale->budget_microusd_per_h, 1e-6);
	add_limit(object, "max_price_usd_per_h", scale->machine_microusd_per_h, 1e-6);
	cJSON_AddItemToObject(object, "kinds", kinds_json(s));
}

/* ---- a stage over several GPUs ------------------------------------------------------------------------------------ */

static void print_gpus(const struct skep_scenario *s, uint32_t gpu, FILE *out)
{
	const struct skep_gpu *type = &s->topology.gpu[gpu];
	struct skep_split split = skep_split_of(s, gpu);
	if (split.gpus == 1)
		return;
	fprintf(out, "  split     a stage over %u x %s, joined by %.4g GB/s, %.4g us: ", split.gpus, type->name,
		type->board.inner_Bps / 1e9, type->board.inner_latency_s * 1e6);
	double forward, backward;
	skep_split_inner_bytes(s, gpu, 0, &forward, &backward);
	fprintf(out, "each sends %.4g MB forwards and %.4g MB backwards in stage 0%s\n", forward / 1e6, backward / 1e6,
		split.sequence ? ", the sequence too" : "");
}

static void print_host(const struct skep_scenario *s, uint32_t gpu, FILE *out)
{
	const struct skep_board *board = &s->topology.gpu[gpu].board;
	fprintf(out, "  offload   %s to hosts of %.4g GB at %.4g GB/s (%s), PCIe %.4g GB/s%s\n",
		s->offload == SKEP_OFFLOAD_GRADIENTS ? "optimizer and gradients" : "optimizer", board->host_bytes / 1e9,
		board->host_Bps / 1e9, s->topology.gpu[gpu].name, board->pcie_Bps / 1e9,
		board->pcie_assumed ? " (assumed)" : "");
}

void skep_split_print(const struct skep_scenario *s, FILE *out)
{
	static const char *const shared[] = {
		"", "optimizer", "optimizer and gradients", "optimizer, gradients and weights"};
	for (uint32_t gpu = 0; gpu < s->topology.gpus; gpu++) {
		print_gpus(s, gpu, out);
		if (s->offload != SKEP_OFFLOAD_NONE)
			print_host(s, gpu, out);
	}
	if (s->zero == 0)
		return;
	fprintf(out, "  zero      stage %u: %s shared among ", s->zero, shared[s->zero]);
	if (s->plan.stages > 1)
		fprintf(out, "the workers of each stage, by stage: ");
	for (uint32_t stage = 0; stage < s->plan.stages; stage++)
		fprintf(out, "%s%u", stage > 0 ? ", " : "", skep_split_owners(s, stage));
	fprintf(out, "%s%s\n", s->plan.stages > 1 ? "" : " workers",
		s->zero == 3   ? "; simulated alone"
		: s->zero == 2 ? "; a real run shares the optimizer's alone"
			       : "");
}
