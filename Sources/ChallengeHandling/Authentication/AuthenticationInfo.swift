// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a server says in `Authentication-Info` about an accepted answer (RFC 9110 §11.6.3, RFC 7615).
struct AuthenticationInfo {
    private let parameters: [AuthenticationChallenge.Parameter]

    /// Reads the fields; `nil` where there is none, more than one, or no list of parameters.
    init?(_ fieldValues: [String]) {
        // The list is that of a challenge without its scheme.
        guard fieldValues.count == 1, let value = fieldValues.first,
            let challenges = try? AuthenticationChallenge.parse(["Info \(value)"]),
            challenges.count == 1, let info = challenges.first, info.token68 == nil
        else { return nil }
        parameters = info.parameters
    }

    /// The value of the parameter of that name, in lower case.
    subscript(parameter: String) -> String? { parameters.first { $0.name == parameter }?.value }
}
