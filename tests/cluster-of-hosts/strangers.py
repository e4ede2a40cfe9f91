#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""strangers.py HOST PORT WHAT [TICKET] - what comes to a port that anybody can reach: sockets and Python's TLS, none of skep's code.

Each kind prints how many connections it made, and exits with 0 when none of them was given anything."""
import os
import pathlib
import random
import re
import socket
import ssl
import struct
import sys
import time

HOST, PORT, WHAT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
TICKET = sys.argv[4] if len(sys.argv) > 4 else ""
draw = random.Random(7)
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
VERSION = int(re.search(r"SKEP_PROTOCOL (\d+)u", (pathlib.Path(__file__).parents[2] / "exec/tcp/words.h").read_text())[1])
HELLO, REFUSED, OFFER, READY, PREPARED = 9, 10, 11, 14, 16


def connect():
    return socket.create_connection((HOST, PORT), 10)


def tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connect())


def record(kind, content, length=None):
    return struct.pack("<IB3x", len(content) if length is None else length, kind) + content


def text(string):
    return struct.pack("<H", len(string)) + string


def secret():
    value = 0
    for letter in TICKET.removeprefix("skep1-"):
        value = value << 5 | ALPHABET.index(letter)
    return value.to_bytes(50, "big")[32:48]  # fingerprint, secret, checksum


def hello(version=VERSION, name=b"stranger", admits=None, memory=0):
    words = struct.pack("<IH", 0x70656B73, version) + text(b"1") + (admits or secret()) + b"\0"
    words += text(name) + text(b"") + struct.pack("<QIHI", memory, 4, 0, 0xFFFFFFFF)
    return record(HELLO, words)


def closes(connection, seconds=20):
    """Whatever the other side still says, then its end."""
    said = b""
    connection.settimeout(seconds)
    try:
        while piece := connection.recv(65536):
            said += piece
    except TimeoutError:
        sys.exit(f"{WHAT}: the connection is still there after {seconds} s")
    except OSError:
        pass
    return said


def kinds(said):
    found = []
    while len(said) >= 8:
        length, kind = struct.unpack_from("<IB", said)
        found.append(kind)
        said = said[8 + length:]
    return found


def random_bytes():
    for i in range(200):
        connection = connect()
        connection.sendall(draw.randbytes(draw.choice((1, 5, 100, 5000))))
        connection.shutdown(socket.SHUT_WR)
        assert 11 not in kinds(closes(connection))
    return 200


def half_open():
    """Thousands that say nothing, more than there is room for; they stay until they are thrown out."""
    held = [connect() for _ in range(2000)]
    time.sleep(float(os.environ.get("HOLD", "3")))
    return len(held)


def half_handshakes():
    held = []
    for i in range(500):
        connection = connect()
        connection.sendall(bytes.fromhex("1603010200010001fc0303") + draw.randbytes(32))
        held.append(connection)
    time.sleep(3)
    return len(held)


def garbage_after_handshake():
    for i in range(100):
        connection = tls()
        try:
            connection.sendall(draw.randbytes(draw.choice((8, 100, 20000))))
        except OSError:
            pass
        assert kinds(closes(connection)) == []
    return 100


def absurd_sizes():
    for kind in list(range(20)) + [255]:
        for length in (0x7FFFFFFF, 0xFFFFFFFF, 65537, 16385):
            connection = tls()
            connection.sendall(record(kind, b"x" * 100, length))
            assert kinds(closes(connection)) == []
    return 84


def before_admission():
    """All records that there are, by one whose ticket nobody has asked for."""
    for kind in range(1, 20):
        if kind in (4, HELLO):  # a PING is heard by anybody's leave
            continue
        connection = tls()
        connection.sendall(record(kind, bytes(64)))
        assert kinds(closes(connection)) in ([], [REFUSED]), kind
    return 17


def record_join():
    """Stands between one who joins and the server, and keeps what the former says: to be replayed. TICKET names the file."""
    door = socket.create_server(("", 7500))
    open(TICKET, "wb").close()
    guest, _ = door.accept()
    server = connect()
    said = bytearray()
    for each in guest, server:
        each.settimeout(0.05)
    while True:
        for source, sink in ((guest, server), (server, guest)):
            try:
                piece = source.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                piece = b""
            if not piece:
                with open(TICKET, "wb") as file:
                    file.write(said)
                return len(said)
            sink.sendall(piece)
            if source is guest:
                said += piece


def replayed_handshake():
    """What a machine said that was let in, bit for bit, all at once or as it was said: the keys are others each time."""
    with open(TICKET, "rb") as file:
        said = file.read()
    assert len(said) > 500
    for i in range(100):
        connection = connect()
        try:
            for at in range(0, len(said), len(said) if i % 2 else 600):
                connection.sendall(said[at:at + (len(said) if i % 2 else 600)])
        except OSError:
            pass
        answer = closes(connection)
        # A hello and, in one sealed piece with certificate and proof, no more; then an alert or the end.
        assert len(answer) < 4000, len(answer)
    return 100


def wrong_ticket():
    for i in range(50):
        connection = tls()
        connection.sendall(hello(admits=draw.randbytes(16)))
        assert kinds(closes(connection)) == [REFUSED]
    return 50


def admitted_and_absurd():
    """With a ticket that admits: what is no key, files that are not there, and orders out of turn."""
    count = 0
    for after in (record(READY, text(b"")), record(READY, text(draw.randbytes(91))), record(READY, struct.pack("<H", 65535) + bytes(50)),
                  record(12, draw.randbytes(32) + struct.pack("<Q", 0)), record(12, bytes(32) + struct.pack("<Q", 2**63)),
                  record(PREPARED, b"\1" + text(b"")), record(1, bytes(40)), record(2, bytes(40)), record(3, bytes(10)),
                  record(5, struct.pack("<IB", 1, 1) + bytes(40)), record(7, struct.pack("<I", 1)), record(16, b"\0" + text(b"no \x1b[2J"))):
        connection = tls()
        connection.sendall(hello(name=b"guest"))
        connection.sendall(after)
        assert kinds(closes(connection))[:1] == [OFFER] or count in (6, 8)
        count += 1
    for bad in (hello(version=1), hello(memory=1), hello(name=b"\x1b[2J"), hello(name=b"x" * 64)):
        connection = tls()
        connection.sendall(bad)
        assert OFFER not in kinds(closes(connection))
        count += 1
    return count


print(WHAT, globals()[WHAT]())
