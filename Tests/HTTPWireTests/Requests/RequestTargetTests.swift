// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// What a target is made of, as text.
private struct Parts: Equatable {
    var form: RequestTarget.Form
    var authority: String?
    var pathAndQuery: String
    var path: String
    var isSecure = false
}

private func parts(_ line: String) -> Parts {
    let raw = "\(line) HTTP/1.1\r\nHost: h\r\n\r\n"
    let head = head(raw)
    let bytes = latin1(raw)
    #expect(text(head.target.range, in: bytes) == line.split(separator: " ").last.map(String.init))
    return Parts(
        form: head.target.form, authority: text(head.target.authority, in: bytes),
        pathAndQuery: text(head.target.pathAndQuery, in: bytes) ?? "", path: text(head.target.path, in: bytes) ?? "",
        isSecure: head.target.isSecure)
}

@Test("the path of an origin-form target is kept unchanged")
func originForm() {
    #expect(parts("GET /") == Parts(form: .origin, pathAndQuery: "/", path: "/"))
    #expect(parts("GET //a/../%2e?b?c") == Parts(form: .origin, pathAndQuery: "//a/../%2e?b?c", path: "//a/../%2e"))
    #expect(parts("GET /a?b[]={c}|^`&d") == Parts(form: .origin, pathAndQuery: "/a?b[]={c}|^`&d", path: "/a"))
    #expect(parts("GET /?") == Parts(form: .origin, pathAndQuery: "/?", path: "/"))
}

@Test("an absolute-form target has an authority and may lack a path")
func absoluteForm() {
    #expect(
        parts("GET http://a:8080/b?c")
            == Parts(form: .absolute, authority: "a:8080", pathAndQuery: "/b?c", path: "/b"))
    #expect(parts("GET http://a") == Parts(form: .absolute, authority: "a", pathAndQuery: "", path: ""))
    #expect(parts("GET http://a?b") == Parts(form: .absolute, authority: "a", pathAndQuery: "?b", path: ""))
    #expect(
        parts("GET HtTpS://[::1]/")
            == Parts(form: .absolute, authority: "[::1]", pathAndQuery: "/", path: "/", isSecure: true))
}

@Test("the asterisk form and the authority form have no path")
func formsWithoutPath() {
    #expect(parts("OPTIONS *") == Parts(form: .asterisk, pathAndQuery: "", path: ""))
    #expect(parts("CONNECT a:443") == Parts(form: .authority, authority: "a:443", pathAndQuery: "", path: ""))
}

@Test("the authority of an absolute target overrides Host")
func absoluteBeforeHost() {
    let raw = "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"
    let head = head(raw)
    #expect(text(head.authority, in: latin1(raw)) == "a")
    #expect(text(head.host, in: latin1(raw)) == "b")
}

@Test("an authority is a host with an optional port")
func authorityParts() throws {
    func authority(_ text: String) throws -> (host: String, port: UInt16?) {
        let bytes = latin1(text)
        let parsed = Authority(bytes.span, ByteRange(start: 0, end: bytes.count))
        let authority = try #require(parsed)
        return (bytes.span.text(authority.host), authority.port)
    }
    #expect(try authority("a.b") == ("a.b", nil))
    #expect(try authority("a.b:") == ("a.b", nil))
    #expect(try authority("a.b:0080") == ("a.b", 80))
    #expect(try authority("[::1]:65535") == ("[::1]", 65535))
    let bytes = latin1("ab")
    let beyond = Authority(bytes.span, ByteRange(start: 0, end: 3))
    #expect(beyond == nil)
}
