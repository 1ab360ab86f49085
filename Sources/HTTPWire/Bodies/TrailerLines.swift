// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Trailer fields on their way from one side to the other (RFC 9110 section 6.5): checked, and without those that must not
/// go further.
public struct TrailerLines: ~Copyable {
    /// Bytes held at most; with what a trailer section may be long this is never reached.
    private static let limit = 16_384
    /// Lines held at most.
    private static let maximum = 64

    /// The lines, each with its CRLF.
    public private(set) var lines = ByteQueue()
    /// How many lines there were, those included that were dropped.
    private var count = 0

    /// No lines.
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

    /// Adds one line as an HTTP/2 upstream sent it and libcurl wrote it, with its line ending. Throws where it is no field
    /// line, and where there are too many.
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

    /// Calls `body` with name and value of each line, without white space around it.
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

    /// Forgets them all.
    public mutating func removeAll() {
        lines.removeAll(keepingCapacity: 1_024)
        count = 0
    }
}
