/* SPDX-License-Identifier: Apache-2.0
 *
 * farewell.h - what `serve --resume` does when nothing is left to do: it tells those who knock that the run has reached its end.
 */
#ifndef SKEP_EXEC_FAREWELL_H
#define SKEP_EXEC_FAREWELL_H

#include "exec/serve/serve.h"

#define SKEP_FAREWELL_S 65u /* more than the longest pause of `join --stay` */

/* Until as many were told as the scenario has workers, or SKEP_FAREWELL_S are over. Takes over the listener. The number of a
 * signal that came first; 0: none did, or it cannot listen, and reterr says why. */
int skep_farewell(
	const struct skep_scenario *scenario, const struct skep_serve_options *options, struct skep_diag *reterr);

#endif
