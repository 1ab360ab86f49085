// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Authentication challenges")
struct AuthenticationChallengeTests {
    /// `scheme token68? name=value…` of each challenge.
    static func text(_ values: [String]) -> [String] {
        ChallengeList(values).challenges.map { challenge in
            ([challenge.scheme] + [challenge.token68].compactMap(\.self)
                + challenge.parameters.map { "\($0.name)=\($0.value)" })
                .joined(separator: "|")
        }
    }

    @Test(
        "a challenge that follows the grammar is read",
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
    func wellFormed(value: String, expected: [String]) {
        #expect(Self.text([value]) == expected)
        #expect(ChallengeList([value]).unread.isEmpty)
    }

    @Test(
        "what servers write in place of the grammar is read as it is meant",
        arguments: [
            // Elasticsearch: no comma.
            ("Basic realm=\"security\" charset=\"UTF-8\"", ["Basic|realm=security|charset=UTF-8"]),
            // Dataverse: addresses without quotes.
            (
                "Bearer authorization_uri=https://login.example/t/oauth2/authorize?a=b;c=d, resource_id=https://a.example/",
                [
                    "Bearer|authorization_uri=https://login.example/t/oauth2/authorize?a=b;c=d|resource_id=https://a.example/"
                ]
            ),
            ("Basic realm=my realm", ["Basic|realm=my realm"]),
            ("Basic realm=my realm, Digest realm=b", ["Basic|realm=my realm", "Digest|realm=b"]),
            ("Basic realm='my, realm'", ["Basic|realm=my, realm"]),
            ("Basic realm='it's', a=b", ["Basic|realm=it's|a=b"]),
            ("Basic realm='n roll", ["Basic|realm='n roll"]),
            ("Basic realm=\"a\"; charset=utf-8", ["Basic|realm=a|charset=utf-8"]),
            ("Basic; realm=\"a\"", ["Basic|realm=a"]), ("Basic realm=a; b=c", ["Basic|realm=a|b=c"]),
            ("Basic\trealm=\"a\"", ["Basic|realm=a"]),
            ("Basic realm=, charset=\"UTF-8\"", ["Basic|realm=|charset=UTF-8"]),
            ("Basic realm= charset=\"UTF-8\"", ["Basic|realm=|charset=UTF-8"]), ("Basic realm=", ["Basic|realm="]),
            ("Digest realm=\"a\"nonce=\"b\"", ["Digest|realm=a|nonce=b"]),
            ("Digest nonce=abc==, qop=auth", ["Digest|nonce=abc==|qop=auth"]),
            ("Digest nonce= abc==, qop=auth", ["Digest|nonce=abc==|qop=auth"]),
            ("Foo a=(b)", ["Foo|a=(b)"]), ("Foo a=b=c", ["Foo|a=b=c"]),
            ("Foo a=\"\u{1}\u{7F}\"", ["Foo|a=\u{1}\u{7F}"]),
            ("Basic realm=Zürich", ["Basic|realm=Zürich"]), ("Negotiate YII=, a=b", ["Negotiate|YII=|a=b"]),
            ("Basic realm=\"a\" Digest realm=\"b\", nonce=c", ["Basic|realm=a", "Digest|realm=b|nonce=c"]),
            ("Basic realm=\"a\" Negotiate, NTLM", ["Basic|realm=a", "Negotiate", "NTLM"]),
        ])
    func meant(value: String, expected: [String]) {
        #expect(Self.text([value]) == expected)
        #expect(ChallengeList([value]).unread.isEmpty)
    }

    @Test(
        "what cannot be read is reported with its place, and hides nothing else",
        arguments: [
            ("=", [], ["0 noElement"]), ("a=b", [], ["0 noScheme a"]), ("Foo =b", [], ["0 noScheme Foo"]),
            ("Foo a b", ["Foo"], ["4 words a", "6 words b"]), ("Foo a=b c", ["Foo|a=b c"], []),
            ("Foo a=\"b\" c d=e", ["Foo|a=b|d=e"], ["10 words c"]),
            ("Foo a=\"b, Basic", ["Foo|a=b, Basic"], ["4 noEnd a"]),
            ("Foo a=\"b\\", ["Foo|a=b"], ["4 noEnd a"]), ("Foo a=\"b\"c", ["Foo|a=b"], ["9 words c"]),
            ("Foo a=1, A=2", ["Foo|a=1"], ["9 anotherValue A"]), ("\"Foo\", Basic", ["Basic"], ["0 noElement"]),
            ("é, Digest", ["Digest"], ["0 noElement ??"]), ("Basic realm", ["Basic"], ["6 noValue realm"]),
            ("Digest realm=a, stale, nonce=b", ["Digest|realm=a|nonce=b"], ["16 noValue stale"]),
            ("Basic \"My Realm\"", ["Basic"], ["6 noElement"]), ("Basic:a", [], ["0 noElement Basic:a"]),
            // Not Digest's, but of something else that was meant to be a scheme.
            (
                "Digest nonce=a, Foo/2 realm=z, qop=auth", ["Digest|nonce=a"],
                ["16 noElement Foo/2", "22 noScheme realm", "31 noScheme qop"]
            ),
        ])
    func unread(value: String, expected: [String], unread: [String]) {
        #expect(Self.text([value]) == expected)
        let list = ChallengeList([value])
        #expect(list.unread.map { "\($0.offset) \($0.reason)" + ($0.text.isEmpty ? "" : " \($0.text)") } == unread)
        #expect((list.unreadText == nil) == unread.isEmpty)
        // Other fields are untouched.
        #expect(Self.text(["Basic realm=\"x\"", value, "Bearer"]) == ["Basic|realm=x"] + expected + ["Bearer"])
    }

    @Test(
        "no text within quotes becomes a scheme, nor does text after broken quoting",
        arguments: [
            "Digest realm=\"x, Basic realm=y\", nonce=n", "Digest realm=\"x\\\", Basic realm=y\", nonce=n",
            "Digest realm='x, Basic realm=y', nonce=n", "Digest realm=a\"x, Basic realm=y\", nonce=n",
            "Digest realm=\"a \"Basic, Basic realm=b\" c\", nonce=n", "Digest nonce=n, realm=\"x, Basic realm=y",
            "Digest nonce=n, realm=a \"x, Basic realm=y\" b", "Digest nonce=n realm=\"a\" Basic realm=\"b\"",
            "Digest nonce=n, realm=\"the \"big\" one, Basic realm=b\"", "Digest nonce=n \"x, Basic realm=y\"",
        ])
    func quoted(value: String) {
        let list = ChallengeList([value])
        #expect(list.challenges(of: "Basic").isEmpty, "\(list)")
        #expect(list.challenges(of: "Digest").first?["nonce"] == "n", "\(list)")
    }

    @Test("parameters, challenges and reports beyond every server's number are dropped")
    func flood() {
        func field(_ count: Int) -> String { "Foo " + (0..<count).map { "p\($0)=1" }.joined(separator: ",") }
        #expect(ChallengeList([field(64)]).unread.isEmpty)
        let list = ChallengeList([field(200)])
        #expect(list.challenges.first?.parameters.count == 64)
        #expect(list.unread.count == 16 && list.unread.allSatisfy { $0.reason == .tooMany })
        #expect(ChallengeList([String(repeating: "Foo,", count: 1000)]).challenges.count == 128)
    }

    @Test("several challenge fields form one list, and no challenge continues in the next field")
    func fields() {
        #expect(Self.text(["Foo a=1", "Bar"]) == ["Foo|a=1", "Bar"])
        #expect(Self.text(["Foo a=1", "b=2"]) == ["Foo|a=1"])
        #expect(
            ChallengeList(["Foo a=1", "b=2"]).unreadText == "\"b\" at byte 0 of field 2 (a parameter without a scheme)")
    }

