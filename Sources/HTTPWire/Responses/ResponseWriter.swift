// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Writer of a response, piece by piece, at the end of a queue.
///
/// Nothing written here can split a response: a field whose name is not a token, or whose value contains a CR, LF, NUL
/// or another control character, is left out entirely (RFC 9110 §5.5), and the function returns false.
public enum ResponseWriter {
    /// Writes `HTTP/1.1`, the status and its registered phrase; a status outside 100 to 999 becomes 500.
    public static func statusLine(_ status: Int, to queue: inout ByteQueue) {
        let known = (100...999).contains(status) ? status : 500
        queue.append("HTTP/1.1 ")
        queue.append(decimal: UInt64(known))
        queue.append(.space)
        queue.append(ReasonPhrase.of(known))
        queue.append("\r\n")
    }

    /// Writes a status line with the upstream's reason phrase, or the registered one if that is invalid.
    public static func statusLine(_ status: Int, reason: Span<UInt8>, to queue: inout ByteQueue) {
        guard (100...999).contains(status), isFieldValue(reason) else { return statusLine(status, to: &queue) }
        queue.append("HTTP/1.1 ")
        queue.append(decimal: UInt64(status))
        queue.append(.space)
        queue.append(reason)
        queue.append("\r\n")
    }

    /// Writes a field unchanged; returns false if it was left out.
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

    /// Writes a field with a value in bytes; returns false if it was left out.
    @discardableResult
    public static func field(_ name: StaticString, _ value: Span<UInt8>, to queue: inout ByteQueue) -> Bool {
        guard isFieldValue(value) else { return false }
        begin(name, to: &queue)
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// Writes a field with a literal value.
    public static func field(_ name: StaticString, _ value: StaticString, to queue: inout ByteQueue) {
        begin(name, to: &queue)
        queue.append(value)
        queue.append("\r\n")
    }

    /// Writes a field with a text value; returns false if it was left out.
    @_disfavoredOverload
    @discardableResult
    public static func field(_ name: StaticString, _ value: String, to queue: inout ByteQueue) -> Bool {
        guard value.utf8.allSatisfy(\.isFieldValue) else { return false }
        begin(name, to: &queue)
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// Writes a field with name and value as text; returns false if it was left out.
    @_disfavoredOverload
    @discardableResult
    public static func field(_ name: String, _ value: String, to queue: inout ByteQueue) -> Bool {
        guard name.utf8.isToken, value.utf8.allSatisfy(\.isFieldValue) else { return false }
        queue.append(name)
        queue.append(": ")
        queue.append(value)
        queue.append("\r\n")
        return true
    }

    /// Writes a field with a decimal number.
    public static func field(_ name: StaticString, decimal value: UInt64, to queue: inout ByteQueue) {
        begin(name, to: &queue)
        queue.append(decimal: value)
        queue.append("\r\n")
    }

    /// Writes `Content-Length` (RFC 9110 §8.6).
    ///
    /// Not allowed with 1xx or 204, nor together with `transferEncodingChunked`.
    public static func contentLength(_ length: UInt64, to queue: inout ByteQueue) {
        queue.append("Content-Length: ")
        queue.append(decimal: length)
        queue.append("\r\n")
    }

    /// Writes `Transfer-Encoding: chunked`, for callers of HTTP/1.1 only (RFC 9112 §6.1).
    public static func transferEncodingChunked(to queue: inout ByteQueue) {
        field("Transfer-Encoding", "chunked", to: &queue)
    }

    /// Writes the `Connection` field that a caller of that version needs (RFC 9112 §9.3).
    ///
    /// `close` if the connection ends; `keep-alive` if an HTTP/1.0 caller asked for persistence and gets it; no field
    /// for HTTP/1.1, which is persistent by default.
    @inlinable
    public static func connection(keepsAlive: Bool, to version: HTTPVersion, in queue: inout ByteQueue) {
        if !keepsAlive {
            field("Connection", "close", to: &queue)
        } else if version == .http10 {
            field("Connection", "keep-alive", to: &queue)
        }
    }

    /// Writes the empty line after the fields.
    @inlinable
    public static func endOfHead(to queue: inout ByteQueue) {
        queue.append("\r\n")
    }

    /// Returns true if a field value may contain `bytes`.
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

/// Writing the chunked coding (RFC 9112 §7.1).
extension ResponseWriter {
    /// Maximum bytes that `chunkHead` and `chunkTail` add to a chunk's data.
    public static var chunkOverhead: Int { 20 }

    /// Writes the size of the chunk that follows.
    ///
    /// An empty chunk would end the body: for a size of zero or less, nothing is written, and `chunkTail` must not
    /// follow.
    public static func chunkHead(_ size: Int, to queue: inout ByteQueue) {
        guard size > 0 else { return }
        queue.append(hexadecimal: UInt64(size))
        queue.append("\r\n")
    }

    /// Writes the end of a chunk, after its data.
    public static func chunkTail(to queue: inout ByteQueue) {
        queue.append("\r\n")
    }

    /// Writes a complete chunk; nothing for empty data.
    public static func chunk(_ data: Span<UInt8>, to queue: inout ByteQueue) {
        guard !data.isEmpty else { return }
        queue.reserve(data.count + chunkOverhead)
        chunkHead(data.count, to: &queue)
        queue.append(data)
        chunkTail(to: &queue)
    }

    /// Writes the last chunk, after which trailer fields may follow with `field`, then `endOfHead`.
    public static func lastChunk(to queue: inout ByteQueue) {
        queue.append("0\r\n")
    }

    /// Writes the last chunk and the end of a body without trailers.
    public static func endOfChunks(to queue: inout ByteQueue) {
        queue.append("0\r\n\r\n")
    }
}

/// The only form of dates that is written, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
public enum HTTPDate {
    /// Appends the date that many seconds after the beginning of 1970; outside the years 1970 to 9999 the nearest date
    /// inside.
    public static func append(secondsSince1970 seconds: Int64, to queue: inout ByteQueue) {
        queue.append(CivilTime(millisecondsSince1970: min(max(seconds, 0), 253_402_300_799) * 1000).httpDate)
    }
}
