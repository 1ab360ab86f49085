// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire
internal import Secrets

/// A stream carried by libcurl: HTTP/2, and HTTP/1.1 with NTLM or for a side request.
///
/// One easy handle, used for one request after the other.
final class CurlStream: UpstreamStream {
    /// The largest read of libcurl, in bytes.
    private static let readSize = 32 * 1024

    let transfer: Transfer
    let easy: EasyHandle
    /// The request's fields, in memory that libcurl reads while the request runs.
    let fields = HeaderList()
    let driver: CurlDriver
    /// The pool that the stream returns to. The two retain each other until the pool's end.
    let pool: TransferPool?
    /// True if the connection may use HTTP/2.
    let mayBeHTTP2: Bool
    /// True if the connection uses TLS.
    let isOverTLS: Bool
    /// True if the connection passes a proxy.
    let isProxied: Bool
    /// Switches requests with long bodies to HTTP/1.1, if needed.
    let versions: VersionSwitch?
    /// Method and framing set in the handle.
    var shape = Shape()
    /// True if libcurl authenticates the connection first. A 401 may then be a step of NTLM.
    private(set) var authenticatesConnection = false
    /// The start queue that waits for this stream's connection.
    var startQueue: HTTP2StartQueue?
    /// The stream's state in the start queue.
    var startState = HTTP2StartQueue.State.none
    /// True if the connection had ended before anything was sent.
    private var isStale = false
    /// True if some of the current request may have left this machine.
    private(set) var hasSent = false
    /// The driver's read cycles of the head's end and of the last body piece.
    private var headCycle: UInt64 = 0
    private var bodyCycle: UInt64 = 0
    /// Body bytes received, framing included.
    private var received = 0
    /// The start time of a request that asks for 100.
    private var askedAt = LoopInstant.never

    /// Creates a stream with a new handle; throws if libcurl is out of memory.
    ///
    /// `mayBeHTTP2`: the handle may use HTTP/2. `isOverTLS`: it will use TLS.
    init(
        driver: CurlDriver, pool: TransferPool? = nil, mayBeHTTP2: Bool, isOverTLS: Bool, isProxied: Bool,
        versions: VersionSwitch? = nil
    ) throws(CurlError) {
        easy = try EasyHandle()
        self.driver = driver
        self.pool = pool
        self.mayBeHTTP2 = mayBeHTTP2
        self.isOverTLS = isOverTLS
        self.isProxied = isProxied
        self.versions = versions
        transfer = Transfer(driver: driver)
        try easy.set(.httpHeader, fields)
        try easy.set(.httpTransferDecoding, false)
        try easy.set(.bufferSize, Self.readSize)
        transfer.stream = self
    }

    /// Makes libcurl authenticate the connection by NTLM (MS-NTHT), which requires HTTP/1.1.
    ///
    /// The stream is never reused: no other request may use its username and password, while libcurl keeps the
    /// connection for the next request with the same ones.
    func authenticateConnection(by credential: ConnectionCredential) throws(CurlError) {
        authenticatesConnection = true
        try easy.set(.httpVersion, Curl.HTTPVersion.http11.rawValue)
        try easy.set(.httpAuth, EasyHandle.ntlm)
        try credential.username.withBytes { (bytes) throws(CurlError) in try easy.set(.userName, bytes: bytes) }
        try credential.password.withBytes { (bytes) throws(CurlError) in try easy.set(.password, bytes: bytes) }
    }

    // MARK: UpstreamStream

    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {
        try takeFields(of: head)
        try apply(request)
        askedAt = request.expectsContinue ? driver.systemNow : .never
        try target.withSpan { (bytes) throws(CurlError) in try easy.setTarget(bytes) }
        if let startQueue = pool?.startQueue, !shape.isHTTP1 {
            try startQueue.start(self)
        } else {
            try driver.start(self)
        }
    }

    /// libcurl measures the wait by the system's clock, and does not report its end.
    var hasWaited: Bool {
        driver.systemNow >= askedAt.advanced(byMilliseconds: ExpectContinueSupport.waitMilliseconds)
    }

    func resumeSending() { driver.unpause(self) }

