// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire
internal import Secrets

/// A stream that libcurl speaks: HTTP/2, and HTTP/1.1 with NTLM or for a side request. One easy handle, for one request after the other.
final class CurlStream: UpstreamStream {
    /// The most that libcurl reads at once, in bytes.
    private static let readSize = 32 * 1024

    let transfer: Transfer
    let easy: EasyHandle
    /// The request's fields, in memory that libcurl reads while the request runs.
    let fields = HeaderList()
    let driver: CurlDriver
    /// The pool that it is put back to, which outlives its streams.
    unowned let pool: TransferPool?
    /// True if the connection may turn out to be one of HTTP/2.
    let mayBeHTTP2: Bool
    /// True if the connection is over TLS.
    let isOverTLS: Bool
    /// True if there is a proxy on the way.
    let isProxied: Bool
    /// Takes long bodies to HTTP/1.1, where that is needed.
    let versions: VersionSwitch?
    /// Method and framing as the handle has them set.
    var shape = Shape()
    /// True if libcurl authenticates the connection first, so that a 401 may be one step of that.
    private(set) var authenticatesConnection = false
    /// The start that others wait for with it, as long as there is none.
    var sharedStart: SharedStart?
    /// Its place there.
    var place = SharedStart.Place.none
    /// True if the connection that it got had ended before; nothing was sent.
    private var isStale = false
    /// The go of the driver in which the head ended, and that of the last piece of the body.
    private var headGo: UInt64 = 0
    private var bodyGo: UInt64 = 0
    /// The bytes of body that have come, framing included.
    private var received = 0
    /// The instant at which a request that asks for 100 was started.
    private var askedAt = LoopInstant.never

    /// A stream with a handle of its own; throws when libcurl is out of memory. `mayBeHTTP2`: whether the handle will be
    /// allowed to speak HTTP/2; `isOverTLS`: whether it will speak TLS.
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

    /// Has libcurl authenticate the connection by NTLM (MS-NTHT), which HTTP/2 does not have. The stream is never used again: no
    /// other request may get hold of its name and password, while libcurl keeps the connection for the next one that has them.
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
        try target.withSpan { (bytes) throws(CurlError) in try easy.set(.requestTarget, bytes: bytes) }
        if let sharedStart = pool?.sharedStart, !shape.isHTTP1 {
            try sharedStart.start(self)
        } else {
            try driver.start(self)
        }
    }

    /// libcurl waits by the system's clock, and says nothing of it.
    var hasWaited: Bool {
        driver.systemNow >= askedAt.advanced(byMilliseconds: ExpectationMemory.waitMilliseconds)
    }

    func resumeSending() { driver.unpause(self) }

    func resumeReceiving() { driver.unpause(self) }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        try easy.appendTrailer(name: name, value: value)
    }

    func willTell() {
        guard let sharedStart, easy.wasConnected || transfer.isEnded else { return }
        sharedStart.firstIsBack(isConnected: easy.wasConnected)
    }

    func hasTold() {
        if mayStall { driver.rouse(self) }
    }

    func failure(_ error: CurlError) -> TransferFailure {
        var failure = TransferFailure(error, of: easy, isProxied: isProxied)
        failure.isStale = isStale
        // GOAWAY (RFC 9113 §6.8), after which libcurl sends a request again that was not taken, but not where no other is left on the
        // connection.
        failure.mayNotBeTaken = error == .http2 && transfer.head.isEmpty && !transfer.isHeadComplete
        return failure
    }

    func release() {
        pool?.sharedStart?.ended(self)
        driver.stop(self)
        transfer.reset()
        isStale = false
        if !authenticatesConnection { pool?.put(self) }
    }

    /// True if its sending is paused while only the end of the connection can end the answer.
    var mayMissEnd: Bool {
        transfer.awaitsBody && !transfer.isEnded && transfer.isHeadComplete && transfer.isUntilEnd
    }

    /// True if libcurl may hold something back: before 8.1 it hands a long head of HTTP/2 over in pieces, and goes on with the
    /// next one, or with the body, only when something else happens.
    private var mayStall: Bool {
        mayBeHTTP2 && transfer.head.count > 8192 && !transfer.isEnded && !transfer.isPaused
            && CurlFeatures.installed.versionNumber < 0x08_01_00
    }

    /// True if libcurl has read head and body by one call for as much as there was: then it would have told what came behind
    /// them. Later calls ask for no more than the body, and of an answer without one it tells nothing.
    private var isReadAtOnce: Bool {
        bodyGo == headGo && received > 0 && transfer.head.count + received < 16_384
    }
}

