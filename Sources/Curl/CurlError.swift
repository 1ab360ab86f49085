// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CCurl

/// Why a transfer, or a call for it, failed: a `CURLcode`. A struct, not an enumeration, for libcurl may add codes.
///
/// Each constant's comment has the name under which the manual of libcurl (libcurl-errors(3)) knows it.
package struct CurlError: Error, RawRepresentable, Hashable, Sendable {
    /// The number.
    package let rawValue: UInt32

    /// The error of that number.
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// `nil` for `CURLE_OK`.
    init?(code: CURLcode) {
        guard code != CURLE_OK else { return nil }
        rawValue = code.rawValue
    }

    /// Throws unless `code` is `CURLE_OK`.
    static func check(_ code: CURLcode) throws(CurlError) {
        if let error = CurlError(code: code) { throw error }
    }

    /// libcurl's words for it, in English.
    package var text: String {
        unsafe String(cString: curl_easy_strerror(CURLcode(rawValue: rawValue)))
    }

    /// Lets `catch CurlError.partialFile` match.
    package static func ~= (pattern: CurlError, error: any Error) -> Bool {
        error as? CurlError == pattern
    }
}

extension CurlError: CustomStringConvertible {
    /// Number and words: `7: Couldn't connect to server`.
    package var description: String { "\(rawValue): \(text)" }
}

extension CurlError {
    /// `CURLE_ABORTED_BY_CALLBACK`: the delegate did not want to go on.
    package static let abortedByCallback = CurlError(CURLE_ABORTED_BY_CALLBACK)
    /// `CURLE_BAD_FUNCTION_ARGUMENT`: also for bytes that we refuse to give to libcurl.
    package static let badFunctionArgument = CurlError(CURLE_BAD_FUNCTION_ARGUMENT)
    /// `CURLE_COULDNT_CONNECT`.
    package static let couldNotConnect = CurlError(CURLE_COULDNT_CONNECT)
    /// `CURLE_COULDNT_RESOLVE_HOST`.
    package static let couldNotResolveHost = CurlError(CURLE_COULDNT_RESOLVE_HOST)
    /// `CURLE_COULDNT_RESOLVE_PROXY`.
    package static let couldNotResolveProxy = CurlError(CURLE_COULDNT_RESOLVE_PROXY)
    /// `CURLE_FAILED_INIT`.
    package static let failedInit = CurlError(CURLE_FAILED_INIT)
    /// `CURLE_GOT_NOTHING`: the connection closed without an answer.
    package static let gotNothing = CurlError(CURLE_GOT_NOTHING)
    /// `CURLE_HTTP2`: a fault in the framing layer.
    package static let http2 = CurlError(CURLE_HTTP2)
    /// `CURLE_HTTP2_STREAM`: a fault of one stream.
    package static let http2Stream = CurlError(CURLE_HTTP2_STREAM)
    /// `CURLE_OPERATION_TIMEDOUT`.
    package static let operationTimedOut = CurlError(CURLE_OPERATION_TIMEDOUT)
    /// `CURLE_OUT_OF_MEMORY`.
    package static let outOfMemory = CurlError(CURLE_OUT_OF_MEMORY)
    /// `CURLE_PARTIAL_FILE`: the connection closed before the body was complete.
    package static let partialFile = CurlError(CURLE_PARTIAL_FILE)
    /// `CURLE_PEER_FAILED_VERIFICATION`: name, expiry or issuer of the certificate.
    package static let peerFailedVerification = CurlError(CURLE_PEER_FAILED_VERIFICATION)
    /// `CURLE_PROXY`: the handshake with a proxy.
    package static let proxy = CurlError(CURLE_PROXY)
    /// `CURLE_RECV_ERROR`.
    package static let receiveError = CurlError(CURLE_RECV_ERROR)
    /// `CURLE_SEND_ERROR`.
    package static let sendError = CurlError(CURLE_SEND_ERROR)
    /// `CURLE_SEND_FAIL_REWIND`: the body would have had to be sent again, and the delegate could not.
    package static let sendFailRewind = CurlError(CURLE_SEND_FAIL_REWIND)
    /// `CURLE_SSL_CACERT_BADFILE`: the file of authorities cannot be used.
    package static let sslCAFile = CurlError(CURLE_SSL_CACERT_BADFILE)
    /// `CURLE_SSL_CERTPROBLEM`: our own certificate.
    package static let sslCertificateProblem = CurlError(CURLE_SSL_CERTPROBLEM)
    /// `CURLE_SSL_CIPHER`.
    package static let sslCipher = CurlError(CURLE_SSL_CIPHER)
    /// `CURLE_SSL_CLIENTCERT`: the server wants a certificate.
    package static let sslClientCertificate = CurlError(CURLE_SSL_CLIENTCERT)
    /// `CURLE_SSL_CONNECT_ERROR`: the handshake, also with a peer that speaks no TLS.
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
    /// `CURLE_WEIRD_SERVER_REPLY`: not HTTP.
    package static let weirdServerReply = CurlError(CURLE_WEIRD_SERVER_REPLY)
    /// `CURLE_WRITE_ERROR`: the delegate did not want the bytes; also for content that cannot be decoded.
    package static let writeError = CurlError(CURLE_WRITE_ERROR)

    private init(_ code: CURLcode) {
        self.init(rawValue: code.rawValue)
    }
}

/// Why a call for many transfers failed: a `CURLMcode`. All of them are faults of the program or a lack of memory.
package struct MultiError: Error, RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number.
    package let rawValue: Int32

    /// The error of that number.
    package init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Number and libcurl's words.
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
