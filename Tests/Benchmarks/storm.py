# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""A login storm: everybody at once, and no session yet. The server of tokens takes its time and counts."""

import mmap
import select
import threading
import time

import configurations
import streams
from callers import allow_many, connect

# How long the login server thinks: all the requests are there before it answers.
DELAY = 0.25
# Each connection sends its share of the requests in one go.
MOST_CONNECTIONS = 2000


class LoginServer(streams.ForkedServer):
    """Hands out the token. `logins`: how often it was asked."""

    def __init__(self):
        self.counter = mmap.mmap(-1, 8)
        self.lock = threading.Lock()
        super().__init__(backlog=4096)

    @property
    def logins(self):
        return int.from_bytes(self.counter[:8], "little")

    def _connection(self, connection):
        try:
            while True:
                streams.read_head(connection)
                with self.lock:
                    self.counter[:8] = (self.logins + 1).to_bytes(8, "little")
                time.sleep(DELAY)
                connection.sendall(streams.token_answer(configurations.TOKEN))
        except (streams.Broken, OSError):
            connection.close()


def once(port, requests):
    """All at once, each connection its share in one piece: seconds until each answer, and how many were wrong."""
    allow_many()
    connections = min(MOST_CONNECTIONS, requests)
    share = requests // connections
    text = f"GET /balance HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() * share
    # Every answer is the same but for its fields, so its body is what tells it.
    right = configurations.ANSWER.encode()
    callers = [connect(port) for _ in range(connections)]
    waiting = {caller.fileno(): [caller, share, b""] for caller in callers}
    poll = select.epoll()
    times, wrong = [], 0
    for caller in callers:
        caller.setblocking(False)
        poll.register(caller, select.EPOLLIN)
    begin = time.monotonic()
    for caller in callers:
        caller.sendall(text)
    while waiting and time.monotonic() - begin < 30:
        for number, _ in poll.poll(1):
            state = waiting[number]
            try:
                piece = state[0].recv(65536)
            except BlockingIOError:
                continue
            now = time.monotonic() - begin
            state[2] += piece
            came = state[2].count(right)
            if came:
                times += [now] * came
                state[1] -= came
                state[2] = state[2][state[2].rindex(right) + len(right):]
            if not piece or state[1] <= 0:
                wrong += state[1]
                poll.unregister(number)
                del waiting[number]
    wrong += sum(state[1] for state in waiting.values())
    for caller in callers:
        caller.close()
    return sorted(times), wrong


def run(stages, plan, progress):
    """`stages(port)`: a context with the daemon just started, which logs in at that port. The storms one by one."""
    results = []
    for _ in range(plan.storms):
        server = LoginServer()
        try:
            with stages(server.port) as contestants:
                times, wrong = once(contestants[0].ports["plain"], plan.storm_requests)
                result = {
                    "requests": plan.storm_requests, "logins": server.logins, "wrong": wrong,
                    "p50": round(times[len(times) // 2], 3) if times else None,
                    "p99": round(times[len(times) * 99 // 100], 3) if times else None,
                    "last": round(times[-1], 3) if times else None,
                }
        finally:
            server.end()
        results.append(result)
        progress(f"login storm: {result}")
    return results
