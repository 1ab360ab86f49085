// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import TestSupport

/// Wall clock that stands still until it is moved.
final class ManualClock: Sendable {
    private let milliseconds = Atomic<Int64>(1_795_276_800_000)

    var now: Int64 { milliseconds.load(ordering: .relaxed) }

    func advance(by seconds: Int64) { milliseconds.wrappingAdd(seconds * 1000, ordering: .relaxed) }
}

struct NoCredentials: CredentialProvider {
    func credential(named name: String) async throws(CredentialError) -> Credential? { nil }
}

/// Observer that records the beginning and end of logins.
final class LoginLog: LoginObserver {
    private let begun = Mutex<[LoginCause]>([])
    private let ended = Atomic<Int>(0)

    /// Number of logins that began, renewals included.
    var count: Int { begun.withLock { $0.count } }
    var renewals: Int { begun.withLock { $0.count { $0.isRenewal } } }
    var causes: [LoginCause] { begun.withLock { $0 } }
    /// Number of logins that have ended. The session table gets each result a little later.
    var finished: Int { ended.load(ordering: .acquiring) }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) { begun.withLock { $0.append(cause) } }
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        ended.wrappingAdd(1, ordering: .releasing)
    }
}

/// Login that runs `body` with the number of the run, from 1.
struct ScriptedLogin: SessionLogin {
    let counter: LoginCounter
    let body: @Sendable (Int, Conversation) async throws(LoginFailure) -> Session

    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        try await body(counter.next(), conversation)
    }
}

/// Counts the runs of a login.
final class LoginCounter: Sendable {
    private let value = Atomic<Int>(0)

    func next() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
}

/// Gate that is closed until opened, and for which a login can wait.
final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiters.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension Session {
    /// Returns a session that injects `Authorization: Bearer TOKEN`.
    static func bearer(_ token: String, expiresAt: Int64? = nil) -> Session {
        Session(
            fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))], expiresAt: expiresAt)
    }
}

extension LoginFailure {
    static let rejected = LoginFailure(.rejected, challenge: "bank", detail: "The PIN was rejected.")
    static let failed = LoginFailure(.failed, challenge: "bank", detail: "The login server is down.")
}

/// Detector for a page that contains LOGIN.
struct PageDetector: ChallengeDetector {
    let kind = "gateway"
    let filter = ResponseFilter.everything

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.fields[.contentType] == "text/html" else { return .pass }
        guard let body = response.body else { return .needsBody }
        return String(decoding: body, as: UTF8.self).contains("LOGIN") ? .challenged() : .pass
    }
}

/// Blocks a worker, so that it sees all events of that time at once when it continues.
final class Stall: Sendable {
    /// Set when the worker is blocked.
    let isThere = Signal()
    /// Set by the test to continue the worker.
    let goesOn = Signal()
    /// Called on the worker's thread before it continues.
    let atItsEnd = Mutex<(@Sendable () -> Void)?>(nil)
}

/// Local service that blocks its worker at a request for the path of a stall.
struct StallingService: LocalService {
    let stalls: [String: Stall]

    func answer(_ request: LocalRequest) -> LocalAnswer {
        if let stall = stalls[request.path] {
            stall.isThere.set()
            stall.goesOn.wait()
            stall.atItsEnd.withLock { $0?() }
        }
        return LocalAnswer(status: 200, contentType: "text/plain", body: [])
    }
}
