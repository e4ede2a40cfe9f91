/* SPDX-License-Identifier: Apache-2.0
 *
 * threads.h - threads that do pieces of work which they find under one lock: the loops of a device (base/process/thread_pool.h),
 * the operations of simulated devices (sim/device_threads.h). What a piece is, and in which order they are taken, is the
 * user's to say.
 *
 * Kept true: no offer is missed. The thread that adds work holds the lock and calls skep_threads_offer() before giving it away.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Does one piece on thread `number`, from 1; false: there is none. Called and returns with the lock held, which it gives away
 * meanwhile. */
typedef bool skep_threads_work(void *context, uint32_t number);

struct skep_thread;

struct skep_threads {
	pthread_mutex_t lock;
	pthread_cond_t done; /* for the user: a piece is done */
	/* private: */
	pthread_cond_t offered;
	bool over;
	uint32_t idle;      /* threads that sleep */
	atomic_uint offers; /* so far */
	uint32_t spins;     /* looks for the next offer before a thread sleeps */
	skep_threads_work *work;
	void *context;
	uint32_t count; /* that were started */
	struct skep_thread *thread;
};

/* Starts `count` threads, which may be 0. `spins`: how often one looks for the next offer before it sleeps; to wake it takes some
 * 20 us, or 1000 spins. False: no memory, or no more threads can be started; nothing is left then. */
bool skep_threads_start(
	struct skep_threads *threads, uint32_t count, uint32_t spins, skep_threads_work *work, void *context);
/* Waits for those at work. What was offered and not begun is left undone. */
void skep_threads_stop(struct skep_threads *threads);

/* With the lock held: there is work, for `all` threads or for one. */
void skep_threads_offer(struct skep_threads *threads, bool all);

/* Lets the core's other thread go on, in a loop that waits. */
void skep_threads_pause(void);
