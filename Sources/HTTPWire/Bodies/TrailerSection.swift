// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The field lines behind the last chunk (RFC 9112 section 7.1.2), up to the empty line.
struct TrailerSection: Sendable {
    private var lineStart = 0
    private var scanned = 0

    /// Looks for the end of the section that starts at `origin` of `bytes`; remembers how far it looked.
    ///
    /// - Returns: the length of the section with its empty line, or nil while that has not come.
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

    /// The lines of a whole section that may go further. The others are dropped: they would change how the message is
    /// framed, routed, authenticated or read after that was decided (RFC 9110 section 6.5.1).
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
