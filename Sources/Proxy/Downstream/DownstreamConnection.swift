// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc
internal import HTTPWire

/// One caller's connection: reads requests, one after the other, and writes their responses.
///
/// The socket is read into `input` and written from `output`; both are bounded, which is the back-pressure. Output is
/// written once per turn of the loop, so that head and body of a small response leave together.
final class DownstreamConnection: ReadinessHandler {
    /// Where the connection stands.
    enum Phase: Equatable {
        /// A request head is awaited or half read.
        case head
        /// An exchange runs; its request's body is complete or not.
        case exchange
        /// The body of a request that we answer ourselves is read over; the reply waits.
        case reply
        /// What comes is no longer HTTP; `tunnel` has it.
        case tunnel
        /// The last response is being written; then the connection closes.
        case closing
        /// Written and ended on our side; what still comes is read over, so that the caller gets to read our reply.
        case lingering
        case closed
    }

    /// How much is read ahead of what is wanted, in bytes.
    static let inputWindow = 64 * 1024
    /// How much response may wait for the caller before the upstream is held back, in bytes.
    static let outputWindow = 64 * 1024
    /// What is copied is shorter than this, in bytes, be it the piece of a response or what it follows; else the two change places.
    static let copiedAtMost = 4096

    let descriptor: Int32
    let worker: Worker
    private let acceptor: Acceptor
    /// Its place among the callers.
    let place: CallerPlace
    /// The caller's uid, once it was asked for and the kernel knew.
    private var knownUser: UInt32?

    var phase = Phase.head
    var input = ByteQueue()
    var output = ByteQueue()
    /// The head of the present request, as it came.
    var head = ByteQueue()
    var parser: RequestHeadParser
    var body = BodyDecoder(framing: .none)
    var isBodyComplete = true
    /// Whether the caller waits for 100 before it sends its body (RFC 9110 §10.1.1).
    var awaitsContinue = false
    /// Whether the body is not read because nobody wants more of it for now.
    var isBodyHeld = false
    var keepsAlive = true
    var response = ForwardedResponse()
    var pendingReply: LocalAnswer?
    /// The answer of a local service that is waited for.
    var awaited: AwaitedAnswer?
    /// Where the present request goes.
    var upstream: UpstreamClient?
    /// How many bytes of its path the route has taken off.
    var stripped = 0
    /// What it is forwarded by.
    var terms = ForwardedRequest.Terms()
    private(set) var exchange: Exchange?
    /// Where HAProxy speaks its own protocol on it.
    var agent: SPOPAgent?
    /// What the present request asks its connection to be switched to.
    var offer: UpgradeOffer?
    private var tunnel: Tunnel?
    /// How much of the body has come since the time limit was set.
    var bodyArrived = 0
    /// Whether the present request counts among the worker's exchanges.
    var isAdmitted = false
    /// What is noted for the access log, if there is one.
    var accessNote: AccessNote?
    /// What is measured of the present exchange.
    var tally = ExchangeTally()
    let timer: LazyTimer
    private var writeLimit: WriteLimit?
    private(set) var hasEnded = false
    /// Whether a request was answered.
    private(set) var hasServed = false
    /// Whether it is looked at from time to time whether the caller is still there.
    var isWatched = false
    /// Whether it holds nothing that only a request needs.
    var isQuiet = false
    /// Whether a drain waits for the first request, which will be the only one.
    private var isLastAwaited = false
    private var wantsWrite = false
    private var isReading = true
    /// Whether the worker has it on its list for this turn.
    var isNoted = false

    init(_ caller: AcceptedCaller, worker: Worker) {
        (descriptor, acceptor, place, knownUser) = (caller.descriptor, caller.acceptor, caller.place, caller.user)
        self.worker = worker
        parser = RequestHeadParser(limits: acceptor.plan.headLimits)
        timer = LazyTimer(loop: worker.loop)
        timer.onExpiry = { [unowned self] in timeLimitPassed() }
        timer.arm(at: worker.loop.now + worker.silentDelay)
        worker.loop.watch(descriptor, for: .read, handler: self)
    }

    /// What it lets in, as of the last reload.
    var listener: ListenerPlan { acceptor.plan }

    /// The caller's uid, where the kernel tells it and the listener or one of its routes is for certain users.
    var user: UInt32? { listener.asksForUser ? callerUser : nil }

    /// The caller's uid, where the kernel tells it; asked once.
    var callerUser: UInt32? {
        if knownUser == nil { knownUser = acceptor.user(of: descriptor) }
        return knownUser
    }

