// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop
internal import Glibc
internal import System

/// Sends one prepared answer to each refused caller and closes the connection, without an object for each.
///
/// If a connection is closed while a part of its request is unread, it is reset, and the caller may lose the response
/// (RFC 9112 §9.6). So a caller gets a moment to end its side. The number of such callers is limited, so that a flood
/// occupies neither memory nor descriptors.
final class RefusedCallers: ReadinessHandler {
    /// The number of callers that get time. With one more, the first has to go.
    static let most = 64
    private static let time = Duration.seconds(1)

    private let loop: EventLoop
    /// Spare descriptor, released to accept a caller that gets the error response if none is left; -1 while released.
    private var spare = nothing()
    private let timer: LazyTimer
    /// The callers in the order of their arrival.
    private var leaving: [Leaving] = []

    private struct Leaving {
        var descriptor: Int32
        var until: LoopInstant
        /// The answer that is still to be sent, and a callback for the beginning of a request.
        var answer: (bytes: [UInt8], onRequest: () -> Void)?
    }

    init(loop: EventLoop) {
        self.loop = loop
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in timePassed() }
    }

    deinit {
        if spare >= 0 { _ = close(spare) }
    }

    /// Refuses the first caller that waits at a listening socket, if no descriptor is left to accept it. Returns true if there
    /// was one.
    func refuseFirst(at listener: Int32) -> Bool {
        if spare >= 0 { _ = close(spare) }
        spare = -1
        let accepted = clinux_accept(listener)
        if accepted >= 0 { refuse(accepted, .noDescriptor) }
        spare = Self.nothing()
        return accepted >= 0
    }

    private static func nothing() -> Int32 { (try? FileSystem.open("/dev/null", O_RDONLY)) ?? -1 }

    /// Answers on a connection that has just been accepted, and closes it.
    func refuse(_ descriptor: Int32, _ reason: ConnectionRefusal) {
        guard say(reason.closingReply, to: descriptor), drain(descriptor).isOpen, reason != .noDescriptor else {
            _ = close(descriptor)
            return
        }
        linger(descriptor, nil)
    }

    /// Answers on a connection that has just been accepted when its request begins, and closes it.
    ///
    /// Some clients treat a connection as broken if a response arrives before the request. `onRequest` is not called
    /// for a caller who sends nothing: one who only tests the port was not refused anything.
    func turnAway(_ descriptor: Int32, with answer: [UInt8], onRequest: @escaping () -> Void) {
        linger(descriptor, (answer, onRequest))
    }

    private func linger(_ descriptor: Int32, _ answer: (bytes: [UInt8], onRequest: () -> Void)?) {
        if leaving.count >= Self.most { end(at: 0) }
        let until = loop.now + Self.time
        leaving.append(Leaving(descriptor: descriptor, until: until, answer: answer))
        if leaving.count == 1 { timer.arm(at: until) }
        loop.watch(descriptor, for: .read, handler: self)
    }

    /// Sends the whole answer. Returns true on success: it fits on a new connection unless the caller is gone.
    private func say(_ answer: [UInt8], to descriptor: Int32) -> Bool {
        DescriptorIO.sendAll(answer.span, on: descriptor) && shutdown(descriptor, Int32(Glibc.SHUT_WR)) == 0
    }

    /// Closes all connections.
    func closeAll() {
        while !leaving.isEmpty { end(at: leaving.count - 1) }
        timer.cancel()
    }

    func ready(_ fd: Int32, _ events: Readiness) {
        guard let index = leaving.firstIndex(where: { $0.descriptor == fd }) else { return }
        let (isOpen, hasAsked) = drain(fd)
        if let answer = leaving[index].answer {
            leaving[index].answer = nil
            if hasAsked { answer.onRequest() }
            // A caller that has ended its side may still read.
            if say(answer.bytes, to: fd), isOpen { return }
        } else if isOpen {
            return
        }
        end(at: index)
    }

    private func timePassed() {
        while let first = leaving.first, first.until <= loop.now { end(at: 0) }
        if let first = leaving.first { timer.arm(at: first.until) }
    }

    private func end(at index: Int) {
        let caller = leaving.remove(at: index)
        if let answer = caller.answer { _ = say(answer.bytes, to: caller.descriptor) }
        loop.forget(caller.descriptor)
        _ = close(caller.descriptor)
    }

    /// Discards input. Returns whether the caller may send more, and whether anything was received.
    private func drain(_ descriptor: Int32) -> (isOpen: Bool, hasAsked: Bool) {
        unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { space in
            var hasAsked = false
            for _ in 0..<4 {
                let received = unsafe recv(descriptor, space.baseAddress, space.count, 0)
                if received > 0 { hasAsked = true }
                if received > 0 || (received < 0 && errno == EINTR) { continue }
                return (received < 0 && errno == EAGAIN, hasAsked)
            }
            return (true, hasAsked)
        }
    }
}

/// The reason to turn a caller away before its request is read; the raw value is for the metrics.
package enum ConnectionRefusal: String, Sendable, CaseIterable {
    /// `limits.callers` is reached.
    case everywhere = "callers"
    /// The listener's own `callers` is reached.
    case atListener = "listener"
    /// The caller's user has as many connections as one user may.
    case user = "user"
    /// The process has no file descriptor left.
    case noDescriptor = "descriptors"

    /// The response to the caller.
    var closingReply: [UInt8] {
        switch self {
        case .everywhere: Self.closingReplies.everywhere
        case .atListener: Self.closingReplies.atListener
        case .user: Self.closingReplies.user
        case .noDescriptor: Self.closingReplies.noDescriptor
        }
    }

    private static let closingReplies = (
        everywhere: closingReply("`limits.callers` is reached: that many callers are connected."),
        atListener: closingReply("`callers` of this listener is reached: that many callers are connected."),
        user: closingReply(
            "The user of this caller has as many connections as one user may: half of what all others leave."),
        noDescriptor: closingReply("The proxy cannot open more files (`LimitNOFILE=` of the unit, `ulimit -n`).")
    )

    private static func closingReply(_ detail: String) -> [UInt8] {
        LocalReply(.overloaded, detail: detail, retryAfter: 1).closingReply
    }
}
