// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
    /// Value of the `Cookie` field, where another program writes the fields.
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
    /// Value of the `Cookie` field; empty if there is none.
    var cookieLine: [UInt8] {
        guard let fields else { return cookies ?? [] }
        var line: [UInt8] = []
        fields.forEach { name, value in
            guard Self.isCookie(name) else { return }
            line.reserveCapacity(value.count)
            for index in value.indices { line.append(value[index]) }
        }
        return line
    }

    private static let cookieName = Array("cookie".utf8)

    private static func isCookie(_ name: Span<UInt8>) -> Bool {
        guard name.count == cookieName.count else { return false }
        for index in name.indices where name[index] | 0x20 != cookieName[index] { return false }
        return true
    }
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
            guard Self.matches(name, wanted) else { return }
            if !isFirst { joined += ", ".utf8 }
            isFirst = false
            for index in value.indices { joined.append(value[index]) }
        }
        return joined
    }

    private static func matches(_ name: Span<UInt8>, _ wanted: [UInt8]) -> Bool {
        guard name.count == wanted.count else { return false }
        for index in name.indices {
            let byte = name[index]
            let isCapital = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            guard wanted[index] == (isCapital ? byte | 0x20 : byte) else { return false }
        }
        return true
    }

    /// Returns the values of the fields of that name, in order.
    public func values(of name: HTTPField.Name) -> [String] {
        var values: [String] = []
        let wanted = Array(name.canonicalName.utf8)
        forEach { name, value in
            guard Self.matches(name, wanted) else { return }
            var bytes: [UInt8] = []
            for index in value.indices { bytes.append(value[index]) }
            values.append(String(decoding: bytes, as: UTF8.self))
        }
        return values
    }
}
