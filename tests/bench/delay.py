# SPDX-License-Identifier: Apache-2.0
#
# delay.py - lines of any length on one host: each connection that comes in is passed on, and each byte of it so much later, both ways;
# as many at a time as come. With SIGUSR1 the lines get another length, which what is under way has not. It ends with the script that
# has begun it, however that ends.
#
#     delay.py MILLISECONDS[,AFTER-THE-SIGNAL] FROM:TO...     ports of 127.0.0.1
import asyncio
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


async def pass_on(reader, writer, delay):
    loop = asyncio.get_running_loop()
    waiting = asyncio.Queue()

    async def send():
        while (item := await waiting.get()) is not None:
            due, data = item
            await asyncio.sleep(max(0, due - loop.time()))
            writer.write(data)
        writer.close()

    sender = loop.create_task(send())
    try:
        while data := await reader.read(1 << 16):
            waiting.put_nowait((loop.time() + delay[0], data))
    except ConnectionError:
        pass
    await asyncio.sleep(delay[0])
    waiting.put_nowait(None)
    await sender


async def serve(begins, ends, delay):
    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", ends)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            pass_on(reader, far_writer, delay), pass_on(far_reader, writer, delay), return_exceptions=True
        )

    return await asyncio.start_server(connected, "127.0.0.1", begins)


async def main():
    delay = [float(text) / 1000 for text in sys.argv[1].split(",")]
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: delay.__setitem__(0, delay[-1]))
    for pair in sys.argv[2:]:
        begins, ends = map(int, pair.split(":"))
        await serve(begins, ends, delay)
    print("passes on", flush=True)
    await asyncio.Event().wait()


script = os.getppid()
ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == script:
    asyncio.run(main())
