/* SPDX-License-Identifier: Apache-2.0
 *
 * varied.c - see runs_db.h. Every run is compared with the first one of its scenario; a key in which one of them differs is said
 * of all, up to KEYS_MAX of them, the seed behind the others.
 */
#include "analysis/runs/runs_db.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/yaml/settings.h"

#define KEYS_MAX 4u

struct key {
	char name[96], first[64]; /* what the first run has there; "": not set */
};

struct skep_varied_scenario {
	char *name, *text;
	struct key key[KEYS_MAX];
	uint32_t keys;
	bool more;
};

static struct skep_varied_scenario *scenario_of(const struct skep_varied *v, const char *name)
{
	for (uint32_t i = 0; i < v->scenarios; i++)
		if (strcmp(v->scenario[i].name, name) == 0)
			return &v->scenario[i];
	return NULL;
}

static bool begin_scenario(struct skep_varied *v, const char *name, const char *text)
{
	if (!skep_grow(&v->scenario, v->scenarios, sizeof *v->scenario))
		return false;
	struct skep_varied_scenario *added = &v->scenario[v->scenarios++];
	*added = (struct skep_varied_scenario){.name = strdup(name), .text = strdup(text)};
	return added->name != NULL && added->text != NULL;
}

static void note_key(struct skep_varied_scenario *s, const struct skep_difference *d)
{
	for (uint32_t k = 0; k < s->keys; k++)
		if (strcmp(s->key[k].name, d->key) == 0)
			return;
	if (s->keys == KEYS_MAX) {
		s->more = true;
		return;
	}
	struct key *key = &s->key[s->keys++];
	snprintf(key->name, sizeof key->name, "%s", d->key);
	snprintf(key->first, sizeof key->first, "%s", d->first);
}

bool skep_varied_add(struct skep_varied *v, const char *scenario, const char *text)
{
	assert(scenario != NULL && text != NULL);
	struct skep_varied_scenario *s = scenario_of(v, scenario);
	struct skep_differences d;
	if (s == NULL)
		return begin_scenario(v, scenario, text);
	if (strcmp(s->text, text) == 0)
		return true;
	skep_settings_compare(s->text, text, NULL, &d);
	s->more = s->more || d.count > SKEP_DIFFERENCES_SHOWN;
	for (size_t i = 0; i < d.count && i < SKEP_DIFFERENCES_SHOWN; i++)
		note_key(s, &d.item[i]);
	return true;
}

/* What the run with these differences has there. */
static const char *value_of(const struct key *key, const struct skep_differences *d)
{
	for (size_t i = 0; i < d->count && i < SKEP_DIFFERENCES_SHOWN; i++)
		if (strcmp(d->item[i].key, key->name) == 0)
			return d->item[i].second;
	return key->first;
}

const char *skep_varied_text(
	const struct skep_varied *v, const char *scenario, const char *text, char ret[SKEP_VARIED_BYTES])
{
	const struct skep_varied_scenario *s = scenario_of(v, scenario);
	struct skep_differences d = {0};
	size_t used = 0;
	ret[0] = '\0';
	if (s == NULL || s->keys == 0)
		return ret;
	skep_settings_compare(s->text, text, NULL, &d);
	for (uint32_t i = 0; i < 2 * s->keys && used < SKEP_VARIED_BYTES - 1; i++) {
		const struct key *key = &s->key[i % s->keys];
		bool seed = strcmp(key->name, "seed") == 0;
		const char *value = value_of(key, &d);
		if (seed == (i >= s->keys) && value[0] != '\0') /* a default goes without saying */
			used += (size_t)snprintf(ret + used, SKEP_VARIED_BYTES - used, "%s%.48s=%.24s", used ? " " : "",
				key->name, value);
	}
	if (s->more && used < SKEP_VARIED_BYTES - 1)
		snprintf(ret + used, SKEP_VARIED_BYTES - used, "%s...", used ? " " : "");
	for (char *c = ret; *c; c++) /* what a terminal would take for more than text */
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	return ret;
}

void skep_varied_finish(struct skep_varied *v)
{
	for (uint32_t i = 0; i < v->scenarios; i++) {
		free(v->scenario[i].name);
		free(v->scenario[i].text);
	}
	free(v->scenario);
	*v = (struct skep_varied){0};
}
