// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

extension InjectedTemplate {
    private static let framing: Set<String> = [
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    /// Returns the reason why a configuration cannot set a field of that name; nil if it can.
    package static func fault(ofName text: String) -> String? {
        guard let name = HTTPField.Name(text), !text.hasPrefix(":") else { return "is not the name of a field" }
        return framing.contains(name.canonicalName) ? "belongs to the connection and cannot be set" : nil
    }

    private enum Keys {
        static let value = Key<Value?>(required: "value", ValueForm("template") { $0 }, "Value of the field.")
        static let methods = Key(
            "on", .list(of: .method), without: "all requests", "Methods of the requests that get the field.")
    }

    /// Table of `challenges.inject.*`: a field of some requests only.
    package static let section = KeySection("challenges.inject.*", [Keys.value, Keys.methods])

    /// Returns the template and the methods of a field; its name is set by the caller.
    static func read(_ value: Value, inLogin isInLogin: Bool) -> (value: TextTemplate, methods: [String])? {
        guard let fields = value.fields(of: section) else { return nil }
        let methods = fields[Keys.methods] ?? []
        guard let template = fields[Keys.value]?.template(inLogin: isInLogin) else { return nil }
        return (template, methods.map(\.rawValue))
    }
}
