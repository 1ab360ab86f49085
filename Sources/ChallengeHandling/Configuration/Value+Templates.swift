// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
package import SettingsReading

extension Value {
    /// Returns a text with fields of a credential. In a gateway's login it may have values that the server has sent.
    package func template(inLogin isInLogin: Bool = false) -> TextTemplate? {
        guard !hasBracesWithoutQuotes(), let text = text(isTemplate: true) else { return nil }
        do {
            let template = try TextTemplate(text)
            guard isInLogin || !hasReceivedValues(template.sources) else { return nil }
            return template
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// Returns whether there are values that a server must have sent before, and reports them.
    private func hasReceivedValues(_ sources: [ValueSource]) -> Bool {
        guard let source = sources.first else { return false }
        report(
            "{\(source.text)} is known only to a login: use it in `login` or `inject` of a challenge with `gateway`")
        return true
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
    package func answer(inLogin isInLogin: Bool = false) -> AnswerTemplate? {
        guard let value = json() else { return nil }
        do {
            let template = try AnswerTemplate(value)
            guard isInLogin || !hasReceivedValues(template.sources) else { return nil }
            return template
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// Returns a mapping of parameters to templates.
    package func parameters(inLogin isInLogin: Bool = false) -> [NamedTemplate] {
        (members() ?? []).compactMap { name, value in
            if SecretNames.contains(name) { value.refuseLiteralSecret(name) }
            return value.template(inLogin: isInLogin).map { NamedTemplate(name: name, value: $0) }
        }
    }

    /// Returns a mapping of fields to templates. Those of a session may be limited to some methods.
    package func fieldTemplates(inLogin isInLogin: Bool = false, ofSession: Bool = true) -> [InjectedTemplate] {
        var seen: Set<String> = []
        return (members() ?? []).compactMap { name, value in
            if SecretNames.contains(name) { value.refuseLiteralSecret(name) }
            let isLimited = ofSession && value.isMapping && !value.isBracesWithoutQuotes
            let limited = isLimited ? InjectedTemplate.read(value, inLogin: isInLogin) : nil
            guard let template = isLimited ? limited?.value : value.template(inLogin: isInLogin),
                let field = value.fieldName(name)
            else { return nil }
            guard seen.insert(field.canonicalName).inserted else {
                value.report("the field is repeated: field names are not case-sensitive")
                return nil
            }
            return InjectedTemplate(name: field, value: template, methods: limited?.methods ?? [])
        }
    }

    /// Reports a secret that is written in the file, or inserted from the environment.
    private func refuseLiteralSecret(_ name: String) {
        guard case .scalar(let text, _) = node.content, !node.isNull, !["true", "false"].contains(text), !text.isEmpty,
            let expanded = textIfValid, let template = try? TextTemplate(expanded), template.fieldNames.isEmpty,
            template.sources.isEmpty
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
        guard isBracesWithoutQuotes, case .mapping(let entries, _) = node.content, let entry = entries.first else {
            return false
        }
        report("put quotes around braces: \"{\(entry.key)}\"")
        return true
    }

    /// True for `{pin}` without quotes.
    private var isBracesWithoutQuotes: Bool {
        guard case .mapping(let entries, isFlow: true) = node.content, entries.count == 1, let entry = entries.first
        else { return false }
        return entry.value.content == .scalar("", isPlain: true)
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
    /// Fields that a session adds to requests.
    package static let fieldTemplates = ValueForm("mapping of templates", section: InjectedTemplate.section) {
        $0.fieldTemplates()
    }
    /// Fields that a gateway's session adds to requests.
    static let fieldTemplatesAfterLogin = ValueForm("mapping of templates", section: InjectedTemplate.section) {
        $0.fieldTemplates(inLogin: true)
    }
    /// Fields of a login's request.
    static let fieldTemplatesOfLogin = ValueForm("mapping of templates") {
        $0.fieldTemplates(inLogin: true, ofSession: false)
    }
}
