// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
public import Secrets

/// A JSON value whose strings are templates over a credential's fields: `{ pin: "{pin}" }`.
///
/// Numbers, booleans, `null`, and names of members are unchanged.
public struct AnswerTemplate: Sendable, Hashable {
    /// A value with its strings parsed.
    private indirect enum Node: Sendable, Hashable {
        case array([Node])
        case object([String: Node])
        case text(TextTemplate)
        case value(JSONValue)
    }

    private let root: Node
    /// The value as written, with unparsed strings.
    package let source: JSONValue

    /// Parses the strings of `value`. Throws `TemplateError.malformed`, which names the member.
    public init(_ value: JSONValue) throws(TemplateError) {
        root = try Self.parse(value, at: "")
        source = value
    }

    /// The fields that a credential must have.
    public var fieldNames: Set<String> { Self.templates(root).reduce(into: []) { $0.formUnion($1.fieldNames) } }

    /// Returns the answer with the fields of `credential`. Throws if a field is missing or is not text.
    ///
    /// `received` returns values that the server has sent.
    public func render(
        _ credential: Credential, received: (ValueSource) -> Secret? = { _ in nil }
    ) async throws(TemplateError) -> SecretJSON {
        try await render(credential, received: received, adding: [])
    }

    /// Returns the answer with `texts` as further members, if it is an object.
    func render(
        _ credential: Credential, received: (ValueSource) -> Secret?, adding texts: [(name: String, value: Secret)]
    ) async throws(TemplateError) -> SecretJSON {
        var value = try await Self.render(root, credential, received)
        if case .object(var members) = value {
            for text in texts where members[text.name] == nil { members[text.name] = .string(text.value.revealText()) }
            value = .object(members)
        }
        return SecretJSON(value)
    }

    /// The sources of values that the server sends.
    public var sources: [ValueSource] { Self.templates(root).flatMap(\.sources) }

    /// Names of the members, if the value is an object.
    var memberNames: [String] { if case .object(let members) = root { members.keys.sorted() } else { [] } }

    private static func parse(_ value: JSONValue, at path: String) throws(TemplateError) -> Node {
        switch value {
        case .array(let elements):
            var nodes: [Node] = []
            for (index, element) in elements.enumerated() { nodes.append(try parse(element, at: "\(path)[\(index)]")) }
            return .array(nodes)
        case .object(let members):
            var nodes: [String: Node] = [:]
            for (name, member) in members.sorted(by: { $0.key < $1.key }) {
                nodes[name] = try parse(member, at: path.isEmpty ? name : "\(path).\(name)")
            }
            return .object(nodes)
        case .string(let text):
            do {
                return .text(try TextTemplate(text))
            } catch {
                throw path.isEmpty ? error : .malformed(reason: "\(path): \(error.reason)")
            }
        default:
            return .value(value)
        }
    }

    private static func templates(_ node: Node) -> [TextTemplate] {
        switch node {
        case .array(let nodes): nodes.flatMap(templates)
        case .object(let nodes): nodes.values.flatMap(templates)
        case .text(let template): [template]
        case .value: []
        }
    }

    private static func render(
        _ node: Node, _ credential: Credential, _ received: (ValueSource) -> Secret?
    ) async throws(TemplateError) -> JSONValue {
        switch node {
        case .array(let nodes):
            var elements: [JSONValue] = []
            for node in nodes { elements.append(try await render(node, credential, received)) }
            return .array(elements)
        case .object(let nodes):
            var members: [String: JSONValue] = [:]
            for (name, node) in nodes.sorted(by: { $0.key < $1.key }) {
                members[name] = try await render(node, credential, received)
            }
            return .object(members)
        case .text(let template):
            // JSON is text: invalid UTF-8 would silently become another password.
            for name in template.fieldNames where credential[name].map(isText) == false {
                throw .fieldNotText(field: name, credential: credential.name)
            }
            return .string(try await template.render(credential, received: received).revealText())
        case .value(let value):
            return value
        }
    }
}

private func isText(_ field: Secret) -> Bool {
    String(validating: field.revealBytes(), as: UTF8.self) != nil
}

/// A JSON value with secrets, such as the answer to a security check. It is never printed.
public struct SecretJSON: Sendable, Equatable {
    /// The value as JSON text in UTF-8.
    public let text: Secret

    /// Creates a secret of a value made without a template. The value itself is not protected.
    public init(_ value: JSONValue) {
        text = Secret(value.serialized())
    }

    /// Creates an object of secret values, sorted by name.
    public init(object members: [String: SecretJSON]) {
        var bytes: [UInt8] = [UInt8(ascii: "{")]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += JSONValue.string(name).serialized()
            bytes.append(UInt8(ascii: ":"))
            bytes += value.text.revealBytes()
        }
        bytes.append(UInt8(ascii: "}"))
        text = Secret(bytes)
    }
}

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
