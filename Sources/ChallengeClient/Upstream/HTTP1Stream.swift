// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import EventLoop
internal import HTTPWire

/// HTTP/1.1 spoken by ourselves, in libcurl's place, on a connection that libcurl has made: for one request after the other.
///
/// libcurl sets up and takes down a whole transfer for each request, which costs more than all the rest of an exchange; here a
/// request is one `send`, one `recv`, and nothing to register. An `HTTP1ClientMachine` decides; this carries it out.
///
/// It also takes requests for another protocol (RFC 9110 §7.8). After a 101 there is no HTTP any more: then
/// `takeConnection` hands the connection over.
final class HTTP1Stream: UpstreamStream, TransferDelegate, ReadinessHandler {
    /// The most that is received at once, in bytes.
    private static let piece = 32 * 1024
    /// The time for which the body waits for the upstream's word.
    private static let longestWait = LoopDelay(.seconds(1))
    /// The memory of `output` that is kept for the next request, in bytes at most.
    private static let keptMemory = 16 * 1024

    let transfer: Transfer
    /// The connections that rest, this one between two requests; not retained, as they hold this one then.
    private unowned let rest: RestingStreams
    /// The handle that libcurl connects with.
    private let easy: EasyHandle
    /// True if there is a proxy on the way.
    private let isProxied: Bool
    private let driver: CurlDriver
    private let loop: EventLoop
    private var connection: UpstreamConnection?
    private var machine = HTTP1ClientMachine()
    /// The bytes of the request that are to be sent; they hold secrets.
    private var output = ByteQueue()
    /// The bytes that have come and were not read yet.
    private var input = ByteQueue()
    /// Apart from the machine, as trailer fields come while the owner is asked for the body.
    private var chunks = ChunkedBody()
    private var continueTimer: LazyTimer?
    /// The moment since which it rests.
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

    // MARK: UpstreamStream

    var hasWaited: Bool { machine.hasWaited }

    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {
        let awaitsContinue = request.expectsContinue && request.hasBody
        if awaitsContinue { head.append(name: "Expect", value: "100-continue") }
        head.end(request.framing)
        head.take(into: &output)
        chunks.begin()
        let isReused = machine.isResting
        transfer.mayMeetIdleTimeout = isReused && request.mayGoAgain
        switch machine.begin(request.framing, awaitsContinue: awaitsContinue) {
        case .connect:
            guard let connection else { throw .failedInit }
            try connection.open(telling: self)
        case .send:
            sendHead()
            watch()
            // The owner is to hear that some of the body was taken, or that none can be.
            if transfer.hasNews { driver.wake() }
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
        rest.put(self, now: loop.now)
    }

    func takeConnection() -> UpstreamConnection? {
        guard machine.hasSwitched, let connection else { return nil }
        self.connection = nil
        swap(&connection.received, &input)
        return connection
    }

    // MARK: Rest

    /// Goes to rest after a request. Returns whether the connection can take another.
    func goToRest(now: LoopInstant) -> Bool {
        guard let connection, machine.rest() else { return false }
        restingSince = now
        input.removeAll(keepingCapacity: 0)
        connection.watch(for: .read, handler: self)
        return true
    }

    /// True if the connection can take a request: nothing has come while it rested. What came answers no request and must
    /// not be taken for the answer to the next one (RFC 9112 §9.2); and at its end a server may have closed it.
    var isFresh: Bool { machine.isResting && connection?.isQuiet == true }

    /// Ends it in any state, with its connection.
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
            rest.remove(self)
            close()
        case .nothing: break
        }
    }

    /// libcurl has connected, or has failed to.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard machine.isConnecting else { return }
        if let error {
            finish(error)
        } else if connection?.take() == true {
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
        // What came may be the word that the body has waited for.
        if output.isEmpty, machine.bodyToSend(of: transfer) != .nothing { send() }
        settle()
        watch()
    }

    /// Ends the request when both it and its answer are whole.
    private func settle() {
        switch machine.settle(isSent: transfer.upload.isComplete && output.isEmpty) {
        case .goOn: break
        case .finish: finish(nil)
        case .switchProtocol: connection?.watch(for: [], handler: self)
        }
        driver.wake()
    }

    /// Has the loop tell of what is waited for; costs nothing if that is the same as before.
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

    // MARK: Sending

    /// Sends the head, and the body after it as far as it is here. If none of it is here yet, the head waits for it until the
    /// end of this turn of the loop.
    private func sendHead() {
        if machine.awaitsContinue { beginWait() }
        fill()
        guard transfer.awaitsBody else { return send() }
        machine.holdHead()
        driver.hold(self)
    }

    /// The turn ends: a head that waited for the body goes without it.
    func sendHeld() {
        guard machine.isHeld else { return }
        send()
        watch()
    }

    /// Sends what the connection takes.
    private func send() {
        guard let connection else { return }
        if machine.endHold() { fill() }
        do throws(UpstreamConnection.Broken) {
            while true {
                try connection.send(&output)
                // What was begun over TLS comes again as it was: nothing is added to what is left.
                guard output.isEmpty, machine.bodyToSend(of: transfer) != .nothing else { break }
                fill()
                if output.isEmpty { break }
            }
        } catch {
            // What it says before it closes still counts: the request may be too much for it.
            output.removeAll()
        }
        if output.isEmpty, machine.bodyToSend(of: transfer) == .nothing {
            output.wipe(keepingCapacity: Self.keptMemory)
        }
    }

    /// Appends what comes next of the body.
    private func fill() {
        let supply: BodySupply
        switch machine.bodyToSend(of: transfer) {
        case .nothing:
            return
        case .piece(let limit):
            supply = takePiece(upTo: limit, into: &output)
        case .chunk(let limit):
            // The size of a chunk, which stands before its data, is known when those are there.
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

    /// The head goes out, and the body waits for 100 (RFC 9110 §10.1.1).
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

    /// Takes what has come.
    private func receive() {
        guard machine.isRunning, feed(), let connection else { return }
        let rest = rest
        rest.exchangeMemory(with: &input)
        defer { rest.exchangeMemory(with: &input) }
        while machine.isRunning {
            switch try? connection.receive(into: &input, atMost: Self.piece) {
            case .bytes(let count):
                // Over TLS more may wait although the descriptor is not readable.
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

    /// Feeds the transfer with what is here. Returns whether more is to be received.
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

    // MARK: What libcurl does not ask while it only connects

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .abort }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { attempt == 1 }
}
