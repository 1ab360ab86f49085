// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import Secrets
import Settings
import SharedSessions

@testable import CountersignDaemon

/// The part of a node that shares sessions with the other.
struct SimulatedSharing {
    let sharing: LeasedSessionSharing
    let store: SimulatedSessionStore

    /// Returns the digests by which nodes know values.
    static func digests() throws -> SharedDigests {
        let key = Credential(name: "shared", fields: ["key": Secret([UInt8](repeating: UInt8(ascii: "k"), count: 32))])
        return SharedDigests(sealing: try SharingKeys(key), canonical: { $0.canonical })
    }

    /// Creates the part, which shares nothing yet.
    init(
        _ context: SharingContext, _ digests: SharedDigests, through store: SimulatedSessionStore,
        chance: @escaping @Sendable () -> Double
    ) {
        self.store = store
        sharing = LeasedSessionSharing(context, digests: digests, times: LeaseTimes(), random: chance)
    }

    /// Shares the sessions of settings.
    func begin(_ services: ClientServices, _ settings: Settings, _ plans: [UpstreamPlan]) {
        sharing.serve(SharingPlan(settings, plans))
        let connection = SendableConnection(connection: store.connection())
        sharing.begin(services) { _ in connection.connection }
    }
}

/// A connection that one thread uses.
private struct SendableConnection: @unchecked Sendable {
    let connection: StoreConnection
}
