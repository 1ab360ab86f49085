// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import HTTPWire
import Testing

/// Parts of a target as text.
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

@Suite("The request that an auth request asks about")
struct OriginalRequestTests {
    /// Returns method, host, path, and path with query of the request that `text` asks about, or the fault.
    private func asked(_ text: String) -> Result<[String], AuthRequestFault> {
        var parser = RequestHeadParser()
        let bytes = Array(text.replacingLineFeeds.utf8)
        guard case .complete = parser.parse(bytes.span) else { return .success(["unreadable"]) }
        do throws(AuthRequestFault) {
            let original = try parser.head.original(in: bytes.span)
            return .success([
                bytes.span.text(original.methodRange), original.authority.map { bytes.span.text($0) } ?? "",
                bytes.span.text(original.target.path), bytes.span.text(original.target.pathAndQuery),
            ])
        } catch {
            return .failure(error)
        }
    }

    private func fields(_ method: String, _ uri: String, _ host: String = "h.example", _ more: String = "") -> String {
        "GET /authority HTTP/1.1\nHost: own\nX-Forwarded-Method: \(method)\nx-forwarded-uri: \(uri)\n"
            + "X-Forwarded-Host: \(host)\n\(more)\n"
    }

    @Test("three fields name the original request of an auth request for /authority")
    func byFields() {
        #expect(
            asked(fields("POST", "/a/b?c=/d?e", "h.example:81"))
                == .success(["POST", "h.example:81", "/a/b", "/a/b?c=/d?e"]))
        #expect(asked(fields("PROPFIND", "/%41")) == .success(["PROPFIND", "h.example", "/%41", "/%41"]))
    }

    @Test("the path after /authority is the target, with method and host of the auth request")
    func byPath() {
        #expect(
            asked("DELETE /authority/a/b?c HTTP/1.1\nHost: h\nX-Forwarded-Uri: /other\n\n")
                == .success(["DELETE", "h", "/a/b", "/a/b?c"]))
        #expect(asked("GET /authority/ HTTP/1.1\nHost: h\n\n") == .success(["GET", "h", "/", "/"]))
        #expect(
            asked("GET /authority/authority HTTP/1.1\nHost: h\n\n")
                == .success(["GET", "h", "/authority", "/authority"]))
    }

    @Test(
        "an auth request for any other path is refused",
        arguments: [
            "/", "/authoritys/a", "/authorit", "/authority?a", "/Authority/a", "http://h/authority/a", "/a/authority/b",
        ])
    func elsewhere(_ target: String) {
        let result = asked(
            "GET \(target) HTTP/1.1\nHost: h\nX-Forwarded-Method: GET\nX-Forwarded-Uri: /\nX-Forwarded-Host: h\n\n")
        #expect(result == .failure(.elsewhere))
    }

    @Test("an X-Forwarded field that is missing, repeated or named by Connection is refused")
    func incomplete() {
        #expect(asked("GET /authority HTTP/1.1\nHost: h\n\n") == .failure(.fieldsIncomplete))
        for name in ["Method", "Uri", "Host"] {
            let whole = fields("GET", "/a")
            let lines = whole.split(separator: "\n", omittingEmptySubsequences: false)
            let without = lines.filter { !$0.lowercased().hasPrefix("x-forwarded-\(name.lowercased())") }
            #expect(asked(without.joined(separator: "\n")) == .failure(.fieldsIncomplete))
            let value = ["Method": "GET", "Uri": "/a", "Host": "h.example"][name] ?? ""
            #expect(
                asked(fields("GET", "/a", "h.example", "X-Forwarded-\(name): \(value)\n"))
                    == .failure(.fieldsIncomplete))
            #expect(
                asked(fields("GET", "/a", "h.example", "Connection: x-forwarded-\(name)\n"))
                    == .failure(.fieldsIncomplete))
        }
    }

    @Test(
        "an X-Forwarded field with an invalid value is refused",
        arguments: [
            ("G ET", "/", "h"), ("", "/", "h"), ("GET", "", "h"), ("GET", "*", "h"), ("GET", "a", "h"),
            ("GET", "http://h/a", "h"), ("GET", "/a b", "h"), ("GET", "/%4", "h"), ("GET", "/a#b", "h"),
            ("GET", "/a\\b", "h"), ("GET", "/", ""), ("GET", "/", "h,i"), ("GET", "/", "u@h"), ("GET", "/, /b", "h"),
            (String(repeating: "A", count: 65), "/", "h"),
        ])
    func invalid(_ method: String, _ uri: String, _ host: String) {
        #expect(asked(fields(method, uri, host)) == .failure(.fieldInvalid))
    }
}

extension String {
    fileprivate var replacingLineFeeds: String {
        split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n")
    }
}
