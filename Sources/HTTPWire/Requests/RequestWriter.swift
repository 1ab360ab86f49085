// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Writer of an upstream request's head, piece by piece, at the end of a queue.
///
/// Nothing written here can split a request: an invalid method, target or field is refused entirely.
public enum RequestWriter {
    /// Writes `method SP target SP HTTP/1.1` (RFC 9112 §3).
    ///
    /// Returns false, and writes nothing, if `method` is not a token, or if `target` is empty or contains white space
    /// or a control character.
    public static func requestLine(_ method: Span<UInt8>, _ target: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        guard !method.isEmpty, method.endOfToken(from: 0, to: method.count) == method.count, isTarget(target) else {
            return false
        }
        queue.reserve(method.count + target.count + 12)
        queue.append(method)
        queue.append(.space)
        queue.append(target)
        queue.append(" HTTP/1.1\r\n")
        return true
    }

    /// Writes a field as one line, without a value if the value is blank.
    ///
    /// Returns false, and writes nothing, if the name is not a token, or if the value contains a CR, LF, NUL or another
    /// control character (RFC 9110 §5.5). Memory that the field does not fit into is overwritten before it is freed.
    public static func field(_ name: Span<UInt8>, _ value: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        guard !name.isEmpty, name.endOfToken(from: 0, to: name.count) == name.count,
            value.isFieldValue(from: 0, to: value.count)
        else { return false }
        let isBlank = isBlank(value)
        let length = name.count + (isBlank ? 3 : value.count + 4)
        makeRoom(for: length, in: &queue)
        unsafe queue.withUnsafeFreeSpace(minimum: length) { room in
            unsafe name.withUnsafeBytes { unsafe room.copyMemory(from: $0) }
            unsafe room[name.count] = UInt8(ascii: ":")
            if !isBlank {
                unsafe room[name.count + 1] = .space
                unsafe value.withUnsafeBytes {
                    unsafe UnsafeMutableRawBufferPointer(rebasing: room[(name.count + 2)...]).copyMemory(from: $0)
                }
            }
            unsafe room[length - 2] = 0x0D
            unsafe room[length - 1] = .lineFeed
            return length
        }
        return true
    }

    /// Reserves `length` bytes; memory that is too small is overwritten before it is freed.
    @inline(__always)
    static func makeRoom(for length: Int, in queue: inout ByteQueue) {
        if queue.capacity - queue.count < length { move(&queue, toRoomFor: length) }
    }

    private static func isBlank(_ value: Span<UInt8>) -> Bool {
        for index in value.indices where value[index] != .space && value[index] != 0x09 { return false }
        return true
    }

    private static func move(_ queue: inout ByteQueue, toRoomFor length: Int) {
        var larger = ByteQueue(capacity: max(queue.capacity * 2, queue.count + length, 1024))
        queue.withSpan { larger.append($0) }
        swap(&larger, &queue)
        larger.erase()
    }

    private static func isTarget(_ target: Span<UInt8>) -> Bool {
        for index in target.indices where target[index] <= .space || target[index] == 0x7F { return false }
        return !target.isEmpty
    }
}

/// Head of an upstream request, written once as the bytes on the wire.
///
/// Nothing written here can split a request: an invalid method, target or field is left out entirely, and `isComplete`
/// becomes false. Since fields carry credentials, the memory is overwritten when it is released or outgrown.
public final class FieldSink {
    /// Memory retained for the next request, in bytes.
    @usableFromInline static let retainedCapacity = 16 * 1024

    private var bytes = ByteQueue()
    /// Start of the fields.
    private var start = 0
    /// True if nothing was left out.
    public private(set) var isComplete = true

    /// Creates an empty head.
    public init() {}

    /// Starts a head with `method SP target SP HTTP/1.1` (RFC 9112 §3).
    public func begin(_ method: Span<UInt8>, _ target: borrowing ByteQueue) {
        reset()
        bytes.reserve(target.count + 1024)
        isComplete = target.withSpan { RequestWriter.requestLine(method, $0, to: &bytes) }
        start = bytes.count
    }

    /// Adds `name: value`, or the name alone if the value is blank.
    public func append(name: Span<UInt8>, value: Span<UInt8>) {
        if !RequestWriter.field(name, value, to: &bytes) { isComplete = false }
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

    /// Adds complete lines, each ending in CRLF, unchecked.
    public func append(lines: StaticString) {
        RequestWriter.makeRoom(for: lines.utf8CodeUnitCount, in: &bytes)
        bytes.append(lines)
    }

    /// Adds consecutive lines of a parsed head, unchanged.
    public func append(_ lines: FieldRun, of head: Span<UInt8>) {
        RequestWriter.makeRoom(for: lines.count, in: &bytes)
        lines.append(of: head, to: &bytes)
    }

    /// Ends the head with the framing field for the body.
    public func end(_ framing: BodyFraming) {
        switch framing {
        case .none: break
        case .length(let length): ResponseWriter.contentLength(length, to: &bytes)
        case .chunked: ResponseWriter.transferEncodingChunked(to: &bytes)
        }
        ResponseWriter.endOfHead(to: &bytes)
    }

    /// Calls `body` with each added field, in order.
    public func forEachField<Failure>(
        _ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        try bytes.withSpan { (bytes) throws(Failure) in
            var position = start
            while let end = bytes.firstLineFeed(from: position) {
                // Each line ends in CRLF, with a colon and a space between name and value, if there is a value.
                let line = bytes.extracting(position..<end - 1)
                let mark = line.endOfToken(from: 0, to: line.count)
                try body(line.extracting(..<mark), line.extracting(min(mark + 2, line.count)...))
                position = end + 1
            }
        }
    }

    /// Moves the head to `queue`, without copying if the queue is empty.
    public func take(into queue: inout ByteQueue) {
        if queue.isEmpty {
            swap(&bytes, &queue)
        } else {
            bytes.withSpan { queue.append($0) }
        }
        reset()
    }

    /// Removes everything.
    public func reset() {
        isComplete = true
        start = 0
        if !bytes.isEmpty { bytes.wipe(keepingCapacity: Self.retainedCapacity) }
    }
}

private func literal(_ text: StaticString) -> UnsafeBufferPointer<UInt8> {
    precondition(text.hasPointerRepresentation)
    return unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
}
