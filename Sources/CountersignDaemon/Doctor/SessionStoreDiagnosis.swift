// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Settings
internal import SharedSessions

/// Diagnosis of shared sessions: the key, and the connection to the session store.
struct SessionStoreDiagnosis {
    /// Timeout of the connection to the session store.
    private static let timeout = Duration.seconds(8)
    private static let part = "sessions"

    let settings: SharedSessionSettings
    let loop: CommandLoop
    let context: DaemonContext

    func run() async -> [Diagnosis] {
        var found = [await key()]
        let plan: RedisStorePlan
        do throws(CompositionError) {
            plan = try settings.loadedStore()
        } catch {
            return found + [.failed(Self.part, "tls", error.description, "fix the configuration", code: EX_CONFIG)]
        }
        switch await loop.firstEvent(of: plan, credentials: context.sources, within: Self.timeout) {
        case .connected: found.append(.good(Self.part, "session store", "answers"))
        case .disconnected(let reason):
            found.append(
                .failed(
                    Self.part, "session store", "does not answer: \(reason)",
                    "check that it runs, that `sessions.store` is its address, and the permissions of `sessions.credential`"
                ))
        case .attemptsChanged, .sessionChanged: break
        }
        return found
    }

    private func key() async -> Diagnosis {
        await context.sharingKeys?.refresh(from: context.sources)
        if context.sharingKeys?.areKnown == true {
            return .good(Self.part, "key", "the credential \(settings.key) has a key")
        }
        return .failed(
            Self.part, "key", "the credential \(settings.key) has no field `key` of 32 bytes or more",
            "generate one with `openssl rand -base64 32`, and use it on all nodes", code: EX_CONFIG)
    }
}
