// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// A raw request head, and the parser's expected result.
struct HeadCase: Sendable, CustomTestStringConvertible {
    /// Each character up to U+00FF stands for one byte.
    let raw: String
    /// Rule that the head breaks, or nil if the whole head is accepted.
    let refusal: WireErrorCode?

    var bytes: [UInt8] { latin1(raw) }
    var testDescription: String { String(reflecting: raw.prefix(120)) }

    /// Expected result of the parser for all bytes.
    var outcome: RequestHeadParser.Outcome {
        refusal.map { .refused(WireError($0)) } ?? .complete(length: bytes.count)
    }

    static func taken(_ raw: String) -> HeadCase { HeadCase(raw: raw, refusal: nil) }
    static func refused(_ code: WireErrorCode, _ raw: String) -> HeadCase { HeadCase(raw: raw, refusal: code) }

    /// Returns a GET with these field lines after its Host.
    static func fields(_ lines: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\r\n", refusal: refusal)
    }

    /// Returns a request with this request line and a Host.
    static func line(_ line: String, _ refusal: WireErrorCode? = nil) -> HeadCase {
        HeadCase(raw: "\(line)\r\nHost: a\r\n\r\n", refusal: refusal)
    }
}

/// Returns the bytes of a text whose characters are all below U+0100.
func latin1(_ text: String) -> [UInt8] {
    text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
}

/// Returns the bytes in a range as text, or nil without a range.
func text(_ range: ByteRange?, in bytes: [UInt8]) -> String? {
    range.map { bytes.span.text($0) }
}

/// Returns the result of a new parser for all of `bytes` at once.
func parse(_ bytes: [UInt8], limits: HeadLimits = HeadLimits()) -> RequestHeadParser.Outcome {
    var parser = RequestHeadParser(limits: limits)
    return parser.parse(bytes.span)
}

/// Returns the result of a new parser for bytes that arrive one at a time, and the number it used.
func parseByteByByte(
    _ bytes: [UInt8], limits: HeadLimits = HeadLimits()
) -> (outcome: RequestHeadParser.Outcome, head: RequestHead, used: Int) {
    var parser = RequestHeadParser(limits: limits)
    for count in 0...bytes.count {
        let outcome = parser.parse(bytes.span.extracting(first: count))
        if outcome != .incomplete { return (outcome, parser.head, count) }
    }
    return (.incomplete, parser.head, bytes.count)
}

/// Returns the head of a request that must be accepted as a whole.
func head(_ raw: String, sourceLocation: SourceLocation = #_sourceLocation) -> RequestHead {
    var parser = RequestHeadParser()
    let outcome = parser.parse(latin1(raw).span)
    #expect(outcome == .complete(length: latin1(raw).count), sourceLocation: sourceLocation)
    return parser.head
}

