/* SPDX-License-Identifier: Apache-2.0
 *
 * probed_devices.c - devices of a measured cluster: which of them are alike, and the profile of each kind with its tables. See
 * probed_internal.h.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/layout.h"
#include "topologies/gpu/gpu_fit.h"
#include "topologies/gpu/gpu_table.h"
#include "topologies/gpu/uncertainty.h"
#include "topologies/import/probed_internal.h"

enum { EMBEDDING, BLOCK, HEAD, EDGE }; /* layers of struct skep_probed_device */
enum { FORWARD, BACKWARD };            /* columns of them */

/* ---- kinds of devices -------------------------------------------------------------------------------------------- */

/* How much two ranks' devices differ, as a part of the rate; INFINITY: they are of different kinds. */
static double difference(const struct skep_probed *p, uint32_t a, uint32_t b)
{
	const struct skep_probed_device *x = &p->device[a], *y = &p->device[b];
	if (x->cuda != y->cuda || strcmp(x->name, y->name) != 0 || x->memory_bytes != y->memory_bytes ||
		x->products != y->products)
		return INFINITY;
	return !x->cuda && p->host_of[a] == p->host_of[b] ? 0 : fabs(x->flops / y->flops - 1);
}

/* A plain file name, as profiles are asked for. */
static void name_kind(struct work *w, struct kind *kind)
{
	const char *base = skep_path_base(w->path);
	char number[16] = "";
	if (w->kinds > 1)
		snprintf(number, sizeof number, "-%u", w->kinds);
	snprintf(kind->name, sizeof kind->name, "%.*s-%s%s", strlen(base) > 60 ? 55 : (int)(strlen(base) - 5), base,
		kind->first->cuda ? "cuda" : "cpu", number);
	for (char *c = kind->name; *c; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *c))
			*c = '-';
}

/* The nearest one; a new one if that is not near, and there is room. SKEP_PROBED_KINDS_MAX: neither. */
static uint32_t find_kind(const struct work *w, uint32_t rank)
{
	uint32_t nearest = SKEP_PROBED_KINDS_MAX;
	double least = INFINITY;
	for (uint32_t k = 0; k < w->kinds; k++) {
		double part = difference(w->probed, w->kind[k].member[0], rank);
		nearest = part < least ? k : nearest;
		least = fmin(part, least);
	}
	return least <= SKEP_PROBED_ALIKE || w->kinds == SKEP_PROBED_KINDS_MAX ? nearest : w->kinds;
}

bool skep_probed_find_kinds(struct work *w)
{
	if (w->probed->gpu[0]) { /* one, whose profile is there */
		w->kinds = 1;
		snprintf(w->kind[0].name, sizeof w->kind[0].name, "%s", w->probed->gpu);
		return true;
	}
	for (uint32_t i = 0; i < w->probed->ranks; i++) {
		uint32_t k = find_kind(w, i);
		if (k == SKEP_PROBED_KINDS_MAX) {
			skep_diag_set(w->outputs.diag, w->path, 0, 0, NULL,
				"more than %u kinds of devices: a topology has no room for them",
				SKEP_PROBED_KINDS_MAX);
			return false;
		}
		struct kind *kind = &w->kind[k];
		if (k == w->kinds) {
			w->kinds++;
			kind->first = &w->probed->device[i];
			kind->member = calloc(w->probed->ranks, sizeof *kind->member);
			name_kind(w, kind);
		}
		if (!kind->member) {
			skep_diag_set(w->outputs.diag, w->path, 0, 0, NULL, "not enough memory");
			return false;
		}
		kind->member[kind->members++] = i;
		w->kind_of[i] = k;
	}
	return true;
}

/* Of a figure of all its devices; `offset`: where it is in struct skep_probed_device. */
static double median_of(struct work *w, const struct kind *kind, size_t offset)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < kind->members; i++) {
		double value;
		memcpy(&value, (const char *)&w->probed->device[kind->member[i]] + offset, sizeof value);
		if (!isnan(value))
			w->value[count++] = value;
	}
	return count ? skep_probed_median(w->value, count) : NAN;
}

