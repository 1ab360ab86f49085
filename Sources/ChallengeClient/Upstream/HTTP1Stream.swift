// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import EventLoop
internal import HTTPWire

/// HTTP/1.1 spoken by ourselves, in libcurl's place, on a connection that libcurl has made: for one request after the other.
///
/// libcurl sets up and takes down a whole transfer for each request, which costs more than all the rest of an exchange; here a
/// request is one `send`, one `recv`, and nothing to register.
///
/// It also takes requests for another protocol (RFC 9110 section 7.8). After a 101 there is no HTTP any more: then
/// `takeConnection` hands the connection over.
final class HTTP1Stream: UpstreamStream, TransferDelegate, ReadinessHandler {
    private enum State {
        /// libcurl connects.
        case connecting
        /// A request is under way.
        case running
        /// The connection waits for its next request.
        case resting
        /// The final head was a 101.
        case switched
        /// Nothing more will be done on the connection.
        case over
    }

    /// What is read at once, in bytes.
    static let piece = 32 * 1024
    /// For how long the body waits for the upstream's word.
    static let longestWait = LoopDelay(.seconds(1))

    let transfer: Transfer
    /// Where it rests between two requests; not retained, as it holds this one then.
    unowned let rest: RestingStreams
    /// The handle that libcurl connects with.
    private let easy: EasyHandle
    /// True if there is a proxy on the way.
    private let isProxied: Bool
    let driver: CurlDriver
    private let loop: EventLoop
    private(set) var connection: UpstreamConnection?
    /// What of the request is to be sent; it holds secrets.
    var output = ByteQueue()
    /// True if a head in `output` waits for the body.
    var isHeld = false
    /// What has come and is not fed yet.
    var input = ByteQueue()
    /// How far the line that comes has been searched for its end, and where it begins.
    var searched = 0
    var lineStart = 0
    private var state = State.connecting
    /// True if the body goes in chunks.
    private(set) var isChunked = false
    /// The fields behind the last chunk.
    var trailers = ByteQueue()
    /// True if the body waits for the upstream's word (RFC 9110 section 10.1.1).
    private(set) var awaitsContinue = false
    /// True if it has waited for that in vain.
    private(set) var hasWaited: Bool? = false
    private var continueTimer: LazyTimer?
    /// True if the connection has carried an earlier request than the one under way.
    private(set) var isReused = false
    /// True if any of an answer to the request under way has come.
    private(set) var hasHeard = false
    /// Since when it rests.
    private(set) var restingSince = LoopInstant.never

    /// A stream on `connection`, which `easy` makes; `driver` tells what comes of it. `isUpgrade`: for the one request that asks for
    /// another protocol.
    init(
        driver: CurlDriver, easy: EasyHandle, connection: UpstreamConnection, rest: RestingStreams, isProxied: Bool,
        isUpgrade: Bool
    ) {
        transfer = Transfer(driver: driver)
        self.driver = driver
        self.easy = easy
        self.connection = connection
        self.rest = rest
        self.isProxied = isProxied
        loop = connection.loop
        transfer.isUpgrade = isUpgrade
        transfer.stream = self
    }

    deinit { continueTimer?.cancel() }

    var isRunning: Bool { state == .running }
    /// True if the final head was a 101.
    var hasSwitched: Bool { state == .switched }

    // MARK: UpstreamStream

    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {
        isChunked = request.framing == .chunked
        awaitsContinue = request.expectsContinue && request.hasBody
        hasWaited = false
        if awaitsContinue { head.append(name: "Expect", value: "100-continue") }
        head.end(request.framing)
        head.take(into: &output)
        searched = 0
        lineStart = 0
        hasHeard = false
        isReused = state == .resting
        transfer.mayMeetIdleTimeout = isReused && request.mayGoAgain
        if isReused {
            state = .running
            sendHead()
            watch()
            // The owner is to hear that some of the body was taken, or that none can be.
            if transfer.hasNews { driver.wake() }
        } else {
            try connection?.open(telling: self)
        }
    }

    func resumeReceiving() { advance() }

    func resumeSending() {
        guard isRunning else { return }
        send()
        watch()
        settle()
    }

    func failure(_ error: CurlError) -> TransferFailure {
        var failure = TransferFailure(error, of: easy, isProxied: isProxied)
        // It closed a connection that had carried requests before, without a word on this one (RFC 9112 section 9.3.1).
        failure.mayNotBeTaken = isReused && !hasHeard
        return failure
    }

    func release() {
        transfer.reset()
        rest.put(self, now: loop.now)
    }

