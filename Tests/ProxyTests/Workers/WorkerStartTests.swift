// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import EventLoop
import Logging
import TestSupport
import Testing

@testable import Proxy

private struct NoThread: Error {}

@Suite("Start of the workers")
struct WorkerStartTests {
    @Test("workers that have started end if a later one cannot start, and the reason is told", arguments: [0, 1, 3])
    func failing(number: Int) throws {
        let services = ClientServices(
            gate: SharedAttemptGate(now: { 0 }), state: MemoryState(), wallClock: { 0 }, observer: LoginLog())
        let began = Notes()
        #expect(throws: NoThread.self) {
            try ProxyServer(
                services: services, workers: 4, limits: WorkerLimits(),
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            ) { name, clock, setUp in
                if name == "worker-\(number)" { throw NoThread() }
                began.add(name)
                return try EventLoopThread(name: name, clock: clock, setUp: setUp)
            }
        }
        #expect(began.all.count == number)
        // Dismissed after their threads were joined.
        #expect(services.roster.loop == nil)
    }
}
