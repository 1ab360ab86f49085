// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Glibc
import Testing

@testable import ChallengeClient

/// A failure, and what it means.
struct FailureRow: CustomTestStringConvertible, Sendable {
    let failure: TransferFailure
    let kind: FailureMeaning.Kind
    let words: String
    var advice = "its log"
    var type: String?
    var resend = FailureMeaning.Resend.never
    var isUnsent = false

    var testDescription: String { "\(failure.error) \(failure.text): \(words)" }
}

private func failure(
    _ error: CurlError, _ text: String = "", proxied: Bool = false, connected: Bool = false, status: Int = 0,
    socks: SOCKSFault? = nil, system: Int32 = 0, verify: Int = 0, stale: Bool = false, untaken: Bool = false
) -> TransferFailure {
    var failure = TransferFailure(error)
    failure.text = text
    failure.isProxied = proxied
    failure.wasConnected = connected
    failure.proxyStatus = status
    failure.socksFault = socks
    failure.systemError = system
    failure.verifyResult = verify
    failure.isStale = stale
    failure.mayNotBeTaken = untaken
    return failure
}

private let lost = "the connection was lost before the answer was complete"

private let table = [
    FailureRow(
        failure: failure(.couldNotResolveHost), kind: .unreachable, words: "its name cannot be resolved",
        advice: "getent", type: "dns_error", isUnsent: true),
    FailureRow(
        failure: failure(.couldNotConnect, system: ECONNREFUSED), kind: .unreachable,
        words: "it refuses the connection, or nothing listens there", advice: "it runs", type: "connection_refused",
        isUnsent: true),
    FailureRow(
        failure: failure(.couldNotConnect), kind: .unreachable,
        words: "it refuses the connection, or nothing listens there", advice: "it runs", isUnsent: true),
    FailureRow(
        failure: failure(.couldNotConnect, system: EHOSTUNREACH), kind: .unreachable,
        words: "this machine has no route to its address", advice: "it runs", type: "destination_ip_unroutable",
        isUnsent: true),
    FailureRow(
        failure: failure(
            .operationTimedOut, "Failed to connect to 127.0.0.1 port 443 after 300 ms: Timeout was reached"),
        kind: .timedOut, words: "no connection was established in time", advice: "timeouts.connect",
        type: "connection_timeout"),
    FailureRow(
        failure: failure(.operationTimedOut, "SSL connection timeout"), kind: .timedOut,
        words: "its TLS handshake did not finish in time", advice: "timeouts.connect", type: "connection_timeout"),
    FailureRow(
        failure: failure(.gotNothing, connected: true), kind: .unreachable,
        words: "it closed the connection without an answer", type: "connection_terminated"),
    FailureRow(
        failure: failure(.gotNothing, connected: true, untaken: true), kind: .unreachable,
        words: "it closed the connection without an answer", type: "connection_terminated", resend: .ifIdempotent),
    FailureRow(
        failure: failure(.partialFile, connected: true), kind: .unreachable, words: lost,
        type: "connection_terminated"),
    FailureRow(
        failure: failure(.receiveError, connected: true), kind: .unreachable, words: lost,
        type: "connection_terminated"),
    FailureRow(
        failure: failure(.abortedByCallback, connected: true, stale: true), kind: .unreachable, words: lost,
        resend: .always),
    FailureRow(failure: failure(.http2, connected: true), kind: .unreachable, words: lost),
    FailureRow(
        failure: failure(.weirdServerReply, connected: true), kind: .protocolError,
        words: "its answer ended in the middle of its head, or is not HTTP", advice: "speaks HTTP"),
    FailureRow(
        failure: failure(.writeError, connected: true), kind: .protocolError,
        words: "its answer is not valid HTTP", advice: "speaks HTTP"),
    FailureRow(
        failure: failure(.http2Stream, "HTTP/2 stream 1 was not closed cleanly: PROTOCOL_ERROR (err 1)"),
        kind: .protocolError, words: "its answer is not valid HTTP"),
    FailureRow(
        failure: failure(.http2Stream, "HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)"),
        kind: .unreachable, words: "it aborted the request"),
    FailureRow(
        failure: failure(.http2Stream, "HTTP/2 stream 1 was not closed cleanly: HTTP_1_1_REQUIRED (err 13)"),
        kind: .unreachable, words: "it wants HTTP/1.1 for this request: set `http: 1.1`"),
    FailureRow(
        failure: failure(.http2Stream), kind: .protocolError, words: "its answer is not valid HTTP"
    ),
    FailureRow(failure: failure(.outOfMemory), kind: .unreachable, words: "the transfer failed"),
    FailureRow(
        failure: failure(.couldNotResolveProxy, proxied: true), kind: .unreachable,
        words: "the name of the outbound proxy cannot be resolved", advice: "`proxy`", isUnsent: true),
    FailureRow(
        failure: failure(.couldNotConnect, proxied: true, system: ECONNREFUSED), kind: .unreachable,
        words: "the outbound proxy refuses the connection, or nothing listens there", advice: "`proxy`",
        isUnsent: true),
    FailureRow(
        failure: failure(.receiveError, proxied: true, status: 403), kind: .unreachable,
        words: "the outbound proxy answered with 403 and made no connection", advice: "`proxy`"),
    FailureRow(
        failure: failure(.receiveError, proxied: true, status: 407), kind: .unreachable,
        words: "the outbound proxy wants a login (407)", advice: "`proxy`"),
    FailureRow(
        failure: failure(.receiveError, proxied: true, connected: true, status: 200), kind: .unreachable,
        words: lost,
        type: "connection_terminated"),
    FailureRow(
        failure: failure(.operationTimedOut, proxied: true), kind: .timedOut,
        words: "no connection was established in time", advice: "timeouts.connect"),
    FailureRow(
        failure: failure(.proxy, proxied: true, socks: .refused), kind: .unreachable,
        words: "it refused the connection from the outbound proxy", advice: "`proxy`", isUnsent: true),
    FailureRow(
        failure: failure(.peerFailedVerification, proxied: true, verify: 10), kind: .tls,
        words: "its certificate or an intermediate one has expired", advice: "renewed",
        type: "tls_certificate_error"),
    FailureRow(
        failure: failure(.sslPinnedKeyMismatch), kind: .tls, words: "its public key matches no pin in `tls.pin`",
        advice: "new pin", type: "tls_certificate_error"),
]

