// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// Credentials in environment variables: `COUNTERSIGN_BANK_PIN__PIN=1234` is the field `pin` of `bank-pin`. The name and
/// the field are in upper case, every sign but ASCII letters and digits an underscore, with two underscores between.
///
/// That loses the case and the signs. So `bank-pin` and `bank.pin` share their variables; and a field comes back in lower
/// case, as `client-id`, and also as `client_id` for a template that writes it so; `{clientID}` never fits. A field does
/// not begin with an underscore nor hold two in a row, which is why a variable belongs to one name only. A variable that is
/// empty counts as not set.
package struct EnvironmentSource: CredentialLookup {
    private static let prefix = "COUNTERSIGN_"

    private let variables: [String: Secret]

    /// The variables of `environment` that name credentials; the others are not kept.
    package init(environment: [String: String]) {
        var variables: [String: Secret] = [:]
        for (name, value) in environment where name.hasPrefix(Self.prefix) && name.contains("__") && !value.isEmpty {
            variables[name] = Secret(value)
        }
        self.variables = variables
    }

    /// The same of variables that came from elsewhere.
    init(variables: [String: Secret]) {
        self.variables = variables.filter {
            $0.key.hasPrefix(Self.prefix) && $0.key.contains("__") && $0.value.count > 0
        }
    }

    /// The names of the variables.
    package func way(toAdd fields: [String], of name: String) -> String? {
        "set \(Self.variables(fields, of: name)) in the daemon's environment (source `env`)"
    }

    /// The names of the variables that hold these fields.
    static func variables(_ fields: [String], of name: String) -> String {
        fields.map { "\(prefix)\(FieldName.environment(name))__\(FieldName.environment($0))" }.joined(
            separator: " and ")
    }

    /// How many fields it has.
    var count: Int { variables.count }

    /// The variables that begin with this name, as fields.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        let start = Self.prefix + FieldName.environment(name) + "__"
        var fields: [String: Secret] = [:]
        for (variable, value) in variables where variable.hasPrefix(start) {
            let field = variable.dropFirst(start.count)
            guard let first = field.first, first != "_", !field.contains("__") else { continue }
            fields[FieldName.folded(String(field))] = value
            fields[field.lowercased()] = value
        }
        return fields.isEmpty ? nil : Credential(name: name, fields: fields)
    }
}
