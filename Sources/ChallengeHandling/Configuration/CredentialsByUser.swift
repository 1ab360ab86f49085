// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import SettingsReading

/// Credentials of a challenge by the calling user.
package struct CredentialsByUser: Sendable, Equatable {
    /// Credential of one user.
    package struct Entry: Sendable, Equatable {
        /// User.
        package var user: UserReference
        /// Name of the credential.
        package var credential: String

        /// Creates an entry.
        package init(user: UserReference, credential: String) {
            self.user = user
            self.credential = credential
        }
    }

    /// Credentials of named users, in the order of the file.
    package var named: [Entry]
    /// Credential of all other users; nil: they get no session.
    package var others: String?

    /// Key that stands for all other users.
    package static let othersKey = "*"
    /// Placeholder for users without a credential. No credential's name begins with this character.
    package static let noCredential = "-"

    /// Creates a choice of credentials.
    package init(named: [Entry], others: String?) {
        self.named = named
        self.others = others
    }
}

/// Value of `credential`.
enum CredentialChoice {
    /// One credential for all callers.
    case one(String)
    /// A credential by the calling user.
    case byUser(CredentialsByUser)

    /// Name of the one credential.
    var name: String? { if case .one(let name) = self { name } else { nil } }
    /// Credentials by user.
    var byUser: CredentialsByUser? { if case .byUser(let byUser) = self { byUser } else { nil } }
}

extension ValueForm where Content == CredentialChoice {
    /// A name, or a mapping with `by-user`.
    static let credentialChoice = ValueForm(
        "name, or a mapping", section: CredentialsByUser.section,
        read: { value in
            guard value.isMapping else { return value.name().map(CredentialChoice.one) }
            return value.fields(of: CredentialsByUser.section).flatMap { $0[CredentialsByUser.key] }
                .map(CredentialChoice.byUser)
        })
}

extension CredentialsByUser {
    fileprivate static let key = Key(
        required: "by-user", ValueForm("user: credential") { $0.credentialsByUser() },
        "Credential of callers by user name or quoted user id; `\"*\"` stands for all others.")

    /// Table of `challenges.credential`.
    static let section = KeySection("challenges.credential", [key])
}

extension Value {
    /// Reads `{ alice: corp-alice, "*": corp }`.
    fileprivate func credentialsByUser() -> CredentialsByUser? {
        guard let members = members() else { return nil }
        if members.isEmpty { report("is empty: no caller would have a credential") }
        var result = CredentialsByUser(named: [], others: nil)
        for (name, value) in members {
            let credential = value.name()
            if name == CredentialsByUser.othersKey {
                result.others = credential
                continue
            }
            guard let user = value.user(named: name), let credential else { continue }
            result.named.append(.init(user: user, credential: credential))
        }
        return result
    }
}

/// User of this machine.
package enum UserReference: Sendable, Hashable {
    /// A name, which is looked up at start and reload.
    case name(String)
    /// A user id.
    case uid(UInt32)
}

extension UserReference: CustomStringConvertible {
    /// Text of the user in the configuration.
    package var description: String {
        switch self {
        case .name(let name): name
        case .uid(let uid): "\(uid)"
        }
    }
}

extension ValueForm where Content == UserReference {
    /// A user name or user id.
    package static let user = ValueForm("user name or quoted number", plural: "user names or quoted numbers") {
        $0.user()
    }
}

extension Value {
    /// Returns a user name or user id.
    package func user() -> UserReference? {
        word().flatMap(user(named:))
    }

    /// Returns the user that `text`, a part of this value, names.
    package func user(named text: String) -> UserReference? {
        guard !text.isEmpty else {
            report("does not name a user: its key is empty")
            return nil
        }
        if text.utf8.allSatisfy(\.isDigit) {
            // The largest value means "no user" to the kernel (credentials(7), chown(2)).
            guard let uid = UInt32(text), uid < .max else {
                report("\"\(text)\" is not a user id")
                return nil
            }
            return .uid(uid)
        }
        guard !text.contains(where: { ":/ ".contains($0) }) else {
            report("\"\(text)\" is not a user name")
            return nil
        }
        return .name(text)
    }
}
