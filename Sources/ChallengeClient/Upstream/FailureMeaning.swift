// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import Glibc

/// A failed transfer as everybody is to take it, an exchange and a side request alike: one table.
///
/// The words are for callers: they name no host, no address and no file.
package struct FailureMeaning: Equatable {
    /// The kinds.
    enum Kind {
        /// The answer is not HTTP as the standard has it.
        case protocolError
        /// Something did not come in time.
        case timedOut
        /// The TLS handshake failed.
        case tls
        /// There was no connection, or it was lost.
        case unreachable
    }

    /// The requests that may be sent again.
    package enum Resend: Sendable {
        /// Anybody: nothing of it was sent.
        case always
        /// RFC 9110 §9.2.2: who may send it twice, as it is not known that nothing came of it.
        case ifIdempotent
        case never
    }

    /// The kind.
    var kind: Kind
    /// The event in words, without a full stop.
    var words: String
    /// The advice: a sentence or two without the last full stop; empty where the words say it.
    var remedy: String
    /// The error type of RFC 9209 §2.3, where one says more than that the upstream cannot be reached.
    var proxyError: String?
    /// The requests that may be sent again.
    var resend = Resend.never
    /// True if nothing of the request can have arrived, because there was no connection.
    var isUnsent = false

    /// The meaning of `failure`.
    init(_ failure: TransferFailure) {
        if let fault = TLSFault(failure) {
            self.init(fault)
        } else if let words = Self.words(ofProxy: failure) {
            self.init(.unreachable, words, Advice.proxy, nil)
        } else {
            self.init(withoutProxy: failure)
            // What happened to the connection to a proxy says nothing of the upstream.
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
    static let host = "Check the host in its address, and whether this machine resolves it (`getent hosts`)"
    static let log = "Look into its log; the daemon's has the cause"
    static let noHTTP = "Look into its log, and check that its address is one of HTTP; the daemon's log has the cause"
    static let proxy = "Check `proxy` of the upstream, and the proxy's own log"
    static let runs = "Check that it runs, and host and port in its address"
    static let time = """
        Check that it runs, and that nothing on the way drops what goes there; `timeouts.connect` says how long is waited
        """
}

// MARK: What libcurl, or we, found

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
                    ? "this machine has no way to its address" : "it refuses the connection, or nothing listens there",
                Advice.runs,
                failure.systemError == ECONNREFUSED
                    ? "connection_refused" : failure.systemError == 0 ? nil : "destination_ip_unroutable")
        // libcurl has one code for both, and other words for the second.
        case .operationTimedOut where failure.text.hasPrefix("SSL connection timeout"):
            self.init(.timedOut, "its TLS handshake did not finish in time", Advice.time, "connection_timeout")
        case .operationTimedOut:
            self.init(.timedOut, "no connection came about in time", Advice.time, "connection_timeout")
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
                .protocolError, "its answer ended in the middle of its head, or is no HTTP", Advice.noHTTP, nil)
        case .tooLarge, .unsupportedProtocol, .writeError:
            self.init(.protocolError, "its answer is not HTTP as the standard has it", Advice.noHTTP, nil)
        default:
            self.init(.unreachable, "the transfer failed", Advice.log, nil)
        }
    }

    /// The reason for which a stream of HTTP/2 was reset (RFC 9113 §7), by the server or by us because of what it sent: by libcurl's words,
    /// `HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)`.
    private init(resetBy text: String) {
        let parts = text.split(separator: "(err ")
        switch parts.count == 2 ? Int(parts[1].prefix(while: \.isNumber)) : nil {
        // PROTOCOL_ERROR, FRAME_SIZE_ERROR, COMPRESSION_ERROR; none: the end of a stream in the middle of a head.
        case nil, 1, 6, 9:
            self.init(.protocolError, "its answer is not HTTP as the standard has it", Advice.log, nil)
        case 11:
            self.init(.unreachable, "it asks for fewer requests (ENHANCE_YOUR_CALM)", Advice.log, nil)
        case 12:
            let words = "it finds TLS as it was agreed on too weak for HTTP/2 (INADEQUATE_SECURITY)"
            self.init(.unreachable, words, Advice.log, nil)
        case 13:
            self.init(.unreachable, "it wants HTTP/1.1 for this request: set `http: 1.1`", Advice.log, nil)
        default:
            self.init(.unreachable, "it broke the request off", Advice.log, nil)
        }
    }

    /// The meaning where it was the proxy on the way that failed; `nil` where that did its part.
    private static func words(ofProxy failure: TransferFailure) -> String? {
        if failure.error == .couldNotResolveProxy { return "the name of the proxy on the way cannot be resolved" }
        guard failure.isProxied, !failure.wasConnected else { return nil }
        if let fault = failure.socksFault { return words(fault) }
        switch failure.error {
        case .couldNotConnect: return "the proxy on the way refuses the connection, or nothing listens there"
        case .receiveError where failure.proxyStatus == 407: return "the proxy on the way wants a login (407)"
        case .receiveError where failure.proxyStatus >= 300:
            return "the proxy on the way answered with \(failure.proxyStatus) and made no connection"
        case .operationTimedOut, .outOfMemory: return nil
        default: return "what answers at the address of the proxy on the way is no such proxy, or closed the connection"
        }
    }

    private static func words(_ fault: SOCKSFault) -> String {
        switch fault {
        case .notAllowed: "the proxy on the way does not allow it"
        case .noProxy: "what answers at the address of the proxy on the way is no such proxy, or closed the connection"
        case .refused: "it refused the connection from the proxy on the way"
        case .unreachable: "the proxy on the way cannot reach it, or does not know its name"
        case .wantsLogin: "the proxy on the way wants a login"
        case .other: "the proxy on the way made no connection"
        }
    }
}

