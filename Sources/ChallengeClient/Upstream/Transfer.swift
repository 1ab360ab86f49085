// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
package import HTTPWire

/// One request to an upstream and its answer, as far as they have gone: what every `UpstreamStream` notes, and tells the owner.
///
/// The stream only notes, head and body, up to a window; `CurlDriver` has the owner told afterwards. Whether an answer is
/// well-formed and whole is decided here and not by libcurl, which is lenient.
package final class Transfer {
    /// Body bytes collected before the stream is told to pause: the back-pressure towards the upstream.
    static let window = 64 * 1024
    /// The most body that is ever collected: a window less a byte, and the longest piece that a stream hands over.
    package static let bodyCapacity = window + 16 * 1024
    /// The largest response head.
    static let headLimit = 64 * 1024

    /// A head that has come whole.
    enum HeadKind {
        case interim
        case final
        /// It breaks a rule, or its answer is not wanted.
        case refused
    }

    /// The reason for which the request was not taken in the way that it was sent, so that it may be sent in another.
    enum Setback {
        /// The upstream will not say 100 (RFC 9110 §15.5.18).
        case expectation
        /// The upstream had given up waiting on the connection, and said so in place of an answer (RFC 9110 §15.5.9).
        case idleTimeout
        /// The upstream answered what libcurl sends ahead of a body to authenticate the connection, and asked for nothing. The request
        /// itself was not sent.
        case unboundConnection
    }

    /// The final response head, raw lines as they came.
    package internal(set) var head = ByteQueue()
    /// Response body not yet taken by the owner, without its framing.
    package var body = ByteQueue()
    /// What it works for; `nil` while it is idle. Strong, as a weak reference costs every use of its object.
    package var owner: (any TransferOwner)?
    /// The rule that the answer broke, where that is why the transfer failed.
    package internal(set) var fault: WireError?
    /// Whoever feeds it, and holds it; used only while it has an owner, who holds both.
    unowned var stream: (any UpstreamStream)?
    let driver: CurlDriver

    /// True if its request asks for another protocol, so that a 101 is an answer to it.
    var isUpgrade = false
    /// True if the request is HEAD, whose answer has no body.
    var isHeadRequest = false
    /// True if a 408 that ends the connection may be about its rest, and the request may go again.
    var mayMeetIdleTimeout = false
    /// What of the request's body is still to be sent.
    var upload = Upload()
    /// The reason to send the request in another way, where that is why the transfer failed.
    var setback: Setback?
    private(set) var isHeadComplete = false
    private(set) var isEnded = false
    /// True if the stream was told to wait until there is room for more of the body.
    private(set) var isPaused = false
    /// True if the stream waits for more of the request's body.
    private(set) var awaitsBody = false
    /// True if the driver has it on its list of those with news.
    var hasNews = false
    /// Heads of interim responses that were not told yet.
    private var interims = InterimHeads()
    private var scanner = ResponseHeadScanner()
    private var answerBody = AnswerBody()
    private var isHeadTold = false
    private var isWholeTold = false
    private var tookBody = false
    private var error: CurlError?

    init(driver: CurlDriver) { self.driver = driver }

    // MARK: What has come

    /// What the final head says, once it is told.
    package var answer: ResponseHead { scanner.head }
    /// True if all of the answer is here.
    var isAnswered: Bool { isHeadComplete && answerBody.isWhole }
    /// True if no more of the answer will come.
    var isAtEnd: Bool { isEnded || answerBody.isWhole }
    /// True if only the end of the connection, or of the stream, ends the answer.
    var isUntilEnd: Bool { answerBody.isUntilEnd }
    /// The major version of HTTP that the upstream answered in, if it has answered.
    var spokenVersion: Int? { isHeadComplete ? answer.majorVersion : nil }
    /// True if the connection can take another request after this one (RFC 9112 §9.3), as far as the two heads say.
    var allowsAnotherRequest: Bool {
        upload.isComplete && !answer.closes && answer.majorVersion == 1 && answer.minorVersion > 0
    }

    /// True if trailer fields came with the answer that may go further (RFC 9110 §6.5).
    package var hasTrailers: Bool { !answerBody.trailers.isEmpty }

    /// Calls `body` with name and value of each of them. Those are left out that `Connection` names.
    package func forEachTrailer(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        head.withSpan { bytes in
            answerBody.trailers.forEach { name, value in
                if !scanner.head.nominates(trailer: name, in: bytes) { body(name, value) }
            }
        }
    }

    /// Hands out the interim responses that have come, each with the bytes that its ranges mean.
    package func takeInterims(_ body: (_ head: ResponseHead, _ bytes: Span<UInt8>) -> Void) { interims.take(body) }

    // MARK: Told by the stream

    /// A request begins.
    func begin(_ request: ExchangeRequest) {
        isHeadRequest = request.method == .head
        upload = Upload(request)
    }

    /// Judges `head`, which is whole, interim (RFC 9110 §15.2) or final.
    func scanHead() -> HeadKind {
        do throws(WireError) {
            try head.withSpan { (bytes) throws(WireError) in try scanner.scan(bytes) }
        } catch {
            return refuse(error.code)
        }
        if scanner.head.isInterim {
            if scanner.head.status == 100 { upload.wasContinued = true }
            let isTaken = head.withSpan { interims.append($0) }
            head.removeAll()
            driver.note(self)
            return isTaken ? .interim : refuse(.interimsTooMany)
        }
        // Unless the request asked for another protocol, nobody did (RFC 9110 §15.2.2).
        guard scanner.head.status >= 200 || isUpgrade else { return refuse(.switchUnasked) }
        // Not by an upstream that has said 100 before: with that it has met the expectation.
        if scanner.head.status == 417, upload.awaitsContinue, !upload.wasContinued, !upload.isComplete {
            // libcurl would send the request again by itself, as another one on this handle.
            setback = .expectation
            return .refused
        }
        if scanner.head.status == 408, scanner.head.closes, mayMeetIdleTimeout {
            setback = .idleTimeout
            return .refused
        }
        return .final
    }

    /// The final head is the answer's; its body follows.
    func beginBody() {
        answerBody.begin(behind: scanner.head, isBodyless: isHeadRequest)
        isHeadComplete = true
        driver.note(self)
    }

    /// Collects a piece of the body, or has the stream wait where a window is full.
    func take(body data: UnsafeRawBufferPointer) -> BodyDisposition {
        guard body.count < Self.window else {
            isPaused = true
            return .pause
        }
        driver.note(self)
        // At once for all that a window can hold: growing by doubling would move it, and end at more than it needs.
        if data.count > body.capacity - body.count {
            body.reserve(body.isEmpty ? data.count : Self.bodyCapacity - body.count)
        }
        let bytes = unsafe Span<UInt8>(_unsafeElements: data.assumingMemoryBound(to: UInt8.self))
        switch answerBody.take(bytes, into: &body) {
        case .taken: return .consumed
        case .beyondEnd:
            // The answer is whole; its connection ends here, as what came behind it belongs to no request.
            return .abort
        case .broken(let code):
            _ = refuse(code)
            return .abort
        }
    }

    /// A line of the trailer section over HTTP/2 (RFC 9113 §8.1). False where it is none.
    func take(trailer line: Span<UInt8>) -> Bool {
        do throws(WireError) {
            try answerBody.trailers.append(line: line)
            return true
        } catch {
            _ = refuse(error.code)
            return false
        }
    }

    /// Notes the rule that the answer breaks.
    func refuse(_ code: WireErrorCode) -> HeadKind {
        fault = WireError(upstream: code)
        return .refused
    }

    /// Asks the owner for the request's body.
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        guard let owner else { return .abort }
        let supply = unsafe owner.supplyBody(into: buffer)
        upload.note(supply)
        awaitsBody = supply == .pause
        tookBody = true
        driver.note(self)
        return supply
    }

    /// Notes the end; the owner is told in the loop's turn. `isUnannounced`: TLS ended without the server's word.
    func end(_ error: CurlError?, isUnannounced: @autoclosure () -> Bool) {
        isEnded = true
        if isAnswered {
            // Whatever became of the rest of the request, or came behind the answer.
            self.error = nil
        } else if let error {
            // libcurl has no words of its own for a line that it cannot store.
            let isUnstorable = error == .badFunctionArgument || error == .outOfMemory || error == .tooLarge
            self.error = isUnstorable ? .weirdServerReply : error
        } else if isHeadComplete, !answerBody.isUntilEnd || isUnannounced() {
            self.error = .partialFile
        }
        driver.note(self)
    }

    // MARK: Telling the owner

    /// Tells the owner what there is to tell.
    package func tellNews() {
        guard let owner, let stream else { return }
        stream.willTell()
        if tookBody {
            tookBody = false
            owner.transferTookBody(self)
        }
        guard self.owner === owner else { return }
        if !interims.isEmpty { owner.transferHasInterims(self) }
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
            stream.resumeReceiving()
        } else {
            stream.hasTold()
        }
        guard body.isEmpty else { return }
        if isEnded {
            owner.transferEnded(self, error: error)
        } else if isHeadTold, answerBody.isWhole, !isWholeTold {
            isWholeTold = true
            owner.transferHasAll(self)
        }
    }

    /// Tells the owner again what it did not take while it held the answer back.
    func tellNewsAgain() {
        isWholeTold = false
        bodyAvailable()
        tellNews()
    }

    /// The owner has body for it again.
    package func bodyAvailable() {
        // To libcurl a transfer that has ended cannot go on, and its answer may not all have been taken yet.
        guard awaitsBody, !isEnded else { return }
        awaitsBody = false
        stream?.resumeSending()
    }

    /// Makes ready for another request.
    package func reset() {
        head.removeAll(keepingCapacity: 16_384)
        body.removeAll(keepingCapacity: 16_384)
        interims.removeAll()
        fault = nil
        setback = nil
        isHeadComplete = false
        isHeadTold = false
        isWholeTold = false
        isEnded = false
        isPaused = false
        awaitsBody = false
        tookBody = false
        error = nil
    }
}

extension Transfer {
    /// Counts the request's body as the stream takes it.
    struct Upload {
        /// Bytes still to come; `nil`: chunks until the end.
        private var left: UInt64? = 0
        /// True if 100 is waited for, which a 417 would refuse.
        private(set) var awaitsContinue = false
        /// True if the stream has taken any of it.
        private(set) var hasBegun = false
        /// True if 100 has come.
        var wasContinued = false

        init() {}

        init(_ request: ExchangeRequest) {
            switch request.framing {
            case .none: break
            case .length(let length): left = length
            case .chunked: left = nil
            }
            awaitsContinue = request.expectsContinue && request.hasBody
        }

        /// True if all of it was taken.
        var isComplete: Bool { left == 0 }

        /// How many bytes of it are taken next, `limit` at most.
        func next(upTo limit: Int) -> Int { left.map { Int(min($0, UInt64(limit))) } ?? limit }

        mutating func note(_ supply: BodySupply) {
            if supply != .pause { hasBegun = true }
            switch supply {
            case .bytes(let count): left = left.map { $0 - min($0, UInt64(clamping: count)) }
            case .end: left = 0
            case .abort, .pause: break
            }
        }
    }
}
