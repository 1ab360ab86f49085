// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Takes apart a response's head as libcurl's header callback delivered it: raw lines, one after the other, the status
/// line first.
///
/// libcurl frames the body and is lenient about the head; what is forwarded must not be. Every fault is a 502. The memory
/// of the field table is used again at the next scan.
public struct ResponseHeadScanner: Sendable {
    /// The head, of use after `scan` returned.
    public private(set) var head = ResponseHead()
    private let limits: HeadLimits

    /// A scanner that refuses what is beyond `limits`.
    public init(limits: HeadLimits = HeadLimits(head: 262_144, fieldCount: 256)) {
        self.limits = limits
    }

    /// Reads one whole head, of an interim response or the final one; the empty line at its end may be there or not.
    public mutating func scan(_ bytes: Span<UInt8>) throws(WireError) {
        head.reset()
        do throws(WireErrorCode) {
            try lines(of: bytes)
            try finish(in: bytes)
        } catch {
            throw WireError(upstream: error)
        }
    }

    @inline(__always)
    private mutating func lines(of bytes: Span<UInt8>) throws(WireErrorCode) {
        guard bytes.count <= limits.head else { throw .headTooLarge }
        var position = 0
        while position < bytes.count {
            guard let lineFeed = bytes.firstLineFeed(from: position) else { throw .bareLineFeed }
            guard lineFeed > position, bytes[lineFeed - 1] == .carriageReturn else { throw .bareLineFeed }
            let end = lineFeed - 1
            if position == 0 {
                try head.parseStatusLine(bytes, to: end)
            } else if end == position {
                // Nothing may follow the empty line.
                guard lineFeed + 1 == bytes.count else { throw .fieldNameInvalid }
            } else {
                // RFC 9112 section 5.2: a folded line is a 502 or must be unfolded; the former tells somebody.
                guard !bytes[position].isBlank else {
                    throw head.fields.isEmpty ? .fieldLeadingSpace : .fieldsFolded
                }
                guard head.fields.count < limits.fieldCount else { throw .fieldsTooMany }
                try head.add(FieldLine(bytes, from: position, to: end), in: bytes)
            }
            position = lineFeed + 1
        }
        guard head.status > 0 else { throw .statusLineInvalid }
    }

    @inline(__always)
    private mutating func finish(in bytes: Span<UInt8>) throws(WireErrorCode) {
        if head.isChunked {
            // RFC 9112 section 6.1: framing that HTTP/1.0 does not have. Section 6.3: both might be response splitting.
            guard head.majorVersion == 1, head.minorVersion > 0 else { throw .transferEncodingOldVersion }
            guard head.contentLength == nil else { throw .lengthAndEncoding }
        }
        head.connection.mark(&head.fields, in: bytes)
    }
}

extension ResponseHead {
    /// `HTTP/1.1 SP 3DIGIT SP [ reason ]` (RFC 9112 section 4). The space behind the digits may be missing, as many
    /// servers have it. libcurl writes `HTTP/2` and `HTTP/3` for the later versions.
    @inline(__always)
    fileprivate mutating func parseStatusLine(_ bytes: Span<UInt8>, to end: Int) throws(WireErrorCode) {
        guard end >= 10, bytes.matches(ByteRange(start: 0, end: 5), exactly: "HTTP/"), bytes[5].isDigit else {
            throw .statusLineInvalid
        }
        majorVersion = Int(bytes[5] &- 0x30)
        var index = 6
        minorVersion = 0
        if bytes[6] == UInt8(ascii: "."), bytes[7].isDigit {
            minorVersion = Int(bytes[7] &- 0x30)
            index = 8
        }
        guard (1...3).contains(majorVersion), majorVersion > 1 || index == 8, index + 4 <= end,
            bytes[index] == .space
        else { throw .statusLineInvalid }
        var code = 0
        for position in index + 1..<index + 4 {
            guard bytes[position].isDigit else { throw .statusLineInvalid }
            code = code * 10 + Int(bytes[position] &- 0x30)
        }
        guard code >= 100 else { throw .statusLineInvalid }
        status = code
        index += 4
        guard index < end else { return }
        guard bytes[index] == .space else { throw .statusLineInvalid }
        for position in index + 1..<end where !bytes[position].isFieldValue { throw .statusLineInvalid }
        reason = ByteRange(start: index + 1, end: end)
    }

    fileprivate mutating func add(_ line: FieldLine, in bytes: Span<UInt8>) throws(WireErrorCode) {
        fields.append(line)
        switch line.kind {
        case .contentLength:
            try addLength(bytes, line.value)
        case .transferEncoding:
            // We never send TE, so nothing but chunked may come (RFC 9110 section 10.1.4).
            guard !isChunked, bytes.matches(line.value, ignoringCase: "chunked") else {
                throw .transferEncodingInvalid
            }
            isChunked = true
        case .connection:
            try connection.add(bytes, line.value)
        default:
            break
        }
    }

    /// RFC 9110 section 8.6: identical repeats, as lines or as a list, may be taken for one; anything else is invalid.
    @inline(__always)
    private mutating func addLength(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) {
        var elements = ListElements(value)
        var count = 0
        while let element = try elements.next(in: bytes, orThrow: .contentLengthInvalid) {
            count += 1
            let length = try BodyFraming.length(bytes, element)
            guard contentLength == nil || contentLength == length else { throw .contentLengthRepeated }
            contentLength = length
        }
        guard count > 0 else { throw .contentLengthInvalid }
    }
}
