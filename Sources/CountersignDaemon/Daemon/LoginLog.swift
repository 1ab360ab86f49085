// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Logging
internal import Proxy
internal import Settings
internal import Synchronization
internal import System

/// Observer that logs each login once, at its end.
///
/// If configured, the entry goes to the audit record. An entry has the cause, the challenge, the name of the credential, and the outcome. Steps are logged at level `debug`.
final class LoginLog: LoginObserver {
    /// Identity of logins in which nothing is sent, for counting repetitions.
    private struct Kind: Hashable {
        var key: SessionKey
        var code: LoginFailure.Code
        var reason: String
    }

    private struct State {
        /// Logins under way; true if they have asked somebody.
        var running: [SessionKey: Bool] = [:]
        /// Sessions that were last established without a request to a server.
        var quiet: Set<SessionKey> = []
        var repetitions = Repetitions<Kind>()
        var unverified = UnverifiedLogins()
        /// Upstreams and texts of challenges that were logged as not understood.
        var unread: Set<[String]> = []
    }

    /// End of a login that deserves a log line.
    private enum Event {
        case failed(LoginFailure)
        case succeeded(LoginSuccess)
    }

    /// Maximum size of `State.quiet`.
    private static let maximumQuiet = 1024
    /// Maximum size of `State.unread`, because servers choose the texts.
    private static let maximumUnread = 256

    private let logger: Logger
    private let auditor: Logger
    private let auditing: Atomic<Bool>
    private let state = Mutex(State())

    /// A log that writes to `logger`, and audit records to `auditor`.
    ///
    /// `auditor` has a separate level, so that the audit record is complete at any level of the log.
    init(logger: Logger, auditor: Logger, isAuditing: Bool) {
        self.logger = logger
        self.auditor = auditor
        auditing = Atomic(isAuditing)
    }

    /// True if there is an audit record. A reload can change this value.
    var isAuditing: Bool {
        get { auditing.load(ordering: .relaxed) }
        set { auditing.store(newValue, ordering: .relaxed) }
    }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        state.withLock { $0.running[key] = false }
        logger.debug("login begins", metadata: metadata(key, cause))
    }

    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        state.withLock { state in
            if state.running[key] != nil, step.kind == .exchange { state.running[key] = true }
        }
        logger.debug("login step", metadata: metadata(key).merging(["step": "\(step.text)"]) { $1 })
    }

    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        guard let event = event(key, result, cause, duration) else { return }
        var metadata = metadata(key, cause)
        metadata["took_ms"] = .stringConvertible(duration.milliseconds)
        switch event {
        case .succeeded(let success):
            metadata["outcome"] = "\(success.rawValue)"
            switch success {
            case .notAsked: write("login without a challenge to answer", .info, metadata)
            case .ready: write("session ready without a login", .info, metadata)
            case .unverified: logger.debug("login ends, session unverified", metadata: metadata)
            case .succeeded: write("login succeeded", .info, metadata)
            }
        case .failed(let failure):
            metadata["outcome"] = "\(failure.code.rawValue)"
            metadata["reason"] = "\(failure.detail)"
            if !failure.cause.isEmpty { metadata["cause"] = "\(failure.cause)" }
            write("login failed", .warning, metadata)
        }
    }

    func sessionAccepted(_ key: SessionKey) {
        guard let login = state.withLock({ $0.unverified.accept(key) }) else { return }
        var metadata = metadata(key, login.cause)
        metadata["outcome"] = "\(LoginSuccess.succeeded.rawValue)"
        let duration = login.duration
        metadata["took_ms"] = .stringConvertible(duration.milliseconds)
        write("login succeeded", .info, metadata)
    }

    func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {
        guard let failure else {
            write("logged out", .info, metadata(key))
            return
        }
        write("logout failed", .warning, metadata(key).merging(["reason": "\(failure.detail)"]) { $1 })
    }

    func sessionShared(_ key: SessionKey) { write("session of another node taken over", .info, metadata(key)) }

    func challengeUnread(_ text: String, by upstream: String) {
        let isNew = state.withLock { state in
            state.unread.count < Self.maximumUnread && state.unread.insert([upstream, text]).inserted
        }
        guard isNew else { return }
        logger.warning(
            "WWW-Authenticate not understood", metadata: ["upstream": "\(upstream)", "reason": "\(text)"])
    }

    func sessionIsBound(_ key: SessionKey, to userAgent: String) {
        var metadata = metadata(key)
        metadata["user_agent"] = "\(userAgent)"
        metadata["reason"] =
            "the server refuses the session under any other User-Agent, so requests with it carry this one"
        write("session is bound to the User-Agent of its login", .notice, metadata)
    }

    /// Logs the numbers of repeated login failures that are due. Must be called periodically.
    func logRepetitions(now: Int64, all: Bool = false) {
        for held in state.withLock({ $0.repetitions.due(now: now, all: all) }) {
            var metadata = metadata(held.kind.key)
            metadata["outcome"] = "\(held.kind.code.rawValue)"
            metadata["reason"] = "\(held.kind.reason)"
            metadata["count"] = .stringConvertible(held.count)
            metadata["seconds"] = .stringConvertible(held.seconds)
            write("login failed again", .warning, metadata)
        }
    }

    /// Returns the end of a login if it deserves a line; `nil` otherwise.
    ///
    /// A login in which nothing was sent gets no line if it ends as the one before: each request to a latched credential tests if the
    /// credential has changed, and fixed fields are looked up every few seconds. A login with a value that the server has accepted
    /// gets none either, until another one fails: a caller could have as many of them as it likes.
    private func event(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, _ duration: Duration
    ) -> Event? {
        state.withLock { state in
            let isSilent = state.running.removeValue(forKey: key) == false
            switch result {
            case .success(let session):
                state.unverified.remove(key)
                _ = state.repetitions.forget { $0.key == key }
                let success = LoginSuccess(session, isSilent: isSilent)
                switch success {
                case .unverified:
                    return state.unverified.add(key, session, cause, after: duration) ? .succeeded(success) : nil
                case .succeeded:
                    state.quiet.remove(key)
                    return .succeeded(success)
                case .notAsked, .ready:
                    if state.quiet.count >= Self.maximumQuiet { state.quiet.removeAll() }
                    return state.quiet.insert(key).inserted ? .succeeded(success) : nil
                }
            case .failure(let failure):
                _ = state.unverified.fail(key)
                state.quiet.remove(key)
                guard isSilent else { return .failed(failure) }
                let kind = Kind(key: key, code: failure.code, reason: failure.detail)
                return state.repetitions.happened(kind, now: SystemClock.wallClock()) ? .failed(failure) : nil
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
        switch cause?.caller {
        case .user(let user): metadata["caller_uid"] = .stringConvertible(user)
        case .token(let name): metadata["caller_name"] = "\(name)"
        case nil: break
        }
        if let exchange = cause?.exchange { metadata["exchange_id"] = "\(exchange)" }
        return metadata
    }
}

extension LoginLog {
    /// The daemon's log, with an audit record if `audit` is the journal.
    convenience init(_ audit: AuditDestination) {
        var auditor = Logger(label: "audit")
        auditor.logLevel = .info
        self.init(logger: Logger(label: "login"), auditor: auditor, isAuditing: audit == .journal)
    }
}
