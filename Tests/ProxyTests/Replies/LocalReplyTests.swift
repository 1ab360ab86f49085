// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FoundationEssentials
import HTTPWire
import Testing

@testable import Proxy

@Suite("Replies of our own")
struct LocalReplyTests {
    /// Statuses of all codes, as documented.
    private static let statuses: [LocalReply.Code: Int] = [
        .badRequest: 400, .callerNotAllowed: 403, .callerNotKnown: 401, .noRoute: 404, .methodNotAllowed: 405,
        .bodyNotReplayable: 413,
        .hostNotAllowed: 421, .upstreamUnreachable: 502, .upstreamTLS: 502, .upstreamProtocol: 502, .loginRejected: 502,
        .loginFailed: 502, .noCredential: 502, .loginLatched: 503, .attemptsKept: 503, .accountLocked: 503,
        .overloaded: 503, .draining: 503, .upstreamTimeout: 504, .loginTimeout: 504,
    ]

    /// Registered error types (RFC 9209 §2.3).
    private static let errorTypes: Set<Substring> = [
        "dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_prohibited",
        "destination_ip_unroutable", "connection_refused", "connection_terminated", "connection_timeout",
        "connection_read_timeout", "connection_write_timeout", "connection_limit_reached", "tls_protocol_error",
        "tls_certificate_error", "tls_alert_received", "http_request_error", "http_request_denied",
        "http_response_incomplete", "http_response_header_section_size", "http_response_header_size",
        "http_response_body_size", "http_response_trailer_section_size", "http_response_trailer_size",
        "http_response_transfer_coding", "http_response_content_coding", "http_response_timeout",
        "http_upgrade_failed", "http_protocol_error", "proxy_internal_response", "proxy_internal_error",
        "proxy_configuration_error", "proxy_loop_detected",
    ]

    @Test("every code of a local reply has its documented status", arguments: LocalReply.Code.allCases)
    func statuses(code: LocalReply.Code) {
        #expect(LocalReply(code, detail: "").status == Self.statuses[code])
    }

    @Test(
        "every local reply is a problem document with its code, title and detail", arguments: LocalReply.Code.allCases)
    func documents(code: LocalReply.Code) throws {
        let detail = "It says \"no\",\nwith \u{1}, / and \u{e4}."
        let reply = LocalReply(code, detail: detail, retryAfter: 3, members: ["upstream": "ba\"nk"])
        let document = try #require(JSONValue(parsing: reply.document)?.objectValue)
        #expect(document["status"] == .integer(Int64(reply.status)))
        #expect(document["code"] == .string(code.rawValue))
        #expect(document["detail"] == .string(detail))
        #expect(document["type"] == .string("urn:countersign:problem:\(code.rawValue)"))
        #expect(document["upstream"] == "ba\"nk")
        #expect(document["title"]?.stringValue?.isEmpty == false)
        #expect(reply.document.last == UInt8(ascii: "\n"))
        #expect(document.count == 6)
    }

    @Test("a problem type has one title, also with another status")
    func title() throws {
        for status in [400, 408, 413, 417, 431, 508] {
            let reply = LocalReply(.badRequest, status: status, detail: "")
            let document = try #require(JSONValue(parsing: reply.document)?.objectValue)
            #expect(document["status"] == .integer(Int64(status)))
            #expect(document["type"] == "urn:countersign:problem:bad-request")
            #expect(document["title"] == "The request cannot be served as it is")
        }
    }

    @Test("the titles of problem types differ")
    func titles() {
        #expect(Set(LocalReply.Code.allCases.map(\.title)).count == LocalReply.Code.allCases.count)
    }

    @Test(
        "Proxy-Status has an error type of the registry, and the code of the reply", arguments: LocalReply.Code.allCases
    )
    func proxyStatus(code: LocalReply.Code) throws {
        let parts = LocalReply(code, detail: "secret").proxyStatus.split(separator: "; ")
        #expect(parts.count == 3)
        #expect(parts[0] == "countersign")
        #expect(parts[1].hasPrefix("error="))
        #expect(Self.errorTypes.contains(parts[1].dropFirst(6)))
        #expect(parts[2] == "details=\"\(code.rawValue)\"")
    }

