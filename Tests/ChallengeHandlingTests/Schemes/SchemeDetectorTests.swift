// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Scheme detector")
struct SchemeDetectorTests {
    private static let url = WebURL(origin: Origin(scheme: .https, host: "h"), path: "/a/b")
    private static let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""

    private func plan(_ schemes: [any AuthenticationScheme], realm: String? = nil, _ spaces: RealmSpaces? = nil)
        -> SchemePlan
    {
        SchemePlan(name: "corp", schemes: schemes, realm: realm, key: nil, address: Self.url, spaces: spaces)
    }

    private func examine(
        _ plan: SchemePlan, _ values: [String], status: Int = 401, hasSession: Bool = false, url: WebURL = url
    ) -> Challenge {
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        return SchemeDetector(plan).examine(
            ExaminedResponse(status: status, fields: fields, url: url), hasSession: hasSession)
    }

    @Test("a challenge is found in one field and in many")
    func found() {
        let plan = plan([DigestScheme(digests: NoDigests()), BasicScheme()])
        #expect(examine(plan, ["Negotiate", "Basic realm=\"r\""]) == .challenged())
        #expect(examine(plan, ["Negotiate, Basic realm=\"r\", \(Self.digest)"]) == .challenged())
        #expect(SchemeDetector(plan).kind == "digest, basic")
    }

    @Test("a challenge that is not offered, not a 401, or of another realm is not answered")
    func notFound() {
        let basic = plan([BasicScheme()])
        #expect(examine(basic, [Self.digest]) == .pass)
        #expect(examine(basic, []) == .pass)
        for status in [200, 403, 407, 503] {
            #expect(examine(basic, ["Basic realm=\"r\""], status: status) == .pass)
        }
        #expect(examine(plan([BasicScheme()], realm: "R"), ["Basic realm=\"r\""]) == .pass)
        #expect(examine(plan([BasicScheme()], realm: "r"), ["Basic realm=\"x\", Basic realm=\"r\""]) == .challenged())
    }

    @Test(
        "one broken challenge hides no other",
        arguments: [
            ["Basic realm=\"r\"", "Digest realm=\"r"], ["Negotiate a=b, =\"", "Basic realm=\"r\""],
            ["Basic realm=\"security\" charset=\"UTF-8\"", "ApiKey"], ["Basic realm=my realm"], ["Basic dGVzdA=="],
            ["Basic realm"], ["Foo a=1, a=2, Basic realm=\"r\""],
        ])
    func broken(values: [String]) {
        #expect(examine(plan([BasicScheme()]), values) == .challenged())
    }

    @Test(
        "nothing weaker is answered in place of a scheme whose challenge cannot be read",
        arguments: [
            "Digest realm=\"r, nonce=", "Digest realm=\"r\" nonce", "Digest \"r\"",
            "Basic realm=\"a \"b\" c\", Digest realm=\"r\", nonce=n",
            "Basic realm=\"a, Digest realm=\"r\", nonce=\"n\"",
        ])
    func damaged(digest: String) {
        let both = plan([DigestScheme(digests: NoDigests()), BasicScheme()])
        #expect(examine(both, [digest, "Basic realm=\"r\""]) == .pass)
        #expect(examine(plan([BasicScheme()]), [digest, "Basic realm=\"r\""]) == .challenged())
        // Read whole, and not usable: the server offers the other one.
        #expect(examine(both, ["Digest realm=\"r\", nonce=n, algorithm=X", "Basic realm=\"r\""]) == .challenged())
    }

    @Test("with a session, Basic is refused, Digest challenges again, and a stale nonce is no refusal")
    func again() {
        let both = plan([DigestScheme(digests: NoDigests()), BasicScheme()])
        #expect(examine(plan([BasicScheme()]), ["Basic realm=\"r\""], hasSession: true) == .refused)
        // The refused answer may have been by Digest.
        #expect(examine(both, ["Basic realm=\"r\""], hasSession: true) == .challenged())
        #expect(examine(both, ["Basic realm=\"r\"", Self.digest], hasSession: true) == .challenged())
        #expect(examine(both, [Self.digest + ", stale=true"], hasSession: true) == .stale)
        #expect(examine(both, [Self.digest + ", stale=true"]) == .challenged())
    }

