// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import Credentials

@Suite("Latches")
struct SealedAttemptStoreTests {
    private let key = LatchKey(
        origin: Origin(scheme: .https, host: "bank.example.com"), challenge: "bank-pin", credential: "bank-pin")
    private let latch = Latch(reason: .rejected, closedAt: 1000)
    private let store = MemoryStore()

    /// A gate that keeps its record in `store`, as a process does.
    private func gate(_ store: any StateStore) throws -> LocalGate {
        LocalGate(store: try SealedAttemptStore(store: store))
    }

    private func pin(_ value: String) -> Credential {
        Credential(name: "bank-pin", fields: ["pin": Secret(value)])
    }

    @Test("hold after the process is gone")
    func survive() throws {
        try gate(store).close(key, for: pin("1234"), latch)
        let later = try gate(store)
        #expect(later.closedLatch(key, for: pin("1234"), now: 2000) == latch)
    }

    @Test("hold after the process is gone, with a store on disk")
    func surviveOnDisk() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("state")
        try gate(SealedStateStore(directory: path)).close(key, for: pin("1234"), latch)
        let later = try gate(SealedStateStore(directory: path))
        #expect(later.closedLatch(key, for: pin("1234"), now: 2000) == latch)
        #expect(later.closedLatch(key, for: pin("4321"), now: 2000) == nil)
    }

    @Test("open for a changed value, and are still closed for the old one")
    func changedValue() throws {
        let latches = try gate(store)
        latches.close(key, for: pin("1234"), latch)
        #expect(latches.closedLatch(key, for: pin("4321"), now: 2000) == nil)
        latches.close(key, for: pin("4321"), Latch(reason: .rejected, closedAt: 3000))
        #expect(latches.closedLatch(key, for: pin("1234"), now: 4000) == latch)
    }

    @Test("do not care which source the same value comes from")
    func sameValueElsewhere() throws {
        let latches = try gate(store)
        let keyring = Credential(name: "api", fields: ["client-id": Secret("a"), "client-secret": Secret("b")])
        let environment = EnvironmentSource(environment: [
            "COUNTERSIGN_API__CLIENT_ID": "a", "COUNTERSIGN_API__CLIENT_SECRET": "b",
        ])
        latches.close(key, for: keyring, latch)
        let same = try #require(try environment.credential(named: "api"))
        #expect(latches.closedLatch(key, for: same, now: 2000) == latch)
    }

    @Test("tell fields apart however their bytes fall together")
    func borders() throws {
        let latches = try gate(store)
        latches.close(key, for: Credential(name: "x", fields: ["a": Secret("1"), "b": Secret("2")]), latch)
        for fields in [["a": "2", "b": "1"], ["a": "1b2"], ["a1": "", "b": "2"], ["a": "1"]] {
            let other = Credential(name: "x", fields: fields.mapValues { Secret($0) })
            #expect(latches.closedLatch(key, for: other, now: 2000) == nil)
        }
    }

    @Test("hold in memory when they cannot be kept, and tell")
    func failingStore() throws {
        let told = Mutex<[StateError]>([])
        let latches = LocalGate(
            store: try SealedAttemptStore(store: store) { error in told.withLock { $0.append(error) } })
        store.saveFailure = StateError(reason: "disk full")
        latches.close(key, for: pin("1234"), latch)
        #expect(latches.closedLatch(key, for: pin("1234"), now: 2000) == latch)
        #expect(told.withLock { $0 } == [StateError(reason: "disk full")])
        // The next one that is kept takes the first along.
        store.saveFailure = nil
        latches.close(key, for: pin("4321"), latch)
        #expect(try gate(store).all.count == 2)
    }

    @Test("open for an operator, for good")
    func unlatch() throws {
        let latches = try gate(store)
        latches.close(key, for: pin("1234"), latch)
        #expect(latches.unlatch(challenge: "other") == 0)
        #expect(latches.unlatch(challenge: "bank-pin") == 1)
        #expect(latches.closedLatch(key, for: pin("1234"), now: 2000) == nil)
        #expect(try gate(store).all.isEmpty)
    }

    @Test("of another process are not lost when one's own are kept")
    func twoProcesses() throws {
        let daemon = try gate(store)
        let login = try gate(store)
        login.close(key, for: pin("1111"), latch)
        daemon.close(key, for: pin("2222"), latch)
        #expect(daemon.closedLatch(key, for: pin("1111"), now: 2000) == latch)
        #expect(try gate(store).all.count == 2)
    }

    @Test("keep no value, neither in the clear nor as a plain digest of it")
    func keepsNoValue() throws {
        let other = MemoryStore()
        for store in [store, other] {
            try gate(store).close(key, for: pin("1234"), latch)
            let kept = try #require(store.values["latches"]).revealText()
            #expect(!kept.contains("1234"))
        }
        // Another key, hence another digest of the same value.
        #expect(store.values["latches"] != other.values["latches"])
    }

    @Test("closed from many threads at once are all kept")
    func concurrent() async throws {
        let latches = try gate(store)
        await withTaskGroup { group in
            for index in 0..<16 {
                group.addTask { [key, latch] in
                    var key = key
                    key.challenge = "c\(index)"
                    latches.close(key, for: Credential(name: "x", fields: ["pin": Secret("1")]), latch)
                }
            }
        }
        #expect(try gate(store).all.count == 16)
    }

    @Test("that cannot be read back are an error, not an open door")
    func unreadable() throws {
        try store.save(Secret("{}"), as: "latches")
        #expect(throws: StateError.self) { try SealedAttemptStore(store: store) }
    }

    @Test("the mark of an accepted value survives a restart, sealed, and goes when the value is rejected")
    func marks() throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("state")
        let mark = Acceptance(path: "/app/1", at: 1000)
        try gate(SealedStateStore(directory: path)).accept(key, pin("1234"), mark)
        let later = try gate(SealedStateStore(directory: path))
        #expect(later.acceptance(key, of: pin("1234")) == mark && later.acceptance(key, of: pin("4321")) == nil)
        later.close(key, for: pin("1234"), latch)
        #expect(later.acceptance(key, of: pin("1234")) == nil)
        #expect(try gate(SealedStateStore(directory: path)).acceptance(key, of: pin("1234")) == nil)
    }

    @Test("a mark that was withdrawn does not come back with a restart, and closes no latch")
    func withdrawnMark() throws {
        let latches = try gate(store)
        latches.accept(key, pin("1234"), Acceptance(path: "/1", at: 0))
        latches.accept(key, pin("4321"), Acceptance(path: "/2", at: 0))
        latches.note(.forbidden, of: CredentialUse(key: key, credential: pin("1234")))
        for book in [latches, try gate(store)] {
            #expect(book.acceptance(key, of: pin("1234")) == nil && book.acceptance(key, of: pin("4321")) != nil)
            #expect(book.closedLatch(key, for: pin("1234"), now: 0) == nil)
        }
    }

    @Test("a mark is written once, and its path again after an hour")
    func marksAreCheap() throws {
        func kept() throws -> String? {
            try gate(store).acceptance(key, of: pin("1234"))?.path
        }
        let latches = try gate(store)
        latches.accept(key, pin("1234"), Acceptance(path: "/1", at: 0))
        latches.accept(key, pin("1234"), Acceptance(path: "/2", at: 3_599_999))
        #expect(latches.acceptance(key, of: pin("1234"))?.path == "/2")
        #expect(try kept() == "/1")
        latches.accept(key, pin("1234"), Acceptance(path: "/3", at: 3_600_000))
        #expect(try kept() == "/3")
    }

    @Test("a step of a one-time password is written alone, and so is a latch without a mark")
    func oneWrite() throws {
        let gate = try gate(store)
        gate.accept(key, pin("1234"), Acceptance(path: "/1", at: 0))
        gate.accept(key, pin("1234"), Acceptance(path: "/2", at: 1))
        let marks = store.values["accepted-credentials"]
        #expect(gate.use(code: "seed", stepEnding: 30_000, isUsed: true, now: 1) == nil)
        gate.close(key, for: pin("4321"), latch)
        #expect(store.values["accepted-credentials"] == marks && store.values["totp-steps"] != nil)
        gate.close(key, for: pin("1234"), latch)
        #expect(store.values["accepted-credentials"] != marks)
    }
}