/* ---- what a pass costs besides ----------------------------------------------------------------------------------- */

static double or_nothing(double seconds)
{
	return isnan(seconds) ? 0 : seconds;
}

void skep_probed_add_costs(
	struct skep_probed_device *device, const struct skep_probed_model *model, const struct skep_probed_costs *costs)
{
	const double handover_s = or_nothing(costs->handover_s), payload_s = or_nothing(costs->payload_s),
		     byte_s = or_nothing(costs->byte_s);
	device->costs = *costs;
	device->overhead_s += handover_s;
	for (uint32_t l = 0; l < SKEP_PROBED_LAYERS; l++)
		for (uint32_t b = 0; b < device->microbatches && l != BLOCK; b++) {
			const double payload = l == EDGE ? payload_s + byte_s * model->bytes[l][b] : 0;
			device->layer[l][b].s[FORWARD] += handover_s / 2 + payload;
			device->layer[l][b].s[BACKWARD] += handover_s / 2 + payload;
		}
}

/* ---- a profile --------------------------------------------------------------------------------------------------- */

/* A product that is much faster than a smaller one was disturbed by other load. Its row is left out, since the
 * reader of tables would take it for a slip of the unit. */
static void put_table(struct work *w, const struct kind *kind, FILE *file)
{
	double before_s = 0;
	uint32_t left_out = 0;
	fprintf(file,
		"# Measured by `skep probe` on %s: the mean of the products of the passes of dense layers, k to m\n"
		"# and back.\n"
		"batch,m,k,n,time_us\n",
		w->probed->date);
	for (uint32_t p = 0; p < kind->first->products; p++) {
		const struct skep_probed_product *product = &kind->first->product[p];
		double seconds = median_of(
			w, kind, offsetof(struct skep_probed_device, product[0].seconds) + p * sizeof *product);
		bool another = p == 0 || product[-1].m != product->m || product[-1].k != product->k;
		if (!another && seconds < SKEP_TABLE_FALL_MOST * before_s) {
			left_out++;
			continue;
		}
		before_s = seconds;
		fprintf(file, "1,%u,%u,%u,", product->m, product->k, product->n);
		skep_put_number(file, 1e6 * seconds, false);
		putc('\n', file);
	}
	if (left_out > 0)
		fprintf(file, "# Left out: %u rows that were faster than smaller ones, which were disturbed.\n",
			left_out);
}

static void put_layers(struct work *w, const struct kind *kind, FILE *file)
{
	static const char *const name[SKEP_PROBED_LAYERS] = {
		[EMBEDDING] = "embedding", [BLOCK] = "block", [HEAD] = "head", [EDGE] = "edge"};
	const struct skep_probed_model *model = &w->probed->model;
	uint32_t microbatches = SKEP_PROBED_MICROBATCHES_MAX; /* that all of the kind have measured */
	for (uint32_t i = 0; i < kind->members; i++)
		if (w->probed->device[kind->member[i]].microbatches < microbatches)
			microbatches = w->probed->device[kind->member[i]].microbatches;
	fprintf(file,
		"# Measured by `skep probe` on %s: layers of %s as a run of skep has them, and what it costs a stage\n"
		"# to receive a payload or to send one (edge). An update is a step of AdamW.\n"
		"layer,tensor_parallel,microbatch,forward_us,backward_us,update_us,forward_flop,forward_bytes\n",
		w->probed->date, model->name);
	for (uint32_t l = 0; l < SKEP_PROBED_LAYERS; l++)
		for (uint32_t b = 0; b < microbatches; b++) {
			const size_t at = offsetof(struct skep_probed_device, layer) +
			                  (l * SKEP_PROBED_MICROBATCHES_MAX + b) * sizeof(struct skep_probed_layer);
			fprintf(file, "%s,1,%u", name[l], 1u << b);
			for (uint32_t c = 0; c < SKEP_PROBED_COLUMNS; c++) {
				putc(',', file);
				skep_put_number(file, 1e6 * median_of(w, kind, at + c * sizeof(double)), false);
			}
			fprintf(file, ",%.0f,%.0f\n", model->flop[l][b], model->bytes[l][b]);
		}
}

