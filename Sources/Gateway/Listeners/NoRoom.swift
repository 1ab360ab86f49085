// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Why a caller is turned away before its request is read.
enum NoRoom {
    /// `limits.callers` is reached.
    case everywhere
    /// The listener's own `callers` is reached.
    case atListener
    /// The process has no file descriptor left.
    case noDescriptor

    /// What the caller is sent.
    var farewell: [UInt8] {
        switch self {
        case .everywhere: Self.farewells.everywhere
        case .atListener: Self.farewells.atListener
        case .noDescriptor: Self.farewells.noDescriptor
        }
    }

    private static let farewells = (
        everywhere: farewell("As many callers are connected as `limits.callers` allows."),
        atListener: farewell("As many callers are connected as `callers` of this listener allows."),
        noDescriptor: farewell("The proxy may open no more files (`LimitNOFILE=` of the unit, `ulimit -n`).")
    )

    private static func farewell(_ detail: String) -> [UInt8] {
        LocalReply(.overloaded, detail: detail, retryAfter: 1).farewell
    }
}
