// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl

/// The reason why a TLS handshake failed. `FailureMeaning` has its texts.
enum TLSFault: Equatable {
    /// An alert of the server ended the handshake (RFC 8446 §6).
    case alert(Int)
    /// The configured CAs cannot be used.
    case authorities
    /// The client certificate or its key cannot be used.
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

    /// Creates the fault, or `nil` if `failure` is not about TLS.
    init?(_ failure: TransferFailure) {
        switch failure.error {
        case .sslPinnedKeyMismatch: self = .pinMismatch
        case .sslCAFile: self = .authorities
        case .sslCertificateProblem: self = .ownCertificate
        case .sslClientCertificate: self = .alert(116)
        case .peerFailedVerification where failure.text == "SSL certificate verification failed":
            // libcurl's text for the alert with which a server reports the client certificate as expired.
            self = .alert(45)
        case .peerFailedVerification, .sslIssuerError: self.init(verifyResult: failure.verifyResult)
        case .sslInvalidCertificateStatus: self = .revoked
        case .sslConnectError, .sslCipher: self.init(handshake: failure.text)
        case .receiveError, .sendError:
            // In TLS 1.3 a server refuses the client certificate after the client has completed the handshake (RFC 8446
            // §4.4.2.4). Any other loss of an established connection is not about TLS.
            guard let alert = Self.reason(in: failure.text).flatMap(Self.alert), Self.isAboutCertificates(alert)
            else { return nil }
            self = .alert(alert)
        default: return nil
        }
    }

    /// Creates the fault of OpenSSL's `X509_V_ERR_…`.
    private init(verifyResult: Int) {
        switch verifyResult {
        // The chain is valid; the only other check of libcurl is of the name.
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

    /// Creates the fault from the OpenSSL reason in libcurl's text.
    private init(handshake text: String) {
        guard let reason = Self.reason(in: text) else {
            // "SSL_connect: SSL_ERROR_SYSCALL in connection to …", or the system's text for a reset.
            self = text.isEmpty ? .unknown : .cutOff
            return
        }
        if let alert = Self.alert(reason) {
            self = alert == 70 ? .version : .alert(alert)
            return
        }
        switch reason {
        // https proxy request, http request, packet length too long, unexpected message, wrong version number, record
        // layer failure: the first bytes were not a TLS record.
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

    /// Returns the reason in `error:0A00010B:SSL routines::…`: the number after the library's, which is SSL's (20).
    private static func reason(in text: String) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let error = parts.firstIndex(where: { $0.hasSuffix("error") }), error + 1 < parts.count,
            let code = UInt32(parts[error + 1], radix: 16), code >> 23 & 0xFF == 20
        else { return nil }
        return Int(code & 0x7F_FFFF)
    }

    /// Returns the alert of an OpenSSL reason, which is numbered from 1000 on.
    private static func alert(_ reason: Int) -> Int? { (1000...1255).contains(reason) ? reason - 1000 : nil }

    static func isAboutCertificates(_ alert: Int) -> Bool {
        (41...46).contains(alert) || [48, 49, 51, 116].contains(alert)
    }
}
