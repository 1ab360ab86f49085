// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Secrets
internal import System

/// Connection to a login helper in a separate unit: the question, its end, then the answer until the helper closes.
///
/// Only a socket that root or this process's user listens on gets the question.
struct HelperSocket {
    let path: String
    /// A descriptor that becomes readable if the run is cancelled.
    let cancellation: Int32

    /// Asks the helper.
    func answer(
        to question: Secret, limit: Int, until deadline: ContinuousClock.Instant
    ) throws(HelperProcess.Failure) -> Secret {
        let socket = try connect(until: deadline)
        var bytes = question.revealBytes()
        defer { wipe(&bytes) }
        guard DescriptorIO.sendAll(bytes.span, on: socket.number) else {
            throw HelperProcess.Failure(reason: "the connection to its socket ended before the question was sent")
        }
        _ = shutdown(socket.number, Int32(SHUT_WR))
        return try receive(from: socket, limit: limit, until: deadline)
    }

    private func connect(until deadline: ContinuousClock.Instant) throws(HelperProcess.Failure) -> Descriptor {
        guard let address = SocketAddress(unixPath: path) else {
            throw HelperProcess.Failure(reason: "the path of its socket is too long")
        }
        let socket = try open(address, within: max(.zero, deadline - .now))
        // The listener's user is that of the process that called `listen`: for a socket unit, systemd.
        let listener = Sockets.peerUser(of: socket.number)
        guard listener == 0 || listener == geteuid() else {
            throw HelperProcess.Failure(
                reason:
                    "the socket belongs to another user (uid \(listener.map(String.init) ?? "unknown")); only root or "
                    + "the daemon's own user may listen on it",
                publicReason: "its socket belongs to another user")
        }
        return socket
    }

    private func open(
        _ address: SocketAddress, within limit: Duration
    ) throws(HelperProcess.Failure) -> Descriptor {
        do throws(SystemError) {
            let socket = Descriptor(owning: try Sockets.makeStream(AF_UNIX))
            // Limits the wait for a place in the queue of the socket as well.
            Sockets.setTimeouts(socket.number, send: limit)
            try address.connect(socket.number)
            return socket
        } catch {
            throw HelperProcess.Failure(
                reason: FileFault.system("connect to", path, error.code).reason,
                publicReason: "its socket cannot be reached", isTimeout: error.code == EAGAIN)
        }
    }

    private func receive(
        from socket: borrowing Descriptor, limit: Int, until deadline: ContinuousClock.Instant
    ) throws(HelperProcess.Failure) -> Secret {
        var answer: [UInt8] = []
        defer { wipe(&answer) }
        answer.reserveCapacity(limit + Self.chunk)
        while true {
            let left = deadline - .now
            guard left > .zero else { throw Self.timedOut }
            do {
                let ready = try DescriptorIO.waitUntilReadable(
                    anyOf: [socket.number, cancellation], within: min(left, .seconds(3600)))
                if ready[1] { throw Self.timedOut }
                guard ready[0] else { continue }
                var bytes = try DescriptorIO.read(from: socket.number, atMost: Self.chunk)
                defer { wipe(&bytes) }
                if bytes.isEmpty { return Secret(answer) }
                answer += bytes
            } catch let failure as HelperProcess.Failure {
                throw failure
            } catch {
                throw HelperProcess.Failure(reason: "its answer could not be read (\(error))")
            }
            guard answer.count <= limit else {
                throw HelperProcess.Failure(reason: "it wrote more than \(limit >> 10) KiB")
            }
        }
    }

    private static let chunk = 16 << 10
    private static let timedOut = HelperProcess.Failure(reason: "it took too long", isTimeout: true)
}
