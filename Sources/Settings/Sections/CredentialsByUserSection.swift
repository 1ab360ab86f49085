// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Value {
    /// `credential: { by-user: { alice: corp-alice, "*": corp } }`.
    func credentialsByUser() -> CredentialsByUser? {
        guard let fields = fields() else { return nil }
        let value = fields.required("by-user")
        fields.finish()
        guard let value, let members = value.members() else { return nil }
        if members.isEmpty { value.report("is empty: nobody would have a credential") }
        var result = CredentialsByUser(named: [], others: nil)
        for (name, value) in members {
            let credential = value.name()
            if name == CredentialsByUser.everybodyElse {
                result.others = credential
                continue
            }
            guard let user = value.user(named: name), let credential else { continue }
            result.named.append(.init(user: user, credential: credential))
        }
        return result
    }
}
