/* SPDX-License-Identifier: Apache-2.0
 *
 * store_waiting.c - rows that wait in memory for the next transaction, and the first error that a store keeps.
 */
#include "analysis/store/store_rows.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/store/database.h"

void skep_store_fail(struct skep_store *store, const char *reason)
{
	skep_fail(&store->error, "%s", reason);
}

void skep_store_fail_sql(struct skep_store *store, int code)
{
	skep_database_explain(store->db, store->path, code, &store->error);
}

void skep_rows_append(struct skep_store *store, struct skep_rows *rows, const void *items, size_t count)
{
	if (store->error.set || count == 0)
		return;
	if (rows->count + count > rows->capacity) {
		size_t capacity = 2 * rows->capacity + count + 63;
		void *grown = realloc(rows->item, capacity * rows->item_size);
		if (grown == NULL) {
			skep_store_fail(store, "no memory to record the run");
			return;
		}
		rows->item = grown;
		rows->capacity = capacity;
	}
	memcpy((char *)rows->item + rows->count * rows->item_size, items, count * rows->item_size);
	rows->count += count;
}

void skep_rows_push(struct skep_store *store, struct skep_rows *rows, const void *item)
{
	skep_rows_append(store, rows, item, 1);
}
