// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Testing

@testable import ChallengeHandling

@Suite("Accept-Signature")
struct AcceptSignatureTests {
    private static let url = WebURL(origin: MessageBench.origin, path: "/")

    private static func fields(_ values: String...) -> HTTPFields {
        var fields = HTTPFields()
        guard let name = HTTPField.Name("Accept-Signature") else { return fields }
        for value in values { fields.append(HTTPField(name: name, value: value)) }
        return fields
    }

    private func answer(
        _ values: String, tag: String? = nil, keyID: AcceptSignature.KeyIdentifier = .known("k")
    ) throws -> AcceptSignature.Answer? {
        var settings = try MessageBench.settings(["@method", "@authority"])
        settings.plan.tag = tag
        return AcceptSignature(Self.fields(values))?.answer(by: settings, keyID: keyID)
    }

    @Test("a requested signature has the server's components, then those of the configuration")
    func components() throws {
        let answer = try answer(#"s=("@path" "x-a" "@method");created;expires;nonce="n";alg="ed25519";keyid="k""#)
        let plan = try #require(answer?.plan)
        #expect(plan.components.map(\.name) == ["@path", "x-a", "@method", "@authority"])
        #expect(plan.label == "s" && plan.lifetime == 300 && plan.namesAlgorithm && plan.nonce == .received)
        #expect(answer?.nonce == "n" && plan.requested?.count == 3)
    }

    @Test("a requested signature is bound to the server even if the server asks for none of its names")
    func bound() throws {
        var settings = try MessageBench.settings(["@method"])
        settings.plan.tag = nil
        let read = AcceptSignature(Self.fields("s=()"))
        let plan = try #require(read?.answer(by: settings, keyID: .unknown)?.plan)
        #expect(plan.components.map(\.name) == ["@method", "@authority"])
    }

    @Test(
        "a signature that cannot be made is not promised, and the next one is tried",
        arguments: [
            #"a=("@status")"#, #"a=("x";req)"#, #"a=("x";tr)"#, #"a=("content-length")"#,
            #"a=("signature";key="sig1")"#,
            #"a=("x" "x")"#, #"a=("priority";sf;key="x" "priority";key="x";sf)"#, #"a=("X")"#, "a=(x)", "a", "a=1",
            #"a=();alg="hmac-sha256""#, #"a=();keyid="other""#, #"a=();tag="another""#, "a=();nonce=1",
            "a=();created=1",
            "a=();unknown", #"a=("@query-param")"#, #"a=("x";foo)"#,
        ])
    func others(member: String) throws {
        #expect(try answer(member) == nil)
        #expect(try answer("\(member), b=()")?.plan.label == "b")
    }

    @Test("a tag must be the configured one, whichever side names it")
    func tags() throws {
        #expect(try answer(#"a=();tag="mine""#, tag: "mine")?.plan.tag == "mine")
        #expect(try answer(#"a=();tag="other""#, tag: "mine") == nil)
        #expect(try answer(#"a=();tag=mine"#, tag: "mine") == nil)
        #expect(try answer("a=()", tag: "mine") == nil)
        #expect(try answer(#"a=();tag="other""#) == nil)
    }

    @Test("a key is refused by name as soon as the name of ours is known")
    func keys() throws {
        #expect(try answer(#"a=();keyid="x""#, keyID: .unknown) != nil)
        #expect(try answer(#"a=();keyid="x""#, keyID: .known(nil)) == nil)
        #expect(try answer(#"a=();keyid="x""#, keyID: .known("x")) != nil)
    }

    @Test("a field with a thousand labels is read, and one that is too long or has too many components is none")
    func bounds() throws {
        let many = (0..<1000).map { "a\($0)=1" }.joined(separator: ",")
        #expect(many.utf8.count < AcceptSignature.longest)
        #expect(try answer("\(many),b=()")?.plan.label == "b")
        #expect(try answer("b=(),\(many),\(many)") == nil)
        let components = (0..<65).map { "\"x\($0)\"" }
        #expect(try answer("a=(\(components.joined(separator: " ")))") == nil)
        #expect(try answer("a=(\(components.dropLast().joined(separator: " ")))") != nil)
        #expect(try answer("a=(") == nil)
    }

    @Test("only 401, 403 and 429 with the field ask for a signature")
    func statuses() throws {
        let requests = RequestedSignatures()
        let detector = MessageDetector(settings: try MessageBench.settings(["@method"]), requests: requests)
        for status in [200, 400, 401, 403, 409, 429, 503] {
            let response = ExaminedResponse(status: status, fields: Self.fields("a=()"), url: Self.url)
            let isAsked = [401, 403, 429].contains(status)
            for hasSession in [false, true] {
                #expect(detector.examine(response, hasSession: hasSession) == (isAsked ? .challenged() : .pass))
            }
        }
        #expect(detector.filter.admits(status: 429))
        let limited = ExaminedResponse(status: 429, fields: [.retryAfter: "5"], url: Self.url)
        #expect(detector.examine(limited, hasSession: false) == .pass)
    }

    @Test("each nonce of the server is returned once, the newest first, and only so many are kept")
    func nonces() throws {
        let requests = RequestedSignatures()
        let detector = MessageDetector(settings: try MessageBench.settings(["@method"]), requests: requests)
        for number in 0...RequestedSignatures.mostNonces {
            let response = ExaminedResponse(status: 401, fields: Self.fields("a=();nonce=\"\(number)\""), url: Self.url)
            _ = detector.examine(response, hasSession: false)
        }
        let taken = (0..<RequestedSignatures.mostNonces).compactMap { _ in requests.takeNonce(at: "/") }
        #expect(
            taken.first == "\(RequestedSignatures.mostNonces)" && taken.last == "1" && Set(taken).count == taken.count)
        #expect(requests.takeNonce(at: "/") == nil)
        let elsewhere = WebURL(origin: MessageBench.origin, path: "/page", query: "x")
        let response = ExaminedResponse(status: 401, fields: Self.fields("a=();nonce=\"p\""), url: elsewhere)
        #expect(detector.examine(response, hasSession: true) == .challenged())
        #expect(requests.takeNonce(at: "/") == nil && requests.takeNonce(at: "/page") == "p")
    }
}

