// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Values to extract from a step's answer: a token and its lifetime, a session id.
public struct GatewayExtraction: Sendable, Equatable {
    /// A value, and its name in templates of later steps and of the session's fields.
    public struct Part: Sendable, Hashable {
        /// The name.
        public var name: String
        /// The location of the value.
        public var source: ValueSource

        /// Creates a part.
        public init(name: String, source: ValueSource) {
            self.name = name
            self.source = source
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

    /// True if the values are outside of the body, where no page and no message of a failure can have them.
    var isOfHead: Bool {
        expires == nil
            && parts.allSatisfy {
                switch $0.source {
                case .cookie, .decodedCookie, .header: true
                case .json, .page: false
                }
            }
    }

    /// True if all values come from a JSON body.
    var isOfJSON: Bool { parts.allSatisfy { if case .json = $0.source { true } else { false } } }

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

    /// Extracts the values from the last response. A value is text or a whole number that is valid in a field.
    func values(in received: ReceivedValues) throws(Unusable) -> Values {
        var values = Values()
        for part in parts {
            guard let value = received.value(part.source) else {
                if case .json(let pointer) = part.source {
                    throw Unusable(
                        reason: json(of: received) == nil
                            ? "is not JSON" : "holds nothing at \(pointer.source) that a field can carry")
                }
                throw Unusable(reason: "holds nothing at \(part.source.text) that a field can carry")
            }
            values.fields[part.name] = value
        }
        guard let expires, let lifetime = json(of: received).flatMap(expires.value), lifetime != .null else {
            return values
        }
        guard let seconds = lifetime.integerValue else {
            throw Unusable(reason: "holds no whole number of seconds at \(expires.source)")
        }
        guard seconds > 0 else { throw Unusable(reason: "holds a session that has expired already") }
        // More than ten years is a mistake in units. The limit avoids overflow.
        values.lifetime = min(seconds, 10 * 366 * 86_400)
        return values
    }

    private func json(of received: ReceivedValues) -> JSONValue? {
        received.response?.body.flatMap { JSONValue(parsing: $0) }
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
