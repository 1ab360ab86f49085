// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The credential sources of one configuration, for the logins at its upstreams.
///
/// They are part of an upstream's plan, so that both are replaced at once. If they were a service of the process, a login
/// during a reload could send a value of the old sources to a new upstream.
package struct PlanSources: Sendable {
    /// The sources.
    package let credentials: any CredentialProvider
    /// The number of the configuration, which rises with each reload.
    package let generation: UInt64

    /// The sources of the configuration of that number.
    package init(_ credentials: any CredentialProvider, generation: UInt64 = 0) {
        self.credentials = credentials
        self.generation = generation
    }
}
