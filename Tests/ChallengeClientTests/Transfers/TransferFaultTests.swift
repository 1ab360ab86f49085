// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

@testable import ChallengeClient

@Suite("What a failed transfer means")
struct TransferFaultTests {
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
        "what OpenSSL finds wrong with a certificate is known by its number",
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
        "why a handshake broke is known by OpenSSL's numbers, not by its words",
        arguments: [
            ("0A00010B", TLSFault.noTLS), ("0A00009C", .noTLS), ("0A0000C6", .noTLS), ("0A000102", .version),
            ("0A00042E", .version), ("0A00014D", .version), ("0A000126", .cutOff), ("0A000410", .alert(40)),
            ("0A000412", .alert(42)), ("0A000458", .alert(112)), ("0A00018A", .weak), ("0A0000C1", .unknown),
        ])
    func handshake(code: String, fault: TLSFault) {
        #expect(tls(.sslConnectError, openSSL(code, "some words")) == fault)
    }

    @Test(
        "what is none of OpenSSL's codes is not taken for one",
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

    @Test("a handshake that took too long is told from a connection that did")
    func timeouts() {
        var failure = TransferFailure(.operationTimedOut)
        failure.text = "Failed to connect to 127.0.0.1 port 443 after 300 ms: Timeout was reached"
        #expect(TransferFault(failure) == .timedOut("no connection came about in time"))
        failure.text = "SSL connection timeout"
        #expect(TransferFault(failure) == .timedOut("its TLS handshake did not finish in time"))
    }

    @Test("a proxy on the way is told of where it failed, and not where the upstream behind it did")
    func proxies() {
        var failure = TransferFailure(.couldNotConnect)
        #expect(TransferFault(failure) == .unreachable("it refuses the connection, or nothing listens there"))
        failure.isProxied = true
        #expect(
            TransferFault(failure)
                == .unreachable("the proxy on the way refuses the connection, or nothing listens there"))
        failure = TransferFailure(.receiveError)
        failure.isProxied = true
        failure.proxyStatus = 403
        #expect(TransferFault(failure) == .unreachable("the proxy on the way answered with 403 and made no connection"))
        failure.proxyStatus = 200
        failure.wasConnected = true
        #expect(TransferFault(failure) == .unreachable("the connection was lost before the answer was complete"))
        failure.wasConnected = false
        failure.error = .proxy
        failure.socksFault = .refused
        #expect(TransferFault(failure) == .unreachable("it refused the connection from the proxy on the way"))
        failure.error = .peerFailedVerification
        failure.socksFault = nil
        failure.verifyResult = 10
        if case .tls = TransferFault(failure) {} else { Issue.record("TLS behind a proxy is the upstream's") }
    }

    @Test(
        "why a stream was reset decides whose fault it is",
        arguments: [
            ("PROTOCOL_ERROR (err 1)", true), ("INTERNAL_ERROR (err 2)", false), ("HTTP_1_1_REQUIRED (err 13)", false),
            ("", true),
        ])
    func resets(text: String, isProtocol: Bool) {
        var failure = TransferFailure(.http2Stream)
        failure.text = text.isEmpty ? "" : "HTTP/2 stream 1 was not closed cleanly: \(text)"
        if case .protocolError = TransferFault(failure) { #expect(isProtocol) } else { #expect(!isProtocol) }
    }
}
