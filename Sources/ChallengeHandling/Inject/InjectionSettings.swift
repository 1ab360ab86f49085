// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

/// `inject`: fixed fields, no challenge needed.
package struct InjectionSettings: ChallengeKind {
    /// The fields; at least one.
    package var fields: [InjectedTemplate]

    /// These fields.
    package init(_ fields: [InjectedTemplate]) { self.fields = fields }

    /// `inject`.
    package static let key = "inject"
    /// None.
    package static let keys: [String] = []

    /// Reads the fields.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> InjectionSettings? {
        guard let value = fields.required(key) else { return nil }
        let templates = value.fieldTemplates()
        if value.isMapping, value.members()?.isEmpty == true { value.report("is empty: nothing would be injected") }
        return templates.isEmpty ? nil : InjectionSettings(templates)
    }

    /// Only where a field names one.
    package var needsCredential: Bool { !neededFields.isEmpty }

    /// The fields that templates name.
    package var neededFields: Set<String> { fields.fieldNames }

    /// Two cannot write one field.
    package func rivals(_ other: InjectionSettings) -> Bool {
        fields.contains { field in other.fields.contains { $0.name == field.name } }
    }

    /// The fields.
    package func add(to terms: inout LoginTerms, at upstream: ProtectedUpstream) {
        terms.add("inject", fields.map { ($0.name.canonicalName, $0.value.source) })
    }

    /// Fields that go along with every request.
    package func authenticator(of challenge: ChallengeSettings, at site: LoginSite) -> Authenticator? {
        guard let credential = challenge.credential else { return nil }
        let login = InjectionLogin(challenge: challenge.name, credential: credential, fields: fields)
        return Authenticator(
            name: challenge.name, trigger: .ahead, isAhead: true,
            key: SessionKey(origin: site.upstream.url.origin, challenge: challenge.name, credential: credential),
            credentials: [credential], isShareable: false, makeLogin: { _ in login })
    }
}
