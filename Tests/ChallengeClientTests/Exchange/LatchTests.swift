// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import HTTPWire
import Secrets
import Synchronization
import Testing

@testable import ChallengeClient

@Suite("A latch on its way to a slow disk")
struct LatchOrderTests {
    private static let origin = Origin(scheme: .http, host: "127.0.0.1", port: 1)
    private static let use = CredentialUse(
        key: LatchKey(origin: origin, challenge: "corp", credential: "corp"),
        credential: Credential(name: "corp", fields: ["password": Secret("wrong")]))

    /// Login whose value the server rejects. It does not send a value whose latch is closed.
    private struct Rejected: SessionLogin {
        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            try use.requireOpenLatch(in: conversation)
            throw await use.reject(.rejected, serverWait: nil, in: conversation)
        }

        func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation { .over }
    }

    private let store = HeldAttempts()
    private let other = HeldLogin()

    private static func login(_ name: String, confirms: Bool = false) -> Authenticator {
        Authenticator(
            name: name, trigger: .detected(NamedDetector(name: name)), isAhead: false,
            key: SessionKey(origin: origin, challenge: name, credential: name), credentials: [],
            confirmsSessions: confirms
        ) { _ in Rejected() }
    }

    private func rig(confirms: Bool = false) throws -> ExchangeRig {
        try ExchangeRig(
            logins: [
                Self.login("corp", confirms: confirms),
                other.authenticator("held", detector: NamedDetector(name: "held")),
            ], timeouts: .init(login: .seconds(30)), store: store)
    }

    /// Returns another exchange of the same worker.
    private func exchange(_ rig: ExchangeRig) -> (exchange: Exchange, caller: FakeCaller) {
        let caller = FakeCaller()
        let exchange = Exchange(runtime: rig.runtime, caller: caller)
        exchange.begin(ExchangeRequest(method: .get, framing: .none), path: "/".utf8.span, to: rig.client)
        exchange.start()
        rig.settle()
        return (exchange, caller)
    }

    private func isLatched(_ rig: ExchangeRig) -> Bool {
        rig.services.gate.refusal(of: Self.use, now: ExchangeRig.now)?.failure.code == .latched
    }

    private func code(_ caller: FakeCaller) -> LoginFailure.Code? {
        guard case .login(let failure)? = caller.error?.kind else { return nil }
        return failure.code
    }

    private func challenge(_ rig: ExchangeRig) {
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp")
        rig.settle()
    }

    @Test("a latch closes in memory at once, and waiters learn of it only when it is on disk")
    func order() throws {
        let rig = try rig()
        rig.get()
        challenge(rig)
        #expect(store.begun.count == 1)
        #expect(isLatched(rig))
        // A caller that comes meanwhile waits with the first, and sends nothing for a second.
        let (late, lateCaller) = exchange(rig)
        #expect(rig.sendings == 1)
        rig.pass(.seconds(1))
        challenge(rig)
        rig.pass(.seconds(28))
        for caller in [rig.caller, lateCaller] { #expect(caller.error == nil && caller.events.isEmpty) }
        #expect(store.disk == AttemptRecord())
        store.end()
        #expect(!store.disk.latches.entries.isEmpty)
        rig.settle()
        #expect(code(rig.caller) == .rejected && code(lateCaller) == .rejected)
        #expect(rig.sendings == 2 && store.begun.count == 1)
        late.close()
    }

    @Test("holds up no request on a held session, nor the loop")
    func others() throws {
        let rig = try rig()
        let key = SessionKey(origin: Self.origin, challenge: "held", credential: "held")
        #expect(rig.services.gate.adopt(key, .named("held"), establishedAt: ExchangeRig.now))
        rig.get()
        challenge(rig)
        #expect(store.begun.count == 1)
        let (second, caller) = exchange(rig)
        #expect(rig.stream?.head == "GET / HTTP/1.1\r\nHost: bank\r\nX-held: held\r\n\r\n")
        rig.stream?.answerWhole("200 OK", body: "in")
        rig.settle()
        #expect(caller.takeEvents() == ["head 200", "body in", "ended"])
        #expect(rig.caller.error == nil)
        store.end()
        rig.settle()
        #expect(code(rig.caller) == .rejected)
        second.close()
    }

    @Test("ends the session of its value at once, though the login that was to replace it has not failed yet")
    func ownSession() throws {
        let rig = try rig()
        let (gate, corp) = (rig.services.gate, rig.key("corp"))
        let session = Session(unverified: Self.use, fields: Session.named("corp").fields)
        #expect(gate.adopt(corp, session, establishedAt: ExchangeRig.now))
        #expect(gate.adopt(rig.key("held"), .named("held"), establishedAt: ExchangeRig.now))
        #expect(gate.change { $0.sessions.beginRenewal(corp, now: ExchangeRig.now) })
        let slot = RouteSessions.Slot(login: Self.login("corp"), scope: .empty)
        rig.runtime.logins.start(slot, at: rig.client.plan, challenge: nil, LoginCause(.change))
        rig.settle()
        #expect(store.begun.count == 1)
        rig.get()
        #expect(rig.stream?.head == "GET / HTTP/1.1\r\nHost: bank\r\nX-held: held\r\n\r\n")
        store.end()
        rig.settle()
    }

    @Test("a latch that the disk refuses is reported all the same, and stays closed in memory")
    func refused() throws {
        let rig = try rig()
        rig.get()
        challenge(rig)
        store.end(isWritten: false)
        rig.settle()
        #expect(code(rig.caller) == .rejected)
        #expect(isLatched(rig) && store.disk == AttemptRecord())
        let (later, caller) = exchange(rig)
        challenge(rig)
        #expect(code(caller) == .latched)
        #expect(store.begun.count == 1)
        later.close()
    }

    @Test("a wait for a latch's write is limited by the login timeout")
    func hung() throws {
        let rig = try rig()
        rig.get()
        challenge(rig)
        rig.pass(.seconds(30))
        #expect(rig.caller.takeEvents() == ["failed loginTimeout"])
        #expect(isLatched(rig))
        store.end()
        rig.settle()
        #expect(isLatched(rig))
    }

    @Test("the latch of a session that a confirmation has ended is on disk before waiters learn of it")
    func confirmed() throws {
        let rig = try rig(confirms: true)
        let key = SessionKey(origin: Self.origin, challenge: "corp", credential: "corp")
        let ticket = rig.runtime.nextTicket()
        #expect(
            rig.services.gate.change { $0.requestSession(key, rejected: nil, waiter: ticket, now: ExchangeRig.now) }
                == .logIn)
        let fields = Session.named("corp").fields
        let outcomes = rig.services.gate.finish(key, with: .success(Session(unverified: Self.use, fields: fields)))
        guard case .verify(_, let session)? = outcomes.first?.outcome else {
            Issue.record("the exchange that waited for the session does not verify it")
            return
        }
        _ = rig.services.gate.change {
            $0.sessions.recordVerification(
                of: key, generation: session.generation, .accepted, by: ticket, now: 0, chance: 0)
        }
        rig.get()
        challenge(rig)
        #expect(store.begun.count == 1)
        #expect(isLatched(rig) && rig.caller.error == nil && rig.caller.events.isEmpty)
        store.end()
        rig.settle()
        #expect(rig.caller.error != nil || !rig.caller.events.isEmpty)
    }
}

