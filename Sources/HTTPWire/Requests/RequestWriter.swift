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

    /// A field without a value. False, and nothing is written, where the name is no token.
    public static func emptyField(_ name: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        guard !name.isEmpty, name.endOfToken(from: 0, to: name.count) == name.count else { return false }
        queue.append(name)
        queue.append(":\r\n")
        return true
    }

    /// A field as a whole, `name: value` without a line's end. False, and nothing is written, where the name is no token, or the
    /// value holds a CR, LF, NUL or another control (RFC 9110 section 5.5).
    public static func line(_ line: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        let mark = line.endOfToken(from: 0, to: line.count)
        guard mark > 0, mark < line.count, line[mark] == UInt8(ascii: ":"),
            line.isFieldValue(from: mark + 1, to: line.count)
        else { return false }
        queue.append(line)
        queue.append("\r\n")
        return true
    }

    /// The empty line behind the fields.
    public static func endOfHead(to queue: inout ByteQueue) {
        queue.append("\r\n")
    }

    private static func isTarget(_ target: Span<UInt8>) -> Bool {
        for index in target.indices where target[index] <= .space || target[index] == 0x7F { return false }
        return !target.isEmpty
    }
}
