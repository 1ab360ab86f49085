// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// Page of the documentation, for messages that cannot say everything.
enum ManualPage: String {
    case challenges = "README.md"
    case gettingStarted = "getting-started.md"
    case jsonLogin = "challenges/gateways.md"
    case troubleshooting = "troubleshooting.md"

    private static let installed = "/usr/share/doc/countersign/docs"

    /// The path of the page: that of the package if it is installed, else that within the sources.
    var path: String {
        let there = "\(Self.installed)/\(rawValue)"
        return FileSystem.allows(there, R_OK) ? there : "docs/\(rawValue)"
    }
}
