// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Length of a request's body (RFC 9112 §6.3).
public enum BodyFraming: Equatable, Sendable {
    /// No body.
    case none
    /// A number of bytes; at most `Int64.max`, the largest that files and libcurl can count.
    case length(UInt64)
    /// Chunks up to the last one (RFC 9112 §7.1).
    case chunked

    /// True if nothing follows the head; `Content-Length: 0` counts as no body.
    public var isEmpty: Bool { self == .none || self == .length(0) }
}

extension BodyFraming {
    /// Parses `Content-Length`: digits only, without plus or minus, list or overflow (RFC 9110 §8.6).
    static func length(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) -> UInt64 {
        guard !value.isEmpty else { throw .contentLengthInvalid }
        var length: UInt64 = 0
        var overflow = false
        for index in value.start..<value.end {
            guard bytes[index].isDigit else { throw .contentLengthInvalid }
            let (product, tooLarge) = length.multipliedReportingOverflow(by: 10)
            let (sum, larger) = product.addingReportingOverflow(UInt64(bytes[index] &- 0x30))
            overflow = overflow || tooLarge || larger
            length = sum
        }
        guard !overflow, length <= UInt64(Int64.max) else { throw .contentLengthTooLarge }
        return length
    }

    /// Checks that the `Transfer-Encoding` of a request is a single `chunked`, in any case.
    ///
    /// A well-formed list of other codings that ends in a single chunked is 501 (RFC 9112 §6.1). Everything else leaves
    /// the length open or unclear and is 400 (RFC 9112 §6.3).
    static func checkTransferEncoding(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) {
        if bytes.matches(value, ignoringCase: "chunked") { return }
        var elements = ListElements(value)
        var chunked = false
        var other = false
        // A trailing comma is an empty element: harmless in other lists, but here a hint that something is being
        // hidden.
        guard !value.isEmpty, bytes[value.end - 1] != UInt8(ascii: ","), bytes[value.start] != UInt8(ascii: ",") else {
            throw .transferEncodingInvalid
        }
        while let coding = try elements.next(in: bytes, orThrow: .transferEncodingInvalid) {
            guard !chunked, !bytes.matches(coding, ignoringCase: "identity") else { throw .transferEncodingInvalid }
            if bytes.matches(coding, ignoringCase: "chunked") { chunked = true } else { other = true }
        }
        throw chunked && other ? .transferEncodingUnknown : .transferEncodingInvalid
    }
}
