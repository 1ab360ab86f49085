// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// A parameter, and what its value is made of.
public struct NamedTemplate: Sendable, Hashable {
    /// The parameter's name.
    public var name: String
    /// Its value.
    public var value: TextTemplate

    /// A parameter.
    public init(name: String, value: TextTemplate) {
        self.name = name
        self.value = value
    }
}

/// A field of a request, and what its value is made of.
public struct InjectedTemplate: Sendable, Hashable {
    /// The field's name.
    public var name: HTTPField.Name
    /// Its value.
    public var value: TextTemplate

    /// A field.
    public init(name: HTTPField.Name, value: TextTemplate) {
        self.name = name
        self.value = value
    }
}

extension [NamedTemplate] {
    /// The fields of a credential that they name.
    var fieldNames: Set<String> { reduce(into: []) { $0.formUnion($1.value.fieldNames) } }
}

extension [InjectedTemplate] {
    /// The fields of a credential that they name.
    var fieldNames: Set<String> { reduce(into: []) { $0.formUnion($1.value.fieldNames) } }
}
