// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import HTTPWire

@testable import ChallengeClient

/// Carries out a machine's decisions as `HTTP1Stream` does, without a socket, and records its owner's events.
final class ScriptedClient: UpstreamStream {
    /// Outcome of a request.
    struct Outcome: Equatable {
        var interims: [Int] = []
        /// Status of the final head, or 0 without one.
        var status = 0
        var body = ""
        var trailers: [String] = []
        /// Bytes that arrived and were not read.
        var unread = ""
        var fault: WireErrorCode?
        var setback: Transfer.Setback?
        var end = End.open
    }

    enum End: Equatable {
        case open, kept, closed, switched
        case failed(CurlError)
    }

    let transfer: Transfer
    /// The request's body as it comes from the caller, and a `nil` at its end.
    var supply: [String?] = []
    /// The trailer fields after it.
    var trailers: [String] = []
    /// Bytes sent so far.
    private(set) var sent = ""
    private(set) var outcome = Outcome()
    private(set) var machine = HTTP1ClientMachine(trapsMisuse: false)
    private let loop: EventLoop
    private let driver: CurlDriver
    private var input = ByteQueue()
    private var chunks = ChunkedBody()

    init() throws {
        loop = try EventLoop()
        driver = try CurlDriver(loop: loop, connections: 1)
        transfer = Transfer(driver: driver)
        transfer.stream = self
    }

    deinit {
        // A transfer with undelivered events and the driver retain each other.
        transfer.owner = nil
        driver.wake()
        _ = driver.beforeWait(now: loop.now)
    }

    // MARK: Steps of a request

    /// Begins a request. `connects`: a new connection is established at once.
    func begin(_ request: ExchangeRequest, connects: Bool = true) {
        outcome = Outcome()
        transfer.owner = Owner(self)
        transfer.isUpgrade = request.isUpgrade
        transfer.begin(request)
        transfer.mayMeetIdleTimeout = machine.isIdle && request.canResend
        let awaitsContinue = request.expectsContinue && request.hasBody
        if machine.begin(request.framing, awaitsContinue: awaitsContinue) == .send {
            sendHead()
        } else if connects, machine.connected() == .send {
            sendHead()
        }
    }

    func receive(_ bytes: some Collection<UInt8>) {
        for byte in bytes { input.append(byte) }
        advance()
        tell()
    }

    /// Closes the upstream's side, if the request is still in progress.
    func endInput() {
        guard machine.isRunning else { return }
        switch machine.inputEnded() {
        case .finish: finish(nil)
        case .failWithinHead: finish(.weirdServerReply)
        case .failUnheard: finish(.gotNothing)
        }
        tell()
    }

    /// Ends the wait for 100.
    func endWait() {
        if machine.endWait() { resumeSending() }
        tell()
    }

    /// Ends the turn of the loop.
    func endTurn() {
        if machine.isHeld { resumeSending() }
        tell()
    }

    /// Releases the request, and returns whether the connection stays open for another one.
    func rest() -> Bool {
        transfer.owner = nil
        transfer.reset()
        return machine.becomeIdle()
    }

    /// Changes the machine alone, without carrying anything out.
    func change(_ body: (inout HTTP1ClientMachine) -> Void) { body(&machine) }

    private func advance() {
        guard machine.isRunning else { return }
        send()
        feed()
        send()
        settle()
    }

    private func sendHead() {
        sent += "(head)"
        fill()
        if transfer.awaitsBody { machine.holdHead() } else { send() }
        tell()
    }

    private func send() {
        _ = machine.endHold()
        while machine.bodyToSend(of: transfer) != .nothing { fill() }
    }

    private func fill() {
        var supply = BodySupply.pause
        var piece = ByteQueue()
        let action = machine.bodyToSend(of: transfer)
        switch action {
        case .nothing: return
        case .piece(let limit), .chunk(let limit):
            unsafe piece.withUnsafeFreeSpace(minimum: limit) { space in
                supply = unsafe transfer.supplyBody(
                    into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(limit)))
                if case .bytes(let count) = supply { return count }
                return 0
            }
        }
        var output = ByteQueue()
        if case .chunk = action { chunks.frame(piece, supply, to: &output) } else { swap(&output, &piece) }
        sent += output.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        if supply == .abort { finish(.abortedByCallback) }
    }

    private func feed() {
        while machine.isRunning {
            switch input.withSpan({ machine.read($0, into: transfer) }) {
            case .wait, .stop: return
            case .takeInterim(let length, _), .takeHead(let length, _, _), .takeBody(let length):
                input.consume(length)
            case .refuse: finish(.writeError)
            }
        }
    }

    private func settle() {
        switch machine.settle(isSent: transfer.upload.isComplete) {
        case .proceed: break
        case .finish: finish(nil)
        case .switchProtocol: outcome.end = .switched
        }
        outcome.unread = input.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
    }

    private func finish(_ error: CurlError?) {
        let isKept = error == nil && transfer.allowsAnotherRequest && input.isEmpty && !transfer.isUpgrade
        outcome.end = machine.end(isKept: isKept) == .keep ? .kept : .closed
        transfer.end(error, isUnannounced: false)
    }

    /// Ends the turn of the loop, in which the owner gets its events.
    private func tell() {
        driver.wake()
        while driver.beforeWait(now: loop.now).didWork { driver.wake(); if !transfer.isEnqueued { return } }
    }

    // MARK: UpstreamStream

    var hasWaited: Bool { machine.hasWaited }
    var hasSent: Bool { true }
    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {}
    func resumeReceiving() { advance() }
    func resumeSending() {
        guard machine.isRunning else { return }
        send()
        settle()
    }
    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        guard chunks.append(name: name, value: value) else { throw .badFunctionArgument }
    }
    func failure(_ error: CurlError) -> TransferFailure { TransferFailure(error) }
    func release() {}

    /// Owner of the transfer. The transfer retains it, so it must not be the object that retains the transfer.
    private final class Owner: TransferOwner {
        private unowned let client: ScriptedClient

        init(_ client: ScriptedClient) { self.client = client }

        func transferHasInterims(_ transfer: Transfer) {
            transfer.takeInterims { head, _ in client.outcome.interims.append(head.status) }
        }

        func transferHasHead(_ transfer: Transfer) { client.outcome.status = transfer.answer.status }

        func transferHasBody(_ transfer: Transfer) {
            client.outcome.body += transfer.body.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
            transfer.body.removeAll()
        }

        func transferHasAll(_ transfer: Transfer) {}
        func transferTookBody(_ transfer: Transfer) {}

        func transferEnded(_ transfer: Transfer, error: CurlError?) {
            transfer.forEachTrailer { name, value in
                client.outcome.trailers.append("\(name.copied): \(value.copied)")
            }
            client.outcome.fault = transfer.fault?.code
            client.outcome.setback = transfer.setback
            if let error { client.outcome.end = .failed(error) }
        }

        func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
            guard !client.supply.isEmpty else { return .pause }
            guard let piece = client.supply.removeFirst() else {
                for name in client.trailers {
                    try? client.appendTrailer(name: name.utf8.span, value: "t".utf8.span)
                }
                return .end
            }
            unsafe buffer.copyBytes(from: piece.utf8)
            return .bytes(piece.utf8.count)
        }

        func mayResend() -> Bool { false }
    }
}

extension Span<UInt8> {
    fileprivate var copied: String { text(ByteRange(start: 0, end: count)) }
}
