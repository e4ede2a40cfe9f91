/* SPDX-License-Identifier: Apache-2.0
 *
 * freeze.c - model.freeze: how many layers, from the first one on, are not trained, as with requires_grad_(False) in PyTorch: see
 * groups.h. A frozen layer does its forward pass. It has no gradient and no moments, is in no sum and no step changes it; and
 * since all that is frozen lies before all that is trained, no backward pass goes through it.
 *
 * Keeps true: the last layer is trained; of each stage's vector what is trained is one range (core/plan.h), so sums,
 * fragments and buckets are of that. A head that is tied to a frozen embedding has the same frozen table, which is no
 * one's to exchange gradients of: plan.tied is 0.
 */
#include "scenarios/read/groups.h"

#include <inttypes.h>

#include "base/layout.h"

void skep_freeze_set(struct skep_reader *r, const struct skep_yaml_node *map, uint32_t frozen, struct skep_scenario *s)
{
	struct skep_model *m = &s->model;
	char parts[96] = "";
	if (frozen == 0)
		return;
	if (m->architecture != SKEP_ARCHITECTURE_NONE)
		snprintf(parts, sizeof parts, " (the embedding, %" PRIu32 " group%s of blocks and the head)",
			m->layers - 2, skep_plural(m->layers - 2));
	if (m->kind == SKEP_MODEL_RESNET)
		skep_reader_fail(r, map, "freeze",
			"model.freeze: %.60s has batch norms, whose running averages every step moves: leave it out",
			m->name);
	else if (frozen >= m->layers)
		skep_reader_fail(r, map, "freeze",
			"model.freeze: %.60s has %" PRIu32
			" layers%s, and at least the last one is trained: expected at most %" PRIu32,
			m->name, m->layers, parts, m->layers - 1);
	else
		m->frozen = frozen;
	s->plan.tied = 0;
}

/* What is summed or moved elsewhere as a whole, or known of models that are trained as a whole. */
void skep_freeze_check(struct skep_reader *r, const struct skep_yaml_node *map, const struct skep_scenario *s)
{
	const struct {
		bool on;
		const char *why;
	} not_with[] = {
		{s->plan.routing == SKEP_ROUTING_TRAINER,
			"`schedule.routing: trainer` sends each stage its input once more with the gradient, and a frozen "
			"stage is sent none; take `peer`"},
		{s->zero > 0, "sync.zero deals out all of a stage's parameters; leave out either"},
		{s->offload != SKEP_OFFLOAD_NONE,
			"train.optimizer.offload keeps all of a stage's parameters on the host; leave out either"},
		{s->plan.inner.strided,
			"`sync.fragment_pattern: strided` lays the layers of a stage out in another order; take `sequential`"},
		{s->arithmetic == SKEP_ARITHMETIC_SCALING_LAW,
			"a law is of models that are trained as a whole; take `train.arithmetic: real` or `none`"},
	};
	for (uint32_t i = 0; s->model.frozen > 0 && i < sizeof not_with / sizeof not_with[0] && !r->diag->set; i++)
		if (not_with[i].on)
			skep_reader_fail(r, map, "freeze", "model.freeze: %s", not_with[i].why);
}
