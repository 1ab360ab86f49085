// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import Glibc

/// What to do about a transfer that failed. Like its fault it names no host, no address and no file.
extension TransferFailure {
    /// A sentence or two without the last full stop; empty where the fault's own words say it.
    var remedy: String {
        if let fault = TLSFault(self) { return fault.remedy }
        if error == .couldNotResolveProxy || isProxied && !wasConnected && error != .operationTimedOut {
            return "Check `proxy` of the upstream, and the proxy's own log"
        }
        switch error {
        case .couldNotResolveHost:
            return "Check the host in its address, and whether this machine resolves it (`getent hosts`)"
        case .couldNotConnect:
            return "Check that it runs, and host and port in its address"
        case .operationTimedOut:
            return
                "Check that it runs, and that nothing on the way drops what goes there; `timeouts.connect` says how long "
                + "is waited"
        case .weirdServerReply, .unsupportedProtocol, .writeError, .tooLarge:
            return "Look into its log, and check that its address is one of HTTP; the daemon's log has the cause"
        default:
            return "Look into its log; the daemon's has the cause"
        }
    }

    /// Whether nothing of the request can have arrived, so that sending it again does no harm.
    var isUnsent: Bool {
        !wasConnected && [.couldNotResolveHost, .couldNotResolveProxy, .couldNotConnect, .proxy].contains(error)
    }
}

extension TransferFailure {
    /// The error type of RFC 9209 §2.3, where one says more than that the upstream cannot be reached.
    var proxyError: String? {
        if let fault = TLSFault(self) { return fault.proxyError }
        guard !isProxied || wasConnected else { return nil }
        return switch error {
        case .couldNotResolveHost: "dns_error"
        case .couldNotConnect where systemError == ECONNREFUSED: "connection_refused"
        case .couldNotConnect where systemError != 0: "destination_ip_unroutable"
        case .operationTimedOut: "connection_timeout"
        case .gotNothing, .partialFile, .receiveError, .sendError: "connection_terminated"
        default: nil
        }
    }
}

extension TLSFault {
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

    /// The same; empty where the words say it.
    var remedy: String {
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
