// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// A connection that libcurl makes (names, the way out, TLS, pins) and that is then spoken on without it.
///
/// The handle's transfer ends well as soon as the connection is there, and the handle stays in the multi handle until
/// `MultiHandle.remove`, which closes it. libcurl does not watch the descriptor any more: that is for whoever speaks.
extension EasyHandle {
    /// Has the transfers to come end with a connection, always a new one, and no request.
    package func connectOnly() throws(CurlError) {
        try set(.connectOnly, true)
        keepsConnection = true
    }

    /// The connection's descriptor, or nil where there is none. It is libcurl's to close.
    package var activeSocket: Int32? {
        var socket = CURL_SOCKET_BAD
        let code = unsafe ccurl_get_socket(easy, CURLINFO_ACTIVESOCKET, &socket)
        return code == CURLE_OK && socket != CURL_SOCKET_BAD ? socket : nil
    }

    /// Sends from the front of `bytes`, and returns how many were taken; 0: none for now. Over TLS, bytes that were not
    /// taken must come again from the same place in memory, and not fewer (OpenSSL goes on with the record begun).
    package func send(_ bytes: UnsafeRawBufferPointer) throws(CurlError) -> Int {
        guard unsafe !bytes.isEmpty else { return 0 }
        var count = 0
        let code = unsafe curl_easy_send(easy, bytes.baseAddress, bytes.count, &count)
        if code == CURLE_AGAIN { return 0 }
        try CurlError.check(code)
        return count
    }

    /// Receives into `buffer`, which must not be empty, and returns how many bytes; 0: the peer has ended its side; nil:
    /// nothing for now. Over TLS bytes may wait here while the descriptor is not readable: ask until there is nothing.
    package func receive(into buffer: UnsafeMutableRawBufferPointer) throws(CurlError) -> Int? {
        var count = 0
        let code = unsafe curl_easy_recv(easy, buffer.baseAddress, buffer.count, &count)
        if code == CURLE_AGAIN { return nil }
        try CurlError.check(code)
        return count
    }
}
