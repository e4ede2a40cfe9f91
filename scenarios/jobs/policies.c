/* SPDX-License-Identifier: Apache-2.0
 *
 * policies.c - the policies that a file of jobs compares, and what they have in common.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scenarios/jobs/parts.h"

static const char *const policy_words[SKEP_JOBS_POLICIES_MAX + 1] = {
	"fifo", "srtf", "las", "synergy", "synergy-srtf", "synergy-las", NULL};

static const struct {
	enum skep_jobs_order order;
	bool synergy;
} MEANING[SKEP_JOBS_POLICIES_MAX] = {{SKEP_JOBS_FIFO, false}, {SKEP_JOBS_SRTF, false}, {SKEP_JOBS_LAS, false},
	{SKEP_JOBS_FIFO, true}, {SKEP_JOBS_SRTF, true}, {SKEP_JOBS_LAS, true}};

static void add(struct skep_jobs_draft *d, uint32_t word)
{
	struct skep_jobs_file *f = d->file;
	snprintf(f->policy_name[f->policies], sizeof f->policy_name[0], "%s", policy_words[word]);
	f->policy[f->policies].order = MEANING[word].order;
	f->policy[f->policies++].synergy = MEANING[word].synergy;
}

static bool named(const struct skep_jobs_file *f, const char *word)
{
	for (uint32_t i = 0; i < f->policies; i++)
		if (strcmp(f->policy_name[i], word) == 0)
			return true;
	return false;
}

static void read_list(struct skep_jobs_draft *d, const struct skep_yaml_node *root)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, root, "policies", false);
	if (!list)
		add(d, 0);
	if (list && skep_yaml_length(list) == 0)
		skep_reader_fail(&d->r, list, NULL, "policies: expected one at least, such as [fifo, srtf]");
	for (uint32_t i = 0; list && i < skep_yaml_length(list) && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		int word = skep_read_choice(&d->r, item, NULL, policy_words, -1);
		if (!d->r.diag->set && named(d->file, policy_words[word]))
			skep_reader_fail(&d->r, item, NULL, "policies: `%s` is there twice", policy_words[word]);
		else if (!d->r.diag->set)
			add(d, (uint32_t)word);
	}
}

/* Of the option: a word that is none is an error with those that there are. */
static void read_words(struct skep_jobs_draft *d, const char *words)
{
	for (const char *at = words; !d->r.diag->set; at++) {
		size_t length = strcspn(at, ",");
		char word[64];
		uint32_t i = 0;
		snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
		while (i < SKEP_JOBS_POLICIES_MAX && strcmp(word, policy_words[i]) != 0)
			i++;
		if (i == SKEP_JOBS_POLICIES_MAX)
			skep_fail(d->r.diag,
				"--policy %.60s: not a policy: take fifo, srtf, las, synergy, synergy-srtf or "
				"synergy-las, several with commas between them",
				word);
		else if (named(d->file, word))
			skep_fail(d->r.diag, "--policy: %s is there twice", word);
		else
			add(d, i);
		at += length;
		if (*at == '\0')
			return;
	}
}

static void read_queues(struct skep_jobs_draft *d, const struct skep_yaml_node *las, struct skep_jobs_policy *p)
{
	const struct skep_yaml_node *list = skep_read_list(&d->r, las, "queues", false);
	uint32_t count = list ? skep_yaml_length(list) : 2;
	p->queues = 3;
	p->queue_s[0] = 3600;
	p->queue_s[1] = 36000;
	if (list && count >= SKEP_JOBS_QUEUES_MAX)
		skep_reader_fail(&d->r, list, NULL, "las.queues: at most %u limits", SKEP_JOBS_QUEUES_MAX - 1);
	for (uint32_t i = 0; list && i < count && !d->r.diag->set; i++) {
		const struct skep_yaml_node *item = skep_yaml_item(list, i);
		p->queue_s[i] = skep_read_quantity(&d->r, item, NULL, SKEP_TIME, 1e-6, SKEP_JOBS_TIME_S_MAX, NAN);
		if (!d->r.diag->set && i > 0 && p->queue_s[i] <= p->queue_s[i - 1])
			skep_reader_fail(
				&d->r, item, NULL, "las.queues: expected limits that rise, such as [1 h, 10 h]");
	}
	p->queues = count + 1;
}

void skep_jobs_read_policies(struct skep_jobs_draft *d, const struct skep_yaml_node *root, const char *instead)
{
	struct skep_jobs_policy common = {.queues = 1};
	const struct skep_yaml_node *las = skep_read_map(&d->r, root, "las", false);
	if (instead) {
		(void)skep_read_has(&d->r, root, "policies");
		read_words(d, instead);
	} else {
		read_list(d, root);
	}
	common.backfill = skep_read_bool(&d->r, root, "backfill", false);
	read_queues(d, las, &common);
	common.promote = skep_read_number(&d->r, las, "promote", 0, 1e9, 0);
	skep_reader_close_map(&d->r, las);
	for (uint32_t i = 0; i < d->file->policies; i++) {
		struct skep_jobs_policy *p = &d->file->policy[i];
		common.order = p->order;
		common.synergy = p->synergy;
		*p = common;
	}
}
