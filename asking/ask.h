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
 * whatever machine. What is stated of the choice is simulated with seeds that nothing before has seen.
 *
 * One of the other settings that are compared takes the place of the choice, and what is compared is compared with it, where its
 * seeds tell that it is better (takes_its_place() of choose.c):
 *
 *     for the least money    it is cheaper by 1 %;
 *     for the least time     it is faster by 1 %, for less than twice the price or by 5 % at any; or it is as fast (within 0.5 %)
 *                            and cheaper by 3 %;
 *     for both               all of its seeds come to an end where some of the choice do not, and never the other way round.
 */
#pragma once

#include "asking/question.h"
#include "base/status.h"

#define SKEP_ASK_COMBINATIONS 128u /* that the planner looks at, if nothing is said; fewer of many machines */

/* Says itself what is wrong, and prints the page. */
enum status skep_ask(const struct skep_ask_request *request);
