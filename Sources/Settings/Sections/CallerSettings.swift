// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import HTTPTypes
internal import HTTPWire
internal import SettingsReading

/// Settings of the callers of a listener: their number, and the tokens that name them.
package struct CallerSettings: Sendable, Equatable {
    /// Limit of connected callers; nil: only `limits.callers` applies.
    package var limit: Int?
    /// Tokens, one of which every request needs; nil: callers need no token.
    package var tokens: CallerTokenSettings?
}

/// Tokens with which a listener identifies its callers.
package struct CallerTokenSettings: Sendable, Equatable {
    /// Field with the token.
    package var field: HTTPField.Name
    /// Credentials with the tokens, in the order of the file; each names a caller.
    package var credentials: [String]

    /// Field and credentials, for people.
    package var text: String { "\(field.rawName): \(credentials.joined(separator: ", "))" }
}

extension CallerSettings {
    private enum Keys {
        static let field = Key(
            "field", .callerField, without: "`Authorization`",
            "Field of requests with the caller's token: `Bearer` and the token in `Authorization`, else the token alone."
        )
        static let credentials = Key(
            "credentials", .filledList(of: .name, else: "is empty: no caller would be known"),
            "Credentials whose field `token` names a caller; a request without one of these tokens is refused.")
        static let limit = Key(
            "limit", .integer(in: LimitSettings.counts), without: "only `limits.callers` counts",
            "Maximum number of callers connected to this listener at once.")
    }

    /// Table of `listeners.callers`.
    static let section = KeySection("listeners.callers", [Keys.field, Keys.credentials, Keys.limit])

    fileprivate static func read(_ fields: Fields) -> CallerSettings {
        let (field, credentials) = (fields[Keys.field], fields[Keys.credentials])
        var settings = CallerSettings(limit: fields[Keys.limit])
        if fields.written(Keys.credentials) == nil {
            fields.written(Keys.field)?.report("needs `credentials`, whose tokens this field has")
        }
        guard let credentials else { return settings }
        var seen: Set<String> = []
        for name in credentials where !seen.insert(name).inserted {
            fields.written(Keys.credentials)?.report("names \"\(name)\" twice")
        }
        settings.tokens = CallerTokenSettings(field: field ?? .authorization, credentials: credentials)
        return settings
    }
}

extension ValueForm where Content == CallerSettings {
    /// A number, or a mapping with the tokens of callers.
    static let callers = ValueForm(
        "\(LimitSettings.counts.lowerBound) to \(LimitSettings.counts.upperBound), or a mapping",
        section: CallerSettings.section
    ) { value in
        guard value.isMapping else { return value.integer(in: LimitSettings.counts).map { CallerSettings(limit: $0) } }
        return value.fields(of: CallerSettings.section).map(CallerSettings.read)
    }
}

extension ValueForm where Content == HTTPField.Name {
    /// A field that may have a caller's token: `Authorization`, or one without a meaning to proxies and servers.
    fileprivate static let callerField = ValueForm("field name") { value in
        guard let name = value.word().flatMap(value.fieldName) else { return nil }
        let bytes = Array(name.canonicalName.utf8)
        let kind = FieldName(foldingUnderscoresIn: bytes.span)
        guard kind == .other || name == .authorization else {
            value.report(
                "\"\(name.rawName)\" already has a meaning in requests (use Authorization, or a name of your own such as X-Caller-Token)"
            )
            return nil
        }
        return name
    }
}
