// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// Credentials from environment variables.
///
/// `COUNTERSIGN_BANK_PIN__PIN=1234` is the field `pin` of `bank-pin`. Credential and field are in upper case and separated by two
/// underscores. An underscore replaces each character other than ASCII letters and digits.
///
/// This mapping loses case and punctuation. `bank-pin` and `bank.pin` therefore share their variables. A field is available in
/// lower case as `client-id`, and as `client_id` for templates with that spelling; `{clientID}` never matches. A field neither
/// begins with an underscore nor contains two in a row, so a variable belongs to one credential only. An empty variable counts as
/// unset.
package struct EnvironmentSource: CredentialLookup {
    private static let prefix = "COUNTERSIGN_"

    private let variables: [String: Secret]

    /// Creates a source from the credential variables in `environment`; other variables are ignored.
    package init(environment: [String: String]) {
        var variables: [String: Secret] = [:]
        for (name, value) in environment where name.hasPrefix(Self.prefix) && name.contains("__") && !value.isEmpty {
            variables[name] = Secret(value)
        }
        self.variables = variables
    }

    /// Creates a source from variables of another origin, such as a file.
    init(variables: [String: Secret]) {
        self.variables = variables.filter {
            $0.key.hasPrefix(Self.prefix) && $0.key.contains("__") && $0.value.count > 0
        }
    }

    /// Returns an instruction with the names of the variables.
    package func way(toAdd fields: [String], of name: String) -> String? {
        "set \(Self.variables(fields, of: name)) in the daemon's environment (source `env`)"
    }

    /// Returns a description with the names of the variables.
    package func source(of fields: [String], of name: String) -> AnsweringSource? {
        let variables = Self.variables(fields, of: name)
        return AnsweringSource(
            kind: "the environment (\(variables))",
            change: "Change \(variables) where the daemon gets its environment, and restart the daemon.")
    }

    /// Returns the names of the variables for these fields, joined by "and".
    static func variables(_ fields: [String], of name: String) -> String {
        fields.map { "\(prefix)\(CredentialFields.environmentName(name))__\(CredentialFields.environmentName($0))" }
            .joined(
                separator: " and ")
    }

    /// The number of fields.
    var count: Int { variables.count }

    /// Returns the variables that begin with this name, as fields.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        let start = Self.prefix + CredentialFields.environmentName(name) + "__"
        var fields: [String: Secret] = [:]
        for (variable, value) in variables where variable.hasPrefix(start) {
            let field = variable.dropFirst(start.count)
            guard let first = field.first, first != "_", !field.contains("__") else { continue }
            fields[CredentialFields.foldedName(String(field))] = value
            fields[field.lowercased()] = value
        }
        return fields.isEmpty ? nil : Credential(name: name, fields: fields)
    }
}
