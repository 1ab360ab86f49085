// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The head of a request as ranges into the bytes that were parsed: everything a gateway decides by.
///
/// The ranges mean the same bytes only as long as those stay where the parser saw them.
public struct RequestHead: Sendable {
    /// What `Expect` asks for (RFC 9110 section 10.1.1).
    public enum Expectation: Sendable {
        case none, continueFirst, unknown
    }

    /// The method, and where it stands.
    public internal(set) var method = RequestMethod.other
    /// The method as it was spelled.
    public internal(set) var methodRange = ByteRange.empty
    /// What is asked for.
    public internal(set) var target = RequestTarget.none
    /// The version of the request.
    public internal(set) var version = HTTPVersion.http11
    /// The field lines in their order.
    public internal(set) var fields: [FieldLine] = []
    /// The value of `Host`, checked; nil only in HTTP/1.0.
    public internal(set) var host: ByteRange?
    /// The host in `Host`, without a port.
    var hostName: ByteRange?
    /// How long the body is.
    public internal(set) var body = BodyFraming.none
    /// What `Expect` asks for, whatever the version.
    public internal(set) var expectation = Expectation.none
    /// True if the caller takes trailers (`TE: trailers`, RFC 9110 section 10.1.4).
    public internal(set) var acceptsTrailers = false

    var connection = ConnectionOptions()
    var hasLength = false
    var hasTransferEncoding = false
    var hasUpgrade = false

    /// Host and port that the request is for: those of an absolute target before those of `Host`, which must then be
    /// ignored (RFC 9112 section 3.2.2).
    public var authority: ByteRange? { target.authority ?? host }

    /// The host of `authority`, without a port; an IPv6 address with its brackets. `bytes`: those of the head.
    public func authorityHost(in bytes: Span<UInt8>) -> ByteRange? {
        guard let authority = target.authority else { return hostName }
        return Authority(bytes, authority)?.host
    }

    /// True if the caller means to send another request on this connection (RFC 9112 section 9.3): `close` ends it in
    /// every version, and HTTP/1.0 has to ask for `keep-alive`.
    public var keepsAlive: Bool {
        if connection.close { return false }
        return version == .http11 || connection.keepAlive
    }

    /// True if the caller waits for 100 before it sends its body. Not in HTTP/1.0, where the expectation must be ignored,
    /// and not without a body (RFC 9110 section 10.1.1).
    public var expectsContinue: Bool {
        expectation == .continueFirst && version == .http11 && !body.isEmpty
    }

    /// True if the caller may hold its body back until it is answered: with any expectation, known to us or not.
    public var awaitsAnswer: Bool { expectation != .none && version == .http11 && !body.isEmpty }

    /// True if the caller asks for another protocol: `Upgrade`, named by `Connection`, in HTTP/1.1 (RFC 9110 section 7.8).
    public var requestsUpgrade: Bool { hasUpgrade && connection.upgrade && version == .http11 }

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
        method = .other
        methodRange = .empty
        target = .none
        version = .http11
        (host, hostName) = (nil, nil)
        body = .none
        expectation = .none
        acceptsTrailers = false
        hasLength = false
        hasTransferEncoding = false
        hasUpgrade = false
    }
}
