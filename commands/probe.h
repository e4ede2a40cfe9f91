/* SPDX-License-Identifier: Apache-2.0
 *
 * probe.h - `skep probe`: measures a cluster and writes it as a topology.
 */
#ifndef SKEP_COMMANDS_PROBE_H
#define SKEP_COMMANDS_PROBE_H

#include "commands/arguments.h"

/* The whole command line, with the program's name and "probe". */
enum status skep_probe_command(int argc, char **argv);

#endif
