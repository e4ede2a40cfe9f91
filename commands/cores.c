/* SPDX-License-Identifier: Apache-2.0
 *
 * cores.c - see cores.h.
 */
#include "commands/cores.h"

#include "models/team.h"

uint32_t skep_cores(void)
{
	return skep_team_cores();
}
