// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop
internal import Glibc

/// A listening socket as one worker sees it. All workers share the socket; whoever comes first gets the caller.
final class Acceptor: ReadinessHandler {
    /// What it lets in. Replaced by a reload; connections look here for each request.
    var plan: ListenerPlan
    /// Whether it still accepts; connections of one that does not close after their response.
    private(set) var isOpen = true
    private let descriptor: Int32
    private unowned let worker: Worker
    /// Whether callers come over a Unix socket.
    let isUnix: Bool
    /// Whether the kernel has been seen to tell whose sockets are connected to this one.
    private var knowsUsers = false
    private let timer: LazyTimer
    /// Callers taken per turn, so that a storm of them does not starve the exchanges under way.
    private static let mostPerTurn = 64

    init(descriptor: Int32, plan: ListenerPlan, worker: Worker) {
        self.descriptor = descriptor
        self.plan = plan
        self.worker = worker
        isUnix = Self.family(of: descriptor) == AF_UNIX
        timer = LazyTimer(loop: worker.loop)
        timer.onExpiry = { [unowned self] in self.worker.loop.watch(self.descriptor, for: .read, handler: self) }
        worker.loop.watch(descriptor, for: .read, handler: self)
    }

    /// Accepts nothing more. The socket itself is others' to close.
    func stop() {
        isOpen = false
        timer.cancel()
        worker.loop.unwatch(descriptor)
    }

    func ready(_ fd: Int32, _ events: Readiness) {
        for _ in 0..<Self.mostPerTurn {
            let accepted = clinux_accept(descriptor)
            guard accepted >= 0 else {
                pause(after: -accepted)
                return
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
            worker.logBlindness(of: plan)
            return nil
        }
        return worker.owners.caller(of: connection)
    }

    /// Out of descriptors or memory, the caller stays in the queue and the socket stays ready: asked again at every turn,
    /// it would take all of the processor. Otherwise the caller is gone again, or another worker's.
    private func pause(after error: Int32) {
        guard [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error) else { return }
        worker.loop.relax(descriptor)
        timer.arm(at: worker.loop.now + .milliseconds(100))
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
