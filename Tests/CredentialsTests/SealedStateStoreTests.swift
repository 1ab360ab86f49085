// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import System
import TestSupport
import Testing

@testable import Credentials

@Suite("Sealed state store")
struct SealedStateStoreTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("deep/state")
    }

    @Test("sealed state is loaded, replaced and removed")
    func roundTrip() async throws {
        let store = try SealedStateStore(directory: path)
        #expect(try await store.load("client") == nil)
        try await store.save(Secret("one"), as: "client")
        try await store.save(Secret("two"), as: "client")
        #expect(try await store.load("client") == Secret("two"))
        try await store.save(Secret(""), as: "empty.state_1-a")
        #expect(try await store.load("empty.state_1-a") == Secret(""))
        try await store.remove("client")
        try await store.remove("client")
        #expect(try await store.load("client") == nil)
    }

    @Test("a value sealed outside the state directory opens unchanged or not at all")
    func parcel() throws {
        let store = try SealedStateStore(directory: path)
        let sealed = try #require(store.sealed(Secret("value"), as: "sessions"))
        #expect(!String(decoding: sealed, as: UTF8.self).contains("value"))
        #expect(store.opened(sealed, as: "sessions") == Secret("value"))
        #expect(try SealedStateStore(directory: path).opened(sealed, as: "sessions") == Secret("value"))
        #expect(store.opened(sealed, as: "other") == nil)
        #expect(try SealedStateStore(directory: directory.file("elsewhere")).opened(sealed, as: "sessions") == nil)
        for index in sealed.indices {
            #expect(store.opened(Array(sealed[..<index]), as: "sessions") == nil)
            var changed = sealed
            changed[index] ^= 1
            #expect(store.opened(changed, as: "sessions") == nil)
        }
    }

    @Test("a value that could not be saved is saved again, and the last one of its name counts")
    func savedAgain() async throws {
        let store = try SealedStateStore(directory: path)
        try FileSystem.rename(path, to: path + ".away")
        for value in ["token 1", "token 2"] {
            await #expect(throws: StateError.self) { try await store.save(Secret(value), as: "refresh-token") }
        }
        #expect(store.hasUnsaved && store.failures["refresh-token"]?.reason.contains(path) == true)
        store.retrySaves()
        #expect(store.finish(within: .seconds(60)))
        #expect(store.hasUnsaved && store.failures.keys.elementsEqual(["refresh-token"]))
        try FileSystem.rename(path + ".away", to: path)
        store.retrySaves()
        #expect(store.finish(within: .seconds(60)))
        #expect(!store.hasUnsaved && store.failures.isEmpty)
        #expect(try await store.load("refresh-token") == Secret("token 2"))
    }

    @Test("sealed state is loaded by the next process")
    func nextProcess() async throws {
        try await SealedStateStore(directory: path).save(Secret("value"), as: "client")
        #expect(try await SealedStateStore(directory: path).load("client") == Secret("value"))
        let key = Secret("0123456789abcdef")
        let other = directory.file("given")
        try await SealedStateStore(directory: other, key: key).save(Secret("value"), as: "client")
        #expect(try await SealedStateStore(directory: other, key: key).load("client") == Secret("value"))
        #expect(DirectoryListing.names(in: other) == ["client.sealed"])
    }

    @Test("sealed state is inaccessible to other users and contains no plain value")
    func closed() async throws {
        let store = try SealedStateStore(directory: path)
        try await store.save(Secret("hunter2"), as: "client")
        #expect(try directory.mode(of: "deep/state") == 0o700)
        #expect(try directory.mode(of: "deep/state/key") == 0o600)
        #expect(try directory.mode(of: "deep/state/client.sealed") == 0o600)
        #expect(DirectoryListing.names(in: path) == ["client.sealed", "key"])
        let content = try directory.read("deep/state/client.sealed")
        #expect(!String(decoding: content, as: UTF8.self).contains("hunter2"))
    }

    @Test("sealed state with a changed or missing byte is an error that names the file")
    func tampered() async throws {
        let store = try SealedStateStore(directory: path)
        try await store.save(Secret("value"), as: "client")
        let whole = try directory.read("deep/state/client.sealed")
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            for bytes in [changed, Array(whole[..<index])] {
                try directory.write(bytes, to: "deep/state/client.sealed")
                let error = await #expect(throws: StateError.self) { try await store.load("client") }
                #expect(error?.reason.contains("deep/state/client.sealed") == true)
            }
        }
    }

    @Test("sealed state does not open with another key or under another name")
    func otherKeyOrName() async throws {
        let store = try SealedStateStore(directory: path, key: Secret("0123456789abcdef"))
        try await store.save(Secret("value"), as: "client")
        try directory.write(directory.read("deep/state/client.sealed"), to: "deep/state/other.sealed")
        await #expect(throws: StateError.self) { try await store.load("other") }
        let another = try SealedStateStore(directory: path, key: Secret("0123456789abcdeX"))
        await #expect(throws: StateError.self) { try await another.load("client") }
        #expect(throws: StateError.self) { try SealedStateStore(directory: path, key: Secret("short")) }
    }

    @Test("a killed writer of sealed state leaves the old value, and its temporary file is removed later")
    func killedWriter() async throws {
        let store = try SealedStateStore(directory: path)
        try await store.save(Secret("old"), as: "client")
        try directory.write("half", to: "deep/state/.client.sealed.tmp-1-1")
        try directory.write("half", to: "deep/state/.client.sealed.tmp-2-2")
        try directory.age("deep/state/.client.sealed.tmp-1-1", seconds: 3600)
        #expect(try await store.load("client") == Secret("old"))
        try await store.save(Secret("new"), as: "client")
        // The younger file may belong to a write of another process in progress.
        #expect(DirectoryListing.names(in: path) == [".client.sealed.tmp-2-2", "client.sealed", "key"])
    }

    @Test("sealed state refuses a key or a directory that others could change")
    func exposed() async throws {
        let store = try SealedStateStore(directory: path)
        try await store.save(Secret("value"), as: "client")
        unsafe chmod(path + "/key", 0o640)
        let error = #expect(throws: StateError.self) { try SealedStateStore(directory: path) }
        #expect(error?.reason.contains("chmod 600") == true)
        unsafe chmod(path + "/key", 0o600)
        unsafe chmod(path, 0o770)
        #expect(throws: StateError.self) { try SealedStateStore(directory: path) }
        unsafe chmod(path, 0o700)
        unsafe chmod(path + "/client.sealed", 0o604)
        await #expect(throws: StateError.self) { try await store.load("client") }
    }

    @Test(
        "sealed state refuses names that are paths",
        arguments: ["", ".", "..", "../key", "a/b", ".hidden", "a b", "ä", "a\0b", String(repeating: "a", count: 201)])
    func badNames(name: String) async throws {
        let store = try SealedStateStore(directory: path)
        await #expect(throws: StateError.self) { try await store.save(Secret("x"), as: name) }
        await #expect(throws: StateError.self) { try await store.load(name) }
        await #expect(throws: StateError.self) { try await store.remove(name) }
        #expect(DirectoryListing.names(in: path) == ["key"])
    }

    @Test("a state directory that several processes open first has one key")
    func firstOpening() async throws {
        let path = path
        let values = try await withThrowingTaskGroup { group in
            for index in 0..<8 {
                group.addTask {
                    try await SealedStateStore(directory: path).save(Secret("\(index)"), as: "n\(index)")
                }
            }
            try await group.waitForAll()
            let store = try SealedStateStore(directory: path)
            var values: [String?] = []
            for index in 0..<8 { values.append(try await store.load("n\(index)")?.revealText()) }
            return values
        }
        #expect(values == (0..<8).map { "\($0)" })
    }
}