// Called by libcurl, which only collects.
extension CurlStream: TransferDelegate {
    /// Collects heads, interim ones (RFC 9110 §15.2) and the final one. False, which ends the transfer, where one breaks a rule.
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool {
        // After the head: the trailer section of an answer over HTTP/2 (RFC 9113 §8.1).
        if transfer.isHeadComplete {
            return unsafe transfer.take(trailer: Span(_unsafeElements: headerLine.assumingMemoryBound(to: UInt8.self)))
        }
        // A connection of HTTP/1.1 whose server says HTTP/2 would be shared by libcurl among several transfers.
        if transfer.head.isEmpty, !mayBeHTTP2 || shape.isHTTP1,
            unsafe headerLine.count < 6 || headerLine[5] != UInt8(ascii: "1")
        {
            return transfer.refuse(.statusLineInvalid) != .refused
        }
        guard unsafe transfer.head.append(headerLine, upTo: Transfer.headLimit) else {
            return transfer.refuse(.headTooLarge) != .refused
        }
        // To libcurl a line that begins with CR or LF is the end of the head, whatever else it holds.
        guard let first = unsafe headerLine.first, first == 0x0D || first == 0x0A else {
            if mayStall { driver.note(transfer) }
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
            transfer.setback = .unboundConnection
            return false
        }
        transfer.beginBody()
        if transfer.isUntilEnd, transfer.answer.majorVersion == 1 { easy.watchClosure() }
        headGo = driver.goes
        received = 0
        if mayMissEnd { driver.doubt(self) }
        return true
    }

    /// True if the head is a challenge that libcurl answers by itself on this connection: NTLM with a message. Without one it is a
    /// refusal (MS-NTHT §3.2).
    private var isStepOfNTLM: Bool {
        guard transfer.answer.status == 401 else { return false }
        let fields = transfer.head.withSpan { ScannedHead(transfer.answer, in: $0).fields }
        return fields[values: .wwwAuthenticate].contains { $0.lowercased().hasPrefix("ntlm ") }
    }

    /// True if the head answers the request as libcurl sends it first to authenticate a connection, without its body. Only a challenge
    /// has a meaning there: any other answer is to a request that the caller has not made.
    private var isAheadOfBody: Bool {
        transfer.answer.status != 401 && !transfer.upload.isComplete && !transfer.upload.hasBegun
            && easy.announcesNoBody
    }

    /// Collects a piece of the body, or pauses libcurl where a window is full.
    func transferReceived(body data: UnsafeRawBufferPointer) -> BodyDisposition {
        // What comes with a step of an authentication, which libcurl leaves out itself as a rule.
        if !transfer.isHeadComplete { return .consumed }
        let disposition = unsafe transfer.take(body: data)
        if disposition != .pause {
            bodyGo = driver.goes
            received += data.count
        }
        guard disposition == .consumed else { return disposition }
        // Behind the end of a body TLS may keep for the next answer what came with it; no socket would tell.
        let isAtEnd = isOverTLS && transfer.isAnswered && easy.speaksHTTP1
        return isAtEnd && easy.hasUnreadTLS ? .abort : .consumed
    }

    /// Asks the owner for the request's body.
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        let supply = unsafe transfer.supplyBody(into: buffer)
        if mayMissEnd { driver.doubt(self) }
        return supply
    }

    /// Only what has not begun: what is sent again is sent by the exchange, as a transfer of its own.
    func transferRewinds(to offset: Int64) -> Bool { offset == 0 && !transfer.upload.hasBegun }

    /// A second attempt on another connection is for the owner to allow.
    func transferWillSend(attempt: Int) -> Bool {
        if sharedStart != nil { driver.note(transfer) }
        // To libcurl a connection of HTTP/2 is alive whose server has ended TLS, and other than by a request one does not learn.
        if mayBeHTTP2, isOverTLS, easy.isClosedByServer {
            isStale = true
            return false
        }
        return attempt <= 1 || transfer.owner?.mayResend() == true
    }

    /// Notes the end; the owner is told in the loop's turn.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        transfer.end(error, isUnannounced: easy.endedUnannounced)
        // Where the rest of the body would be taken for the next request (RFC 9112 §9.3). libcurl keeps the connection when the
        // final head comes in place of 100, and one that ended in the middle of a head.
        guard error == nil else { return }
        if !transfer.upload.isComplete || !transfer.isHeadComplete {
            driver.dropConnection(of: self)
        } else if !isReadAtOnce {
            driver.dropStrayConnection(of: self)
        }
    }
}
