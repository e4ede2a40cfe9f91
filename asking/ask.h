/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.h - `skep ask`: from a question in words to a page, and to a folder from which `sim`, `run` and `serve` go on.
 *
 *     question.h   what was asked, taken apart; sites.h what joins the machines, tables.h the data behind both
 *     model.h      the model; loss.h how its loss falls
 *     write.h      all of that as files that any command reads
 *     planning/    chooses stages, pipeline, microbatch, method and H, and who serves what
 *     evaluate.h   what a variation of the choice comes to, by simulation
 *     answer.h     the choice, what else was compared, what would help, with its interval; and how it is printed
 *
 * In this order. All limits are counts of combinations, evaluations and events: the same question has the same answer, on
 * whatever machine. What is stated of the choice is simulated with seeds that nothing before has seen. If one of the other
 * settings that are compared is better than the choice by more than 1 %, it takes its place, and what is compared is compared
 * with it.
 */
#pragma once

#include "asking/question.h"
#include "base/status.h"

#define SKEP_ASK_COMBINATIONS 128u /* that the planner looks at, if nothing is said; fewer of many machines */

/* Says itself what is wrong, and prints the page. */
enum status skep_ask(const struct skep_ask_request *request);
