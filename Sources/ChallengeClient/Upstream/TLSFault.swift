// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl

/// The reason for which a TLS handshake failed. `FailureMeaning` says it in words.
enum TLSFault: Equatable {
    /// The server ended the handshake with this alert (RFC 8446 §6).
    case alert(Int)
    /// The authorities of the configuration cannot be used.
    case authorities
    /// Our own certificate or key cannot be used.
    case ownCertificate
    /// The connection ended in the middle of the handshake.
    case cutOff
    case expired
    case noTLS
    case notForServers
    case notYetValid
    case otherName
    case pinMismatch
    case revoked
    case selfSigned
    case unknown
    case unknownAuthority
    case version
    case weak

    /// `nil` for a failure that is not one of TLS.
    init?(_ failure: TransferFailure) {
        switch failure.error {
        case .sslPinnedKeyMismatch: self = .pinMismatch
        case .sslCAFile: self = .authorities
        case .sslCertificateProblem: self = .ownCertificate
        case .sslClientCertificate: self = .alert(116)
        case .peerFailedVerification where failure.text == "SSL certificate verification failed":
            // What libcurl says of the alert by which a server calls our own certificate expired.
            self = .alert(45)
        case .peerFailedVerification, .sslIssuerError: self.init(verifyResult: failure.verifyResult)
        case .sslInvalidCertificateStatus: self = .revoked
        case .sslConnectError, .sslCipher: self.init(handshake: failure.text)
        case .receiveError, .sendError:
            // In TLS 1.3 a server that does not like our certificate says so when the handshake is over for us (RFC 8446
            // §4.4.2.4). Any other loss of a connection that stood is none of TLS.
            guard let alert = Self.reason(in: failure.text).flatMap(Self.alert), Self.isAboutCertificates(alert)
            else { return nil }
            self = .alert(alert)
        default: return nil
        }
    }

    /// By OpenSSL's `X509_V_ERR_…`.
    private init(verifyResult: Int) {
        switch verifyResult {
        // The chain is not what failed; all that libcurl looks at behind it is the name.
        case 0, 1, 62, 64: self = .otherName
        case 9: self = .notYetValid
        case 10: self = .expired
        case 18: self = .selfSigned
        case 23: self = .revoked
        case 26, 79: self = .notForServers
        case 66, 67, 68: self = .weak
        default: self = .unknownAuthority
        }
    }

    /// By the reason that OpenSSL gives within libcurl's words.
    private init(handshake text: String) {
        guard let reason = Self.reason(in: text) else {
            // "SSL_connect: SSL_ERROR_SYSCALL in connection to …", or the system's words for a reset.
            self = text.isEmpty ? .unknown : .cutOff
            return
        }
        if let alert = Self.alert(reason) {
            self = alert == 70 ? .version : .alert(alert)
            return
        }
        switch reason {
        // https proxy request, http request, packet length too long, unexpected message, wrong version number,
        // record layer failure: what came first was no record of TLS.
        case 155, 156, 198, 244, 267, 313: self = .noTLS
        // no protocols available, unsupported protocol, legacy sigalg disallowed or unsupported (TLS 1.1 and before).
        case 191, 258, 333: self = .version
        // unexpected eof while reading.
        case 294: self = .cutOff
        // dh key too small, ee, ca key too small, ca md too weak.
        case 394, 396, 397, 398, 399: self = .weak
        default: self = .unknown
        }
    }

    /// The reason of `error:0A00010B:SSL routines::…`: the number after the library's, which is SSL's (20).
    private static func reason(in text: String) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let error = parts.firstIndex(where: { $0.hasSuffix("error") }), error + 1 < parts.count,
            let code = UInt32(parts[error + 1], radix: 16), code >> 23 & 0xFF == 20
        else { return nil }
        return Int(code & 0x7F_FFFF)
    }

    /// OpenSSL numbers the alerts that it is sent from 1000 on.
    private static func alert(_ reason: Int) -> Int? { (1000...1255).contains(reason) ? reason - 1000 : nil }

    static func isAboutCertificates(_ alert: Int) -> Bool {
        (41...46).contains(alert) || [48, 49, 51, 116].contains(alert)
    }
}
