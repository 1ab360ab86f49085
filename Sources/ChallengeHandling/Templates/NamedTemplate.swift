// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// A parameter and the template of its value.
public struct NamedTemplate: Sendable, Hashable {
    /// The parameter's name.
    public var name: String
    /// The template of its value.
    public var value: TextTemplate

    /// Creates a parameter.
    public init(name: String, value: TextTemplate) {
        self.name = name
        self.value = value
    }
}

/// A field of a request and the template of its value.
public struct InjectedTemplate: Sendable, Hashable {
    /// The field's name.
    public var name: HTTPField.Name
    /// The template of its value.
    public var value: TextTemplate
    /// Methods of the requests that get the field; empty for all.
    public var methods: [String]

    /// Creates a field, by default of all requests.
    public init(name: HTTPField.Name, value: TextTemplate, methods: [String] = []) {
        self.name = name
        self.value = value
        self.methods = methods
    }
}

extension [NamedTemplate] {
    /// The credential's fields that the templates use.
    var fieldNames: Set<String> { reduce(into: []) { $0.formUnion($1.value.fieldNames) } }
}

extension [InjectedTemplate] {
    /// The credential's fields that the templates use.
    var fieldNames: Set<String> { reduce(into: []) { $0.formUnion($1.value.fieldNames) } }
}

extension [InjectedTemplate] {
    /// The fields as one text, for the comparison of configurations.
    package var terms: [(String, String)] {
        map { field in
            let methods = field.methods.isEmpty ? "" : " (\(field.methods.joined(separator: ", ")))"
            return (field.name.canonicalName, field.value.source + methods)
        }
    }
}
