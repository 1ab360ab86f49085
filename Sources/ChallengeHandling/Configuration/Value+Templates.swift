// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

extension Value {
    /// Text with the fields of a credential in it.
    package func template() -> TextTemplate? {
        guard !hasBracesWithoutQuotes(), let text = text() else { return nil }
        do {
            return try TextTemplate(text)
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// A JSON value: what stands without quotes may be a number, `true`, `false` or `null`, as in YAML 1.2.
    package func json() -> JSONValue? {
        switch node.content {
        case .mapping:
            guard !hasBracesWithoutQuotes(), let members = members() else { return nil }
            var object: [String: JSONValue] = [:]
            for (name, value) in members {
                if SecretNames.contains(name), value.isScalar { value.refuseLiteralSecret(name) }
                object[name] = value.json()
            }
            return object.count == members.count ? .object(object) : nil
        case .scalar(_, let isPlain):
            if node.isNull { return .null }
            guard let text = text() else { return nil }
            return isPlain ? plainJSON(text) : .string(text)
        case .sequence:
            let elements = list()?.map { $0.json() } ?? []
            let values = elements.compactMap(\.self)
            return values.count == elements.count ? .array(values) : nil
        }
    }

    /// A JSON value whose strings are templates.
    package func answer() -> AnswerTemplate? {
        guard let value = json() else { return nil }
        do {
            return try AnswerTemplate(value)
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// A mapping of parameters to templates.
    package func parameters() -> [NamedTemplate] {
        (members() ?? []).compactMap { name, value in
            if SecretNames.contains(name) { value.refuseLiteralSecret(name) }
            return value.template().map { NamedTemplate(name: name, value: $0) }
        }
    }

    /// A mapping of fields to templates.
    package func fieldTemplates() -> [InjectedTemplate] {
        var seen: Set<String> = []
        return (members() ?? []).compactMap { name, value in
            if SecretNames.contains(name) { value.refuseLiteralSecret(name) }
            guard let template = value.template(), let field = value.fieldName(name) else { return nil }
            guard seen.insert(field.canonicalName).inserted else {
                value.report("the field stands here already, in other letters")
                return nil
            }
            return InjectedTemplate(name: field, value: template)
        }
    }

    /// Reports a secret that stands in the file, or comes into it from the environment.
    private func refuseLiteralSecret(_ name: String) {
        guard case .scalar(let text, _) = node.content, !node.isNull, !["true", "false"].contains(text), !text.isEmpty,
            let expanded = quietText, let template = try? TextTemplate(expanded), template.fieldNames.isEmpty
        else { return }
        report(
            "a secret does not stand in this file, nor come into it from the environment: keep it in a credential source, "
                + "name that by `credential:`, and write the name of its field here in braces: \"{\(fieldName(for: name))}\""
        )
    }

    private func fieldName(for name: String) -> String {
        let known = ["password", "pin", "token", "secret", "key", "passphrase"]
        return known.first { name.lowercased().hasSuffix($0) } ?? "field"
    }

    /// `{pin}` without quotes is a mapping to YAML.
    private func hasBracesWithoutQuotes() -> Bool {
        guard case .mapping(let entries, isFlow: true) = node.content, entries.count == 1, let entry = entries.first,
            entry.value.content == .scalar("", isPlain: true)
        else { return false }
        report("put quotes around braces: \"{\(entry.key)}\"")
        return true
    }

    /// YAML 1.2 §10.2.2, the core schema.
    private func plainJSON(_ text: String) -> JSONValue {
        switch text {
        case "true", "True", "TRUE": return .bool(true)
        case "false", "False", "FALSE": return .bool(false)
        default: break
        }
        let startsNumber =
            text.utf8.first.map { (0x30...0x39).contains($0) || [0x2B, 0x2D, 0x2E].contains($0) } ?? false
        guard startsNumber, !text.lowercased().contains("x") else { return .string(text) }
        if let number = Int64(text) { return .integer(number) }
        if let number = Double(text), number.isFinite { return .double(number) }
        return .string(text)
    }
}
