// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("JSON pointers")
struct JSONPointerTests {
    /// RFC 6901 section 5.
    private static let example = #"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, " ": 7, "m~n": 8}"#

    @Test(
        "a JSON pointer finds values as in RFC 6901 §5",
        arguments: [
            ("/foo/0", "bar"), ("/foo/1", "baz"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3), ("/ ", 7),
            ("/m~0n", 8),
        ] as [(String, JSONValue)])
    func found(text: String, value: JSONValue) throws {
        let json = try #require(JSONValue(parsing: Array(Self.example.utf8)))
        let pointer = try #require(JSONPointer(text))
        #expect(pointer.value(in: json) == value && pointer.source == text)
    }

    @Test(
        "a JSON pointer to a missing value finds none",
        arguments: [
            "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/-1", "/foo/99999999999999999999", "/bar", "/foo/0/x", "//",
        ])
    func missing(text: String) throws {
        let json = try #require(JSONValue(parsing: Array(Self.example.utf8)))
        #expect(try #require(JSONPointer(text)).value(in: json) == nil)
    }

    @Test("a malformed JSON pointer is refused", arguments: ["", "foo", "a/b", "/a~", "/a~2b", "#/foo", "$.foo"])
    func malformed(text: String) { #expect(JSONPointer(text) == nil) }
}
