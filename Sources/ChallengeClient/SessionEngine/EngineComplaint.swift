// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Redis

/// What an engine that refuses means, in words that name no secret.
///
/// Its own words may repeat what it was sent, a password among it, where a command is not known to it: of those nothing is told but
/// the code.
struct EngineComplaint: Error, Equatable {
    /// What it says, and what to do; without a full stop.
    let words: String
    /// True if trying again soon is of no use.
    let isLasting: Bool

    /// The meaning of an error of that code.
    init(code: String) {
        switch code {
        case "NOAUTH", "DENIED":
            self.init("it wants a credential (\(code)): name one by `sessions.credential`", lasting: true)
        case "WRONGPASS":
            self.init(
                "it refuses the credential (\(code)): correct the one that `sessions.credential` names", lasting: true)
        case "NOPERM":
            self.init(
                "its user may not do what is needed (\(code)): allow it the keys and channels that begin with the prefix in "
                    + "braces, scripts, and the database of `sessions.store`", lasting: true)
        case "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN":
            self.init(
                "it is part of a cluster and does not keep our keys (\(code)): name the node that does, or an engine "
                    + "that is none", lasting: true)
        case "LOADING": self.init("it has not loaded its data yet (\(code))", lasting: false)
        case "READONLY", "MASTERDOWN", "NOREPLICAS":
            self.init("it takes no changes (\(code)): `sessions.store` must name the primary", lasting: false)
        case "OOM": self.init("it has no memory left (\(code)): raise its `maxmemory`", lasting: false)
        case "MISCONF": self.init("it cannot write its data to disk and takes no changes (\(code))", lasting: false)
        case "BUSY": self.init("a script keeps it busy (\(code))", lasting: false)
        default:
            self.init(
                "it refuses a request\(code.isEmpty ? "" : " (\(code))"); its own log may say why", lasting: false)
        }
    }

    /// No connection came about.
    init(_ failure: TransferFailure) {
        self.init(FailureMeaning(failure).words)
    }

    /// What it says.
    init(_ words: String, lasting: Bool = false) {
        self.words = words
        isLasting = lasting
    }
}
