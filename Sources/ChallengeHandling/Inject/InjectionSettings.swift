// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

/// Settings of `inject`: fields that are added to each request, without a challenge.
package struct InjectionSettings: ChallengeKind {
    /// Fields; at least one.
    package var fields: [InjectedTemplate]

    /// Creates settings with these fields.
    package init(_ fields: [InjectedTemplate]) { self.fields = fields }

    private static let fieldsKey = Key(
        required: "inject", .fieldTemplates, "Fixed fields that are added to each request.")

    /// The fields.
    package static let keys: [any SchemaKey] = [fieldsKey]

    /// Reads the fields.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> InjectionSettings? {
        guard let templates = fields[fieldsKey] else { return nil }
        if let value = fields.written(fieldsKey), value.isMapping, value.members()?.isEmpty == true {
            value.report("is empty: nothing would be injected")
        }
        return templates.isEmpty ? nil : InjectionSettings(templates)
    }

    /// True if a template uses a field of a credential.
    package var needsCredential: Bool { !neededFields.isEmpty }

    /// Fields of the credential in templates.
    package var neededFields: Set<String> { fields.fieldNames }

    /// Returns whether both set one field.
    package func conflicts(with other: InjectionSettings) -> Bool {
        fields.contains { field in other.fields.contains { $0.name == field.name } }
    }

    /// Adds the fields.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("inject", fields.terms)
    }

    /// Returns an authenticator that adds the fields to every request.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let login = InjectionLogin(challenge: challenge.name, credential: credential, fields: fields)
        return Authenticator(
            name: challenge.name, trigger: .ahead, isAhead: true,
            key: SessionKey(origin: site.upstream.url.origin, challenge: challenge.name, credential: credential),
            credentials: [credential], isShareable: false, makeLogin: { _ in login })
    }
}
