// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

extension SchemeSettings {
    /// Reads the schemes, and what they take.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> SchemeSettings? {
        let elements = fields.required("scheme")?.listOrOne() ?? []
        var schemes: [Scheme] = []
        var isInList = false
        for element in elements {
            guard let scheme = element.choice(Scheme.self) else { continue }
            if schemes.contains(scheme) { element.report("this scheme stands in the list already") }
            schemes.append(scheme)
        }
        if elements.isEmpty { fields["scheme"]?.report("is empty: no scheme would be answered") }
        if schemes.contains(.bearer), Set(schemes).count > 1 {
            isInList = true
        }
        let realm = fields["realm"]?.word()
        let spnValue = fields["spn"]
        let spn = spnValue?.word()
        let tokenValue = schemes.contains(.bearer) ? fields.required("token") : fields["token"]
        let token = tokenValue.flatMap { TokenSettings.read($0, context) }
        if isInList, token?.grant.standsAlone == true {
            tokenValue?.report("the grant registry stands alone: write a challenge of its own for the other schemes")
        }
        if !schemes.isEmpty, !schemes.contains(.bearer) { tokenValue?.report("belongs to the scheme bearer") }
        if !schemes.isEmpty, !schemes.contains(.negotiate) { spnValue?.report("belongs to the scheme negotiate") }
        guard !schemes.isEmpty else { return nil }
        return SchemeSettings(schemes: schemes, realm: realm, servicePrincipal: spn, token: token)
    }
}
