// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Glibc
internal import Settings

/// Groups of callers with different credentials at an upstream (`by-user`, `by-caller`).
///
/// For each group, every challenge has exactly one credential.
struct CallerIdentities {
    /// Callers for whom all challenges use the same credentials.
    struct Identity {
        var callers: Set<CallerIdentity>
        /// Credentials by challenge, of those that distinguish callers.
        var credentials: [String: String]
    }

    /// Credentials of the callers without a separate identity, by challenge.
    let others: [String: String]
    /// Callers with separate credentials.
    let named: [Identity]

    /// The identities at `upstream`. Throws if a user does not exist on this machine or has two credentials.
    init(of upstream: UpstreamSettings, in challenges: ChallengeIndex) throws(CompositionError) {
        var choices: [(challenge: String, byCaller: [CallerIdentity: String], others: String)] = []
        var callers: [CallerIdentity] = []
        var seen: Set<CallerIdentity> = []
        for position in challenges.positions(at: upstream.protected) {
            let challenge = challenges.all[position]
            guard let byCaller = challenge.credentialsByCaller else { continue }
            var credentials: [CallerIdentity: String] = [:]
            for entry in byCaller.named {
                let caller = try Self.identity(of: entry.caller, for: "challenge \(challenge.name)")
                if let known = credentials.updateValue(entry.credential, forKey: caller), known != entry.credential {
                    throw CompositionError(
                        "challenge \(challenge.name): by-user names user \(entry.caller) twice, with \(known) and \(entry.credential)"
                    )
                }
                if seen.insert(caller).inserted { callers.append(caller) }
            }
            choices.append((challenge.name, credentials, byCaller.others ?? CredentialsByCaller.noCredential))
        }
        let common = choices.map(\.others)
        var groups: [(credentials: [String], callers: Set<CallerIdentity>)] = []
        var positions: [[String]: Int] = [:]
        for caller in callers {
            let own = choices.map { $0.byCaller[caller] ?? $0.others }
            if own == common { continue }
            if let position = positions[own] {
                groups[position].callers.insert(caller)
            } else {
                positions[own] = groups.count
                groups.append((own, [caller]))
            }
        }
        let names = choices.map(\.challenge)
        func byChallenge(_ credentials: [String]) -> [String: String] {
            Dictionary(zip(names, credentials)) { _, last in last }
        }
        others = byChallenge(common)
        named = groups.map { Identity(callers: $0.callers, credentials: byChallenge($0.credentials)) }
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
