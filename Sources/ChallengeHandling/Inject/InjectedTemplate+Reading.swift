// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

extension InjectedTemplate {
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
