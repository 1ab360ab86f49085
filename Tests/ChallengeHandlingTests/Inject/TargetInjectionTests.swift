// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Values of a credential in request targets")
struct TargetInjectionTests {
    private func values(query: [(String, String)] = [], path: String? = nil) -> RequestInjections {
        RequestInjections(
            parameters: query.map { .init(name: Array($0.0.utf8), value: Secret($0.1)) }, path: path.map { Secret($0) })
    }

    private func sent(_ target: String, base: Int = 0, _ values: RequestInjections) -> String {
        let bytes = Array(target.utf8)
        var sent: [UInt8] = []
        values.writeTarget(bytes.span, base: base) { piece in
            for index in piece.indices { sent.append(piece[index]) }
        }
        return String(decoding: sent, as: UTF8.self)
    }

    @Test(
        "a parameter is put last in the query, and every other one stays as it was written",
        arguments: [
            ("/", "/?api_key=k"), ("/a", "/a?api_key=k"), ("/a?", "/a?api_key=k"), ("/a?b=1", "/a?b=1&api_key=k"),
            ("/a?b=%20+x&&c", "/a?b=%20+x&&c&api_key=k"), ("/a?b?c", "/a?b?c&api_key=k"), ("*", "*"),
        ])
    func appended(target: String, wanted: String) {
        #expect(sent(target, values(query: [("api_key", "k")])) == wanted)
    }

    @Test(
        "a caller's own parameter of the name is removed, however its name is spelled",
        arguments: [
            "/a?api_key=mine", "/a?api%5Fkey=mine", "/a?%61pi%5fkey=mine", "/a?api_key", "/a?api_key=",
            "/a?api_key=1&api_key=2", "/a?%61%70%69%5F%6B%65%79=mine", "/a?api%255Fkey=mine", "/a?api%25%35Fkey=mine",
            "/a?api%%35Fkey=mine", "/a?api%C1%9Fkey=mine", "/a?%E0%81%A1pi_key=mine", "/a?api%25C1%259fkey=mine",
            "/a?api%F0%80%81%9Fkey=mine",
        ])
    func replaced(target: String) {
        #expect(sent(target, values(query: [("api_key", "k")])) == "/a?api_key=k")
        #expect(sent(target + "&z=1", values(query: [("api_key", "k")])) == "/a?z=1&api_key=k")
        #expect(sent("/a?b=2&" + target.dropFirst(3), values(query: [("api_key", "k")])) == "/a?b=2&api_key=k")
    }

    @Test(
        "a caller's own parameter of the name is also removed where a server separates at semicolons",
        arguments: [
            ("a=1;api_key=mine", "a=1"), ("a=1;api_key=mine;b=2", "a=1;b=2"), ("a;api%255Fkey=mine;b&c;d", "a;b&c;d"),
            ("api_key;b=2", "b=2"), ("x&api_key;b=2;api_key=3;c", "x&b=2;c"), ("a;;b&;c;", "a;;b&;c;"),
            ("a;api_key=1;api_key=2", "a"),
        ])
    func semicolons(query: String, wanted: String) {
        #expect(sent("/?\(query)", values(query: [("api_key", "k")])) == "/?\(wanted)&api_key=k")
    }

    @Test("a plus sign in a caller's name counts as a space, and a name that only resembles ours stays")
    func names() {
        #expect(sent("/?api+key=1&api%20key=2", values(query: [("api key", "k")])) == "/?api%20key=k")
        let others = "/?API_KEY=1&api_keys=2&xapi_key=3&api_ke=4&api%255key=5&%api_key=6"
        #expect(sent(others, values(query: [("api_key", "k")])) == others + "&api_key=k")
    }

    @Test(
        "a value cannot end the parameter, the query or the line",
        arguments: [
            ("a&b=c", "a%26b%3Dc"), ("a#b", "a%23b"), ("a b+c", "a%20b%2Bc"), ("a\r\nHost: b", "a%0D%0AHost%3A%20b"),
            ("é\0", "%C3%A9%00"), ("a%26", "a%2526"), ("", ""),
        ])
    func encoded(value: String, written: String) {
        #expect(sent("/?x", values(query: [("k", value)])) == "/?x&k=\(written)")
    }

    @Test("the injected path comes after the upstream's own and before the caller's")
    func prefix() {
        #expect(sent("/getMe?a=1", values(path: "/botK")) == "/botK/getMe?a=1")
        #expect(sent("/api/v1/getMe", base: 7, values(path: "/botK")) == "/api/v1/botK/getMe")
        #expect(sent("/", values(path: "/botK")) == "/botK/")
        #expect(sent("*", values(path: "/botK")) == "*")
        #expect(sent("/a?b", base: 99, values(query: [("k", "v")], path: "/botK")) == "/a/botK?b&k=v")
    }

