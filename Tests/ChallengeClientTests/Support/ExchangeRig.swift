// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import HTTPTypes
import HTTPWire
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient

/// One exchange between a fake caller and fake streams, on a loop and a clock that the test drives.
/// It has no socket and no thread.
final class ExchangeRig {
    let clock = ManualLoopClock()
    let loop: EventLoop
    let services: ClientServices
    let runtime: ClientRuntime
    let streams: FakeStreams
    let client: UpstreamClient
    let caller = FakeCaller()
    let exchange: Exchange
    /// The wall clock, in milliseconds since 1970.
    static let now: Int64 = 1_795_276_800_000

    init(
        logins: [Authenticator] = [], timeouts: UpstreamPlan.Timeouts = .init(),
        replay: ReplayTiers = ReplayTiers(memory: 64 * 1024), waiters: Int = 1024,
        store: any AttemptStore = UnkeptAttempts(), versions: CredentialVersions? = nil,
        locks: (any LoginLocks)? = nil
    ) throws {
        loop = try EventLoop(clock: clock)
        loop.turnOnce()
        services = ClientServices(
            gate: SharedAttemptGate(limits: SessionLimits(waiters: waiters), store: store, now: { Self.now }),
            state: MemoryStore(), locks: locks, wallClock: { Self.now }, chance: { 0.5 },
            observer: LoginNotes(), credentialVersions: versions)
        runtime = try ClientRuntime(loop: loop, worker: 0, services: services, connections: 1)
        streams = FakeStreams(driver: runtime.driver)
        var authenticators = Authenticators()
        for login in logins { authenticators.add(login) }
        let plan = UpstreamPlan(
            name: "bank", base: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: 1), path: "/"),
            timeouts: timeouts, replay: replay, logins: authenticators)
        client = UpstreamClient(plan: plan, runtime: runtime, streams: streams)
        exchange = Exchange(runtime: runtime, caller: caller)
    }

    deinit {
        exchange.close()
        // A transfer with undelivered events and the driver retain each other.
        runtime.driver.wake()
        loop.turnOnce()
        // The worker and its shared services retain each other.
        services.roster.dismiss(worker: 0)
    }

    /// The stream that was requested last.
    var stream: FakeStream? { streams.all.last }
    /// The number of times that the request was sent.
    var sendings: Int { streams.all.count }

    /// Turns the loop until it has nothing left to do at the present time.
    func settle() {
        var before: UInt64
        repeat {
            before = clock.workCount
            for _ in 0..<4 { loop.turnOnce() }
        } while clock.workCount != before
    }

    /// Lets time pass.
    func pass(_ duration: Duration) {
        settle()
        clock.advance(by: duration)
        settle()
    }

    /// Begins a request without a body.
    func get(_ path: String = "/") { begin(ExchangeRequest(method: .get, framing: .none), path) }

    /// Begins a request with a body. `isComplete`: the whole body has arrived.
    func post(
        _ body: String, framing: BodyFraming? = nil, method: RequestMethod = .post, expects: Bool = false,
        isComplete: Bool = true
    ) {
        let framing = framing ?? .length(UInt64(body.utf8.count))
        exchange.begin(
            ExchangeRequest(method: method, framing: framing, expectsContinue: expects), path: "/".utf8.span, to: client
        )
        if !body.isEmpty { send(body) }
        if isComplete { exchange.receiveBodyEnd() }
        exchange.start()
        settle()
    }

    func send(_ body: String) { exchange.receiveBody(body.utf8.span) }

    func begin(_ request: ExchangeRequest, _ path: String = "/") {
        exchange.begin(request, path: path.utf8.span, to: client)
        exchange.start()
        settle()
    }
}

private struct LoginNotes: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {}
}

/// Login whose runs end when the test says so.
final class HeldLogin: Sendable {
    private let running = Mutex<[CheckedContinuation<Result<Session, LoginFailure>, Never>]>([])
    private let runs = Atomic<Int>(0)
    private let confirmation: SessionConfirmation

    init(confirmation: SessionConfirmation = .stillGood) { self.confirmation = confirmation }

    /// Number of runs that have begun.
    var count: Int { runs.load(ordering: .relaxed) }

    func end(_ result: Result<Session, LoginFailure>) {
        let running = running.withLock { running in
            defer { running = [] }
            return running
        }
        for login in running { login.resume(returning: result) }
    }

    /// Returns an authenticator for this login at a rig's upstream.
    func authenticator(
        _ name: String, detector: any ChallengeDetector, confirms: Bool = false, isAhead: Bool = false
    ) -> Authenticator {
        Authenticator(
            name: name, trigger: .detected(detector), isAhead: isAhead,
            key: SessionKey(
                origin: Origin(scheme: .http, host: "127.0.0.1", port: 1), challenge: name, credential: name),
            credentials: [], confirmsSessions: confirms
        ) { [self] _ in Run(login: self, confirmation: confirmation) }
    }

