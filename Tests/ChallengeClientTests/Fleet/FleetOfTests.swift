// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import EngineModel
import EventLoop
import HTTPTypes
import Secrets
import Synchronization
import TestSupport

/// Hosts in this process, each with a loop and latches of its own, that share sessions through an engine in memory.
final class FleetOfTests: Sendable {
    /// One of them.
    struct Host: Sendable {
        let services: ClientServices
        let fleet: FleetSessions
        let runtime: LoopBound<ClientRuntime>?
        let credentials: Mutable<[String: [String: Secret]]>
        let thread: EventLoopThread
    }

    let engine = MemoryEngine.Shared()
    let hosts: [Host]

    /// So many hosts, whose credential `pin` is one of `pins` each; their engines are made when `isOpen` is given.
    init(_ pins: [String], until isOpen: Signal? = nil) throws {
        let engine = engine
        hosts = try pins.map { pin in try Self.host(pin, engine, isOpen) }
    }

    private static func host(_ pin: String, _ engine: MemoryEngine.Shared, _ isOpen: Signal?) throws -> Host {
        let credentials = Mutable(["pin": ["pin": Secret(pin)]])
        let provider = MutableCredentials(credentials)
        let digests = FleetDigests(sealing: OpenSealing(), canonical: canonical)
        let now: @Sendable () -> Int64 = { 1_000_000_000_000 }
        let gate = SharedAttemptGate(
            sharedDigests: { digests.digests(of: $1, rejectedFor: $0) }, now: now)
        let version: @Sendable (Credential) -> [UInt8] = { Array("local ".utf8) + canonical($0).revealBytes() }
        var times = FleetTimes()
        times.spread = .milliseconds(10)
        // Of a machine that runs all tests at once.
        times.lease = .seconds(300)
        times.alone = .milliseconds(50)
        let fleet = FleetSessions(
            material: FleetMaterial(
                fleet: digests, credentials: provider, version: version, now: now),
            gate: gate, limits: SessionLimits(), times: times)
        let services = ClientServices(
            gate: gate, credentials: provider, state: MemoryState(), wallClock: now, observer: SilentObserver(),
            ledger: CredentialLedger(digest: version), fleet: fleet)
        let isListed = Signal()
        let made = Mutable<LoopBound<ClientRuntime>?>(nil)
        let thread = try EventLoopThread(name: "host") { loop in
            defer { isListed.set() }
            guard let runtime = try? ClientRuntime(loop: loop, worker: 0, services: services, connections: 1) else {
                return
            }
            let bound = LoopBound(runtime, to: loop)
            made.value = bound
            loop.execute { _ = bound.value.worker }
        }
        isListed.wait()
        fleet.serves(
            FleetPlan(keys: [key]) { .init(name: "\($0.challenge) \($0.scope)", configuration: [1, 2, 3]) })
        fleet.begin(services) { runtime in
            isOpen?.wait()
            return MemoryEngine(engine, loop: runtime.loop)
        }
        return Host(services: services, fleet: fleet, runtime: made.value, credentials: credentials, thread: thread)
    }

    /// Ends them; what waits is left.
    func end() {
        for host in hosts { host.fleet.end() }
        // What they have begun for each other is to be over before their loops stop.
        for _ in 0..<20 {
            for host in hosts {
                let isDone = Signal()
                host.thread.loop.execute { isDone.set() }
                isDone.wait()
            }
        }
        for host in hosts {
            host.services.roster.dismiss(worker: 0)
            host.thread.loop.stop()
            host.thread.join()
        }
        engine.close()
    }

    static let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example", port: 443), challenge: "bank-pin", credential: "pin")

    static func canonical(_ credential: Credential) -> Secret {
        Secret(credential.fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.revealText());" }.joined())
    }

    /// A session with that token.
    static func session(_ token: String) -> Session {
        Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))])
    }

    /// The token of a session.
    static func token(of result: Result<Session, LoginFailure>?) -> String? {
        guard case .success(let session) = result else { return nil }
        return session.fields.first.map { String($0.value.revealText().dropFirst("Bearer ".count)) }
    }
}

/// Something that tests change.
final class Mutable<Value: Sendable>: Sendable {
    private let content: Mutex<Value>

    init(_ value: Value) { content = Mutex(value) }

    var value: Value {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }
}

private struct MutableCredentials: CredentialProvider {
    let credentials: Mutable<[String: [String: Secret]]>

    init(_ credentials: Mutable<[String: [String: Secret]]>) { self.credentials = credentials }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        credentials.value[name].map { Credential(name: name, fields: $0) }
    }
}

/// Seals nothing: what the name was is all that it tells.
struct OpenSealing: FleetSealing {
    func sealed(_ value: Secret, as name: String) -> [UInt8]? { Array(name.utf8) + [0] + value.revealBytes() }

    func opened(_ bytes: [UInt8], as name: String) -> Secret? {
        let head = Array(name.utf8) + [0]
        return bytes.starts(with: head) ? Secret(bytes.dropFirst(head.count)) : nil
    }

    func digests(of value: Secret) -> [String] { [value.revealText()] }
}

private struct SilentObserver: LoginObserver {
    func loginBegan(_ key: SessionKey, _ cause: LoginCause) {}
    func loginStepped(_ key: SessionKey, _ step: ConversationStep) {}
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration
    ) {}
}
