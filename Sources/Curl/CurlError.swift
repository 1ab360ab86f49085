// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Failure of a transfer or of a call for one: a `CURLcode`.
///
/// A struct rather than an enum, because libcurl may add codes. Each constant's comment has the name under which
/// libcurl-errors(3) lists the code.
package struct CurlError: Error, RawRepresentable, Hashable, Sendable {
    /// Number of the code.
    package let rawValue: UInt32

    /// Creates the error with that number.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// Creates the error of a code; nil for `CURLE_OK`.
    init?(code: CURLcode) {
        guard code != CURLE_OK else { return nil }
        rawValue = code.rawValue
    }

    /// Throws unless `code` is `CURLE_OK`.
    static func check(_ code: CURLcode) throws(CurlError) {
        if let error = CurlError(code: code) { throw error }
    }

    /// libcurl's English text for the code.
    package var text: String {
        unsafe String(cString: curl_easy_strerror(CURLcode(rawValue: rawValue)))
    }

    /// Makes `catch CurlError.partialFile` match.
    package static func ~= (pattern: CurlError, error: any Error) -> Bool {
        error as? CurlError == pattern
    }
}

extension CurlError: CustomStringConvertible {
    /// Number and text: `7: Couldn't connect to server`.
    package var description: String { "\(rawValue): \(text)" }
}

extension CurlError {
    /// `CURLE_ABORTED_BY_CALLBACK`: the delegate aborted the transfer.
    package static let abortedByCallback = CurlError(CURLE_ABORTED_BY_CALLBACK)
    /// `CURLE_BAD_FUNCTION_ARGUMENT`, also for bytes that must not be passed to libcurl.
    package static let badFunctionArgument = CurlError(CURLE_BAD_FUNCTION_ARGUMENT)
    /// `CURLE_COULDNT_CONNECT`.
    package static let couldNotConnect = CurlError(CURLE_COULDNT_CONNECT)
    /// `CURLE_COULDNT_RESOLVE_HOST`.
    package static let couldNotResolveHost = CurlError(CURLE_COULDNT_RESOLVE_HOST)
    /// `CURLE_COULDNT_RESOLVE_PROXY`.
    package static let couldNotResolveProxy = CurlError(CURLE_COULDNT_RESOLVE_PROXY)
    /// `CURLE_FAILED_INIT`.
    package static let failedInit = CurlError(CURLE_FAILED_INIT)
    /// `CURLE_GOT_NOTHING`: the connection closed without a response.
    package static let gotNothing = CurlError(CURLE_GOT_NOTHING)
    /// `CURLE_HTTP2`: an error in the framing layer.
    package static let http2 = CurlError(CURLE_HTTP2)
    /// `CURLE_HTTP2_STREAM`: an error of one stream.
    package static let http2Stream = CurlError(CURLE_HTTP2_STREAM)
    /// `CURLE_OPERATION_TIMEDOUT`.
    package static let operationTimedOut = CurlError(CURLE_OPERATION_TIMEDOUT)
    /// `CURLE_OUT_OF_MEMORY`.
    package static let outOfMemory = CurlError(CURLE_OUT_OF_MEMORY)
    /// `CURLE_PARTIAL_FILE`: the connection closed before the body was complete.
    package static let partialFile = CurlError(CURLE_PARTIAL_FILE)
    /// `CURLE_PEER_FAILED_VERIFICATION`: name, expiry or issuer of the certificate.
    package static let peerFailedVerification = CurlError(CURLE_PEER_FAILED_VERIFICATION)
    /// `CURLE_PROXY`: the handshake with a proxy failed.
    package static let proxy = CurlError(CURLE_PROXY)
    /// `CURLE_RECV_ERROR`.
    package static let receiveError = CurlError(CURLE_RECV_ERROR)
    /// `CURLE_SEND_ERROR`.
    package static let sendError = CurlError(CURLE_SEND_ERROR)
    /// `CURLE_SEND_FAIL_REWIND`: the body had to be sent again, and the delegate could not rewind.
    package static let sendFailRewind = CurlError(CURLE_SEND_FAIL_REWIND)
    /// `CURLE_SSL_CACERT_BADFILE`: the CA file is unusable.
    package static let sslCAFile = CurlError(CURLE_SSL_CACERT_BADFILE)
    /// `CURLE_SSL_CERTPROBLEM`: a problem with the client certificate.
    package static let sslCertificateProblem = CurlError(CURLE_SSL_CERTPROBLEM)
    /// `CURLE_SSL_CIPHER`.
    package static let sslCipher = CurlError(CURLE_SSL_CIPHER)
    /// `CURLE_SSL_CLIENTCERT`: the server requires a client certificate.
    package static let sslClientCertificate = CurlError(CURLE_SSL_CLIENTCERT)
    /// `CURLE_SSL_CONNECT_ERROR`: the TLS handshake failed, also with a peer that does not speak TLS.
    package static let sslConnectError = CurlError(CURLE_SSL_CONNECT_ERROR)
    /// `CURLE_SSL_INVALIDCERTSTATUS`.
    package static let sslInvalidCertificateStatus = CurlError(CURLE_SSL_INVALIDCERTSTATUS)
    /// `CURLE_SSL_ISSUER_ERROR`.
    package static let sslIssuerError = CurlError(CURLE_SSL_ISSUER_ERROR)
    /// `CURLE_SSL_PINNEDPUBKEYNOTMATCH`.
    package static let sslPinnedKeyMismatch = CurlError(CURLE_SSL_PINNEDPUBKEYNOTMATCH)
    /// `CURLE_TOO_LARGE`: a field or the head is too large for libcurl.
    package static let tooLarge = CurlError(rawValue: 100)
    /// `CURLE_UNSUPPORTED_PROTOCOL`.
    package static let unsupportedProtocol = CurlError(CURLE_UNSUPPORTED_PROTOCOL)
    /// `CURLE_URL_MALFORMAT`.
    package static let urlMalformed = CurlError(CURLE_URL_MALFORMAT)
    /// `CURLE_WEIRD_SERVER_REPLY`: the peer does not speak HTTP.
    package static let weirdServerReply = CurlError(CURLE_WEIRD_SERVER_REPLY)
    /// `CURLE_WRITE_ERROR`: the delegate refused the bytes, or the content could not be decoded.
    package static let writeError = CurlError(CURLE_WRITE_ERROR)

    private init(_ code: CURLcode) {
        self.init(rawValue: code.rawValue)
    }
}

/// Failure of a call for many transfers: a `CURLMcode`.
///
/// Always a programming error or a lack of memory.
package struct MultiError: Error, RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// Number of the code.
    package let rawValue: Int32

    /// Creates the error with that number.
    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Number and libcurl's text.
    package var description: String {
        unsafe "\(rawValue): \(String(cString: curl_multi_strerror(CURLMcode(rawValue: rawValue))))"
    }

    /// Throws unless `code` is `CURLM_OK`.
    static func check(_ code: CURLMcode) throws(MultiError) {
        if code != CURLM_OK { throw MultiError(rawValue: code.rawValue) }
    }

    /// `CURLM_OUT_OF_MEMORY`.
    package static let outOfMemory = MultiError(rawValue: CURLM_OUT_OF_MEMORY.rawValue)
}