    func resumeReceiving() { driver.unpause(self) }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        try easy.appendTrailer(name: name, value: value)
    }

    func willNotify() {
        guard let startQueue, easy.wasConnected || transfer.isEnded else { return }
        startQueue.firstSettled(isConnected: easy.wasConnected)
    }

    func didNotify() {
        if needsPolling { driver.poll(self) }
    }

    func failure(_ error: CurlError) -> TransferFailure {
        var failure = TransferFailure(error, of: easy, isProxied: isProxied)
        failure.isStale = isStale
        // After GOAWAY (RFC 9113 §6.8) libcurl resends a request that was not taken, except if no other transfer is
        // left on the connection. Some servers close it without GOAWAY, after the reset of one of its streams.
        failure.mayNotBeTaken =
            mayBeHTTP2 && failure.isConnectionsEnd && transfer.head.isEmpty
            && !transfer.isHeadComplete
        return failure
    }

    func release() {
        pool?.startQueue?.ended(self)
        driver.stop(self)
        transfer.reset()
        isStale = false
        hasSent = false
        pool?.put(self, isReusable: !authenticatesConnection)
    }

    /// True if sending is paused while only the connection's end can end the answer.
    var mayMissEnd: Bool {
        transfer.awaitsBody && !transfer.isEnded && transfer.isHeadComplete && transfer.isUntilEnd
    }

    /// True if libcurl may delay received bytes until polled.
    ///
    /// Before 8.1 it passes a long HTTP/2 head on in pieces, and continues only at the next event.
    private var needsPolling: Bool {
        mayBeHTTP2 && transfer.head.count > 8192 && !transfer.isEnded && !transfer.isPaused
            && CurlFeatures.installed.versionNumber < 0x08_01_00
    }

    /// True if libcurl read head and body in one call that was not limited by the body's length.
    ///
    /// Only such a call reveals stray bytes after the answer: later calls read no more than the body, and for an answer
    /// without a body libcurl reports no bytes.
    private var isReadAtOnce: Bool {
        bodyCycle == headCycle && received > 0 && transfer.head.count + received < 16_384
    }
}

// Called by libcurl; only collects.
extension CurlStream: TransferDelegate {
    /// Collects interim (RFC 9110 §15.2) and final heads. Returns false, which ends the transfer, if a head is invalid.
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool {
        // After the head: the trailer section of an answer over HTTP/2 (RFC 9113 §8.1).
        if transfer.isHeadComplete {
            return unsafe transfer.take(trailer: Span(_unsafeElements: headerLine.assumingMemoryBound(to: UInt8.self)))
        }
        // If a server claims HTTP/2 on an HTTP/1.1 connection, libcurl would share that connection among transfers.
        if transfer.head.isEmpty, !mayBeHTTP2 || shape.isHTTP1,
            unsafe headerLine.count < 6 || headerLine[5] != UInt8(ascii: "1")
        {
            return transfer.refuse(.statusLineInvalid) != .refused
        }
        guard unsafe transfer.head.append(headerLine, upTo: Transfer.headLimit) else {
            return transfer.refuse(.headTooLarge) != .refused
        }
        // libcurl ends the head at a line that begins with CR or LF, whatever else the line holds.
        guard let first = unsafe headerLine.first, first == 0x0D || first == 0x0A else {
            if needsPolling { driver.enqueue(transfer) }
            return true
        }
        return endHead()
    }

    private func endHead() -> Bool {
        switch transfer.scanHead() {
        case .refused: return false
        case .interim: return true
        case .final: break
        }
        if authenticatesConnection, isStepOfNTLM {
            transfer.head.removeAll()
            return true
        }
        if authenticatesConnection, isAheadOfBody {
            transfer.setback = .connectionUnchallenged
            return false
        }
        transfer.beginBody()
        if transfer.isUntilEnd, transfer.answer.majorVersion == 1 { easy.watchClosure() }
        headCycle = driver.cycles
        received = 0
        if mayMissEnd { driver.watchEnd(of: self) }
        return true
    }

