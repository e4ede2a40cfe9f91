/* SPDX-License-Identifier: Apache-2.0
 *
 * endpoint.c - see endpoint.h.
 */
#include "exec/tcp/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 512

/* Cut at the last colon, but for one inside brackets or of an address of IPv6 without a port. */
static bool split(const char *text, char host[SKEP_ENDPOINT_HOST], char port[8], struct skep_diag *reterr)
{
	const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *colon = strrchr(bracket != NULL ? bracket : text, ':');
	bool bare = bracket == NULL && colon != NULL && strchr(text, ':') != colon; /* an address of IPv6 alone */
	const char *from = bracket != NULL ? text + 1 : text;
	const char *to = bracket != NULL ? bracket : colon != NULL && !bare ? colon : text + strlen(text);
	const char *number = colon != NULL && !bare ? colon + 1 : SKEP_PORT;
	char *end;
	unsigned long value = strtoul(number, &end, 10);
	if ((text[0] == '[' && bracket == NULL) || (size_t)(to - from) >= SKEP_ENDPOINT_HOST || *number < '0' ||
		*number > '9' || *end != '\0' || value > 65535)
		return skep_fail(reterr,
			"%.200s: expected HOST:PORT, as in node7:" SKEP_PORT " or [2001:db8::7]:" SKEP_PORT, text);
	snprintf(host, SKEP_ENDPOINT_HOST, "%.*s", (int)(to - from), from);
	snprintf(port, 8, "%lu", value);
	return true;
}

static bool is_endpoint(const char *text, struct skep_diag *reterr)
{
	char host[SKEP_ENDPOINT_HOST], port[8];
	return split(text, host, port, reterr);
}

bool skep_endpoint_next(const char **list, char ret[SKEP_ENDPOINT_TEXT])
{
	size_t length = strcspn(*list, ",");
	if (**list == '\0' || length >= SKEP_ENDPOINT_TEXT)
		return false;
	snprintf(ret, SKEP_ENDPOINT_TEXT, "%.*s", (int)length, *list);
	*list += length + ((*list)[length] == ',');
	return true;
}

bool skep_endpoint_check_list(const char *list, struct skep_diag *reterr)
{
	char one[SKEP_ENDPOINT_TEXT] = "";
	const char *left = list;
	while (skep_endpoint_next(&left, one)) {
		if (!is_endpoint(one, reterr))
			return false;
	}
	if (*left == '\0' && left != list && left[-1] != ',')
		return true;
	return skep_fail(reterr, "%.200s: expected HOST:PORT, or several with commas between", list);
}

bool skep_endpoint_behind(const char *text, char ret[SKEP_ENDPOINT_TEXT], struct skep_diag *reterr)
{
	char host[SKEP_ENDPOINT_HOST], port[8];
	if (!split(text, host, port, reterr))
		return false;
	long behind = strtol(port, NULL, 10) + 1;
	bool six = strchr(host, ':') != NULL;
	int length = snprintf(ret, SKEP_ENDPOINT_TEXT, six ? "[%s]:%ld" : "%s:%ld", host, behind);
	if (behind == 1 || behind > 65535 || length >= (int)SKEP_ENDPOINT_TEXT)
		return skep_fail(
			reterr, "%.200s: expected a port of 1 to 65534, for the one behind it is used as well", text);
	return true;
}

static bool fail_unknown(const char *text, int error, struct skep_diag *reterr)
{
	const char *advice =
		error == EAI_NONAME  ? ": see if it is spelt right, or give its address, such as 10.0.0.5:7070"
		: error == EAI_AGAIN ? ": the name server does not answer now; try again, or give its address"
				     : "";
	return skep_fail(reterr, "%.200s: %s%s", text, gai_strerror(error), advice);
}

bool skep_endpoint_find(const char *text, struct sockaddr_storage *ret, socklen_t *ret_bytes, struct skep_diag *reterr)
{
	char host[SKEP_ENDPOINT_HOST], port[8];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	if (!split(text, host, port, reterr))
		return false;
	int unknown = getaddrinfo(host, port, &hints, &found);
	if (unknown != 0)
		return fail_unknown(text, unknown, reterr);
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	*ret_bytes = found->ai_addrlen;
	freeaddrinfo(found);
	return true;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage own;
	socklen_t size = sizeof own;
	if (getsockname(fd, (struct sockaddr *)&own, &size) != 0)
		return 0;
	return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
					       : ((struct sockaddr_in *)&own)->sin_port);
}

static int listen_at(const struct addrinfo *at)
{
	int yes = 1, no = 0;
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

int skep_endpoint_listen(const char *text, uint16_t *ret_port, struct skep_diag *reterr)
{
	char host[SKEP_ENDPOINT_HOST], port[8];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
	int fd = -1;
	if (!split(text, host, port, reterr))
		return -1;
	int error = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
	if (error != 0) {
		fail_unknown(text, error, reterr);
		return -1;
	}
	/* An address of IPv6 that stands for all takes connections of IPv4 as well. */
	for (int family = AF_INET6; fd < 0 && family != 0; family = family == AF_INET6 ? AF_INET : 0) {
		for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
			fd = at->ai_family == family ? listen_at(at) : -1;
	}
	error = errno;
	freeaddrinfo(found);
	if (fd < 0)
		skep_fail(reterr, "cannot listen on %.200s: %s%s", text, strerror(error),
			error == EADDRINUSE ? "; another program does, so name another port (--listen :PORT)" : "");
	else
		*ret_port = port_of(fd);
	return fd;
}

/* 0: connected, else errno. */
static int connect_within(int fd, const struct addrinfo *at, int timeout_ms)
{
	int error = 0;
	socklen_t size = sizeof error;
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (poll(&ready, 1, timeout_ms) <= 0)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

int skep_endpoint_connect(const char *text, int timeout_ms, struct skep_diag *reterr)
{
	char host[SKEP_ENDPOINT_HOST], port[8];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	int error = 0;
	if (!split(text, host, port, reterr))
		return -1;
	int unknown = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
	if (unknown != 0) {
		fail_unknown(text, unknown, reterr);
		return -1;
	}
	for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
		int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		error = fd < 0 ? errno : connect_within(fd, at, timeout_ms);
		if (error == 0) {
			freeaddrinfo(found);
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(found);
	skep_fail(reterr, "%.200s does not answer: %s; does `skep serve` run there, and may its port be reached?", text,
		strerror(error));
	return -1;
}
