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
    package var speaksHTTP1: Bool {
        let version = long(CURLINFO_HTTP_VERSION)
        return version == Int(CURL_HTTP_VERSION_1_0) || version == Int(CURL_HTTP_VERSION_1_1)
    }

    /// The socket that libcurl last watched for the transfer, until it is closed; -1: none.
    package var socket: Int32 { ledger?.isOpen(box) == true ? box.socket : -1 }

    /// How many new connections it took: 0 means that one was used again.
    package var connectionCount: Int { long(CURLINFO_NUM_CONNECTS) }

    private func long(_ info: CURLINFO) -> Int {
        var value = 0
        return unsafe ccurl_get_long(easy, info, &value) == CURLE_OK ? value : 0
    }
}
