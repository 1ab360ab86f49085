// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Proxy
internal import Secrets
internal import Synchronization
internal import System

/// Look-ups of the tokens that name callers: before they are needed, and after their values may have changed.
final class CallerTokenLookup: Sendable {
    /// Interval in ms between look-ups of tokens that need a helper or a person. Files are watched.
    private static let helperPeriod: Int64 = 60_000
    /// Interval in ms between look-ups of missing tokens.
    private static let retryPeriod: Int64 = 10_000
    /// Field of the credential.
    private static let field = "token"

    private struct State: Sendable {
        var names: Set<String> = []
        /// Reasons why tokens are missing, by credential.
        var faults: [String: String] = [:]
        /// Reasons that were logged last, by credential.
        var logged: [String: String] = [:]
        /// Times from which credentials are looked up again, without a change of a file.
        var dueAt: [String: Int64] = [:]
        var isRunning = false
    }

    /// The tokens that were found.
    let tokens = CallerTokens()
    private let sources: CredentialComposition
    private let logger = Logger(label: "callers")
    private let state = Mutex(State())

    /// Look-ups in `sources`.
    init(sources: CredentialComposition) { self.sources = sources }

    /// Reasons why tokens are missing, by credential; nil if no listener has tokens.
    var faults: [String: String]? {
        let faults = state.withLock { $0.names.isEmpty ? nil : $0.faults }
        return faults?.merging(tokens.ambiguous.map { ($0, Self.ambiguity) }) { first, _ in first }
    }

    private static let ambiguity = "another caller has the same token, so they cannot be told apart"

    /// Returns why tokens in the credentials `names` cannot be used, by credential. For a diagnosis.
    func faults(of names: Set<String>) async -> [String: String] {
        state.withLock { $0.names = names }
        await refresh()
        return faults ?? [:]
    }

    /// Looks up the tokens in the credentials `names`, whose sources may be new, and forgets those of all others.
    ///
    /// Blocks the calling thread, the main one, at most for `limit`. Later results count as well.
    func load(_ names: Set<String>, on loop: (any TaskExecutor)?, within limit: Duration) {
        state.withLock { state in
            let added = names.subtracting(state.names)
            state.names = names
            state.faults = state.faults.filter { names.contains($0.key) }
            state.dueAt = state.dueAt.filter { names.contains($0.key) }
            for name in added { state.faults[name] = "is not looked up yet" }
        }
        tokens.keep(names)
        guard let loop, !names.isEmpty else { return }
        let pending = CountDownLatch(names.count)
        for name in names {
            Task(executorPreference: loop) {
                await self.lookUp(name)
                pending.countDown()
            }
        }
        _ = pending.wait(within: limit)
        reportAmbiguous()
    }

    /// Looks up all tokens: their files have changed.
    func refresh() async {
        for name in state.withLock({ $0.names.sorted() }) { await lookUp(name) }
        reportAmbiguous()
    }

    /// Begins to look up the tokens that are due. Called periodically.
    func refreshIfDue(on loop: (any TaskExecutor)?, now: Int64 = SystemClock.wallClock()) {
        let due = state.withLock { state -> [String] in
            guard !state.isRunning else { return [] }
            let due = state.dueAt.filter { $0.value <= now }.keys.sorted()
            state.isRunning = !due.isEmpty
            return due
        }
        guard !due.isEmpty else { return }
        guard let loop else { return state.withLock { $0.isRunning = false } }
        Task(executorPreference: loop) {
            for name in due { await self.lookUp(name) }
            self.state.withLock { $0.isRunning = false }
        }
    }

    private func lookUp(_ name: String) async {
        let present = sources.present
        let found: Result<(Credential?, isWatched: Bool), CredentialError>
        do throws(CredentialError) {
            switch try await present.watched(named: name) {
            case .known(let credential): found = .success((credential, isWatched: true))
            case .unknown: found = .success((try await present.credential(named: name), isWatched: false))
            }
        } catch {
            found = .failure(error)
        }
        // A token of sources that were replaced meanwhile names nobody.
        guard sources.present === present else { return await lookUp(name) }
        switch found {
        case .success(let (credential, isWatched)): record(name, credential, isWatched: isWatched)
        // The value is unknown, not gone: a token that was known stays.
        case .failure(let error): record(name, fault: error.reason)
        }
    }

    private func record(_ name: String, _ credential: Credential?, isWatched: Bool) {
        guard let token = credential?[Self.field] else {
            let fault = credential == nil ? "no source knows it" : "it has no field `\(Self.field)`"
            tokens.set(nil, of: name)
            return record(name, fault: "\(fault). \(sources.advice(onMissing: name))")
        }
        if let fault = CallerTokens.fault(of: token) {
            tokens.set(nil, of: name)
            return record(name, fault: "its field `\(Self.field)` \(fault)")
        }
        let isKnown = state.withLock { state in
            guard state.names.contains(name) else { return false }
            (state.faults[name], state.logged[name]) = (nil, nil)
            state.dueAt[name] =
                isWatched ? nil : SystemClock.wallClock().saturatingAdd(Self.helperPeriod)
            return true
        }
        if isKnown { tokens.set(token, of: name) }
    }

    /// Logs tokens that several callers have.
    private func reportAmbiguous() {
        for name in tokens.ambiguous.sorted() { record(name, fault: Self.ambiguity) }
    }

    private func record(_ name: String, fault: String) {
        let isNews = state.withLock { state in
            guard state.names.contains(name) else { return false }
            state.dueAt[name] = SystemClock.wallClock().saturatingAdd(Self.retryPeriod)
            if !tokens.known.contains(name) { state.faults[name] = fault }
            return state.logged.updateValue(fault, forKey: name) != fault
        }
        guard isNews else { return }
        logger.warning(
            "the token of a caller is not known", metadata: ["credential": "\(name)", "reason": "\(fault)"])
    }
}
