// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import System

/// Finds the user of the socket at the other end of a TCP connection, by sock_diag(7). One per worker.
///
/// An uncertain answer counts as unknown, and an unknown caller is never under `users:`.
final class SocketOwners {
    private let kernel = SocketDiagnostics()

    /// Returns the uid of the caller of `connection`; `nil` if the caller is on another machine or in another network
    /// namespace, or has closed its socket.
    func caller(of connection: Int32) -> UInt32? {
        guard let ends = SocketDiagnostics.ends(of: connection),
            let uid = kernel.answer(about: ends.reversed)?.holder(of: ends.reversed)
        else {
            return nil
        }
        // While this end is open, no other socket can have the caller's address and port.
        guard let state = SocketDiagnostics.state(of: connection),
            [.established, .closeWait].contains(state)
        else { return nil }
        return UserNamespace.isAmbiguous(uid) ? nil : uid
    }

    /// Returns true if lookups of `connection` reach the kernel's table that contains it. A listening socket passed to this
    /// process may belong to another network namespace, in which the same address and port have another owner.
    func canSee(_ connection: Int32) -> Bool {
        guard let ends = SocketDiagnostics.ends(of: connection), let status = try? FileSystem.status(of: connection),
            let own = kernel.answer(about: ends)
        else {
            return false
        }
        // The kernel reports 32 bits of this number.
        return own.isHeld(between: ends) && own.inode == UInt32(truncatingIfNeeded: status.st_ino)
    }

    /// Returns true if a caller that has ended its side has also closed its socket, or its process has ended. A caller that has
    /// only ended its side still holds the socket.
    ///
    /// Returns false if unknown: for callers on other machines and in other network namespaces.
    func hasVanished(_ connection: Int32) -> Bool {
        // Reset in the meantime.
        if SocketDiagnostics.state(of: connection) == .close { return true }
        guard let ends = SocketDiagnostics.ends(of: connection), canSee(connection),
            let answer = kernel.answer(about: ends.reversed)
        else { return false }
        return answer.isOrphan(between: ends.reversed)
    }

    /// Returns true if the caller of `connection` is certainly not a user of this machine: it is on another one, or in another
    /// network namespace.
    func isFromElsewhere(_ connection: Int32) -> Bool {
        guard let ends = SocketDiagnostics.ends(of: connection), !ends.areOnOneMachine else { return false }
        return canSee(connection) && !hasVanished(connection)
    }
}
