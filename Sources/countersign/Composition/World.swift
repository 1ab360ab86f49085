// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Logging
internal import Secrets
internal import Settings
internal import Synchronization

/// What a process has of the world for its logins: credential sources, latches, kept state, MobileFirst clients.
/// Made once; a reload replaces the sources.
final class World: Sendable {
    /// Shared by all workers.
    let services: ClientServices
    /// The latches, for `status` and `unlatch`.
    let latches: PersistentLatches
    private let sources: ReplaceableSources
    /// The MobileFirst clients, which outlive a reload.
    let mobileFirstClients = MobileFirstClients()

    /// Opens the state directory. Throws `StateError` where that cannot be used.
    init(settings: Settings, stateDirectory: String? = nil, observer: any LoginObserver) throws {
        let environment = Process.environment
        let directory = try stateDirectory ?? StateDirectory.locate(environment: environment, uid: getuid())
        let sealed = SystemdCredentialsSource(environment: environment)
        let state = try SealedStateStore(directory: directory, key: try sealed.value(named: "state-key"))
        latches = try PersistentLatches(store: state) { failure in
            Process.complain("a latch could not be kept: \(failure.reason)")
        }
        sources = ReplaceableSources(
            CredentialComposition.sources(settings),
            oneTimePasswords: TimedPasswords(digests: CryptoDigests(), state: state, now: Process.wallClock))
        services = ClientServices(
            limits: SessionLimits(waiters: settings.limits.waiters), credentials: sources, latches: latches,
            state: state, wallClock: Process.wallClock, observer: observer, replay: Self.replay(settings))
    }

    /// Where bodies go that memory does not keep. Its directory is looked for only when the first one comes.
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

    /// Takes up the credential sources and the budget for bodies of new settings.
    func reload(_ settings: Settings) {
        sources.replace(CredentialComposition.sources(settings))
        services.replay?.limit = settings.limits.replay
    }
}

/// The clients of the upstreams' MobileFirst servers, one per upstream.
final class MobileFirstClients: Sendable {
    /// What logins for tokens share.
    let tokens = TokenMaterial()
    private let clients = Mutex<[String: MobileFirstClient]>([:])

    /// The client of that upstream: the same one as before a reload, if nothing about it changed.
    func client(named name: String, _ configuration: MobileFirstConfiguration) -> MobileFirstClient {
        clients.withLock { clients in
            if let known = clients[name], known.configuration == configuration { return known }
            let client = MobileFirstClient(name: name, configuration: configuration, keys: tokens.keys)
            clients[name] = client
            return client
        }
    }
}

/// Credential sources that a reload can replace under way.
private final class ReplaceableSources: CredentialProvider {
    private let store: Mutex<CredentialStore>
    private let oneTimePasswords: any OneTimePasswords

    init(_ sources: [any CredentialLookup], oneTimePasswords: any OneTimePasswords) {
        self.oneTimePasswords = oneTimePasswords
        store = Mutex(CredentialStore(sources: sources, oneTimePasswords: oneTimePasswords))
    }

    func replace(_ sources: [any CredentialLookup]) {
        store.withLock { $0 = CredentialStore(sources: sources, oneTimePasswords: oneTimePasswords) }
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        let store = store.withLock { $0 }
        return try await store.credential(named: name)
    }
}
