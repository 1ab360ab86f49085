// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Lines of a parsed head that follow one another there, to be written with one copy.
///
/// A parser has checked each of them, so that they are not checked again. A line that has blanks behind its value ends the run: what
/// was left out of the value is not written.
public struct FieldRun: Sendable {
    private var start = 0
    private var end = 0

    /// A run of no lines.
    public init() {}

    /// A run that begins with the status line of `head`, where that is written as it came: in HTTP/1.1, with a phrase.
    public init(statusLineOf head: ResponseHead) {
        if head.majorVersion == 1, head.minorVersion == 1, !head.reason.isEmpty { end = head.reason.end }
    }

    /// True if it has no line.
    public var isEmpty: Bool { start == end }

    /// The bytes that are written of it.
    var count: Int { isEmpty ? 0 : end - start + 2 }

    /// Adds `line` where it stands behind the last one, with nothing but CR LF between them. Returns whether it did; to a run without
    /// lines any line is added.
    public mutating func add(_ line: FieldLine) -> Bool {
        if !isEmpty, line.name.start != end + 2 { return false }
        if isEmpty { start = line.name.start }
        end = line.value.isEmpty ? line.name.end + 1 : line.value.end
        return true
    }

    /// Returns the run and begins another, with `line` where there is one.
    public mutating func taken(by line: FieldLine? = nil) -> FieldRun {
        let run = self
        self = FieldRun()
        if let line { _ = add(line) }
        return run
    }

    /// Appends the lines, each with its CR LF, from `head`, which is what their ranges mean.
    @inline(__always)
    public func append(of head: Span<UInt8>, to queue: inout ByteQueue) {
        guard !isEmpty, end <= head.count else { return }
        queue.append(head.extracting(start..<end))
        queue.append("\r\n")
    }
}
