// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop
internal import Glibc

/// A listening socket as one worker sees it. All workers share the socket; whoever comes first gets the caller.
final class Acceptor: ReadinessHandler {
    /// What it lets in. Replaced by a reload; connections look here for each request.
    var plan: ListenerPlan
    /// True if it still accepts; connections of one that does not close after their response.
    private(set) var isOpen = true
    /// The places of its listener, on all workers.
    let callers: CallerPlaces
    private let descriptor: Int32
    /// True if nobody else accepts from the socket once we do not.
    private let isOurs: Bool
    private unowned let worker: Worker
    /// True if callers come over a Unix socket.
    let isUnix: Bool
    /// True if the kernel has been seen to tell whose sockets are connected to this one.
    private var knowsUsers = false
    private let timer: LazyTimer
    /// Callers taken per turn, so that a storm of them does not starve the exchanges under way.
    private static let mostPerTurn = 64
    /// More than the kernel keeps in any queue (net.core.somaxconn is 4096 where nobody changed it).
    private static let mostWaiting = 65_536

    init(socket: ListenSocket, plan: ListenerPlan, worker: Worker) {
        descriptor = socket.descriptor
        callers = socket.callers
        isOurs = socket.isOurs
        self.plan = plan
        self.worker = worker
        isUnix = Self.family(of: descriptor) == AF_UNIX
        timer = LazyTimer(loop: worker.loop)
        timer.onExpiry = { [unowned self] in self.worker.loop.watch(self.descriptor, for: .read, handler: self) }
        worker.loop.watch(descriptor, for: .read, handler: self)
    }

    /// Accepts nothing more, after those who wait already where the socket is about to be closed: they are connected and
    /// may have sent their request. The socket itself is others' to close.
    func stop() {
        isOpen = false
        timer.cancel()
        worker.loop.unwatch(descriptor)
        if isOurs { takeCallers(atMost: Self.mostWaiting) }
    }

    func ready(_ fd: Int32, _ events: Readiness) { takeCallers(atMost: Self.mostPerTurn) }

    private func takeCallers(atMost limit: Int) {
        for _ in 0..<limit {
            let accepted = clinux_accept(descriptor)
            guard accepted >= 0 else {
                guard overcome(-accepted) else { return }
                continue
            }
            if !isUnix {
                var one: Int32 = 1
                unsafe setsockopt(
                    accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
            }
            worker.accept(accepted, by: self)
        }
    }

    /// The uid of the caller at the other end of `connection`, which came in here; `nil` where the kernel does not tell.
    func user(of connection: Int32) -> UInt32? {
        if isUnix {
            var uid: UInt32 = 0
            guard unsafe clinux_peer_uid(connection, &uid) == 0 else { return nil }
            return UserNamespace.isAmbiguous(uid) ? nil : uid
        }
        if !knowsUsers { knowsUsers = worker.owners.canSee(connection) }
        guard knowsUsers else {
            if plan.asksForUser { worker.logBlindness(of: plan) }
            return nil
        }
        return worker.owners.caller(of: connection)
    }

    /// Returns whether the caller of `connection`, whose uid is not told, is for certain none of the users that this process knows.
    func isStranger(_ connection: Int32) -> Bool {
        // The number that a Unix socket gives for all of them is no user's.
        isUnix || worker.owners.isFromElsewhere(connection)
    }

    /// Returns whether to go on after a failure to accept.
    ///
    /// Out of descriptors, callers are told so. If even that fails, or memory is short, they stay in the queue and the
    /// socket stays ready: asked again at every turn, it would take all of the processor.
    private func overcome(_ error: Int32) -> Bool {
        switch error {
        case EAGAIN, EINVAL:
            return false
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            if [EMFILE, ENFILE].contains(error), worker.refuseFirst(at: descriptor, of: plan) { return true }
            guard isOpen else { return false }
            worker.loop.relax(descriptor)
            timer.arm(at: worker.loop.now + .milliseconds(100))
            return false
        default:
            // This caller is gone again (accept(2) tells errors of the network, too).
            return true
        }
    }

    private static func family(of descriptor: Int32) -> Int32 {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe getsockname(descriptor, $0, &length)
            }
        }
        return result == 0 ? Int32(address.ss_family) : AF_UNSPEC
    }
}
