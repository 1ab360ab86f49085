// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
package import SettingsReading

extension Value {
    /// Returns a text with fields of a credential.
    package func template() -> TextTemplate? {
        guard !hasBracesWithoutQuotes(), let text = text(isTemplate: true) else { return nil }
        do {
            return try TextTemplate(text)
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// Returns a JSON value. Unquoted text may be a number, `true`, `false` or `null`, as in YAML 1.2.
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
        case .scalar(let written, let isPlain):
            if node.isNull { return .null }
            guard let text = text(isTemplate: true) else { return nil }
            let value = isPlain ? plainJSON(text) : .string(text)
            // Other spellings (`+1`, `TRUE`) are not JSON, in which the effective configuration may be printed.
            switch value {
            case .bool(let flag) where textIfValid == written: record(text: flag ? "true" : "false")
            case .integer(let number) where textIfValid == written: record(text: "\(number)")
            case .double(let number) where textIfValid == written: record(text: "\(number)")
            default: break
            }
            return value
        case .sequence:
            let elements = list()?.map { $0.json() } ?? []
            let values = elements.compactMap(\.self)
            return values.count == elements.count ? .array(values) : nil
        }
    }

    /// Returns a JSON value whose strings are templates.
    package func answer() -> AnswerTemplate? {
        guard let value = json() else { return nil }
        do {
            return try AnswerTemplate(value)
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// Returns a mapping of parameters to templates.
    package func parameters() -> [NamedTemplate] {
        (members() ?? []).compactMap { name, value in
            if SecretNames.contains(name) { value.refuseLiteralSecret(name) }
            return value.template().map { NamedTemplate(name: name, value: $0) }
        }
    }

    /// Returns a mapping of fields to templates.
    package func fieldTemplates() -> [InjectedTemplate] {
        var seen: Set<String> = []
        return (members() ?? []).compactMap { name, value in
            if SecretNames.contains(name) { value.refuseLiteralSecret(name) }
            guard let template = value.template(), let field = value.fieldName(name) else { return nil }
            guard seen.insert(field.canonicalName).inserted else {
                value.report("the field is repeated: field names are not case-sensitive")
                return nil
            }
            return InjectedTemplate(name: field, value: template)
        }
    }

    /// Reports a secret that is written in the file, or inserted from the environment.
    private func refuseLiteralSecret(_ name: String) {
        guard case .scalar(let text, _) = node.content, !node.isNull, !["true", "false"].contains(text), !text.isEmpty,
            let expanded = textIfValid, let template = try? TextTemplate(expanded), template.fieldNames.isEmpty
        else { return }
        report(
            "a secret does not belong in this file, nor in a variable that it names: keep it in a credential source, name that "
                + "credential with `credential:`, and write the name of its field here in braces: \"{\(fieldName(for: name))}\""
        )
    }

    private func fieldName(for name: String) -> String {
        let known = ["password", "pin", "token", "secret", "key", "passphrase"]
        return known.first { name.lowercased().hasSuffix($0) } ?? "field"
    }

    /// Returns whether this is `{pin}` without quotes, a mapping to YAML, and reports it.
    private func hasBracesWithoutQuotes() -> Bool {
        guard case .mapping(let entries, isFlow: true) = node.content, entries.count == 1, let entry = entries.first,
            entry.value.content == .scalar("", isPlain: true)
        else { return false }
        report("put quotes around braces: \"{\(entry.key)}\"")
        return true
    }

    /// Reads plain text by the core schema of YAML 1.2 §10.3.2.
    private func plainJSON(_ text: String) -> JSONValue {
        switch text {
        case "true", "True", "TRUE": return .bool(true)
        case "false", "False", "FALSE": return .bool(false)
        default: break
        }
        let startsNumber =
            text.utf8.first.map { $0.isDigit || [0x2B, 0x2D, 0x2E].contains($0) } ?? false
        guard startsNumber, !text.lowercased().contains("x") else { return .string(text) }
        if let number = Int64(text) { return .integer(number) }
        if let number = Double(text), number.isFinite { return .double(number) }
        return .string(text)
    }
}

extension ValueForm where Content == [NamedTemplate] {
    /// A mapping of parameters to templates.
    package static let parameters = ValueForm("mapping of templates") { $0.parameters() }
}

extension ValueForm where Content == [InjectedTemplate] {
    /// A mapping of fields to templates.
    package static let fieldTemplates = ValueForm("mapping of templates") { $0.fieldTemplates() }
}
