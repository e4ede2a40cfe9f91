/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.h - the data that answers are made from: links between cloud regions, networks of homes, prices of GPUs, and what DiLoCo
 * costs in loss. Each is a CSV file of the project with its source in its head; they are looked for as any file that a scenario
 * names.
 */
#pragma once

#include "base/diag.h"

#define SKEP_CLOUD_REGIONS_MAX 128u

struct skep_cloud_regions {
	char name[SKEP_CLOUD_REGIONS_MAX][40]; /* "gcp:us-central1" */
	uint32_t count;
};
bool skep_cloud_regions_read(struct skep_cloud_regions *ret, struct skep_diag *reterr);

struct skep_region_link { /* NAN: not known */
	double Bps, latency_s, usd_per_byte;
};
/* What was measured from one region to another; all NAN: nothing. */
bool skep_region_link_read(const char *from, const char *to, struct skep_region_link *ret, struct skep_diag *reterr);
/* The most that any machine of that provider was seen to send, bytes per second; the most common price of sending. */
bool skep_provider_read(const char *provider, double *ret_up_Bps, double *ret_usd_per_byte, struct skep_diag *reterr);

struct skep_home {
	double down_Bps, up_Bps, inside_s;
};
/* `region` as in "EUROPE", in any case, with - for _. *ret_found false: `ret_names` [size] lists those that there are. */
bool skep_home_read(const char *region, struct skep_home *ret, bool *ret_found, char *ret_names, size_t size,
	struct skep_diag *reterr);

struct skep_gpu_price {      /* USD per hour of one GPU; NAN: not known */
	double usd_per_h[2]; /* on demand, spot */
	bool attached;       /* without processor and memory */
	bool elsewhere;      /* of another provider */
	char provider[16], as_of[12];
};
/* Of the provider, else of any ("" too); both NAN: none is known. */
bool skep_gpu_price_read(const char *gpu, const char *provider, struct skep_gpu_price *ret, struct skep_diag *reterr);

#define SKEP_DILOCO_REPLICAS 4u
struct skep_diloco_row { /* of a model of so many parameters: losses in nats a token */
	double parameters, data_parallel, with[SKEP_DILOCO_REPLICAS]; /* 1, 2, 4 and 8 replicas */
};
#define SKEP_DILOCO_ROWS_MAX 16u
bool skep_diloco_read(struct skep_diloco_row *ret, uint32_t *ret_count, struct skep_diag *reterr); /* rising */
