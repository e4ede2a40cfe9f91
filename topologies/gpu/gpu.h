/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu.h - GPU speed profiles (topologies/gpus/NAME.yaml) and the time that an operation takes on one.
 */
#pragma once

#include "topologies/gpu/gpu_table.h"
#include "topologies/gpu/stage_table.h"
#include "topologies/read/board.h"

/* What efficiency and memory bandwidth of a profile are off by where it says nothing: the deviation of the logarithms of the
 * efficiencies that whole passes reach in 16 bits on A100, V100 and H100 (0.44, 0.31, 0.40; sources in docs/gpu-times.md). */
#define SKEP_GPU_UNCERTAINTY 0.18

struct skep_gpu {
	char name[32];
	char path[512];    /* where it was read; "": nowhere */
	char source[256];  /* measured, published or assumed; of what; by whom */
	double flops;      /* dense fp32 peak, FLOP/s */
	double efficiency; /* fraction of the peak that a large product reaches, (0, 1] */
	double memory_Bps; /* device memory */
	double memory_bytes;
	double overhead_s;  /* fixed time per operation: launches, framework */
	double uncertainty; /* of what is assumed above: the deviation of ln(real / predicted), see uncertainty.h */
	double speed;       /* times that of the card whose profile and tables these are; 1 as read */
	double peak[SKEP_TYPES];      /* FLOP/s of products of each type; 0: not known. That of fp32 is `flops` */
	double reached[SKEP_TYPES];   /* fraction of that peak which whole passes reach; that of fp32 is `efficiency` */
	enum skep_type type;          /* of the factors of a pass's products, by the roofline; a scenario chooses it */
	struct skep_gpu_table *table; /* [tables], their rows read by skep_gpu_load() */
	uint32_t tables;
	struct skep_stage_table stages; /* path "": it has none */
	struct skep_board board; /* of the machines that it is in: a topology has an entry for each (profile, board) */
};

/* The keys `name` and `source` of a description file. Too long a text is refused, and so is a source that does not say
 * whether its numbers are measured, published or assumed. */
void skep_label_read(struct skep_reader *r, const struct skep_yaml_node *map, char *ret_name, size_t name_size,
	char *ret_source, size_t source_size);

/* `name` is a file name without .yaml in the folder gpus/ beside the topology file `from`, or in topologies/gpus. An
 * unknown name gives a diagnosis about `from` without a line; a fault in the profile gives one about the profile. */
bool skep_gpu_read(const char *from, const char *name, struct skep_gpu *ret, struct skep_diag *reterr);

/* Whether the profile that the option --gpu names can be read, for a topology that will be written at `from`. An unknown name is
 * a fault of the option, not of that file. */
bool skep_gpu_is_there(const char *from, const char *name, struct skep_diag *reterr);

/* Makes it a card of the same memory that does everything so many times as fast; for tables, before their rows are read. */
void skep_gpu_scale(struct skep_gpu *gpu, double speed);

void skep_gpu_finish(struct skep_gpu *gpu);

/* The table of this kind and type, its rows read if they were not; NULL: the profile has none, or the file is wrong. */
struct skep_gpu_table *skep_gpu_load(
	struct skep_gpu *gpu, enum skep_table_kind kind, enum skep_type type, struct skep_diag *reterr);
/* The same of its table of stages; NULL: it has none, or the file is wrong. */
struct skep_stage_table *skep_gpu_load_stages(struct skep_gpu *gpu, struct skep_diag *reterr);
/* Whether products of that type are known to it: by their peak or by a table (which needs the peak). */
bool skep_gpu_has_type(const struct skep_gpu *gpu, enum skep_type type);

/* The type in which such a GPU is used to train where nothing else is said: bf16 where the profile has its peak (Ampere and
 * newer), else fp16 where its peak is more than twice that of fp32, which takes matrix units (Volta, Turing), else fp32. */
enum skep_type skep_gpu_training_type(const struct skep_gpu *gpu);

/* Roofline of the GPU's type: max(flop / (peak * reached), bytes / memory_Bps). */
double skep_gpu_busy_s(const struct skep_gpu *gpu, double flop, double bytes);
/* The same and the overhead of an operation, in ns, at least 1. */
uint64_t skep_gpu_time_ns(const struct skep_gpu *gpu, double flop, double bytes);
