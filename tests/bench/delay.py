# SPDX-License-Identifier: Apache-2.0
#
# delay.py - lines of any length on one host: each connection that comes in is passed on, and each byte of it so much later, both ways;
# as many at a time as come.
#
#     delay.py MILLISECONDS FROM:TO...     ports of 127.0.0.1
import asyncio
import sys


async def pass_on(reader, writer, delay_s):
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
            waiting.put_nowait((loop.time() + delay_s, data))
    except ConnectionError:
        pass
    await asyncio.sleep(delay_s)
    waiting.put_nowait(None)
    await sender


async def serve(begins, ends, delay_s):
    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", ends)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            pass_on(reader, far_writer, delay_s), pass_on(far_reader, writer, delay_s), return_exceptions=True
        )

    return await asyncio.start_server(connected, "127.0.0.1", begins)


async def main():
    delay_s = float(sys.argv[1]) / 1000
    for pair in sys.argv[2:]:
        begins, ends = map(int, pair.split(":"))
        await serve(begins, ends, delay_s)
    print("passes on", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
