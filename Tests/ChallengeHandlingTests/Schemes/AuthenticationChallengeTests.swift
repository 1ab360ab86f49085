// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Authentication challenges")
struct AuthenticationChallengeTests {
    /// `scheme token68? name=value…` of each challenge.
    private static func text(_ challenges: [AuthenticationChallenge]) -> [String] {
        challenges.map { challenge in
            ([challenge.scheme] + [challenge.token68].compactMap(\.self)
                + challenge.parameters.map { "\($0.name)=\($0.value)" })
                .joined(separator: "|")
        }
    }

    @Test(
        "a challenge that follows the grammar is parsed",
        arguments: [
            ("", []), (" , ,", []), ("Basic", ["Basic"]), ("Bearer error=\"x\"", ["Bearer|error=x"]),
            ("Negotiate, NTLM,Basic realm=\"a\"", ["Negotiate", "NTLM", "Basic|realm=a"]),
            (
                "Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\"",
                ["Newauth|realm=apps|type=1|title=Login to \"apps\"", "Basic|realm=simple"]
            ),
            ("Basic realm=\"a, Digest realm=\\\\b\"", ["Basic|realm=a, Digest realm=\\b"]),
            ("Negotiate YII+/w==", ["Negotiate|YII+/w=="]), ("Negotiate YII= , Basic", ["Negotiate|YII=", "Basic"]),
            ("Foo bar", ["Foo|bar"]), ("Foo bar=", ["Foo|bar="]), ("Foo a=b", ["Foo|a=b"]), ("Foo a = b", ["Foo|a=b"]),
            ("Foo a=\"\"", ["Foo|a="]), ("Foo ,a=b", ["Foo|a=b"]), ("Foo , , a=b,, c=d ,", ["Foo|a=b|c=d"]),
            ("Foo   a=b\t,\tBar", ["Foo|a=b", "Bar"]), ("Foo A=1,b=2", ["Foo|a=1|b=2"]),
            ("Foo a=\"t\tb\"", ["Foo|a=t\tb"]),
            (
                "Digest realm=r, qop=\"auth,auth-int\", Basic realm=r",
                ["Digest|realm=r|qop=auth,auth-int", "Basic|realm=r"]
            ),
            ("Foo a=1, Bar b=2, c=3", ["Foo|a=1", "Bar|b=2|c=3"]), ("Foo a=\"é\"", ["Foo|a=é"]),
            ("Foo, a=b", ["Foo|a=b"]), ("Foo ", ["Foo"]), ("Foo \t,\tBar a=b", ["Foo", "Bar|a=b"]), ("Foo \t", ["Foo"]),
            ("Foo \t, a=b", ["Foo|a=b"]),
        ])
    func wellFormed(value: String, expected: [String]) throws {
        #expect(Self.text(try AuthenticationChallenge.parse([value])) == expected)
    }

    @Test(
        "a challenge that violates the grammar is an error",
        arguments: [
            "=", "a=b", "Foo =b", "Foo a b", "Foo a=b c=d", "Foo a=b Bar", "Foo a=\"b", "Foo a=\"b\\", "Foo a=\"b\"c",
            "Foo a=1, a=2", "Foo a=1, A=2", "Foo bar, c=d", "Foo bar==x", "\"Foo\"", "Foo a=\"\u{1}\"",
            "Foo a=\"x\u{7F}\"",
            "Foo a=,b=c x", "Foo; a=b", "Basic realm=my realm", "Foo a=b=c", "Foo\ta=b", "Foo \ta=b", "é", "Foo a=(b)",
        ])
    func malformed(value: String) {
        #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse(["Basic realm=x", value]) }
    }

    @Test("a challenge with too many parameters is refused")
    func flood() throws {
        func field(_ count: Int) -> String { "Foo " + (0..<count).map { "p\($0)=1" }.joined(separator: ",") }
        #expect(try AuthenticationChallenge.parse([field(64)]).first?.parameters.count == 64)
        #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse([field(65)]) }
    }

    @Test("a malformed challenge is reported with its offset")
    func place() {
        let error = #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse(["Foo a=b c=d"]) }
        #expect(error?.offset == 8 && error?.reason == "expected a comma")
    }

    @Test("several challenge fields form one list, and no challenge continues in the next field")
    func fields() throws {
        #expect(Self.text(try AuthenticationChallenge.parse(["Foo a=1", "Bar"])) == ["Foo|a=1", "Bar"])
        #expect(throws: MalformedChallenge.self) { try AuthenticationChallenge.parse(["Foo a=1", "b=2"]) }
    }

    @Test("schemes and parameter names are compared without regard to case")
    func names() throws {
        let challenge = try #require(try AuthenticationChallenge.parse(["bEARER Error=x"]).first)
        #expect(challenge.isScheme("Bearer") && challenge["ERROR"] == "x" && challenge["realm"] == nil)
    }

