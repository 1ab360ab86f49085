// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// Settings of `inject`: values that are added to each request, without a challenge.
package struct InjectionSettings: ChallengeKind {
    /// Fields.
    package var fields: [InjectedTemplate]
    /// Values for queries, paths and bodies.
    package var templates: InjectionTemplates

    /// Creates settings; there is at least one field or value.
    package init(_ fields: [InjectedTemplate], _ templates: InjectionTemplates = InjectionTemplates()) {
        self.fields = fields
        self.templates = templates
    }

    private static let valuesKey = Key(
        required: "inject", ValueForm("mapping of templates", section: section) { InjectionSettings.read($0) },
        "Fixed fields, or other values, that are added to each request.")

    /// The values.
    package static let keys: [any SchemaKey] = [valuesKey]

    /// Reads the values.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> InjectionSettings? { fields[valuesKey] }

    /// True if a template uses a field of a credential.
    package var needsCredential: Bool { !neededFields.isEmpty }

    /// Fields of the credential in templates.
    package var neededFields: Set<String> { fields.fieldNames.union(templates.fieldNames) }

    /// True if there are values besides fields.
    package var changesRequests: Bool { !templates.isEmpty }

    /// Returns whether both set one field, parameter or member, or both the path.
    package func conflicts(with other: InjectionSettings) -> Bool {
        fields.contains { field in other.fields.contains { $0.name == field.name } }
            || templates.conflicts(with: other.templates)
    }

    /// Adds the fields and values.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("inject", fields.terms)
        templates.add(to: &terms)
    }

    /// Returns an authenticator that adds fields and values to every request.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let login = InjectionLogin(challenge: challenge.name, credential: credential, fields: fields, templates)
        return Authenticator(
            name: challenge.name, trigger: .ahead, isAhead: true,
            key: SessionKey(origin: site.upstream.url.origin, challenge: challenge.name, credential: credential),
            credentials: [credential], isShareable: false, changesBodies: !templates.body.isEmpty,
            makeLogin: { _ in login })
    }
}
