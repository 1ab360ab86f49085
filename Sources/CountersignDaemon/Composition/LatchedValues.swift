// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Synchronization
internal import System

/// Look-ups of the credentials that have closed latches, so that a replaced value does not count as latched.
///
/// No person is asked for a field: a value that only a person knows counts as latched until a login has it.
final class LatchedValues: Sendable {
    private let gate: SharedAttemptGate
    private let versions: CredentialVersions
    private let sources: CredentialComposition
    private let logger = Logger(label: "credentials")
    private let isRunning = Atomic(false)
    private let logins = Mutex<[Authenticator]>([])

    /// Look-ups in `sources` for latches of `gate`, recorded in `versions`.
    init(gate: SharedAttemptGate, versions: CredentialVersions, sources: CredentialComposition) {
        self.gate = gate
        self.versions = versions
        self.sources = sources
    }

    /// Replaces the configured logins.
    func setLogins(_ logins: [Authenticator]) { self.logins.withLock { $0 = logins } }

    /// Looks up the credentials and blocks the calling thread, the main one, at most for `limit`. Later results count as well.
    func load(on loop: (any TaskExecutor)?, within limit: Duration) {
        let ended = CountDownLatch()
        if begin(on: loop, { ended.countDown() }) { _ = ended.wait(within: limit) }
    }

    /// Begins to look up the credentials again: a helper's value may have changed. Called periodically.
    func refresh(on loop: (any TaskExecutor)?) { _ = begin(on: loop) {} }

    /// Returns false, without a call, if nothing is latched or a look-up runs.
    private func begin(on loop: (any TaskExecutor)?, _ done: @escaping @Sendable () -> Void) -> Bool {
        let names = names
        guard let loop, !names.isEmpty, !isRunning.exchange(true, ordering: .acquiring) else { return false }
        Task(executorPreference: loop) { [self] in
            for name in names.sorted() { await lookUp(name) }
            isRunning.store(false, ordering: .releasing)
            done()
        }
        return true
    }

    private func lookUp(_ name: String) async {
        let present = sources.present
        let number = versions.beginLookup(in: present.generation)
        do throws(CredentialError) {
            guard case .known(let credential) = try await present.unprompted(named: name) else { return }
            versions.recordLookup(of: name, as: credential, number: number)
            // A value of sources that were replaced meanwhile belongs to no login.
            if let credential, sources.present === present { recordShared(credential) }
        } catch {
            logger.debug(
                "credential cannot be read", metadata: ["credential": "\(name)", "reason": "\(error.reason)"])
        }
    }

    /// Notes the value by the digests of other nodes, whose latches have no name of a credential.
    private func recordShared(_ credential: Credential) {
        for login in logins.withLock({ $0 }) where login.credentials.contains(credential.name) {
            for origin in login.origins.union([login.key.origin]) {
                for challenge in [login.name] + login.asks {
                    gate.recordValue(
                        of: CredentialUse(
                            key: LatchKey(origin: origin, challenge: challenge, credential: credential.name),
                            credential: credential))
                }
            }
        }
    }

    /// Names of the credentials with closed latches, of present and of earlier values.
    private var names: Set<String> {
        let latches = gate.closed(now: SystemClock.wallClock(), replacedIn: nil)
        guard !latches.isEmpty else { return [] }
        let logins = logins.withLock { $0 }
        return Set(
            latches.flatMap { latch in
                latch.key.map { [$0.credential] }
                    ?? logins.filter { $0.isMeant(by: latch.challenge) }.flatMap(\.credentials)
            })
    }
}
