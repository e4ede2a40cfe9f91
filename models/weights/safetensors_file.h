/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors_file.h - one file of the safetensors format and its header. Not for other folders.
 */
#pragma once

#include "base/files/mapped.h"
#include "models/weights/safetensors.h"

struct skep_safetensors_file {
	char *path;
	struct skep_mapped mapped;
	struct skep_safetensor *tensor; /* [tensors], by name */
	uint32_t tensors;
};

bool skep_safetensors_file_open(const char *path, struct skep_safetensors_file *ret, struct skep_diag *reterr);
void skep_safetensors_file_close(struct skep_safetensors_file *file);
