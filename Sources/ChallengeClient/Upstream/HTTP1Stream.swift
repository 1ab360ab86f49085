// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import EventLoop
internal import HTTPWire

/// HTTP/1.1 without libcurl's transfer engine, on a connection that libcurl has made.
///
/// libcurl sets up and tears down a whole transfer for each request, which costs more than all the rest of an exchange;
/// here a request is one `send`, one `recv`, and nothing to register. An `HTTP1ClientMachine` decides, this class
/// carries out.
///
/// Also carries requests for another protocol (RFC 9110 §7.8). After a 101, `takeConnection` returns the connection.
final class HTTP1Stream: UpstreamStream, IdleStream, TransferDelegate, ReadinessHandler {
    /// The largest read, in bytes.
    private static let piece = 32 * 1024
    /// The time for which the body waits for 100.
    private static let longestWait = LoopDelay(.seconds(1))
    /// The capacity of `output` that is kept for the next request, in bytes.
    private static let keptMemory = 16 * 1024

    let transfer: Transfer
    /// The idle pool that holds this stream between two requests; not retained, because the pool retains the stream.
    private unowned let idleStreams: IdleStreams<HTTP1Stream>
    /// The same pool, retained if it may end before this stream. Its end breaks the cycle.
    private let boundPool: IdleStreams<HTTP1Stream>?
    /// The handle that libcurl connects with.
    private let easy: EasyHandle
    /// True if the connection passes a proxy.
    private let isProxied: Bool
    private let driver: CurlDriver
    private let loop: EventLoop
    private var connection: UpstreamConnection?
    private var machine = HTTP1ClientMachine()
    /// The bytes of the request to be sent; they contain secrets.
    private var output = ByteQueue()
    /// Received bytes not yet read.
    private var input = ByteQueue()
    /// Apart from the machine, as trailers come while the owner is asked for the body.
    private var chunks = ChunkedBody()
    private var continueTimer: LazyTimer?
    /// True if some of the current request may have left this machine.
    private(set) var hasSent = false
    private(set) var idleSince = LoopInstant.never

    /// Creates a stream on `connection`, which `easy` establishes.
    ///
    /// `driver` reports the result. `isBound`: `idleStreams` may end before the stream. `isUpgrade`: for a single
    /// request for another protocol.
    init(
        driver: CurlDriver, easy: EasyHandle, connection: UpstreamConnection, idleStreams: IdleStreams<HTTP1Stream>,
        isBound: Bool, isProxied: Bool, isUpgrade: Bool
    ) {
        transfer = Transfer(driver: driver)
        self.driver = driver
        self.easy = easy
        self.connection = connection
        self.idleStreams = idleStreams
        boundPool = isBound ? idleStreams : nil
        self.isProxied = isProxied
        loop = connection.loop
        transfer.isUpgrade = isUpgrade
        transfer.stream = self
    }

    deinit { continueTimer?.cancel() }

    // MARK: UpstreamStream

    var hasWaited: Bool { machine.hasWaited }

    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {
        let awaitsContinue = request.expectsContinue && request.hasBody
        if awaitsContinue { head.append(name: "Expect", value: "100-continue") }
        head.end(request.framing)
        head.take(into: &output)
        chunks.begin()
        hasSent = false
        transfer.mayMeetIdleTimeout = machine.mayMeetIdleTimeout(request)
        switch machine.begin(request.framing, awaitsContinue: awaitsContinue) {
        case .connect:
            guard let connection else { throw .failedInit }
            try connection.open(telling: self)
        case .send:
            sendHead()
            watch()
            // The owner has to learn that some of the body was taken, or that no more can be taken.
            if transfer.isEnqueued { driver.wake() }
        case .refuse:
            throw .failedInit
        }
    }

    func resumeReceiving() { advance() }

