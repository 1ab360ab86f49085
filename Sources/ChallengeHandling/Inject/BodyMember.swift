// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Value for a member of a request's body.
struct BodyMember: Sendable {
    /// Names from the outermost object to the member, decoded (RFC 6901 §4).
    let names: [[UInt8]]
    /// Value as it is.
    let value: Secret
    /// Value as a JSON string, in quotes.
    let json: Secret

    /// Creates a member; `value` is UTF-8.
    init(names: [[UInt8]], value: Secret) {
        self.names = names
        self.value = value
        json = Self.quoted(value)
    }

    /// Returns the text as a JSON string (RFC 8259 §7).
    static func quoted(_ text: Secret) -> Secret {
        var quoted = SecretBuilder(capacity: text.count + 2)
        quoted.append(UInt8(ascii: "\""))
        text.withBytes { bytes in
            for index in bytes.indices {
                switch bytes[index] {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                    quoted.append(UInt8(ascii: "\\"))
                    quoted.append(bytes[index])
                case let byte where byte < 0x20:
                    quoted.append("\\u00")
                    quoted.append(UInt8(ascii: "0") + byte >> 4)
                    quoted.append(Array("0123456789abcdef".utf8)[Int(byte & 15)])
                case let byte:
                    quoted.append(byte)
                }
            }
        }
        quoted.append(UInt8(ascii: "\""))
        return quoted.finish()
    }
}

/// Form of a request's body, according to its fields.
package enum BodyFormat: Sendable, Equatable {
    /// JSON: `application/json`, or a type that ends in `+json` (RFC 6839 §3.1).
    case json
    /// `application/x-www-form-urlencoded`.
    case parameters

    /// Returns the form of a body that a value can be put into; throws for any other.
    ///
    /// A secret is never put where two readers could disagree about its place: this needs one `Content-Type`, no
    /// content coding, UTF-8, and no field with a digest of the body.
    package static func of(_ fields: any SigningFields) throws(InjectionFault) -> BodyFormat {
        let codings = fields.values(of: .contentEncoding)
        guard codings.allSatisfy({ $0.isEmpty || $0.lowercased() == "identity" }) else {
            throw InjectionFault(
                "\(lead) The body has a Content-Encoding, so its members cannot be found. Send it without one.")
        }
        for name in digestNames where !fields.values(of: name).isEmpty {
            throw InjectionFault(
                "\(lead) The field \(name.rawName) holds a digest of the body, which would be wrong then. Leave it out."
            )
        }
        let types = fields.values(of: .contentType)
        guard types.count == 1, let written = types.first else {
            throw InjectionFault("\(lead) The request has \(types.isEmpty ? "no" : "several") Content-Type. Name one.")
        }
        let media = MediaType(written)
        let type = media.essence
        let isUTF8 = media.charset.map { ["utf-8", "utf8", "us-ascii"].contains($0.lowercased()) } ?? true
        let isJSON = type == "application/json" || type.hasSuffix("+json")
        guard isUTF8, isJSON || type == FormEncoding.mediaType, !type.contains(",") else {
            throw InjectionFault(
                "\(lead) The body is neither JSON nor a form in UTF-8. Send it as application/json or \(FormEncoding.mediaType)."
            )
        }
        return isJSON ? .json : .parameters
    }

    private static let lead = "A value of the credential belongs in the body of this request."

    private static let digestNames = ["Content-Digest", "Content-MD5", "Digest", "Repr-Digest"].compactMap {
        HTTPField.Name($0)
    }
}

/// Writes values into the body of a form.
enum FormSplicer {
    /// Returns `body` with the members as its last parameters, and without others of these names.
    static func spliced(_ body: [UInt8], _ members: [BodyMember]) throws(InjectionFault) -> Secret {
        guard members.allSatisfy({ $0.names.count == 1 }) else {
            throw InjectionFault(
                "A value of the credential belongs in an object of a JSON body, and the body of this request is a form."
            )
        }
        var changed = SecretBuilder(capacity: body.count + 256)
        var isFirst = true
        let bytes = body.span
        ParameterList.forEach(bytes, 0..<bytes.count, without: members.compactMap(\.names.first)) {
            parameter, separator in
            if isFirst, parameter.isEmpty { return }
            if !isFirst { changed.append(separator) }
            changed.append(bytes.extracting(parameter))
            isFirst = false
        }
        for member in members {
            if changed.count > 0 { changed.append(UInt8(ascii: "&")) }
            changed.append(FormEncoding.encoded(Secret(member.names[0])))
            changed.append(UInt8(ascii: "="))
            changed.append(FormEncoding.encoded(member.value))
        }
        return changed.finish()
    }
}
