// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Connections that libcurl only establishes (names, proxies, TLS, pins).
///
/// The handle's transfer succeeds as soon as the connection exists, and the handle stays in the multi handle until
/// `MultiHandle.remove`, which closes the connection. libcurl no longer watches the descriptor; the user of the
/// connection must.
extension EasyHandle {
    /// Makes later transfers end with a new connection and without a request.
    package func connectOnly() throws(CurlError) {
        try set(.connectOnly, true)
        keepsConnection = true
    }

    /// Descriptor of the connection, or nil if there is none. libcurl closes it.
    package var activeSocket: Int32? {
        var socket = CURL_SOCKET_BAD
        let code = unsafe ccurl_get_socket(easy, CURLINFO_ACTIVESOCKET, &socket)
        return code == CURLE_OK && socket != CURL_SOCKET_BAD ? socket : nil
    }

    /// Sends from the front of `bytes`, and returns the number of bytes accepted; 0 if none can be now.
    ///
    /// Over TLS, bytes that were not accepted must be passed again from the same address, and no fewer of them, because
    /// OpenSSL continues the record that it began.
    package func send(_ bytes: UnsafeRawBufferPointer) throws(CurlError) -> Int {
        guard unsafe !bytes.isEmpty else { return 0 }
        var count = 0
        let code = unsafe curl_easy_send(easy, bytes.baseAddress, bytes.count, &count)
        if code == CURLE_AGAIN { return 0 }
        try CurlError.check(code)
        return count
    }

    /// Receives into `buffer`, which must not be empty, and returns the number of bytes.
    ///
    /// 0 means that the peer has closed its side, nil that nothing is available now. Over TLS, bytes may be available
    /// while the descriptor is not readable: call again until the result is nil.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws(CurlError) -> Int? {
        var count = 0
        let code = unsafe curl_easy_recv(easy, buffer.baseAddress, buffer.count, &count)
        if code == CURLE_AGAIN { return nil }
        try CurlError.check(code)
        return count
    }
}