    func resumeSending() {
        guard machine.isRunning else { return }
        send()
        watch()
        settle()
    }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        guard chunks.append(name: name, value: value) else { throw .badFunctionArgument }
    }

    func failure(_ error: CurlError) -> TransferFailure {
        var failure = TransferFailure(error, of: easy, isProxied: isProxied)
        failure.mayNotBeTaken = machine.wasIgnored
        return failure
    }

    func release() {
        transfer.reset()
        idleStreams.put(self, now: loop.now)
    }

    func takeConnection() -> UpstreamConnection? {
        guard machine.hasSwitched, let connection else { return nil }
        self.connection = nil
        swap(&connection.received, &input)
        return connection
    }

    // MARK: Idle

    func becomeIdle(now: LoopInstant) -> Bool {
        guard let connection, machine.becomeIdle() else { return false }
        idleSince = now
        input.removeAll(keepingCapacity: 0)
        connection.watch(for: .read, handler: self)
        return true
    }

    /// Bytes that were received while idle answer no request and must not be read as the next answer (RFC 9112 §9.2). At
    /// its end the server may have closed the connection.
    var isFresh: Bool { machine.isIdle && connection?.isQuiet == true }

    func close() {
        machine.close()
        continueTimer?.disarm()
        output.erase()
        connection?.close()
        connection = nil
    }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) {
        switch machine.ready() {
        case .advance: advance()
        case .close:
            idleStreams.remove(self)
            close()
        case .nothing: break
        }
    }

    /// Continues after libcurl has connected, or has failed to.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard machine.isConnecting else { return }
        if let error {
            finish(error)
        } else if connection?.take() == true {
            // A value that was rejected meanwhile is not sent (CONTRIBUTING, rule 3).
            if transfer.meetsEndedSession() { withdraw() }
            if machine.connected() == .send { sendHead() }
            watch()
        } else {
            finish(.couldNotConnect)
        }
        driver.wake()
    }

    private func advance() {
        guard machine.isRunning else { return }
        if !output.isEmpty { send() }
        receive()
        // The bytes received may be the 100 that the body waited for.
        if output.isEmpty, machine.bodyToSend(of: transfer) != .nothing { send() }
        settle()
        watch()
    }

    /// Ends the request if both it and its answer are complete.
    private func settle() {
        switch machine.settle(isSent: transfer.upload.isComplete && output.isEmpty) {
        case .proceed: break
        case .finish: finish(nil)
        case .switchProtocol: connection?.watch(for: [], handler: self)
        }
        driver.wake()
    }

    /// Updates the events that the loop watches for; free of cost if they are unchanged.
    private func watch() {
        guard machine.isRunning, let connection else { return }
        let interest = machine.interest(isPaused: transfer.isPaused, hasOutput: !output.isEmpty)
        connection.watch(for: interest, handler: self)
    }

    /// Ends the request.
    private func finish(_ error: CurlError?) {
        continueTimer?.disarm()
        let isKept =
            error == nil && transfer.allowsAnotherRequest && output.isEmpty && input.isEmpty && !transfer.isUpgrade
        if machine.end(isKept: isKept) == .close { connection?.watch(for: [], handler: self) }
        transfer.end(error, isUnannounced: easy.endedUnannounced)
    }

    /// Ends a request of which nothing was sent. The connection is kept, so that the next try need not wait for a
    /// connection, during which its sessions could end again.
    private func withdraw() {
        output.erase()
        _ = machine.end(isKept: !transfer.isUpgrade)
        transfer.end(.abortedByCallback, isUnannounced: false)
    }

    // MARK: Sending

    /// Sends the head with the first bytes of the body. If none have arrived yet, holds the head until the end of this
    /// turn.
    private func sendHead() {
        if machine.awaitsContinue { beginWait() }
        fill()
        guard transfer.awaitsBody else { return send() }
        machine.holdHead()
        driver.hold(self)
    }

    /// Sends a held head without a body at the end of the turn.
    func sendHeld() {
        guard machine.isHeld else { return }
        send()
        watch()
    }

    /// Sends as much as the connection accepts.
    private func send() {
        guard let connection else { return }
        if machine.endHold() { fill() }
        hasSent = true
        do throws(UpstreamConnection.Broken) {
            while true {
                try connection.send(&output)
                // TLS must be retried with the same bytes: nothing is appended to the unsent rest.
                guard output.isEmpty, machine.bodyToSend(of: transfer) != .nothing else { break }
                fill()
                if output.isEmpty { break }
            }
        } catch {
            // The response to a request that is too long still counts if sent before the close.
            output.removeAll()
        }
        if output.isEmpty, machine.bodyToSend(of: transfer) == .nothing {
            output.wipe(keepingCapacity: Self.keptMemory)
        }
    }

    /// Appends the next piece of the body.
    private func fill() {
        let supply: BodySupply
        switch machine.bodyToSend(of: transfer) {
        case .nothing:
            return
        case .piece(let limit):
            supply = takePiece(upTo: limit, into: &output)
        case .chunk(let limit):
            // The chunk size comes before the data, and is known only after these are read.
            var piece = ByteQueue()
            supply = takePiece(upTo: limit, into: &piece)
            chunks.frame(piece, supply, to: &output)
        }
        if supply == .abort { finish(.abortedByCallback) }
    }

    private func takePiece(upTo limit: Int, into queue: inout ByteQueue) -> BodySupply {
        var supply = BodySupply.pause
        unsafe queue.withUnsafeFreeSpace(minimum: limit) { space in
            supply = unsafe transfer.supplyBody(into: UnsafeMutableRawBufferPointer(rebasing: space.prefix(limit)))
            if case .bytes(let count) = supply { return count }
            return 0
        }
        return supply
    }

    /// Starts the wait for 100 (RFC 9110 §10.1.1).
    private func beginWait() {
        if continueTimer == nil {
            let timer = LazyTimer(loop: loop)
            timer.onExpiry = { [unowned self] in
                if machine.endWait() { resumeSending() }
            }
            continueTimer = timer
        }
        continueTimer?.arm(at: loop.now + Self.longestWait)
    }

    // MARK: Receiving

    /// Receives and processes available bytes.
    private func receive() {
        guard machine.isRunning, feed(), let connection else { return }
        let idleStreams = idleStreams
        idleStreams.exchangeMemory(with: &input)
        defer { idleStreams.exchangeMemory(with: &input) }
        while machine.isRunning {
            switch try? connection.receive(into: &input, atMost: Self.piece) {
            case .bytes(let count):
                // With TLS more may be available although the descriptor is not readable.
                guard feed(), count == Self.piece || connection.isSecure else { return }
            case .nothing: return
            case .end: endInput()
            case nil: finish(.receiveError)
            }
        }
    }

    private func endInput() {
        switch machine.inputEnded() {
        case .finish: finish(nil)
        case .failWithinHead: finish(.weirdServerReply)
        case .failUnheard: finish(.gotNothing)
        }
    }

    /// Passes received bytes to the transfer. Returns true if more should be received.
    private func feed() -> Bool {
        while true {
            switch input.withSpan({ machine.read($0, into: transfer) }) {
            case .wait: return true
            case .takeInterim(let length, let endsWait):
                input.consume(length)
                if endsWait { continueTimer?.disarm() }
            case .takeHead(let length, _, let isUntilEnd):
                input.consume(length)
                if isUntilEnd { easy.watchClosure() }
            case .takeBody(let length): input.consume(length)
            case .stop: return false
            case .refuse:
                finish(.writeError)
                return false
            }
        }
    }

    // MARK: Not called by libcurl while it only connects

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .abort }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { attempt == 1 }
}
