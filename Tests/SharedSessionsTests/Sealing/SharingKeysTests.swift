// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import SharedSessions
import Testing

@Suite("The shared keys")
struct SharingKeysTests {
    private let old = "old-old-old-old-old-old-old-old-"
    private let new = "new-new-new-new-new-new-new-new-"

    @Test("a value that one node sealed opens on another, for its name only")
    func roundTrip() throws {
        let value = Secret("a session")
        let sealed = try #require(try keys(new).sealed(value, as: "bank"))
        #expect(!String(decoding: sealed, as: UTF8.self).contains("a session"))
        #expect(try keys(new).opened(sealed, as: "bank") == value)
        #expect(try keys(new).opened(sealed, as: "bank2") == nil)
        #expect(try keys(old).opened(sealed, as: "bank") == nil)
        #expect(try keys(new).sealed(value, as: "bank") != sealed)
        #expect(try keys(new).opened(try #require(try keys(new).sealed(Secret(""), as: "")), as: "") == Secret(""))
    }

    @Test("a sealed value that was changed or cut off does not open")
    func damage() throws {
        let keys = try keys(new)
        let sealed = try #require(keys.sealed(Secret("a session"), as: "bank"))
        for index in sealed.indices {
            #expect(keys.opened(Array(sealed[..<index]), as: "bank") == nil)
            var changed = sealed
            changed[index] ^= 1
            #expect(keys.opened(changed, as: "bank") == nil)
        }
        #expect(keys.opened(sealed + [0], as: "bank") == nil)
    }

    @Test("each step of a key change leaves all nodes able to open sealed values")
    func rotation() throws {
        let steps = try [keys(old), keys(old, previous: new), keys(new, previous: old), keys(new)]
        for (index, step) in steps.enumerated() {
            let sealed = try #require(step.sealed(Secret("v"), as: "n"))
            for other in steps[max(0, index - 1)...min(index + 1, 3)] {
                #expect(other.opened(sealed, as: "n") == Secret("v"))
            }
        }
        let sealed = try #require(steps[2].sealed(Secret("v"), as: "n"))
        #expect(steps[0].opened(sealed, as: "n") == nil)
    }

    @Test("digests are equal on all nodes, and differ under another key")
    func digests() throws {
        let value = Secret("password")
        let current = try keys(new).digests(of: value)
        #expect(current.count == 1 && current[0].count == 64 && current[0].allSatisfy { $0.isHexDigit })
        #expect(try keys(new, previous: old).digests(of: value) == current + keys(old).digests(of: value))
        #expect(try keys(new, previous: new).digests(of: value) == current)
        #expect(try keys(new).digests(of: Secret("Password")) != current)
        #expect(try keys(old).digests(of: value) != current)
    }

    @Test("white space around a key is ignored")
    func whiteSpace() throws {
        let sealed = try #require(try keys(new).sealed(Secret("v"), as: "n"))
        #expect(try keys(" \(new)\r\n").opened(sealed, as: "n") == Secret("v"))
    }

    @Test("an unusable key is reported with the remedy and without the key")
    func unusable() {
        #expect(
            reason(["password": Secret(new)])
                == "the credential shared has no field `key`, with which sessions are sealed for all nodes: make one by "
                + "`openssl rand -base64 32`, the same on all nodes")
        #expect(
            reason(["key": Secret("short\n")])
                == "the field `key` of the credential shared has 5 bytes; it needs at least 32: make one by "
                + "`openssl rand -base64 32`")
        #expect(reason(["key": Secret(new), "previous-key": Secret(" \n")])?.contains("`previous-key`") == true)
        #expect(reason(["key": Secret(new)]) == nil)
    }

    private func keys(_ key: String, previous: String? = nil) throws -> SharingKeys {
        var fields = ["key": Secret(key)]
        fields["previous-key"] = previous.map { Secret($0) }
        return try SharingKeys(Credential(name: "shared", fields: fields))
    }

    private func reason(_ fields: [String: Secret]) -> String? {
        do throws(CredentialError) {
            _ = try SharingKeys(Credential(name: "shared", fields: fields))
            return nil
        } catch {
            return error.reason
        }
    }
}
