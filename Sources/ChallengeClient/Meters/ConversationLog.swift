// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Synchronization

/// One login as it went, redacted as its steps are.
package struct ConversationRecord: Sendable {
    /// A step.
    package struct Step: Sendable {
        /// How long after the beginning, in milliseconds.
        package var after: Int64
        /// What happened.
        package var text: String

        /// A step.
        package init(after: Int64, text: String) {
            self.after = after
            self.text = text
        }
    }

    /// Whose session it was to win.
    package var key: SessionKey
    /// What led to it.
    package var cause: LoginCause.Kind
    /// When it began, in milliseconds since 1970.
    package var beganAt: Int64
    /// Its steps; of a long one the first.
    package var steps: [Step] = []
    /// How many further steps there were.
    package var omitted = 0
    /// How long it took, in milliseconds; `nil`: it is under way.
    package var took: Int64?
    /// Why it failed.
    package var failure: LoginFailure?
    /// How it ended if it did not fail.
    package var success = LoginSuccess.won

    /// One that begins, or has ended after `took` milliseconds.
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

/// Remembers the last conversations for whoever looks, and passes on what it is told.
package final class ConversationLog: LoginObserver {
    private struct State {
        var running: [SessionKey: ConversationRecord] = [:]
        var ended: [ConversationRecord] = []
    }

    /// So many that have ended are remembered.
    private static let mostEnded = 20
    /// So many steps of each.
    private static let mostSteps = 40
    /// So many characters of each step; servers' words are in them.
    private static let longestStep = 300

    private let next: any LoginObserver
    private let now: @Sendable () -> Int64
    private let state = Mutex(State())

    /// A log in front of `next`; `now` is in milliseconds since 1970.
    package init(next: any LoginObserver, now: @escaping @Sendable () -> Int64) {
        self.next = next
        self.now = now
    }

    /// Those under way, then those that have ended, the last one first.
    package var conversations: [ConversationRecord] {
        state.withLock { state in
            state.running.values.filter { !$0.steps.isEmpty }.sorted { $0.beganAt > $1.beganAt }
                + state.ended.reversed()
        }
    }

    /// A login begins.
    package func loginBegan(_ key: SessionKey, _ cause: LoginCause) {
        let record = ConversationRecord(key: key, cause: cause.kind, beganAt: now())
        state.withLock { $0.running[key] = record }
        next.loginBegan(key, cause)
    }

    /// A step of it.
    package func loginStepped(_ key: SessionKey, _ step: ConversationStep) {
        let now = now()
        state.withLock { state in
            guard let record = state.running[key] else { return }
            guard record.steps.count < Self.mostSteps else {
                state.running[key]?.omitted += 1
                return
            }
            let text = String(step.text.prefix(Self.longestStep))
            state.running[key]?.steps.append(.init(after: max(0, now.saturatingSubtract(record.beganAt)), text: text))
        }
        next.loginStepped(key, step)
    }

    /// It is over.
    package func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        let now = now()
        state.withLock { state in
            var record =
                state.running.removeValue(forKey: key)
                ?? ConversationRecord(key: key, cause: cause.kind, beganAt: now)
            record.took = Int64(duration / .milliseconds(1))
            switch result {
            case .failure(let failure): record.failure = failure
            case .success(let session): record.success = LoginSuccess(session, isSilent: record.steps.isEmpty)
            }
            guard isWorthKeeping(record, behind: state.ended) else { return }
            if state.ended.count >= Self.mostEnded { state.ended.removeFirst() }
            state.ended.append(record)
        }
        next.loginEnded(key, result, cause, after: duration)
    }

    /// The server has accepted what the last login of `key` made.
    package func sessionAccepted(_ key: SessionKey) {
        state.withLock { state in
            guard let last = state.ended.lastIndex(where: { $0.key == key }), state.ended[last].success == .unproven
            else { return }
            state.ended[last].success = .won
        }
        next.sessionAccepted(key)
    }

    /// A session was ended at its server, or was not.
    package func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) { next.logoutEnded(key, failure) }

    /// A session that another host has won was taken up here.
    package func sessionShared(_ key: SessionKey) { next.sessionShared(key) }

    /// Not one in which nothing was sent, unless it failed otherwise than the one before: fixed fields are looked up every few
    /// seconds, and each request to a latched credential looks whether that has changed.
    private func isWorthKeeping(_ record: ConversationRecord, behind ended: [ConversationRecord]) -> Bool {
        if !record.steps.isEmpty { return true }
        guard let failure = record.failure else { return false }
        return ended.last { $0.key == record.key }?.failure?.code != failure.code
    }
}
