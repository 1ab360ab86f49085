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
internal import SharedSessions
internal import Synchronization
internal import System

/// Objects of the process that its logins use and that survive a reload.
///
/// They are the credential sources, the latches, the stored state, and the clients of MobileFirst servers. A reload replaces the sources.
final class DaemonContext: Sendable {
    /// The services that all workers share.
    let services: ClientServices
    /// The store of the attempt gate.
    let attempts: SealedAttemptStore
    let sources: CredentialComposition
    /// The tokens that name callers.
    let callerTokens: CallerTokenLookup
    /// The present values of the credentials with closed latches.
    let latchedValues: LatchedValues
    /// State that survives a restart.
    let state: SealedStateStore
    /// Path of the directory of `state`.
    let stateDirectory: String
    /// Log of state that cannot be written.
    let unwrittenLog: UnwrittenLog
    /// Counters of logins.
    let loginMeter: LoginMeter
    /// The last logins.
    let conversations: ConversationLog
    /// The keys that seal sessions for other nodes, if sessions are shared.
    let sharingKeys: HeldSharingKeys?
    /// The sharing of sessions, if configured.
    let sharing: LeasedSessionSharing?
    /// The program's own handlers.
    let ownHandlers = OwnHandlerMaterial()
    /// The parts from which logins are composed.
    let material: LoginMaterial

    /// Opens the state directory and creates all objects. Throws `StateError` if the directory cannot be used.
    ///
    /// `asker` prompts for secrets that are not stored. `unwrittenLog` tells of state that cannot be written.
    init(
        settings: Settings, stateDirectory: String? = nil, observer: any LoginObserver,
        asker: any SecretAsker = PasswordAgents(environment: Process.environment),
        unwrittenLog: UnwrittenLog = .ofCommand()
    ) throws {
        material = LoginMaterial(ownHandlers: ownHandlers)
        let environment = Process.environment
        let directory = try stateDirectory ?? StateDirectory.locate(environment: environment, uid: getuid())
        let sealed = SystemdCredentialsSource(environment: environment)
        state = try SealedStateStore(directory: directory, key: try sealed.value(named: "state-key"))
        self.stateDirectory = directory
        self.unwrittenLog = unwrittenLog
        let attempts = try SealedAttemptStore(in: state) { failure, changes in
            unwrittenLog.record(changes, directory: directory, reason: failure.reason)
        }
        self.attempts = attempts
        let shared = settings.sessions.map { SharingComposition($0) }
        sharingKeys = shared?.keys
        let limits = SessionLimits(waiters: settings.limits.waiters)
        let gate = SharedAttemptGate(
            limits: limits, store: attempts,
            sharedDigests: { shared?.digests.digests(of: $1, rejectedFor: $0) ?? [] }, now: SystemClock.wallClock)
        gate.change { $0.configuration = settings.version }
        sources = CredentialComposition(
            settings.credentials, asker: asker,
            oneTimePasswords: TimedPasswords(digests: CryptoDigests(), attempts: gate, now: SystemClock.wallClock),
            state: directory, needed: settings.neededFields)
        callerTokens = CallerTokenLookup(sources: sources)
        conversations = ConversationLog(next: observer, now: SystemClock.wallClock)
        loginMeter = LoginMeter(next: conversations)
        let credentialVersions = CredentialVersions(digest: attempts.digest)
        credentialVersions.begin(sources.present.generation)
        latchedValues = LatchedValues(gate: gate, versions: credentialVersions, sources: sources)
        sharing = shared?.sharing(
            SharingContext(
                gate: gate, limits: limits, credentialVersions: credentialVersions, observer: loginMeter,
                version: attempts.digest, wallClock: SystemClock.wallClock))
        services = ClientServices(
            gate: gate, state: state, locks: Self.loginLocks(in: state, gate),
            wallClock: SystemClock.wallClock, observer: loginMeter, replay: Self.replaySpool(settings),
            credentialVersions: credentialVersions, sharing: sharing)
        ownHandlers.calls.begin { [services] in services.roster.loop }
    }

    /// Returns the locks of logins, which all processes with this state share.
    private static func loginLocks(in state: SealedStateStore, _ gate: SharedAttemptGate) -> FileLoginLocks {
        let logger = Logger(label: "logins")
        return FileLoginLocks(in: state, refresh: { gate.refresh($0) }) { failure in
            logger.warning(
                "logins cannot be locked: another process may log in at the same time, and send the same value",
                metadata: ["reason": "\(failure.reason)"])
        }
    }

    /// Returns the spool for bodies that are not kept in memory. It opens its directory when the first body arrives.
    private static func replaySpool(_ settings: Settings) -> ReplaySpool {
        let logger = Logger(label: "replay")
        return ReplaySpool(
            directory: RuntimeDirectory.locate(environment: Process.environment), limit: settings.limits.replay,
            now: SystemClock.wallClock
        ) { trouble in
            if let trouble {
                logger.warning("request bodies cannot be stored on disk", metadata: ["reason": "\(trouble.reason)"])
            } else {
                logger.notice("request bodies can be stored on disk again")
            }
        }
    }