@Suite("The meaning of a failed transfer")
struct FailureMeaningTests {
    private func tls(_ error: CurlError, _ text: String = "", verifyResult: Int = 1) -> TLSFault? {
        var failure = TransferFailure(error)
        failure.text = text
        failure.verifyResult = verifyResult
        return TLSFault(failure)
    }

    private func openSSL(_ code: String, _ words: String) -> String {
        "OpenSSL/3.0.19: error:\(code):SSL routines::\(words)"
    }

    @Test(
        "a certificate fault found by OpenSSL is known by its number",
        arguments: [
            (9, TLSFault.notYetValid), (10, .expired), (18, .selfSigned), (19, .unknownAuthority),
            (20, .unknownAuthority),
            (21, .unknownAuthority), (23, .revoked), (26, .notForServers), (62, .otherName), (66, .weak),
            (1, .otherName),
        ])
    func verification(number: Int, fault: TLSFault) {
        #expect(tls(.peerFailedVerification, "SSL certificate problem: whatever", verifyResult: number) == fault)
    }

    @Test(
        "the cause of a failed handshake is known by OpenSSL's numbers, not by its words",
        arguments: [
            ("0A00010B", TLSFault.noTLS), ("0A00009C", .noTLS), ("0A0000C6", .noTLS), ("0A000102", .version),
            ("0A00042E", .version), ("0A00014D", .version), ("0A000126", .cutOff), ("0A000410", .alert(40)),
            ("0A000412", .alert(42)), ("0A000458", .alert(112)), ("0A00018A", .weak), ("0A0000C1", .unknown),
        ])
    func handshake(code: String, fault: TLSFault) {
        #expect(tls(.sslConnectError, openSSL(code, "some words")) == fault)
    }

    @Test(
        "a text without an OpenSSL code is not taken for one",
        arguments: ["error:", "error:zz:x", "error", "a:error:80000002:b"])
    func noCode(text: String) { #expect(tls(.sslConnectError, text) == .cutOff) }

    @Test("the loss of a connection is one of TLS only where the server said so by an alert about certificates")
    func lost() {
        let text = "OpenSSL SSL_read: \(openSSL("0A00045C", "tlsv13 alert certificate required")), errno 0"
        #expect(tls(.receiveError, text) == .alert(116))
        #expect(
            tls(.receiveError, "OpenSSL SSL_read: \(openSSL("0A000416", "alert certificate unknown"))") == .alert(46))
        #expect(tls(.receiveError, "OpenSSL SSL_read: \(openSSL("0A000438", "alert internal error")), errno 0") == nil)
        #expect(
            tls(.receiveError, "OpenSSL SSL_read: \(openSSL("0A000126", "unexpected eof while reading")), errno 0")
                == nil)
        #expect(tls(.receiveError, "Recv failure: Connection reset by peer") == nil)
        #expect(tls(.gotNothing) == nil && tls(.operationTimedOut) == nil && tls(.couldNotConnect) == nil)
    }

    @Test("each failure has its kind, its words, its advice, and who may send again", arguments: table)
    func meaning(row: FailureRow) {
        let meaning = FailureMeaning(row.failure)
        #expect(meaning.kind == row.kind)
        #expect(meaning.words == row.words)
        #expect(meaning.remedy.contains(row.advice))
        #expect(meaning.proxyError == row.type)
        #expect(meaning.resend == row.resend)
        #expect(meaning.isUnsent == row.isUnsent)
    }
}
