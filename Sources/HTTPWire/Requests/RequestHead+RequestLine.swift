// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension RequestHead {
    /// Methods longer than this are refused rather than forwarded (RFC 9112 section 3).
    private static let methodLimit = 64

    /// `method SP request-target SP HTTP-version` with exactly one space each (RFC 9112 section 3), without its CRLF.
    @inline(__always)
    mutating func parseRequestLine(_ bytes: Span<UInt8>, from start: Int, to end: Int) throws(WireErrorCode) {
        let index = bytes.endOfToken(from: start, to: end)
        guard index > start, index < end, bytes[index] == .space else { throw .requestLineInvalid }
        guard index - start <= RequestHead.methodLimit else { throw .methodTooLong }
        methodRange = ByteRange(start: start, end: index)
        method = RequestMethod(bytes, methodRange)
        target = try RequestTarget(bytes, from: index + 1, to: end, method: method)
        version = try RequestHead.version(bytes, from: target.range.end + 1, to: end)
    }

    /// RFC 9112 section 2.3: `HTTP/`, in capitals, a digit, a dot, a digit.
    @inline(__always)
    private static func version(
        _ bytes: Span<UInt8>, from start: Int, to end: Int
    ) throws(WireErrorCode) -> HTTPVersion {
        guard start < end, bytes[start] != .space else { throw .requestLineInvalid }
        guard end - start == 8, bytes.matches(ByteRange(start: start, end: start + 5), exactly: "HTTP/"),
            bytes[start + 5].isDigit, bytes[start + 6] == UInt8(ascii: "."), bytes[start + 7].isDigit
        else { throw .versionInvalid }
        guard bytes[start + 5] == UInt8(ascii: "1") else { throw .versionUnsupported }
        // RFC 9110 section 2.5: a later minor version is read as the highest that is known.
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }
}
