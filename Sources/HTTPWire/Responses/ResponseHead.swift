// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Head of an upstream's response, as ranges of the scanned bytes.
public struct ResponseHead: Sendable {
    /// Status code, 100 to 999.
    public internal(set) var status = 0
    /// Major version: 1, or 2 and 3 as libcurl writes them.
    public internal(set) var majorVersion = 1
    /// Minor version; 0 if the message has none.
    public internal(set) var minorVersion = 1
    /// Reason phrase; may be empty.
    public internal(set) var reason = ByteRange.empty
    /// Field lines, in order.
    public internal(set) var fields: [FieldLine] = []
    /// Value of `Content-Length`, which identical fields may repeat.
    ///
    /// In responses to HEAD and in 304 this is the length of a body that is not sent.
    public internal(set) var contentLength: UInt64?
    /// True if the body is chunked.
    public internal(set) var isChunked = false
    var connection = ConnectionOptions()

    /// True if the upstream closes the connection after this response.
    public var closes: Bool { connection.close }

    /// True if this is an interim response, followed by another head (RFC 9110 §15.2).
    ///
    /// 101 counts as final, because the bytes after it are no longer HTTP.
    public var isInterim: Bool { status < 200 && status != 101 }

    /// Returns true if `Connection` nominates a trailer field, which is then not forwarded.
    ///
    /// RFC 9110 §7.6.1; `bytes` are those of the head.
    public func nominates(trailer name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        connection.names(name, in: bytes)
    }

    /// Returns the first field line of that kind.
    public func first(_ kind: FieldName) -> FieldLine? {
        for index in fields.indices where fields[index].kind == kind { return fields[index] }
        return nil
    }

    /// Empties the head property by property, to retain the memory of its tables.
    @inline(__always)
    mutating func reset() {
        fields.removeAll(keepingCapacity: true)
        connection.removeAll()
        status = 0
        majorVersion = 1
        minorVersion = 1
        reason = .empty
        contentLength = nil
        isChunked = false
    }
}

/// Strict scanner of a response's head: raw lines, the status line first.
///
/// libcurl's header callback delivers the lines. libcurl frames the body and is lenient about the head, but only a
/// valid head may be forwarded: every fault is a 502. The memory of the field table is reused by the next scan.
public struct ResponseHeadScanner: Sendable {
    /// The head; valid after `scan` has returned.
    public private(set) var head = ResponseHead()
    private let limits: HeadLimits

    /// Creates a scanner that refuses heads beyond `limits`.
    public init(limits: HeadLimits = HeadLimits(head: 262_144, fieldCount: 256)) {
        self.limits = limits
    }

    /// Scans one complete head, interim or final, with or without its final empty line.
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
                // RFC 9112 §5.2: a folded line is a 502 or must be unfolded; a 502 makes the fault visible.
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
            // RFC 9112 §6.1: HTTP/1.0 does not have this framing. RFC 9112 §6.3: both together might be response
            // splitting.
            guard head.majorVersion == 1, head.minorVersion > 0 else { throw .transferEncodingOldVersion }
            guard head.contentLength == nil else { throw .lengthAndEncoding }
        }
        head.connection.mark(&head.fields, in: bytes)
    }
}

extension ResponseHead {
    /// Parses `HTTP/1.1 SP 3DIGIT SP [ reason ]` (RFC 9112 §4).
    ///
    /// The space after the digits may be missing, as many servers omit it. libcurl writes `HTTP/2` and `HTTP/3` for
    /// later versions.
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
            // No TE is ever sent, so only chunked may come (RFC 9110 §10.1.4).
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

    /// Adds a `Content-Length`; only identical repeats, as lines or as a list, are accepted (RFC 9110 §8.6).
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
