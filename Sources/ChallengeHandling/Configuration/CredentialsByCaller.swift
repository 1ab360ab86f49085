// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import SettingsReading

/// Credentials of a challenge by the caller.
package struct CredentialsByCaller: Sendable, Equatable {
    /// Credential of one caller.
    package struct Entry: Sendable, Equatable {
        /// Caller.
        package var caller: CallerReference
        /// Name of the credential.
        package var credential: String

        /// Creates an entry.
        package init(caller: CallerReference, credential: String) {
            self.caller = caller
            self.credential = credential
        }
    }

    /// Credentials of named callers, in the order of the file.
    package var named: [Entry]
    /// Credential of all other callers; nil: they get no session.
    package var others: String?

    /// Key for all other callers.
    package static let othersKey = "*"
    /// Placeholder for callers without a credential. No credential's name begins with this character.
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
    case byCaller(CredentialsByCaller)

    var name: String? { if case .one(let name) = self { name } else { nil } }
    var byCaller: CredentialsByCaller? { if case .byCaller(let byCaller) = self { byCaller } else { nil } }
}

extension ValueForm where Content == CredentialChoice {
    /// A name, or a mapping with `by-user` or `by-caller`.
    static let credentialChoice = ValueForm(
        "name, or a mapping", section: CredentialsByCaller.section,
        read: { value in
            guard value.isMapping else { return value.name().map(CredentialChoice.one) }
            return value.fields(of: CredentialsByCaller.section).flatMap(CredentialsByCaller.read)
                .map(CredentialChoice.byCaller)
        })
}

extension CredentialsByCaller {
    private enum Keys {
        static let byUser = Key(
            "by-user",
            ValueForm("user: credential") {
                $0.credentials { value, name in value.user(named: name).map { .user($0) } }
            },
            "Credential of callers by user name or quoted user id; `\"*\"` means all others.")
        static let byCaller = Key(
            "by-caller",
            ValueForm("caller: credential") { $0.credentials { value, name in value.caller(named: name) } },
            "Credential of callers by the credential whose token they send; `\"*\"` means all others.")
    }

    /// Table of `challenges.credential`.
    static let section = KeySection("challenges.credential", [Keys.byUser, Keys.byCaller])

    /// Reads `by-user` and `by-caller`. Reports if there is neither, or if both have an entry for all others.
    static func read(_ fields: Fields) -> CredentialsByCaller? {
        let (users, callers) = (fields[Keys.byUser], fields[Keys.byCaller])
        if fields.written(Keys.byUser) == nil, fields.written(Keys.byCaller) == nil {
            fields.value.report("has neither by-user nor by-caller: add one of them, or write the name of a credential")
        }
        if users?.others != nil, callers?.others != nil {
            fields.written(Keys.byCaller)?.report(
                "\"*\" is already in by-user, and means all other callers: write it once")
        }
        guard users != nil || callers != nil else { return nil }
        return CredentialsByCaller(
            named: (users?.named ?? []) + (callers?.named ?? []), others: users?.others ?? callers?.others)
    }
}

extension Value {
    /// Reads `{ alice: corp-alice, "*": corp }`. `caller` returns the caller that a key names, and reports at its value.
    fileprivate func credentials(_ caller: (Value, String) -> CallerReference?) -> CredentialsByCaller? {
        guard let members = members() else { return nil }
        if members.isEmpty { report("is empty: no caller would have a credential") }
        var result = CredentialsByCaller(named: [], others: nil)
        for (name, value) in members {
            let credential = value.name()
            if name == CredentialsByCaller.othersKey {
                result.others = credential
                continue
            }
            guard let caller = caller(value, name), let credential else { continue }
            result.named.append(.init(caller: caller, credential: credential))
        }
        return result
    }

    /// Returns the caller whose token is in the credential `name`.
    fileprivate func caller(named name: String) -> CallerReference? {
        if let fault = nameFault(name) {
            report(fault)
            return nil
        }
        return .token(name)
    }
}

/// Caller of a listener, as the configuration names it.
package enum CallerReference: Sendable, Hashable {
    /// A user of this machine.
    case user(UserReference)
    /// The caller with the token in the credential of that name.
    case token(String)
}

extension CallerReference: CustomStringConvertible {
    /// Text of the caller in the configuration.
    package var description: String {
        switch self {
        case .user(let user): user.description
        case .token(let name): name
        }
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
