/* SPDX-License-Identifier: Apache-2.0
 *
 * remains.h - the temporary files of writers that were killed (outputs.h): whose such a file is, and whether its writer is surely
 * gone.
 */
#pragma once

#include <stdint.h>

/* Where process numbers mean what they mean here: of this boot of this kernel, and of the namespace of this process's number. A
 * part of the names of temporary files. */
uint32_t skep_remains_mark(void);

/* Removes what killed writers of the file `path`, which need not be there, have left beside it: temporary files whose process was
 * one of here and is no more, or, of other machines or before a reboot, that nothing has touched for a day. Says nothing of
 * failure: the next writer tries again. */
void skep_remains_remove(const char *path);
