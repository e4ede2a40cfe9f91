/* SPDX-License-Identifier: Apache-2.0
 *
 * data.h - the folders in which the data that comes with the program may stand: models/, topologies/, scenarios/.
 *
 * In this order, each only if it is there: the clone that the program was built in (the nearest folder above the program's
 * own that holds topologies/gpus), share/skep beside the program's bin/, skep/ in $XDG_DATA_HOME (~/.local/share), and skep/
 * in each folder of $XDG_DATA_DIRS (/usr/local/share:/usr/share).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKEP_DATA_FOLDERS_MAX 16u
#define SKEP_DATA_PATH_BYTES 1024u

struct skep_data_folders {
	char path[SKEP_DATA_FOLDERS_MAX][SKEP_DATA_PATH_BYTES];
	uint32_t count;
};

void skep_data_folders(struct skep_data_folders *ret);

/* `name`, a relative path such as models/tiny-gpt2.yaml, in the first of these folders that has it. */
bool skep_data_find(const char *name, char *ret, size_t size);

/* `path` if it is there; else, where that has it, the file of this name that comes with the program, in `room`. */
const char *skep_data_or(const char *path, char *room, size_t size);
