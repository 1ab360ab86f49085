// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Logging
internal import Proxy
internal import Synchronization

/// Logs each login once, at its end, as the audit record where that is wanted: who led to it, which challenge, which
/// credential by name, and how it ended. Its steps only for who asked for `debug`.
final class LoginLog: LoginObserver {
    /// What is told apart of logins in which nothing is sent.
    private struct Kind: Hashable {
        var key: SessionKey
        var code: LoginFailure.Code
        var reason: String
    }

    private struct State {
        /// How many steps the logins under way have told.
        var steps: [SessionKey: Int] = [:]
        /// The sessions that were last won without anybody being asked.
        var quiet: Set<SessionKey> = []
        var repetitions = Repetitions<Kind>()
        var unproven = UnprovenLogins()
    }

    /// What the end of a login is worth.
    private enum News {
        case failed(LoginFailure)
        case succeeded(LoginSuccess)
    }

    /// So many sessions are remembered as won without anybody being asked.
    private static let mostQuiet = 1024

    private let logger: Logger
    private let auditor: Logger
    private let auditing: Atomic<Bool>
    private let state = Mutex(State())

    /// A log that writes to `logger`, and to `auditor` what is audited. That one has a level of its own: what the log leaves
    /// out, the record keeps.
    init(logger: Logger, auditor: Logger, isAuditing: Bool) {
        self.logger = logger
        self.auditor = auditor
        auditing = Atomic(isAuditing)
    }

    /// Whether there is an audit record. A reload may change it.
    var isAuditing: Bool {
        get { auditing.load(ordering: .relaxed) }
        set { auditing.store(newValue, ordering: .relaxed) }
    }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        state.withLock { $0.steps[key] = 0 }
        logger.debug("login begins", metadata: metadata(key, cause))
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        state.withLock { state in
            if let count = state.steps[key] { state.steps[key] = count + 1 }
        }
        logger.debug("login step", metadata: metadata(key).merging(["step": "\(step.text)"]) { $1 })
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        guard let news = news(key, result, cause, duration) else { return }
        var metadata = metadata(key, cause)
        metadata["took_ms"] = .stringConvertible(Int(duration / .milliseconds(1)))
        switch news {
        case .succeeded(let success):
            metadata["outcome"] = "\(success.rawValue)"
            switch success {
            case .notAsked: write("login found nothing to answer", .info, metadata)
            case .ready: write("session ready without a login", .info, metadata)
            case .unproven: logger.debug("login ends, not judged yet", metadata: metadata)
            case .won: write("login won", .info, metadata)
            }
        case .failed(let failure):
            metadata["outcome"] = "\(failure.code.rawValue)"
            metadata["reason"] = "\(failure.detail)"
            if !failure.cause.isEmpty { metadata["cause"] = "\(failure.cause)" }
            write("login failed", .warning, metadata)
        }
    }

    func sessionAccepted(_ key: SessionKey) {
        guard let login = state.withLock({ $0.unproven.take(key) }) else { return }
        var metadata = metadata(key, login.cause)
        metadata["outcome"] = "\(LoginSuccess.won.rawValue)"
        let duration = login.duration
        metadata["took_ms"] = .stringConvertible(Int(duration / .milliseconds(1)))
        write("login won", .info, metadata)
    }

    func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {
        guard let failure else {
            write("logged out", .info, metadata(key))
            return
        }
        write("logout failed", .warning, metadata(key).merging(["reason": "\(failure.detail)"]) { $1 })
    }

    func sessionShared(_ key: SessionKey) { write("session of another host taken up", .info, metadata(key)) }

    /// Writes how many logins have ended as one that was told, where that is due; to be called now and then.
    func tellRepetitions(now: Int64, all: Bool = false) {
        for held in state.withLock({ $0.repetitions.due(now: now, all: all) }) {
            var metadata = metadata(held.kind.key)
            metadata["outcome"] = "\(held.kind.code.rawValue)"
            metadata["reason"] = "\(held.kind.reason)"
            metadata["count"] = .stringConvertible(held.count)
            metadata["seconds"] = .stringConvertible(held.seconds)
            write("login failed again", .warning, metadata)
        }
    }

    /// What the end of a login is worth a line for; `nil`: nothing. Not where nothing was sent, for the same reason as before: each
    /// request to a latched credential looks whether it has changed; and fixed fields are looked up every few seconds.
    private func news(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, _ duration: Duration
    ) -> News? {
        state.withLock { state in
            let isSilent = state.steps.removeValue(forKey: key) == 0
            _ = state.unproven.take(key)
            switch result {
            case .success(let session):
                _ = state.repetitions.forget { $0.key == key }
                let success = LoginSuccess(session, isSilent: isSilent)
                switch success {
                case .unproven:
                    state.unproven.enter(key, cause, after: duration)
                    return .succeeded(success)
                case .won:
                    state.quiet.remove(key)
                    return .succeeded(success)
                case .notAsked, .ready:
                    if state.quiet.count >= Self.mostQuiet { state.quiet.removeAll() }
                    return state.quiet.insert(key).inserted ? .succeeded(success) : nil
                }
            case .failure(let failure):
                state.quiet.remove(key)
                guard isSilent else { return .failed(failure) }
                let kind = Kind(key: key, code: failure.code, reason: failure.detail)
                return state.repetitions.happened(kind, now: Process.wallClock()) ? .failed(failure) : nil
            }
        }
    }

    private func write(_ message: Logger.Message, _ level: Logger.Level, _ metadata: Logger.Metadata) {
        if isAuditing {
            auditor.log(level: max(level, .notice), message, metadata: metadata)
        } else {
            logger.log(level: level, message, metadata: metadata)
        }
    }

    private func metadata(_ key: SessionKey, _ cause: LoginCause? = nil) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["challenge": "\(key.challenge)"]
        if !key.credential.isEmpty { metadata["credential"] = "\(key.credential)" }
        if !key.scope.isEmpty { metadata["scope"] = "\(key.scope)" }
        if let cause { metadata["by"] = "\(cause.kind.rawValue)" }
        if let user = cause?.user { metadata["caller_uid"] = .stringConvertible(user) }
        if let exchange = cause?.exchange { metadata["exchange_id"] = "\(exchange)" }
        return metadata
    }
}
