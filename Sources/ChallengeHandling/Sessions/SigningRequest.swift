// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// A request that is about to be sent, for its signer to look at. It holds during the call alone.
public struct SigningRequest {
    /// Knowledge of a body.
    public enum Body: Sendable {
        /// There is none.
        case none
        /// There is one, and nothing is known of it.
        case unread
        /// The digests of all of it that were asked for.
        case digests([BodyDigest])
    }

    /// The method.
    public var method: String
    /// The server that it goes to.
    public var origin: Origin
    /// The request target as it goes on the wire.
    public var target: String
    /// Its body.
    public var body: Body
    /// Its fields as they go on the wire, but for those of this signer and those after it, and those of the framing; `nil` if another
    /// program writes them (auth requests), or the request is a login's own.
    public var fields: (any SigningFields)?

    /// A request; without a body where none is given.
    public init(
        method: String, origin: Origin, target: String, body: Body = .none, fields: (any SigningFields)? = nil
    ) {
        self.method = method
        self.origin = origin
        self.target = target
        self.body = body
        self.fields = fields
    }
}

/// The fields of a request that is about to be signed, lent out without a copy.
public protocol SigningFields: AnyObject {
    /// Shows each field to `body`, in the order of the wire. Neither span may be kept.
    func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void)
}

extension SigningFields {
    /// The values of the fields of that name, in their order.
    public func values(of name: HTTPField.Name) -> [String] {
        var values: [String] = []
        let wanted = Array(name.canonicalName.utf8)
        forEach { name, value in
            guard name.count == wanted.count else { return }
            for index in name.indices {
                let byte = name[index]
                let isCapital = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
                guard wanted[index] == (isCapital ? byte | 0x20 : byte) else { return }
            }
            var bytes: [UInt8] = []
            for index in value.indices { bytes.append(value[index]) }
            values.append(String(decoding: bytes, as: UTF8.self))
        }
        return values
    }
}

/// The digest of a request's body.
public struct BodyDigest: Sendable, Equatable {
    /// By which function.
    public var algorithm: DigestAlgorithm
    /// Its bytes.
    public var bytes: [UInt8]

    /// A digest.
    public init(algorithm: DigestAlgorithm, bytes: [UInt8]) {
        self.algorithm = algorithm
        self.bytes = bytes
    }
}
