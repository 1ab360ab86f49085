// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