@Suite("Structured fields")
struct StructuredFieldTests {
    @Test(
        "a dictionary is written in its strict form",
        arguments: [
            ("", ""), ("a", "a"), ("a=?1", "a"), ("a;x;y=?0", "a;x;y=?0"),
            ("  a=1 ,\tb=2;x=1;y=2,   c=(a   b   c)  ", "a=1, b=2;x=1;y=2, c=(a b c)"),
            ("a=1, b=2, a=3", "a=3, b=2"), ("a;x=1;x=2", "a;x=2"), ("a=();q", "a=();q"),
            (
                "sig=(\"@method\" \"x\";key=\"a\\\"b\");created;nonce=\"n\"",
                "sig=(\"@method\" \"x\";key=\"a\\\"b\");created;nonce=\"n\""
            ),
            ("a=:aGk=:, b=*t/x:y, *c-._*=-1.50", "a=:aGk=:, b=*t/x:y, *c-._*=-1.5"),
            ("a=0.100, b=-0.001, c=123456789012.999, d=1.0", "a=0.1, b=-0.001, c=123456789012.999, d=1.0"),
            ("a=-999999999999999, b=00", "a=-999999999999999, b=0"), ("a=1;  x", "a=1;x"),
        ])
    func dictionaries(text: String, written: String) throws {
        let read = try #require(StructuredFieldParser.dictionary(Array(text.utf8)))
        #expect(StructuredFieldWriter.text(of: read) == written)
        let again = try #require(StructuredFieldParser.dictionary(Array(written.utf8)))
        #expect(again.map(\.key) == read.map(\.key) && again.map(\.member) == read.map(\.member))
    }

    @Test(
        "a text that is not a dictionary is refused as a whole",
        arguments: [
            "a=", "a=1,", ",a", "A=1", "a=1 b=2", "a=(1", "a=(1,2)", "a=(1\t2)", "a=(1\"x\")", "a=\"x", "a=\"\u{E9}\"",
            "a=\"\\n\"", "a=\"\\", "a=:a:", "a=:YQ==", "a=:Y-_=:", "a=1234567890123456", "a=1.", "a=1.1234", "a=.5",
            "a=1234567890123.1", "a=-", "a=?2", "a=?", "a=@1", "a;=1", "a=1;B", "a=1 ;x", "a=((1))", "\u{0}a", "a=1\n",
        ])
    func malformed(text: String) {
        let read = StructuredFieldParser.dictionary(Array(text.utf8))?.map(\.key)
        #expect(read == nil)
    }

    @Test("lists and items are read and written")
    func others() throws {
        let list = try #require(StructuredFieldParser.list(Array("a,  (b  c);d , \"e\"".utf8)))
        #expect(StructuredFieldWriter.text(of: list) == "a, (b c);d, \"e\"")
        let item = try #require(StructuredFieldParser.item(Array(" text/html;charset=utf-8 ".utf8)))
        #expect(item.value == .token("text/html") && item.parameters["charset"] == .token("utf-8"))
        for text in ["a b", "a,b", "", "(a)"] {
            #expect(StructuredFieldParser.item(Array(text.utf8)) == nil, "\(text)")
        }
        for text in ["a,", "a b", "(a"] { #expect(StructuredFieldParser.list(Array(text.utf8)) == nil, "\(text)") }
    }

    @Test("a dictionary of one repeated key, and one of many keys, are read in one pass")
    func many() throws {
        let repeated = Array((0..<20_000).map { "a=\($0)" }.joined(separator: ",").utf8)
        let one = try #require(StructuredFieldParser.dictionary(repeated))
        #expect(one.count == 1 && one.first?.member == .item(StructuredItem(.integer(19_999))))
        let parameters = Array(("a" + (0..<20_000).map { ";p\($0)" }.joined()).utf8)
        let item = try #require(StructuredFieldParser.dictionary(parameters)?.first?.member)
        guard case .item(let item) = item else { return #expect(Bool(false)) }
        #expect(item.parameters.all.count == 20_000)
    }
}
