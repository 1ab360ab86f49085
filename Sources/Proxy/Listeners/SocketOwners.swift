// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Asks the kernel whose socket is at the other end of a TCP connection (sock_diag(7)). One per worker.
///
/// The kernel answers within the call that asks, by one look into its table of connections: about 5 µs, no matter how
/// many there are. Whoever cannot be told for certain is nobody, and nobody is under `users:`.
final class SocketOwners {
    private var descriptor: Int32 = -1
    private var sequence: UInt32 = 0
    /// Messages looked at for one answer: more than one only where an answer to an earlier question was left behind.
    private static let patience = 8

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The uid of the caller at the other end of `connection`, which is one of ours; `nil`: nobody on this machine, or in
    /// another network namespace, or it has closed its socket.
    func caller(of connection: Int32) -> UInt32? {
        guard let ends = ends(of: connection), let uid = ask(ends.reversed)?.holder(of: ends.reversed) else {
            return nil
        }
        // As long as our end lives, nobody else can have got hold of the caller's address and port.
        guard let state = SocketState(rawValue: clinux_tcp_state(connection)),
            [.established, .closeWait].contains(state)
        else { return nil }
        return UserNamespace.isAmbiguous(uid) ? nil : uid
    }

    /// Returns whether questions about `connection` reach the kernel's table that it is in. A listening socket that was passed to
    /// this process may belong to another network namespace; there, somebody else has the same address and port.
    func canSee(_ connection: Int32) -> Bool {
        var status = stat()
        guard let ends = ends(of: connection), unsafe fstat(connection, &status) == 0, let own = ask(ends) else {
            return false
        }
        // The kernel tells 32 bits of this number.
        return own.isHeld(between: ends) && own.inode == UInt32(truncatingIfNeeded: status.st_ino)
    }

    /// Returns whether the caller at the other end of `connection`, which has sent all that it will, is gone: it has closed its socket,
    /// or its process has ended. One that has ended only its side of the connection still holds its socket.
    ///
    /// `false` where that cannot be told: of callers on other machines, and in other network namespaces.
    func hasVanished(_ connection: Int32) -> Bool {
        // Reset meanwhile.
        if clinux_tcp_state(connection) == SocketState.close.rawValue { return true }
        guard let ends = ends(of: connection), canSee(connection), let answer = ask(ends.reversed) else { return false }
        return answer.isOrphan(between: ends.reversed)
    }

    /// Returns whether the caller at the other end of `connection` is for certain no user of this machine: it calls from another one, or
    /// another network namespace.
    func isFromElsewhere(_ connection: Int32) -> Bool {
        guard let ends = ends(of: connection), !ends.areOnOneMachine else { return false }
        return canSee(connection) && !hasVanished(connection)
    }

    private func ends(of connection: Int32) -> SocketEnds? {
        var local = clinux_endpoint()
        var remote = clinux_endpoint()
        guard unsafe clinux_endpoints(connection, &local, &remote) == 0 else { return nil }
        return SocketEnds(local: SocketEnd(local), remote: SocketEnd(remote))
    }

    private func ask(_ ends: SocketEnds) -> SocketAnswer? {
        if descriptor < 0 { descriptor = clinux_diag_socket() }
        guard descriptor >= 0 else { return nil }
        sequence &+= 1
        var local = ends.local.forKernel
        var remote = ends.remote.forKernel
        guard unsafe clinux_diag_ask(descriptor, sequence, &local, &remote) == 0 else { return nil }
        for _ in 0..<Self.patience {
            var answer = clinux_diag_answer()
            let result = unsafe clinux_diag_take(descriptor, &answer)
            if result == 1, answer.sequence == sequence { return SocketAnswer(answer) }
            guard result >= 0 || result == -EINTR else { break }
        }
        // What has gone wrong here must not be the answer to another question.
        close(descriptor)
        descriptor = -1
        return nil
    }
}

extension SocketEnd {
    fileprivate init(_ end: clinux_endpoint) { self.init(high: end.high, low: end.low, port: end.port) }

    fileprivate var forKernel: clinux_endpoint { clinux_endpoint(high: high, low: low, port: port) }
}

extension SocketAnswer {
    fileprivate init?(_ answer: clinux_diag_answer) {
        guard answer.error == 0 else { return nil }
        self.init(
            state: answer.state, uid: answer.uid, inode: answer.inode,
            ends: SocketEnds(local: SocketEnd(answer.local), remote: SocketEnd(answer.remote)))
    }
}
