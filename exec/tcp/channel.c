/* SPDX-License-Identifier: Apache-2.0
 *
 * channel.c - see channel.h.
 *
 * OpenSSL is given the sockets themselves, not pairs of memory buffers: a tensor goes through one copy (into the record of TLS)
 * on its way out and through none of ours on its way in. A library for the loop would want its own buffers in between, and the
 * loop here is one call of epoll.
 */
#include "exec/tcp/channel.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

#define NOT_SENT_BYTES                                                                                                 \
	(256u << 10)  /* that the kernel holds before the network: an urgent record waits behind no more */
#define KEEP_ALIVES 5 /* without an answer, and the connection has ended */
#define KEEP_ALIVE_MOST_S 32767

void skep_channel_fail(struct skep_channel *channel, const char *why)
{
	if (channel->state == SKEP_CHANNEL_CLOSED)
		return;
	channel->state = SKEP_CHANNEL_CLOSED;
	channel->why = why;
	channel->wants_write = false;
}

static void fail_errno(struct skep_channel *channel, int error)
{
	snprintf(channel->words, sizeof channel->words, "%s", strerror(error));
	skep_channel_fail(channel, channel->words);
}

/* What a call of OpenSSL that has not done its work waits for. */
static void wait_or_fail(struct skep_channel *channel, int result)
{
	int error = SSL_get_error(channel->ssl, result), kept = errno;
	if (error == SSL_ERROR_WANT_READ)
		return;
	if (error == SSL_ERROR_WANT_WRITE) {
		channel->wants_write = true;
		return;
	}
	if (error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && kept == 0)) {
		skep_channel_fail(channel, "the other side has closed the connection");
	} else if (error == SSL_ERROR_SYSCALL) {
		fail_errno(channel, kept);
	} else {
		skep_tls_error(channel->words, sizeof channel->words);
		skep_channel_fail(channel, channel->words);
	}
}

