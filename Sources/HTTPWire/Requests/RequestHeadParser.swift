// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Incremental parser of a request's head.
///
/// Pass all bytes since the end of the previous message on each call: the parser remembers how far it has scanned, so a
/// head that arrives byte by byte takes time proportional to its length. The memory of the field table is reused after
/// `reset()`. Read `head` in place, because a copy of it would cost that memory at the next request.
public struct RequestHeadParser: Sendable {
    /// Result of a call.
    public enum Outcome: Equatable, Sendable {
        /// The head has not ended yet.
        case incomplete
        /// Complete head of `length` bytes, including empty lines before it; the body starts there.
        case complete(length: Int)
        /// The head breaks a rule. Nothing later on the connection can be trusted.
        case refused(WireError)
    }

    private enum Stage {
        case emptyLines, requestLine, fields
        case ended(Outcome)
    }

    /// The head; valid once the outcome is `complete`.
    public private(set) var head = RequestHead()

    private let limits: HeadLimits
    private var stage = Stage.emptyLines
    private var headStart = 0
    private var lineStart = 0
    private var scanned = 0

    /// Creates a parser that refuses heads beyond `limits`.
    public init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
    }

    /// True if no byte of a request has been seen, so that the input may end cleanly.
    public var isIdle: Bool {
        if case .emptyLines = stage { scanned == 0 } else { false }
    }

    /// Discards the request, to parse the next one.
    public mutating func reset() {
        head.reset()
        stage = .emptyLines
        headStart = 0
        lineStart = 0
        scanned = 0
    }

    /// Parses the bytes added since the last call; `bytes` starts with those of the last call.
    public mutating func parse(_ bytes: Span<UInt8>) -> Outcome {
        if case .ended(let outcome) = stage { return outcome }
        do throws(WireErrorCode) {
            guard let length = try advance(bytes) else { return .incomplete }
            stage = .ended(.complete(length: length))
            return .complete(length: length)
        } catch {
            stage = .ended(.refused(WireError(error)))
            return .refused(WireError(error))
        }
    }

    @inline(__always)
    private mutating func advance(_ bytes: Span<UInt8>) throws(WireErrorCode) -> Int? {
        while true {
            if case .emptyLines = stage {
                guard try skipEmptyLines(bytes) else { return nil }
                stage = .requestLine
            }
            guard let lineFeed = bytes.firstLineFeed(from: scanned) else {
                scanned = max(scanned, bytes.count)
                try checkLimits(reached: bytes.count, lineEnd: bytes.count)
                return nil
            }
            try checkLimits(reached: lineFeed + 1, lineEnd: lineFeed)
            // RFC 9112 §2.2 permits a lone LF as the end of a line, but an attacker can exploit peers that disagree
            // about it. Also covers the first byte of a line.
            guard lineFeed > lineStart, bytes[lineFeed - 1] == .carriageReturn else { throw .bareLineFeed }
            let start = lineStart
            scanned = lineFeed + 1
            lineStart = scanned
            if case .requestLine = stage {
                try head.parseRequestLine(bytes, from: start, to: lineFeed - 1)
                stage = .fields
            } else if start == lineFeed - 1 {
                try head.finish(in: bytes)
                return scanned
            } else {
                try addField(bytes, from: start, to: lineFeed - 1)
            }
        }
    }

    /// Skips up to two empty lines before the request line, because old clients send one after a body.
    ///
    /// RFC 9112 §2.2 says that at least one should be ignored. A third one, or any other white space, is refused.
    @inline(__always)
    private mutating func skipEmptyLines(_ bytes: Span<UInt8>) throws(WireErrorCode) -> Bool {
        while scanned < bytes.count {
            let byte = bytes[scanned]
            if scanned % 2 == 1 {
                guard byte == .lineFeed else { throw .requestLineInvalid }
            } else if byte == .carriageReturn, scanned < 4 {
                // The LF is next.
            } else {
                // Refuses a TLS handshake or garbage at the first byte rather than at the end of some line.
                guard byte != .lineFeed else { throw .bareLineFeed }
                guard ByteClass.token.contains(byte) else { throw .requestLineInvalid }
                headStart = scanned
                lineStart = scanned
                return true
            }
            scanned += 1
        }
        return false
    }

    private func checkLimits(reached: Int, lineEnd: Int) throws(WireErrorCode) {
        if case .requestLine = stage, lineEnd - lineStart > limits.line + 1 { throw .requestLineTooLong }
        guard reached - headStart <= limits.head else { throw .headTooLarge }
    }

    private mutating func addField(_ bytes: Span<UInt8>, from start: Int, to end: Int) throws(WireErrorCode) {
        if bytes[start].isBlank {
            // RFC 9112 §2.2 for the first line, §5.2 for the others.
            throw head.fields.isEmpty ? .fieldLeadingSpace : .fieldsFolded
        }
        guard head.fields.count < limits.fieldCount else { throw .fieldsTooMany }
        try head.add(FieldLine(bytes, from: start, to: end), in: bytes)
    }
}

/// Limits for a message head or a trailer section, beyond which the peer is refused.
public struct HeadLimits: Equatable, Sendable {
    /// Maximum bytes of a request line without its CRLF; exceeding it is 414 (RFC 9112 §3).
    public let line: Int
    /// Maximum bytes of the whole head with every CRLF; exceeding it is 431 (RFC 6585 §5).
    public let head: Int
    /// Maximum number of field lines; exceeding it is 431.
    public let fieldCount: Int

    /// Creates limits, clamped to values that the parser can count.
    ///
    /// A head has 64 bytes to 16 MiB, and a line is no longer than the head.
    public init(line: Int = 8_192, head: Int = 65_536, fieldCount: Int = 100) {
        self.head = min(max(head, 64), 16_777_216)
        self.line = min(max(line, 16), self.head)
        self.fieldCount = min(max(fieldCount, 1), 65_536)
    }
}