    func takeConnection() -> UpstreamConnection? {
        guard hasSwitched, let connection else { return nil }
        self.connection = nil
        swap(&connection.received, &input)
        return connection
    }

    /// Goes to rest after a request, where the connection can take another; whether it did.
    func goToRest(now: LoopInstant) -> Bool {
        guard state == .resting, let connection else { return false }
        restingSince = now
        input.removeAll(keepingCapacity: 0)
        connection.watch(for: .read, handler: self)
        return true
    }

    /// True if the connection can take a request: nothing has come while it rested. What came answers no request and must
    /// not be taken for the answer to the next one (RFC 9112 section 9.2); and at its end a server may have closed it.
    var isFresh: Bool { state == .resting && connection?.isQuiet == true }

    /// Ends it wherever it stands, with its connection.
    func close() {
        state = .over
        isHeld = false
        stopWaiting()
        output.erase()
        connection?.close()
        connection = nil
    }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) {
        if state == .resting {
            rest.remove(self)
            close()
        } else {
            advance()
        }
    }

    /// libcurl has connected, or has failed to.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard state == .connecting else { return }
        state = .running
        if let error {
            finish(error)
        } else if connection?.take() == true {
            sendHead()
            watch()
        } else {
            finish(.couldNotConnect)
        }
        driver.wake()
    }

    private func advance() {
        guard isRunning else { return }
        if !output.isEmpty { send() }
        receive()
        // What came may be the word that the body has waited for.
        if isRunning, wantsBody, output.isEmpty { send() }
        settle()
        watch()
    }

    // MARK: Waiting for 100 (RFC 9110 section 10.1.1)

    /// The head has gone out: from here on it is waited.
    func beginWaiting() {
        guard awaitsContinue else { return }
        let timer = continueTimer ?? LazyTimer(loop: loop)
        continueTimer = timer
        timer.onExpiry = { [unowned self] in
            guard isRunning, awaitsContinue, !transfer.isHeadComplete else { return }
            hasWaited = true
            stopWaiting()
            resumeSending()
        }
        timer.arm(at: loop.now + Self.longestWait)
    }

    /// The body waits no longer.
    func stopWaiting() {
        guard awaitsContinue else { return }
        awaitsContinue = false
        continueTimer?.disarm()
    }

    /// Only the end of the connection ends the answer: over TLS it must be announced.
    func watchClosure() { easy.watchClosure() }

    /// Ends the request where both it and its answer are whole.
    private func settle() {
        if isRunning, transfer.isHeadComplete {
            if transfer.answer.status == 101 {
                state = .switched
                connection?.watch(for: [], handler: self)
            } else if transfer.isAnswered, transfer.upload.isComplete && output.isEmpty || sendsNoMore {
                finish(nil)
            }
        }
        driver.wake()
    }

    /// Has the loop tell of what is waited for; costs nothing where that is the same as before.
    func watch() {
        guard isRunning, let connection else { return }
        var interest: Interest = []
        if !transfer.isPaused, !transfer.isAnswered { interest.insert(.read) }
        if !output.isEmpty, !isHeld { interest.insert(.write) }
        connection.watch(for: interest, handler: self)
    }

    /// Takes what has come.
    private func receive() {
        guard feed(), isRunning, let connection else { return }
        let rest = rest
        rest.exchangeMemory(with: &input)
        defer { rest.exchangeMemory(with: &input) }
        while isRunning {
            switch try? connection.receive(into: &input, atMost: Self.piece) {
            case .bytes(let count):
                hasHeard = true
                // Over TLS more may wait although the descriptor is not readable.
                guard feed(), count == Self.piece || connection.isSecure else { return }
            case .nothing: return
            case .end where transfer.isHeadComplete: finish(nil)
            case .end: finish(hasHeard ? .weirdServerReply : .gotNothing)
            case nil: finish(.receiveError)
            }
        }
    }

    /// The request is over. Whether the connection can take another is known now (RFC 9112 section 9.3).
    func finish(_ error: CurlError?) {
        let isReusable =
            error == nil && transfer.isAnswered && transfer.allowsAnotherRequest && output.isEmpty && input.isEmpty
            && !transfer.isUpgrade
        stopWaiting()
        state = isReusable ? .resting : .over
        if !isReusable { connection?.watch(for: [], handler: self) }
        transfer.end(error, isUnannounced: easy.endedUnannounced)
    }

    // MARK: What libcurl does not ask while it only connects

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .abort }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { attempt == 1 }
}
