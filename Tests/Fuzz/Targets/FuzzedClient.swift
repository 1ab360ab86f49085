// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import HTTPWire

@testable import ChallengeClient

/// The driver of an upstream connection's machine: it carries out the machine's decisions and records what the owner of
/// the transfer is notified of.
final class FuzzedClient: UpstreamStream, TransferOwner {
    /// The request.
    enum Kind: CaseIterable {
        case get, head, upgrade
        /// A GET on a connection that has carried another request.
        case again
        /// One with a body that is here, in chunks or not; one whose body does not come; and one whose body waits for 100.
        case length, chunked, silent, expecting
    }

    enum End { case open, kept, closed, switched, failed }

    struct Facts: Equatable {
        var interims: [Int] = []
        var status = 0
        var head: [UInt8] = []
        var body: [UInt8] = []
        var trailers: [UInt8] = []
        var end = End.open
    }

    let transfer: Transfer
    private(set) var facts = Facts()
    private let request: ExchangeRequest
    private let loop: EventLoop
    private let driver: CurlDriver
    private var machine = HTTP1ClientMachine(trapsMisuse: false)
    private var input = ByteQueue()
    private var supply: [[UInt8]] = []

    init(_ kind: Kind, _ loop: EventLoop, _ driver: CurlDriver) {
        self.loop = loop
        self.driver = driver
        transfer = Transfer(driver: driver)
        request =
            switch kind {
            case .get, .again: ExchangeRequest(method: .get, framing: .none)
            case .head: ExchangeRequest(method: .head, framing: .none)
            case .upgrade: ExchangeRequest(method: .get, framing: .none, isUpgrade: true)
            case .length, .silent: ExchangeRequest(method: .post, framing: .length(3))
            case .chunked: ExchangeRequest(method: .post, framing: .chunked)
            case .expecting: ExchangeRequest(method: .post, framing: .length(3), expectsContinue: true)
            }
        transfer.stream = self
        transfer.isUpgrade = request.isUpgrade
        if kind == .again {
            begin()
            for byte in "HTTP/1.1 204 None\r\n\r\n".utf8 { input.append(byte) }
            advance()
            tell()
            rest()
            facts = Facts()
        }
        if kind != .silent { supply = [Array("abc".utf8)] }
        begin()
    }

    /// Bytes that were left.
    var unread: Int { input.count }
    /// True if all of the request has gone.
    var isSent: Bool { transfer.upload.isComplete }

    func receive(_ bytes: Span<UInt8>, arrivals: [Int]) throws(Violation) {
        var start = 0
        for end in arrivals {
            input.append(bytes.extracting(start..<end))
            start = end
            arrive()
        }
        if machine.isRunning { endInput() }
        tell()
        try require(machine.misuses == 0, "an event came that the machine does not allow")
        transfer.owner = nil
    }

    /// Receives with any other event between two pieces, be it allowed or not.
    func receive(_ bytes: Span<UInt8>, arrivals: [Int], disturbedBy dice: inout Dice) throws(Violation) {
        var start = 0
        for end in arrivals {
            input.append(bytes.extracting(start..<end))
            start = end
            arrive()
            for _ in 0..<dice.below(4) { happen(dice.below(16), dice.flip()) }
            tell()
        }
        transfer.owner = nil
    }

    // MARK: As a stream does

    private func begin() {
        transfer.owner = self
        transfer.begin(request)
        transfer.mayMeetIdleTimeout = machine.isIdle && request.canResend
        let awaitsContinue = request.expectsContinue && request.hasBody
        if machine.begin(request.framing, awaitsContinue: awaitsContinue) == .connect { _ = machine.connected() }
        send()
    }

    private func arrive() {
        if machine.isRunning {
            advance()
        } else if machine.ready() == .close, !input.isEmpty {
            machine.close()
            facts.end = .closed
        }
        tell()
    }

    private func advance() {
        feed()
        send()
        settle()
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

    private func send() {
        while case .piece(let limit) = machine.bodyToSend(of: transfer).unchunked {
            unsafe withUnsafeTemporaryAllocation(byteCount: limit, alignment: 1) { space in
                _ = unsafe transfer.supplyBody(into: space)
            }
        }
    }

    private func settle() {
        switch machine.settle(isSent: transfer.upload.isComplete) {
        case .proceed: break
        case .finish: finish(nil)
        case .switchProtocol: facts.end = .switched
        }
    }

    private func endInput() {
        switch machine.inputEnded() {
        case .finish: finish(nil)
        case .failWithinHead: finish(.weirdServerReply)
        case .failUnheard: finish(.gotNothing)
        }
    }

    private func finish(_ error: CurlError?) {
        let isKept = error == nil && transfer.allowsAnotherRequest && input.isEmpty && !transfer.isUpgrade
        facts.end = machine.end(isKept: isKept) == .keep ? .kept : .closed
        transfer.end(error, isUnannounced: false)
    }

    private func rest() {
        guard machine.becomeIdle() else { return }
        transfer.owner = nil
        transfer.reset()
    }

    private func tell() {
        for _ in 0..<4 {
            driver.wake()
            _ = driver.beforeWait(now: loop.now)
        }
    }

    private func happen(_ event: Int, _ flag: Bool) {
        switch event {
        case 0: _ = machine.connected()
        case 1: machine.holdHead()
        case 2: _ = machine.endHold()
        case 3: _ = machine.endWait()
        case 4: _ = machine.inputEnded()
        case 5: _ = machine.settle(isSent: flag)
        case 6: _ = machine.end(isKept: flag)
        case 7: rest()
        case 8: begin()
        case 9: machine.close()
        case 10: transfer.bodyAvailable()
        case 11: supply.append([1, 2, 3])
        case 12: if machine.isRunning { endInput() }
        case 13: if machine.isRunning { finish(flag ? nil : .sendError) }
        case 14: _ = machine.interest(isPaused: flag, hasOutput: !flag)
        default: input.append(UInt8(ascii: "\n"))
        }
    }

    // MARK: UpstreamStream

    var hasWaited: Bool { machine.hasWaited }
    var hasSent: Bool { true }
    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {}
    func resumeReceiving() { if machine.isRunning { advance() } }
    func resumeSending() {
        send()
        settle()
    }
    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {}
    func failure(_ error: CurlError) -> TransferFailure { TransferFailure(error) }
    func release() {}

    // MARK: TransferOwner

    func transferHasInterims(_ transfer: Transfer) {
        transfer.takeInterims { head, _ in facts.interims.append(head.status) }
    }
    func transferHasHead(_ transfer: Transfer) {
        facts.status = transfer.answer.status
        facts.head = transfer.head.copy()
    }
    func transferHasBody(_ transfer: Transfer) {
        facts.body += transfer.body.copy()
        transfer.body.removeAll()
    }
    func transferHasAll(_ transfer: Transfer) {}
    func transferTookBody(_ transfer: Transfer) {}
    func transferEnded(_ transfer: Transfer, error: CurlError?) {
        transfer.forEachTrailer { name, value in facts.trailers += name.array + [58] + value.array + [10] }
        if error != nil { facts.end = .failed }
    }
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        guard let piece = supply.popLast() else { return request.framing == .chunked ? .end : .pause }
        let count = min(piece.count, buffer.count)
        unsafe buffer.copyBytes(from: piece.prefix(count))
        return .bytes(count)
    }
    func mayResend() -> Bool { false }
}

extension HTTP1ClientMachine.SendAction {
    /// The same, without chunks.
    fileprivate var unchunked: Self { if case .chunk(let limit) = self { .piece(upTo: limit) } else { self } }
}
