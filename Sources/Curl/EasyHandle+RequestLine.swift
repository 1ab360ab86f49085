// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The request line, which libcurl sends as it was set: a line end in it would begin another request.
extension EasyHandle {
    /// Sets the request target to send instead of the URL's path and query.
    ///
    /// Throws `urlMalformed` unless the bytes are a path with an optional query, or `*` (RFC 9112 §3.2).
    package func setTarget(_ target: Span<UInt8>) throws(CurlError) {
        guard target.isRequestTarget else { throw .urlMalformed }
        try set(.requestTarget, bytes: target)
    }

    /// Sets the request target to send instead of the URL's path and query, as `setTarget(_:)` does.
    package func setTarget(_ target: String) throws(CurlError) {
        var target = target
        target.makeContiguousUTF8()
        try setTarget(target.utf8.span)
    }

    /// Sets the method, if no other option implies it. Throws `badFunctionArgument` unless it is a `token` (RFC 9110
    /// §9.1).
    package func setMethod(_ method: String) throws(CurlError) {
        guard method.utf8.isToken else { throw .badFunctionArgument }
        try set(.customRequest, method)
    }

    /// Resets the method to the one that other options imply.
    package func clearMethod() throws(CurlError) { try clear(.customRequest) }
}
