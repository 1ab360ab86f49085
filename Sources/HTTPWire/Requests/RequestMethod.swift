// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Request method; compared with case (RFC 9110 §9.1), so `get` is `other`.
public enum RequestMethod: UInt8, Sendable {
    case get, head, post, put, delete, options, patch, trace, connect, other

    /// True if the request asks for no change (RFC 9110 §9.2.1).
    public var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        default: false
        }
    }

    /// True for GET and HEAD, which ask for a page and have no effect (RFC 9110 §9.3.1, §9.3.2).
    public var isRetrieval: Bool { self == .get || self == .head }

    /// True if repeating the request has the effect of one (RFC 9110 §9.2.2).
    public var isIdempotent: Bool {
        switch self {
        case .put, .delete: true
        default: isSafe
        }
    }

    /// Finds the method in `range` of `bytes`.
    public init(_ bytes: Span<UInt8>, _ range: ByteRange) {
        func spells(_ name: StaticString) -> Bool { bytes.matches(range, exactly: name) }
        self =
            switch range.count {
            case 3: spells("GET") ? .get : spells("PUT") ? .put : .other
            case 4: spells("POST") ? .post : spells("HEAD") ? .head : .other
            case 5: spells("PATCH") ? .patch : spells("TRACE") ? .trace : .other
            case 6: spells("DELETE") ? .delete : .other
            case 7: spells("OPTIONS") ? .options : spells("CONNECT") ? .connect : .other
            default: .other
            }
    }

    /// Method as written; empty for `other`.
    public var name: String {
        switch self {
        case .connect: "CONNECT"
        case .delete: "DELETE"
        case .get: "GET"
        case .head: "HEAD"
        case .options: "OPTIONS"
        case .other: ""
        case .patch: "PATCH"
        case .post: "POST"
        case .put: "PUT"
        case .trace: "TRACE"
        }
    }
}
