// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Synchronization
import System
import TestSupport
import Testing

@testable import Credentials

@Suite("Sealed attempt store")
struct SealedAttemptStoreTests {
    private let key = LatchKey(
        origin: Origin(scheme: .https, host: "bank.example.com"), challenge: "bank-pin", credential: "bank-pin")
    private let latch = Latch(reason: .rejected, closedAt: 1000)
    private let store = MemoryStore()

    /// Returns a gate that keeps its record in `store`, as a process does.
    private func gate(_ store: any StateFiles) throws -> LocalGate {
        LocalGate(store: try SealedAttemptStore(files: store, thread: StateThread()))
    }

    private func gate(_ store: SealedStateStore) throws -> LocalGate {
        LocalGate(store: try SealedAttemptStore(in: store))
    }

    private func pin(_ value: String) -> Credential {
        Credential(name: "bank-pin", fields: ["pin": Secret(value)])
    }

    @Test("a latch is still closed in the next process")
    func survive() async throws {
        try await gate(store).close(key, for: pin("1234"), latch)
        let later = try gate(store)
        #expect(later.closedLatch(key, for: pin("1234"), now: 2000) == latch)
    }

    @Test("a latch stored on disk is still closed in the next process")
    func surviveOnDisk() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("state")
        try await gate(SealedStateStore(directory: path)).close(key, for: pin("1234"), latch)
        let later = try gate(SealedStateStore(directory: path))
        #expect(later.closedLatch(key, for: pin("1234"), now: 2000) == latch)
        #expect(later.closedLatch(key, for: pin("4321"), now: 2000) == nil)
    }

    @Test("two processes that close latches at the same time lose none, also in a new directory")
    func twoWriters() async throws {
        @Sendable func challenge(_ name: String) -> LatchKey {
            LatchKey(origin: key.origin, challenge: name, credential: key.credential)
        }
        let directory = try TemporaryDirectory()
        let path = directory.file("state")
        // The directory exists already, as the service's does: the first of two processes creates the key.
        let stores = try [SealedStateStore(directory: path), SealedStateStore(directory: path)]
        let gates = try stores.map { try gate($0) }
        await withTaskGroup(of: Void.self) { group in
            for (number, gate) in gates.enumerated() {
                for round in 0..<50 {
                    group.addTask { await gate.close(challenge("\(number)-\(round)"), for: pin("1234"), latch) }
                }
            }
        }
        let later = try gate(SealedStateStore(directory: path))
        for number in 0..<2 {
            for round in 0..<50 {
                let key = challenge("\(number)-\(round)")
                #expect(later.closedLatch(key, for: pin("1234"), now: 2000) == latch, "\(key)")
            }
        }
    }

    @Test("a latch is open for a changed value and stays closed for the old one")
    func changedValue() async throws {
        let latches = try gate(store)
        await latches.close(key, for: pin("1234"), latch)
        #expect(latches.closedLatch(key, for: pin("4321"), now: 2000) == nil)
        await latches.close(key, for: pin("4321"), Latch(reason: .rejected, closedAt: 3000))
        #expect(latches.closedLatch(key, for: pin("1234"), now: 4000) == latch)
    }

    @Test("a latch is closed for a value from any source")
    func sameValueElsewhere() async throws {
        let latches = try gate(store)
        let keyring = Credential(name: "api", fields: ["client-id": Secret("a"), "client-secret": Secret("b")])
        let environment = EnvironmentSource(environment: [
            "COUNTERSIGN_API__CLIENT_ID": "a", "COUNTERSIGN_API__CLIENT_SECRET": "b",
        ])
        await latches.close(key, for: keyring, latch)
        let same = try #require(try environment.credential(named: "api"))
        #expect(latches.closedLatch(key, for: same, now: 2000) == latch)
    }

    @Test("a latch distinguishes credentials whose fields have the same bytes in all")
    func borders() async throws {
        let latches = try gate(store)
        await latches.close(key, for: Credential(name: "x", fields: ["a": Secret("1"), "b": Secret("2")]), latch)
        for fields in [["a": "2", "b": "1"], ["a": "1b2"], ["a1": "", "b": "2"], ["a": "1"]] {
            let other = Credential(name: "x", fields: fields.mapValues { Secret($0) })
            #expect(latches.closedLatch(key, for: other, now: 2000) == nil)
        }
    }

    @Test("a latch that cannot be stored is closed in memory, and the failure is reported")
    func failingStore() async throws {
        let told = Mutex<[StateError]>([])
        let latches = LocalGate(
            store: try SealedAttemptStore(files: store, thread: StateThread()) { error, _ in
                told.withLock { $0.append(error) }
            })
        store.saveFailure = StateError(reason: "disk full")
        await latches.close(key, for: pin("1234"), latch)
        #expect(latches.closedLatch(key, for: pin("1234"), now: 2000) == latch)
        #expect(told.withLock { $0 } == [StateError(reason: "disk full")])
        // The next successful write includes the first latch.
        store.saveFailure = nil
        await latches.close(key, for: pin("4321"), latch)
        #expect(try gate(store).all.count == 2)
    }

    @Test("a latch that an operator has opened stays open")
    func unlatch() async throws {
        let latches = try gate(store)
        await latches.close(key, for: pin("1234"), latch)
        #expect(await latches.unlatch(challenge: "other") == 0)
        #expect(await latches.unlatch(challenge: "bank-pin") == 1)
        #expect(latches.closedLatch(key, for: pin("1234"), now: 2000) == nil)
        #expect(try gate(store).all.isEmpty)
    }

    @Test("storing latches preserves those of another process")
    func twoProcesses() async throws {
        let daemon = try gate(store)
        let login = try gate(store)
        await login.close(key, for: pin("1111"), latch)
        await daemon.close(key, for: pin("2222"), latch)
        #expect(daemon.closedLatch(key, for: pin("1111"), now: 2000) == latch)
        #expect(try gate(store).all.count == 2)
    }

    @Test("a stored latch contains neither the value nor a plain digest of the value")
    func keepsNoValue() async throws {
        let other = MemoryStore()
        for store in [store, other] {
            try await gate(store).close(key, for: pin("1234"), latch)
            let kept = try #require(store.values["latches"]).revealText()
            #expect(!kept.contains("1234"))
        }
        // Another key, hence another digest of the same value.
        #expect(store.values["latches"] != other.values["latches"])
    }

    @Test("latches that close concurrently are all stored")
    func concurrent() async throws {
        let latches = try gate(store)
        await withTaskGroup { group in
            for index in 0..<16 {
                group.addTask { [key, latch] in
                    var key = key
                    key.challenge = "c\(index)"
                    await latches.close(key, for: Credential(name: "x", fields: ["pin": Secret("1")]), latch)
                }
            }
        }
        #expect(try gate(store).all.count == 16)
    }

    @Test("stored latches that cannot be read are an error and do not count as open")
    func unreadable() throws {
        try store.save(Secret("{}"), as: "latches")
        #expect(throws: StateError.self) { try SealedAttemptStore(files: store, thread: StateThread()) }
    }

    private static let files = ["latches", "submissions", "accepted-credentials", "totp-steps"]

    @Test("a state file that cannot be read stops the start, and is named", arguments: files + ["latch-key"])
    func unreadableFile(name: String) async throws {
        try await gate(store).close(key, for: pin("1234"), latch)
        store.unreadable = [name]
        let error = #expect(throws: StateError.self) { try SealedAttemptStore(files: store, thread: StateThread()) }
        #expect(error?.reason.contains(name) == true)
        store.unreadable = []
        #expect(try gate(store).closedLatch(key, for: pin("1234"), now: 2000) == latch)
    }

    @Test(
        "a state file of another version stops the start, and the reason names it and what its removal does",
        arguments: files)
    func otherVersion(name: String) async throws {
        try await gate(store).close(key, for: pin("1234"), latch)
        for content in [
            "", "{}x", #"{"version":2,"codes":{}}"#,
            #"{"version":1,"latches":[{}],"accepted":[{}],"submissions":[{}]}"#,
        ] {
            try store.save(Secret(content), as: name)
            let error = #expect(throws: StateError.self) {
                try SealedAttemptStore(files: store, thread: StateThread())
            }
            #expect(error?.reason.contains("\(name).sealed") == true && error?.reason.contains("remove it to") == true)
        }
        try store.remove(name)
        _ = try gate(store)
    }

    @Test("latches without the key of their digests stop the start: they would be of no value")
    func missingKey() async throws {
        try await gate(store).close(key, for: pin("1234"), latch)
        try store.remove("latch-key")
        let error = #expect(throws: StateError.self) { try SealedAttemptStore(files: store, thread: StateThread()) }
        #expect(error?.reason.contains("latch-key.sealed is missing") == true && store.values["latch-key"] == nil)
        for name in Self.files { try store.remove(name) }
        _ = try gate(store)
        #expect(store.values["latch-key"] != nil)
    }

    @Test(
        "state on disk that is torn at any byte, a directory or a link to nothing stops the start with its name",
        arguments: files)
    func torn(name: String) async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("state")
        let gate = try gate(SealedStateStore(directory: path))
        await gate.close(key, for: pin("1234"), latch)
        let whole = try directory.read("state/latches.sealed")
        let file = "state/\(name).sealed"
        for length in stride(from: 0, to: whole.count, by: 7) {
            try directory.write(Array(whole[..<length]), to: file)
            let error = #expect(throws: StateError.self) {
                try SealedAttemptStore(in: SealedStateStore(directory: path))
            }
            #expect(error?.reason.contains(file) == true, "\(length)")
        }
        try FileSystem.remove(directory.file(file))
        try FileSystem.makeDirectory(directory.file(file), mode: 0o700)
        let error = #expect(throws: StateError.self) { try SealedAttemptStore(in: SealedStateStore(directory: path)) }
        #expect(error?.reason.contains(file) == true)
    }

    @Test("a latch that was read at the start is closed, whatever becomes of its file then")
    func readOnce() async throws {
        try await gate(store).close(key, for: pin("1234"), latch)
        let attempts = try SealedAttemptStore(files: store, thread: StateThread())
        store.loadFailure = StateError(reason: "input/output error")
        #expect(LocalGate(store: attempts).closedLatch(key, for: pin("1234"), now: 2000) == latch)
        #expect(throws: StateError(reason: "input/output error")) {
            try SealedAttemptStore(files: store, thread: StateThread())
        }
    }

    @Test("an acceptance survives a restart in sealed form and is removed by a rejection")
    func marks() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.file("state")
        let mark = Acceptance(path: "/app/1", at: 1000)
        try await gate(SealedStateStore(directory: path)).accept(key, pin("1234"), mark)
        let later = try gate(SealedStateStore(directory: path))
        #expect(later.acceptance(key, of: pin("1234")) == mark && later.acceptance(key, of: pin("4321")) == nil)
        await later.close(key, for: pin("1234"), latch)
        #expect(later.acceptance(key, of: pin("1234")) == nil)
        #expect(try gate(SealedStateStore(directory: path)).acceptance(key, of: pin("1234")) == nil)
    }

    @Test("an acceptance that was withdrawn stays removed after a restart and closes no latch")
    func withdrawnMark() async throws {
        let latches = try gate(store)
        await latches.accept(key, pin("1234"), Acceptance(path: "/1", at: 0))
        await latches.accept(key, pin("4321"), Acceptance(path: "/2", at: 0))
        await latches.record(.forbidden, of: CredentialUse(key: key, credential: pin("1234")))
        for book in [latches, try gate(store)] {
            #expect(book.acceptance(key, of: pin("1234")) == nil && book.acceptance(key, of: pin("4321")) != nil)
            #expect(book.closedLatch(key, for: pin("1234"), now: 0) == nil)
        }
    }

    @Test("an acceptance is written once, and another address after a minute")
    func marksAreCheap() async throws {
        func kept() throws -> String? {
            try gate(store).acceptance(key, of: pin("1234"))?.path
        }
        let latches = try gate(store)
        await latches.accept(key, pin("1234"), Acceptance(path: "/1", at: 0))
        await latches.accept(key, pin("1234"), Acceptance(path: "/2", at: 59_999))
        #expect(latches.acceptance(key, of: pin("1234"))?.path == "/2")
        #expect(try kept() == "/1")
        await latches.accept(key, pin("1234"), Acceptance(path: "/3", at: 60_000))
        #expect(try kept() == "/3")
    }

    @Test("a used one-time password step and a latch without an acceptance are each written alone")
    func oneWrite() async throws {
        let gate = try gate(store)
        await gate.accept(key, pin("1234"), Acceptance(path: "/1", at: 0))
        await gate.accept(key, pin("1234"), Acceptance(path: "/2", at: 1))
        let marks = store.values["accepted-credentials"]
        #expect(await gate.use(code: "seed", stepEnding: 30_000, isUsed: true, now: 1) == nil)
        await gate.close(key, for: pin("4321"), latch)
        #expect(store.values["accepted-credentials"] == marks && store.values["totp-steps"] != nil)
        await gate.close(key, for: pin("1234"), latch)
        #expect(store.values["accepted-credentials"] != marks)
    }
}

extension MemoryStore: StateFiles {}
