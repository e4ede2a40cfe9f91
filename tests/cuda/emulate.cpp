/* SPDX-License-Identifier: Apache-2.0
 *
 * emulate.cpp - see emulate.hpp. Fibers live as long as the program and take up one block after the other. One host thread at a
 * time has the device.
 */
#include "emulate.hpp"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#if defined __SANITIZE_ADDRESS__
#define ADDRESSES 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define ADDRESSES 1
#endif
#endif
#ifdef ADDRESSES
#include <sanitizer/common_interface_defs.h>
#endif

namespace
{

enum { THREADS_MAX = 1024, STACK_BYTES = 256 * 1024, PATIENCE = 4 };
enum { PAGE_LINES = 64, LINE_BYTES = 64, LINES_APART = 5 }; /* of the cache */

struct bringing { /* 16 bytes to shared memory */
	void *to;
	const void *from; /* NULL: zeros */
	int commit;
};

struct fiber {
	void *place[5]; /* where it goes on */
	std::vector<bringing> *asked;
	int commits;
	emulate_thread self;
	bool started, done;
	void *stack;
	ucontext_t first;
};

struct warp {
	unsigned arrived, live;
	uint64_t generation;
	alignas(16) unsigned char mailbox[2][32][EMULATE_MAILBOX_BYTES]; /* by generation */
};

struct {
	fiber thread[THREADS_MAX], host;
	warp of[THREADS_MAX / 32];
	unsigned now, threads, live, arrived, waits;
	uint64_t generation, launches;
	bool backwards;
	const char *what;
	const std::function<void()> *kernel;
	unsigned char *shared;
	void *host_stack;
	size_t host_stack_bytes;
	std::recursive_mutex lock;
} device;

[[noreturn]] void die(const char *why)
{
	fprintf(stderr, "emulated CUDA: %s: %s\n", device.what ? device.what : "?", why);
	abort();
}

/* ---- switching ------------------------------------------------------------------------------------------------------ */

/* The address sanitizer takes a leap for one that leaves frames behind, and clears at each what it knows of the whole stack, with two
 * system calls. Fibers leave none, and change() says which stack comes next. */
__attribute__((noinline, no_sanitize("address"))) void leap(fiber *to)
{
	if (to->started || to == &device.host)
		__builtin_longjmp(to->place, 1);
	to->started = true;
	setcontext(&to->first);
	abort();
}

__attribute__((noinline, no_sanitize("address"))) void change(fiber *from, fiber *to)
{
#ifdef ADDRESSES
	void *fake = nullptr;
	if (to == &device.host)
		__sanitizer_start_switch_fiber(&fake, device.host_stack, device.host_stack_bytes);
	else
		__sanitizer_start_switch_fiber(&fake, to->stack, STACK_BYTES);
#endif
	if (__builtin_setjmp(from->place) == 0)
		leap(to);
#ifdef ADDRESSES
	__sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

fiber *next()
{
	unsigned at = device.now;
	for (unsigned step = 1; step <= device.threads; step++) {
		if (device.backwards)
			at = at > 0 ? at - 1 : device.threads - 1;
		else
			at = at + 1 < device.threads ? at + 1 : 0;
		if (!device.thread[at].done) {
			device.now = at;
			return &device.thread[at];
		}
	}
	return &device.host;
}

void give_way()
{
	fiber *self = &device.thread[device.now];
	if (device.waits++ > PATIENCE * device.threads + PATIENCE)
		die("threads wait for others that do not come");
	fiber *to = next();
	if (to != self)
		change(self, to);
}

void live()
{
#ifdef ADDRESSES
	const void *bottom;
	size_t bytes;
	__sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
#endif
	while (true) {
		fiber *self = &device.thread[device.now];
		(*device.kernel)();
		warp *mine = &device.of[device.now / 32];
		self->done = true;
		device.live--;
		mine->live--;
		device.waits = 0;
		if (device.live > 0 && device.arrived == device.live) { /* others wait for this one */
			device.arrived = 0;
			device.generation++;
		}
		if (mine->live > 0 && mine->arrived > 0)
			die("a thread has gone whose warp waits for it");
		change(self, next());
	}
}

void make(fiber *thread)
{
	thread->stack = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (thread->stack == MAP_FAILED)
		die("no memory for a stack");
	thread->asked = new std::vector<bringing>;
	getcontext(&thread->first);
	thread->first.uc_stack.ss_sp = thread->stack;
	/* All stacks begin at the same place of a page, so the innermost frames of all would share a few lines of the cache: each thread's
	 * are some lines further down. */
	thread->first.uc_stack.ss_size = STACK_BYTES - (thread - device.thread) * LINES_APART % PAGE_LINES * LINE_BYTES;
	makecontext(&thread->first, live, 0);
}

void run_block(dim3 grid, dim3 block, dim3 index)
{
	device.threads = device.live = block.x * block.y * block.z;
	device.arrived = device.waits = 0;
	for (unsigned t = 0; t < device.threads; t++) {
		fiber *thread = &device.thread[t];
		if (!thread->stack)
			make(thread);
		thread->done = false;
		thread->asked->clear();
		thread->commits = 0;
		thread->self = {dim3(t % block.x, t / block.x % block.y, t / block.x / block.y), index, block, grid};
		if (t % 32 == 0)
			device.of[t / 32].live = device.of[t / 32].arrived = 0;
		device.of[t / 32].live++;
	}
	device.now = device.backwards ? device.threads - 1 : 0;
	change(&device.host, &device.thread[device.now]);
}

/* ---- memory --------------------------------------------------------------------------------------------------------- */

struct region {
	size_t bytes;
	bool device;
};
std::map<const unsigned char *, region> regions;
unsigned open_depth;

/* Of the device: there, or not there for anybody. */
void protect(int how)
{
#ifndef ADDRESSES /* which knows of memory that was not allocated, but not of this */
	for (auto &r : regions)
		if (r.second.device)
			mprotect((void *)r.first, r.second.bytes, how);
#else
	(void)how;
#endif
}

void open_device()
{
	if (open_depth++ == 0)
		protect(PROT_READ | PROT_WRITE);
}

void close_device()
{
	if (--open_depth == 0)
		protect(PROT_NONE);
}

/* That a copy could be told of on a GPU. */
void check_known(const void *memory, size_t bytes)
{
	auto after = regions.upper_bound((const unsigned char *)memory);
	if (bytes == 0)
		return;
	if (after == regions.begin())
		die("a copy of memory that is neither the device's nor page-locked");
	--after;
	if ((const unsigned char *)memory + bytes > after->first + after->second.bytes)
		die("a copy of memory that is neither the device's nor page-locked");
}

cudaError_t take(void **ret, size_t bytes, bool of_device)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
#ifdef ADDRESSES
	void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
#else
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	bytes = (bytes + page - 1) / page * page;
	void *memory = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = memory == MAP_FAILED ? nullptr : memory;
	if (memory && bytes > 0)
		memset(memory, 0xff, bytes);
	if (memory)
		mprotect((char *)memory + bytes, page, PROT_NONE);
#endif
	if (!memory)
		return cudaErrorMemoryAllocation;
	regions[(unsigned char *)memory] = {bytes, of_device};
#ifndef ADDRESSES
	if (of_device && open_depth == 0)
		mprotect(memory, bytes, PROT_NONE);
#endif
	*ret = memory;
	return cudaSuccess;
}

cudaError_t give(void *memory, bool of_device)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	if (!memory)
		return cudaSuccess;
	cudaDeviceSynchronize();
	auto found = regions.find((unsigned char *)memory);
	if (found == regions.end() || found->second.device != of_device)
		die("memory is given back that was not taken so");
#ifdef ADDRESSES
	free(memory);
#else
	munmap(memory, found->second.bytes + (size_t)sysconf(_SC_PAGESIZE));
#endif
	regions.erase(found);
	return cudaSuccess;
}

