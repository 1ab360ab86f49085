// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why it is not clear which request another proxy asks about.
public enum SubrequestFault: Error, Equatable, Sendable {
    /// The sub-request is for another address than `/authority` and what lies below.
    case elsewhere
    /// One of the three fields is missing, or stands there twice.
    case fieldsIncomplete
    /// One of the three fields holds no method, no path, or no host.
    case fieldInvalid
}

// What another proxy asks about when it asks whether a request of its caller may pass: as nginx's auth_request does, or Envoy's
// ext_authz. There are two ways to say it, and the path tells which one is meant; whatever could be read in two ways is refused.
extension RequestHead {
    /// The head of the request that this sub-request, whose ranges mean `bytes`, asks about. Its other fields are those of
    /// the sub-request, and it has no body.
    ///
    /// - `/authority` alone: method, target and host stand in `X-Forwarded-Method`, `X-Forwarded-Uri` and `X-Forwarded-Host`, each
    ///   once. Those of the sub-request itself mean nothing.
    /// - `/authority/PATH`: `/PATH` and the query are the target; method and host are those of the sub-request.
    ///
    /// No caller of the other proxy can turn one way into the other: whatever its own target is, a slash stands behind the
    /// prefix; and a proxy that sets the three fields sets the address, too.
    public func original(in bytes: Span<UInt8>) throws(SubrequestFault) -> RequestHead {
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

    /// The same request without its body, as another proxy asks about it that tells the whole head.
    public var withoutBody: RequestHead {
        var head = self
        head.body = .none
        head.expectation = .none
        return head
    }

    /// The bytes of `/authority`.
    private static let authorityLength = 10

    private mutating func takeFields(in bytes: Span<UInt8>) throws(SubrequestFault) {
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

    /// One that `Connection` names is as good as absent, and one that is there twice might be read as either.
    private static func set(_ range: inout ByteRange?, _ line: FieldLine) throws(SubrequestFault) {
        guard range == nil, !line.isNominated else { throw .fieldsIncomplete }
        range = line.value
    }
}

extension RequestTarget {
    fileprivate init(path: ByteRange, pathAndQuery: ByteRange) {
        self.init(
            form: .origin, range: pathAndQuery, authority: nil, pathAndQuery: pathAndQuery, path: path, isSecure: false)
    }

    /// The origin form, as the value of a field (RFC 9112 section 3.2.1); nil where it is none.
    fileprivate init?(value: ByteRange, in bytes: Span<UInt8>) {
        guard !value.isEmpty, value.end <= bytes.count, bytes[value.start] == UInt8(ascii: "/"),
            let (end, pathEnd) = Self.scan(bytes, from: value.start, to: value.end), end == value.end
        else { return nil }
        self.init(path: ByteRange(start: value.start, end: pathEnd), pathAndQuery: value)
    }
}
