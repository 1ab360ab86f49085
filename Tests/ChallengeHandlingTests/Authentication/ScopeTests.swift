// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Scopes")
struct ScopeTests {
    @Test("a scope is its words, sorted, each once")
    func canonical() {
        #expect("\(Scope(text: " b  a b "))" == "a b")
        #expect(Scope(["b", "a"]) == Scope(text: "a b"))
        #expect(Scope(["", "a b", "x\"", "ü", "c"]).words == ["c"])
        #expect(Scope(text: "a \u{301}b").words == ["a"])
        #expect(Scope(text: "").isEmpty && "\(Scope.empty)".isEmpty)
    }

    @Test("scopes are united and compared as sets")
    func sets() {
        #expect("\(Scope(["c", "a"]).union(Scope(["b", "a"])))" == "a b c")
        #expect(Scope(["a", "b"]).contains(Scope(["b"])) && !Scope(["a"]).contains(Scope(["b"])))
        #expect(Scope(["a"]).contains(.empty))
    }
}
