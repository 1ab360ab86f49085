// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A user of this machine.
package enum UserReference: Sendable, Hashable {
    /// By name; looked up when the daemon starts and when it reloads.
    case name(String)
    /// By number.
    case uid(UInt32)
}

extension UserReference: CustomStringConvertible {
    /// As the configuration writes it.
    package var description: String {
        switch self {
        case .name(let name): name
        case .uid(let uid): "\(uid)"
        }
    }
}
