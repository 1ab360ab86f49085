// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A `${NAME}` that has no value.
struct EnvironmentError: Error {
    var reason: String
}

/// `text` with each `${NAME}` replaced from `environment`; `$${` is `${` itself.
func expanded(_ text: String, environment: [String: String]) throws(EnvironmentError) -> String {
    guard text.contains("$") else { return text }
    var output = ""
    var rest = text[...]
    while let dollar = rest.firstIndex(of: "$") {
        output += rest[..<dollar]
        rest = rest[dollar...]
        if rest.hasPrefix("$${") {
            output += "${"
            rest = rest.dropFirst(3)
        } else if rest.hasPrefix("${") {
            guard let end = rest.firstIndex(of: "}") else {
                throw EnvironmentError(reason: "a ${ has no }; write $${ for the signs themselves")
            }
            let name = String(rest[..<end].dropFirst(2))
            guard isVariableName(name) else {
                throw EnvironmentError(
                    reason: "\"\(name)\" is no name of an environment variable; write $${ for the signs ${ themselves")
            }
            guard let value = environment[name] else {
                throw EnvironmentError(
                    reason: "the environment variable \(name) is not set"
                        + (name == "CREDENTIALS_DIRECTORY"
                            ? "; the unit has it where it says LoadCredential=. Outside of it, set it to where such files are"
                            : ""))
            }
            output += value
            rest = rest[end...].dropFirst()
        } else {
            output += "$"
            rest = rest.dropFirst()
        }
    }
    return output + rest
}

/// POSIX names: letters, digits and underscores, no digit first.
private func isVariableName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return name.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
    }
}