    private func wait() async -> Result<Session, LoginFailure> {
        runs.wrappingAdd(1, ordering: .relaxed)
        return await withCheckedContinuation { continuation in running.withLock { $0.append(continuation) } }
    }

    private struct Run: SessionLogin {
        let login: HeldLogin
        let confirmation: SessionConfirmation

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            try await login.wait().get()
        }

        func confirm(_ session: Session, _ conversation: Conversation) async -> SessionConfirmation { confirmation }
    }
}

/// Detector for the challenge of the login that the field `X-Login` names.
struct NamedDetector: ChallengeDetector {
    let name: String
    let kind = "test"

    func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        guard let field = HTTPField.Name("X-Login"), response.fields[field] == name else { return .pass }
        return .challenged()
    }
}

extension Session {
    /// Returns a session that injects `X-NAME: NAME`. `isUnverified`: no response has accepted it yet.
    static func named(_ name: String, isUnverified: Bool = false) -> Session {
        let fields = [InjectedField(name: HTTPField.Name("X-\(name)") ?? .authorization, value: Secret(name))]
        guard isUnverified else { return Session(fields: fields) }
        let key = LatchKey(origin: Origin(scheme: .http, host: "127.0.0.1"), challenge: name, credential: name)
        return Session(
            unverified: CredentialUse(key: key, credential: Credential(name: name, fields: ["password": Secret(name)])),
            fields: fields)
    }
}

/// A store of attempts whose writes end when the test says so.
final class HeldAttempts: AttemptStore {
    private struct State {
        var disk = AttemptRecord()
        var writes: [(changes: [AttemptChange], record: AttemptRecord, done: @Sendable (AttemptRecord?) -> Void)] = []
        var begun: [[AttemptChange]] = []
    }

    private let state = Mutex(State())
    private let digests = UnkeptAttempts()

    /// Record on disk.
    var disk: AttemptRecord { state.withLock { $0.disk } }
    /// The changes of each write that has begun.
    var begun: [[AttemptChange]] { state.withLock { $0.begun } }

    /// Changes the record on disk, as another process would.
    func change(_ change: AttemptChange) { state.withLock { $0.disk.apply(change) } }

    /// Ends the oldest write that has not ended. `isWritten`: false if the disk refuses it.
    func end(isWritten: Bool = true) {
        let ended = state.withLock { state -> (AttemptRecord?, @Sendable (AttemptRecord?) -> Void)? in
            guard !state.writes.isEmpty else { return nil }
            let write = state.writes.removeFirst()
            guard isWritten else { return (nil, write.done) }
            for change in write.changes { state.disk.apply(change) }
            var sum = write.record
            sum.merge(state.disk, then: write.changes)
            if !write.changes.isEmpty { state.disk = sum }
            return (sum, write.done)
        }
        guard let (record, done) = ended else { return }
        done(record)
    }

    func load() -> AttemptRecord { disk }

    func store(
        _ changes: [AttemptChange], of record: AttemptRecord, done: @escaping @Sendable (AttemptRecord?) -> Void
    ) {
        state.withLock { state in
            state.begun.append(changes)
            state.writes.append((changes, record, done))
        }
    }

    func digest(of credential: Credential) -> [UInt8] { digests.digest(of: credential) }
}

extension ExchangeMachine {
    /// Passes a head to the machine, as the examination does.
    mutating func head(
        _ challenge: Challenge, slot: Int = 0, status: Int = 200, _ change: (inout ExaminedAnswer) -> Void = { _ in }
    ) -> AnswerAction {
        var answer = ExaminedAnswer(challenge, slot: slot, status: status)
        change(&answer)
        return headReceived(answer)
    }

    mutating func ended(_ end: TransferEnd) -> EndAction {
        transferEnded(end, canReplay: true, isIdempotent: true)
    }

    mutating func complete() -> EndAction { ended(.complete) }

    mutating func ready(
        missing: Int? = nil, isUnverified: Bool = false, isHidden: Bool = false, login: String = ""
    ) -> BeginAction {
        sessionReady(
            ReadySession(isNew: true, isUnverified: isUnverified, isHidden: isHidden, login: login), missing: missing)
    }

    /// Passes a challenge of slot 0, and then its session.
    mutating func goRound(mayRepeat: Bool = false, isNew: Bool = true) {
        expect(head(.challenged()) { $0.mayRepeat = mayRepeat }, .discard)
        expect(complete(), .logIn(slot: 0))
        expect(sessionReady(ReadySession(isNew: isNew), missing: nil), .send)
    }

    /// Starts a request that carries an unverified session.
    mutating func tryOut(_ slot: Int) {
        expect(start(missing: slot), .logIn(slot: slot))
        expect(ready(isUnverified: true), .send)
    }
}

/// Compares a value with the expected one. `#expect` copies what it shows, and a machine cannot be copied.
func expect<Value: Equatable>(
    _ value: Value, _ expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    at location: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment(), sourceLocation: location)
}
