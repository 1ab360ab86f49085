// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Signer of session fields that differ between requests: fields of some methods only, and copies of cookies.
///
/// Copies of cookies protect against forged requests: a server compares the field with the cookie that comes with it
/// (double submit). So the cookie is taken from the very request, after all renewals.
final class InjectedFieldSigner: RequestSigner {
    /// Field with the parts of its value.
    struct Field: Sendable, Equatable {
        var name: HTTPField.Name
        /// Methods of the requests that get the field; empty for all.
        var methods: [String]
        /// Parts of the value, in order.
        var parts: [Part]
    }

    enum Part: Sendable, Equatable {
        /// Text that is the same in all requests.
        case constant(Secret)
        /// Value of the request's cookie of that name, decoded or as it is.
        case cookie(String, isDecoded: Bool)
    }

    private let fields: [Field]

    /// Creates a signer of `fields`.
    init(_ fields: [Field]) { self.fields = fields }

    /// Names of the fields.
    var names: [HTTPField.Name] { fields.map(\.name) }

    /// Empty: responses change nothing.
    var learnsFrom: [HTTPField.Name]? { [] }

    /// Does nothing: responses do not change the fields.
    func learn(status: Int, fields: HTTPFields, target: String) {}

    /// Returns the fields of `request`, except those whose cookie the request does not have.
    func sign(_ request: SigningRequest) -> SignedFields {
        var signed: [InjectedField] = []
        let line = request.cookieLine
        for field in fields where field.methods.isEmpty || field.methods.contains(request.method) {
            if let value = Self.value(field, line) { signed.append(InjectedField(name: field.name, value: value)) }
        }
        return SignedFields(signed)
    }

    private static func value(_ field: Field, _ line: [UInt8]) -> Secret? {
        var value = SecretBuilder()
        for part in field.parts {
            switch part {
            case .constant(let text): value.append(text)
            case .cookie(let name, let isDecoded):
                guard let found = CookieLine.value(of: name, in: line) else { return nil }
                let bytes = isDecoded ? FormEncoding.percentDecoded(Array(found)) : Array(found)
                // Decoded bytes must not end the field (RFC 9110 §5.5).
                guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
                value.append(bytes)
            }
        }
        return value.finish()
    }

    // MARK: Image

    private static let mark = Array("INJECT1 ".utf8)
    private static let mostFields = 32
    private static let mostParts = 64

    /// Image of the fields: `INJECT1 `, then for each its name, methods and parts.
    var image: SignerImage? {
        var writer = ImageWriter()
        writer.append(raw: Self.mark)
        writer.append(UInt16(clamping: fields.count))
        for field in fields {
            writer.append(field.name.rawName)
            writer.append(field.methods.joined(separator: " "))
            writer.append(UInt16(clamping: field.parts.count))
            for part in field.parts {
                switch part {
                case .constant(let text):
                    writer.append(byte: 0)
                    writer.append(text)
                case .cookie(let name, let isDecoded):
                    writer.append(byte: isDecoded ? 2 : 1)
                    writer.append(name)
                }
            }
        }
        guard let image = SignerImage(writer.finish()), InjectedFieldSigner(image)?.fields == fields else { return nil }
        return image
    }

    /// Creates the signer of an image that `image` has written; nil for any other.
    init?(_ image: SignerImage) {
        var reader = ImageReader(image.bytes)
        guard let fields = try? Self.fields(&reader), reader.isAtEnd else { return nil }
        self.fields = fields
    }

    private static func fields(_ reader: inout ImageReader) throws(SessionImageError) -> [Field] {
        try reader.expect(mark)
        var fields: [Field] = []
        for _ in 0..<(try reader.count(atMost: mostFields)) {
            let place = reader.position
            guard let name = HTTPField.Name(try reader.text()) else { throw SessionImageError(.malformed, at: place) }
            let methods = try reader.text().split(separator: " ").map(String.init)
            var parts: [Part] = []
            for _ in 0..<(try reader.count(atMost: mostParts)) {
                switch try reader.byte() {
                case 0: parts.append(.constant(try reader.fieldValue()))
                case 1: parts.append(.cookie(try reader.line(), isDecoded: false))
                case 2: parts.append(.cookie(try reader.line(), isDecoded: true))
                default: throw SessionImageError(.malformed, at: reader.position - 1)
                }
            }
            fields.append(Field(name: name, methods: methods, parts: parts))
        }
        return fields
    }
}

extension SignerCodec {
    /// Decoder of the signers of `inject`, which need no credential and fit every process.
    package static let injectedFields = SignerCodec { image in InjectedFieldSigner(image) }
}
