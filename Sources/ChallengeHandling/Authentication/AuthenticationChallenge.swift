// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.3).
public struct AuthenticationChallenge: Sendable, Equatable {
    /// A parameter as it was written, its quoting undone.
    public struct Parameter: Sendable, Equatable {
        /// The name in lower case, as names are compared without regard to case (RFC 9110 §11.2).
        public let name: String
        /// The value.
        public let value: String
    }

    /// The scheme as it was written.
    public let scheme: String
    /// The token68 that stands in the place of parameters (Negotiate's data), if one does.
    public let token68: String?
    /// The parameters in order; no name occurs twice.
    public let parameters: [Parameter]

    /// Whether the scheme is `name`; schemes are compared without regard to case (RFC 9110 §11.1).
    public func isScheme(_ name: String) -> Bool { scheme.lowercased() == name.lowercased() }

    /// The value of the parameter of that name, whatever its case.
    public subscript(parameter: String) -> String? {
        let name = parameter.lowercased()
        return parameters.first { $0.name == name }?.value
    }

    /// All challenges of the fields, in order. Throws where a field does not follow the grammar: half of a list of
    /// schemes could be the weaker half.
    public static func parse(_ fieldValues: [String]) throws(MalformedChallenge) -> [AuthenticationChallenge] {
        var challenges: [AuthenticationChallenge] = []
        for value in fieldValues {
            var parser = AuthenticationChallengeParser(value)
            challenges += try parser.challenges()
        }
        return challenges
    }
}

/// A `WWW-Authenticate` field that does not follow RFC 9110 §11.6.1.
public struct MalformedChallenge: Error, Sendable, Equatable {
    /// The number of bytes before the place where reading ended.
    public let offset: Int
    /// What was expected there.
    public let reason: String
}
