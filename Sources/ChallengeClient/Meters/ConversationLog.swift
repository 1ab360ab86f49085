// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeHandling
internal import Synchronization

/// The record of one login, redacted as its steps are.
package struct ConversationRecord: Sendable {
    /// A step.
    package struct Step: Sendable {
        /// The time since the beginning, in milliseconds.
        package var after: Int64
        /// Description of the step.
        package var text: String

        /// Creates a step.
        package init(after: Int64, text: String) {
            self.after = after
            self.text = text
        }
    }

    /// The session key of the login.
    package var key: SessionKey
    /// The cause of the login.
    package var cause: LoginCause.Kind
    /// The time of the beginning, in milliseconds since 1970.
    package var beganAt: Int64
    /// The first steps.
    package var steps: [Step] = []
    /// The number of further steps.
    package var omitted = 0
    /// True until the login asks somebody.
    var isSilent = true
    /// The duration in milliseconds; `nil` while the login is under way.
    package var took: Int64?
    /// The failure, if there was one.
    package var failure: LoginFailure?
    /// The kind of success, if there was no failure.
    package var success = LoginSuccess.succeeded

    /// Creates a record of a login under way, or of one that took `took` milliseconds.
    package init(
        key: SessionKey, cause: LoginCause.Kind, beganAt: Int64, steps: [Step] = [], took: Int64? = nil,
        failure: LoginFailure? = nil
    ) {
        self.key = key
        self.cause = cause
        self.beganAt = beganAt
        self.steps = steps
        self.took = took
        self.failure = failure
    }
}

/// A log of the last conversations, which passes all events on to another observer.
package final class ConversationLog: LoginObserver {
    private struct State {
        var running: [SessionKey: ConversationRecord] = [:]
        var ended: [ConversationRecord] = []
    }

    /// The limit of ended logins in the log.
    private static let maxEnded = 20
    /// The limit of steps per login.
    private static let maxSteps = 40
    /// The limit of characters per step, which may contain text from servers.
    private static let longestStep = 300

    private let next: any LoginObserver
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    /// Creates a log before `next`; `now` returns milliseconds since 1970.
    package init(next: any LoginObserver, now: @escaping @Sendable () -> Int64) {
        self.next = next
        self.now = now
    }

    /// The logins under way, then the ended ones, latest first.
    package var conversations: [ConversationRecord] {
        state.withLock { state in
            state.running.values.filter { !$0.steps.isEmpty }.sorted { $0.beganAt > $1.beganAt }
                + state.ended.reversed()
        }
    }

    /// Begins the record of a login.
    package func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        let record = ConversationRecord(key: key, cause: cause.kind, beganAt: now())
        state.withLock { $0.running[key] = record }
        next.loginBegan(key, cause)
    }

    /// Records a step.
    package func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        let now = now()
        state.withLock { state in
            guard let record = state.running[key] else { return }
            if step.kind == .exchange { state.running[key]?.isSilent = false }
            guard record.steps.count < Self.maxSteps else {
                state.running[key]?.omitted += 1
                return
            }
            let text = String(step.text.prefix(Self.longestStep))
            state.running[key]?.steps.append(.init(after: max(0, now.saturatingSubtract(record.beganAt)), text: text))
        }
        next.loginStepped(key, step)
    }

    /// Ends the record of a login.
    package func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        let now = now()
        state.withLock { state in
            var record =
                state.running.removeValue(forKey: key)
                ?? ConversationRecord(key: key, cause: cause.kind, beganAt: now)
            record.took = duration.milliseconds
            switch result {
            case .failure(let failure): record.failure = failure
            case .success(let session): record.success = LoginSuccess(session, isSilent: record.isSilent)
            }
            guard isWorthKeeping(record, behind: state.ended) else { return }
            // Of logins that asked nobody, as often as a caller wants them, one is enough.
            if record.isSilent, record.failure == nil {
                state.ended.removeAll { $0.key == key && $0.isSilent && $0.failure == nil }
            }
            if state.ended.count >= Self.maxEnded { state.ended.removeFirst() }
            state.ended.append(record)
        }
        next.loginEnded(key, result, cause, after: duration)
    }

    /// Marks the last login of `key` as verified by the server.
    package func sessionAccepted(_ key: SessionKey) {
        state.withLock { state in
            guard let last = state.ended.lastIndex(where: { $0.key == key }), state.ended[last].success == .unverified
            else { return }
            state.ended[last].success = .succeeded
        }
        next.sessionAccepted(key)
    }

    /// Passes on that a session was ended at its server, or was not.
    package func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) { next.logoutEnded(key, failure) }

    /// Passes on that a session established by another node was adopted here.
    package func sessionShared(_ key: SessionKey) { next.sessionShared(key) }

    /// Passes on that an upstream's challenges were not understood.
    package func challengeUnread(_ text: String, by upstream: String) { next.challengeUnread(text, by: upstream) }

    /// Passes on that the server binds sessions to a `User-Agent`.
    package func sessionIsBound(_ key: SessionKey, to userAgent: String) { next.sessionIsBound(key, to: userAgent) }

    /// Returns true if the record should be stored.
    ///
    /// A record without any request is stored only if its failure differs from the previous one: fixed fields are
    /// looked up every few seconds, and each request to a latched credential checks for a change.
    private func isWorthKeeping(_ record: ConversationRecord, behind ended: [ConversationRecord]) -> Bool {
        if !record.steps.isEmpty { return true }
        guard let failure = record.failure else { return false }
        return ended.last { $0.key == record.key }?.failure?.code != failure.code
    }
}
