// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
public import HTTPTypes

/// Request that is about to be sent, passed to its signer. Valid during the call only.
public struct SigningRequest {
    /// Knowledge about a request's body.
    public enum Body: Sendable {
        /// There is no body.
        case none
        /// There is a body, which has not been read.
        case unread
        /// The requested forms of the complete body.
        case read([BodyReading])
    }

    /// Method.
    public var method: String
    /// Server that receives the request.
    public var origin: Origin
    /// Request target, as sent.
    public var target: String
    /// Knowledge about the body.
    public var body: Body
    /// Wall clock, in ms since 1970.
    public var now: Int64
    /// Fields as sent, without those of this signer and later ones, and without framing fields.
    ///
    /// Nil if another program writes the fields (auth requests), or for a login's own request.
    public var fields: (any SigningFields)?
    /// Value of the `Cookie` field, if another program writes the fields.
    package var cookies: [UInt8]?

    /// Creates a request, by default without a body, at the beginning of 1970.
    public init(
        method: String, origin: Origin, target: String, body: Body = .none, now: Int64 = 0,
        fields: (any SigningFields)? = nil
    ) {
        self.now = now
        self.method = method
        self.origin = origin
        self.target = target
        self.body = body
        self.fields = fields
    }
}

extension SigningRequest {
    /// Value of the `Cookie` field; empty if missing.
    var cookieLine: [UInt8] {
        guard let fields else { return cookies ?? [] }
        var line: [UInt8] = []
        fields.forEach { name, value in
            if name.isEqual(toLowercase: Self.cookieName) { line += value.array }
        }
        return line
    }

    private static let cookieName = Array("cookie".utf8)
}

/// Fields of a request that is about to be signed, without a copy.
public protocol SigningFields: AnyObject {
    /// Calls `body` with each field, in the order of sending; the spans must not escape.
    func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void)
}

extension SigningFields {
    /// Returns the values of the fields of that name as they are sent, joined by commas (RFC 9110 §5.3).
    func bytes(of name: HTTPField.Name) -> [UInt8] {
        var joined: [UInt8] = []
        var isFirst = true
        let wanted = Array(name.canonicalName.utf8)
        forEach { name, value in
            guard name.isEqual(toLowercase: wanted) else { return }
            if !isFirst { joined += ", ".utf8 }
            isFirst = false
            joined += value.array
        }
        return joined
    }

    /// Returns the values of the fields of that name, in order.
    public func values(of name: HTTPField.Name) -> [String] {
        var values: [String] = []
        let wanted = Array(name.canonicalName.utf8)
        forEach { name, value in
            guard name.isEqual(toLowercase: wanted) else { return }
            values.append(String(decoding: value.array, as: UTF8.self))
        }
        return values
    }
}
