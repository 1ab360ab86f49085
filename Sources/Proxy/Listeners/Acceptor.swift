// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop
internal import Glibc
internal import System

/// A listening socket on one worker. All workers share the socket, and the first to accept gets the caller.
final class Acceptor: ReadinessHandler {
    /// The plan of the listener. Replaced by a reload; connections read it for each request.
    var plan: ListenerPlan {
        didSet { tokens = CallerTokenSnapshot() }
    }
    /// The tokens of callers as this worker read them last.
    var tokens = CallerTokenSnapshot()
    /// True if the socket still accepts. Connections of a closed one end after their response.
    private(set) var isOpen = true
    /// The connection quotas of the listener, on all workers.
    let callers: ConnectionQuotas
    private let descriptor: Int32
    /// True if no other process accepts from the socket after this one stops.
    private let isOurs: Bool
    private unowned let worker: Worker
    /// True if callers connect over a Unix socket.
    let isUnix: Bool
    /// True if the kernel has been seen to report the owners of sockets connected to this one.
    private var knowsUsers = false
    private let timer: LazyTimer
    /// The number of callers accepted per turn, so that a storm of callers does not starve exchanges under way.
    private static let mostPerTurn = 64
    /// More than the kernel keeps in any queue (net.core.somaxconn is 4096 by default).
    private static let mostWaiting = 65_536

    init(socket: ListenSocket, plan: ListenerPlan, worker: Worker) {
        descriptor = socket.descriptor
        callers = socket.callers
        isOurs = socket.isOurs
        self.plan = plan
        self.worker = worker
        isUnix = (SocketAddress.local(of: descriptor)?.family ?? AF_UNSPEC) == AF_UNIX
        timer = LazyTimer(loop: worker.loop)
        timer.onExpiry = { [unowned self] in self.worker.loop.watch(self.descriptor, for: .read, handler: self) }
        worker.loop.watch(descriptor, for: .read, handler: self)
    }

    /// Stops accepting. If the socket is about to be closed, callers in its queue are accepted first: they are connected
    /// and may have sent their request. The owner closes the socket.
    func stop() {
        isOpen = false
        timer.cancel()
        worker.loop.unwatch(descriptor)
        if isOurs { takeCallers(atMost: Self.mostWaiting) }
    }

    func ready(_ fd: Int32, _ events: Readiness) {
        takeCallers(atMost: Self.mostPerTurn)
        // If epoll_ctl failed (epoll_ctl(2): ENOMEM, ENOSPC), no event will announce the next caller.
        guard events.contains(.refused), isOpen else { return }
        worker.logUnwatched(plan)
        worker.loop.suspend(descriptor)
        timer.arm(at: worker.loop.now + .milliseconds(100))
    }

    private func takeCallers(atMost limit: Int) {
        for _ in 0..<limit {
            let accepted = clinux_accept(descriptor)
            guard accepted >= 0 else {
                guard overcome(-accepted) else { return }
                continue
            }
            if !isUnix { Sockets.sendAtOnce(accepted) }
            worker.accept(accepted, by: self)
        }
    }

    /// Returns the uid of the caller of `connection`; `nil` if the kernel does not report it.
    func user(of connection: Int32) -> UInt32? {
        if isUnix {
            guard let uid = Sockets.peerUser(of: connection) else { return nil }
            return UserNamespace.isAmbiguous(uid) ? nil : uid
        }
        if !knowsUsers { knowsUsers = worker.owners.canSee(connection) }
        guard knowsUsers else {
            if plan.asksForUser { worker.logBlindness(of: plan) }
            return nil
        }
        return worker.owners.caller(of: connection)
    }

    /// Returns true if a caller without a known uid is certainly not one of the users that this process knows.
    func isStranger(_ connection: Int32) -> Bool {
        // The overflow uid, which a Unix socket reports for all of them, is not a user.
        isUnix || worker.owners.isFromElsewhere(connection)
    }

    /// Handles an error of accept, and returns true to continue.
    ///
    /// If no descriptor is left, callers get an error response. If that fails too, or memory is short, they stay in the
    /// queue and the socket stays ready: without a pause, the loop would spin.
    private func overcome(_ error: Int32) -> Bool {
        switch error {
        case EAGAIN, EINVAL:
            return false
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            if [EMFILE, ENFILE].contains(error), worker.refuseFirst(at: descriptor, of: plan) { return true }
            guard isOpen else { return false }
            worker.loop.suspend(descriptor)
            timer.arm(at: worker.loop.now + .milliseconds(100))
            return false
        default:
            // This caller is gone again (accept(2) reports errors of the network as well).
            return true
        }
    }
}
