// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How long what takes between a host and the session engine.
package struct FleetTimes: Sendable, Equatable {
    /// The life of a lease: so long at most do others wait for a host that died in the middle of a login. It is extended at a third
    /// of it while the login runs.
    package var lease = Duration.seconds(6)
    /// A login that takes longer than this keeps the others waiting no more: its lease is not extended again.
    package var longestLogin = Duration.seconds(600)
    /// Over how much time hosts that have no need to hurry spread what they ask.
    package var spread = Duration.seconds(1)
    /// Over how much time hosts spread the logins that they make on their own, because the engine is away.
    package var alone = Duration.seconds(5)
    /// The pause after an answer that did not come; what is to be told of a login's end pauses twice as long each time, `alone` at most.
    package var again = Duration.milliseconds(250)
    /// How many answers may fail to come before the engine counts as away.
    package var tries = 2

    /// The defaults: of a login that takes a second or two, and hosts that are a network apart.
    package init() {}
}
