// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
internal import Glibc

/// The meaning of a failed transfer, for exchanges and side requests alike.
///
/// Its texts are for callers: they contain no host, address or file.
package struct FailureMeaning: Equatable {
    /// The kinds of failures.
    enum Kind {
        /// The answer is not valid HTTP.
        case protocolError
        /// A time limit passed.
        case timedOut
        /// The TLS handshake failed.
        case tls
        /// No connection, or a lost one.
        case unreachable
    }

    /// The condition for sending the request again.
    package enum Resend: Sendable {
        /// Any request: nothing of it was sent.
        case always
        /// Idempotent requests only: the upstream may have processed it (RFC 9110 §9.2.2).
        case ifIdempotent
        case never

        /// Returns true if a request may be sent again. `isIdempotent`: processing it twice does no harm.
        func allows(isIdempotent: Bool) -> Bool { self == .always || self == .ifIdempotent && isIdempotent }
    }

    var kind: Kind
    /// Description of the failure, without a full stop.
    package var words: String
    /// Advice of a sentence or two without the last full stop; empty if the description contains it.
    var remedy: String
    /// The error type of RFC 9209 §2.3, if more exact than the kind's.
    var proxyError: String?
    /// The condition for sending the request again.
    var resend = Resend.never
    /// True if nothing of the request can have arrived, because there was no connection.
    var isUnsent = false

    /// Creates the meaning of `failure`.
    package init(_ failure: TransferFailure) {
        if let fault = TLSFault(failure) {
            self.init(fault)
        } else if let words = Self.words(ofProxy: failure) {
            self.init(.unreachable, words, Advice.proxy, nil)
        } else {
            self.init(withoutProxy: failure)
            // The connection to a proxy says nothing about the upstream.
            if failure.isProxied, !failure.wasConnected { proxyError = nil }
        }
        switch failure.error {
        case .couldNotConnect, .couldNotResolveHost, .couldNotResolveProxy, .proxy: isUnsent = !failure.wasConnected
        default: break
        }
        if failure.isStale {
            resend = .always
        } else if failure.mayNotBeTaken {
            resend = .ifIdempotent
        }
    }

    private init(_ kind: Kind, _ words: String, _ remedy: String, _ proxyError: String?) {
        self.kind = kind
        self.words = words
        self.remedy = remedy
        self.proxyError = proxyError
    }
}

private enum Advice {
    static let host = "Check the host in its address, and that this machine resolves it (`getent hosts`)"
    static let log = "Check its log; the daemon's log has the cause"
    static let noHTTP = "Check its log, and that its port speaks HTTP; the daemon's log has the cause"
    static let proxy = "Check `proxy` of the upstream, and the proxy's own log"
    static let runs = "Check that it runs, and host and port in its address"
    static let time = """
        Check that it runs, and that no firewall drops packets to it; `timeouts.connect` is the limit
        """
}

// MARK: Failures found by libcurl or by the client

extension FailureMeaning {
    private init(withoutProxy failure: TransferFailure) {
        let lost = "the connection was lost before the answer was complete"
        switch failure.error {
        case .couldNotResolveHost:
            self.init(.unreachable, "its name cannot be resolved", Advice.host, "dns_error")
        case .couldNotConnect:
            let isCutOff = [ENETUNREACH, EHOSTUNREACH, EACCES, EPERM].contains(failure.systemError)
            self.init(
                .unreachable,
                isCutOff
                    ? "this machine has no route to its address"
                    : "it refuses the connection, or nothing listens there",
                Advice.runs,
                failure.systemError == ECONNREFUSED
                    ? "connection_refused" : failure.systemError == 0 ? nil : "destination_ip_unroutable")
        // libcurl has one code for both, and another message for the second.
        case .operationTimedOut where failure.text.hasPrefix("SSL connection timeout"):
            self.init(.timedOut, "its TLS handshake did not finish in time", Advice.time, "connection_timeout")
        case .operationTimedOut:
            self.init(.timedOut, "no connection was established in time", Advice.time, "connection_timeout")
        case .gotNothing:
            self.init(
                .unreachable, "it closed the connection without an answer", Advice.log, "connection_terminated")
        case .partialFile, .receiveError, .sendError:
            self.init(.unreachable, lost, Advice.log, "connection_terminated")
        case .abortedByCallback, .http2, .sendFailRewind:
            self.init(.unreachable, lost, Advice.log, nil)
        case .http2Stream:
            self.init(resetBy: failure.text)
        case .weirdServerReply:
            self.init(
                .protocolError, "its answer ended in the middle of its head, or is not HTTP", Advice.noHTTP, nil)
        case .tooLarge, .unsupportedProtocol, .writeError:
            self.init(.protocolError, "its answer is not valid HTTP", Advice.noHTTP, nil)
        default:
            self.init(.unreachable, "the transfer failed", Advice.log, nil)
        }
    }

