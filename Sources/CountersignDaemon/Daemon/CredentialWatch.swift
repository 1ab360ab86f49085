// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Logging
internal import Synchronization

/// Watches the files that credentials come from, and has sessions won anew whose credential has another value now: with the
/// new one before the server refuses the old one, while the old session still serves.
///
/// It looks at the files' states every two seconds (which also notices what inotify does not tell: replaced directories,
/// links that point elsewhere, other machines' file systems) and reads them only where those have changed.
final class CredentialWatch: Sendable {
    private static let period = Duration.seconds(2)

    private struct State: Sendable {
        var files: FileStates?
        var isReading = false
    }

    private let sources: CredentialComposition
    private let ledger: CredentialLedger
    private let roster: WorkerRoster
    private let replaceOutdated: @Sendable (Set<SessionKey>) -> Void
    private let alsoNamed: @Sendable () -> Set<String>
    private let alsoRead: @Sendable () async -> Void
    private let logger = Logger(label: "credentials")
    private let state = Mutex(State())

    /// A watch on `sources`; `replaceOutdated` is told of sessions that are to be won anew, again and again until they are. `alsoNamed`:
    /// the credentials that are watched beside those that logins have used. `alsoRead` looks up what no login uses, whenever the files
    /// have changed.
    init(
        sources: CredentialComposition, ledger: CredentialLedger, roster: WorkerRoster,
        alsoNamed: @escaping @Sendable () -> Set<String> = { [] },
        alsoRead: @escaping @Sendable () async -> Void = {},
        replaceOutdated: @escaping @Sendable (Set<SessionKey>) -> Void
    ) {
        self.sources = sources
        self.ledger = ledger
        self.roster = roster
        self.replaceOutdated = replaceOutdated
        self.alsoNamed = alsoNamed
        self.alsoRead = alsoRead
    }

    /// Looks from now on, on a thread of its own, for as long as the watch is there. Throws where there can be no thread.
    func start() throws(ThreadError) {
        try startThread { [weak self] in
            while self != nil {
                self?.look()
                poll(nil, 0, Int32(Self.period / .milliseconds(1)))
            }
        }
    }

    /// Has the credentials read at the next look, whatever their files say: the sources are others.
    func startOver() {
        state.withLock { $0.files = nil }
    }

    private func look() {
        let files = sources.files
        // Not on the pool of the runtime: it wants priorities for its threads, which the unit forbids.
        let loop = roster.loop
        let reads = state.withLock { state in
            guard loop != nil, !state.isReading, state.files != files else { return false }
            // Before they are read: what changes from here on is seen at the next look.
            state.files = files
            state.isReading = true
            return true
        }
        if reads { Task(executorPreference: loop) { await self.read() } }
        let outdated = ledger.outdated
        if !outdated.isEmpty { replaceOutdated(outdated) }
    }

    /// Reads what the logins have used.
    private func read() async {
        for name in ledger.names.union(alsoNamed()).sorted() {
            do throws(CredentialError) {
                let number = ledger.beginLooking()
                guard case .known(let credential) = try await sources.watched(named: name) else { continue }
                guard ledger.saw(name, as: credential, number: number) else { continue }
                logger.notice(
                    credential == nil ? "credential removed" : "credential changed",
                    metadata: ["credential": "\(name)"])
            } catch {
                logger.warning(
                    "credential cannot be read", metadata: ["credential": "\(name)", "reason": "\(error.reason)"])
            }
        }
        await alsoRead()
        state.withLock { $0.isReading = false }
    }
}