    /// Whether a caller whose uid is not known is for certain none of the users known here.
    var isStranger: Bool { acceptor.isStranger(descriptor) }

    /// Whether the caller came over a Unix socket.
    var isUnixSocket: Bool { acceptor.isUnix }

    /// Whether another request will be read after this one.
    var staysOpen: Bool { keepsAlive && acceptor.isOpen && !worker.isDraining }

    /// The exchange object, made at the first request that goes upstream.
    func makeExchange() -> Exchange {
        if let exchange { return exchange }
        let made = Exchange(runtime: worker.runtime, caller: self)
        exchange = made
        return made
    }

    /// Lets go of the exchange object, which does nothing at present.
    func dropExchange() {
        exchange?.close()
        exchange = nil
    }

    /// Whether a further request is not read because the caller has not taken the answers before it.
    private var isBlocked: Bool { phase == .head && !input.isEmpty && output.count >= Self.outputWindow }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) {
        if events.isBroken, events.contains(.error) || phase != .head {
            close()
            return
        }
        if events.isWritable { worker.note(self) }
        if events.isReadable || events.isBroken { receive() }
    }

    /// The worker's call once per turn for connections with something to do: goes on with the input, writes the output.
    func turn() {
        isNoted = false
        if let tunnel { return tunnel.pump() }
        advance()
        let wasBlocked = isBlocked
        flush()
        // Nobody else would come back to a request that waited for the output to go.
        if wasBlocked, !isBlocked { worker.note(self) }
        if worker.isDraining { closeIfIdle() }
        if phase == .exchange, output.count < Self.outputWindow / 2 { exchange?.resumeResponse() }
        updateInterest()
    }

    // MARK: Reading

    /// How much may lie unread: a head must fit whole, and with a byte more than is allowed, so that one that is too
    /// long is refused and not waited for.
    private var inputLimit: Int {
        phase == .head ? max(Self.inputWindow, listener.headLimits.head + 4096) : Self.inputWindow
    }

    private func receive() {
        guard phase != .closed else { return }
        if phase == .lingering {
            discardInput()
            return
        }
        while input.count < inputLimit, !hasEnded {
            var failure: Int32 = 0
            var isDrained = false
            let room = inputLimit - input.count
            unsafe input.withUnsafeFreeSpace(minimum: min(room, 4096)) { space in
                let received = unsafe recv(descriptor, space.baseAddress, min(space.count, room), 0)
                if received < 0 { failure = errno }
                if received == 0 { hasEnded = true }
                isDrained = received < min(space.count, room)
                return max(received, 0)
            }
            if failure == EINTR { continue }
            if failure != 0, failure != EAGAIN {
                close()
                return
            }
            // Less than there was room for: the socket is empty, and asking again would only tell so.
            if failure == EAGAIN || isDrained { break }
        }
        worker.note(self)
    }

    /// What comes after the last response (RFC 9112 §9.6: a close with unread input resets the connection, and the
    /// caller may lose our reply).
    private func discardInput() {
        unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { space in
            for _ in 0..<16 {
                let received = unsafe recv(descriptor, space.baseAddress, space.count, 0)
                if received > 0 || (received < 0 && errno == EINTR) { continue }
                if received == 0 || errno != EAGAIN { close() }
                return
            }
        }
    }

    /// Goes on with what has come in.
    func advance() {
        var isMoving = true
        while isMoving {
            switch phase {
            case .head: isMoving = readHead()
            case .exchange, .reply: isMoving = readBody()
            case .closing, .lingering, .closed, .tunnel: isMoving = false
            }
        }
        if hasEnded { inputEnded() }
    }

    /// The caller has ended its side. One that waits for its response still gets it (RFC 9112 §9.6 knows half-closed
    /// connections); one that broke off in the middle of a request does not.
    private func inputEnded() {
        switch phase {
        case .head where isBlocked: break
        case .head: if output.isEmpty { close() } else { phase = .closing }
        // HAProxy ends both sides at once.
        case .exchange where agent != nil: close()
        // What it has sent behind this request is still answered.
        case .exchange where isBodyComplete:
            if input.isEmpty { keepsAlive = false }
            watchCaller()
        case .exchange where response.isWhole: breakOff(nil)
        // The upstream takes no more at the moment: the rest of the request may well lie here.
        case .exchange where isBodyHeld && !input.isEmpty: watchCaller()
        case .reply where awaited != nil && isBodyComplete: if input.isEmpty { keepsAlive = false }
        case .exchange, .reply: close()
        case .closing, .closed, .lingering, .tunnel: break
        }
    }

    // MARK: Writing

    /// Writes what the socket takes.
    func flush() {
        guard phase != .closed else { return }
        let waiting = output.count
        let failure = output.send(to: descriptor, keepingCapacity: 2 * Self.outputWindow)
        if failure == 0 {
            writeLimit?.end()
            if phase == .closing { finishClosing() }
        } else if failure == EAGAIN {
            // A tunnel is bound by the upstream's idle time alone, both its ways together.
            if phase != .tunnel { limitWriting(taken: waiting - output.count) }
        } else {
            close()
        }
    }

    private func limitWriting(taken: Int) {
        let limit =
            writeLimit
            ?? WriteLimit(loop: worker.loop, time: worker.limits.writeTime, pace: worker.limits.writePace) {
                [unowned self] in
                worker.logStall(of: listener)
                close(resetting: true)
            }
        writeLimit = limit
        limit.waits(taken: taken)
    }

    private func finishClosing() {
        // Nothing is left to come, or nothing that the caller sends could make a close reset the connection.
        guard !hasEnded, !input.isEmpty || !isBodyComplete else {
            close()
            return
        }
        _ = shutdown(descriptor, Int32(Glibc.SHUT_WR))
        phase = .lingering
        timer.arm(at: worker.loop.now + Self.lingering)
    }

    private func updateInterest() {
        guard phase != .closed, phase != .tunnel else { return }
        let write = !output.isEmpty
        let read = !hasEnded && (phase == .lingering || input.count < inputLimit)
        guard write != wantsWrite || read != isReading else { return }
        wantsWrite = write
        isReading = read
        var interest: Interest = []
        if read { interest.insert(.read) }
        if write { interest.insert(.write) }
        worker.loop.watch(descriptor, for: interest, handler: self)
    }

    // MARK: The end of a request, and of the connection

    /// The response is written into `output`: what comes next.
    func requestEnded() {
        if let accessNote {
            accessNote.isWhole = !tally.isBroken
            endAccess()
        }
        release()
        awaited = nil
        isWatched = false
        hasServed = true
        if !isBodyComplete { keepsAlive = false }
        head.removeAll(keepingCapacity: 16_384)
        parser.reset()
        // A head that cannot be read is answered as what it is, not as the request before it was.
        response.reset(isHead: false, version: .http11)
        if staysOpen {
            phase = .head
            awaitRequest()
        } else {
            phase = .closing
            // What is left is bound by the time for writing.
            timer.disarm()
        }
        worker.note(self)
    }

    /// A drain closes it if no request is under way.
    ///
    /// A request that lies in the socket already is served. So is the first one of a caller who has only just connected:
    /// unlike a later one, whose caller knows that a kept connection may end at any time and sends it again (RFC 9112
    /// §9.3.1), it would be lost, and a restart is to refuse nobody.
    func closeIfIdle() {
        guard phase == .head, parser.isIdle, input.isEmpty, output.isEmpty, !isLastAwaited else { return }
        var byte: UInt8 = 0
        if unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK)) > 0 { return }
        guard hasServed || hasEnded else {
            isLastAwaited = true
            timer.arm(at: worker.loop.now + worker.limits.drainGrace)
            return
        }
        if let agent { disconnect(agent) } else { close() }
    }

    /// Closes at once. `resetting`: so that a caller that counts on the end of the connection for the end of the body
    /// does not take it for complete.
    func close(resetting: Bool = false) {
        guard phase != .closed else { return }
        phase = .closed
        timer.cancel()
        writeLimit?.cancel()
        awaited = nil
        endAccess()
        dropExchange()
        if let tunnel {
            self.tunnel = nil
            tunnel.close()
            worker.tunnelClosed()
        }
        release()
        worker.loop.forget(descriptor)
        if resetting {
            var option = linger(l_onoff: 1, l_linger: 0)
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        _ = Glibc.close(descriptor)
        place.leave()
        worker.connectionClosed(self)
    }

    /// The upstream has switched to another protocol. It counts as an exchange for as long as it lasts.
    func beginTunnel(on upstream: UpstreamConnection) {
        phase = .tunnel
        timer.disarm()
        writeLimit?.end()
        worker.tunnelOpened()
        accessNote?.isWhole = true
        endAccess()
        endTally()
        tunnel = Tunnel(self, upstream)
        head.removeAll(keepingCapacity: 0)
        worker.note(self)
    }

    private func release() {
        guard isAdmitted else { return }
        endTally()
        worker.exchangeEnded()
        isAdmitted = false
    }
}
