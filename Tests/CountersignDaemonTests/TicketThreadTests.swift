// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Credentials
import Kerberos
import Secrets
import Synchronization
import Testing

@Suite("Threads for Kerberos tickets")
struct TicketThreadTests {
    private struct NoThread: Error {}

    @Test("a ticket fails at once if no thread can be started for it")
    func noThread() async {
        let office = SystemTicketProvider { _ in throw NoThread() }
        for _ in 0..<100 {
            let error = await #expect(throws: TicketError.self) {
                try await office.ticket(TicketRequest(service: "HTTP@www.example.com"))
            }
            #expect(error?.kind == .unknown && error?.reason.contains("NoThread") == true)
        }
    }

    @Test("if the Kerberos library hangs, further tickets fail at once and start no threads")
    func hanging() async {
        // They are never run.
        let begun = Mutex<[@Sendable () -> Void]>([])
        let office = SystemTicketProvider { body in begun.withLock { $0.append(body) } }
        for _ in 0..<16 { Task { _ = try? await office.ticket(TicketRequest(service: "HTTP@www.example.com")) } }
        while begun.withLock({ $0.count }) < 16 { await Task.yield() }
        let error = await #expect(throws: TicketError.self) {
            try await office.ticket(TicketRequest(service: "HTTP@www.example.com"))
        }
        #expect(error?.kind == .unknown && begun.withLock { $0.count } == 16)
    }
}
