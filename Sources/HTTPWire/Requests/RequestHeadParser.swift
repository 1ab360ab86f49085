// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Parses the head of a request from bytes that arrive in pieces.
///
/// Give it all bytes since the end of the previous message, each time with what has come since: it remembers how far it
/// looked, so a head that arrives byte by byte costs time in proportion to its length. The memory of the field table is
/// used again after `reset()`; read `head` in place, a copy of it would cost that memory at the next request.
public struct RequestHeadParser: Sendable {
    /// What is known so far.
    public enum Outcome: Equatable, Sendable {
        /// The head has not ended yet.
        case incomplete
        /// The head is whole and `length` bytes long, with the empty lines before it; the body starts there.
        case complete(length: Int)
        /// The head breaks a rule. Nothing later on the connection can be trusted.
        case refused(WireError)
    }

    private enum Stage {
        case emptyLines, requestLine, fields
        case ended(Outcome)
    }

    /// The head, of use once the outcome is `complete`.
    public private(set) var head = RequestHead()

    private let limits: HeadLimits
    private var stage = Stage.emptyLines
    private var headStart = 0
    private var lineStart = 0
    private var scanned = 0

    /// A parser that refuses what is beyond `limits`.
    public init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
    }

    /// True if any byte of a request has been seen, so that an end of the input is not a clean one.
    public var isIdle: Bool {
        if case .emptyLines = stage { scanned == 0 } else { false }
    }

    /// Forgets the request, for the next one.
    public mutating func reset() {
        head.reset()
        stage = .emptyLines
        headStart = 0
        lineStart = 0
        scanned = 0
    }

    /// Looks at the bytes that are new since the last call; `bytes` starts with those of the last call.
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
            // RFC 9112 section 2.2 allows to take LF alone for the end of a line; peers that differ in it can be played off
            // against each other. Also covers the first byte of a line.
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

    /// RFC 9112 section 2.2: at least one empty line before the request line should be ignored, since old clients send one
    /// after a body. Two are; a third is not, nor is any other white space.
    @inline(__always)
    private mutating func skipEmptyLines(_ bytes: Span<UInt8>) throws(WireErrorCode) -> Bool {
        while scanned < bytes.count {
            let byte = bytes[scanned]
            if scanned % 2 == 1 {
                guard byte == .lineFeed else { throw .requestLineInvalid }
            } else if byte == .carriageReturn, scanned < 4 {
                // The LF is next.
            } else {
                // Says no to a TLS handshake or to garbage at the first byte rather than at the end of some line.
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
            // RFC 9112 section 2.2 for the first line, section 5.2 for the others.
            throw head.fields.isEmpty ? .fieldLeadingSpace : .fieldsFolded
        }
        guard head.fields.count < limits.fieldCount else { throw .fieldsTooMany }
        try head.add(FieldLine(bytes, from: start, to: end), in: bytes)
    }
}
