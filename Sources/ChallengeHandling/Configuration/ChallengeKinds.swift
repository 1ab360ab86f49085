// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// All kinds of challenges.
package enum ChallengeKinds {
    /// The kinds, in the order in which a problem names them.
    package static let all: [any ChallengeKind.Type] = [
        SecurityCheckSettings.self,
        GatewaySettings.self,
        SchemeSettings.self,
        InjectionSettings.self,
        OwnHandlerSettings.self,
    ]
}