    /// Creates the meaning of an HTTP/2 stream reset (RFC 9113 §7) from libcurl's message.
    ///
    /// An example is `HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)`. The reset may come from the
    /// server, or from libcurl because of the server's data.
    private init(resetBy text: String) {
        let parts = text.split(separator: "(err ")
        switch parts.count == 2 ? Int(parts[1].prefix(while: \.isNumber)) : nil {
        // PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR; without a code, the stream ended in the middle of a
        // head.
        case nil, 1, 6, 9:
            self.init(.protocolError, "its answer is not valid HTTP", Advice.log, nil)
        case 11:
            self.init(.unreachable, "it asks for fewer requests (ENHANCE_YOUR_CALM)", Advice.log, nil)
        case 12:
            let words = "it considers the negotiated TLS too weak for HTTP/2 (INADEQUATE_SECURITY)"
            self.init(.unreachable, words, Advice.log, nil)
        case 13:
            self.init(.unreachable, "it wants HTTP/1.1 for this request: set `http: 1.1`", Advice.log, nil)
        default:
            self.init(.unreachable, "it aborted the request", Advice.log, nil)
        }
    }

    /// Returns the description of a proxy's failure, or `nil` if the proxy did its part.
    private static func words(ofProxy failure: TransferFailure) -> String? {
        if failure.error == .couldNotResolveProxy { return "the name of the outbound proxy cannot be resolved" }
        guard failure.isProxied, !failure.wasConnected else { return nil }
        if let fault = failure.socksFault { return words(fault) }
        switch failure.error {
        case .couldNotConnect: return "the outbound proxy refuses the connection, or nothing listens there"
        case .receiveError where failure.proxyStatus == 407: return "the outbound proxy wants a login (407)"
        case .receiveError where failure.proxyStatus >= 300:
            return "the outbound proxy answered with \(failure.proxyStatus) and made no connection"
        case .operationTimedOut, .outOfMemory: return nil
        default: return "the server at the address of the outbound proxy is not such a proxy, or closed the connection"
        }
    }

    private static func words(_ fault: SOCKSFault) -> String {
        switch fault {
        case .notAllowed: "the outbound proxy does not allow it"
        case .noProxy: "the server at the address of the outbound proxy is not such a proxy, or closed the connection"
        case .refused: "it refused the connection from the outbound proxy"
        case .unreachable: "the outbound proxy cannot reach it, or does not know its name"
        case .wantsLogin: "the outbound proxy wants a login"
        case .other: "the outbound proxy made no connection"
        }
    }
}

// MARK: TLS

extension FailureMeaning {
    private init(_ fault: TLSFault) { self.init(.tls, fault.words, fault.remedy, fault.proxyError) }
}

extension TLSFault {
    /// Description of the fault.
    fileprivate var words: String {
        switch self {
        case .alert(116):
            "it wants a client certificate (`tls.certificate` and `tls.key`)"
        case .alert(40):
            "it refused the handshake: it shares no version and no cipher with Countersign, or wants a client certificate"
        case .alert(45):
            "it says that the client certificate has expired"
        case .alert(let alert) where Self.isAboutCertificates(alert):
            "it does not accept the client certificate, or wants one (`tls.certificate`)"
        case .alert(112):
            "it has no server with the name in `url`"
        case .alert(let alert):
            "it refused the handshake with alert \(alert)"
        case .authorities:
            "the CA certificates cannot be used: `tls.ca`, or the system's (package ca-certificates)"
        case .ownCertificate:
            "the client certificate or its key cannot be used, or they do not belong together"
        case .cutOff:
            "it ended the connection in the middle of the handshake"
        case .expired:
            "its certificate or an intermediate one has expired"
        case .noTLS:
            "the server at its address does not speak TLS"
        case .notForServers:
            "its certificate is not valid for servers"
        case .notYetValid:
            "its certificate is not valid yet, by this machine's clock"
        case .otherName:
            "its certificate is for another name than the one in `url`"
        case .pinMismatch:
            "its public key matches no pin in `tls.pin`"
        case .revoked:
            "its certificate has been revoked"
        case .selfSigned:
            "its certificate is self-signed and not trusted here (`tls.ca` sets the trusted ones)"
        case .unknown:
            "the daemon's log has the reason"
        case .unknownAuthority:
            "its certificate is from an authority that is not trusted here (`tls.ca` sets the trusted ones), or it does not "
                + "send the intermediate certificates"
        case .version:
            "it speaks no version of TLS that is allowed here (`tls.minimum`)"
        case .weak:
            "its certificate or key is too weak"
        }
    }