    /// True if the head is an NTLM challenge that libcurl answers itself on this connection.
    ///
    /// NTLM without a message is a refusal (MS-NTHT §3.2).
    private var isStepOfNTLM: Bool {
        guard transfer.answer.status == 401 else { return false }
        let fields = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0).fields }
        return fields[values: .wwwAuthenticate].contains { $0.lowercased().hasPrefix("ntlm ") }
    }

    /// True if the head answers the bodiless request that authenticates a connection.
    ///
    /// Only a challenge is valid at this point: any other answer is to a request that the caller did not make.
    private var isAheadOfBody: Bool {
        transfer.answer.status != 401 && !transfer.upload.isComplete && !transfer.upload.hasBegun
            && easy.announcesNoBody
    }

    /// Collects a piece of the body, or pauses libcurl if the window is full.
    func transferReceived(body data: UnsafeRawBufferPointer) -> BodyDisposition {
        // The body of an authentication step, which libcurl normally drops itself.
        if !transfer.isHeadComplete { return .consumed }
        let disposition = unsafe transfer.take(body: data)
        if disposition != .pause {
            bodyCycle = driver.cycles
            received += data.count
        }
        guard disposition == .consumed else { return disposition }
        // TLS may have buffered bytes after the end of the body; the socket would not show them.
        let isAtEnd = isOverTLS && transfer.isAnswered && easy.speaksHTTP1
        return isAtEnd && easy.hasUnreadTLS ? .abort : .consumed
    }

    /// Asks the owner for the request's body.
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        let supply = unsafe transfer.supplyBody(into: buffer)
        if mayMissEnd { driver.watchEnd(of: self) }
        return supply
    }

    /// Only a body not begun: resending is up to the exchange, with a new transfer.
    func transferRewinds(to offset: Int64) -> Bool { offset == 0 && !transfer.upload.hasBegun }

    /// Asks the owner before a second attempt on another connection.
    func transferWillSend(attempt: Int) -> Bool {
        if startQueue != nil { driver.enqueue(transfer) }
        // For libcurl an HTTP/2 connection is alive after the server's TLS close, which only a request reveals.
        if mayBeHTTP2, isOverTLS, easy.isClosedByServer {
            isStale = true
            return false
        }
        if attempt <= 1, transfer.meetsEndedSession() { return false }
        hasSent = true
        return attempt <= 1 || transfer.owner?.mayResend() == true
    }

    /// Records the end; the owner is notified in the loop's turn.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        transfer.end(error, isUnannounced: easy.endedUnannounced)
        // The rest of the body would be read as the next request (RFC 9112 §9.3). libcurl keeps the connection if the
        // final head comes in place of 100, and if the answer ended within a head.
        guard error == nil else { return }
        if !transfer.upload.isComplete || !transfer.isHeadComplete {
            driver.dropConnection(of: self)
        } else if !isReadAtOnce {
            driver.dropStrayConnection(of: self)
        }
    }
}

// The request as libcurl sends it.
extension CurlStream {
    /// Method and framing set in a handle. Only differences to the last request are set again.
    struct Shape: Equatable {
        var method = RequestMethod.get
        var otherMethod = ""
        var length: Int64?
        var hasBody = false
        /// True if the handle was switched to HTTP/1.1.
        var isHTTP1 = false
    }

    /// Passes the fields of `head` to libcurl.
    func takeFields(of head: FieldSink) throws(CurlError) {
        fields.reset()
        var hasAccept = false
        try head.forEachField { (name, value) throws(CurlError) in
            hasAccept = hasAccept || FieldName(name, ByteRange(start: 0, end: name.count)) == .accept
            try fields.append(name: name, value: value)
        }
        // libcurl would add `Accept: */*`.
        if !hasAccept { fields.suppress("Accept") }
    }

    /// Configures the handle for `request`, and suppresses fields that libcurl would add.
    func apply(_ request: ExchangeRequest) throws(CurlError) {
        var wanted = Shape()
        wanted.method = request.method
        wanted.otherMethod = request.otherMethod
        wanted.hasBody = request.hasBody
        if case .length(let length) = request.framing { wanted.length = Int64(clamping: length) }
        if let versions { wanted.isHTTP1 = versions.applies(to: request) }
        if wanted.hasBody {
            // With this field libcurl delays the body, for a second at most; without it libcurl would add one itself
            // (RFC 9110 §10.1.1).
            if request.expectsContinue {
                try fields.append(name: "Expect", value: "100-continue")
            } else {
                fields.suppress("Expect")
            }
        } else if case .length = request.framing {
            try fields.append(name: "Content-Length", value: "0")
        }
        guard wanted != shape else { return }
        if wanted.isHTTP1 != shape.isHTTP1 { try versions?.apply(isHTTP1: wanted.isHTTP1, to: easy) }
        // From the last shape to the neutral one, which is GET, …
        try easy.set(.upload, false)
        try easy.set(.httpGet, true)
        try easy.clearMethod()
        // … and from there to the wanted one.
        if wanted.hasBody {
            try easy.set(.upload, true)
            try easy.set(.bodySize, wanted.length ?? -1)
        }
        switch wanted.method {
        case .get where !wanted.hasBody: break
        case .head where !wanted.hasBody: try easy.set(.noBody, true)
        case .other: try easy.setMethod(wanted.otherMethod)
        default: try easy.setMethod(wanted.method.name)
        }
        shape = wanted
    }
}
