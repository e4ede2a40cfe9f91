/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h - what the kinds of core/ are called wherever a person reads of them: in databases, replays, complaints and stories.
 * Queries and plots look for these words, so a name that has been used stays.
 */
#pragma once

#include <stdint.h>

/* Static storage, and "?" for a kind that there is not. */
const char *skep_op_name(uint8_t kind);         /* enum skep_op_kind: "add_store" */
const char *skep_message_name(uint8_t kind);    /* enum skep_message_kind: "FORWARD" */
const char *skep_note_name(uint8_t kind);       /* enum skep_note_kind: "stage_empty" */
const char *skep_pipeline_name(uint8_t kind);   /* enum skep_pipeline, as in scenarios: "gpipe" */
const char *skep_collective_name(uint8_t kind); /* enum skep_collective, as in scenarios: "ring" */
const char *skep_weights_name(uint8_t kind);    /* enum skep_weights, as in scenarios: "stashed" */
const char *skep_on_loss_name(uint8_t kind);    /* enum skep_on_loss, as in scenarios: "rerun" */
const char *skep_lane_name(uint8_t lane);       /* enum skep_lane: "compute" */
const char *skep_traffic_name(uint8_t kind);    /* enum skep_traffic: "pipeline" */
