/* SPDX-License-Identifier: Apache-2.0
 *
 * post_fixture.h - letter boxes in place of MPI: a transport between the threads of a test. Letters are frames as bytes, so a
 * test can put in what a broken or hostile process would send.
 */
#ifndef SKEP_TESTS_POST_FIXTURE_H
#define SKEP_TESTS_POST_FIXTURE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/bell.h"
#include "exec/complaints.h"
#include "exec/transport.h"

#define RUN 77u
#define RANKS_MAX 16u

struct letter {
	struct letter *next;
	uint32_t peer;
	bool sent; /* not mail: news that the body of an own letter has gone */
	bool gone; /* nor this: the peer is dead */
	uint8_t bytes[SKEP_FRAME_MAX];
	size_t size;
	struct skep_frame frame; /* sent */
	uint64_t body_bytes;
	uint8_t body[];
};

struct post; /* the boxes of all ranks */

struct box {
	struct post *post;
	uint32_t rank;
	pthread_mutex_t lock;
	struct letter *first, **last;
	struct letter *open; /* its bytes are looked at */
	struct skep_bell bell;
	uint32_t heard;
	struct skep_complaints complaints;
};

struct post {
	struct box box[RANKS_MAX];
	uint32_t ranks;
};

static inline struct letter *letter_new(uint32_t peer, uint64_t body_bytes)
{
	struct letter *letter = calloc(1, sizeof *letter + body_bytes);
	assert_non_null(letter);
	letter->peer = peer;
	letter->body_bytes = body_bytes;
	return letter;
}

static inline void drop_in(struct box *box, struct letter *letter)
{
	pthread_mutex_lock(&box->lock);
	*box->last = letter;
	box->last = &letter->next;
	pthread_mutex_unlock(&box->lock);
	skep_bell_ring(&box->bell);
}

static inline void post_frame(
	struct post *post, uint32_t from, uint32_t to, const struct skep_frame *frame, const void *body)
{
	struct letter *letter = letter_new(from, frame->body);
	letter->size = skep_frame_encode(frame, RUN, letter->bytes);
	if (body != NULL)
		memcpy(letter->body, body, frame->body);
	drop_in(&post->box[to], letter);
}

static inline void box_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	struct box *box = self;
	post_frame(box->post, box->rank, peer, frame, body);
	if (frame->body == 0)
		return;
	struct letter *news = letter_new(peer, 0);
	news->sent = true;
	news->frame = *frame;
	drop_in(box, news);
}

static inline struct letter *take_out(struct box *box)
{
	pthread_mutex_lock(&box->lock);
	struct letter *letter = box->first;
	if (letter != NULL && (box->first = letter->next) == NULL)
		box->last = &box->first;
	pthread_mutex_unlock(&box->lock);
	free(box->open);
	box->open = letter;
	return letter;
}

static inline bool box_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct box *box = self;
	struct letter *letter;
	box->heard = skep_bell_count(&box->bell);
	while ((letter = take_out(box)) != NULL) {
		*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = letter->peer};
		if (letter->gone) {
			ret->kind = SKEP_TRANSPORT_GONE;
			return true;
		}
		if (letter->sent) {
			ret->kind = SKEP_TRANSPORT_SENT;
			ret->frame = letter->frame;
			return true;
		}
		enum skep_frame_fault fault = skep_frame_decode(letter->bytes, letter->size, RUN, &ret->frame);
		if (fault != SKEP_FRAME_GOOD) {
			skep_complain(&box->complaints, (enum skep_complaint)fault, letter->peer);
			continue;
		}
		if (ret->frame.body == 0)
			return true;
		struct skep_buf buf;
		void *memory = landing->memory(landing->context, letter->peer, &ret->frame, &buf);
		if (memory == NULL)
			continue;
		ret->frame.u.message.payload = buf;
		if (letter->body_bytes == ret->frame.body)
			memcpy(memory, letter->body, letter->body_bytes);
		else
			ret->kind = SKEP_TRANSPORT_SPOILT;
		return true;
	}
	return false;
}

static inline uint32_t box_pending(const void *self)
{
	const struct box *box = self;
	return box->first != NULL; /* own thread: nothing is taken out meanwhile */
}

static inline void box_wait(void *self, uint64_t most_ns)
{
	struct box *box = self;
	skep_bell_wait(&box->bell, box->heard, most_ns);
}

static inline void box_wake(void *self)
{
	struct box *box = self;
	skep_bell_ring(&box->bell);
}

static inline struct post *post_new(uint32_t ranks)
{
	struct post *post = calloc(1, sizeof *post);
	assert_non_null(post);
	assert_true(ranks <= RANKS_MAX);
	post->ranks = ranks;
	for (uint32_t i = 0; i < ranks; i++) {
		struct box *box = &post->box[i];
		*box = (struct box){.post = post, .rank = i, .last = &box->first, .complaints = {.rank = i}};
		pthread_mutex_init(&box->lock, NULL);
	}
	return post;
}

static inline void post_free(struct post *post)
{
	for (uint32_t i = 0; i < post->ranks; i++) {
		struct box *box = &post->box[i];
		while (take_out(box) != NULL)
			;
		pthread_mutex_destroy(&box->lock);
	}
	free(post);
}

#endif
