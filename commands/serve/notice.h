/* SPDX-License-Identifier: Apache-2.0
 *
 * notice.h - a cloud's notice that it will take this machine away, as a command tells it: clouds differ in addresses, headers and
 * tokens, and their users have curl.
 */
#pragma once

#include <sys/types.h>

#include "base/diag.h"

/* From now on a child runs `command` by the shell every 2 s, without its output; when it succeeds this process gets SIGTERM.
 * Returns the child, which ends with this process; -1 and reterr. */
pid_t skep_notice_begin(const char *command, struct skep_diag *reterr);
void skep_notice_end(pid_t child); /* 0: there is none */