    @Test(
        "a path that would lead out of the injected one is refused, in every spelling that a server may resolve",
        arguments: [
            "/../x", "/a/../../x", "/..", "/.", "/%2e%2e/x", "/%2E./x", "/a/..%2fx", "/..\\x", "/%5c..%5c", "/..;a/x",
            "/%252e%252e/x", "/./x", "/a%2f..%2f..%2fx", "/%25%32%65%25%32%65/x", "/%2%65%2%65/x", "/%%32e%%32e/x",
            "/a/%25%35%63..%25%35%63x", "/%2525252525252e/x", "/..%25%33%62a/x",
            "/%C0%AE%c0%ae/x", "/%e0%80%ae./x", "/%F0%80%80%AE%c0%2e/x", "/a%C0%AF..%C1%9Cx", "/%25c0%25ae%25C0%25AE/x",
            "/%C0%A52e%C0%A52e/x",
        ])
    func escaping(target: String) {
        let bytes = Array(target.utf8)
        let fault: InjectionFault? = values(path: "/botK").fault(ofTarget: bytes.span)
        #expect(fault?.kind == .requestUnfit)
        let other: InjectionFault? = values(query: [("a", "b")]).fault(ofTarget: bytes.span)
        #expect(other == nil)
    }

    @Test(
        "dots within a segment or the query are no dot segments",
        arguments: [
            "/a..b/...", "/x?/../y", "/.a/b.", "/", "/%2e%2/x", "/%%32/x", "/%25%32%65a/x", "/%C0%AEa/x",
            "/%C3%AE%C3%AE/x", "/%E0%A4%AE./x",
        ])
    func dots(target: String) {
        let bytes = Array(target.utf8)
        let fault: InjectionFault? = values(path: "/botK").fault(ofTarget: bytes.span)
        #expect(fault == nil)
    }

    @Test("a dot that is encoded many times over is a dot")
    func deep() {
        let bytes = Array(("/%" + String(repeating: "25", count: 200_000) + "2e/x").utf8)
        let fault: InjectionFault? = values(path: "/botK").fault(ofTarget: bytes.span)
        #expect(fault?.kind == .requestUnfit)
    }

    @Test("values of several sessions go into one target")
    func merged() throws {
        let merged = RequestInjections.merged([values(query: [("a", "1")]), values(query: [("b", "2")], path: "/p")])
        #expect(sent("/x?b=0&a=0", try #require(merged)) == "/p/x?a=1&b=2")
        #expect(RequestInjections.merged([]) == nil)
    }
}

@Suite("Templates of values in targets and bodies")
struct InjectionTemplateTests {
    private static func prefix(_ key: String) async throws(TemplateError) -> String {
        var templates = InjectionTemplates()
        templates.path = try TextTemplate("/bot{key}/")
        let values = try await templates.render(Credential(name: "c", fields: ["key": Secret(key)]))
        return values?.path?.revealText() ?? ""
    }

    @Test("a value in a path is part of its segment")
    func path() async throws {
        let cases = [
            ("123:AB-c", "/bot123:AB-c"), ("a/b", "/bota%2Fb"), ("a?b#c", "/bota%3Fb%23c"), ("a;b", "/bota%3Bb"),
            ("a b%", "/bota%20b%25"),
        ]
        for (key, wanted) in cases {
            let path = try await Self.prefix(key)
            #expect(path == wanted)
        }
    }

    @Test(
        "a value that would make another path, or a line, is refused",
        arguments: ["", "a\r\nb", "x/../y", "..", "a\\..\\b"])
    func refused(key: String) async throws {
        var error: TemplateError?
        do throws(TemplateError) { _ = try await Self.prefix(key) } catch let caught { error = caught }
        #expect(error == .fieldUnfitForPath(field: "key", credential: "c"))
    }

    @Test("a value for JSON has to be text")
    func text() async throws {
        var templates = InjectionTemplates()
        templates.body = [.init(pointer: try #require(JSONPointer("/k")), value: try TextTemplate("{key}"))]
        let credential = Credential(name: "c", fields: ["key": Secret([0xFF])])
        var error: TemplateError?
        do throws(TemplateError) { _ = try await templates.render(credential) } catch let caught { error = caught }
        #expect(error == .fieldNotText(field: "key", credential: "c"))
    }

    @Test("values are rendered whole, and only fields of the credential are secrets")
    func secrets() async throws {
        var templates = InjectionTemplates()
        templates.query = [
            NamedTemplate(name: "a", value: try TextTemplate("x{key}")),
            NamedTemplate(name: "b", value: try TextTemplate("y")),
        ]
        let rendered = try await templates.render(Credential(name: "c", fields: ["key": Secret("secret-1")]))
        let values = try #require(rendered)
        #expect(values.secrets.map { $0.revealText() } == ["secret-1"])
        #expect(values.parameters.map { $0.value.revealText() } == ["xsecret-1", "y"])
        #expect(!values.changesBodies && !values.cleansPages)
        #expect("\(values.parameters)".contains("secret-1") == false)
    }
}
