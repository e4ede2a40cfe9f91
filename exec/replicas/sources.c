/* SPDX-License-Identifier: Apache-2.0
 *
 * sources.c - see group.h: do all replicas read the same? Another scenario is found by what is agreed on (its job), but a
 * corpus or a topology under the same name may be another one on another machine, and a run that goes on there would go on
 * with that.
 *
 * The side that has made a connection says what it has read before anything else, each file and override by its digest, wherever
 * it lies. The other side refuses one that it has not read itself, and hears nothing more on that connection: so a replica that
 * reads something else neither votes nor leads, and ends when too few read what it does.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exec/replicas/group.h"

bool skep_sources_told(const struct link *link)
{
	return !link->out || link->told == link->group->setup->sources;
}

void skep_sources_tell(struct link *link)
{
	const struct skep_replicas_setup *setup = link->group->setup;
	while (!skep_sources_told(link)) {
		const struct skep_replica_source *source = &setup->source[link->told];
		union skep_words words = {.source = {.of = setup->sources, .bytes = source->bytes}};
		snprintf(words.source.name, sizeof words.source.name, "%s", source->name);
		memcpy(words.source.digest, source->digest, sizeof words.source.digest);
		if (!skep_link_say(link, SKEP_RECORD_SOURCE, &words))
			return;
		link->told++;
	}
}

static bool reads(const struct skep_replicas_setup *setup, const uint8_t digest[SKEP_HASH_BYTES])
{
	for (uint32_t i = 0; i < setup->sources; i++) {
		if (memcmp(setup->source[i].digest, digest, SKEP_HASH_BYTES) == 0)
			return true;
	}
	return false;
}

/* Of a replica that reads something else; said once of each. One that cannot be of a majority any more ends. */
static void differs(struct link *link, const char *how)
{
	struct group *group = link->group;
	uint32_t alike = 1; /* this one */
	assert(link->peer > 0 && link->peer <= group->count);
	if (!(group->differ & 1u << link->peer))
		fprintf(stderr,
			"skep: replica %u of %u and replica %u at %s do not read the same, so they do not work together: %s\n",
			group->setup->own, group->count, link->peer, group->address[link->peer], how);
	group->differ |= 1u << link->peer;
	for (uint32_t i = 1; i <= group->count; i++)
		alike += i != group->setup->own && !(group->differ & 1u << i);
	if (alike < group_majority(group))
		skep_group_fail(group, 2,
			"most replicas read other files than this one: %s; give all of them the same, and start this one "
			"again",
			how);
}

static void describe(const struct skep_source *other, const struct skep_replicas_setup *setup, char *ret, size_t size)
{
	for (uint32_t i = 0; i < setup->sources; i++) {
		if (strcmp(setup->source[i].name, other->name) != 0)
			continue;
		snprintf(ret, size, "%s differs (%" PRIu64 " and %" PRIu64 " bytes)", other->name,
			setup->source[i].bytes, other->bytes);
		return;
	}
	snprintf(ret, size, "one of them alone reads %s", other->name);
}

/* How what the other side has read differs from what this one has; false: it does not. */
static bool compare(const struct skep_source *other, const struct skep_replicas_setup *setup, char *ret, size_t size)
{
	bool known = reads(setup, other->digest);
	if (!known)
		describe(other, setup, ret, size);
	else if (other->of != setup->sources)
		snprintf(ret, size, "one reads %" PRIu32 " files and overrides, the other %" PRIu32, other->of,
			setup->sources);
	return !known || other->of != setup->sources;
}

void skep_sources_record(struct link *link, const struct skep_record *record)
{
	union skep_words words;
	char how[sizeof words.refused.reason] = "";
	bool answers = record->type == SKEP_RECORD_REFUSED;
	assert(answers || record->type == SKEP_RECORD_SOURCE);
	if (link->out != answers || !skep_words_decode(record, &words)) {
		skep_channel_fail(&link->channel, "what it says was not written by a replica");
		return;
	}
	if (answers) {
		differs(link, words.refused.reason);
		skep_channel_fail(&link->channel, "it reads other files");
		return;
	}
	if (!compare(&words.source, link->group->setup, how, sizeof how))
		return;
	link->refused = true; /* and left open until the other side has heard why, or it takes too long */
	differs(link, how);
	words = (union skep_words){.refused = {.for_good = true}};
	snprintf(words.refused.reason, sizeof words.refused.reason, "%s", how);
	skep_link_say(link, SKEP_RECORD_REFUSED, &words);
}
