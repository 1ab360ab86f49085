// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire
import Secrets
import Synchronization
import Testing

@testable import ChallengeClient

@Suite("Logins that wait for those of other processes")
struct LoginTurnTests {
    private let login = HeldLogin()
    private let locks = OtherProcess()

    private func rig(confirms: Bool = false, store: any AttemptStore = UnkeptAttempts()) throws -> ExchangeRig {
        try ExchangeRig(
            logins: [
                login.authenticator(
                    "corp", detector: NamedDetector(name: "corp"), confirms: confirms, isAhead: !confirms)
            ], timeouts: .init(login: .seconds(30)), store: store, locks: locks)
    }

    @Test("a login begins when another process has ended its own, and then keeps others waiting until its end")
    func waits() throws {
        let rig = try rig()
        locks.isHeld = true
        rig.post("12")
        rig.pass(.seconds(1))
        #expect(login.count == 0 && rig.sendings == 0 && rig.caller.error == nil)
        locks.isHeld = false
        rig.pass(.milliseconds(50))
        #expect(login.count == 1 && locks.turns == 1)
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.sendings == 1 && locks.turns == 0)
        #expect(locks.names == ["login\0http://127.0.0.1:1\0corp\0corp"])
    }

    @Test("a login that waits for another process is over after `timeouts.login`, has sent nothing, and says why")
    func late() throws {
        let rig = try rig()
        locks.isHeld = true
        rig.post("12")
        rig.pass(.seconds(30))
        guard case .login(let failure)? = rig.caller.error?.kind else {
            Issue.record("\(String(describing: rig.caller.error))")
            return
        }
        #expect(failure.code == .timedOut && failure.detail.contains("Another process"), "\(failure)")
        locks.isHeld = false
        for _ in 0..<5 { rig.pass(.seconds(1)) }
        #expect(login.count == 0 && locks.turns == 0)
    }

    @Test("a login whose lock gets no answer from the disk begins after two seconds all the same")
    func silentDisk() throws {
        let rig = try rig()
        locks.answers = false
        rig.post("12")
        rig.pass(.seconds(1))
        #expect(login.count == 0)
        rig.pass(.seconds(1))
        #expect(login.count == 1)
        login.end(.success(.named("corp")))
        rig.settle()
        #expect(rig.sendings == 1)
    }

    @Test(
        "a session that sends a credential is confirmed in its turn, and not if another process saw a rejection meanwhile"
    )
    func confirmation() throws {
        for isRejected in [false, true] {
            let store = UnkeptAttempts()
            let rig = try rig(confirms: true, store: store)
            let session = Session.named("corp", isUnverified: true)
            let use = try #require(session.use)
            #expect(rig.services.gate.adopt(rig.key("corp"), session, establishedAt: ExchangeRig.now))
            locks.isHeld = true
            rig.get()
            rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
            rig.pass(.seconds(1))
            #expect(rig.caller.takeEvents() == [])
            if isRejected {
                rig.services.gate.change { $0.merge(.rejecting(use, in: store)) }
            }
            locks.isHeld = false
            rig.pass(.milliseconds(50))
            #expect(locks.turns == 0)
            // The login would confirm the session, if it was asked.
            #expect((rig.services.gate.held(rig.key("corp")) == nil) == isRejected)
            #expect((rig.caller.takeEvents() == ["head 401", "ended"]) == !isRejected)
            var code: LoginFailure.Code?
            if case .login(let failure)? = rig.caller.error?.kind { code = failure.code }
            #expect(code == (isRejected ? .latched : nil))
        }
    }

    @Test("a login whose value a request tries keeps others waiting until the server's verdict")
    func trial() throws {
        let rig = try rig()
        rig.post("12")
        login.end(.success(.named("corp", isUnverified: true)))
        rig.settle()
        #expect(rig.sendings == 1 && locks.turns == 1)
        rig.stream?.answerWhole("200 OK")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "ended"])
        #expect(rig.services.gate.held(rig.key("corp")) != nil && locks.turns == 0)
    }

    @Test("a request that does not try its value for `timeouts.login` keeps others waiting no longer")
    func longTrial() throws {
        let rig = try rig()
        rig.post("12")
        login.end(.success(.named("corp", isUnverified: true)))
        rig.pass(.seconds(29))
        #expect(locks.turns == 1)
        rig.pass(.seconds(1))
        #expect(locks.turns == 0)
    }

    @Test("a session that nobody has tried waits for another process, and is not tried if that one saw a rejection")
    func lateTrial() throws {
        for isRejected in [false, true] {
            let store = UnkeptAttempts()
            let rig = try rig(store: store)
            let before = login.count
            #expect(rig.services.gate.change { $0.sessions.beginProactiveLogin(rig.key("corp"), now: ExchangeRig.now) })
            let slot = RouteSessions.Slot(
                login: login.authenticator("corp", detector: NamedDetector(name: "corp"), isAhead: true), scope: .empty)
            rig.runtime.logins.start(slot, at: rig.client.plan, challenge: nil, LoginCause(.start))
            rig.settle()
            let session = Session.named("corp", isUnverified: true)
            let use = try #require(session.use)
            login.end(.success(session))
            rig.settle()
            #expect(locks.turns == 0)
            locks.isHeld = true
            rig.post("12")
            rig.pass(.seconds(1))
            #expect(rig.sendings == 0)
            if isRejected { rig.services.gate.change { $0.merge(.rejecting(use, in: store)) } }
            locks.isHeld = false
            rig.pass(.milliseconds(50))
            #expect(locks.turns == 1)
            #expect(rig.sendings == (isRejected ? 0 : 1) && login.count - before == (isRejected ? 2 : 1))
            login.end(.failure(LoginFailure(.latched, challenge: "corp", detail: "rejected")))
            rig.stream?.answerWhole("200 OK")
            rig.settle()
            #expect(locks.turns == 0)
        }
    }
}

extension AttemptRecord {
    /// Returns a record in which the value of `use` is latched.
    fileprivate static func rejecting(_ use: CredentialUse, in store: any AttemptStore) -> AttemptRecord {
        var record = AttemptRecord()
        let latch = Latch(reason: .rejected, closedAt: ExchangeRig.now)
        record.apply(.close(use.key, digest: store.digest(of: use.credential), latch))
        return record
    }
}

/// Locks of a state directory, with another process that may hold them.
private final class OtherProcess: LoginLocks {
    private struct State {
        var isHeld = false
        var answers = true
        var turns = 0
        var names: [String] = []
        var unanswered: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    deinit {
        for continuation in state.withLock({ $0.unanswered }) { continuation.resume() }
    }

    /// True while the other process holds all locks.
    var isHeld: Bool {
        get { state.withLock { $0.isHeld } }
        set { state.withLock { $0.isHeld = newValue } }
    }
    /// False if the disk answers no more.
    var answers: Bool {
        get { state.withLock { $0.answers } }
        set { state.withLock { $0.answers = newValue } }
    }
    /// Number of turns that have not ended.
    var turns: Int { state.withLock { $0.turns } }
    /// Names of all turns.
    var names: [String] { state.withLock { $0.names } }

    func lock(_ name: String) async -> LoginLockResult {
        if !answers {
            await withCheckedContinuation { continuation in state.withLock { $0.unanswered.append(continuation) } }
        }
        return state.withLock { state in
            guard !state.isHeld else { return .held }
            state.turns += 1
            state.names.append(name)
            return .taken(LoginTurn { [weak self] in self?.state.withLock { $0.turns -= 1 } })
        }
    }
}
