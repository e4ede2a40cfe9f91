/* SPDX-License-Identifier: Apache-2.0
 *
 * test_pool.c - buffers behind handles: stale handles are ignored, memory is used again, generations wrap around 0, and
 * threads that hold different buffers do not disturb each other.
 */
#include "models/device/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "tests/unit/observed_device.h"

static void *take_host(void *context, enum skep_memory_side side, size_t bytes)
{
	(void)context;
	(void)side;
	return aligned_alloc(64, bytes);
}

static void give_host(void *context, enum skep_memory_side side, void *memory)
{
	(void)context;
	(void)side;
	free(memory);
}

static const struct skep_memory_source host = {.take = take_host, .give = give_host};

static void test_stale_handles_are_ignored(void **state)
{
	(void)state;
	struct skep_pool pool;
	void *memory;
	uint64_t bytes;
	skep_pool_init(&pool, &host);
	struct skep_buf a = skep_pool_take(&pool, 100, &memory);
	assert_ptr_equal(skep_pool_find(&pool, a, &bytes), memory);
	assert_int_equal(bytes, 100);
	skep_pool_release(&pool, a);
	skep_pool_release(&pool, a);
	assert_null(skep_pool_find(&pool, a, &bytes));
	assert_int_equal(bytes, 0);
	struct skep_buf early = {a.slot, a.generation + 1}; /* a handle that has not been given out yet */
	assert_null(skep_pool_find(&pool, early, &bytes));
	skep_pool_release(&pool, early);
	struct skep_buf b = skep_pool_take(&pool, 101, &memory);
	assert_int_equal(b.slot, a.slot);
	assert_int_not_equal(b.generation, a.generation);
	skep_pool_release(&pool, a);
	assert_non_null(skep_pool_find(&pool, b, &bytes));
	const struct skep_buf no_worker[] = {
		{0, 0}, {0, 1}, {b.slot, 0}, {b.slot, b.generation + 1}, {b.slot + 1, 1}, {UINT32_MAX, UINT32_MAX}};
	for (size_t i = 0; i < sizeof no_worker / sizeof *no_worker; i++) {
		assert_null(skep_pool_find(&pool, no_worker[i], &bytes));
		skep_pool_release(&pool, no_worker[i]);
	}
	assert_int_equal(pool_live(&pool), 1);
	skep_pool_finish(&pool);
}

static void test_generations_wrap_around_zero(void **state)
{
	(void)state;
	struct skep_pool pool;
	void *memory;
	uint64_t bytes;
	skep_pool_init(&pool, &host);
	struct skep_buf buf = skep_pool_take(&pool, 1, &memory);
	pool.slot[buf.slot].generation = buf.generation = UINT32_MAX;
	skep_pool_release(&pool, buf);
	struct skep_buf next = skep_pool_take(&pool, 1, &memory);
	assert_int_equal(next.slot, buf.slot);
	assert_int_equal(next.generation, 1);
	assert_null(skep_pool_find(&pool, buf, &bytes));
	assert_non_null(skep_pool_find(&pool, next, &bytes));
	skep_pool_finish(&pool);
}

static void test_every_size_fits_and_wastes_little(void **state)
{
	(void)state;
	struct skep_pool pool;
	void *memory;
	skep_pool_init(&pool, &host);
	for (uint64_t size = 0; size < 5000; size++) {
		struct skep_buf buf = skep_pool_take(&pool, size, &memory);
		assert_true(buf.slot && buf.generation);
		assert_int_equal((uintptr_t)memory % 64, 0);
		memset(memory, (int)size, size);
		skep_pool_release(&pool, buf);
	}
	assert_true(pool.slots <= 1 + 4 * 7 + 1); /* 64 .. 8192 bytes: 7 powers of two */
	struct skep_buf huge = skep_pool_take(&pool, UINT64_MAX, &memory);
	assert_true(!huge.slot && !memory);
	huge = skep_pool_take(&pool, (UINT64_C(1) << 46) + 1, &memory);
	assert_true(!huge.slot && !memory);
	assert_int_equal(pool_live(&pool), 0);
	skep_pool_finish(&pool);
}

enum { HELD = 64, TURNS = 20000 };

struct hammer {
	struct skep_pool *pool;
	pthread_t thread;
	unsigned char mark;
};

/* Takes and releases at random; each buffer carries its owner's mark from end to end. */
static void *hammer(void *context)
{
	struct skep_pool *pool = ((struct hammer *)context)->pool;
	unsigned char mark = ((struct hammer *)context)->mark;
	struct skep_buf held[HELD] = {0};
	uint64_t random = mark;
	for (int turn = 0; turn < TURNS; turn++) {
		struct skep_buf *buf = &held[skep_random_below(&random, HELD)];
		uint64_t bytes;
		unsigned char *memory = skep_pool_find(pool, *buf, &bytes);
		if (memory) {
			assert_true(memory[0] == mark && memory[bytes - 1] == mark);
			skep_pool_release(pool, *buf);
		} else {
			void *fresh;
			bytes = 1 + skep_random_below(&random, 2000);
			*buf = skep_pool_take(pool, bytes, &fresh);
			assert_non_null(fresh);
			memset(fresh, mark, bytes);
		}
	}
	for (int i = 0; i < HELD; i++)
		skep_pool_release(pool, held[i]);
	return NULL;
}

static void test_threads_share_a_pool(void **state)
{
	(void)state;
	struct skep_pool pool;
	struct hammer hammers[3];
	skep_pool_init(&pool, &host);
	for (int i = 0; i < 3; i++) {
		hammers[i] = (struct hammer){.pool = &pool, .mark = (unsigned char)(i + 1)};
		assert_int_equal(pthread_create(&hammers[i].thread, NULL, hammer, &hammers[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(hammers[i].thread, NULL);
	assert_int_equal(pool_live(&pool), 0);
	assert_true(pool.slots <= 1 + 3 * HELD * 22); /* 22 classes up to 2048 bytes */
	skep_pool_finish(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stale_handles_are_ignored),
		cmocka_unit_test(test_generations_wrap_around_zero),
		cmocka_unit_test(test_every_size_fits_and_wastes_little),
		cmocka_unit_test(test_threads_share_a_pool),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