/// Returns the head of a GET with these field lines after its Host.
func head(fields lines: String, version: String = "1.1", sourceLocation: SourceLocation = #_sourceLocation)
    -> RequestHead
{
    head("GET / HTTP/\(version)\r\nHost: a\r\n\(lines)\r\n\r\n", sourceLocation: sourceLocation)
}

/// All cases of all topics, for properties that hold for every head.
enum HeadCases {
    static let all =
        requestLines + targets + hosts + fieldLines + lengths + encodings + connections

    static let taken = all.filter { $0.refusal == nil }
}

extension HeadCases {
    static let requestLines: [HeadCase] = [
        .line("GET / HTTP/1.1"),
        .line("GET / HTTP/1.0"),
        .line("get / HTTP/1.1"),
        .line("M-SEARCH / HTTP/1.1"),
        .line("!#$%&'*+-.^_`|~ / HTTP/1.1"),
        .taken("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .taken("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        // A later minor version is read as 1.1 (RFC 9110 section 2.5).
        .line("GET / HTTP/1.2"),
        .line("GET / HTTP/1.9"),

        .refused(.requestLineInvalid, "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .refused(.requestLineInvalid, "\r\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .refused(.bareLineFeed, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .refused(.bareLineFeed, "\r\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .refused(.requestLineInvalid, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .refused(.requestLineInvalid, "\tGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        .refused(.requestLineInvalid, "\u{0}GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        // A TLS handshake.
        .refused(.requestLineInvalid, "\u{16}\u{3}\u{1}\u{2}\u{0}"),
        .line("GET  / HTTP/1.1", .requestLineInvalid),
        .line("GET /  HTTP/1.1", .requestLineInvalid),
        .line("GET\t/ HTTP/1.1", .requestLineInvalid),
        .line("GET /\tHTTP/1.1", .targetInvalid),
        .line("GET / HTTP/1.1 ", .versionInvalid),
        .line("GET / HTTP/1.1\t", .versionInvalid),
        .line("GET / HTTP/1.1\r", .versionInvalid),
        .line("GET /\r HTTP/1.1", .targetInvalid),
        .line("GE\rT / HTTP/1.1", .requestLineInvalid),
        .line("GET /a b HTTP/1.1", .versionInvalid),
        .line("GET", .requestLineInvalid),
        .line("GET ", .requestLineInvalid),
        .line("GET /", .requestLineInvalid),
        .line("GET / ", .requestLineInvalid),
        .line("GET HTTP/1.1", .targetInvalid),
        .line("G{T / HTTP/1.1", .requestLineInvalid),
        .line("G:T / HTTP/1.1", .requestLineInvalid),
        .line("GE\u{E9}T / HTTP/1.1", .requestLineInvalid),
        .refused(.bareLineFeed, "GET / HTTP/1.1\nHost: a\r\n\r\n"),
        .refused(.bareLineFeed, "GET / HTTP/1.1\nHost: a\n\n"),

        .line("GET / http/1.1", .versionInvalid),
        .line("GET / HTTP/1", .versionInvalid),
        .line("GET / HTTP/1.", .versionInvalid),
        .line("GET / HTTP/1.10", .versionInvalid),
        .line("GET / HTTP/11.1", .versionInvalid),
        .line("GET / HTTP/01.1", .versionInvalid),
        .line("GET / HTTP/1,1", .versionInvalid),
        .line("GET / HTTP/1.x", .versionInvalid),
        .line("GET / HTTP/+1.1", .versionInvalid),
        .line("GET / HTTPS/1.1", .versionInvalid),
        .line("GET / XTTP/1.1", .versionInvalid),
        .line("GET / HTTP/0.9", .versionUnsupported),
        .line("GET / HTTP/2.0", .versionUnsupported),
        .line("GET / HTTP/3.0", .versionUnsupported),
        .refused(.versionUnsupported, "PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        .line(String(repeating: "M", count: 64) + " / HTTP/1.1"),
        .line(String(repeating: "M", count: 65) + " / HTTP/1.1", .methodTooLong),
    ]

    static let targets: [HeadCase] = [
        .line("GET /a/b/c HTTP/1.1"),
        .line("GET //a//b HTTP/1.1"),
        .line("GET /../a/./b HTTP/1.1"),
        .line("GET /a;b=c,d:e@f!$&'()*+~_.- HTTP/1.1"),
        .line("GET /%00%7f%C3%A9 HTTP/1.1"),
        .line("GET /a?b=c?d/e HTTP/1.1"),
        .line("GET /? HTTP/1.1"),
        .line("OPTIONS * HTTP/1.1"),
        .line("GET http://a HTTP/1.1"),
        .line("GET http://a/ HTTP/1.1"),
        .line("GET HTTPS://a:443/b?c HTTP/1.1"),
        .line("GET http://b?c HTTP/1.1"),
        .line("GET http://[::1]:80/x HTTP/1.1"),
        .line("OPTIONS http://a HTTP/1.1"),
        .line("CONNECT a:443 HTTP/1.1"),
        .line("CONNECT [::1]:443 HTTP/1.1"),

        .line("GET /a#b HTTP/1.1", .targetFragment),
        .line("GET http://a/#b HTTP/1.1", .targetFragment),
        .line("GET http://a#b HTTP/1.1", .targetFragment),
        .line("GET # HTTP/1.1", .targetInvalid),
        .line("GET /% HTTP/1.1", .targetInvalid),
        .line("GET /%4 HTTP/1.1", .targetInvalid),
        .line("GET /%g0 HTTP/1.1", .targetInvalid),
        .line("GET /%0g HTTP/1.1", .targetInvalid),
        .line("GET /a?% HTTP/1.1"),
        .line("GET /a[0] HTTP/1.1"),
        .line("GET /?a[0]=1&b={c}|d^e`f HTTP/1.1"),
        .line("GET http://a?b[]=1 HTTP/1.1"),
        .line("GET /[0]?a[0] HTTP/1.1"),
        .line("GET /?a\\b HTTP/1.1", .targetInvalid),
        .line("GET /?\"a\" HTTP/1.1"),
        .line("GET /?<a>=100%&b=%4&c=%g0%% HTTP/1.1"),
        .line("GET /?\u{7F} HTTP/1.1", .targetInvalid),
        .line("GET /?\u{E9}\u{80}\u{FF} HTTP/1.1"),
        .line("GET /%?a HTTP/1.1", .targetInvalid),
        .line("GET /?\u{0} HTTP/1.1", .targetInvalid),
        .line("GET /?\t HTTP/1.1", .targetInvalid),
        .line("GET /?\u{1F} HTTP/1.1", .targetInvalid),
        .line("GET /?%#a HTTP/1.1", .targetFragment),
        .line("GET /?a[]#b HTTP/1.1", .targetFragment),
        .line("GET /a|b HTTP/1.1"),
        .line("GET /a\\b HTTP/1.1", .targetInvalid),
        .line("GET /a{b} HTTP/1.1"),
        .line("GET /a^b HTTP/1.1"),
        .line("GET /a`b HTTP/1.1"),
        .line("GET /\"a\" HTTP/1.1", .targetInvalid),
        .line("GET /<a> HTTP/1.1", .targetInvalid),
        .line("GET /\u{0} HTTP/1.1", .targetInvalid),
        .line("GET /\u{7F} HTTP/1.1", .targetInvalid),
        .line("GET /\u{E9} HTTP/1.1", .targetInvalid),
        .line("GET a HTTP/1.1", .targetInvalid),
        .line("GET a/b HTTP/1.1", .targetInvalid),
        .line("GET ?a HTTP/1.1", .targetInvalid),
        .line("GET a:80 HTTP/1.1", .targetInvalid),
        .line("GET ftp://a/ HTTP/1.1", .targetInvalid),
        .line("GET file:///etc/passwd HTTP/1.1", .targetInvalid),
        .line("GET http:/a HTTP/1.1", .targetInvalid),
        .line("GET http: HTTP/1.1", .targetInvalid),
        .line("GET http:// HTTP/1.1", .targetAuthorityInvalid),
        .line("GET http:///a HTTP/1.1", .targetAuthorityInvalid),
        .line("GET http://:80/ HTTP/1.1", .targetAuthorityInvalid),
        .line("GET http://u@a/ HTTP/1.1", .targetAuthorityInvalid),
        .line("GET http://u:p@a/ HTTP/1.1", .targetAuthorityInvalid),
        .line("GET http://a:b/ HTTP/1.1", .targetAuthorityInvalid),
        .line("GET http://a\\b/ HTTP/1.1", .targetAuthorityInvalid),
        .line("GET * HTTP/1.1", .targetFormMismatch),
        .line("OPTIONS ** HTTP/1.1", .targetInvalid),
        .line("OPTIONS *?a HTTP/1.1", .targetInvalid),
        .line("CONNECT / HTTP/1.1", .targetFormMismatch),
        .line("CONNECT * HTTP/1.1", .targetFormMismatch),
        .line("CONNECT a HTTP/1.1", .targetAuthorityInvalid),
        .line("CONNECT a: HTTP/1.1", .targetAuthorityInvalid),
        .line("CONNECT a:0 HTTP/1.1", .targetAuthorityInvalid),
        .line("CONNECT a:65536 HTTP/1.1", .targetAuthorityInvalid),
        .line("CONNECT http://a:80/ HTTP/1.1", .targetAuthorityInvalid),
        .line("CONNECT u@a:443 HTTP/1.1", .targetAuthorityInvalid),
        .line("CONNECT a:443", .requestLineInvalid),
    ]
}
