// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Glibc
internal import Settings

/// Groups of callers with different credentials at an upstream (`by-user`, `by-caller`).
///
/// Each group has settings in which every challenge has exactly one credential.
struct CallerIdentities {
    /// Callers for whom all challenges use the same credentials.
    struct Identity {
        var callers: Set<CallerIdentity>
        var settings: Settings
    }

    /// Settings of the callers without a separate identity.
    let others: Settings
    /// Callers with separate credentials.
    let named: [Identity]

    /// The identities at `upstream`. Throws if a user does not exist on this machine or has two credentials.
    init(of upstream: UpstreamSettings, in settings: Settings) throws(CompositionError) {
        var choices: [(challenge: String, byCaller: [CallerIdentity: String], others: String)] = []
        var callers: [CallerIdentity] = []
        for challenge in settings.challenges where challenge.reaches(upstream) {
            guard let byCaller = challenge.credentialsByCaller else { continue }
            var credentials: [CallerIdentity: String] = [:]
            for entry in byCaller.named {
                let caller = try Self.identity(of: entry.caller, for: "challenge \(challenge.name)")
                if let known = credentials.updateValue(entry.credential, forKey: caller), known != entry.credential {
                    throw CompositionError(
                        "challenge \(challenge.name): by-user names user \(entry.caller) twice, with \(known) and \(entry.credential)"
                    )
                }
                if !callers.contains(caller) { callers.append(caller) }
            }
            choices.append((challenge.name, credentials, byCaller.others ?? CredentialsByCaller.noCredential))
        }
        let common = choices.map(\.others)
        var groups: [(credentials: [String], callers: Set<CallerIdentity>)] = []
        for caller in callers {
            let own = choices.map { $0.byCaller[caller] ?? $0.others }
            if own == common { continue }
            if let index = groups.firstIndex(where: { $0.credentials == own }) {
                groups[index].callers.insert(caller)
            } else {
                groups.append((own, [caller]))
            }
        }
        let names = choices.map(\.challenge)
        others = settings.choosing(common, for: names)
        named = groups.map { Identity(callers: $0.callers, settings: settings.choosing($0.credentials, for: names)) }
    }

    private static func identity(
        of caller: CallerReference, for key: String
    ) throws(CompositionError) -> CallerIdentity {
        switch caller {
        case .token(let name): .token(name)
        case .user(let user): .user(try UserNumbers.uid(of: user, for: key))
        }
    }
}

extension ChallengeSettings {
    /// Returns true if the challenge may be met at that upstream or at its MobileFirst server.
    func reaches(_ upstream: UpstreamSettings) -> Bool {
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
