// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Curl
import EventLoop
import HTTPWire

@testable import ChallengeClient

/// A stream to an upstream over a link, in place of libcurl's connection.
final class SimulatedStream: UpstreamStream, IdleStream, LinkClient {
    /// The number of bytes on their way to the server above which no more of a body is read.
    private static let window = 32 * 1024

    let transfer: Transfer
    private unowned let source: SimulatedStreams
    private let loop: EventLoop
    private let driver: CurlDriver
    private let timer: LazyTimer
    private var link: Link?
    private var machine = HTTP1ClientMachine()
    private var input = ByteQueue()
    private var chunks = ChunkedBody()
    private var head: [UInt8] = []
    private var hasEnded = false
    private var wasReset = false
    private(set) var idleSince = LoopInstant.never

    init(source: SimulatedStreams, runtime: ClientRuntime) {
        self.source = source
        loop = runtime.loop
        driver = runtime.driver
        transfer = Transfer(driver: runtime.driver)
        timer = LazyTimer(loop: runtime.loop)
        transfer.stream = self
        timer.onExpiry = { [unowned self] in
            if machine.endWait() { resumeSending() }
        }
    }

    /// Returns a connection that has ended: after a 101 no bytes of the other protocol are sent.
    func takeConnection() -> UpstreamConnection? {
        guard machine.hasSwitched, let easy = try? EasyHandle() else { return nil }
        return UpstreamConnection(
            easy: easy, driver: driver, loop: loop, idleDelay: LoopDelay(.seconds(300)), isSecure: false)
    }

    var hasWaited: Bool { machine.hasWaited }
    private(set) var hasSent = false
    /// True if no bytes at the socket wait for the loop.
    var isFresh: Bool { machine.isIdle && input.isEmpty && !hasEnded }

    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {
        let awaitsContinue = request.expectsContinue && request.hasBody
        if awaitsContinue { head.append(name: "Expect", value: "100-continue") }
        head.end(request.framing)
        var bytes = ByteQueue()
        head.take(into: &bytes)
        self.head = Array(bytes.text.utf8)
        chunks.begin()
        hasSent = false
        transfer.mayMeetIdleTimeout = machine.mayMeetIdleTimeout(request)
        switch machine.begin(request.framing, awaitsContinue: awaitsContinue) {
        case .connect: link = source.open(self)
        case .send: sendHead()
        case .refuse: throw .failedInit
        }
    }

    func resumeSending() {
        guard machine.isRunning else { return }
        sendBody()
        settle()
    }

    func resumeReceiving() { advance() }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        guard chunks.append(name: name, value: value) else { throw .badFunctionArgument }
    }

    func failure(_ error: CurlError) -> TransferFailure {
        var failure = TransferFailure(error)
        failure.wasConnected = link?.isOpen ?? false
        failure.mayNotBeTaken = machine.wasIgnored
        return failure
    }

    func release() {
        transfer.reset()
        timer.disarm()
        source.idle.put(self, now: loop.now)
    }

    func becomeIdle(now: LoopInstant) -> Bool {
        guard machine.becomeIdle() else { return false }
        idleSince = now
        if !isFresh { tellLater() }
        return true
    }

    func close() {
        machine.close()
        timer.disarm()
        link?.close()
        link = nil
    }

    // MARK: LinkClient

    func linkOpened(_ isEstablished: Bool) {
        guard machine.isConnecting else { return }
        if isEstablished {
            if transfer.meetsEndedSession() {
                _ = machine.end(isKept: !transfer.isUpgrade)
                transfer.end(.abortedByCallback, isUnannounced: false)
            }
            if machine.connected() == .send { sendHead() }
        } else {
            finish(.couldNotConnect)
        }
        driver.wake()
    }

    func linkReceived(_ bytes: [UInt8]) {
        input.append(bytes)
        if machine.isIdle { tellLater() } else { arrived() }
    }

    func linkEnded(isReset: Bool) {
        hasEnded = true
        wasReset = isReset
        if machine.isIdle {
            tellLater()
        } else if isReset, machine.isRunning {
            finish(.receiveError)
        } else {
            arrived()
        }
        driver.wake()
    }

    /// Lets the loop learn later, in its turn, of bytes at the socket of an idle connection.
    private func tellLater() { source.simulation.agenda.add { [weak self] in self?.arrived() } }

    private func arrived() {
        switch machine.ready() {
        case .advance: advance()
        case .close:
            source.idle.remove(self)
            close()
        case .nothing: break
        }
    }

    // MARK: As the product's stream does

    private func sendHead() {
        hasSent = true
        link?.sentAt = source.simulation.steps
        if machine.awaitsContinue { timer.arm(at: loop.now + .seconds(1)) }
        link?.send(head)
        sendBody()
        settle()
    }

    private func sendBody() {
        while let link, link.backlog < Self.window {
            var piece = ByteQueue()
            let (limit, isChunked): (Int, Bool)
            switch machine.bodyToSend(of: transfer) {
            case .nothing: return
            case .piece(let most): (limit, isChunked) = (min(most, 8_192), false)
            case .chunk(let most): (limit, isChunked) = (min(most, 8_192), true)
            }
            var supply = BodySupply.pause
            unsafe piece.withUnsafeFreeSpace(minimum: limit) { space in
                supply = unsafe transfer.supplyBody(
                    into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(limit)))
                if case .bytes(let count) = supply { return count }
                return 0
            }
            if isChunked, supply != .pause, supply != .abort {
                var framed = ByteQueue()
                chunks.frame(piece, supply, to: &framed)
                swap(&piece, &framed)
            }
            link.send(piece.withSpan { $0.array })
            if supply == .abort { return finish(.abortedByCallback) }
            if supply == .pause { return }
        }
    }

    private func advance() {
        guard machine.isRunning else { return }
        receive()
        sendBody()
        settle()
    }

    private func receive() {
        while machine.isRunning {
            switch input.withSpan({ machine.read($0, into: transfer) }) {
            case .wait:
                if hasEnded { wasReset ? finish(.receiveError) : endInput() }
                return
            case .takeInterim(let length, let endsWait):
                input.consume(length)
                if endsWait { timer.disarm() }
            case .takeHead(let length, _, _), .takeBody(let length): input.consume(length)
            case .stop: return
            case .refuse: return finish(.writeError)
            }
        }
    }

    private func endInput() {
        switch machine.inputEnded() {
        case .finish: finish(nil)
        case .failWithinHead: finish(.weirdServerReply)
        case .failUnheard: finish(.gotNothing)
        }
    }

    private func settle() {
        switch machine.settle(isSent: transfer.upload.isComplete) {
        case .proceed, .switchProtocol: break
        case .finish: finish(nil)
        }
        driver.wake()
    }

    private func finish(_ error: CurlError?) {
        timer.disarm()
        let isKept = error == nil && transfer.allowsAnotherRequest && input.isEmpty && !transfer.isUpgrade
        if machine.end(isKept: isKept) == .close {
            link?.close()
        }
        transfer.end(error, isUnannounced: false)
    }

    /// Called when the server has read some of the bytes sent.
    func linkTookBytes() {
        guard machine.isRunning, machine.bodyToSend(of: transfer) != .nothing else { return }
        resumeSending()
    }
}
