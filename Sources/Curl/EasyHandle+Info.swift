// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// Information about the last or current transfer.
extension EasyHandle {
    /// Status of the last response head; 0 if there was none.
    package var responseCode: Int { long(CURLINFO_RESPONSE_CODE) }

    /// HTTP version that was used, if any.
    package var httpVersion: HTTPVersion? {
        let value = long(CURLINFO_HTTP_VERSION)
        return value == 0 ? nil : HTTPVersion(rawValue: value)
    }

    /// True if the last transfer used HTTP/1.0 or HTTP/1.1.
    package var speaksHTTP1: Bool {
        let version = long(CURLINFO_HTTP_VERSION)
        return version == Int(CURL_HTTP_VERSION_1_0) || version == Int(CURL_HTTP_VERSION_1_1)
    }

    /// Socket that libcurl last watched for the transfer; -1 if none or closed.
    package var socket: Int32 { registry?.isOpen(box) == true ? box.socket : -1 }

    /// True if TLS holds unread data for the current transfer.
    ///
    /// Over HTTP/2, the data may belong to other transfers. False if this cannot be determined.
    package var hasUnreadTLS: Bool {
        guard let tlsPending = unsafe tlsPending else { return false }
        return unsafe ccurl_tls_pending(easy, tlsPending) > 0
    }

    /// Number of new connections; 0 means that a connection was reused.
    package var connectionCount: Int { long(CURLINFO_NUM_CONNECTS) }

    /// True if the last request that was sent announced a body of length 0.
    package var announcesNoBody: Bool {
        var length: curl_off_t = -1
        return unsafe ccurl_get_offset(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &length) == CURLE_OK && length == 0
    }

    /// Result of the server certificate's verification.
    ///
    /// 0 if valid, 1 if there was no certificate, otherwise one of OpenSSL's `X509_V_ERR_…`.
    package var verifyResult: Int { long(CURLINFO_SSL_VERIFYRESULT) }

    /// True if libcurl was built with a path of the system's CA file.
    package var hasAuthorities: Bool { unsafe ccurl_get_string(easy, CURLINFO_CAINFO) != nil }

    /// Status of a proxy's response to CONNECT; 0 if there was none.
    package var proxyStatus: Int { long(CURLINFO_HTTP_CONNECTCODE) }

    /// Failure reported by a SOCKS proxy, if any.
    package var socksFault: SOCKSFault? { SOCKSFault(code: long(CURLINFO_PROXY_ERROR)) }

    /// True if the last transfer had a connection, including TLS, and was about to send its request.
    package var wasConnected: Bool { box.wasConnected }

    /// `errno` of the last failed connection attempt; 0 if none failed.
    package var systemError: Int32 { Int32(truncatingIfNeeded: long(CURLINFO_OS_ERRNO)) }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        return unsafe ccurl_get_long(easy, info, &value) == CURLE_OK ? value : 0
    }
}

/// Looked up in the library that libcurl has loaded, so that only libcurl links against OpenSSL.
nonisolated(unsafe) private let tlsPending = unsafe dlsym(nil, "SSL_pending")

/// Certificate that a server presented, as libcurl describes it.
package struct ShownCertificate: Sendable, Equatable {
    /// Distinguished name of the subject: `CN = mfp.example.com`.
    package var subject = ""
    /// Distinguished name of the issuer.
    package var issuer = ""
    /// Subject alternative names, each as `DNS:…` or `IP Address:…`.
    package var names: [String] = []
    /// Certificate in PEM.
    package var pem = ""
}

extension EasyHandle {
    /// Certificates that the server presented in the last transfer, its own first.
    ///
    /// Empty if `certificateInfo` was not set, or if the handshake failed earlier.
    package var shownCertificates: [ShownCertificate] {
        guard let info = unsafe ccurl_get_certificates(easy) else { return [] }
        let count = Int(unsafe info.pointee.num_of_certs)
        guard count > 0, let lists = unsafe info.pointee.certinfo else { return [] }
        return (0..<min(count, Self.mostCertificates)).map { index in
            var certificate = ShownCertificate()
            var next = unsafe lists[index]
            while let entry = unsafe next {
                if let text = unsafe entry.pointee.data { unsafe certificate.take(String(cString: text)) }
                unsafe next = entry.pointee.next
            }
            return certificate
        }
    }

    /// Maximum length of a chain; longer ones are not in use.
    private static let mostCertificates = 16
}

extension ShownCertificate {
    /// Adds one line from libcurl: `Subject:CN = …`.
    fileprivate mutating func take(_ line: String) {
        guard let colon = line.firstIndex(of: ":") else { return }
        let value = String(line[line.index(after: colon)...])
        switch line[..<colon] {
        case "Subject": subject = value
        case "Issuer": issuer = value
        case "X509v3 Subject Alternative Name":
            names = value.split(separator: ",").map { String($0.drop { $0 == " " }) }
        case "Cert": pem = value
        default: break
        }
    }
}

/// Failure of a SOCKS proxy to connect (`CURLPX_…`, RFC 1928 §6).
package enum SOCKSFault: Sendable {
    /// The proxy's rules forbid the connection.
    case notAllowed
    /// The peer does not speak SOCKS, or closed the connection.
    case noProxy
    /// The upstream refused the proxy's connection.
    case refused
    /// The proxy cannot reach the upstream, or does not know its name.
    case unreachable
    /// The proxy requires a login.
    case wantsLogin
    /// Any other failure.
    case other

    /// Creates the fault of a code; nil if nothing failed.
    init?(code: Int) {
        guard code != CURLPX_OK.rawValue else { return nil }
        switch CURLproxycode(rawValue: UInt32(clamping: code)) {
        case CURLPX_BAD_VERSION, CURLPX_BAD_ADDRESS_TYPE, CURLPX_CLOSED, CURLPX_RECV_ADDRESS, CURLPX_RECV_AUTH,
            CURLPX_RECV_CONNECT, CURLPX_RECV_REQACK, CURLPX_SEND_AUTH, CURLPX_SEND_CONNECT, CURLPX_SEND_REQUEST:
            self = .noProxy
        case CURLPX_NO_AUTH, CURLPX_USER_REJECTED: self = .wantsLogin
        case CURLPX_REPLY_CONNECTION_REFUSED: self = .refused
        // Proxies report "general failure" for unresolvable names too.
        case CURLPX_REPLY_GENERAL_SERVER_FAILURE, CURLPX_REPLY_HOST_UNREACHABLE, CURLPX_REPLY_NETWORK_UNREACHABLE,
            CURLPX_REPLY_TTL_EXPIRED:
            self = .unreachable
        case CURLPX_REPLY_NOT_ALLOWED: self = .notAllowed
        default: self = .other
        }
    }
}