    fileprivate var proxyError: String {
        switch self {
        case .alert: "tls_alert_received"
        case .authorities, .ownCertificate: "proxy_configuration_error"
        case .cutOff, .noTLS, .unknown, .version: "tls_protocol_error"
        case .expired, .notForServers, .notYetValid, .otherName, .pinMismatch, .revoked, .selfSigned, .unknownAuthority,
            .weak:
            "tls_certificate_error"
        }
    }

    /// Advice; empty if the description contains it.
    fileprivate var remedy: String {
        switch self {
        case .alert(45): "Renew it (`tls.certificate`)"
        case .alert(112): "Check the host in its address"
        case .alert(116), .authorities, .selfSigned, .unknownAuthority, .version: ""
        case .alert:
            "`countersign doctor` shows its certificates; `tls.certificate` and `tls.minimum` set Countersign's side"
        case .ownCertificate: "Check `tls.certificate` and `tls.key`"
        case .cutOff: "Check its log, and that its port speaks HTTPS"
        case .expired: "Have it renewed there; `countersign doctor` shows its dates"
        case .noTLS: "Check the port in its address, or use http://"
        case .notForServers, .revoked, .weak: "Have it replaced there"
        case .notYetValid: "Compare this machine's clock with the server's (`countersign doctor` does)"
        case .otherName: "Use a name that the certificate has (`countersign doctor` shows them), or have it replaced"
        case .pinMismatch: "If the server's key was changed on purpose, set the new pin (`countersign doctor` shows it)"
        case .unknown: "`countersign doctor` shows more"
        }
    }
}

/// The details of a failed transfer. Its `text` is for the log: it may name hosts, addresses and files.
package struct TransferFailure: Sendable, Equatable {
    /// libcurl's code.
    package var error: CurlError
    /// libcurl's message, or nothing.
    package var text = ""
    /// The result of verifying the server's certificate, as OpenSSL's number.
    package var verifyResult = 0
    /// The status of a proxy's answer to CONNECT, 0 without an answer.
    package var proxyStatus = 0
    /// The fault reported by a SOCKS proxy, if any.
    package var socksFault: SOCKSFault?
    /// The `errno` of a failed connection, 0 without a failure.
    package var systemError: Int32 = 0
    /// True if the connection passes a proxy.
    package var isProxied = false
    /// True if a connection was established, TLS included, before it failed.
    package var wasConnected = false

    /// True if the connection had ended before anything of the request was sent.
    package var isStale = false
    /// True if the server went away, and may not have taken the request.
    package var mayNotBeTaken = false

    /// True if an HTTP/2 connection ended, and not this stream alone.
    var isConnectionsEnd: Bool {
        switch error {
        case .gotNothing, .http2, .partialFile, .receiveError, .sendError: true
        case .http2Stream: text.contains("before end of the underlying")
        default: false
        }
    }

    /// Creates a failure without details.
    package init(_ error: CurlError) { self.error = error }

    /// Creates the failure of the run that `handle` has ended.
    package init(_ error: CurlError, of handle: EasyHandle, isProxied: Bool) {
        self.error = error
        self.isProxied = isProxied
        text = handle.errorText
        verifyResult = handle.verifyResult
        proxyStatus = handle.proxyStatus
        socksFault = handle.socksFault
        systemError = handle.systemError
        wasConnected = handle.wasConnected
    }

    /// The text for the log: libcurl's message, or that of its code.
    package var cause: String { text.isEmpty ? error.description : text }
}
