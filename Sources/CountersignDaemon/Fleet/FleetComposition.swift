// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Logging
internal import Settings

/// From the section `sessions` to what shares them.
struct FleetComposition {
    /// The keys that seal.
    let keys: HeldFleetKeys
    /// By what hosts know values.
    let digests: FleetDigests
    private let settings: SharedSessionSettings

    /// What `settings` says.
    init(_ settings: SharedSessionSettings) {
        self.settings = settings
        keys = HeldFleetKeys(credential: settings.key)
        digests = FleetDigests(sealing: keys, canonical: { $0.canonical })
    }

    /// The sessions; shared only after `begin`.
    func sessions(
        gate: SharedAttemptGate, credentials: any CredentialProvider,
        version: @escaping @Sendable (Credential) -> [UInt8], limits: SessionLimits
    ) -> FleetSessions {
        let logger = Logger(label: "fleet")
        var times = FleetTimes()
        times.lease = settings.lease
        times.alone = settings.spread
        return FleetSessions(
            material: FleetMaterial(
                fleet: digests, credentials: credentials, version: version, now: Process.wallClock), gate: gate,
            limits: limits, times: times
        ) { figures in
            if figures.isEngineThere {
                logger.notice("the session engine is there")
            } else {
                logger.warning(
                    "the session engine is away: this host goes on with the sessions that it holds",
                    metadata: ["reason": "\(figures.reason)"])
            }
        }
    }
}

extension RedisEnginePlan {
    /// The engine of `settings`. Throws where a file of `tls` cannot be used, with its key.
    init(_ settings: SharedSessionSettings) throws(CompositionError) {
        switch settings.store {
        case .socket(let path): self.init(place: .socket(path))
        case .host(let host, let port, let isSecure): self.init(place: .host(host, port: port, isSecure: isSecure))
        }
        database = settings.database
        prefix = settings.prefix
        credential = settings.credential
        connections = try ConnectionSettings(settings.tls, key: "sessions.tls")
        // Sessions are sealed, whatever the way; and of a password on it the configuration has been warned.
        connections.allowsPlaintext = true
    }
}

extension World {
    /// How long the fleet's keys are waited for.
    private static let patience = Duration.seconds(5)

    /// Begins to share sessions, where `settings` says so. Throws where that cannot be done as it says.
    func share(_ settings: Settings) throws(CompositionError) {
        guard let shared = settings.sessions, let fleet = services.fleet, let fleetKeys else { return }
        let plan = try RedisEnginePlan(shared)
        let looked = Countdown(1)
        // Not on the pool of the runtime: it wants priorities for its threads, which the unit forbids.
        Task(executorPreference: services.roster.loop) { [sources] in
            await fleetKeys.refresh(from: sources)
            looked.countDown()
        }
        _ = looked.wait(atMost: Self.patience)
        guard fleetKeys.isThere else {
            throw CompositionError(
                "sessions.key: the credential \(shared.key) has no key that can be used; make one by `openssl rand -base64 32`, "
                    + "the same on all hosts, as its field `key`")
        }
        fleet.begin(services) { [sources] runtime in
            RedisEngine(
                plan, loop: runtime.loop, driver: try runtime.connections(), credentials: sources,
                wallClock: Process.wallClock)
        }
    }
}