    /// Returns the credentials that are found within `limit`. Blocks the calling thread, the main one.
    func credentials(named names: Set<String>, within limit: Duration) -> [String: Credential] {
        // Not on the runtime's thread pool: the unit forbids the thread priorities that it needs.
        guard let loop = services.roster.loop else { return [:] }
        let lookups = CredentialLookups(count: names.count)
        for name in names {
            Task(executorPreference: loop) { [sources] in
                lookups.record(name, try? await sources.credential(named: name))
            }
        }
        return lookups.wait(atMost: limit)
    }

    /// Returns the credential sources of new settings, for their plan.
    func snapshot(of settings: Settings) -> CredentialSnapshot {
        sources.snapshot(of: settings.credentials, needed: settings.neededFields)
    }

    /// Applies new settings whose plan is in force: the credential sources and the budget for request bodies.
    func reload(_ settings: Settings, _ snapshot: CredentialSnapshot) {
        sources.replace(by: snapshot)
        services.credentialVersions?.begin(snapshot.generation)
        services.replay?.limit = settings.limits.replay
        // With another configuration a refused resource may be allowed, and a form understood.
        services.gate.change {
            $0.refusals = ResourceRefusals()
            $0.configuration = settings.version
        }
    }
}

extension DaemonContext {
    /// Returns the latches that are closed for the present values of their credentials.
    ///
    /// Latches of earlier values stay stored, so that a value that returns is not sent again, but they block no login now.
    func presentLatches(now: Int64) -> [ClosedLatch] {
        let present = sources.present
        return services.gate.closed(now: now, replacedIn: services.credentialVersions).map { latch in
            var latch = latch
            latch.source = latch.key.flatMap { present.valueSource(of: $0.credential) }
            return latch
        }
    }

    /// The credentials with closed latches, including latches of earlier values.
    var latchedCredentials: Set<String> { Set(closedLatches.compactMap(\.key?.credential)) }

    /// True if a latch of one of these challenges is known to be closed, for a present or an earlier value.
    func hasClosedLatch(of challenges: Set<String>) -> Bool {
        closedLatches.contains { challenges.contains($0.challenge) }
    }

    /// Opens the latches of a challenge and returns their numbers.
    ///
    /// Typed answers that were rejected are forgotten. `whenStored` is called when the change is on disk, or could not be stored.
    func unlatch(_ challenge: String, whenStored: @escaping @Sendable () -> Void) -> OpenedLatches {
        let latched = closedLatches.filter { $0.challenge == challenge }
        sources.forgetAnswers(of: Set(latched.compactMap(\.key?.credential)))
        let opened = services.gate.unlatch(
            challenge, replacedIn: services.credentialVersions, whenStored: whenStored)
        services.sharing?.unlatch(challenge)
        return opened
    }

    private var closedLatches: [ClosedLatch] { services.gate.closed(now: SystemClock.wallClock(), replacedIn: nil) }
}

extension LoginMaterial {
    /// The parts for logins on this machine.
    convenience init(ownHandlers: OwnHandlerMaterial = OwnHandlerMaterial()) {
        self.init(
            digests: CryptoDigests(), keys: RSASigningKeys(), messageKeys: CryptoMessageKeys(),
            tickets: SystemTicketProvider { try startThread($0) },
            hasNTLM: CurlFeatures.installed.features.contains(.ntlm), helpers: .ofThisMachine,
            ownHandlers: ownHandlers)
    }
}

extension LoginHelpers where Self == SystemLoginHelpers {
    /// Login helpers of this machine. The first line of their standard error is logged.
    fileprivate static var ofThisMachine: SystemLoginHelpers {
        let logger = Logger(label: "logins")
        return SystemLoginHelpers(
            environment: Process.environment,
            onErrorOutput: { helper, line in
                logger.warning(
                    "the login helper wrote to its standard error",
                    metadata: ["helper": "\(helper)", "text": "\(line)"])
            })
    }
}

/// Concurrent lookups of credentials, and a thread that waits for all of them.
private final class CredentialLookups: Sendable {
    private let found = Mutex<[String: Credential]>([:])
    private let pending: CountDownLatch

    init(count: Int) { pending = CountDownLatch(count) }

    /// Records the end of one lookup.
    func record(_ name: String, _ credential: Credential?) {
        found.withLock { $0[name] = credential }
        pending.countDown()
    }

    /// Waits for all lookups, at most for `limit`, and returns the credentials found until then.
    func wait(atMost limit: Duration) -> [String: Credential] {
        _ = pending.wait(within: limit)
        return found.withLock { $0 }
    }
}
