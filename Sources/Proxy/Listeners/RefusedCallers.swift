// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import EventLoop
internal import Glibc

/// Callers for whom there is no room: each gets one answer that is ready, and goes, without an object of its own.
///
/// A connection that is closed while something of its request is still to be read is reset, and its caller may lose the
/// answer (RFC 9112 §9.6). So a caller is given a moment to end its side, but only so many of them at once: a flood is
/// answered and holds neither memory nor descriptors.
final class RefusedCallers: ReadinessHandler {
    /// How many may be given time; for one more the first of them has to go.
    static let most = 64
    private static let time = Duration.seconds(1)

    private let loop: EventLoop
    /// A descriptor to give up for one with which a caller can be told that there is none; -1: it is given up.
    private var spare = nothing()
    private let timer: LazyTimer
    /// In the order in which they came.
    private var leaving: [Leaving] = []

    private struct Leaving {
        var descriptor: Int32
        var until: LoopInstant
        /// An answer that is still to be sent, and what is called once a request begins to come.
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

    /// Turns away whoever waits first at a listening socket, where there is no descriptor to accept it with. Whether there
    /// was somebody.
    func refuseFirst(at listener: Int32) -> Bool {
        if spare >= 0 { _ = close(spare) }
        spare = -1
        let accepted = clinux_accept(listener)
        if accepted >= 0 { refuse(accepted, .noDescriptor) }
        spare = Self.nothing()
        return accepted >= 0
    }

    private static func nothing() -> Int32 { unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }

    /// Answers on a connection that has just been accepted, and lets go of it.
    func refuse(_ descriptor: Int32, _ reason: NoRoom) {
        guard say(reason.farewell, to: descriptor), drain(descriptor).isOpen, reason != .noDescriptor else {
            _ = close(descriptor)
            return
        }
        linger(descriptor, nil)
    }

    /// Answers on a connection that has just been accepted, once a request begins to come, and lets go of it.
    ///
    /// Some clients take a connection for broken that brings an answer before they have asked. `onRequest` is not called for a
    /// caller who goes without a word: whoever only looks if somebody listens here was refused nothing.
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

    /// Sends all that there will be. Whether that worked: on a fresh connection it fits, or else the caller is gone.
    private func say(_ answer: [UInt8], to descriptor: Int32) -> Bool {
        let sent = unsafe answer.withUnsafeBytes {
            unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        return sent == answer.count && shutdown(descriptor, Int32(Glibc.SHUT_WR)) == 0
    }

    /// Closes all of them.
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
            // One that has ended its side may still read.
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

    /// Reads over what is there. Returns whether the caller may send more, and whether it has sent anything.
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
