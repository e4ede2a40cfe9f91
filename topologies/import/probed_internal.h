/* SPDX-License-Identifier: Apache-2.0
 *
 * probed_internal.h - what is under way while a measured cluster is written, shared by probed.c (files, pairs), probed_devices.c
 * (profiles) and probed_sites.c (sites whose hosts share lines). Private to these.
 */
#pragma once

#include "topologies/import/probed.h"
#include "topologies/import/writer.h"

#define SKEP_PROBED_KINDS_MAX 64u /* of devices: as a topology has */

struct kind { /* devices that share a profile */
	const struct skep_probed_device *first;
	char name[128];
	uint32_t *member; /* [members] ranks */
	uint32_t members;
};

struct work {
	const struct skep_probed *probed;
	struct skep_outputs outputs;
	const char *path;
	struct kind kind[SKEP_PROBED_KINDS_MAX];
	uint32_t kinds;
	uint32_t *kind_of; /* [ranks] */
	double *value;     /* [ranks] room for a median */
};

/* `inside` in the folder of the topology. */
void skep_probed_folder(const char *path, const char *inside, char *ret, size_t size);
double skep_probed_median(double *value, uint32_t count); /* 1 or more, which are sorted */

bool skep_probed_find_kinds(struct work *w); /* false: too many, or no memory; the diagnosis is filled */
bool skep_probed_put_profile(struct work *w, const struct kind *kind);     /* its tables first */
void skep_probed_put_link(FILE *file, const struct skep_probed_link *way); /* bandwidth, latency, jitter */
void skep_probed_put_shared_form(struct work *w, FILE *file);              /* two sites or more */

bool skep_probed_sites_create(struct skep_probed_sites *ret, uint32_t places); /* false: no memory */
void skep_probed_sites_finish(struct skep_probed_sites *sites);
