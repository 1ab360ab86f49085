// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
internal import Settings

/// Groups of callers with different credentials at an upstream (`by-user`).
///
/// Each group has settings in which every challenge has exactly one credential.
struct CallerIdentities {
    /// Users for whom all challenges use the same credentials.
    struct Identity {
        var users: Set<UInt32>
        var settings: Settings
    }

    /// Settings of the users without an identity of their own.
    let others: Settings
    /// Users with credentials of their own.
    let named: [Identity]

    /// The identities at `upstream`. Throws if a user does not exist on this machine or has two credentials.
    init(of upstream: UpstreamSettings, in settings: Settings) throws(CompositionError) {
        var choices: [(challenge: String, byUser: [UInt32: String], others: String)] = []
        var users: [UInt32] = []
        for challenge in settings.challenges where challenge.reaches(upstream) {
            guard let byUser = challenge.credentialsByUser else { continue }
            var credentials: [UInt32: String] = [:]
            for entry in byUser.named {
                let uid = try UserNumbers.uid(of: entry.user, for: "challenge \(challenge.name)")
                if let known = credentials.updateValue(entry.credential, forKey: uid), known != entry.credential {
                    throw CompositionError(
                        "challenge \(challenge.name): by-user names user \(uid) twice, with \(known) and \(entry.credential)"
                    )
                }
                if !users.contains(uid) { users.append(uid) }
            }
            choices.append((challenge.name, credentials, byUser.others ?? CredentialsByUser.noCredential))
        }
        let common = choices.map(\.others)
        var groups: [(credentials: [String], users: Set<UInt32>)] = []
        for user in users {
            let own = choices.map { $0.byUser[user] ?? $0.others }
            if own == common { continue }
            if let index = groups.firstIndex(where: { $0.credentials == own }) {
                groups[index].users.insert(user)
            } else {
                groups.append((own, [user]))
            }
        }
        let names = choices.map(\.challenge)
        others = settings.choosing(common, for: names)
        named = groups.map { Identity(users: $0.users, settings: settings.choosing($0.credentials, for: names)) }
    }
}

extension ChallengeSettings {
    fileprivate func reaches(_ upstream: UpstreamSettings) -> Bool {
        switch location {
        case .upstream(let name): name == upstream.name
        case .locations(let patterns):
            patterns.contains { pattern in
                pattern.mayCover(upstream.url.origin)
                    || upstream.mobileFirst.map { pattern.mayCover($0.api.origin) } == true
            }
        }
    }
}

extension Settings {
    /// Returns a copy in which the challenges named `names` use `credentials`.
    fileprivate func choosing(_ credentials: [String], for names: [String]) -> Settings {
        var settings = self
        for (name, credential) in zip(names, credentials) {
            for index in settings.challenges.indices where settings.challenges[index].name == name {
                settings.challenges[index].credential = credential
            }
        }
        return settings
    }
}
