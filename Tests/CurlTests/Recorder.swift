// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop

/// A delegate that keeps all that comes and does what the test scripts.
final class Recorder: TransferDelegate {
    var onHeader: (Outcome) -> Bool = { _ in true }
    /// Gets the piece's size.
    var onBody: (Int) -> BodyDisposition = { _ in .consumed }
    /// Gets the room that there is; the bytes promised are made of `y`.
    var onNeed: (Int) -> BodySupply = { _ in .end }
    var onRewind: (Int64) -> Bool = { _ in false }
    var onSend: (Int) -> Bool = { _ in true }
    var onEnd: (Outcome) -> Void = { _ in }
    private(set) var outcome = Outcome()

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool {
        outcome.head += unsafe String(decoding: headerLine, as: UTF8.self)
        return onHeader(outcome)
    }

    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition {
        let disposition = onBody(body.count)
        if case .consumed = disposition { unsafe outcome.body.append(contentsOf: body) }
        return disposition
    }

    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        let supply = onNeed(buffer.count)
        if case .bytes(let count) = supply {
            for index in 0..<min(count, buffer.count) { unsafe buffer[index] = UInt8(ascii: "y") }
        }
        return supply
    }

    func transferRewinds(to offset: Int64) -> Bool { onRewind(offset) }

    func transferWillSend(attempt: Int) -> Bool {
        outcome.attempts.append(attempt)
        return onSend(attempt)
    }

    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        outcome.error = error
        outcome.status = handle.responseCode
        outcome.connections = handle.connectionCount
        outcome.text = handle.errorText
        onEnd(outcome)
    }
}

/// Fires once, at a moment that a test chose.
final class Alarm: TimerHandler {
    private let action: () -> Void

    init(_ loop: EventLoop, after delay: Duration, _ action: @escaping () -> Void) {
        self.action = action
        _ = loop.schedule(at: loop.now + delay, self)
    }

    func timerFired(tag: UInt64) { action() }
}
