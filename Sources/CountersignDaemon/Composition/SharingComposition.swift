// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Settings
internal import SharedSessions
internal import System

/// Composition of shared sessions from the section `sessions`.
struct SharingComposition {
    /// Keys that seal sessions.
    let keys: HeldSharingKeys
    /// Digests with which nodes compare values.
    let digests: SharedDigests
    private let settings: SharedSessionSettings

    init(_ settings: SharedSessionSettings) {
        self.settings = settings
        let logger = Logger(label: "sessions")
        keys = HeldSharingKeys(credential: settings.key) { error in
            logger.warning("the keys of the shared sessions cannot be used", metadata: ["reason": "\(error.reason)"])
        }
        digests = SharedDigests(sealing: keys, canonical: { $0.canonical })
    }

    /// Returns the sharing for `context`. Sharing starts with `begin`.
    func sharing(_ context: SharingContext) -> LeasedSessionSharing {
        let logger = Logger(label: "sessions")
        return LeasedSessionSharing(context, digests: digests, times: settings.times) { statistics in
            if statistics.isStoreReachable {
                logger.notice("the session store is reachable")
            } else {
                logger.warning(
                    "the session store is away: this node continues with the sessions that it holds",
                    metadata: ["reason": "\(statistics.reason)"])
            }
        }
    }
}

extension SharedSessionSettings {
    /// Returns the plan of the session store with the files of `tls`. Throws if one of them cannot be used.
    func loadedStore() throws(CompositionError) -> RedisStorePlan {
        var store = store
        try store.connections.loadFiles(of: "sessions.tls")
        // Sessions are sealed, and the configuration warns of a password without TLS.
        store.connections.allowsPlaintext = true
        return store
    }
}

extension DaemonContext {
    /// Timeout of the lookup of the shared keys.
    private static let keyTimeout = Duration.seconds(5)

    /// Begins to share sessions if they are configured. Throws if the keys or a file of `tls` cannot be used.
    func share(_ settings: Settings) throws(CompositionError) {
        guard let shared = settings.sessions, let sharing, let sharingKeys else { return }
        let plan = try shared.loadedStore()
        let lookup = CountDownLatch()
        // Not on the runtime's thread pool: the unit forbids the thread priorities that it needs.
        Task(executorPreference: services.roster.loop) { [sources] in
            await sharingKeys.refresh(from: sources)
            lookup.countDown()
        }
        _ = lookup.wait(within: Self.keyTimeout)
        guard sharingKeys.areKnown else {
            throw CompositionError(
                "sessions.key: the credential \(shared.key) has no valid key; generate one with `openssl rand -base64 32` and "
                    + "store it as the field `key` of this credential on all nodes")
        }
        sharing.begin(services) { [sources] runtime in
            RedisStore(
                plan, loop: runtime.loop, driver: try runtime.connections(), credentials: sources,
                wallClock: SystemClock.wallClock)
        }
    }
}

extension SharingPlan {
    /// The plan of the logins whose sessions other nodes can use. `upstreams` must be those of `settings`.
    ///
    /// Sessions that are made for each request or connection (Basic, Digest, Negotiate, NTLM, fixed fields) need no login and are not shared.
    init(_ settings: Settings, _ upstreams: [UpstreamPlan]) {
        // Not keyed, so that all nodes compute the same digest. The owner of a session store can verify a guessed configuration with it.
        let fingerprints = SessionFingerprints(upstreams) {
            CryptoDigests().digest(.sha256, of: Array($0.utf8))
        }
        let logins = upstreams.flatMap(\.logins.all)
        let unshared = Set(logins.filter { !$0.isShareable }.map(\.key.challenge))
        self.init(
            keys: logins.filter { $0.refusal == nil }.map(\.key),
            sources: upstreams.first?.sources ?? PlanSources(FixedCredentials()),
            name: { key in
                guard !unshared.contains(key.challenge), let fingerprint = fingerprints[key] else { return nil }
                func digest(_ text: String) -> String {
                    Base64.encode(CryptoDigests().digest(.sha256, of: Array(text.utf8) + fingerprint), .url)
                }
                let account = digest("countersign account 1\0\(key.origin)\0\(key.challenge)\0\(key.credential)\0")
                let name = StoreName.of(account: account, scope: digest("countersign scope 1\0\(key.scope)\0"))
                return SharedName(text: name, configuration: fingerprint)
            })
    }
}