    @Test(
        "each kind of exchange error has its code of a local reply",
        arguments: [
            (.bodyNotReplayable, .bodyNotReplayable), (.callerGone, .badRequest), (.loginTimeout, .loginTimeout),
            (.overloaded, .overloaded), (.upstreamProtocol, .upstreamProtocol), (.upstreamTLS, .upstreamTLS),
            (.upstreamTimeout, .upstreamTimeout), (.upstreamUnreachable, .upstreamUnreachable),
        ] as [(ExchangeError.Kind, LocalReply.Code)])
    func exchangeErrors(kind: ExchangeError.Kind, code: LocalReply.Code) {
        let error = ExchangeError(kind, detail: "What happened.", cause: "10.1.2.3 said secret")
        let reply = LocalReply(error, upstream: "bank", now: 0)
        #expect(reply.code == code)
        #expect(reply.detail == "What happened.")
        #expect(reply.members == ["upstream": "bank"])
        #expect(reply.retryAfter == (code == .overloaded ? 1 : nil))
        // Only the operator sees the cause.
        #expect(!String(decoding: reply.document, as: UTF8.self).contains("10.1.2.3"))
    }

    @Test(
        "each kind of login failure has its code of a local reply",
        arguments: [
            (.accountLocked, .accountLocked), (.attemptsKept, .attemptsKept), (.failed, .loginFailed),
            (.latched, .loginLatched), (.noCredential, .noCredential), (.rejected, .loginRejected),
            (.timedOut, .loginTimeout),
        ] as [(LoginFailure.Code, LocalReply.Code)])
    func loginFailures(code: LoginFailure.Code, reply: LocalReply.Code) {
        let failure = LoginFailure(code, challenge: "pin", detail: "The PIN.", retryAt: 12_001)
        let made = LocalReply(
            ExchangeError(.login(failure), detail: failure.detail), upstream: "bank", now: 10_000)
        #expect(made.code == reply)
        #expect(made.code.rawValue == code.rawValue)
        #expect(made.members == ["upstream": "bank", "challenge": "pin"])
        // Rounded up.
        #expect(made.retryAfter == 3)
    }

    @Test(
        "a retry time in the past becomes a Retry-After of one second",
        arguments: [Int64.min + 1_000_000, 0, 10_000, 10_001])
    func past(retryAt: Int64) {
        let failure = LoginFailure(.latched, challenge: "pin", detail: "", retryAt: retryAt)
        #expect(LocalReply(ExchangeError(.login(failure), detail: ""), upstream: "", now: 10_000).retryAfter == 1)
    }

    @Test("a request that breaks a rule is answered with the status of that rule")
    func wireErrors() {
        #expect(LocalReply(WireError(.headTooLarge)).status == 431)
        #expect(LocalReply(WireError(.bareLineFeed)).status == 400)
        #expect(LocalReply(WireError(.transferEncodingUnknown)).status == 501)
        #expect(LocalReply(WireError(.bareLineFeed)).code == .badRequest)
    }

    @Test("a 405 has Allow, and a reply with a retry time has Retry-After")
    func fields() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let (head, _) = try proxy.fetch("TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n"))
        #expect(head.contains("Allow: GET, HEAD, POST"))
        #expect(head.contains("Content-Type: application/problem+json\r\n"))
        #expect(head.contains("Cache-Control: no-store\r\n"))
        #expect(head.contains("Date: Sat, 21 Nov 2026 16:00:00 GMT\r\n"))
        #expect(
            head.contains(
                "Proxy-Status: countersign; error=http_request_error; details=\"method-not-allowed\"; exchange_id="))
        #expect(proxy.reading.replies == [LocalReplyCount(upstream: "", code: .methodNotAllowed, status: 405): 1])
    }
}

@Suite("docs/troubleshooting.md")
struct TroubleshootingTests {
    @Test("docs/troubleshooting.md has a section for each code of a local reply, with its status, and no others")
    func codes() throws {
        let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let text = try String(contentsOfFile: "/\(repository)/docs/troubleshooting.md", encoding: .utf8)
        let part = text.part(between: "\n## A request fails\n", and: "\n## ")
        let sections = part.split(separator: "\n### ").dropFirst()
        var told: [String: Substring] = [:]
        for section in sections {
            let lines = section.split(separator: "\n")
            told[lines[0].filter { $0 != "`" }] = lines.count > 1 ? lines[1] : ""
        }
        #expect(Set(told.keys) == Set(LocalReply.Code.allCases.map(\.rawValue)))
        for code in LocalReply.Code.allCases {
            #expect(told[code.rawValue]?.hasPrefix("\(code.status)") == true, "\(code.rawValue)")
        }
    }
}

extension String {
    /// Returns the text between the first `start` and the next `end`.
    fileprivate func part(between start: String, and end: String) -> Substring {
        guard let begin = firstRange(of: start)?.upperBound else { return "" }
        return self[begin...].firstRange(of: end).map { self[begin..<$0.lowerBound] } ?? self[begin...]
    }
}
