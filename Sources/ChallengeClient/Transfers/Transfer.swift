// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
package import HTTPWire

/// One libcurl run: request out, response in. Reused for many requests to one upstream.
///
/// libcurl's callbacks (`Transfer+Receiving`) only collect, head and body, up to a window; `CurlDriver` tells the owner
/// afterwards. Whether an answer is well-formed and whole is decided here and not by libcurl, which is lenient.
package final class Transfer {
    /// Body bytes collected before libcurl is told to pause: the back-pressure towards the upstream.
    static let window = 64 * 1024
    /// The largest response head.
    static let headLimit = 64 * 1024

    /// The handle.
    package let easy: EasyHandle
    /// The request's fields, in memory that libcurl reads while the transfer runs.
    package let fields = HeaderList()
    /// The final response head, raw lines as they came.
    package internal(set) var head = ByteQueue()
    /// Response body not yet taken by the owner, without its framing.
    package var body = ByteQueue()
    /// What it works for; `nil` while it is idle. Strong, as a weak reference costs every use of its object.
    package var owner: (any TransferOwner)?
    /// The rule that the answer broke, where that is why the transfer failed.
    package internal(set) var fault: WireError?

    /// Method and framing as the handle has them set.
    var shape = TransferShape()
    /// Whether the request is HEAD, whose answer has no body.
    var isHeadRequest = false
    /// Whether the connection may turn out to be one of HTTP/2.
    let mayBeHTTP2: Bool
    var scanner = ResponseHeadScanner()
    var answerBody = AnswerBody()

    let driver: CurlDriver
    var isHeadComplete = false
    private var isHeadTold = false
    private var isWholeTold = false
    private var isEnded = false
    var isPaused = false
    var awaitsBody = false
    var tookBody = false
    private var error: CurlError?
    /// Whether the driver has it on its list of those with news.
    var hasNews = false

    /// A transfer with a handle of its own; throws when libcurl is out of memory. `mayBeHTTP2`: whether the handle will be
    /// allowed to speak HTTP/2.
    package init(driver: CurlDriver, mayBeHTTP2: Bool) throws(CurlError) {
        easy = try EasyHandle()
        self.driver = driver
        self.mayBeHTTP2 = mayBeHTTP2
        try easy.set(.httpHeader, fields)
        try easy.set(.httpTransferDecoding, false)
    }

    /// What the final head says, once it is told.
    package var answer: ResponseHead { scanner.head }

    /// Makes ready for another run.
    package func reset() {
        head.removeAll(keepingCapacity: 16_384)
        body.removeAll(keepingCapacity: 16_384)
        fault = nil
        isHeadComplete = false
        isHeadTold = false
        isWholeTold = false
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
        guard body.isEmpty else { return }
        if isEnded {
            owner.transferEnded(self, error: error)
        } else if isHeadTold, answerBody.isWhole, !isWholeTold {
            isWholeTold = true
            owner.transferHasAll(self)
        }
    }

    /// The owner has body for it again.
    package func bodyAvailable() {
        // To libcurl a transfer that has ended cannot go on, and its answer may not all have been taken yet.
        guard awaitsBody, !isEnded else { return }
        awaitsBody = false
        driver.unpause(self)
    }

    /// Whether its sending is paused while only the end of the connection can end the answer.
    var mayMissEnd: Bool { awaitsBody && !isEnded && isHeadComplete && answerBody.isUntilEnd }

    /// Notes the end; the owner is told in the loop's turn.
    package func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        isEnded = true
        if isHeadComplete, answerBody.isWhole {
            // Whatever became of the rest of the request, or came behind the answer.
            self.error = nil
        } else if let error {
            self.error = error
        } else if isHeadComplete, !answerBody.isUntilEnd {
            self.error = .partialFile
        }
        driver.note(self)
    }
}