std::vector<cudaStream_t> streams;

} // namespace

struct emulate_stream {
	std::deque<std::function<void()>> work;
	uint64_t asked, done;
};

struct emulate_event {
	cudaStream_t stream;
	uint64_t asked;
};

/* The stream's first `count` pieces of work since it was made. */
static void work_off(cudaStream_t stream, uint64_t count)
{
	while (stream->done < count) {
		if (stream->work.empty())
			die("streams follow each other in a circle");
		std::function<void()> one = std::move(stream->work.front());
		stream->work.pop_front();
		one();
		stream->done++;
	}
}

/* ---- for kernels ---------------------------------------------------------------------------------------------------- */

const emulate_thread &emulate_self()
{
	return device.thread[device.now].self;
}

unsigned emulate_lane()
{
	return device.now % 32;
}

unsigned char *emulate_shared()
{
	return device.shared;
}

void emulate_bring(void *to, const void *from, bool there)
{
	fiber *self = &device.thread[device.now];
	if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
		die("16 bytes are brought that are not aligned");
	self->asked->push_back({to, there ? from : nullptr, self->commits});
}

void emulate_commit()
{
	device.thread[device.now].commits++;
}

void emulate_await(int later)
{
	fiber *self = &device.thread[device.now];
	std::vector<bringing> rest;
	for (const bringing &one : *self->asked) {
		if (one.commit >= self->commits - later)
			rest.push_back(one);
		else if (one.from)
			memcpy(one.to, one.from, 16);
		else
			memset(one.to, 0, 16);
	}
	self->asked->swap(rest);
}