    @Test("a report names a parameter and never its value")
    func discreet() {
        let text = ChallengeList(["token=\"geheim\", Foo a=1, a=\"geheim\", x 'geheim'"]).unreadText ?? ""
        #expect(text.contains("token") && !text.contains("geheim"), "\(text)")
    }

    @Test("schemes and parameter names are compared without regard to case")
    func names() throws {
        let challenge = try #require(ChallengeList(["bEARER Error=x"]).challenges.first)
        #expect(challenge.isScheme("Bearer") && challenge["ERROR"] == "x" && challenge["realm"] == nil)
    }

    @Test("no bytes of a challenge field trap the reader or get lost in a loop")
    func anyBytes() {
        var chance = SystemRandomNumberGenerator()
        let signs = Array("aB =,\"\\;'/\t\u{1}é".unicodeScalars)
        for _ in 0..<5000 {
            var text = ""
            for _ in 0..<Int.random(in: 0...24, using: &chance) {
                text.unicodeScalars.append(signs[Int.random(in: 0..<signs.count, using: &chance)])
            }
            let list = ChallengeList([text])
            #expect(list.challenges.allSatisfy { !$0.scheme.isEmpty })
            #expect(list.unread.allSatisfy { $0.offset < text.utf8.count })
        }
    }
}

