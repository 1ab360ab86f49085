// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Secrets
import Synchronization
import TestSupport

/// A wall clock that stands until it is moved.
final class ManualClock: Sendable {
    private let milliseconds = Atomic<Int64>(1_795_276_800_000)

    var now: Int64 { milliseconds.load(ordering: .relaxed) }

    func advance(by seconds: Int64) { milliseconds.wrappingAdd(seconds * 1000, ordering: .relaxed) }
}

/// No credentials.
struct NoCredentials: CredentialProvider {
    func credential(named name: String) async throws(CredentialError) -> Credential? { nil }
}

/// Notes logins as they begin and end.
final class LoginLog: LoginObserver {
    private let begun = Mutex<[LoginCause]>([])
    private let ended = Atomic<Int>(0)

    /// How many logins began, and how many of them were renewals.
    var count: Int { begun.withLock { $0.count } }
    var renewals: Int { begun.withLock { $0.count { $0.isRenewal } } }
    var causes: [LoginCause] { begun.withLock { $0 } }
    /// The number of those that are over; the table is told of each a little later.
    var finished: Int { ended.load(ordering: .acquiring) }

    func loginBegan(_ key: SessionKey, _ cause: LoginCause) { begun.withLock { $0.append(cause) } }
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {
        ended.wrappingAdd(1, ordering: .releasing)
    }
}

/// A login that does what `body` says; `body` is told how many times it has run, from 1.
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

/// Closed until it is opened; a login can wait for it.
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
    /// A session that injects `Authorization: Bearer TOKEN`.
    static func bearer(_ token: String, expiresAt: Int64? = nil) -> Session {
        Session(
            fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))], expiresAt: expiresAt)
    }
}

extension LoginFailure {
    static let rejected = LoginFailure(.rejected, challenge: "bank", detail: "The PIN was rejected.")
    static let failed = LoginFailure(.failed, challenge: "bank", detail: "The login server is down.")
}

/// Finds a page that says LOGIN.
struct PageDetector: ChallengeDetector {
    let kind = "gateway"
    let filter = ResponseFilter.everything

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard response.fields[.contentType] == "text/html" else { return .pass }
        guard let body = response.body else { return .needsBody }
        return String(decoding: body, as: UTF8.self).contains("LOGIN") ? .challenged() : .pass
    }
}

/// Stalls a worker, so that what happens meanwhile is all there when it goes on.
final class Stall: Sendable {
    /// Given when the worker stands still.
    let isThere = Signal()
    /// To be given for it to go on.
    let goesOn = Signal()
    /// Called on the worker's thread before it goes on.
    let atItsEnd = Mutex<(@Sendable () -> Void)?>(nil)
}

/// A local service that keeps its worker at a request for the path of a stall.
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
