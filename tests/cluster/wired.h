/* SPDX-License-Identifier: Apache-2.0
 *
 * wired.h - a message as it comes out of the bytes that processes send each other (exec/transport/wire.h).
 */
#pragma once

#include "core/skep.h"

/* The payload's handle stays with the message; all else is encoded and decoded. Aborts if the decoder refuses what was encoded,
 * or if encoding it again gives other bytes. */
struct skep_message wired_message(const struct skep_message *message);
