// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// What a login takes out of the JSON that a step is answered with: a token, and how long it lives.
public struct GatewayExtraction: Sendable, Equatable {
    /// A value, and the name by which templates of later steps and of the session's fields know it.
    public struct Part: Sendable, Hashable {
        /// The name.
        public var name: String
        /// Where it stands.
        public var pointer: JSONPointer

        /// A part.
        public init(name: String, pointer: JSONPointer) {
            self.name = name
            self.pointer = pointer
        }
    }

    /// The values; each must be there.
    public var parts: [Part]
    /// Where the seconds stand for which the session is good; an answer need not say it.
    public var expires: JSONPointer?

    /// An extraction; without parts nothing is taken.
    public init(_ parts: [Part] = [], expires: JSONPointer? = nil) {
        self.parts = parts
        self.expires = expires
    }

    /// Whether an answer is not looked into.
    public var isEmpty: Bool { parts.isEmpty && expires == nil }

    /// What one answer held.
    struct Values {
        var fields: [String: Secret] = [:]
        /// In seconds.
        var life: Int64?
    }

    /// Why an answer cannot be used, in words that go on "the answer".
    struct Unusable: Error, Equatable {
        let reason: String
    }

    /// What `body` holds. A value is text or a whole number, and such that a field can carry it.
    func values(in body: [UInt8]) throws(Unusable) -> Values {
        guard let json = JSONValue(parsing: body) else { throw Unusable(reason: "is no JSON") }
        var values = Values()
        for part in parts {
            guard let text = part.pointer.value(in: json).flatMap(Self.text), Self.canCarry(text.utf8) else {
                throw Unusable(reason: "holds nothing at \(part.pointer.source) that a field can carry")
            }
            values.fields[part.name] = Secret(text)
        }
        guard let expires, let life = expires.value(in: json), life != .null else { return values }
        guard let seconds = life.integerValue else {
            throw Unusable(reason: "holds no whole number of seconds at \(expires.source)")
        }
        guard seconds > 0 else { throw Unusable(reason: "holds a session that has ended already") }
        // Beyond ten years it is a mistake in units; it is cut, so that nothing can overflow.
        values.life = min(seconds, 10 * 366 * 86_400)
        return values
    }

    private static func text(_ value: JSONValue) -> String? {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        default: nil
        }
    }

    /// Printing ASCII (RFC 9110 §5.5), and no space at an end, which is not part of a field's value.
    private static func canCarry(_ text: String.UTF8View) -> Bool {
        (1...TokenPlacement.longest).contains(text.count) && text.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            && text.first != 0x20 && text.last != 0x20
    }
}

extension Credential {
    /// This credential with `values` beside its fields, and in their place where a name stands in both.
    func adding(_ values: [String: Secret]) -> Credential {
        if values.isEmpty { return self }
        return Credential(
            name: name, fields: fields.merging(values) { $1 }, oneTimePasswords: oneTimePasswords)
    }
}
