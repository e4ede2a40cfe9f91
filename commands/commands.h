/* SPDX-License-Identifier: Apache-2.0
 *
 * commands.h - the commands of skep, each in the file of its name.
 */
#pragma once

#include "base/options.h"

extern const struct skep_command skep_command_ask, skep_command_bench, skep_command_calibrate, skep_command_check,
	skep_command_compare, skep_command_doctor, skep_command_export, skep_command_fit, skep_command_help,
	skep_command_jobs, skep_command_plan, skep_command_plot, skep_command_probe, skep_command_published,
	skep_command_replay, skep_command_report, skep_command_run, skep_command_runs, skep_command_sim,
	skep_command_slurm, skep_command_serve, skep_command_join, skep_command_status, skep_command_sweep,
	skep_command_topology, skep_command_trace;
