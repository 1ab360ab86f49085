// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Writes the head of a request to an upstream, piece by piece, behind what a queue holds.
///
/// Nothing that is written here can split a request: what is no method, no target or no field is refused as a whole.
public enum RequestWriter {
    /// `method SP target SP HTTP/1.1` (RFC 9112 section 3). False, and nothing is written, where `method` is no token, or
    /// `target` is empty or holds white space or a control.
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

    /// A field as a whole line; the name alone where nothing is to be seen of the value. False, and nothing is written, where the
    /// name is no token, or the value holds a CR, LF, NUL or another control (RFC 9110 section 5.5).
    ///
    /// Memory that the field does not fit into is overwritten when it is given up.
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

    /// Sees to it that `length` bytes fit; memory that is too small for them is overwritten when it is given up.
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