/* As a comment: they are in the figures. */
static void put_costs(struct work *w, const struct kind *kind, FILE *file)
{
	const size_t at = offsetof(struct skep_probed_device, costs);
	const double handover_s = median_of(w, kind, at + offsetof(struct skep_probed_costs, handover_s)),
		     payload_s = median_of(w, kind, at + offsetof(struct skep_probed_costs, payload_s)),
		     byte_s = median_of(w, kind, at + offsetof(struct skep_probed_costs, byte_s));
	char text[SKEP_TEXT_BYTES];
	if (isnan(handover_s))
		fputs("# How long it takes to hand a pass over to the thread that computes is not known: too busy.\n",
			file);
	else
		fprintf(file, "# The overhead includes %s for handing a pass over to the thread that computes.\n",
			skep_time_text(handover_s, text));
	if (w->probed->model.name[0] == '\0' || isnan(payload_s))
		return;
	fprintf(file, "# Rows of edges include the cost of a payload on the same cores: %s",
		skep_time_text(payload_s, text));
	fprintf(file, ", and %s for each MiB.\n", skep_time_text(byte_s * 0x1p20, text));
}

/* How far the rates below are off of what was measured: of the products, or of the passes of a block. Of fewer than
 * eight nothing. */
static void put_uncertainty(struct work *w, const struct kind *kind, FILE *file)
{
	const struct skep_probed_device *first = kind->first;
	const struct skep_probed_model *model = &w->probed->model;
	const double flops = median_of(w, kind, offsetof(struct skep_probed_device, flops)),
		     memory_Bps = median_of(w, kind, offsetof(struct skep_probed_device, memory_Bps)),
		     overhead_s = median_of(w, kind, offsetof(struct skep_probed_device, overhead_s));
	double error[SKEP_PROBED_PRODUCTS_MAX + 2 * SKEP_PROBED_MICROBATCHES_MAX];
	uint32_t count = 0;
	for (uint32_t p = 0; p < first->products; p++) {
		const struct skep_product product = {1, first->product[p].m, first->product[p].k, first->product[p].n};
		double seconds = median_of(w, kind,
			offsetof(struct skep_probed_device, product[0].seconds) + p * sizeof first->product[0]);
		error[count++] =
			fabs(log(seconds / fmax(skep_product_flop(&product) / flops,
						   skep_product_bytes(&product, SKEP_TYPE_FP32) / memory_Bps)));
	}
	for (uint32_t b = 0; first->products == 0 && b < first->microbatches; b++)
		for (uint32_t c = FORWARD; c <= BACKWARD; c++) {
			double times = c == FORWARD ? 1 : 2, flop = times * model->flop[BLOCK][b];
			double expected_s =
				overhead_s + fmax(flop / flops, times * model->bytes[BLOCK][b] / memory_Bps);
			error[count++] = fabs(log(first->layer[BLOCK][b].s[c] / expected_s));
		}
	if (count < SKEP_UNSEEN_LEAST)
		return;
	double deviation = fmin(1, skep_fit_quantile(error, count, 0.9) / SKEP_NORMAL_P90);
	fprintf(file,
		"# Of %u %s: 90 %% took no more than 1.645 times this from what these rates say, in logarithms.\n"
		"uncertainty: %.4g\n",
		count, first->products > 0 ? "products" : "passes of a block", deviation);
}

