// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
    public var fieldNames: Set<String> { Self.fieldNames(root) }

    /// Returns the answer with the fields of `credential`. Throws if a field is missing or is not text.
    public func render(_ credential: Credential) async throws(TemplateError) -> SecretJSON {
        SecretJSON(try await Self.render(root, credential))
    }

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

    private static func fieldNames(_ node: Node) -> Set<String> {
        switch node {
        case .array(let nodes): nodes.reduce(into: []) { $0.formUnion(fieldNames($1)) }
        case .object(let nodes): nodes.values.reduce(into: []) { $0.formUnion(fieldNames($1)) }
        case .text(let template): template.fieldNames
        case .value: []
        }
    }

    private static func render(_ node: Node, _ credential: Credential) async throws(TemplateError) -> JSONValue {
        switch node {
        case .array(let nodes):
            var elements: [JSONValue] = []
            for node in nodes { elements.append(try await render(node, credential)) }
            return .array(elements)
        case .object(let nodes):
            var members: [String: JSONValue] = [:]
            for (name, node) in nodes.sorted(by: { $0.key < $1.key }) {
                members[name] = try await render(node, credential)
            }
            return .object(members)
        case .text(let template):
            // JSON is text: invalid UTF-8 would silently become another password.
            for name in template.fieldNames where credential[name].map(isText) == false {
                throw .fieldNotText(field: name, credential: credential.name)
            }
            return .string(try await template.render(credential).revealText())
        case .value(let value):
            return value
        }
    }
}

private func isText(_ field: Secret) -> Bool {
    String(validating: field.revealBytes(), as: UTF8.self) != nil
}

/// A JSON value with secrets, such as the answer to a security check. It never prints.
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
