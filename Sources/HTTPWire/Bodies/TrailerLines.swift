// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Trailer fields to be forwarded, checked and filtered (RFC 9110 §6.5).
public struct TrailerLines: ~Copyable {
    /// Maximum bytes held; never reached with the limits of a trailer section.
    private static let limit = 16_384
    /// Maximum lines held.
    private static let maximum = 64

    /// Lines, each with its CRLF.
    public private(set) var lines = ByteQueue()
    /// Number of lines, including dropped ones.
    private var count = 0

    /// Creates an empty list.
    public init() {}

    /// True if no line is held.
    public var isEmpty: Bool { lines.isEmpty }

    /// Adds the fields that a decoder found in `bytes`.
    public mutating func append(_ fields: [FieldLine], in bytes: Span<UInt8>) {
        for field in fields where !field.isForbiddenInTrailers(in: bytes) {
            guard lines.count + field.name.count + field.value.count + 4 <= Self.limit else { return }
            lines.append(bytes.extracting(field.name.bounds))
            lines.append(": ")
            lines.append(bytes.extracting(field.value.bounds))
            lines.append("\r\n")
        }
    }

    /// Adds one line of an HTTP/2 upstream, as libcurl wrote it, with its line ending.
    ///
    /// Throws if the text is not a field line, or if there are too many.
    public mutating func append(line: Span<UInt8>) throws(WireError) {
        do throws(WireErrorCode) {
            let end = line.count - 2
            guard end >= 0, line[end] == .carriageReturn, line[end + 1] == .lineFeed else { throw .bareLineFeed }
            count += 1
            guard count <= Self.maximum, lines.count + line.count <= Self.limit else { throw .trailersTooLarge }
            append([try FieldLine(line, from: 0, to: end)], in: line)
        } catch {
            throw WireError(upstream: error)
        }
    }

    /// Calls `body` with name and value of each line, without surrounding white space.
    public func forEach<Failure>(
        _ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        try lines.withSpan { (bytes) throws(Failure) in
            var position = 0
            while let lineFeed = bytes.firstLineFeed(from: position) {
                let colon = bytes.endOfToken(from: position, to: lineFeed)
                try body(
                    bytes.extracting(position..<colon), bytes.extracting(min(colon + 2, lineFeed - 1)..<lineFeed - 1))
                position = lineFeed + 1
            }
        }
    }

    /// Removes all lines.
    public mutating func removeAll() {
        lines.removeAll(keepingCapacity: 1_024)
        count = 0
    }
}

/// Scanner for the field lines after the last chunk, up to the empty line (RFC 9112 §7.1.2).
struct TrailerSection: Sendable {
    private var lineStart = 0
    private var scanned = 0

    /// Finds the end of the section that starts at `origin`, resuming from the previous call.
    ///
    /// - Returns: the length of the section with its empty line, or nil until it has arrived.
    mutating func scan(
        _ bytes: Span<UInt8>, from origin: Int, limits: HeadLimits
    ) throws(WireErrorCode) -> Int? {
        while let lineFeed = bytes.firstLineFeed(from: origin + scanned) {
            let length = lineFeed + 1 - origin
            guard length <= limits.head else { throw .trailersTooLarge }
            guard length - 1 > lineStart, bytes[lineFeed - 1] == .carriageReturn else { throw .bareLineFeed }
            if length - 2 == lineStart { return length }
            lineStart = length
            scanned = length
        }
        scanned = max(scanned, bytes.count - origin)
        guard scanned <= limits.head else { throw .trailersTooLarge }
        return nil
    }

    /// Returns the forwardable lines of a complete section.
    ///
    /// Dropped are lines that would change how the message is framed, routed, authenticated or read, after this was
    /// decided (RFC 9110 §6.5.1).
    static func fields(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, limits: HeadLimits
    ) throws(WireErrorCode) -> [FieldLine] {
        var lines: [FieldLine] = []
        var count = 0
        var position = start
        while position < end - 2, let lineFeed = bytes.firstLineFeed(from: position) {
            guard !bytes[position].isBlank else { throw .fieldsFolded }
            count += 1
            guard count <= limits.fieldCount else { throw .fieldsTooMany }
            let line = try FieldLine(bytes, from: position, to: lineFeed - 1)
            if !line.isForbiddenInTrailers(in: bytes) { lines.append(line) }
            position = lineFeed + 1
        }
        return lines
    }
}
