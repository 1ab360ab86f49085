// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Testing

@testable import Credentials

@Suite("The sealed state")
struct SealedStateStoreTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.file("deep/state")
    }

    @Test("comes back, replaced or removed as asked")
    func roundTrip() throws {
        let store = try SealedStateStore(directory: path)
        #expect(try store.load("client") == nil)
        try store.save(Secret("one"), as: "client")
        try store.save(Secret("two"), as: "client")
        #expect(try store.load("client") == Secret("two"))
        try store.save(Secret(""), as: "empty.state_1-a")
        #expect(try store.load("empty.state_1-a") == Secret(""))
        try store.remove("client")
        try store.remove("client")
        #expect(try store.load("client") == nil)
    }

    @Test("what is sealed for somebody else to keep comes back as it was, or not at all")
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

    @Test("comes back in the next process")
    func nextProcess() throws {
        try SealedStateStore(directory: path).save(Secret("value"), as: "client")
        #expect(try SealedStateStore(directory: path).load("client") == Secret("value"))
        let key = Secret("0123456789abcdef")
        let other = directory.file("given")
        try SealedStateStore(directory: other, key: key).save(Secret("value"), as: "client")
        #expect(try SealedStateStore(directory: other, key: key).load("client") == Secret("value"))
        #expect(DirectoryListing.names(in: other) == ["client.sealed"])
    }

    @Test("is closed to everybody else and holds nothing in the clear")
    func closed() throws {
        let store = try SealedStateStore(directory: path)
        try store.save(Secret("hunter2"), as: "client")
        #expect(try directory.mode(of: "deep/state") == 0o700)
        #expect(try directory.mode(of: "deep/state/key") == 0o600)
        #expect(try directory.mode(of: "deep/state/client.sealed") == 0o600)
        #expect(DirectoryListing.names(in: path) == ["client.sealed", "key"])
        let content = try directory.read("deep/state/client.sealed")
        #expect(!String(decoding: content, as: UTF8.self).contains("hunter2"))
    }

    @Test("with any byte changed or cut off is an error that names the file")
    func tampered() throws {
        let store = try SealedStateStore(directory: path)
        try store.save(Secret("value"), as: "client")
        let whole = try directory.read("deep/state/client.sealed")
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            for bytes in [changed, Array(whole[..<index])] {
                try directory.write(bytes, to: "deep/state/client.sealed")
                let error = #expect(throws: StateError.self) { try store.load("client") }
                #expect(error?.reason.contains("deep/state/client.sealed") == true)
            }
        }
    }

    @Test("under another key, or another name, does not open")
    func otherKeyOrName() throws {
        let store = try SealedStateStore(directory: path, key: Secret("0123456789abcdef"))
        try store.save(Secret("value"), as: "client")
        try directory.write(directory.read("deep/state/client.sealed"), to: "deep/state/other.sealed")
        #expect(throws: StateError.self) { try store.load("other") }
        let another = try SealedStateStore(directory: path, key: Secret("0123456789abcdeX"))
        #expect(throws: StateError.self) { try another.load("client") }
        #expect(throws: StateError.self) { try SealedStateStore(directory: path, key: Secret("short")) }
    }

    @Test("a writer that was killed leaves the old value, and its leftover goes in time")
    func killedWriter() throws {
        let store = try SealedStateStore(directory: path)
        try store.save(Secret("old"), as: "client")
        try directory.write("half", to: "deep/state/.client.sealed.tmp-1-1")
        try directory.write("half", to: "deep/state/.client.sealed.tmp-2-2")
        try directory.age("deep/state/.client.sealed.tmp-1-1", seconds: 3600)
        #expect(try store.load("client") == Secret("old"))
        try store.save(Secret("new"), as: "client")
        // The younger one may be another process's that is still at it.
        #expect(DirectoryListing.names(in: path) == [".client.sealed.tmp-2-2", "client.sealed", "key"])
    }

    @Test("refuses a key or a directory that others could change")
    func exposed() throws {
        let store = try SealedStateStore(directory: path)
        try store.save(Secret("value"), as: "client")
        unsafe chmod(path + "/key", 0o640)
        let error = #expect(throws: StateError.self) { try SealedStateStore(directory: path) }
        #expect(error?.reason.contains("chmod 600") == true)
        unsafe chmod(path + "/key", 0o600)
        unsafe chmod(path, 0o770)
        #expect(throws: StateError.self) { try SealedStateStore(directory: path) }
        unsafe chmod(path, 0o700)
        unsafe chmod(path + "/client.sealed", 0o604)
        #expect(throws: StateError.self) { try store.load("client") }
    }

    @Test(
        "has no place for names that are paths",
        arguments: ["", ".", "..", "../key", "a/b", ".hidden", "a b", "ä", "a\0b", String(repeating: "a", count: 201)])
    func badNames(name: String) throws {
        let store = try SealedStateStore(directory: path)
        #expect(throws: StateError.self) { try store.save(Secret("x"), as: name) }
        #expect(throws: StateError.self) { try store.load(name) }
        #expect(throws: StateError.self) { try store.remove(name) }
        #expect(DirectoryListing.names(in: path) == ["key"])
    }

    @Test("opened by many at once for the first time has one key")
    func firstOpening() async throws {
        let path = path
        let values = try await withThrowingTaskGroup { group in
            for index in 0..<8 {
                group.addTask {
                    try SealedStateStore(directory: path).save(Secret("\(index)"), as: "n\(index)")
                }
            }
            try await group.waitForAll()
            let store = try SealedStateStore(directory: path)
            return try (0..<8).map { try store.load("n\($0)")?.revealText() }
        }
        #expect(values == (0..<8).map { "\($0)" })
    }
}
