/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c - first parameters by one of the rules of torch.nn.init, in place of what the architecture draws by itself: matrices and
 * tables by the rule, biases 0, and what norms multiply by stays 1.
 *
 * A product with n inputs and m outputs keeps the variance of its inputs if that of its weights is 1 / n, that of the gradients
 * with 1 / m. Xavier: 2 / (n + m) (Glorot, Bengio 2010, equation 16). Kaiming: 2 / n, since relu takes away half (He et al. 2015,
 * equation 10). Numbers uniform on [-a, a) have the variance a^2 / 3. A matrix that joins several, as that of queries, keys and
 * values, counts as one, as in torch.nn.MultiheadAttention; of a stack of experts each is drawn for itself.
 */
#include <assert.h>
#include <math.h>

#include "models/layers/layer.h"

static double variance_of(const struct skep_model *model, const struct skep_tensor *tensor)
{
	assert(tensor->role != SKEP_TENSOR_VECTOR);
	bool table = tensor->role == SKEP_TENSOR_TABLE;
	double in = table ? tensor->columns : tensor->rows, out = table ? tensor->rows : tensor->columns;
	in /= tensor->stacked > 0 ? tensor->stacked : 1;
	switch (model->init) {
	case SKEP_INIT_XAVIER_UNIFORM:
	case SKEP_INIT_XAVIER_NORMAL:
		return 2 / (in + out);
	case SKEP_INIT_KAIMING_UNIFORM:
	case SKEP_INIT_KAIMING_NORMAL:
		return 2 / in;
	case SKEP_INIT_NORMAL:
	case SKEP_INIT_DEFAULT:
		break;
	}
	return (double)model->init_deviation * model->init_deviation;
}

void skep_tensor_init(const struct skep_model *model, struct skep_tensor *tensor)
{
	if (model->init == SKEP_INIT_DEFAULT)
		return;
	if (tensor->role == SKEP_TENSOR_VECTOR) {
		tensor->size = tensor->draw == SKEP_DRAW_CONSTANT ? tensor->size : 0;
		tensor->draw = SKEP_DRAW_CONSTANT;
		return;
	}
	bool uniform = model->init == SKEP_INIT_XAVIER_UNIFORM || model->init == SKEP_INIT_KAIMING_UNIFORM;
	tensor->draw = uniform ? SKEP_DRAW_UNIFORM : SKEP_DRAW_NORMAL;
	tensor->size = (float)sqrt((uniform ? 3 : 1) * variance_of(model, tensor));
}
