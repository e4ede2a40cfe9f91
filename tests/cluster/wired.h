/* SPDX-License-Identifier: Apache-2.0
 *
 * wired.h - a message as it comes out of the bytes that processes send each other (exec/transport/wire.h).
 */
#ifndef SKEP_TESTS_CLUSTER_WIRED_H
#define SKEP_TESTS_CLUSTER_WIRED_H

#include "core/skep.h"

/* The payload's handle stays with the message; all else is encoded and decoded. Aborts if the decoder refuses what was encoded,
 * or if encoding it again gives other bytes. */
struct skep_message wired_message(const struct skep_message *message);

#endif