// MARK: TLS

extension FailureMeaning {
    private init(_ fault: TLSFault) { self.init(.tls, fault.words, fault.remedy, fault.proxyError) }
}

extension TLSFault {
    /// The fault in words.
    fileprivate var words: String {
        switch self {
        case .alert(116):
            "it wants a client certificate (`tls.certificate` and `tls.key`)"
        case .alert(40):
            "it refused the handshake: it has no version and no cipher in common with us, or wants a client certificate"
        case .alert(45):
            "it says that our client certificate has expired"
        case .alert(let alert) where Self.isAboutCertificates(alert):
            "it does not accept our client certificate, or wants one (`tls.certificate`)"
        case .alert(112):
            "it knows no server of the name in `url`"
        case .alert(let alert):
            "it refused the handshake with alert \(alert)"
        case .authorities:
            "the authorities cannot be used: those of `tls.ca`, or the system's (package ca-certificates)"
        case .ownCertificate:
            "our client certificate or its key cannot be used, or they do not belong together"
        case .cutOff:
            "it ended the connection in the middle of the handshake"
        case .expired:
            "its certificate has expired, or one that leads from it to an authority has"
        case .noTLS:
            "what answers there speaks no TLS"
        case .notForServers:
            "its certificate is not one for servers"
        case .notYetValid:
            "its certificate is not valid yet, by this machine's clock"
        case .otherName:
            "its certificate is for another name than the one in `url`"
        case .pinMismatch:
            "its public key is none of those in `tls.pin`"
        case .revoked:
            "its certificate has been revoked"
        case .selfSigned:
            "its certificate is self-signed and not trusted here; `tls.ca` sets what is"
        case .unknown:
            "the daemon's log has the reason"
        case .unknownAuthority:
            "its certificate comes from an authority that is not trusted here (`tls.ca` sets which are), or it does not send "
                + "the certificates in between"
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

    /// The advice; empty where the words say it.
    fileprivate var remedy: String {
        switch self {
        case .alert(45): "Renew it (`tls.certificate`)"
        case .alert(112): "Check the host in its address"
        case .alert(116), .authorities, .selfSigned, .unknownAuthority, .version: ""
        case .alert:
            "`countersign doctor` shows its certificates; `tls.certificate` and `tls.minimum` are what we bring"
        case .ownCertificate: "Check `tls.certificate` and `tls.key`"
        case .cutOff: "Check its log, and that its address is one of HTTPS"
        case .expired: "Have it renewed there; `countersign doctor` shows its dates"
        case .noTLS: "Check the port in its address, or use http://"
        case .notForServers, .revoked, .weak: "Have it replaced there"
        case .notYetValid: "Compare this machine's clock with the server's (`countersign doctor` does)"
        case .otherName: "Use a name that the certificate has (`countersign doctor` shows them), or have it replaced"
        case .pinMismatch: "If the server's key was changed on purpose, set the new pin (`countersign doctor` shows it)"
        case .unknown: "`countersign doctor` tells more"
        }
    }
}