@Suite("Digest challenges")
struct DigestChallengeTests {
    private func strongest(_ fields: String..., realm: String? = nil) throws -> DigestChallenge? {
        DigestChallenge.strongest(of: ChallengeList(fields).challenges, realm: realm)
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
            "Digest realm=r", "Digest realm=r, nonce=n, algorithm=SHA-1",
            "Digest realm=r, nonce=n, qop=\"auth-conf\"", "Digest realm=\"\u{1}\", nonce=n",
            "Digest realm=r, nonce=n, algorithm=MD5-sess", "Basic realm=r", "Digest",
        ])
    func ignored(field: String) throws {
        #expect(try strongest(field) == nil)
    }

    @Test("as for curl and browsers, the realm may be missing and the protection empty")
    func lenient() throws {
        #expect(try strongest("Digest nonce=n")?.realm == "")
        let empty = try #require(try strongest("Digest realm=r, nonce=n, qop=\"\""))
        #expect(empty.protection == nil)
        #expect(try strongest("Digest realm=r, nonce=n, qop=\"\", algorithm=MD5-sess") == nil)
        #expect(try strongest("Digest realm=r, nonce=1, nonce=2, qop=auth, qop=auth-int")?.nonce == "1")
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
        #expect(early && view.realm(at: "/one/x?y=/") == "a")
        #expect(view.realm(at: "/two/x") == nil)
        let late = spaces.learn("b", at: WebURL(origin: origin, path: "/one/two/"))
        #expect(late && view.realm(at: "/one/two/x") == "b")
        #expect(view.realm(at: "/one/x") == "a")
        let again = spaces.learn("a", at: WebURL(origin: origin, path: "/one/two/"))
        #expect(again && view.realm(at: "/one/two/x") == "a")
    }

    private func at(_ path: String) -> WebURL {
        WebURL(origin: Origin(scheme: .https, host: "api.example.com"), path: path)
    }

    @Test("each configured realm has room for four folders, so that 300 realms are all known")
    func manyRealms() {
        let spaces = RealmSpaces(realms: 300)
        for number in 0..<1200 { #expect(spaces.learn("r\(number % 300)", at: at("/\(number)/x"))) }
        for number in 0..<1200 { #expect(!spaces.learn("r\(number % 300)", at: at("/\(number)/y"))) }
        #expect(spaces.takeReport() == nil)
    }

    @Test("if there are too many folders, the least recently used one is forgotten, and a login says so once")
    func eviction() throws {
        let spaces = RealmSpaces()
        for number in 0..<256 { _ = spaces.learn("r", at: at("/\(number)/")) }
        var view = RealmSpaceView(spaces)
        _ = spaces.learn("other", at: at("/256/"))
        #expect(view.realm(at: "/0/x") == nil, "it was learned first")
        for number in 1..<200 { #expect(view.realm(at: "/\(number)/x") == "r") }
        for number in 257..<280 { _ = spaces.learn("r", at: at("/\(number)/")) }
        for number in 1..<200 { #expect(view.realm(at: "/\(number)/x") == "r", "/\(number)/ is in use") }
        #expect((200..<256).count { view.realm(at: "/\($0)/x") == nil } == 23)
        let report = try #require(spaces.takeReport())
        #expect(report.contains("256 folders") && spaces.takeReport() == nil)
    }
}
