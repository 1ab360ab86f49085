// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import SettingsReading

/// A line of a configuration, with its comment.
package struct ConfigurationLine: Sendable, Equatable {
    /// The YAML, without indentation of its section.
    package var text: String
    /// The reason for the line; may be empty.
    package var comment: String

    /// Creates a line. Control characters in the comment are left out.
    package init(_ text: String, _ comment: String = "") {
        self.text = text
        self.comment = ServerText.sentence(comment)
    }

    /// Returns the line `prove-at` for an address.
    static func proof(_ address: WebURL, _ comment: String) -> ConfigurationLine {
        ConfigurationLine("prove-at: \(self.address(address))", comment)
    }

    /// Returns an address at the upstream. A path that begins with two slashes would name another server.
    static func address(_ url: WebURL) -> String { scalar(url.path.hasPrefix("//") ? url.description : url.target) }

    /// Returns a single value, quoted if necessary. A server's `${NAME}` is not a variable of this machine.
    package static func scalar(_ text: String) -> String { node(text).flowText }

    static func list(_ texts: [String]) -> String { YAMLNode(list: texts.map(node)).flowText }

    /// Returns a template in quotes, since YAML reads a brace as a mapping.
    static func quoted(_ template: String) -> String {
        let text = scalar(template)
        return text.hasPrefix("\"") ? text : "\"\(text)\""
    }

    /// Returns the template of a constant text.
    static func literal(_ value: String) -> String {
        String(value.flatMap { "{}".contains($0) ? [$0, $0] : [$0] })
    }

    private static func node(_ text: String) -> YAMLNode {
        .scalar(text.split(separator: "${", omittingEmptySubsequences: false).joined(separator: "$${"), isPlain: false)
    }
}

/// A whole configuration of one upstream and its challenge.
package struct ConfigurationBlock: Sendable, Equatable {
    /// The name of the upstream, the challenge, and the credential.
    package let name: String
    /// The upstream's address.
    package let url: WebURL
    /// The file of the authorities that certificates are checked by; `nil` for the system's.
    package let authorities: String?
    /// The lines of the challenge after its name and place.
    package var challenge: [ConfigurationLine]
    /// The fields of the credential.
    package var fields: [String]
    /// The address of the listener that programs on this machine use.
    package static let listener = "127.0.0.1:8080"

    /// Creates a configuration.
    package init(
        name: String, url: WebURL, authorities: String? = nil, challenge: [ConfigurationLine], fields: [String]
    ) {
        self.name = name
        self.url = url
        self.authorities = authorities
        self.challenge = challenge
        self.fields = fields
    }

    /// Lines of the whole file, with comments. Without a listener the section `listeners` is left out.
    package func lines(listener: String? = Self.listener) -> [String] {
        var lines: [ConfigurationLine] = []
        if let listener {
            lines += [
                ConfigurationLine("listeners:"),
                ConfigurationLine(
                    "  - address: \(ConfigurationLine.scalar(listener))", "address that programs on this machine use"),
                ConfigurationLine("    upstream: \(name)"), ConfigurationLine(""),
            ]
        }
        lines += [
            ConfigurationLine("upstreams:"), ConfigurationLine("  \(name):"),
            ConfigurationLine("    url: \(ConfigurationLine.scalar(url.description))", "server that was learned"),
        ]
        if let authorities {
            lines.append(
                ConfigurationLine(
                    "    tls: { ca: \(ConfigurationLine.scalar(authorities)) }", "authorities of its certificate"))
        }
        guard !challenge.isEmpty else { return Self.aligned(lines) }
        lines += [
            ConfigurationLine(""), ConfigurationLine("challenges:"), ConfigurationLine("  - name: \(name)"),
            ConfigurationLine("    upstream: \(name)", "every address of the server"),
        ]
        lines += challenge.map { ConfigurationLine("    \($0.text)", $0.comment) }
        if !fields.isEmpty {
            lines.append(ConfigurationLine("    credential: \(name)", "fields: \(fields.joined(separator: ", "))"))
        }
        return Self.aligned(lines)
    }

    /// Returns the lines with their comments in one column, as far as the lines are short.
    private static func aligned(_ lines: [ConfigurationLine]) -> [String] {
        let column = min(48, (lines.filter { !$0.comment.isEmpty }.map(\.text.count).max() ?? 0) + 2)
        return lines.map { line in
            guard !line.comment.isEmpty else { return line.text }
            let space = String(repeating: " ", count: max(2, column - line.text.count))
            return "\(line.text)\(space)# \(line.comment)"
        }
    }
}