@Suite("Logins whose last one ended at a latch")
struct ClosedLatchTests {
    private static let origin = Origin(scheme: .https, host: "bank.example")
    private static let key = SessionKey(origin: origin, challenge: "bank", credential: "", scope: "accounts")
    private static let latch = LatchKey(origin: origin, challenge: "bank-pin", credential: "pin")

    /// Login that asks the server for a challenge, and whose answer 9999 is rejected.
    private final class Login: SessionLogin {
        private let asked = Atomic<Int>(0)

        var questions: Int { asked.load(ordering: .relaxed) }

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            asked.wrappingAdd(1, ordering: .relaxed)
            let use = try await CredentialUse.lookUp(latch, in: conversation)
            if use.credential["pin"] == Secret("9999") {
                throw await use.reject(.rejected, serverWait: nil, in: conversation)
            }
            return Session()
        }
    }

    private final class PIN: CredentialProvider {
        let value = Mutex("9999")

        func credential(named name: String) async throws(CredentialError) -> Credential? {
            Credential(name: name, fields: ["pin": Secret(value.withLock { $0 })])
        }
    }

    private struct Silence: LoginObserver {
        func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
        func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
        func loginEnded(
            _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
        ) {}
    }

    private let login = Login()
    private let pin = PIN()
    private let services: ClientServices

    init() {
        services = ClientServices(
            gate: SharedAttemptGate(now: { 1_000 }), state: MemoryState(), wallClock: { 1_000 }, observer: Silence())
    }

    private func run() async -> LoginFailure.Code? {
        let (result, _) = await services.run(
            login, for: Self.key, asking: PlanSources(pin), sideRequests: NoSideRequests())
        _ = services.gate.finish(Self.key, with: result)
        if case .failure(let failure) = result { return failure.code }
        return nil
    }

    @Test("as long as the latch is closed the server is not even asked; a changed credential has it asked again")
    func notAsked() async {
        #expect(await run() == .rejected)
        for _ in 0..<3 { #expect(await run() == .latched) }
        #expect(login.questions == 1)
        pin.value.withLock { $0 = "1234" }
        #expect(await run() == nil)
        #expect(login.questions == 2)
    }

    @Test("an operator who opens the latch has the server asked again")
    func unlatched() async {
        #expect(await run() == .rejected)
        #expect(services.gate.unlatch("bank-pin") == OpenedLatches(present: 1))
        #expect(await run() == .rejected)
        #expect(login.questions == 2)
    }
}
