// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The head of a response of the upstream as ranges into the bytes that were scanned.
public struct ResponseHead: Sendable {
    /// The status code, 100 to 999.
    public internal(set) var status = 0
    /// The major version: 1, or 2 and 3 as libcurl writes them.
    public internal(set) var majorVersion = 1
    /// The minor version; 0 where none was written.
    public internal(set) var minorVersion = 1
    /// The reason phrase; may be empty.
    public internal(set) var reason = ByteRange.empty
    /// The field lines in their order.
    public internal(set) var fields: [FieldLine] = []
    /// The length that `Content-Length` gives, once even where it was repeated alike. In answers to HEAD and in 304 it is
    /// that of a body which does not come.
    public internal(set) var contentLength: UInt64?
    /// True if the body comes in chunks.
    public internal(set) var isChunked = false
    var connection = ConnectionOptions()

    /// True if the upstream ends its connection after this response.
    public var closes: Bool { connection.close }

    /// True if this is an interim response, after which another head follows (RFC 9110 section 15.2). 101 is final for us:
    /// what follows it is no longer HTTP.
    public var isInterim: Bool { status < 200 && status != 101 }

    /// Returns whether `Connection` names the trailer field of that name, which then goes no further (RFC 9110 section 7.6.1). `bytes`:
    /// those of the head.
    public func nominates(trailer name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        connection.names(name, in: bytes)
    }

    /// The first field line of that kind.
    public func first(_ kind: FieldName) -> FieldLine? {
        for index in fields.indices where fields[index].kind == kind { return fields[index] }
        return nil
    }

    /// Empties the head but keeps the memory of its tables: hence one by one.
    @inline(__always)
    mutating func reset() {
        fields.removeAll(keepingCapacity: true)
        connection.removeAll()
        status = 0
        majorVersion = 1
        minorVersion = 1
        reason = .empty
        contentLength = nil
        isChunked = false
    }
}
