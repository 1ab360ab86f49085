// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.3).
public struct AuthenticationChallenge: Sendable, Equatable {
    /// A parameter without its quoting.
    public struct Parameter: Sendable, Equatable {
        /// The name in lower case, since names are case-insensitive (RFC 9110 §11.2).
        public let name: String
        /// The value.
        public let value: String
    }

    /// The scheme as written.
    public let scheme: String
    /// The token68 at the beginning (Negotiate's data), if any.
    public let token68: String?
    /// The parameters in order. No name occurs twice: the first of equal names counts.
    public let parameters: [Parameter]

    /// Returns whether the scheme is `name`, ignoring case (RFC 9110 §11.1).
    public func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// The value of the parameter of that name, ignoring case.
    public subscript(parameter: String) -> String? {
        let name = parameter.lowercased()
        return parameters.first { $0.name == name }?.value
    }
}

/// The parameters of `Authentication-Info` after an accepted answer (RFC 9110 §11.6.3, RFC 7615).
struct AuthenticationInfo {
    private let parameters: [AuthenticationChallenge.Parameter]

    /// Reads the fields. `nil` if their number is not one, or if the field is not a list of parameters.
    init?(_ fieldValues: [String]) {
        // The list is a challenge without its scheme.
        guard fieldValues.count == 1, let value = fieldValues.first else { return nil }
        let list = ChallengeList(["Info \(value)"])
        guard list.unread.isEmpty, list.challenges.count == 1, let info = list.challenges.first, info.token68 == nil
        else { return nil }
        parameters = info.parameters
    }

    /// The value of the parameter of that name, in lower case.
    subscript(parameter: String) -> String? { parameters.first { $0.name == parameter }?.value }
}

/// The challenges of a response (RFC 9110 §11.6.1), and the text of its fields that could not be read.
///
/// Reading never fails: one unreadable part hides no other challenge. Fields are read as curl and browsers read them,
/// but no part of a quoted string becomes a challenge, nor does text after broken quoting.
public struct ChallengeList: Sendable, Equatable {
    /// The challenges in order.
    public internal(set) var challenges: [AuthenticationChallenge] = []
    /// The first parts that could not be read, in order.
    public internal(set) var unread: [UnreadChallengeText] = []

    /// Schemes, in lower case, with a challenge that was not read whole. Nothing weaker is sent in place of them.
    var damaged: Set<String> = []

    /// Reads the values of all fields of one name. No challenge continues in the next field.
    public init(_ fieldValues: [String]) {
        for (index, value) in fieldValues.enumerated() {
            var reader = ChallengeReader(value, field: index + 1, of: fieldValues.count)
            reader.read(into: &self)
        }
    }

    /// Reads `WWW-Authenticate`, or the field of another name with that grammar (`Proxy-Authenticate`).
    public init(in fields: HTTPFields, name: HTTPField.Name = .wwwAuthenticate) { self.init(fields[values: name]) }

    /// Returns the challenges of one scheme, ignoring case.
    public func challenges(of scheme: String) -> [AuthenticationChallenge] {
        challenges.filter { $0.isScheme(scheme) }
    }

    /// The parts that could not be read, in words; `nil` if everything was read.
    public var unreadText: String? {
        unread.isEmpty ? nil : unread.prefix(4).map(\.description).joined(separator: "; ")
    }
}

/// A part of a `WWW-Authenticate` field that could not be read.
public struct UnreadChallengeText: Sendable, Equatable {
    /// The reason why a part could not be read.
    public enum Reason: String, Sendable, CaseIterable {
        /// The name of the parameter occurred before in this challenge.
        case anotherValue = "a parameter that was there before; the first value counts"
        /// Neither a scheme nor a parameter.
        case noElement = "neither a scheme nor a parameter"
        /// The quoted string has no end; its value is the rest of the field.
        case noEnd = "a quoted string without its end"
        /// No scheme precedes the parameter.
        case noScheme = "a parameter without a scheme"
        /// The parameter has a name only.
        case noValue = "a parameter without a value"
        /// The list is longer than any server's.
        case tooMany = "one part more than are read"
        /// The quoting before the scheme is broken, so that it may be text of a quoted string.
        case unsoundQuoting = "a scheme after broken quoting, which may be part of a text"
        /// Text that belongs to no parameter, or a scheme without a comma before it.
        case words = "words that belong to no parameter"
    }

    /// The number of the field, from 1.
    public let field: Int
    /// The number of fields of that name.
    public let fields: Int
    /// The number of bytes before the part in its field.
    public let offset: Int
    /// The beginning of the part, without values: at most 64 characters of printable ASCII.
    public let text: String
    /// The reason.
    public let reason: Reason
}

extension UnreadChallengeText: CustomStringConvertible {
    /// Text, reason and place.
    public var description: String {
        let place = fields == 1 ? "at byte \(offset)" : "at byte \(offset) of field \(field)"
        return "\"\(text)\" \(place) (\(reason.rawValue))"
    }
}