unsigned char *emulate_mailbox(unsigned lane)
{
	warp &mine = device.of[device.now / 32];
	return mine.mailbox[mine.generation % 2][lane];
}

unsigned char *emulate_mailbox_before(unsigned lane)
{
	warp &mine = device.of[device.now / 32];
	return mine.mailbox[(mine.generation + 1) % 2][lane];
}

void emulate_barrier()
{
	uint64_t generation = device.generation;
	if (++device.arrived == device.live) {
		device.arrived = 0;
		device.generation++;
		device.waits = 0;
	}
	while (generation == device.generation)
		give_way();
}

void emulate_warp_barrier()
{
	warp *mine = &device.of[device.now / 32];
	uint64_t generation = mine->generation;
	if (++mine->arrived == mine->live) {
		mine->arrived = 0;
		mine->generation++;
		device.waits = 0;
	}
	while (generation == mine->generation)
		give_way();
}

/* ---- for tests ------------------------------------------------------------------------------------------------------ */

void emulate_backwards(bool backwards)
{
	device.backwards = backwards;
}

uint64_t emulate_launches()
{
	return device.launches;
}

/* ---- the runtime ---------------------------------------------------------------------------------------------------- */

void emulate_enqueue(cudaStream_t stream, std::function<void()> work)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	stream->work.push_back(std::move(work));
	stream->asked++;
}

void emulate_launch(
	cudaStream_t stream, const char *what, dim3 grid, dim3 block, size_t shared_bytes, std::function<void()> kernel)
{
	const size_t threads = (size_t)block.x * block.y * block.z;
	device.what = what;
	if (threads == 0 || threads > THREADS_MAX || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
		grid.z > 65535 || shared_bytes > 227 * 1024)
		die("a launch of a size that no GPU takes");
	emulate_enqueue(stream, [=] {
		device.what = what;
		device.kernel = &kernel;
		device.launches++;
		for (unsigned z = 0; z < grid.z; z++)
			for (unsigned y = 0; y < grid.y; y++)
				for (unsigned x = 0; x < grid.x; x++) {
					device.shared = (unsigned char *)malloc(shared_bytes);
					if (shared_bytes > 0)
						memset(device.shared, 0xff, shared_bytes);
					run_block(grid, block, dim3(x, y, z));
					free(device.shared);
				}
	});
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error == cudaSuccess ? "no error" : error == cudaErrorMemoryAllocation ? "out of memory" : "error";
}

cudaError_t cudaGetDeviceCount(int *ret)
{
	*ret = 2;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
	return ordinal >= 0 && ordinal < 2 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *ret, int)
{
	*ret = {"emulated", 9, 0, (size_t)1 << 30};
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **ret, size_t bytes)
{
	return take(ret, bytes, true);
}

cudaError_t cudaFree(void *memory)
{
	return give(memory, true);
}

cudaError_t cudaHostAlloc(void **ret, size_t bytes, unsigned)
{
	return take(ret, bytes, false);
}

cudaError_t cudaFreeHost(void *memory)
{
	return give(memory, false);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	device.what = "cudaMemcpyAsync";
	check_known(to, bytes);
	check_known(from, bytes);
	emulate_enqueue(stream, [=] { memcpy(to, from, bytes); });
	return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	cudaDeviceSynchronize();
	open_device();
	memcpy(to, from, bytes);
	close_device();
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	device.what = "cudaMemsetAsync";
	check_known(memory, bytes);
	emulate_enqueue(stream, [=] { memset(memory, value, bytes); });
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	*ret = new emulate_stream();
	streams.push_back(*ret);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	open_device();
#ifdef ADDRESSES
	pthread_attr_t attributes;
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &device.host_stack, &device.host_stack_bytes);
	pthread_attr_destroy(&attributes);
#endif
	for (size_t i = streams.size(); device.backwards && i-- > 0;)
		if (streams[i] != stream)
			work_off(streams[i], streams[i]->asked);
	work_off(stream, stream->asked);
	close_device();
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	cudaStreamSynchronize(stream);
	for (size_t i = 0; i < streams.size(); i++)
		if (streams[i] == stream)
			streams.erase(streams.begin() + (ptrdiff_t)i--);
	delete stream;
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned)
{
	*ret = new emulate_event();
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	*event = {stream, stream->asked};
	return cudaSuccess;
}

/* What the event says now, whatever it says later. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	emulate_event now = *event;
	device.what = "cudaStreamWaitEvent";
	emulate_enqueue(stream, [=] { work_off(now.stream, now.asked); });
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	delete event;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
	std::lock_guard<std::recursive_mutex> hold(device.lock);
	for (size_t i = 0; i < streams.size(); i++)
		cudaStreamSynchronize(streams[i]);
	return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
	return cudaSuccess;
}
