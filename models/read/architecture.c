/* SPDX-License-Identifier: Apache-2.0
 *
 * architecture.c - see architecture.h. A transformer that can be trained keeps for its backward pass what its arithmetic does,
 * which layers/ says; here are its measures alone.
 */
#include "models/read/architecture.h"

#include "models/read/experts.h"

enum { WIDTH_MAX = 65536, FEED_MAX = 1 << 20 };

/* The last token of the vocabulary masks, unless another one is said to. */
static void read_masking(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret)
{
	const int64_t last = (int64_t)ret->vocabulary - 1;
	ret->masked = skep_read_number(r, map, "masked", 1e-6, 1, SKEP_MASKED_USUALLY);
	ret->mask_token = (uint32_t)skep_read_integer(r, map, "mask_token", 0, last, last);
}

static void read_measures(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret)
{
	const bool llama = ret->architecture == SKEP_ARCHITECTURE_LLAMA,
		   bert = ret->architecture == SKEP_ARCHITECTURE_BERT;
	const int64_t h = ret->hidden;
	ret->heads = (uint32_t)skep_read_integer(r, map, "heads", 1, WIDTH_MAX, INT64_MIN);
	ret->kv_heads = ret->heads;
	if (llama)
		ret->kv_heads = (uint32_t)skep_read_integer(r, map, "kv_heads", 1, WIDTH_MAX, ret->heads);
	ret->feed_forward = (uint32_t)skep_read_integer(r, map, "feed_forward", 1, FEED_MAX, llama ? INT64_MIN : 4 * h);
	ret->tied = skep_read_bool(r, map, "tied", bert);
	ret->context = (uint32_t)skep_read_integer(r, map, "context", ret->sequence, 1 << 24, ret->sequence);
	ret->norm_epsilon = skep_read_number(r, map, "norm_epsilon", 1e-12, 1, bert ? 1e-12 : 1e-5);
	if (llama)
		ret->rotary_base = skep_read_number(r, map, "rotary_base", 2, 1e9, 10000);
	if (bert)
		read_masking(r, map, ret);
}

bool skep_architecture_read(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *ret)
{
	static const char *const architectures[] = {"none", "gpt2", "llama", "bert", NULL};
	ret->architecture = (enum skep_architecture)skep_read_choice(r, map, "architecture", architectures, 0);
	skep_experts_read(r, map, ret);
	if (ret->architecture == SKEP_ARCHITECTURE_NONE)
		return false;
	read_measures(r, map, ret);
	if (r->diag->set)
		return true;
	const uint32_t h = ret->hidden;
	if (h % ret->heads != 0)
		skep_reader_fail(r, map, "heads", "expected a divisor of the hidden size, %u", h);
	else if (ret->heads % ret->kv_heads != 0)
		skep_reader_fail(r, map, "kv_heads", "expected a divisor of the number of heads, %u", ret->heads);
	else if (ret->architecture == SKEP_ARCHITECTURE_LLAMA && h / ret->heads % 2 != 0)
		skep_reader_fail(r, map, "heads",
			"a head is %u wide, and rotary positions turn pairs: expected an even width", h / ret->heads);
	ret->dropout = SKEP_DROPOUT_NONE;
	return true;
}
