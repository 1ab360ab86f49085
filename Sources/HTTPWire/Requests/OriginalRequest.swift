// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Reasons why an auth request does not identify the original request.
public enum AuthRequestFault: Error, Equatable, Sendable {
    /// The path is neither `/authority` nor below it.
    case elsewhere
    /// One of the three fields is missing or repeated.
    case fieldsIncomplete
    /// One of the three fields is not a valid method, path or host.
    case fieldInvalid
}

// Another proxy asks whether a request of its caller may pass, as nginx's auth_request or Envoy's ext_authz does. There
// are two ways to describe that request, and the path determines which one is used; anything ambiguous is refused.
extension RequestHead {
    /// Returns the head of the request that this auth request, in `bytes`, asks about.
    ///
    /// The other fields are those of the auth request, and there is no body.
    ///
    /// - `/authority` alone: method, target and host are in `X-Forwarded-Method`, `X-Forwarded-Uri` and
    ///   `X-Forwarded-Host`, each exactly once. Those of the auth request are ignored.
    /// - `/authority/PATH`: `/PATH` with the query is the target; method and host are those of the auth request.
    ///
    /// A caller of the other proxy cannot turn one form into the other: every target starts with a slash, which then
    /// follows the prefix, and a proxy that sets the three fields also sets the address.
    public func original(in bytes: Span<UInt8>) throws(AuthRequestFault) -> RequestHead {
        let path = target.path
        guard target.form == .origin, path.count >= Self.authorityLength,
            bytes.matches(ByteRange(start: path.start, end: path.start + Self.authorityLength), exactly: "/authority")
        else { throw .elsewhere }
        let rest = path.start + Self.authorityLength
        var original = withoutBody
        if target.pathAndQuery.end == rest {
            try original.takeFields(in: bytes)
        } else {
            guard rest < path.end, bytes[rest] == UInt8(ascii: "/") else { throw .elsewhere }
            original.target = RequestTarget(
                path: ByteRange(start: rest, end: path.end),
                pathAndQuery: ByteRange(start: rest, end: target.pathAndQuery.end))
        }
        return original
    }

    /// Copy without the body, for another proxy that sends the whole head.
    public var withoutBody: RequestHead {
        var head = self
        head.body = .none
        head.expectation = .none
        return head
    }

    /// Number of bytes in `/authority`.
    private static let authorityLength = 10

    private mutating func takeFields(in bytes: Span<UInt8>) throws(AuthRequestFault) {
        var (method, target, host): (ByteRange?, ByteRange?, ByteRange?)
        for index in fields.indices {
            let line = fields[index]
            switch line.name.count {
            case 15 where bytes.matches(line.name, ignoringCase: "x-forwarded-uri"): try Self.set(&target, line)
            case 16 where line.kind == .xForwardedHost: try Self.set(&host, line)
            case 18 where bytes.matches(line.name, ignoringCase: "x-forwarded-method"): try Self.set(&method, line)
            default: break
            }
        }
        guard let method, let target, let host else { throw .fieldsIncomplete }
        guard !method.isEmpty, method.count <= 64, bytes.endOfToken(from: method.start, to: method.end) == method.end,
            let parsed = RequestTarget(value: target, in: bytes), let authority = Authority(bytes, host)
        else { throw .fieldInvalid }
        methodRange = method
        self.method = RequestMethod(bytes, method)
        self.target = parsed
        self.host = host
        hostName = authority.host
    }

    /// A field that `Connection` names counts as absent, and a repeated one is ambiguous.
    private static func set(_ range: inout ByteRange?, _ line: FieldLine) throws(AuthRequestFault) {
        guard range == nil, !line.isNominated else { throw .fieldsIncomplete }
        range = line.value
    }
}

extension RequestTarget {
    fileprivate init(path: ByteRange, pathAndQuery: ByteRange) {
        self.init(
            form: .origin, range: pathAndQuery, authority: nil, pathAndQuery: pathAndQuery, path: path, isSecure: false)
    }

    /// Parses the origin form in a field value (RFC 9112 §3.2.1); nil if it is invalid.
    fileprivate init?(value: ByteRange, in bytes: Span<UInt8>) {
        guard !value.isEmpty, value.end <= bytes.count, bytes[value.start] == UInt8(ascii: "/"),
            let (end, pathEnd) = Self.scan(bytes, from: value.start, to: value.end), end == value.end
        else { return nil }
        self.init(path: ByteRange(start: value.start, end: pathEnd), pathAndQuery: value)
    }
}