static void tune(int fd)
{
	int yes = 1, bytes = NOT_SENT_BYTES;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

/* As the kernel takes it. */
static int keep_alive_s(uint64_t ns)
{
	uint64_t s = ns / 1000000000u;
	return s < 1 ? 1 : s < KEEP_ALIVE_MOST_S ? (int)s : KEEP_ALIVE_MOST_S;
}

void skep_channel_keep_alive(struct skep_channel *channel, uint64_t silence_ns)
{
	assert(channel->fd >= 0 && silence_ns > 0);
	int yes = 1, count = KEEP_ALIVES, first = keep_alive_s(silence_ns),
	    next = keep_alive_s(silence_ns / KEEP_ALIVES);
	setsockopt(channel->fd, IPPROTO_TCP, TCP_KEEPIDLE, &first, sizeof first);
	setsockopt(channel->fd, IPPROTO_TCP, TCP_KEEPINTVL, &next, sizeof next);
	setsockopt(channel->fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
	setsockopt(channel->fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

bool skep_channel_open(struct skep_channel *ret, int fd, bool connected, SSL_CTX *context, bool host)
{
	assert(fd >= 0);
	*ret = (struct skep_channel){.fd = fd, .state = SKEP_CHANNEL_CONNECTING, .wants_write = true};
	ret->in = malloc(SKEP_CHANNEL_ROOM);
	ret->out = malloc(SKEP_CHANNEL_ROOM);
	ret->ssl = context != NULL ? SSL_new(context) : NULL;
	if (ret->in == NULL || ret->out == NULL || (context != NULL && (!ret->ssl || !SSL_set_fd(ret->ssl, fd)))) {
		skep_channel_close(ret);
		return false;
	}
	tune(fd);
	if (ret->ssl != NULL && host)
		SSL_set_accept_state(ret->ssl);
	else if (ret->ssl != NULL)
		SSL_set_connect_state(ret->ssl);
	ret->heard_ns = ret->spoke_ns = skep_monotonic_ns();
	if (connected)
		ret->state = ret->ssl != NULL ? SKEP_CHANNEL_SHAKING : SKEP_CHANNEL_OPEN;
	return true;
}

void skep_channel_close(struct skep_channel *channel)
{
	if (channel->ssl != NULL && channel->state == SKEP_CHANNEL_OPEN)
		SSL_shutdown(channel->ssl);
	SSL_free(channel->ssl);
	if (channel->in != NULL || channel->fd > 0)
		close(channel->fd);
	free(channel->in);
	free(channel->out);
	*channel = (struct skep_channel){.state = SKEP_CHANNEL_CLOSED, .fd = -1};
}

/* ---- sending ------------------------------------------------------------------------------------------------------ */

bool skep_channel_idle(const struct skep_channel *channel)
{
	return channel->out_begin == channel->out_end && channel->body_left == 0;
}

bool skep_channel_has_room(const struct skep_channel *channel, size_t bytes)
{
	return channel->state == SKEP_CHANNEL_OPEN && channel->body_left == 0 &&
	       channel->out_end + SKEP_RECORD_HEAD + bytes <= SKEP_CHANNEL_ROOM;
}

static void append(struct skep_channel *channel, const void *bytes, size_t count)
{
	assert(channel->out_end + count <= SKEP_CHANNEL_ROOM);
	if (count > 0)
		memcpy(channel->out + channel->out_end, bytes, count);
	channel->out_end += count;
}

void skep_channel_put(struct skep_channel *channel, uint8_t type, const void *content, size_t bytes, const void *body,
	size_t body_bytes)
{
	bool copied = channel->ssl != NULL;
	size_t length = bytes + body_bytes;
	uint8_t head[SKEP_RECORD_HEAD] = {
		(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), (uint8_t)(length >> 24), type};
	assert(type > 0 && type < SKEP_RECORD_TYPES);
	assert(length <= (type == SKEP_RECORD_DATA ? SKEP_RECORD_DATA_MAX : SKEP_RECORD_MAX));
	assert(skep_channel_has_room(channel, bytes + (copied ? body_bytes : 0)));
	append(channel, head, sizeof head);
	append(channel, content, bytes);
	if (copied)
		append(channel, body, body_bytes);
	else
		channel->body = body;
	channel->body_left = copied ? 0 : body_bytes;
	channel->wants_write = true;
}

/* What the kernel took of the two pieces. */
static void took(struct skep_channel *channel, size_t count)
{
	size_t held = channel->out_end - channel->out_begin, first = count < held ? count : held;
	assert(count - first <= channel->body_left);
	channel->out_begin += first;
	if (count > first) /* else there may be no body */
		channel->body += count - first;
	channel->body_left -= count - first;
	channel->spoke_ns = skep_monotonic_ns();
	if (channel->out_begin == channel->out_end)
		channel->out_begin = channel->out_end = 0;
}

static void flush(struct skep_channel *channel)
{
	while (channel->state == SKEP_CHANNEL_OPEN && !skep_channel_idle(channel)) {
		size_t held = channel->out_end - channel->out_begin;
		struct iovec part[2] = {{channel->out + channel->out_begin, held},
			{(void *)(uintptr_t)channel->body, channel->body_left}};
		struct msghdr message = {.msg_iov = part, .msg_iovlen = channel->body_left > 0 ? 2 : 1};
		errno = 0;
		ssize_t sent = channel->ssl != NULL ? SSL_write(channel->ssl, part[0].iov_base, (int)held)
		                                    : sendmsg(channel->fd, &message, MSG_NOSIGNAL);
		if (sent > 0) {
			took(channel, (size_t)sent);
			continue;
		}
		channel->wants_write = true;
		if (channel->ssl != NULL)
			wait_or_fail(channel, (int)sent);
		else if (errno != EAGAIN && errno != EINTR)
			fail_errno(channel, errno);
		return;
	}
	channel->wants_write = false;
}

static void connect_further(struct skep_channel *channel)
{
	assert(channel->state == SKEP_CHANNEL_CONNECTING);
	int error = 0;
	socklen_t size = sizeof error;
	struct sockaddr_storage peer;
	socklen_t room = sizeof peer;
	if (getsockopt(channel->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error == 0 && getpeername(channel->fd, (struct sockaddr *)&peer, &room) != 0)
		return; /* not there yet */
	if (error != 0)
		fail_errno(channel, error);
	else
		channel->state = channel->ssl != NULL ? SKEP_CHANNEL_SHAKING : SKEP_CHANNEL_OPEN;
}

static void shake(struct skep_channel *channel)
{
	assert(channel->ssl != NULL);
	channel->wants_write = false;
	errno = 0;
	int result = SSL_do_handshake(channel->ssl);
	if (result == 1) {
		channel->state = SKEP_CHANNEL_OPEN;
		channel->heard_ns = skep_monotonic_ns();
		return;
	}
	wait_or_fail(channel, result);
}

void skep_channel_look_for_answer(struct skep_channel *channel)
{
	if (channel->state == SKEP_CHANNEL_CONNECTING)
		connect_further(channel);
}

void skep_channel_advance(struct skep_channel *channel)
{
	if (channel->state == SKEP_CHANNEL_CONNECTING)
		connect_further(channel);
	if (channel->state == SKEP_CHANNEL_SHAKING)
		shake(channel);
	if (channel->state == SKEP_CHANNEL_OPEN)
		flush(channel);
}

/* ---- receiving ---------------------------------------------------------------------------------------------------- */

/* What a read that has found nothing means. */
static void end_or_wait(struct skep_channel *channel, ssize_t got)
{
	assert(got <= 0);
	if (channel->ssl != NULL)
		wait_or_fail(channel, (int)got);
	else if (got == 0)
		skep_channel_fail(channel, "the other side has closed the connection");
	else if (errno != EAGAIN && errno != EINTR)
		fail_errno(channel, errno);
}

/* Into `first`, and what is more into the channel's own room; 0: nothing there, or the channel has closed. */
static size_t take_in(struct skep_channel *channel, uint8_t *first, size_t bytes)
{
	uint8_t *own = channel->in + channel->in_end;
	size_t room = SKEP_CHANNEL_ROOM - channel->in_end;
	assert(channel->in_end <= SKEP_CHANNEL_ROOM && (first != NULL || room > 0));
	struct iovec part[2] = {{first, bytes}, {own, room}};
	int skipped = first == NULL;
	errno = 0;
	ssize_t got = channel->ssl == NULL
	                      ? readv(channel->fd, part + skipped, 2 - skipped)
	                      : SSL_read(channel->ssl, skipped ? own : first, (int)(skipped ? room : bytes));
	if (got > 0) {
		size_t mine = skipped ? 0 : (size_t)got < bytes ? (size_t)got : bytes;
		channel->in_end += (size_t)got - mine;
		channel->heard_ns = skep_monotonic_ns();
		return (size_t)got;
	}
	end_or_wait(channel, got);
	return 0;
}

void skep_channel_look_for_end(struct skep_channel *channel)
{
	uint8_t byte;
	if (channel->state != SKEP_CHANNEL_OPEN)
		return;
	assert(channel->in_begin == channel->in_end && channel->data == 0);
	errno = 0;
	ssize_t got = channel->ssl == NULL ? recv(channel->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)
	                                   : SSL_peek(channel->ssl, &byte, 1);
	if (got <= 0)
		end_or_wait(channel, got);
}

static void into_sink(struct skep_channel *channel, size_t count)
{
	assert(count <= channel->sink_left && count <= channel->data_left);
	if (channel->sink != NULL)
		channel->sink += count;
	channel->sink_left -= count;
	channel->data_left -= (uint32_t)count;
}

/* Of the DATA record at hand. False: more has to come first. */
static bool read_data(struct skep_channel *channel)
{
	while (channel->data_left > 0) {
		size_t held = channel->in_end - channel->in_begin;
		size_t count = held < channel->data_left ? held : channel->data_left;
		if (count > 0) {
			if (channel->sink != NULL)
				memcpy(channel->sink, channel->in + channel->in_begin, count);
			channel->in_begin += count;
			into_sink(channel, count);
			continue;
		}
		channel->in_begin = channel->in_end = 0;
		size_t wanted = channel->data_left, got = take_in(channel, channel->sink, wanted);
		if (got == 0)
			return false;
		if (channel->sink != NULL)
			into_sink(channel, got < wanted ? got : wanted);
	}
	return true;
}

/* Room for the rest of a record at the end of what was read. */
static void compact(struct skep_channel *channel)
{
	assert(channel->in_begin <= channel->in_end && channel->in_end <= SKEP_CHANNEL_ROOM);
	if (channel->in_begin == 0)
		return;
	memmove(channel->in, channel->in + channel->in_begin, channel->in_end - channel->in_begin);
	channel->in_end -= channel->in_begin;
	channel->in_begin = 0;
}

/* The head at in_begin; false: such a one is not written. */
static bool head(struct skep_channel *channel, uint32_t *ret_bytes, uint8_t *ret_type)
{
	assert(channel->in_end - channel->in_begin >= SKEP_RECORD_HEAD);
	const uint8_t *at = channel->in + channel->in_begin;
	*ret_bytes = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
	*ret_type = at[4];
	bool data = at[4] == SKEP_RECORD_DATA;
	bool fine = at[4] > 0 && at[4] < SKEP_RECORD_TYPES && at[5] == 0 && at[6] == 0 && at[7] == 0 &&
	            *ret_bytes <= (data ? SKEP_RECORD_DATA_MAX : SKEP_RECORD_MAX);
	if (!fine || (data && (*ret_bytes == 0 || *ret_bytes > channel->sink_left))) {
		skep_channel_fail(channel, "the other side sent a record that no skep sends");
		return false;
	}
	return true;
}

bool skep_channel_read(struct skep_channel *channel, struct skep_record *ret)
{
	while (channel->state == SKEP_CHANNEL_OPEN) {
		uint32_t bytes;
		size_t held = channel->in_end - channel->in_begin;
		if (channel->data > 0) {
			if (!read_data(channel))
				return false;
			*ret = (struct skep_record){.type = SKEP_RECORD_DATA, .bytes = channel->data};
			channel->data = 0;
			return true;
		}
		if (held >= SKEP_RECORD_HEAD && !head(channel, &bytes, &ret->type))
			return false;
		if (held >= SKEP_RECORD_HEAD && ret->type == SKEP_RECORD_DATA) {
			channel->in_begin += SKEP_RECORD_HEAD;
			channel->data = channel->data_left = bytes;
			continue;
		}
		if (held >= SKEP_RECORD_HEAD && held >= SKEP_RECORD_HEAD + bytes) {
			ret->content = channel->in + channel->in_begin + SKEP_RECORD_HEAD;
			ret->bytes = bytes;
			channel->in_begin += SKEP_RECORD_HEAD + bytes;
			return true;
		}
		compact(channel);
		if (take_in(channel, NULL, 0) == 0)
			return false;
	}
	return false;
}
