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
    /// The most body that is ever collected: a window less a byte, and the longest piece that libcurl hands over.
    package static let bodyCapacity = window + 16 * 1024
    /// How much libcurl reads at once.
    static let readSize = 32 * 1024
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

    /// What feeds it in libcurl's place.
    var line: ExpressLine?
    /// Whether its request asks for another protocol, so that a 101 is an answer to it.
    var isUpgrade = false
    /// Method and framing as the handle has them set.
    var shape = TransferShape()
    /// Whether libcurl authenticates the connection first, so that a 401 may be one step of that.
    var authenticatesConnection = false
    /// Whether the request is HEAD, whose answer has no body.
    var isHeadRequest = false
    /// What of the request's body is still to be sent.
    var upload = Upload()
    /// Whether the connection may turn out to be one of HTTP/2, and whether it is over TLS.
    let mayBeHTTP2: Bool
    let isOverTLS: Bool
    /// Takes long bodies to HTTP/1.1, where that is needed.
    let versions: VersionSwitch?
    /// Heads of interim responses that were not told yet.
    var interims = InterimHeads()
    var scanner = ResponseHeadScanner()
    var answerBody = AnswerBody()

    let driver: CurlDriver
    var isHeadComplete = false
    /// The go of the driver in which the head ended, and that of the last piece of the body.
    var headGo: UInt64 = 0
    var bodyGo: UInt64 = 0
    /// How many bytes of body have come, framing included.
    var received = 0
    /// Whether it failed because the upstream will not say 100 (RFC 9110 §15.5.18).
    var isExpectationRefused = false
    /// Whether it failed because the upstream answered what libcurl sends ahead of a body to authenticate the connection, and asked for
    /// nothing. The request itself was not sent.
    var isLeftUnbound = false
    /// Whether it failed because the connection that it got had ended before; nothing was sent.
    var isStale = false
    private var isHeadTold = false
    private var isWholeTold = false
    private var isEnded = false
    var isPaused = false
    var awaitsBody = false
    var tookBody = false
    private var error: CurlError?
    /// Where others wait for its connection, as long as there is none.
    var sharedStart: SharedStart?
    /// Where it stands there.
    var place = SharedStart.Place.none
    /// Whether the driver has it on its list of those with news.
    var hasNews = false

    /// A transfer with a handle of its own; throws when libcurl is out of memory. `mayBeHTTP2`: whether the handle will be
    /// allowed to speak HTTP/2; `isOverTLS`: whether it will speak TLS.
    package convenience init(driver: CurlDriver, mayBeHTTP2: Bool, isOverTLS: Bool) throws(CurlError) {
        try self.init(driver: driver, mayBeHTTP2: mayBeHTTP2, isOverTLS: isOverTLS, versions: nil)
    }

    /// The same with a switch between the versions of HTTP.
    init(driver: CurlDriver, mayBeHTTP2: Bool, isOverTLS: Bool, versions: VersionSwitch?) throws(CurlError) {
        easy = try EasyHandle()
        self.driver = driver
        self.mayBeHTTP2 = mayBeHTTP2
        self.isOverTLS = isOverTLS
        self.versions = versions
        try easy.set(.httpHeader, fields)
        try easy.set(.httpTransferDecoding, false)
        try easy.set(.bufferSize, Self.readSize)
    }

    /// What the final head says, once it is told.
    package var answer: ResponseHead { scanner.head }

    /// Whether no more of the answer will come.
    var isAtEnd: Bool { isEnded || answerBody.isWhole }

    /// Whether trailer fields came with the answer that may go further (RFC 9110 §6.5).
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

    /// The major version of HTTP that the upstream answered in, if it has answered.
    var spokenVersion: Int? { isHeadComplete ? answer.majorVersion : nil }

    /// Makes ready for another run.
    package func reset() {
        head.removeAll(keepingCapacity: 16_384)
        body.removeAll(keepingCapacity: 16_384)
        interims.removeAll()
        fault = nil
        isHeadComplete = false
        isExpectationRefused = false
        isLeftUnbound = false
        isStale = false
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
        if let sharedStart, easy.wasConnected || isEnded { sharedStart.firstIsBack(isConnected: easy.wasConnected) }
        guard let owner else { return }
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
            if let line { line.resumeReceiving() } else { driver.unpause(self) }
        } else if mayStall {
            driver.rouse(self)
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
        if let line { line.resumeSending() } else { driver.unpause(self) }
    }

    /// Whether libcurl has read head and body by one call for as much as there was: then it would have told what came behind
    /// them. Later calls ask for no more than the body, and of an answer without one it tells nothing.
    private var isReadAtOnce: Bool {
        bodyGo == headGo && received > 0 && head.count + received < 16_384
    }

    /// Whether libcurl may hold something back: before 8.1 it hands a long head of HTTP/2 over in pieces, and goes on with the
    /// next one, or with the body, only when something else happens.
    var mayStall: Bool {
        mayBeHTTP2 && head.count > 8192 && !isEnded && !isPaused && CurlFeatures.installed.versionNumber < 0x08_01_00
    }

    /// Whether its sending is paused while only the end of the connection can end the answer.
    var mayMissEnd: Bool { awaitsBody && !isEnded && isHeadComplete && answerBody.isUntilEnd && line == nil }

    /// Whether it failed with `error` because the server goes away, and may not have taken the request: by GOAWAY (RFC 9113 §6.8),
    /// where libcurl sends a request again that was not taken, but not where no other is left on the connection; or because it
    /// closed a connection that had carried requests before, without a word on this one (RFC 9112 §9.3.1).
    func mayNotBeTaken(_ error: CurlError) -> Bool {
        if let line { return line.isReused && !line.hasHeard }
        return error == .http2 && head.isEmpty && !isHeadComplete
    }

    /// Whether all of the answer is here.
    var isAnswered: Bool { isHeadComplete && answerBody.isWhole }

    /// Whether the connection can take another request after this one (RFC 9112 §9.3), as far as the two heads say.
    var allowsAnotherRequest: Bool {
        upload.isComplete && !answer.closes && answer.majorVersion == 1 && answer.minorVersion > 0
    }

    /// Notes the end; the owner is told in the loop's turn.
    package func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        isEnded = true
        if isHeadComplete, answerBody.isWhole {
            // Whatever became of the rest of the request, or came behind the answer.
            self.error = nil
        } else if let error {
            // libcurl has no words of its own for a line that it cannot store.
            let isUnstorable = error == .badFunctionArgument || error == .outOfMemory || error == .tooLarge
            self.error = isUnstorable ? .weirdServerReply : error
        } else if isHeadComplete, !answerBody.isUntilEnd || easy.endedUnannounced {
            self.error = .partialFile
        }
        // Where the rest of the body would be taken for the next request (RFC 9112 §9.3). libcurl keeps the connection when the
        // final head comes in place of 100, and one that ended in the middle of a head.
        if error == nil, line == nil {
            if !upload.isComplete || !isHeadComplete {
                driver.dropConnection(of: self)
            } else if !isReadAtOnce {
                driver.dropStrayConnection(of: self)
            }
        }
        driver.note(self)
    }
}

extension Transfer {
    /// Counts the request's body as libcurl takes it.
    struct Upload {
        /// Bytes still to come; `nil`: chunks until the end.
        private var left: UInt64? = 0
        /// Whether 100 is waited for, which a 417 would refuse.
        private(set) var awaitsContinue = false
        /// Whether libcurl has taken any of it.
        private(set) var hasBegun = false
        /// Whether 100 has come.
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

        /// Whether all of it was taken.
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
