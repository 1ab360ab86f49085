// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import SettingsReading

/// The credentials of a challenge that asks who calls.
package struct CredentialsByUser: Sendable, Equatable {
    /// A user's own.
    package struct Entry: Sendable, Equatable {
        /// The user.
        package var user: UserReference
        /// The credential's name.
        package var credential: String

        /// An entry.
        package init(user: UserReference, credential: String) {
            self.user = user
            self.credential = credential
        }
    }

    /// Those of certain users, in the order of the file.
    package var named: [Entry]
    /// That of all others; `nil`: they get no session.
    package var others: String?

    /// The sign for all others in the place of a user.
    package static let everybodyElse = "*"
    /// The credential of those who have none: no credential's name begins so.
    package static let nobody = "-"

    /// These, and `others` for everybody else.
    package init(named: [Entry], others: String?) {
        self.named = named
        self.others = others
    }
}

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