    @Test("no bytes of a challenge field trap the parser")
    func anyBytes() {
        var chance = SystemRandomNumberGenerator()
        let signs = Array("aB =,\"\\;/\t\u{1}é".unicodeScalars)
        for _ in 0..<5000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...24, using: &chance) {
                text.unicodeScalars.append(signs[Int.random(in: 0..<signs.count, using: &chance)])
            }
            let read = (try? AuthenticationChallenge.parse([text])) ?? []
            #expect(read.allSatisfy { !$0.scheme.isEmpty })
        }
    }
}

@Suite("Digest challenges")
struct DigestChallengeTests {
    private func strongest(_ fields: String..., realm: String? = nil) throws -> DigestChallenge? {
        DigestChallenge.strongest(of: try AuthenticationChallenge.parse(fields), realm: realm)
    }

    @Test("a Digest challenge holds all parameters of RFC 7616")
    func everything() throws {
        let challenge = try #require(
            try strongest(
                """
                Digest realm="a \\"b\\"", nonce="n/=", opaque="o", domain="/x  https://h/y", algorithm=SHA-256-sess, \
                qop="auth-int, auth", stale=TRUE, charset=utf-8, userhash=true
                """))
        #expect(challenge.realm == "a \"b\"" && challenge.nonce == "n/=" && challenge.opaque == "o")
        #expect(challenge.domain == ["/x", "https://h/y"])
        #expect(challenge.algorithm == .sha256 && challenge.isSession && challenge.algorithmName == "SHA-256-sess")
        #expect(challenge.protection == .authentication)
        #expect(challenge.isStale && challenge.isUTF8 && challenge.hashesUserName)
    }

    @Test("a Digest challenge of RFC 2069 has neither algorithm nor protection")
    func oldest() throws {
        let challenge = try #require(try strongest("digest Realm=r, NONCE=n"))
        #expect(challenge.algorithm == .md5 && !challenge.isSession && challenge.algorithmName == nil)
        #expect(challenge.protection == nil && !challenge.isStale && challenge.domain.isEmpty)
    }

    @Test(
        "a Digest challenge with unknown requirements is ignored",
        arguments: [
            "Digest nonce=n", "Digest realm=r", "Digest realm=r, nonce=n, algorithm=SHA-1",
            "Digest realm=r, nonce=n, qop=\"auth-conf\"", "Digest realm=r, nonce=n, qop=\"\"",
            "Digest realm=r, nonce=n, algorithm=MD5-sess", "Basic realm=r", "Digest",
        ])
    func ignored(field: String) throws {
        #expect(try strongest(field) == nil)
    }

    @Test("the strongest Digest challenge is used, and of equals the first")
    func strength() throws {
        let weak = "Digest realm=r, nonce=1, qop=auth, algorithm=MD5"
        let sha = "Digest realm=r, nonce=2, qop=auth, algorithm=SHA-256"
        let other = "Digest realm=r, nonce=3, qop=auth, algorithm=SHA-256-sess"
        let unknown = "Digest realm=r, nonce=4, qop=auth, algorithm=SHA-3"
        #expect(try strongest(weak, sha, other, unknown)?.nonce == "2")
        #expect(try strongest("\(unknown), \(weak), Basic realm=r, \(sha)")?.nonce == "2")
        #expect(try strongest(sha, "Digest realm=r, nonce=5, qop=auth, algorithm=SHA-512-256")?.nonce == "5")
    }

    @Test("a Digest challenge of another realm is ignored")
    func realm() throws {
        let fields = "Digest realm=a, nonce=1, qop=auth, algorithm=SHA-256, Digest realm=b, nonce=2, qop=auth"
        #expect(try strongest(fields, realm: "b")?.nonce == "2")
        #expect(try strongest(fields, realm: "B") == nil)
    }
}

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

@Suite("Spaces of realms")
struct RealmSpaceTests {
    @Test("a worker's view of realms knows what was learned before and after its creation")
    func view() {
        let origin = Origin(scheme: .https, host: "api.example.com")
        let spaces = RealmSpaces()
        let early = spaces.learn("a", at: WebURL(origin: origin, path: "/one/"))
        var view = RealmSpaceView(spaces)
        #expect(early && view.membership(of: "a", at: "/one/x?y=/") == .mine)
        #expect(view.membership(of: "a", at: "/two/x") == .unknown)
        let late = spaces.learn("b", at: WebURL(origin: origin, path: "/one/two/"))
        #expect(late && view.membership(of: "a", at: "/one/two/x") == .another)
        #expect(view.membership(of: "a", at: "/one/x") == .mine)
        let again = spaces.learn("a", at: WebURL(origin: origin, path: "/one/two/"))
        #expect(again && view.membership(of: "a", at: "/one/two/x") == .mine)
    }
}
