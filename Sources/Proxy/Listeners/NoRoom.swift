// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why a caller is turned away before its request is read; the raw value names the reason in the metrics.
package enum NoRoom: String, Sendable, CaseIterable {
    /// `limits.callers` is reached.
    case everywhere = "callers"
    /// The listener's own `callers` is reached.
    case atListener = "listener"
    /// The caller's user holds as many places as one user may.
    case user = "user"
    /// The process has no file descriptor left.
    case noDescriptor = "descriptors"

    /// What the caller is sent.
    var farewell: [UInt8] {
        switch self {
        case .everywhere: Self.farewells.everywhere
        case .atListener: Self.farewells.atListener
        case .user: Self.farewells.user
        case .noDescriptor: Self.farewells.noDescriptor
        }
    }

    private static let farewells = (
        everywhere: farewell("As many callers are connected as `limits.callers` allows."),
        atListener: farewell("As many callers are connected as `callers` of this listener allows."),
        user: farewell(
            "The user of this caller holds as many connections as one user may: half of what all others leave."),
        noDescriptor: farewell("The proxy may open no more files (`LimitNOFILE=` of the unit, `ulimit -n`).")
    )

    private static func farewell(_ detail: String) -> [UInt8] {
        LocalReply(.overloaded, detail: detail, retryAfter: 1).farewell
    }
}
