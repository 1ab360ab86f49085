// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The head of a request to an upstream, written once, in the bytes that go over the wire.
///
/// Nothing that is written here can split a request: what is no method, no target or no field is left out as a whole, and the head
/// is no longer good. Since fields carry credentials, the memory is overwritten when they go, and when they outgrow it.
public final class FieldSink {
    /// Up to so much memory is kept for the next request.
    @usableFromInline static let keptMemory = 16 * 1024

    private var bytes = ByteQueue()
    /// The beginning of the fields.
    private var start = 0
    /// True if nothing was left out.
    public private(set) var isGood = true

    /// An empty head.
    public init() {}

    /// Begins a head: `method SP target SP HTTP/1.1` (RFC 9112 section 3).
    public func begin(_ method: Span<UInt8>, _ target: borrowing ByteQueue) {
        reset()
        bytes.reserve(target.count + 1024)
        isGood = target.withSpan { RequestWriter.requestLine(method, $0, to: &bytes) }
        start = bytes.count
    }

    /// Adds `name: value`, or the name alone where the value is blank.
    public func append(name: Span<UInt8>, value: Span<UInt8>) {
        if !RequestWriter.field(name, value, to: &bytes) { isGood = false }
    }

    /// Adds `name: value`.
    public func append(name: StaticString, value: Span<UInt8>) {
        let name = unsafe literal(name)
        append(name: unsafe name.span, value: value)
    }

    /// Adds `name: value`.
    public func append(name: StaticString, value: StaticString) {
        let value = unsafe literal(value)
        append(name: name, value: unsafe value.span)
    }

    /// Adds `name: value`.
    @_disfavoredOverload
    public func append(name: StaticString, value: String) {
        append(name: name, value: value.utf8.span)
    }

    /// Adds whole lines, which are right as they stand in the source; each ends in CR LF.
    public func append(lines: StaticString) {
        RequestWriter.makeRoom(for: lines.utf8CodeUnitCount, in: &bytes)
        bytes.append(lines)
    }

    /// Adds lines of a head that was parsed, one behind the other there, as they are.
    public func append(_ lines: FieldRun, of head: Span<UInt8>) {
        RequestWriter.makeRoom(for: lines.count, in: &bytes)
        lines.append(of: head, to: &bytes)
    }

    /// Ends the head, with the fields that say how long the body is.
    public func end(_ framing: BodyFraming) {
        switch framing {
        case .none: break
        case .length(let length): ResponseWriter.contentLength(length, to: &bytes)
        case .chunked: ResponseWriter.transferEncodingChunked(to: &bytes)
        }
        ResponseWriter.endOfHead(to: &bytes)
    }

    /// Shows each field that was added, in their order.
    public func forEachField<Failure>(
        _ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        try bytes.withSpan { (bytes) throws(Failure) in
            var position = start
            while let end = bytes.firstLineFeed(from: position) {
                // CR LF ends each, and a colon and a space stand between name and value, where there is one.
                let line = bytes.extracting(position..<end - 1)
                let mark = line.endOfToken(from: 0, to: line.count)
                try body(line.extracting(..<mark), line.extracting(min(mark + 2, line.count)...))
                position = end + 1
            }
        }
    }

    /// Moves the head to `queue`, without a copy where that is empty.
    public func take(into queue: inout ByteQueue) {
        if queue.isEmpty {
            swap(&bytes, &queue)
        } else {
            bytes.withSpan { queue.append($0) }
        }
        reset()
    }

    /// Forgets everything.
    public func reset() {
        isGood = true
        start = 0
        if !bytes.isEmpty { bytes.wipe(keepingCapacity: Self.keptMemory) }
    }
}

private func literal(_ text: StaticString) -> UnsafeBufferPointer<UInt8> {
    precondition(text.hasPointerRepresentation)
    return unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
}