static void put_figures(struct work *w, const struct kind *kind, FILE *file)
{
	const struct skep_probed_device *first = kind->first;
	double alone = median_of(w, kind, offsetof(struct skep_probed_device, alone_flops));
	double flops = median_of(w, kind, offsetof(struct skep_probed_device, flops));
	fprintf(file, "# Of %u rank%s; each process may use %u core%s. ", kind->members, kind->members == 1 ? "" : "s",
		first->cores, first->cores == 1 ? "" : "s");
	const bool several = w->probed->hosts < w->probed->ranks;
	fputs(several ? "All ranks of a host computed at once" : "One rank a host computed", file);
	if (several && !isnan(alone)) { /* of the first rank of a host, which another kind may have */
		fputs("; one alone had ", file);
		skep_put_number(file, 1e-9 * alone, false);
		fputs(" GFLOP/s", file);
	}
	fputs(".\n", file);
	if (first->gpu_ranks > 1)
		fprintf(file,
			"# %u ranks share a GPU. While all of them compute, passes take up to %u times as long as "
			"here.\n",
			first->gpu_ranks, first->gpu_ranks);
	fprintf(file,
		"# flops: the best rate that passes had, so efficiency is 1. memory_bandwidth: of a step%s.\nflops: ",
		first->products > 0 ? "" : ", or of a pass where that is more");
	skep_put_number(file, 1e-9 * flops, false);
	fputs(" GFLOP/s\nefficiency: 1\nmemory_bandwidth: ", file);
	skep_put_number(file, 1e-6 * median_of(w, kind, offsetof(struct skep_probed_device, memory_Bps)), false);
	fputs(" MB/s\nmemory: ", file);
	skep_put_number(file, 1e-6 * first->memory_bytes, false);
	fputs(" MB\noverhead: ", file);
	skep_put_quantity(file, SKEP_TIME, median_of(w, kind, offsetof(struct skep_probed_device, overhead_s)), false);
	putc('\n', file);
	put_uncertainty(w, kind, file);
	put_costs(w, kind, file);
}

bool skep_probed_put_profile(struct work *w, const struct kind *kind)
{
	const struct skep_probed_device *first = kind->first;
	char inside[160], path[700], source[256];
	snprintf(inside, sizeof inside, "gpus/%s-products.csv", kind->name);
	skep_probed_folder(w->path, inside, path, sizeof path);
	FILE *table = first->products > 0 ? skep_outputs_begin(&w->outputs, path) : NULL;
	if (table)
		put_table(w, kind, table);
	snprintf(inside, sizeof inside, "gpus/%s-layers.csv", kind->name);
	skep_probed_folder(w->path, inside, path, sizeof path);
	const bool layers = w->probed->model.name[0] != '\0';
	table = layers && !w->outputs.diag->set ? skep_outputs_begin(&w->outputs, path) : NULL;
	if (table)
		put_layers(w, kind, table);
	snprintf(inside, sizeof inside, "gpus/%s.yaml", kind->name);
	skep_probed_folder(w->path, inside, path, sizeof path);
	FILE *file = w->outputs.diag->set ? NULL : skep_outputs_begin(&w->outputs, path);
	if (!file)
		return false;
	fputs("# Written by `skep probe`.\n", file);
	snprintf(inside, sizeof inside, "%.31s", kind->name);
	skep_put_quoted(file, "name", inside);
	snprintf(source, sizeof source, "measured by skep probe on %s: %s, %s", w->probed->date,
		first->name[0] ? first->name : "a device without a name",
		first->cuda ? "passes of a block of GPT-2, products in bf16" : "passes of dense layers in fp32");
	skep_put_quoted(file, "source", source);
	put_figures(w, kind, file);
	if (first->products > 0 || layers)
		fputs("tables:\n", file);
	if (first->products > 0)
		fprintf(file,
			"  - {file: \"%s-products.csv\", of: products, type: fp32, "
			"source: \"measured by skep probe\"}\n",
			kind->name);
	if (layers)
		fprintf(file,
			"  - {file: \"%s-layers.csv\", of: layers, model: \"%s\", type: fp32, "
			"source: \"measured by skep probe\"}\n",
			kind->name, w->probed->model.name);
	return true;
}
