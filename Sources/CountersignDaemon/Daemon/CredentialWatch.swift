// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Synchronization
internal import System

/// Watcher of the files that credentials are read from.
///
/// If a credential has a new value, its sessions are replaced before the server refuses the old value, while they are still in use.
///
/// The watcher polls the files' states every two seconds, and reads the files only if a state has changed. Unlike inotify, polling also
/// notices replaced directories, changed links, and changes on network file systems.
final class CredentialWatch: Sendable {
    private static let period = Duration.seconds(2)
    /// Interval in ms between look-ups of credentials that must be compared, if their source fails.
    private static let retryPeriod: Int64 = 10_000

    private struct State: Sendable {
        var files: FileStates?
        var isReading = false
        /// Time from which credentials that must be compared are looked up again.
        var compareAt: Int64 = 0
    }

    private let sources: CredentialComposition
    private let versions: CredentialVersions
    private let roster: WorkerRoster
    private let replaceOutdated: @Sendable (Set<SessionKey>) -> Void
    private let otherNames: @Sendable () -> Set<String>
    private let refreshOthers: @Sendable () async -> Void
    private let logger = Logger(label: "credentials")
    private let state = Mutex(State())
    /// Counted down at the end of the watch.
    private let ended = CountDownLatch()

    /// A watch on the files of `sources`.
    ///
    /// `replaceOutdated` is called with the sessions to replace, repeatedly until they are replaced. `otherNames` returns credentials to
    /// watch in addition to those that logins have used. `refreshOthers` is called after each change of the files.
    init(
        sources: CredentialComposition, credentialVersions versions: CredentialVersions, roster: WorkerRoster,
        otherNames: @escaping @Sendable () -> Set<String> = { [] },
        refreshOthers: @escaping @Sendable () async -> Void = {},
        replaceOutdated: @escaping @Sendable (Set<SessionKey>) -> Void
    ) {
        self.sources = sources
        self.versions = versions
        self.roster = roster
        self.replaceOutdated = replaceOutdated
        self.otherNames = otherNames
        self.refreshOthers = refreshOthers
    }

    deinit { ended.countDown() }

    /// Starts polling on a thread that ends with this object. Throws if the thread cannot be started.
    func start() throws(ThreadError) {
        try startThread { [weak self] in
            while let ended = self?.ended {
                self?.poll()
                if ended.wait(within: Self.period) { return }
            }
        }
    }

    /// Forgets the files' states, so that the next poll reads all credentials: the sources have changed.
    func forgetFiles() {
        state.withLock { $0.files = nil }
    }

    private func poll() {
        let files = sources.present.files
        let mustCompare = !versions.uncompared.isEmpty
        // Not on the runtime's thread pool: the unit forbids the thread priorities that it needs.
        let loop = roster.loop
        let reads = state.withLock { state in
            let isDue = mustCompare && SystemClock.wallClock() >= state.compareAt
            guard loop != nil, !state.isReading, isDue || state.files != files else { return false }
            // Stored before the files are read, so that the next poll notices later changes.
            state.files = files
            state.isReading = true
            return true
        }
        if reads { Task(executorPreference: loop) { await self.read() } }
        let outdated = versions.outdated
        if !outdated.isEmpty { replaceOutdated(outdated) }
    }

    /// Looks up all watched credentials and logs their changes.
    private func read() async {
        let uncompared = versions.uncompared
        var compareAt: Int64 = 0
        for name in versions.names.union(otherNames()).sorted() {
            do throws(CredentialError) {
                let present = sources.present
                let number = versions.beginLookup(in: present.generation)
                let found =
                    uncompared.contains(name)
                    ? try await present.unprompted(named: name) : try await present.watched(named: name)
                guard case .known(let credential) = found else {
                    if uncompared.contains(name) { versions.recordUnknown(name, number: number) }
                    continue
                }
                guard versions.recordLookup(of: name, as: credential, number: number) else { continue }
                logger.notice(
                    credential == nil ? "credential removed" : "credential changed",
                    metadata: ["credential": "\(name)"])
            } catch {
                compareAt = SystemClock.wallClock().saturatingAdd(Self.retryPeriod)
                logger.warning(
                    "credential cannot be read", metadata: ["credential": "\(name)", "reason": "\(error.reason)"])
            }
        }
        await refreshOthers()
        state.withLock { ($0.isReading, $0.compareAt) = (false, compareAt) }
    }
}
