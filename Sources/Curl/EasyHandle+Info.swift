// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl
internal import Glibc

/// What is known of the last transfer, or of the one under way.
extension EasyHandle {
    /// The status of the last head, 0 if there was none.
    package var responseCode: Int { long(CURLINFO_RESPONSE_CODE) }

    /// The version that was spoken, if any was.
    package var httpVersion: HTTPVersion? {
        let value = long(CURLINFO_HTTP_VERSION)
        return value == 0 ? nil : HTTPVersion(rawValue: value)
    }

    /// True if the last transfer was over HTTP/1.0 or 1.1.
    package var speaksHTTP1: Bool {
        let version = long(CURLINFO_HTTP_VERSION)
        return version == Int(CURL_HTTP_VERSION_1_0) || version == Int(CURL_HTTP_VERSION_1_1)
    }

    /// The socket that libcurl last watched for the transfer, until it is closed; -1: none.
    package var socket: Int32 { ledger?.isOpen(box) == true ? box.socket : -1 }

    /// True if TLS has something more for the transfer under way that is not read yet; also for others, over HTTP/2. False where
    /// it cannot be told.
    package var hasUnreadTLS: Bool {
        guard let tlsPending = unsafe tlsPending else { return false }
        return unsafe ccurl_tls_pending(easy, tlsPending) > 0
    }

    /// How many new connections it took: 0 means that one was used again.
    package var connectionCount: Int { long(CURLINFO_NUM_CONNECTS) }

    /// True if the request that was sent last has a body of length 0, whatever the transfer is to send.
    package var announcesNoBody: Bool {
        var length: curl_off_t = -1
        return unsafe ccurl_get_offset(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &length) == CURLE_OK && length == 0
    }

    /// What the check of the server's certificate came to: 0 for good, 1 where there was none, else one of OpenSSL's
    /// `X509_V_ERR_…`.
    package var verifyResult: Int { long(CURLINFO_SSL_VERIFYRESULT) }

    /// True if libcurl was built with a file of the system's authorities.
    package var hasAuthorities: Bool { unsafe ccurl_get_string(easy, CURLINFO_CAINFO) != nil }

    /// The status of a proxy's answer to CONNECT, 0 if there was none.
    package var proxyStatus: Int { long(CURLINFO_HTTP_CONNECTCODE) }

    /// What went wrong with a SOCKS proxy, if anything did.
    package var socksFault: SOCKSFault? { SOCKSFault(code: long(CURLINFO_PROXY_ERROR)) }

    /// True if the last transfer had a connection, TLS included, and its request was about to be sent.
    package var wasConnected: Bool { box.wasConnected }

    /// The `errno` of the last attempt to connect that failed, 0 if none did.
    package var systemError: Int32 { Int32(truncatingIfNeeded: long(CURLINFO_OS_ERRNO)) }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        return unsafe ccurl_get_long(easy, info, &value) == CURLE_OK ? value : 0
    }
}

/// Looked up in what libcurl has brought along, so that nothing links against OpenSSL but libcurl.
nonisolated(unsafe) private let tlsPending = unsafe dlsym(nil, "SSL_pending")
