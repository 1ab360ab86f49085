// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
package import HTTPWire

/// One request to an upstream and its answer, recorded by an `UpstreamStream` for the owner.
///
/// The stream only records head and body, up to a window; `CurlDriver` notifies the owner afterwards. This type, not
/// the lenient libcurl, decides if an answer is well-formed and complete.
package final class Transfer {
    /// Body bytes collected before the stream must pause: the back-pressure towards the upstream.
    static let window = 64 * 1024
    /// The largest collected body: a window less a byte, and the longest piece that a stream passes on.
    package static let bodyCapacity = window + 16 * 1024
    /// The largest response head.
    static let headLimit = 64 * 1024

    /// The kind of a complete head.
    enum HeadKind {
        case interim
        case final
        /// Invalid, or of an answer that is not wanted.
        case refused
    }

    /// The reason why the upstream did not accept this form of the request; another may be sent.
    enum Setback {
        /// The upstream refuses to send 100 (RFC 9110 §15.5.18).
        case expectation
        /// The upstream sent a 408 about an idle connection in place of an answer (RFC 9110 §15.5.9).
        case idleTimeout
        /// The upstream sent no challenge to libcurl's first, bodiless request, which authenticates the connection. The
        /// request itself was not sent.
        case connectionUnchallenged
        /// A session of the request has ended while the connection was made. The request was not sent.
        case sessionEnded
    }

    /// The final response head, raw lines as received.
    package internal(set) var head = ByteQueue()
    /// Response body not yet consumed by the owner, without its framing.
    package var body = ByteQueue()
    /// The owner; `nil` while idle. Strong, as a weak reference costs at every use.
    package var owner: (any TransferOwner)?
    /// The reason if the transfer failed because of an invalid answer.
    package internal(set) var fault: WireError?
    /// The stream that feeds and retains this transfer; used only while there is an owner, which retains both.
    unowned var stream: (any UpstreamStream)?
    let driver: CurlDriver

    /// True if the request is for another protocol; a 101 may be the answer.
    var isUpgrade = false
    /// True if the request is HEAD, whose answer has no body.
    var isHeadRequest = false
    /// True if a 408 that ends the connection may be an idle timeout. The request may then be resent.
    var mayMeetIdleTimeout = false
    /// The unsent rest of the request's body.
    var upload = Upload()
    /// The reason if the transfer failed because the request should be sent in another form.
    var setback: Setback?
    private(set) var isHeadComplete = false
    private(set) var isEnded = false
    /// True if the stream must wait for room for more of the body.
    private(set) var isPaused = false
    /// True if the stream waits for more of the request's body.
    private(set) var awaitsBody = false
    /// True if the driver has enqueued this transfer for a notification.
    var isEnqueued = false
    /// Interim heads not passed to the owner yet.
    private var interims = InterimHeads()
    private var scanner = ResponseHeadScanner()
    private var answerBody = AnswerBody()
    private var isHeadTold = false
    private var isWholeTold = false
    private var tookBody = false
    private var error: CurlError?

    init(driver: CurlDriver) { self.driver = driver }

    // MARK: State of the answer

    /// The parsed final head, valid after the owner was notified of the head.
    package var answer: ResponseHead { scanner.head }
    /// True if the answer is complete.
    var isAnswered: Bool { isHeadComplete && answerBody.isWhole }
    /// True if no more of the answer will come.
    var isAtEnd: Bool { isEnded || answerBody.isWhole }
    /// True if only the end of the connection or stream ends the answer.
    var isUntilEnd: Bool { answerBody.isUntilEnd }
    /// The major version of HTTP in the answer, if there is one.
    var spokenVersion: Int? { isHeadComplete ? answer.majorVersion : nil }
    /// True if both heads allow another request on the connection (RFC 9112 §9.3).
    var allowsAnotherRequest: Bool {
        upload.isComplete && !answer.closes && answer.majorVersion == 1 && answer.minorVersion > 0
    }

    /// True if the answer came in place of 100, so that the request's body stays unread (RFC 9110 §10.1.1).
    package var leavesBody: Bool { upload.awaitsContinue && !upload.wasContinued && !upload.hasBegun }

    /// True if trailer fields came that may be forwarded (RFC 9110 §6.5).
    package var hasTrailers: Bool { !answerBody.trailers.isEmpty }

    /// Calls `body` with name and value of each trailer, except those that `Connection` names.
    package func forEachTrailer(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        head.withSpan { bytes in
            answerBody.trailers.forEach { name, value in
                if !scanner.head.nominates(trailer: name, in: bytes) { body(name, value) }
            }
        }
    }

    /// Passes the received interim responses to `body`, each with the bytes of its ranges.
    package func takeInterims(_ body: (_ head: ResponseHead, _ bytes: Span<UInt8>) -> Void) { interims.take(body) }

    // MARK: Events of the stream

    func begin(_ request: ExchangeRequest) {
        isHeadRequest = request.method == .head
        upload = Upload(request)
    }

    /// Validates a complete head, interim (RFC 9110 §15.2) or final.
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
            driver.enqueue(self)
            return isTaken ? .interim : refuse(.interimsTooMany)
        }
        // A 101 is invalid unless the request asked for another protocol (RFC 9110 §15.2.2).
        guard scanner.head.status >= 200 || isUpgrade else { return refuse(.switchUnasked) }
        // An upstream that has sent 100 before has met the expectation.
        if scanner.head.status == 417, upload.awaitsContinue, !upload.wasContinued, !upload.isComplete {
            // libcurl would resend the request itself, as another one on this handle.
            setback = .expectation
            return .refused
        }
        if scanner.head.status == 408, scanner.head.closes, mayMeetIdleTimeout {
            setback = .idleTimeout
            return .refused
        }
        return .final
    }

    enum FieldChange {
        case unchanged
        case removed
        case value([UInt8])
    }

    /// Changes values of the final head, and removes a reason phrase for which `isReasonRemoved` returns true.
    ///
    /// Returns false, and records a fault, if the new head is invalid.
    func changeValues(
        isReasonRemoved: (_ reason: Span<UInt8>) -> Bool,
        _ change: (_ kind: FieldName, _ name: Span<UInt8>, _ value: Span<UInt8>) -> FieldChange
    ) -> Bool {
        var changed = ByteQueue()
        var copied = 0
        head.withSpan { bytes in
            let reason = answer.reason
            if !reason.isEmpty, isReasonRemoved(bytes.extracting(reason.bounds)) {
                changed.append(bytes.extracting(copied..<reason.start))
                copied = reason.end
            }
            for line in answer.fields where line.kind != .contentLength && !line.isHopByHop {
                let name = bytes.extracting(line.name.bounds)
                switch change(line.kind, name, bytes.extracting(line.value.bounds)) {
                case .unchanged: continue
                case .removed:
                    changed.append(bytes.extracting(copied..<line.name.start))
                    copied = line.value.end
                    // The end of the line is removed as well.
                    while copied < bytes.count, bytes[copied] != UInt8(ascii: "\n") { copied += 1 }
                    copied = min(copied + 1, bytes.count)
                case .value(let value):
                    changed.append(bytes.extracting(copied..<line.value.start))
                    changed.append(value)
                    copied = line.value.end
                }
            }
            if copied > 0 { changed.append(bytes.extracting(copied..<bytes.count)) }
        }
        guard copied > 0 else { return true }
        swap(&head, &changed)
        do throws(WireError) {
            try head.withSpan { (bytes) throws(WireError) in try scanner.scan(bytes) }
            return true
        } catch {
            return refuse(error.code) != .refused
        }
    }

    /// Allows the end of the response to be reported again.
    func postponeEnd() { isWholeTold = false }

    /// Begins the body after the final head.
    func beginBody() {
        answerBody.begin(behind: scanner.head, isBodyless: isHeadRequest)
        isHeadComplete = true
        driver.enqueue(self)
    }

    /// Collects a piece of the body, or pauses the stream if the window is full.
    func take(body data: UnsafeRawBufferPointer) -> BodyDisposition {
        guard body.count < Self.window else {
            isPaused = true
            return .pause
        }
        driver.enqueue(self)
        // Reserves a whole window at once: growing by doubling would move bytes, and end at more than needed.
        if data.count > body.capacity - body.count {
            body.reserve(body.isEmpty ? data.count : Self.bodyCapacity - body.count)
        }
        let bytes = unsafe Span<UInt8>(_unsafeElements: data.assumingMemoryBound(to: UInt8.self))
        switch answerBody.take(bytes, into: &body) {
        case .taken: return .consumed
        case .beyondEnd:
            // The answer is complete; its connection ends here, as the bytes after it belong to no request.
            return .abort
        case .broken(let code):
            _ = refuse(code)
            return .abort
        }
    }

    /// Collects a line of an HTTP/2 trailer section (RFC 9113 §8.1). Returns false if the line is invalid.
    func take(trailer line: Span<UInt8>) -> Bool {
        do throws(WireError) {
            try answerBody.trailers.append(line: line)
            return true
        } catch {
            _ = refuse(error.code)
            return false
        }
    }

    /// Returns true if the request must not be sent, because one of its sessions has ended; records that as a setback.
    func meetsEndedSession() -> Bool {
        guard owner?.carriesEndedSession() == true else { return false }
        setback = .sessionEnded
        return true
    }

    /// Records the rule that the answer breaks.
    func refuse(_ code: WireErrorCode) -> HeadKind {
        fault = WireError(upstream: code)
        return .refused
    }

    /// Asks the owner for the request's body.
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        guard let owner else { return .abort }
        let supply = unsafe owner.supplyBody(into: buffer)
        upload.record(supply)
        awaitsBody = supply == .pause
        tookBody = true
        driver.enqueue(self)
        return supply
    }

    /// Records the end; the owner is notified in the loop's turn. `isUnannounced`: TLS ended without a close alert.
    func end(_ error: CurlError?, isUnannounced: @autoclosure () -> Bool) {
        isEnded = true
        if isAnswered {
            // Regardless of the rest of the request, or of bytes after the answer.
            self.error = nil
        } else if let error {
            // libcurl has no separate code for a line that it cannot store.
            let isUnstorable = error == .badFunctionArgument || error == .outOfMemory || error == .tooLarge
            self.error = isUnstorable ? .weirdServerReply : error
        } else if isHeadComplete, !answerBody.isUntilEnd || isUnannounced() {
            self.error = .partialFile
        }
        driver.enqueue(self)
    }

    // MARK: Notifying the owner

    /// Notifies the owner of everything new: body taken, interims, head, body, end.
    package func notifyOwner() {
        guard let owner, let stream else { return }
        stream.willNotify()
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
            // After a head of 300 or above libcurl sends nothing more, but does not end while its sending is paused:
            // the caller may wait for this answer before it continues.
            if self.owner === owner { bodyAvailable() }
        }
        // The owner may have released this transfer by now.
        guard self.owner === owner else { return }
        if isHeadTold, !body.isEmpty { owner.transferHasBody(self) }
        guard self.owner === owner else { return }
        if isPaused, !isEnded, body.count < Self.window / 2 {
            isPaused = false
            stream.resumeReceiving()
        } else {
            stream.didNotify()
        }
        guard body.isEmpty else { return }
        if isEnded {
            owner.transferEnded(self, error: error)
        } else if isHeadTold, answerBody.isWhole, !isWholeTold {
            isWholeTold = true
            owner.transferHasAll(self)
        }
    }

    /// Notifies the owner again of everything left unconsumed while it held the answer.
    func renotifyOwner() {
        isWholeTold = false
        bodyAvailable()
        notifyOwner()
    }

    /// Resumes sending, because the owner has more of the request's body.
    package func bodyAvailable() {
        // libcurl cannot resume an ended transfer, whose answer may not all be consumed yet.
        guard awaitsBody, !isEnded else { return }
        awaitsBody = false
        stream?.resumeSending()
    }

    /// Resets the transfer for another request.
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
        /// Bytes still to come; `nil` for chunks until the end.
        private var left: UInt64? = 0
        /// True if the request waits for 100, which a 417 would refuse.
        private(set) var awaitsContinue = false
        /// True if the stream has taken any of the body.
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

        /// True if all of the body was taken.
        var isComplete: Bool { left == 0 }

        /// Returns the number of bytes to take next, `limit` at most.
        func next(upTo limit: Int) -> Int { left.map { Int(min($0, UInt64(limit))) } ?? limit }

        mutating func record(_ supply: BodySupply) {
            if supply != .pause { hasBegun = true }
            switch supply {
            case .bytes(let count): left = left.map { $0 - min($0, UInt64(clamping: count)) }
            case .end: left = 0
            case .abort, .pause: break
            }
        }
    }
}
