/* SPDX-License-Identifier: Apache-2.0
 *
 * graph.h - `skep plan --graph` and `skep sim --graph`: a graph (sim/graph/graph.h) to a file, and one from a file simulated.
 */
#pragma once

#include "commands/arguments.h"

/* Writes the graph of the scenario that the first operand names, its first `rounds` rounds, to `path`: as JSON, or for graphviz
 * if the name ends with .dot or .gv. */
enum status skep_graph_to_file(const struct arguments *arguments, const char *path, uint32_t rounds);

/* Simulates the graph in the file, on the scenario that it was made of, or the one that the first operand names, if there is an
 * operand, and prints what it comes to. With -o writes it with its new times. */
enum status skep_graph_from_file(const struct arguments *arguments, const char *path);
