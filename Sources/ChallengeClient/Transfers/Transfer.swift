// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
package import HTTPWire

/// What a transfer works for: an exchange, or a side request. Called on the loop's thread, never from within libcurl,
/// except for `supplyBody` and `mayResend`, which libcurl asks for in the middle of its own work.
package protocol TransferOwner: AnyObject {
    /// The final head is complete; `transfer.head` holds it.
    func transferHasHead(_ transfer: Transfer)
    /// `transfer.body` holds something. What is left in it counts against the transfer's window.
    func transferHasBody(_ transfer: Transfer)
    /// libcurl has taken some of the request's body, so that there may be room for more.
    func transferTookBody(_ transfer: Transfer)
    /// It is over, and everything that came of it has been told before. `nil`: a complete answer.
    func transferEnded(_ transfer: Transfer, error: CurlError?)
    /// The request's body, as much as fits.
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply
    /// libcurl found a reused connection dead before any byte of an answer and asks to send the request on another.
    func mayResend() -> Bool
}

/// One libcurl run: request out, response in. Reused for many requests to one upstream.
///
/// libcurl's callbacks only collect, head and body, up to a window; `CurlDriver` tells the owner afterwards.
package final class Transfer: TransferDelegate {
    /// Body bytes collected before libcurl is told to pause: the back-pressure towards the upstream.
    static let window = 64 * 1024
    /// The largest response head.
    static let headLimit = 64 * 1024

    /// The handle.
    package let easy: EasyHandle
    /// The request's fields, in memory that libcurl reads while the transfer runs.
    package let fields = HeaderList()
    /// The final response head, raw lines as they came; also the trailer section after it, dropped for now.
    package var head = ByteQueue()
    /// Response body not yet taken by the owner.
    package var body = ByteQueue()
    /// What it works for; `nil` while it is idle. Strong, as a weak reference costs every use of its object.
    package var owner: (any TransferOwner)?

    /// Method and framing as the handle has them set.
    var shape = TransferShape()

    private unowned let driver: CurlDriver
    private var isHeadComplete = false
    private var isHeadTold = false
    private var isEnded = false
    private var isPaused = false
    private var awaitsBody = false
    private var tookBody = false
    private var error: CurlError?
    /// Whether the driver has it on its list of those with news.
    var hasNews = false

    /// A transfer with a handle of its own; throws when libcurl is out of memory.
    package init(driver: CurlDriver) throws(CurlError) {
        easy = try EasyHandle()
        self.driver = driver
        try easy.set(.httpHeader, fields)
    }

    /// Makes ready for another run.
    package func reset() {
        head.removeAll(keepingCapacity: 16_384)
        body.removeAll(keepingCapacity: 16_384)
        isHeadComplete = false
        isHeadTold = false
        isEnded = false
        isPaused = false
        awaitsBody = false
        tookBody = false
        error = nil
    }

    /// Tells the owner what there is to tell.
    package func tellNews() {
        guard let owner else { return }
        if tookBody {
            tookBody = false
            owner.transferTookBody(self)
        }
        guard self.owner === owner else { return }
        if isHeadComplete, !isHeadTold {
            isHeadTold = true
            owner.transferHasHead(self)
            // Behind a head of 300 or above libcurl sends nothing more, but it does not end while its sending is paused:
            // the caller may wait for this answer before it goes on.
            if self.owner === owner { bodyAvailable() }
        }
        // The owner may have let go of it by now.
        guard self.owner === owner else { return }
        if isHeadTold, !body.isEmpty { owner.transferHasBody(self) }
        guard self.owner === owner else { return }
        if isPaused, !isEnded, body.count < Self.window / 2 {
            isPaused = false
            driver.unpause(self)
        }
        if isEnded, body.isEmpty { owner.transferEnded(self, error: error) }
    }

    /// The owner has body for it again.
    package func bodyAvailable() {
        // To libcurl a transfer that has ended cannot go on, and its answer may not all have been taken yet.
        guard awaitsBody, !isEnded else { return }
        awaitsBody = false
        driver.unpause(self)
    }

    // MARK: Called by libcurl

    /// Collects the final head; an interim one (RFC 9110 §15.2) is dropped.
    package func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool {
        // After the head of a chunked answer: its trailer section (RFC 9112 §7.1.2).
        if isHeadComplete { return true }
        guard unsafe head.append(headerLine, upTo: Self.headLimit) else { return false }
        guard headerLine.count <= 2, unsafe headerLine.first == 0x0D || headerLine.first == 0x0A else {
            return true
        }
        if isInterim {
            head.removeAll()
        } else {
            isHeadComplete = true
            driver.note(self)
        }
        return true
    }

    /// Collects a piece of the body, or pauses libcurl where a window is full.
    package func transferReceived(body data: UnsafeRawBufferPointer) -> BodyDisposition {
        guard body.count < Self.window else {
            isPaused = true
            return .pause
        }
        unsafe body.append(data)
        driver.note(self)
        return .consumed
    }

    /// Asks the owner for the request's body.
    package func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        guard let owner else { return .abort }
        let supply = unsafe owner.supplyBody(into: buffer)
        awaitsBody = supply == .pause
        tookBody = true
        driver.note(self)
        return supply
    }

    /// Never: what is sent again is sent by the exchange, as a transfer of its own.
    package func transferRewinds(to offset: Int64) -> Bool { false }

    /// A second attempt on another connection is for the owner to allow.
    package func transferWillSend(attempt: Int) -> Bool {
        attempt <= 1 || owner?.mayResend() == true
    }

    /// Notes the end; the owner is told in the loop's turn.
    package func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        isEnded = true
        self.error = error
        driver.note(self)
    }

    /// Whether the head collected is that of an interim response (RFC 9110 §15.2): `HTTP/1.1 1xx`.
    private var isInterim: Bool {
        head.withSpan { line in
            guard let space = line.indices.first(where: { line[$0] == UInt8(ascii: " ") }) else { return false }
            return space + 1 < line.count && line[space + 1] == UInt8(ascii: "1")
        }
    }
}
