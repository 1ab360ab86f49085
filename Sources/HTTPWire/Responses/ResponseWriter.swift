// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Writes a response, piece by piece, behind what a queue holds.
///
/// Nothing that is written here can split a response: a field whose name is not a token, or whose value holds a CR, LF,
/// NUL or another control, is left out as a whole (RFC 9110 section 5.5), and the function says so.
public enum ResponseWriter {
    /// `HTTP/1.1`, the status and its registered reason phrase. A status outside 100 to 999 becomes 500.
    public static func statusLine(_ status: Int, to queue: inout ByteQueue) {
        let known = (100...999).contains(status) ? status : 500
        queue.append("HTTP/1.1 ")
        queue.append(decimal: UInt64(known))
        queue.append(.space)
        queue.append(ReasonPhrase.of(known))
        queue.append("\r\n")
    }

    /// A status line with the reason phrase that the upstream gave, or the registered one where that holds a control.
    public static func statusLine(_ status: Int, reason: Span<UInt8>, to queue: inout ByteQueue) {
        guard (100...999).contains(status), isFieldValue(reason) else { return statusLine(status, to: &queue) }
        queue.append("HTTP/1.1 ")
        queue.append(decimal: UInt64(status))
        queue.append(.space)
        queue.append(reason)
        queue.append("\r\n")
    }

    /// A field of name and value as they came; false where it was left out.
    @discardableResult
    public static func field(_ name: Span<UInt8>, _ value: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        guard isToken(name), isFieldValue(value) else { return false }
        queue.reserve(name.count + value.count + 4)
        queue.append(name)
        queue.append(": ")
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// A field with a value in bytes; false where it was left out.
    @discardableResult
    public static func field(_ name: StaticString, _ value: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        guard isFieldValue(value) else { return false }
        begin(name, to: &queue)
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// A field with a literal value.
    public static func field(_ name: StaticString, _ value: StaticString, to queue: inout ByteQueue) {
        begin(name, to: &queue)
        queue.append(value)
        queue.append("\r\n")
    }

    /// A field with a text value; false where it was left out.
    @_disfavoredOverload
    @discardableResult
    public static func field(_ name: StaticString, _ value: String, to queue: inout ByteQueue) -> Bool {
        guard value.utf8.allSatisfy(\.isFieldValue) else { return false }
        begin(name, to: &queue)
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// A field of name and value in text; false where it was left out.
    @_disfavoredOverload
    @discardableResult
    public static func field(_ name: String, _ value: String, to queue: inout ByteQueue) -> Bool {
        guard !name.isEmpty, name.utf8.allSatisfy(ByteClass.token.contains), value.utf8.allSatisfy(\.isFieldValue)
        else { return false }
        queue.append(name)
        queue.append(": ")
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// A field whose value is a number.
    public static func field(_ name: StaticString, decimal value: UInt64, to queue: inout ByteQueue) {
        begin(name, to: &queue)
        queue.append(decimal: value)
        queue.append("\r\n")
    }

    /// `Content-Length` (RFC 9110 section 8.6). Not with 1xx or 204, nor beside `transferEncodingChunked`.
    public static func contentLength(_ length: UInt64, to queue: inout ByteQueue) {
        queue.append("Content-Length: ")
        queue.append(decimal: length)
        queue.append("\r\n")
    }

    /// `Transfer-Encoding: chunked`; for callers of HTTP/1.1 only (RFC 9112 section 6.1).
    public static func transferEncodingChunked(to queue: inout ByteQueue) {
        field("Transfer-Encoding", "chunked", to: &queue)
    }

    /// What a caller of that version has to be told about the connection (RFC 9112 section 9.3): `close` where it ends,
    /// `keep-alive` where a caller of HTTP/1.0 asked for it and gets it, nothing to one of HTTP/1.1 who expects it.
    @inlinable
    public static func connection(keepsAlive: Bool, to version: HTTPVersion, in queue: inout ByteQueue) {
        if !keepsAlive {
            field("Connection", "close", to: &queue)
        } else if version == .http10 {
            field("Connection", "keep-alive", to: &queue)
        }
    }

    /// The empty line behind the fields.
    @inlinable
    public static func endOfHead(to queue: inout ByteQueue) {
        queue.append("\r\n")
    }

    /// Returns whether `bytes` may stand in a field value.
    public static func isFieldValue(_ bytes: Span<UInt8>) -> Bool {
        bytes.isFieldValue(from: 0, to: bytes.count)
    }

    private static func isToken(_ bytes: Span<UInt8>) -> Bool {
        for index in bytes.indices where !ByteClass.token.contains(bytes[index]) { return false }
        return !bytes.isEmpty
    }

    private static func begin(_ name: StaticString, to queue: inout ByteQueue) {
        queue.append(name)
        queue.append(": ")
    }
}
