# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Brings the events of the schedule about, and notes for each what it explains."""

import asyncio
import signal
import time

from schedule import BACK_OFF, EXPLAINED, FAULT_SECONDS, REJECTED, Window

# A changed file of credentials is noticed within this many seconds; docs/credentials.md says two.
NOTICED = 10


class Director:
    def __init__(self, manager, configuration, upstreams, events):
        self.manager, self.configuration, self.upstreams, self.events = manager, configuration, upstreams, events
        self.windows = []
        self.findings = []
        # Values that are wrong, or were before their server knew them: each may arrive once.
        self.once = []
        self.retired = []
        self.before_restart = None
        # Held while the daemon is ended, started, reloaded or given a command.
        self.lock = asyncio.Lock()
        self._unsettled = []
        self._reloads = 0
        self._wrong = 0

    async def run(self):
        begin = time.time()
        async with asyncio.TaskGroup() as group:
            for event in self.events:
                await asyncio.sleep(max(0, begin + event.at - time.time()))
                group.create_task(self._perform(event))

    async def _perform(self, event):
        event.began = time.time()
        action = getattr(self, "_" + event.kind.replace(" ", "_"))
        try:
            event.result = await action(event) or ""
        except Exception as error:
            self.findings.append(f"{event.name} at {event.at:.0f} s: {error!r}")
            event.result = repr(error)
        event.ended = time.time()

    def _open(self, event, codes, upstream=None):
        window = Window(upstream or event.upstream, time.time(), set(codes), event.name)
        self.windows.append(window)
        return window

    async def _fault(self, event):
        upstream = self.upstreams[event.upstream]
        window = self._open(event, EXPLAINED[event.variant])
        await upstream.begin(event.variant)
        await asyncio.sleep(FAULT_SECONDS)
        await upstream.end()
        # What the server had in hand at the end, and then the pause after the last failure of a login.
        window.ended = time.time() + (BACK_OFF if upstream.protection.latches else 1)
        return f"{upstream.faults_done[event.variant]} requests so far"

    async def _drop(self, event):
        self.upstreams[event.upstream].protection.drop()

    async def _rotation(self, event):
        protection = self.upstreams[event.upstream].protection
        old, new = protection.value(), protection.next_value()
        if event.variant == "overlapping":
            protection.accept(old, new)
            self.configuration.write_values(**{event.upstream: new})
            await asyncio.sleep(NOTICED + 2)
            self._retire(protection, old, new)
        elif event.variant == "server first":
            window = self._open(event, REJECTED if protection.latches else {"upstream 401", "upstream 403"})
            self._retire(protection, old, new)
            if protection.has_sessions:
                protection.drop()
            await asyncio.sleep(4)
            self.configuration.write_values(**{event.upstream: new})
            window.ended = time.time() + NOTICED
            await asyncio.sleep(NOTICED)
        else:
            self.once.append((event.upstream, new))
            window = self._unsettle(event)
            self.configuration.write_values(**{event.upstream: new})
            await asyncio.sleep(NOTICED + 5)
            protection.accept(old, new)
            status, output = await self._while_running("unlatch", event.upstream)
            if status != 0:
                self.findings.append(f"{event.name} at {event.at:.0f} s: unlatch ended with {status}: {output}")
            await asyncio.sleep(5)
            self._retire(protection, old, new)
            self._settle(window)
            await asyncio.sleep(NOTICED)
            return f"unlatch: {status} {output}"
        return ""

    async def _wrong_password(self, event):
        protection = self.upstreams[event.upstream].protection
        self._wrong += 1
        wrong = f"wrong-{self._wrong:04d}-{event.upstream}"
        if event.upstream == "digest":
            protection.wrong.append(wrong)
        self.once.append((event.upstream, wrong))
        window = self._unsettle(event)
        self.configuration.write_values(**{event.upstream: wrong})
        await asyncio.sleep(60)
        self.configuration.write_values(**{event.upstream: protection.value()})
        self._settle(window)
        await asyncio.sleep(NOTICED)
        return f"arrived {len(protection.refusals.get(wrong, []))} times"

    def _retire(self, protection, old, new):
        protection.accept(new)
        if protection.latches:
            self.retired.append((protection.name, old))

    def _unsettle(self, event):
        """The file has a value that the server does not accept: sessions go on, but a token or a nonce ends, and a new process has none."""
        window = self._open(event, REJECTED if event.upstream in ("bearer", "digest") else set())
        self._unsettled.append(window)
        return window

    def _settle(self, window):
        self._unsettled.remove(window)
        window.ended = time.time() + NOTICED

    async def _while_running(self, *arguments):
        async with self.lock:
            return await self.manager.command(*arguments)

    async def _reload(self, event):
        async with self.lock:
            is_broken = event.variant == "broken"
            self._reloads += 0 if is_broken else 1
            self.configuration.write(self._reloads, is_broken)
            status = await self.manager.reload()
            if is_broken:
                self.configuration.write(self._reloads)
            if ("Reload refused" in status) != is_broken:
                self.findings.append(f"{event.name} at {event.at:.0f} s: {status}")

    async def _restart(self, event):
        return await self._begin_anew(event, signal.SIGTERM, {"ended"})

    async def _crash(self, event):
        return await self._begin_anew(event, signal.SIGKILL, {"ended", "cut"})

    async def _begin_anew(self, event, number, codes):
        async with self.lock:
            await self.before_restart()
            window = self._open(event, codes)
            for other in self._unsettled:
                other.codes |= REJECTED
            took = await self.manager.stop(number)
            count = sum(map(len, self.manager.stored.values()))
            begin = time.monotonic()
            await self.manager.start()
            window.ended = time.time() + 1
            if count != 1:
                self.findings.append(f"{event.name} at {event.at:.0f} s: {count} images of sessions are stored")
            return f"ended in {took:.2f} s, ready in {time.monotonic() - begin:.2f} s"
