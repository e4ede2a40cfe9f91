/* SPDX-License-Identifier: Apache-2.0
 *
 * admit.c - skep_churn_admit() of churn.h: joins that take their time.
 */
#include "topologies/churn/churn.h"

#include <assert.h>
#include <stdlib.h>

struct moved { /* an event, and where it stood before */
	struct skep_churn_event event;
	size_t number;
};

static int by_time(const void *a, const void *b)
{
	const struct moved *x = a, *y = b;
	if (x->event.at_ns != y->event.at_ns)
		return x->event.at_ns < y->event.at_ns ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The leave of the life that this join begins; `events`: it lasts. */
static size_t leave_of(const struct skep_churn *churn, size_t join)
{
	size_t i = join + 1;
	while (i < churn->events && churn->event[i].worker != churn->event[join].worker)
		i++;
	return i;
}

static void write_back(struct skep_churn *churn, const struct moved *moved, size_t count)
{
	uint32_t now = churn->presents;
	churn->events = count;
	churn->joins = churn->leaves = 0;
	churn->most = now;
	for (size_t i = 0; i < count; i++) {
		churn->event[i] = moved[i].event;
		churn->joins += moved[i].event.join;
		churn->leaves += !moved[i].event.join;
		now = moved[i].event.join ? now + 1 : now - 1;
		churn->most = now > churn->most ? now : churn->most;
	}
	if (count > 0 && churn->event[count - 1].at_ns > churn->end_ns)
		churn->end_ns = churn->event[count - 1].at_ns;
}

bool skep_churn_admit(struct skep_churn *churn, uint32_t workers, const skep_time *first_ns, const skep_time *again_ns)
{
	bool *known = calloc(workers, sizeof *known), *gone = calloc(churn->events + 1, sizeof *gone);
	struct moved *moved = calloc(churn->events + 1, sizeof *moved);
	bool fine = known != NULL && gone != NULL && moved != NULL;
	size_t count = 0;
	for (uint32_t i = 0; fine && i < churn->presents; i++)
		known[churn->present[i]] = true;
	for (size_t i = 0; fine && i < churn->events; i++) {
		struct skep_churn_event event = churn->event[i];
		assert(event.worker < workers);
		if (event.join) {
			size_t leave = leave_of(churn, i);
			event.at_ns += known[event.worker] ? again_ns[event.worker] : first_ns[event.worker];
			gone[i] = leave < churn->events && churn->event[leave].at_ns <= event.at_ns;
			gone[leave] = gone[leave] || gone[i];
			known[event.worker] = known[event.worker] || !gone[i];
			churn->unadmitted += gone[i];
		}
		if (!gone[i])
			moved[count++] = (struct moved){event, i};
	}
	if (fine && count > 0)
		qsort(moved, count, sizeof *moved, by_time);
	if (fine)
		write_back(churn, moved, count);
	free(known);
	free(gone);
	free(moved);
	return fine;
}
