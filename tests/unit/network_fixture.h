/* SPDX-License-Identifier: Apache-2.0
 *
 * network_fixture.h - letter boxes in place of MPI: a transport between the threads of a test. Letters are frames as bytes, so a
 * test can put in what a broken or hostile process would send.
 */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exec/transport/rejects.h"
#include "exec/transport/transport.h"
#include "exec/transport/wakeup.h"

#define RUN 77u
#define RANKS_MAX 16u

struct probe_message {
	struct probe_message *next;
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
	struct probe_message *first, **last;
	struct probe_message *open; /* its bytes are looked at */
	struct skep_wakeup wakeup;
	uint32_t heard;
	struct skep_rejects rejects;
};

struct post {
	struct box box[RANKS_MAX];
	uint32_t ranks;
};

static inline struct probe_message *letter_new(uint32_t peer, uint64_t body_bytes)
{
	struct probe_message *probe_message = calloc(1, sizeof *probe_message + body_bytes);
	assert_non_null(probe_message);
	probe_message->peer = peer;
	probe_message->body_bytes = body_bytes;
	return probe_message;
}

static inline void drop_in(struct box *box, struct probe_message *probe_message)
{
	pthread_mutex_lock(&box->lock);
	*box->last = probe_message;
	box->last = &probe_message->next;
	pthread_mutex_unlock(&box->lock);
	skep_wakeup_ring(&box->wakeup);
}

static inline void post_frame(
	struct post *post, uint32_t from, uint32_t to, const struct skep_frame *frame, const void *body)
{
	struct probe_message *probe_message = letter_new(from, frame->body);
	probe_message->size = skep_frame_encode(frame, RUN, probe_message->bytes);
	if (body != NULL)
		memcpy(probe_message->body, body, frame->body);
	drop_in(&post->box[to], probe_message);
}

static inline void box_send(void *self, uint32_t peer, const struct skep_frame *frame, const void *body)
{
	struct box *box = self;
	post_frame(box->post, box->rank, peer, frame, body);
	if (frame->body == 0)
		return;
	struct probe_message *news = letter_new(peer, 0);
	news->sent = true;
	news->frame = *frame;
	drop_in(box, news);
}

static inline struct probe_message *take_out(struct box *box)
{
	pthread_mutex_lock(&box->lock);
	struct probe_message *probe_message = box->first;
	if (probe_message != NULL && (box->first = probe_message->next) == NULL)
		box->last = &box->first;
	pthread_mutex_unlock(&box->lock);
	free(box->open);
	box->open = probe_message;
	return probe_message;
}

static inline bool box_poll(void *self, const struct skep_landing *landing, struct skep_transport_event *ret)
{
	struct box *box = self;
	struct probe_message *probe_message;
	box->heard = skep_wakeup_count(&box->wakeup);
	while ((probe_message = take_out(box)) != NULL) {
		*ret = (struct skep_transport_event){.kind = SKEP_TRANSPORT_ARRIVED, .peer = probe_message->peer};
		if (probe_message->gone) {
			ret->kind = SKEP_TRANSPORT_GONE;
			return true;
		}
		if (probe_message->sent) {
			ret->kind = SKEP_TRANSPORT_SENT;
			ret->frame = probe_message->frame;
			return true;
		}
		enum skep_frame_fault fault =
			skep_frame_decode(probe_message->bytes, probe_message->size, RUN, &ret->frame);
		if (fault != SKEP_FRAME_GOOD) {
			skep_complain(&box->rejects, (enum skep_reject)fault, probe_message->peer);
			continue;
		}
		if (ret->frame.body == 0)
			return true;
		struct skep_buf buf;
		void *memory = landing->memory(landing->context, probe_message->peer, &ret->frame, &buf);
		if (memory == NULL)
			continue;
		ret->frame.u.message.payload = buf;
		if (probe_message->body_bytes == ret->frame.body)
			memcpy(memory, probe_message->body, probe_message->body_bytes);
		else
			ret->kind = SKEP_TRANSPORT_SPOILT;
		return true;
	}
	return false;
}

static inline uint32_t box_pending(const void *self)
{
	struct box *box = (struct box *)(uintptr_t)self; /* to lock it: others drop in */
	pthread_mutex_lock(&box->lock);
	bool any = box->first != NULL;
	pthread_mutex_unlock(&box->lock);
	return any;
}

static inline void box_wait(void *self, uint64_t most_ns)
{
	struct box *box = self;
	skep_wakeup_wait(&box->wakeup, box->heard, most_ns);
}

static inline void box_wake(void *self)
{
	struct box *box = self;
	skep_wakeup_ring(&box->wakeup);
}

static inline struct post *post_new(uint32_t ranks)
{
	struct post *post = calloc(1, sizeof *post);
	assert_non_null(post);
	assert_true(ranks <= RANKS_MAX);
	post->ranks = ranks;
	for (uint32_t i = 0; i < ranks; i++) {
		struct box *box = &post->box[i];
		*box = (struct box){.post = post, .rank = i, .last = &box->first, .rejects = {.rank = i}};
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
