// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import EventLoop
internal import HTTPWire

/// A request for another protocol on its way (RFC 9110 section 7.8), in libcurl's place: it has libcurl connect, speaks
/// HTTP/1.1 itself, and feeds what comes into a `Transfer` as libcurl would. So everything that an exchange does with a
/// response (examination, logins, replay, time limits) is the same.
///
/// After a 101 there is no HTTP any more: then `takeConnection` hands the connection over.
final class Handshake: TransferDelegate, ReadinessHandler {
    /// What is read at once, in bytes.
    private static let piece = 16_384

    /// Not retained, as it holds this one.
    private unowned let transfer: Transfer
    private var connection: UpstreamConnection?
    private var output = ByteQueue()
    private var input = ByteQueue()
    /// How far the line that comes has been searched for its end.
    private var searched = 0
    private var isConnected = false
    /// Whether the final head was a 101.
    private var hasSwitched = false
    private var isOver = false

    init(transfer: Transfer, connection: UpstreamConnection) {
        self.transfer = transfer
        self.connection = connection
    }

    /// Begins. `transfer.fields` holds all fields of the request but those that `TransferShape` adds.
    func start(_ request: ExchangeRequest, target: borrowing ByteQueue) throws(CurlError) {
        try writeHead(request, target: target)
        try connection?.open(telling: self)
    }

    /// The transfer has room for more of the body.
    func resume() { advance() }

    /// The connection, after a 101, with what came behind it; it is the taker's to close. Nil where there is none.
    func takeConnection() -> UpstreamConnection? {
        guard hasSwitched, let connection else { return nil }
        self.connection = nil
        swap(&connection.received, &input)
        return connection
    }

    /// Ends it wherever it stands, with its connection.
    func close() {
        isOver = true
        output.erase()
        connection?.close()
        connection = nil
    }

    // MARK: The request

    private func writeHead(_ request: ExchangeRequest, target: borrowing ByteQueue) throws(CurlError) {
        let name = request.method == .other ? request.otherMethod : request.method.name
        // At once, so that no part of a secret stays behind in memory that was outgrown.
        output.reserve(transfer.fields.byteCount + target.count + 256)
        var isGood = target.withSpan { RequestWriter.requestLine(name.utf8.span, $0, to: &output) }
        transfer.fields.forEachField { name, value in
            isGood = RequestWriter.field(name, value, to: &output) && isGood
        }
        guard isGood else { throw .badFunctionArgument }
        RequestWriter.endOfHead(to: &output)
        transfer.fields.reset()
    }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) { advance() }

    /// libcurl has connected, or has failed to.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard !isOver else { return }
        if let error {
            finish(error)
        } else if connection?.take() == true {
            isConnected = true
            advance()
        } else {
            finish(.couldNotConnect)
        }
        transfer.driver.wake()
    }

    private func advance() {
        guard isConnected, !isOver, !hasSwitched, let connection else { return }
        do throws(UpstreamConnection.Broken) {
            if !output.isEmpty {
                try connection.send(&output)
                if output.isEmpty { output.erase() }
            }
        } catch {
            // What it says before it closes still counts: the request may be too much for it.
            output.erase()
        }
        let wantsInput = receive()
        transfer.driver.wake()
        guard !isOver else { return }
        var interest: Interest = []
        if wantsInput { interest.insert(.read) }
        if !output.isEmpty { interest.insert(.write) }
        connection.watch(for: interest, handler: self)
    }

    // MARK: The response

    /// Takes what has come. Returns whether more is wanted when it comes.
    private func receive() -> Bool {
        while feed() {
            guard let connection else { return false }
            var outcome: UpstreamConnection.Received?
            unsafe input.withUnsafeFreeSpace(minimum: Self.piece) { space in
                let space = unsafe UnsafeMutableRawBufferPointer(rebasing: space.prefix(Self.piece))
                outcome = try? unsafe connection.receive(into: space)
                if case .bytes(let count) = outcome { return count }
                return 0
            }
            switch outcome {
            case .bytes: continue
            case .nothing: return true
            case .end where transfer.isHeadComplete: finish(nil)
            case .end: finish(transfer.head.isEmpty && input.isEmpty ? .gotNothing : .receiveError)
            case nil: finish(.receiveError)
            }
        }
        return false
    }

    /// Feeds the transfer with what is there: the head line by line, the body as it comes. Returns whether it takes more.
    private func feed() -> Bool {
        while !isOver, !hasSwitched {
            guard transfer.isHeadComplete else {
                if feedLine() { continue }
                return !isOver
            }
            if transfer.answer.status == 101 {
                hasSwitched = true
            } else if transfer.answerBody.isWhole {
                finish(nil)
            } else if input.isEmpty {
                return true
            } else {
                switch unsafe input.withUnsafeBytes({ unsafe transfer.transferReceived(body: $0) }) {
                case .consumed: input.removeAll()
                case .pause: return false
                case .abort: finish(.writeError)
                }
            }
        }
        return false
    }

    /// False where no whole line is there, or the transfer does not take it.
    private func feedLine() -> Bool {
        let lineFeed = input.withSpan { bytes in (searched..<bytes.count).first { bytes[$0] == UInt8(ascii: "\n") } }
        guard let lineFeed else {
            searched = input.count
            // The transfer says when a head is too long, but sees no line that has no end.
            if input.count > Transfer.headLimit {
                transfer.fault = WireError(upstream: .headTooLarge)
                finish(.writeError)
            }
            return false
        }
        searched = 0
        let length = lineFeed + 1
        let isTaken = unsafe input.withUnsafeBytes { bytes in
            unsafe transfer.transferReceived(headerLine: UnsafeRawBufferPointer(rebasing: bytes.prefix(length)))
        }
        input.consume(length)
        if !isTaken { finish(.writeError) }
        return isTaken
    }

    private func finish(_ error: CurlError?) {
        isOver = true
        connection?.watch(for: [], handler: self)
        transfer.transferEnded(transfer.easy, error: error)
    }

    // MARK: What libcurl does not ask while it only connects

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .abort }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { attempt == 1 }
}
