/* SPDX-License-Identifier: Apache-2.0
 *
 * notices.c - when a worker is warned that the trace will take its machine away, and when the directory is told of a
 * loss: the same in both worlds.
 */
#include <stdlib.h>

#include "topologies/churn/churn.h"

static int by_time(const void *a, const void *b)
{
	const struct skep_notice *x = a, *y = b;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->worker < y->worker ? -1 : x->worker > y->worker;
}

bool skep_churn_notices(const struct skep_churn *churn, uint32_t workers, skep_time notice_ns, struct skep_notice **ret,
	uint32_t *ret_count)
{
	skep_time *joined_ns = calloc(workers, sizeof *joined_ns);
	struct skep_notice *notice = calloc(churn->events + 1, sizeof *notice);
	uint32_t count = 0;
	for (size_t i = 0; joined_ns && notice && notice_ns > 0 && i < churn->events; i++) {
		const struct skep_churn_event *event = &churn->event[i];
		skep_time earliest_ns = joined_ns[event->worker] + 1; /* after START */
		skep_time at_ns = event->at_ns > notice_ns ? event->at_ns - notice_ns : 0;
		if (event->join)
			joined_ns[event->worker] = event->at_ns;
		else if (event->at_ns > earliest_ns)
			notice[count++] = (struct skep_notice){
				at_ns > earliest_ns ? at_ns : earliest_ns, event->at_ns, event->worker};
	}
	bool good = joined_ns && notice;
	if (good)
		qsort(notice, count, sizeof *notice, by_time);
	else
		free(notice);
	free(joined_ns);
	*ret = good ? notice : NULL;
	*ret_count = good ? count : 0;
	return good;
}

skep_time skep_churn_heard_at(const struct skep_churn_event *event, skep_time detection_delay_ns)
{
	return event->join || detection_delay_ns == 0 ? SKEP_TIME_NEVER : event->at_ns + detection_delay_ns;
}
