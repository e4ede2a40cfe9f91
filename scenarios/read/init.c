/* SPDX-License-Identifier: Apache-2.0
 *
 * init.c - see groups.h. Weights are opened here, so that a file that does not fit the model is refused before anything starts.
 */
#include "scenarios/read/groups.h"

#include <stdlib.h>

#include "models/stage/stage_weights.h"
#include "models/weights/safetensors.h"

/* By enum skep_init. */
static const char *const methods[] = {
	"default", "normal", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", NULL};

const char *skep_init_name(enum skep_init init)
{
	return methods[init];
}

/* train.init.method: of torch.nn.init. */
static void read_method(struct skep_reader *r, const struct skep_yaml_node *map, struct skep_model *model)
{
	model->init = (enum skep_init)skep_read_choice(r, map, "method", methods, SKEP_INIT_DEFAULT);
	if (model->init == SKEP_INIT_NORMAL)
		model->init_deviation = (float)skep_read_number(r, map, "deviation", 1e-6, 100, 0.02);
	else if (skep_read_has(r, map, "deviation"))
		skep_reader_fail(r, map, "deviation",
			"train.init.deviation: is of `method: normal`; the others have theirs by the shape of each matrix");
}

static void open_weights(struct skep_reader *r, const struct skep_yaml_node *map, const char *path,
	struct skep_scenario *s, FILE *details)
{
	struct skep_diag why = skep_diag_beside(r->diag);
	char *list = NULL;
	s->weights = skep_model_weights_open(&s->model, path, &list, &why);
	if (s->weights == NULL)
		skep_reader_fail(r, map, "weights", "train.init.weights: %.200s: %.250s", why.file, why.message);
	else
		snprintf(s->weights_path, sizeof s->weights_path, "%s", skep_safetensors_path(s->weights));
	if (list != NULL && s->weights == NULL && details != NULL)
		fputs(list, details);
	free(list);
}

void skep_init_read(struct skep_reader *r, const struct skep_yaml_node *train, struct skep_scenario *s, FILE *details)
{
	char path[sizeof s->weights_path];
	const struct skep_yaml_node *map = skep_read_map(r, train, "init", false);
	if (!map)
		return;
	bool tries = skep_candidates_read(r, map, s), draws = skep_read_has(r, map, "method");
	bool from_file = skep_read_has(r, map, "weights");
	read_method(r, map, &s->model);
	const char *name = skep_read_string(r, map, "weights", from_file ? NULL : "");
	skep_reader_close_map(r, map);
	if (r->diag->set || !from_file)
		return;
	if (draws)
		skep_reader_fail(r, map, "method",
			"train.init.method: with `weights` first parameters come from a file; leave out either");
	else if (tries)
		skep_reader_fail(r, map, "weights",
			"train.init.weights: candidates draw their first parameters, so there is nothing to try with those "
			"of a file; leave out either");
	else if (s->model.architecture == SKEP_ARCHITECTURE_NONE)
		skep_reader_fail(r, map, "weights",
			"train.init.weights: only models with an architecture have weights in files, and %.60s has "
			"none",
			s->model.name);
	else if (s->model.shared > 1)
		skep_reader_fail(r, map, "weights",
			"train.init.weights: blocks of %.60s share their parameters, those of a file do not",
			s->model.name);
	else if (!skep_file_find(r->diag->files, s->path, name, path, sizeof path))
		skep_reader_fail_value(r, map, "weights", "train.init.weights: no file or folder `%.200s`", name);
	else if (s->arithmetic == SKEP_ARITHMETIC_REAL)
		open_weights(r, map, path, s, details);
}
