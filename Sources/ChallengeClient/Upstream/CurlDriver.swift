// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
package import EventLoop
internal import Glibc

/// Drives one libcurl multi handle by one event loop: its sockets are watched, its one timer is a deadline of the wait,
/// and what finished is told before the loop waits again.
///
/// libcurl finishes transfers also within `add` and within a timeout, so completions are drained before every wait and
/// not only after events.
package final class CurlDriver: ReadinessHandler, WaitHook {
    private unowned let loop: EventLoop
    private let multi: MultiHandle
    private let idle: IdleConnections
    private var deadline = LoopInstant.never
    private var news: [Transfer] = []
    /// The memory for the next turn's list; two that take turns, so that telling costs no allocation.
    private var spare: [Transfer] = []
    private var hasWork = false
    /// How often libcurl was let loose on its sockets: what comes in one go, it has read at once.
    private(set) var goes: UInt64 = 0
    /// Those whose answer may have ended without libcurl having told so.
    private var doubtful: [CurlStream] = []
    /// Those whose request's head waits for the end of this turn.
    private var held: [HTTP1Stream] = []

    /// A driver on `loop`; to be made on its thread. `connections`: how many idle connections libcurl keeps at most.
    package init(loop: EventLoop, connections: Int) throws(CurlError) {
        self.loop = loop
        idle = IdleConnections(loop: loop)
        multi = try MultiHandle(maxIdle: connections)
        loop.add(self)
    }

    /// Starts `stream`. Nothing is told from within this call.
    func start(_ stream: CurlStream) throws(CurlError) { try start(stream.easy, delegate: stream) }

    /// Ends `stream` wherever it stands. In the middle of a request, its connection is closed.
    func stop(_ stream: CurlStream) {
        stop(stream.easy)
        // Its doubts hold it, and it holds the driver.
        if !doubtful.isEmpty { doubtful.removeAll { $0 === stream } }
    }

    /// Starts what `easy` is set up for; `delegate` is told of its end, not from within this call.
    func start(_ easy: EasyHandle, delegate: any TransferDelegate) throws(CurlError) {
        try multi.add(easy, delegate: delegate)
        takeEffects()
        hasWork = true
    }

    /// Ends what `easy` does, and closes a connection that it holds.
    func stop(_ easy: EasyHandle) {
        multi.remove(easy)
        takeEffects()
        hasWork = true
    }

    /// The present by the clock that libcurl goes by.
    var systemNow: LoopInstant { loop.systemNow }

    /// There is news that does not come from libcurl.
    func wake() { hasWork = true }

    /// Lets a paused stream go on. libcurl may call back from within.
    func unpause(_ stream: CurlStream) {
        goes &+= 1
        if let error = stream.easy.unpause() { stream.transferEnded(stream.easy, error: error) }
        takeEffects()
        hasWork = true
    }

    /// Has libcurl look at `stream` again soon, whether or not anything happens on its connection.
    func rouse(_ stream: CurlStream) {
        // What changes nothing it does not take for a reason.
        stream.easy.pauseReceiving()
        unpause(stream)
    }

    /// `stream` is asked at the end of this turn to send what it holds back.
    func hold(_ stream: HTTP1Stream) {
        held.append(stream)
        hasWork = true
    }

    /// `transfer` has something to tell.
    func note(_ transfer: Transfer) {
        guard !transfer.hasNews else { return }
        transfer.hasNews = true
        news.append(transfer)
    }

    /// A socket of libcurl's is ready.
    package func ready(_ fd: Int32, _ events: Readiness) {
        goes &+= 1
        multi.socketReady(
            fd, readable: events.isReadable, writable: events.isWritable, error: events.isBroken)
        takeEffects()
        hasWork = true
        if !doubtful.isEmpty { rouse(at: fd) }
    }

    /// The connection of a stream whose request has just ended is not to be used again.
    func dropConnection(of stream: CurlStream) {
        let fd = stream.easy.socket
        guard fd >= 0, stream.easy.speaksHTTP1 else { return }
        // libcurl finds it dead when it looks for one to take up.
        _ = shutdown(fd, Int32(SHUT_RDWR))
    }

    /// The connection of a stream whose request has just ended well is not used again if something waits there: it answers no request,
    /// and the next one may go out before `IdleConnections` hears of it.
    func dropStrayConnection(of stream: CurlStream) {
        let fd = stream.easy.socket
        var byte: UInt8 = 0
        guard fd >= 0, unsafe recv(fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0 else { return }
        dropConnection(of: stream)
    }

    /// The sending of `stream` is paused, and only the end of the connection ends its answer: libcurl stops reading there, but
    /// says nothing before its sending goes on.
    func doubt(_ stream: CurlStream) {
        if !doubtful.contains(where: { $0 === stream }) { doubtful.append(stream) }
    }

    private func rouse(at fd: Int32) {
        doubtful.removeAll { !$0.mayMissEnd }
        for stream in doubtful where stream.easy.socket == fd { stream.transfer.bodyAvailable() }
    }

    /// Runs libcurl's timer where it is due, takes completions and tells owners the news.
    package func beforeWait(now: LoopInstant) -> WaitAdvice {
        var didWork = false
        if deadline <= now {
            deadline = .never
            goes &+= 1
            multi.timeout()
            takeEffects()
            hasWork = true
        }
        if hasWork {
            hasWork = false
            didWork = true
            settle()
        }
        return WaitAdvice(didWork: didWork, deadline: deadline)
    }

    private func settle() {
        while let stream = held.popLast() { stream.sendHeld() }
        while let completion = multi.nextCompleted() {
            completion.delegate.transferEnded(completion.handle, error: completion.error)
        }
        if !doubtful.isEmpty { doubtful.removeAll { !$0.mayMissEnd } }
        takeEffects()
        // Telling may bring further news, which then is told at the next call, in this turn.
        var told: [Transfer] = []
        swap(&told, &spare)
        swap(&told, &news)
        for transfer in told {
            transfer.hasNews = false
            transfer.tellNews()
        }
        told.removeAll(keepingCapacity: true)
        swap(&told, &spare)
        if !news.isEmpty { hasWork = true }
    }

    private func takeEffects() {
        while let effect = multi.nextEffect() {
            switch effect {
            case .watch(let fd, let interest, let isTransfer):
                apply(interest, to: fd, isTransfer: isTransfer)
            case .closed(let fd):
                loop.forget(fd)
            case .idle(let fd):
                loop.watch(fd, for: .read, handler: idle)
            }
        }
        switch multi.takeTimer() {
        case .unchanged: break
        case .cancelled: deadline = .never
        case .after(let milliseconds): deadline = loop.systemNow.advanced(byMilliseconds: milliseconds)
        }
    }

    /// libcurl drops its socket at the end of every transfer and takes it up at the next; a socket that it closes
    /// through our callback may therefore stay registered in between. Others are closed behind our back.
    private func apply(_ interest: SocketInterest, to fd: Int32, isTransfer: Bool) {
        switch interest {
        case .none: if isTransfer { loop.relax(fd) } else { loop.unwatch(fd) }
        case .read: loop.watch(fd, for: .read, handler: self)
        case .readWrite: loop.watch(fd, for: [.read, .write], handler: self)
        case .write: loop.watch(fd, for: .write, handler: self)
        }
    }
}
