// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A JSON value whose strings are templates over the fields of a credential: `{ pin: "{pin}" }`.
///
/// Numbers, truth values and `null` stay as they are; so do the names of members.
public struct AnswerTemplate: Sendable, Hashable {
    /// A value with its strings parsed.
    private indirect enum Node: Sendable, Hashable {
        case array([Node])
        case object([String: Node])
        case text(TextTemplate)
        case value(JSONValue)
    }

    private let root: Node
    /// The value as it was written, its strings with their braces.
    package let source: JSONValue

    /// Parses the strings of `value`; throws `TemplateError.malformed`, which names the member.
    public init(_ value: JSONValue) throws(TemplateError) {
        root = try Self.parse(value, at: "")
        source = value
    }

    /// The fields that a credential must have.
    public var fieldNames: Set<String> { Self.fieldNames(root) }

    /// The answer with the fields of `credential` in it. Throws where a field is missing or is no text.
    public func render(_ credential: Credential) throws(TemplateError) -> SecretJSON {
        SecretJSON(try Self.render(root, credential))
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

    private static func render(_ node: Node, _ credential: Credential) throws(TemplateError) -> JSONValue {
        switch node {
        case .array(let nodes):
            var elements: [JSONValue] = []
            for node in nodes { elements.append(try render(node, credential)) }
            return .array(elements)
        case .object(let nodes):
            var members: [String: JSONValue] = [:]
            for (name, node) in nodes.sorted(by: { $0.key < $1.key }) { members[name] = try render(node, credential) }
            return .object(members)
        case .text(let template):
            // JSON is text: a byte that is no UTF-8 would silently become another password.
            for name in template.fieldNames where credential[name].map(isText) == false {
                throw .fieldNotText(field: name, credential: credential.name)
            }
            return .string(try template.render(credential).revealText())
        case .value(let value):
            return value
        }
    }
}

private func isText(_ field: Secret) -> Bool {
    String(validating: field.revealBytes(), as: UTF8.self) != nil
}
