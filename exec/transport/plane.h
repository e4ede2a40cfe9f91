/* SPDX-License-Identifier: Apache-2.0
 *
 * plane.h - a run with tensor parallelism (T ranks share the stage of each worker) as T runs side by side, its planes.
 *
 * All processes with the same tensor parallel rank form a plane: a directory and one process for each worker, which exchange the
 * messages of an ordinary run, each about its own shard of the parameters. Process p of plane t has the rank p T + t of the
 * transport below, so that the ranks which share a stage are neighbours, as in Megatron-LM. To its loop a plane is a transport
 * like any other.
 *
 * The processes with the same p run the same machine of the core, and have to take the same decisions, since they meet inside
 * passes. A machine is deterministic, so it is enough that all of them hear the same events in the same order: that in which the
 * one of plane 0 hears them (exec/loop/lockstep.c). How they tell each other is here: by frames of a type of their own, which no
 * loop sees.
 */
#pragma once

#include "exec/transport/transport.h"

struct skep_plane;

/* The plane of whole->rank in a run of `planes` of them, 2 or more, of which whole->ranks is a multiple. `ret` becomes the
 * plane's transport; `whole` has to outlive it. The death of any process is to a plane the end of its transport. NULL: no
 * memory. */
struct skep_plane *skep_plane_create(struct skep_transport *whole, uint32_t planes, struct skep_transport *ret);
void skep_plane_destroy(struct skep_plane *plane); /* NULL is fine */

/* Which one it is, from 0, and of how many. */
uint32_t skep_plane_number(const struct skep_plane *plane);
uint32_t skep_plane_count(const struct skep_plane *plane);

/* Tells the processes of this machine in all other planes; at most SKEP_FRAME_CONTENT bytes. They hear it in order. */
void skep_plane_tell(struct skep_plane *plane, const uint8_t *bytes, uint32_t count);
/* The oldest that was told here and not forgotten, NULL: none. `poll` of the transport takes it in. */
const uint8_t *skep_plane_heard(const struct skep_plane *plane, uint32_t *ret_count);
void skep_plane_forget(struct skep_plane *plane);
