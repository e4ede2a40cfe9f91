/* SPDX-License-Identifier: Apache-2.0
 *
 * mistaken.c - see groups.h: files of other kinds that are given as a scenario, told by a key that only they have, and the folder
 * that a scenario is in.
 */
#include "scenarios/read/groups.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/outputs.h"

static const struct skep_mistaken OTHERS[] = {
	{"sites", "a topology; a scenario names it at `cluster.topology`"},
	{"matrix", "a topology; a scenario names it at `cluster.topology`"},
	{"peers", "a topology; a scenario names it at `cluster.topology`"},
	{"kind", "a model; a scenario names it at `model.file`"},
	{"flops", "the profile of a GPU; machines of a topology name it at `gpu`"},
	{"jobs", "a list of jobs, which `skep jobs` simulates"},
};

void skep_mistaken_refuse(struct skep_reader *r, const struct skep_yaml_node *root)
{
	if (r->diag->set || skep_yaml_kind(skep_read_any(r, root, "model")) == SKEP_YAML_MAP)
		return;
	skep_reader_refuse_mistaken(r, root, "scenario", OTHERS, sizeof OTHERS / sizeof OTHERS[0]);
}

bool skep_mistaken_folder(const char *path, struct skep_diag *reterr)
{
	char inside[SKEP_PATH_BYTES];
	struct stat st;
	size_t length = strlen(path);
	int used = snprintf(
		inside, sizeof inside, "%s%sscenario.yaml", path, length > 0 && path[length - 1] == '/' ? "" : "/");
	if (used < 0 || (size_t)used >= sizeof inside || stat(inside, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	skep_diag_set(reterr, path, 0, 0, NULL, "is a folder: did you mean %s?", inside);
	return true;
}
