// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// What is known of the last transfer, or of the one under way.
extension EasyHandle {
    /// The status of the last head, 0 if there was none.
    package var responseCode: Int { long(CURLINFO_RESPONSE_CODE) }

    /// The version that was spoken, if any was.
    package var httpVersion: HTTPVersion? {
        let value = long(CURLINFO_HTTP_VERSION)
        return value == 0 ? nil : HTTPVersion(rawValue: value)
    }

    /// Whether the last transfer was over HTTP/1.0 or 1.1.
    var speaksHTTP1: Bool {
        [Int(CURL_HTTP_VERSION_1_0), Int(CURL_HTTP_VERSION_1_1)].contains(long(CURLINFO_HTTP_VERSION))
    }

    /// How many new connections it took: 0 means that one was used again.
    package var connectionCount: Int { long(CURLINFO_NUM_CONNECTS) }

    /// The error number of the connection attempt that failed, 0 if none did.
    package var osErrno: Int32 { Int32(truncatingIfNeeded: long(CURLINFO_OS_ERRNO)) }

    /// What OpenSSL said of the certificate (`X509_V_*`); 0: good, or not looked at.
    package var sslVerifyResult: Int { long(CURLINFO_SSL_VERIFYRESULT) }

    /// Bytes of the request's body that were sent.
    package var uploaded: Int64 { offset(CURLINFO_SIZE_UPLOAD_T) }

    /// Bytes of the response's body that came.
    package var downloaded: Int64 { offset(CURLINFO_SIZE_DOWNLOAD_T) }

    /// How long the last transfer took, from `add` to its end.
    package var totalTime: Duration { .microseconds(offset(CURLINFO_TOTAL_TIME_T)) }

    /// The address that it was connected to, without the port.
    package var peerAddress: String? {
        unsafe ccurl_get_string(easy, CURLINFO_PRIMARY_IP).map { unsafe String(cString: $0) }
    }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        return unsafe ccurl_get_long(easy, info, &value) == CURLE_OK ? value : 0
    }

    private func offset(_ info: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        return unsafe ccurl_get_offset(easy, info, &value) == CURLE_OK ? Int64(value) : 0
    }
}
