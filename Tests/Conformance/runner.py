# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""Runs cases: one at a time on each lane, all lanes at once."""

import queue
import threading
import time
import traceback
from dataclasses import dataclass, field

import case as steps
import judge
from caller import Caller
from judge import Finding, Seen


@dataclass
class Result:
    case: object
    findings: list
    sent: dict = field(default_factory=dict)
    received: dict = field(default_factory=dict)
    ended: dict = field(default_factory=dict)
    upstream: list = field(default_factory=list)
    seconds: float = 0.0
    # Of the repetitions, how many failed.
    runs: int = 1
    failures: int = 0

    @property
    def severity(self):
        return judge.worst(self.findings)


def run_case(case, lane, contract):
    """Runs one case on a lane that no other case uses meanwhile."""
    began = time.monotonic()
    script = lane.upstream.begin(case.upstream, case.sticky)
    callers = {}
    try:
        present = _connect(case, lane, callers, 0)
        for step in case.steps:
            present = _take(step, case, lane, callers, present, script)
        _finish(case, callers)
        seen = Seen(case, callers, script, lane.address, lane.upstream.port, contract, time.monotonic() - began)
        findings = judge.universal(seen)
        findings += case.accept(seen) if case.contract else judge.lowered(case.accept(seen), case.level)
        if contract:
            findings += judge.local_replies(seen) + (case.house(seen) if case.house else [])
    finally:
        for each in callers.values():
            each.leave()
        script.end()
    findings = list(dict.fromkeys(findings))
    return Result(
        case, findings, {n: bytes(c.sent) for n, c in callers.items()},
        {n: bytes(c.received) for n, c in callers.items()},
        {n: c.ended for n, c in callers.items()},
        [(r.connection, r.raw_head, r.body.data, r.complete) for r in script.requests],
        time.monotonic() - began, 1, 1 if findings else 0)


def _connect(case, lane, callers, number):
    if number not in callers:
        callers[number] = Caller(lane.address, case.methods.get(number, ()))
    return callers[number]


def _take(step, case, lane, callers, present, script):
    """Does a step; the connection that the next one is about."""
    if callable(step):
        # Bytes that name the lane's addresses.
        step = step(lane)
    if isinstance(step, bytes):
        present.send(step)
    elif isinstance(step, steps.Trickle):
        for start in range(0, len(step.data), step.size):
            present.send(step.data[start:start + step.size])
            present.pump(step.gap)
            if present.ended != "open":
                break
    elif isinstance(step, steps.Pause):
        time.sleep(step.seconds)
    elif isinstance(step, steps.Await):
        enough = (lambda: bool(present.responses)) if step.interim else lambda: present.final_count() >= step.finals
        present.wait(enough, step.seconds)
    elif isinstance(step, steps.AwaitBytes):
        present.wait(lambda: step.data in present.received, step.seconds)
    elif isinstance(step, steps.AwaitUpstream):
        script.wait(lambda: _arrived(script, step), step.seconds)
    elif isinstance(step, steps.HalfClose):
        present.half_close()
    elif isinstance(step, steps.Leave):
        present.leave(step.reset)
    elif isinstance(step, steps.Signal):
        script.gate(step.name).set()
    elif isinstance(step, steps.On):
        return _connect(case, lane, callers, step.number)
    else:
        raise TypeError(f"no step: {step!r}")
    return present


def _arrived(script, step):
    requests = script.requests
    return (len(requests) >= step.heads and sum(each.complete for each in requests) >= step.complete
            and (not step.data or any(step.data in each.body.data + each.tunnel for each in requests)))


def _finish(case, callers):
    """Until what was to come has come, and a little longer for what should not."""
    for number, caller in callers.items():
        wanted = case.finals.get(number, 0)
        if wanted:
            caller.wait(lambda: caller.final_count() >= wanted, case.timeout)
        finals = caller.finals
        if case.closes or (finals and finals[-1].says_close()):
            caller.wait(lambda: False, case.closes or 3.0)
    end = time.monotonic() + case.settle
    while (left := end - time.monotonic()) > 0:
        alive = [caller for caller in callers.values() if caller.ended == "open"]
        if not alive:
            time.sleep(left)
            break
        alive[0].pump(left / len(alive))
        for other in alive[1:]:
            other.pump(0)


def run_all(cases, target, again=2, progress=None):
    """All cases on the target's lanes. One that fails is run again; it counts as failed if it fails each time, or if it
    was exploitable once. Those during which the proxy broke down are run again, one after the other."""
    run = _Run(target, again, progress)
    queues = {}
    for each in sorted(cases, key=lambda each: -(each.timeout if each.timeout > 5 else 0)):
        queues.setdefault(each.lane, queue.SimpleQueue()).put(each)
    threads = [threading.Thread(target=run.work,
        args=(lane, queues[lane.kind])) for lane in target.lanes if lane.kind in queues]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    run.find_breakdowns()
    return [run.results[each.id] for each in cases if each.id in run.results]


class _Run:
    def __init__(self, target, again, progress):
        self.target, self.again, self.progress = target, again, progress
        self.results, self.suspects = {}, {}
        self.lock, self.starts = threading.Lock(), 0

    def work(self, lane, waiting):
        while True:
            try:
                case = waiting.get_nowait()
            except queue.Empty:
                return
            starts = self.starts
            result = self._repeated(case, lane)
            with self.lock:
                self._restart_if_dead()
                if self.starts != starts:
                    self.suspects[case.id] = (case, lane)
                self.results[case.id] = result
            if self.progress:
                self.progress(result)

    def _restart_if_dead(self):
        """Returns true if it had to be started again."""
        process = self.target.process
        if process and process.has_died():
            process.start()
            self.starts += 1
            return True
        return False

    def find_breakdowns(self):
        """Finds the case, of those that ran when the proxy broke down, that makes it break down. If no single one does, all are
        reported."""
        guilty = []
        for case, lane in self.suspects.values():
            for _ in range(3):
                self.results[case.id] = _guarded(case, lane, self.target.contract)
                if self._restart_if_dead():
                    guilty.append(case.id)
                    break
        for name in guilty or self.suspects:
            self.results[name].findings.append(Finding("exploitable",
                "the proxy broke down" if guilty else "the proxy broke down at this or another case"))

    def _repeated(self, case, lane):
        result = _guarded(case, lane, self.target.contract)
        runs, failures = 1, int(bool(result.findings))
        while result.findings and result.severity != "exploitable" and runs <= self.again:
            time.sleep(0.05)
            result = _guarded(case, lane, self.target.contract)
            runs, failures = runs + 1, failures + bool(result.findings)
        result.runs, result.failures = runs, failures
        return result


def _guarded(case, lane, contract):
    try:
        return run_case(case, lane, contract)
    except OSError as error:
        return Result(case, [Finding("must", f"the proxy cannot be reached: {error}")], failures=1)
    except Exception:
        return Result(case, [Finding("must", f"the driver failed:\n{traceback.format_exc()}")], failures=1)
