// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Values to extract from a step's JSON answer: a token and its lifetime.
public struct GatewayExtraction: Sendable, Equatable {
    /// A value, and its name in templates of later steps and of the session's fields.
    public struct Part: Sendable, Hashable {
        /// The name.
        public var name: String
        /// The location of the value.
        public var pointer: JSONPointer

        /// Creates a part.
        public init(name: String, pointer: JSONPointer) {
            self.name = name
            self.pointer = pointer
        }
    }

    /// The required values.
    public var parts: [Part]
    /// The location of the session's lifetime in seconds, which an answer may omit.
    public var expires: JSONPointer?

    /// Creates an extraction. Without parts nothing is extracted.
    public init(_ parts: [Part] = [], expires: JSONPointer? = nil) {
        self.parts = parts
        self.expires = expires
    }

    /// True if nothing is extracted.
    public var isEmpty: Bool { parts.isEmpty && expires == nil }

    /// The values of one answer.
    struct Values {
        var fields: [String: Secret] = [:]
        /// The lifetime in seconds.
        var lifetime: Int64?
    }

    /// Reason why an answer cannot be used, in words that follow "the answer".
    struct Unusable: Error, Equatable {
        let reason: String
    }

    /// Extracts the values from `body`. A value is text or a whole number that a field can carry.
    func values(in body: [UInt8]) throws(Unusable) -> Values {
        guard let json = JSONValue(parsing: body) else { throw Unusable(reason: "is not JSON") }
        var values = Values()
        for part in parts {
            guard let text = part.pointer.value(in: json).flatMap(Self.text), Self.canCarry(text.utf8) else {
                throw Unusable(reason: "holds nothing at \(part.pointer.source) that a field can carry")
            }
            values.fields[part.name] = Secret(text)
        }
        guard let expires, let lifetime = expires.value(in: json), lifetime != .null else { return values }
        guard let seconds = lifetime.integerValue else {
            throw Unusable(reason: "holds no whole number of seconds at \(expires.source)")
        }
        guard seconds > 0 else { throw Unusable(reason: "holds a session that has expired already") }
        // More than ten years is a mistake in units. The limit avoids overflow.
        values.lifetime = min(seconds, 10 * 366 * 86_400)
        return values
    }

    private static func text(_ value: JSONValue) -> String? {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        default: nil
        }
    }

    /// Returns whether a field can carry `text`: printable ASCII (RFC 9110 §5.5). A field's value cannot have a leading
    /// or trailing space.
    private static func canCarry(_ text: String.UTF8View) -> Bool {
        (1...TokenPlacement.longest).contains(text.count) && text.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            && text.first != 0x20 && text.last != 0x20
    }
}

extension Credential {
    /// Returns this credential with `values` added. They replace fields of their names.
    func adding(_ values: [String: Secret]) -> Credential {
        if values.isEmpty { return self }
        return Credential(
            name: name, fields: fields.merging(values) { $1 }, oneTimePasswords: oneTimePasswords)
    }
}
