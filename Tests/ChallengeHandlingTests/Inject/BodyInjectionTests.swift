// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Values of a credential in JSON bodies and forms")
struct BodyInjectionTests {
    private func changed(
        _ body: String, _ members: [(String, String)] = [("/api_key", "k\"1")], form: BodyFormat = .json
    ) throws -> String {
        let members = try members.map { pointer, value in
            BodyMember(names: try #require(JSONPointer(pointer)).names, value: Secret(value))
        }
        let values = RequestInjections(members: members)
        return try values.changed(Array(body.utf8), form: form).revealText()
    }

    @Test(
        "a member is put last into its object, and every other byte stays as it was",
        arguments: [
            (#"{}"#, #"{"api_key":"k\"1"}"#), (" { } \n", #" { "api_key":"k\"1"} "# + "\n"),
            (#"{"a":1.50e+01,"b":[1, 2]}"#, #"{"a":1.50e+01,"b":[1, 2],"api_key":"k\"1"}"#),
            (
                "{ \"a\" : 12345678901234567890 ,\n \"a\":2 }",
                "{ \"a\" : 12345678901234567890 ,\n \"a\":2 ,\"api_key\":\"k\\\"1\"}"
            ),
            (#"{"n":{"api_key":1}}"#, #"{"n":{"api_key":1},"api_key":"k\"1"}"#),
        ])
    func put(body: String, wanted: String) throws {
        let sent = try changed(body)
        #expect(sent == wanted)
    }

    @Test(
        "a caller's members of the name are removed, all of them and in any spelling",
        arguments: [
            #"{"api_key":1}"#, #"{"api\u005fkey":1}"#, #"{"\u0061pi_key":{"a":[1,{"b":"}"}]}}"#,
            #"{"api_key":1,"api_key":2}"#,
            #"{ "api_key" : "," }"#,
        ])
    func replaced(body: String) throws {
        let alone = try changed(body)
        #expect(alone == #"{"api_key":"k\"1"}"#)
        let last = try changed(#"{"x":0,"# + body.dropFirst())
        #expect(last == #"{"x":0,"api_key":"k\"1"}"#)
        let first = try changed(body.dropLast() + #","y":0}"#)
        #expect(first == #"{"y":0,"api_key":"k\"1"}"#)
    }

    @Test("members within objects are set there, and missing objects are made")
    func nested() throws {
        let members = [("/auth/key", "1"), ("/auth/id", "2"), ("/a~1b/c", "3"), ("/z", "4")]
        let made = try changed(#"{"x":1}"#, members)
        #expect(made == #"{"x":1,"auth":{"key":"1","id":"2"},"a/b":{"c":"3"},"z":"4"}"#)
        let found = try changed(#"{"auth":{"key":9,"u":[]},"a/b": {} }"#, members)
        #expect(found == #"{"auth":{"u":[],"key":"1","id":"2"},"a/b": {"c":"3"} ,"z":"4"}"#)
    }

    @Test(
        "a value is put nowhere where its place is not an object, or is one of two",
        arguments: [
            "[]", "1", "\"a\"", "null", #"{"auth":1}"#, #"{"auth":[]}"#, #"{"auth":{},"auth":{}}"#,
            #"{"auth":{},"\u0061uth":{}}"#,
        ])
    func ambiguous(body: String) {
        let fault = #expect(throws: InjectionFault.self) { _ = try changed(body, [("/auth/key", "secret")]) }
        #expect(fault?.kind == .requestUnfit && fault?.detail.contains("object") == true)
    }

    @Test(
        "a body that is not JSON is refused, and nothing is put into it",
        arguments: [
            "", " ", "{", "{]", #"{"a"}"#, #"{"a":1,}"#, #"{"a":01}"#, "{} {}", #"{"a":"\x"}"#, #"{"a":"\ud800"}"#,
            "{\"a\":\"\n\"}",
            "{'a':1}", #"{"a":tru}"#, #"{"a":-}"#, #"{"a":1.}"#, #"{"a":1e}"#, #"[1"#, #"{"a":"\u12"}"#,
        ])
    func malformed(body: String) {
        let fault = #expect(throws: InjectionFault.self) { _ = try changed(body) }
        #expect(fault?.detail.contains("not valid JSON") == true)
    }

    @Test("a body with invalid UTF-8, deeper than 32, or longer than 512 KiB is refused")
    func bounds() throws {
        let values = RequestInjections(members: [BodyMember(names: [Array("k".utf8)], value: Secret("v"))])
        #expect(throws: InjectionFault.self) {
            try values.changed([0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D], form: .json)
        }
        let deep = { (count: Int) in
            "{\"a\":" + String(repeating: "[", count: count) + String(repeating: "]", count: count) + "}"
        }
        #expect(throws: Never.self) { _ = try changed(deep(31)) }
        #expect(throws: InjectionFault.self) { _ = try changed(deep(32)) }
        #expect(throws: InjectionFault.self) { _ = try changed(deep(100_000)) }
        #expect(throws: InjectionFault.bodyTooLong) {
            _ = try changed("{\"a\":\"" + String(repeating: "x", count: RequestInjections.bodyLimit) + "\"}")
        }
    }

    @Test("a value cannot leave its JSON string")
    func quoted() throws {
        let sent = try changed("{}", [("/k", "\",\"admin\":true,\"\\\r\n\u{0}é")])
        #expect(sent == #"{"k":"\",\"admin\":true,\"\\\u000d\u000a\u0000é"}"#)
        #expect(JSONValue(parsing: Array(sent.utf8)) == ["k": "\",\"admin\":true,\"\\\r\n\u{0}é"])
    }

    @Test("whatever body comes, the result has the members, and all else as the parser reads it")
    func differential() throws {
        var dice = SplitMix(state: 7)
        let pointers = [("/k", "v1"), ("/a/k", "v2"), ("/a/b", "v3")]
        var accepted = 0
        for _ in 0..<4000 {
            let text = Self.document(&dice, depth: 0)
            let value = JSONValue(parsing: Array(text.utf8))
            let chosen = pointers.filter { _ in Bool.random(using: &dice) }
            var wanted = value
            for (pointer, text) in chosen {
                wanted = wanted.flatMap { Self.setting(pointer.split(separator: "/")[...], text, in: $0) }
            }
            guard let sent = try? changed(text, chosen) else {
                #expect(value == nil || wanted == nil, "\(text)")
                continue
            }
            // The parser rejects a document with duplicate names, unless the change has removed them.
            guard value != nil else { continue }
            accepted += 1
            #expect(JSONValue(parsing: Array(sent.utf8)) == wanted, "\(text) became \(sent)")
        }
        #expect(accepted > 500)
    }

    private static func setting(_ names: ArraySlice<Substring>, _ text: String, in value: JSONValue) -> JSONValue? {
        guard case .object(var members) = value, let name = names.first else { return nil }
        if names.count == 1 {
            members[String(name)] = .string(text)
        } else {
            guard let inner = setting(names.dropFirst(), text, in: members[String(name)] ?? .object([:])) else {
                return nil
            }
            members[String(name)] = inner
        }
        return .object(members)
    }

    private static func document(_ dice: inout SplitMix, depth: Int) -> String {
        func space() -> String { ["", "", " ", "\n\t"].randomElement(using: &dice) ?? "" }
        let kind = depth == 0 ? 0 : Int.random(in: 0..<(depth > 4 ? 3 : 5), using: &dice)
        switch kind {
        case 0, 4:
            let names = [#""k""#, #""a""#, #""b""#, #""\u006b""#, #""x\"y""#, #""é""#]
            let members = (0..<Int.random(in: 0..<4, using: &dice)).map { _ in
                space() + (names.randomElement(using: &dice) ?? "") + space() + ":" + space()
                    + document(&dice, depth: depth + 1) + space()
            }
            return "{" + (members.isEmpty ? space() : members.joined(separator: ",")) + "}"
        case 1: return ["1", "-0.5e3", "12345678901234567890", "0"].randomElement(using: &dice) ?? ""
        case 2: return [#""""#, #""}{,""#, "true", "null", #""\\\"""#, "nul"].randomElement(using: &dice) ?? ""
        default:
            return "["
                + (0..<Int.random(in: 0..<3, using: &dice)).map { _ in document(&dice, depth: depth + 1) }.joined(
                    separator: ",") + "]"
        }
    }

    @Test("a form gets the value as its last parameter, in place of the caller's in any spelling")
    func form() throws {
        let cases = [
            ("a=1", "a=1&api_key=k%221"), ("api_key=mine&b=+", "b=+&api_key=k%221"),
            ("api%5Fkey=1&%61pi_key", "api_key=k%221"),
            ("&a", "&a&api_key=k%221"), ("a=1;api_key=mine;b=2&c;d", "a=1;b=2&c;d&api_key=k%221"),
        ]
        for (body, wanted) in cases {
            let sent = try changed(body, form: .parameters)
            #expect(sent == (body.hasPrefix("&") ? "a&api_key=k%221" : wanted))
        }
        #expect(throws: InjectionFault.self) { _ = try changed("a=1", [("/a/b", "v")], form: .parameters) }
    }
}

@Suite("Forms of bodies that take a value")
struct BodyFormTests {
    private final class Fields: SigningFields {
        let fields: [(String, String)]
        init(_ fields: [(String, String)]) { self.fields = fields }
        func forEach(_ body: (Span<UInt8>, Span<UInt8>) -> Void) {
            for (name, value) in fields {
                let (name, value) = (Array(name.utf8), Array(value.utf8))
                body(name.span, value.span)
            }
        }
    }

    private func form(_ fields: (String, String)...) -> BodyFormat? { try? BodyFormat.of(Fields(fields)) }

    @Test(
        "JSON and forms are recognized by their content type",
        arguments: [
            ("application/json", BodyFormat.json), ("Application/JSON; charset=UTF-8", .json),
            ("application/vnd.api+json", .json),
            ("application/x-www-form-urlencoded", .parameters), ("application/json ;x=y", .json),
        ])
    func known(type: String, wanted: BodyFormat) {
        #expect(form(("Content-Type", type)) == wanted)
        #expect(form(("content-type", type), ("Content-Encoding", "identity")) == wanted)
    }

    @Test(
        "a body of another type, charset or coding takes no value",
        arguments: [
            "text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", "",
            "application/json, text/plain",
            "application/jsonp", "text/json",
        ])
    func unknown(type: String) { #expect(form(("Content-Type", type)) == nil) }

    @Test("a body with a repeated or missing type, a coding or a digest takes no value")
    func ambiguous() {
        let json = ("Content-Type", "application/json")
        #expect(form() == nil && form(json, json) == nil)
        #expect(form(json, ("Content-Encoding", "gzip")) == nil)
        for name in ["Content-Digest", "Repr-Digest", "Digest", "content-md5"] {
            #expect(form(json, (name, "x")) == nil)
        }
    }
}
