/* SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.h - HOST:PORT as users write it, and the sockets that it stands for. IPv6 addresses stand in brackets.
 */
#pragma once

#include <sys/socket.h>

#include "base/diag.h"

#define SKEP_PORT "7337" /* where `serve` listens unless it is told otherwise */
#define SKEP_ENDPOINT_HOST 256u

#define SKEP_ENDPOINT_TEXT 272u /* of one, the final 0 included */

/* The first of a list with commas between, and *list is then behind it. False: there is none left, or one that is too long, which
 * is then in *list. */
bool skep_endpoint_next(const char **list, char ret[SKEP_ENDPOINT_TEXT]);
/* Are all of them addresses, and is there one? */
bool skep_endpoint_check_list(const char *list, struct skep_diag *reterr);

/* The same host, and the port behind; the text of an endpoint that is none, or has no port behind, is refused. */
bool skep_endpoint_behind(const char *text, char ret[SKEP_ENDPOINT_TEXT], struct skep_diag *reterr);
/* The first address that its name has. */
bool skep_endpoint_find(const char *text, struct sockaddr_storage *ret, socklen_t *ret_bytes, struct skep_diag *reterr);

/* A socket that takes connections in, non-blocking; -1 and reterr. "ADDR:PORT", "ADDR", ":PORT"; port 0: any that is free.
 * Without an address it listens on all, of IPv4 and IPv6. */
int skep_endpoint_listen(const char *text, uint16_t *ret_port, struct skep_diag *reterr);

/* A connected socket, non-blocking, and the host's name as it was written; -1 and reterr. Tries all addresses of the name for
 * `timeout_ms` each. */
int skep_endpoint_connect(const char *text, int timeout_ms, struct skep_diag *reterr);
