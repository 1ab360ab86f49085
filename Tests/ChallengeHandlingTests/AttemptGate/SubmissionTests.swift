// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@Suite("Budget of submissions without a clear outcome")
struct SubmissionTests {
    private static let origin = Origin(scheme: .https, host: "portal.example.com")
    private static let key = LatchKey(origin: origin, challenge: "portal", credential: "ann")
    private static let other = LatchKey(origin: origin, challenge: "other", credential: "ann")

    private func use(_ password: String = "p1", _ key: LatchKey = key) -> CredentialUse {
        CredentialUse(key: key, credential: Credential(name: "ann", fields: ["password": Secret(password)]))
    }

    private func submit(_ gate: LocalGate, at now: Int64, _ use: CredentialUse) async {
        await gate.recordSubmission(of: use, isSent: true, now: now)
    }

    @Test("the second submission waits a minute, the third 15 minutes, and each later one an hour")
    func pauses() async throws {
        let (gate, use) = (LocalGate(), use())
        #expect(gate.pause(of: use, now: 0) == nil)
        var now: Int64 = 0
        for pause in [60_000, 900_000, 3_600_000, 3_600_000] as [Int64] {
            await submit(gate, at: now, use)
            let refusal = try #require(gate.pause(of: use, now: now + pause - 1))
            #expect(refusal.until == now + pause && refusal.failure.code == .failed)
            #expect(refusal.failure.retryAt == now + pause && refusal.failure.isHeldBack)
            now += pause
            #expect(gate.pause(of: use, now: now) == nil)
        }
    }

    @Test("the reason says how often the value was sent, and what ends the pause")
    func words() async throws {
        let (gate, use) = (LocalGate(), use())
        await submit(gate, at: 0, use)
        #expect(gate.pause(of: use, now: 1)?.failure.detail.contains("which was sent once") == true)
        await submit(gate, at: 60_000, use)
        let detail = try #require(gate.pause(of: use, now: 60_001)).failure.detail
        #expect(detail.contains("sent 2 times") && detail.contains("countersign login portal"), "\(detail)")
    }

    @Test("another value, another challenge and a value that was accepted have no pause")
    func others() async {
        let gate = LocalGate()
        await submit(gate, at: 0, use())
        #expect(gate.pause(of: use("p2"), now: 1) == nil)
        #expect(gate.pause(of: use("p1", Self.other), now: 1) == nil)
        await gate.accept(Self.key, use().credential, Acceptance(path: nil, at: 1))
        #expect(gate.pause(of: use(), now: 2) == nil)
        await submit(gate, at: 3, use())
        #expect(gate.pause(of: use(), now: 4) == nil, "an accepted value is not counted")
    }

    @Test("an edited configuration begins the budget anew")
    func configuration() throws {
        var gate = AttemptGate<Int>()
        let value = AttemptDigests(own: [1])
        gate.configuration = "a"
        _ = gate.recordSubmission(of: Self.key, value, isSent: true, now: 0)
        #expect(gate.pause(Self.key, value, now: 1) != nil)
        gate.configuration = "b"
        #expect(gate.pause(Self.key, value, now: 1) == nil)
        _ = gate.recordSubmission(of: Self.key, value, isSent: true, now: 2)
        #expect(gate.pause(Self.key, value, now: 3)?.until == 60_002)
        let stored = try #require(SubmissionTable(parsing: gate.record.submissions.serialized()))
        #expect(stored == gate.record.submissions)
    }

    @Test("a submission that certainly did not reach the server is taken back, without a pause for the ones before")
    func unsent() async {
        let (gate, use) = (LocalGate(), use())
        await submit(gate, at: 0, use)
        await gate.recordSubmission(of: use, isSent: false, now: 1)
        #expect(gate.pause(of: use, now: 2) == nil)
        await gate.recordSubmission(of: use, isSent: false, now: 3)
        #expect(gate.pause(of: use, now: 4) == nil, "nothing below zero")
    }

    @Test("the count survives a restart, and `unlatch` and a rejection forget it")
    func kept() async {
        let store = MemoryAttempts()
        await submit(LocalGate(store: store), at: 0, use())
        let next = LocalGate(store: store)
        #expect(next.pause(of: use(), now: 1) != nil)
        _ = await next.unlatch(challenge: "portal")
        #expect(next.pause(of: use(), now: 1) == nil)
        #expect(LocalGate(store: store).pause(of: use(), now: 1) == nil)
        await submit(next, at: 2, use())
        await next.close(Self.key, for: use().credential, Latch(reason: .rejected, closedAt: 3))
        #expect(next.pause(of: use(), now: 4) == nil && next.all.count == 1)
    }

    @Test("a table is read as it was written, and bytes that are no table are refused")
    func serialization() throws {
        var table = SubmissionTable()
        table.set(Self.key, digest: [1, 2], SubmissionTable.Count(submissions: 3, last: 17))
        table.set(Self.other, digest: [3], SubmissionTable.Count(submissions: 1, last: 18))
        #expect(SubmissionTable(parsing: table.serialized()) == table)
        for text in ["", "{}", #"{"version":2,"submissions":[]}"#, #"{"version":1,"submissions":[{}]}"#] {
            #expect(SubmissionTable(parsing: Array(text.utf8)) == nil)
        }
    }

    @Test("a table has at most 16 values of a key, and drops the oldest")
    func limits() {
        var table = SubmissionTable()
        for value in 0..<20 { table.set(Self.key, digest: [UInt8(value)], .init(submissions: 1, last: Int64(value))) }
        #expect(table.count == 16 && table.submissions(Self.key, digest: [3]) == nil)
        #expect(table.submissions(Self.key, digest: [19]) != nil)
        #expect(table.forget(challenge: "portal", until: 10) == 7 && table.count == 9)
    }
}
