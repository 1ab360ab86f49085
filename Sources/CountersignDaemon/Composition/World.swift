// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Curl
internal import EventLoop
internal import Glibc
internal import Kerberos
internal import Logging
internal import Secrets
internal import Settings
internal import Synchronization

/// The world of a process, as far as its logins use it: credential sources, latches, kept state, MobileFirst clients.
/// Made once; a reload replaces the sources.
final class World: Sendable {
    /// Shared by all workers.
    let services: ClientServices
    /// The record of the attempt gate.
    let attempts: SealedAttemptStore
    /// The sources of credentials.
    let sources: CredentialComposition
    /// The state that survives a restart.
    let state: SealedStateStore
    /// Counts the logins.
    let loginMeter: LoginMeter
    /// Remembers the last logins.
    let conversations: ConversationLog
    /// The keys by which sessions are sealed for other hosts, where they are shared.
    let fleetKeys: HeldFleetKeys?
    /// The program's own handlers.
    let ownHandlers = OwnHandlerMaterial()
    /// The means that logins are made with, which outlive a reload.
    let material: LoginMaterial

    /// Opens the state directory. Throws `StateError` where that cannot be used.
    ///
    /// `asker` asks whoever is there for what nobody wants to store.
    init(
        settings: Settings, stateDirectory: String? = nil, observer: any LoginObserver,
        asker: any SecretAsker = PasswordAgents(environment: Process.environment)
    ) throws {
        material = LoginMaterial(ownHandlers: ownHandlers)
        let environment = Process.environment
        let directory = try stateDirectory ?? StateDirectory.locate(environment: environment, uid: getuid())
        let sealed = SystemdCredentialsSource(environment: environment)
        state = try SealedStateStore(directory: directory, key: try sealed.value(named: "state-key"))
        let attempts = try SealedAttemptStore(store: state) { failure in
            Process.complain("a latch could not be kept: \(failure.reason)")
        }
        self.attempts = attempts
        let shared = settings.sessions.map { FleetComposition($0) }
        fleetKeys = shared?.keys
        let limits = SessionLimits(waiters: settings.limits.waiters)
        let gate = SharedAttemptGate(
            limits: limits, store: attempts,
            sharedDigests: { shared?.digests.digests(of: $1, rejectedFor: $0) ?? [] }, now: Process.wallClock)
        sources = CredentialComposition(
            settings.credentials, asker: asker,
            oneTimePasswords: TimedPasswords(digests: CryptoDigests(), attempts: gate, now: Process.wallClock),
            state: directory, needed: settings.neededFields)
        conversations = ConversationLog(next: observer, now: Process.wallClock)
        loginMeter = LoginMeter(next: conversations)
        services = ClientServices(
            gate: gate, credentials: sources, state: state, wallClock: Process.wallClock, observer: loginMeter,
            replay: Self.replay(settings), ledger: CredentialLedger(digest: attempts.digest),
            fleet: shared?.sessions(gate: gate, credentials: sources, version: attempts.digest, limits: limits))
        ownHandlers.calls.begin { [services] in services.roster.loop }
    }

    /// The place of bodies that memory does not keep. Its directory is looked for only when the first one comes.
    private static func replay(_ settings: Settings) -> ReplaySpool {
        let logger = Logger(label: "replay")
        return ReplaySpool(
            directory: RuntimeDirectory.locate(environment: Process.environment), limit: settings.limits.replay,
            now: Process.wallClock
        ) { trouble in
            if let trouble {
                logger.warning("request bodies are not kept on disk", metadata: ["reason": "\(trouble.reason)"])
            } else {
                logger.notice("request bodies are kept on disk again")
            }
        }
    }

    /// The credentials of those names that are found within `limit`; blocks the calling thread, which is the main one.
    func credentials(named names: Set<String>, within limit: Duration) -> [String: Credential] {
        // Not on the pool of the runtime: it wants priorities for its threads, which the unit forbids.
        guard let loop = services.roster.loop else { return [:] }
        let found = FoundCredentials(waitingFor: names.count)
        for name in names {
            Task(executorPreference: loop) { [sources] in found.take(name, try? await sources.credential(named: name)) }
        }
        return found.wait(atMost: limit)
    }

    /// Takes up the credential sources and the budget for bodies of new settings.
    func reload(_ settings: Settings) {
        sources.replace(settings.credentials, needed: settings.neededFields)
        services.replay?.limit = settings.limits.replay
        // Another configuration may have other answers for a resource.
        services.gate.change { $0.refusals = ResourceRefusals() }
    }
}

extension World {
    /// The latches that are closed for the present values of their credentials. Those of earlier values are remembered, so that a value
    /// that comes back is not sent again, but they keep nobody from anything.
    func presentLatches(now: Int64) -> [ClosedLatch] { services.gate.closed(now: now, replacedIn: services.ledger) }

    /// The credentials for whose values latches are closed, earlier ones included.
    var latchedCredentials: Set<String> { Set(closedLatches.compactMap(\.key?.credential)) }

    /// Opens the latches of a challenge, and has what was asked for and rejected asked for anew; returns how many latches
    /// there were.
    func unlatch(_ challenge: String) -> Int {
        let latched = closedLatches.filter { $0.challenge == challenge }
        sources.forgetAnswers(of: Set(latched.compactMap(\.key?.credential)))
        let opened = services.gate.unlatch(challenge)
        services.fleet?.unlatch(challenge)
        return opened
    }

    private var closedLatches: [ClosedLatch] { services.gate.closed(now: Process.wallClock(), replacedIn: nil) }
}

extension LoginMaterial {
    /// The means of this machine.
    convenience init(ownHandlers: OwnHandlerMaterial = OwnHandlerMaterial()) {
        self.init(
            digests: CryptoDigests(), keys: RSASigningKeys(), tickets: SystemTicketOffice { try startThread($0) },
            hasNTLM: CurlFeatures.installed.features.contains(.ntlm), ownHandlers: ownHandlers)
    }
}