    @Test("with several realms, a request outside of the known space was sent without a session")
    func spaces() {
        let spaces = RealmSpaces()
        let (one, two) = (plan([BasicScheme()], realm: "1", spaces), plan([BasicScheme()], realm: "2", spaces))
        func at(_ path: String) -> WebURL { WebURL(origin: Self.url.origin, path: path) }
        let (first, second) = (["Basic realm=\"1\""], ["Basic realm=\"2\""])
        #expect(examine(one, first, hasSession: true, url: at("/a/x")) == .challenged())
        #expect(examine(one, first, hasSession: true, url: at("/a/y/z")) == .refused)
        #expect(examine(one, first, hasSession: true, url: at("/b")) == .challenged())
        #expect(examine(two, second, hasSession: true, url: at("/a/y/z")) == .challenged())
        #expect(examine(two, second, hasSession: true, url: at("/a/y/q")) == .refused)
        #expect(examine(one, first, hasSession: true, url: at("/a/q")) == .refused)
    }
}

/// Digests for tests that hash nothing.
struct NoDigests: MessageDigests {
    func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8] { [] }
    func running(_ algorithm: DigestAlgorithm) -> any RunningDigest { Running(algorithm: algorithm) }
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8] { [] }

    private final class Running: RunningDigest {
        let algorithm: DigestAlgorithm
        init(algorithm: DigestAlgorithm) { self.algorithm = algorithm }
        func update(_ bytes: ArraySlice<UInt8>) {}
        func finish() -> [UInt8] { [] }
    }
}

@Suite("Choice of a scheme compared with curl's")
struct CurlChoiceTests {
    @Test(
        "the chosen scheme does not depend on the number of challenge fields", arguments: JudgeTable("curl-choice").rows
    )
    func same(row: [String]) async throws {
        let (offered, expected) = (row[1].split(separator: " | "), row[2])
        let url = try #require(WebURL("http://127.0.0.1/\(row[0])"))
        var fields = HTTPFields()
        for value in offered { fields.append(HTTPField(name: .wwwAuthenticate, value: String(value))) }
        let plan = SchemePlan(
            name: "corp", schemes: [DigestScheme(digests: NoDigests()), NTLMScheme(isSupported: true), BasicScheme()],
            key: LatchKey(origin: url.origin, challenge: "corp", credential: "ann"), address: url)
        let session = try await LoginRig([], credentials: [.ann]).logIn(
            SchemeLogin(plan, challenge: ExaminedResponse(status: 401, fields: fields, url: url)))
        let isBasic = session.fields.first?.value.revealText().hasPrefix("Basic ") == true
        let chosen = session.connection != nil ? "ntlm" : session.signer != nil ? "digest" : isBasic ? "basic" : ""
        #expect(chosen == expected)
    }
}

@Suite("Challenges as servers write them, compared with curl")
struct CurlChallengeTableTests {
    @Test("each set of fields leads to the scheme that the table says, and each difference has a reason")
    func same() async throws {
        let rows = JudgeTable("curl-challenges").rows
        for row in rows {
            let fields = row[1].replacing("\\t", with: "\t").split(separator: " | ").map(String.init)
            #expect(try await scheme(fields) == row[3], "\(row)")
            #expect((row[2] == row[3]) == row[4].isEmpty, "\(row)")
        }
        #expect(rows.count >= 200)
    }

    /// Returns the scheme of a login with Digest and Basic; `-` for none.
    private func scheme(_ values: [String]) async throws -> String {
        let url = WebURL(origin: Origin(scheme: .http, host: "127.0.0.1"), path: "/")
        var fields = HTTPFields()
        for value in values { fields.append(HTTPField(name: .wwwAuthenticate, value: value)) }
        let plan = SchemePlan(
            name: "corp", schemes: [DigestScheme(digests: NoDigests()), BasicScheme()],
            key: LatchKey(origin: url.origin, challenge: "corp", credential: "ann"), address: url)
        let response = ExaminedResponse(status: 401, fields: fields, url: url)
        guard SchemeDetector(plan).examine(response, hasSession: false) == .challenged() else { return "-" }
        let session = try await LoginRig([], credentials: [.ann]).logIn(SchemeLogin(plan, challenge: response))
        return session.signer != nil ? "digest" : "basic"
    }
}
