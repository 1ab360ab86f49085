// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import HTTPWire

@testable import ChallengeClient

/// Stream without a connection. It records what is sent, and answers as the test says.
final class FakeStream: UpstreamStream {
    let transfer: Transfer
    /// The head that was sent, with the framing's fields.
    private(set) var head = ""
    /// Part of the request's body that was taken.
    private(set) var body = ""
    private(set) var trailers: [String] = []
    /// True if all of the body was taken.
    private(set) var isBodyComplete = false
    /// True if the body could not be read.
    private(set) var isBodyBroken = false
    /// True if the exchange has let go of it.
    private(set) var isReleased = false
    private(set) var resumedReceiving = 0
    /// True if the body is taken as soon as it comes.
    var takesBody = true
    var hasWaited = false
    /// True once the request is sent, unless the test makes the connection fail.
    var hasSent = false
    var isUnreachable = false
    /// True if its connection had ended before the request came.
    var isStale = false

    init(driver: CurlDriver) {
        transfer = Transfer(driver: driver)
        transfer.stream = self
    }

    // MARK: What the exchange does

    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError) {
        if request.expectsContinue, request.hasBody { head.append(name: "Expect", value: "100-continue") }
        head.end(request.framing)
        var bytes = ByteQueue()
        head.take(into: &bytes)
        self.head = bytes.text
        hasSent = !isUnreachable
        if request.hasBody, takesBody, !request.expectsContinue { takeBody() }
    }

    func resumeSending() {
        if takesBody { takeBody() }
    }

    func resumeReceiving() { resumedReceiving += 1 }

    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError) {
        trailers.append("\(name.text(.all(of: name))): \(value.text(.all(of: value)))")
    }

    func failure(_ error: CurlError) -> TransferFailure {
        var failure = TransferFailure(error)
        failure.mayNotBeTaken = isStale
        return failure
    }

    func release() {
        isReleased = true
        transfer.reset()
    }

    // MARK: What the upstream does

    /// Takes the available bytes of the body, at most `most`.
    func takeBody(atMost most: Int = .max) {
        var space = [UInt8](repeating: 0, count: 16 * 1024)
        var left = most
        while left > 0 {
            let count = min(left, space.count)
            let supply = unsafe space.withUnsafeMutableBytes {
                unsafe transfer.supplyBody(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<count]))
            }
            switch supply {
            case .bytes(let count):
                body += String(decoding: space[..<count], as: UTF8.self)
                left -= count
                continue
            case .pause: break
            case .end: isBodyComplete = true
            case .abort: isBodyBroken = true
            }
            break
        }
        transfer.driver.wake()
    }

    /// Answers with a complete head, final or interim, and then `body`.
    func answer(_ status: String, _ fields: String..., body: String = "") {
        let head =
            Array(
                ([
                    "HTTP/1.1 \(status)"
                ] + fields).map { $0 + "\r\n" }.joined().utf8) + [13, 10]
        _ = unsafe head.withUnsafeBytes { unsafe transfer.head.append($0, upTo: Transfer.headLimit) }
        switch transfer.scanHead() {
        case .interim: break
        case .final: transfer.beginBody()
        case .refused: return end(.writeError)
        }
        if body.isEmpty { transfer.driver.wake() } else { send(body) }
    }

    /// Answers with `Content-Length`, and ends the transfer.
    func answerWhole(_ status: String, _ fields: String..., body: String = "") {
        answer(status, (fields + ["Content-Length: \(body.utf8.count)"]).joined(separator: "\r\n"), body: body)
        if transfer.owner != nil, transfer.upload.isComplete { end() }
    }

    /// Sends more of the answer's body.
    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe transfer.take(body: $0) }
        transfer.driver.wake()
    }

    /// Ends the transfer.
    func end(_ error: CurlError? = nil) {
        transfer.end(error, isUnannounced: false)
        transfer.driver.wake()
    }
}

/// Source of fake streams, kept in the order in which the exchange requests them.
final class FakeStreams: StreamSource {
    private let driver: CurlDriver
    private(set) var all: [FakeStream] = []
    /// Sets up each new stream.
    var prepare: (FakeStream) -> Void = { _ in }

    init(driver: CurlDriver) { self.driver = driver }

    func stream(
        for request: ExchangeRequest, on connections: ConnectionUse, sessions: SessionFields
    ) throws(CurlError) -> any UpstreamStream {
        let stream = FakeStream(driver: driver)
        prepare(stream)
        all.append(stream)
        return stream
    }

    func stream(
        for request: ExchangeRequest, returningTo handshake: IdleStreams<HTTP1Stream>
    ) throws(CurlError) -> any UpstreamStream { try stream(for: request, on: .own, sessions: .none) }

    func endOutdated(by gate: SharedAttemptGate, now: Int64) {}
    func closeBound() {}
    func close() {}
    func successor(for plan: UpstreamPlan) -> any StreamSource { self }
}

extension ByteRange {
    static func all(of bytes: Span<UInt8>) -> ByteRange { ByteRange(start: 0, end: bytes.count) }
}

/// Caller without a connection. It records its events in order.
final class FakeCaller: ExchangeCaller {
    private(set) var events: [String] = []
    /// The error that ended the exchange.
    private(set) var error: ExchangeError?
    /// Further fields of its requests.
    var fields: [(name: StaticString, value: String)] = []
    /// The head of the last response.
    private(set) var head = ""
    /// True if it accepts pieces of the body.
    var takesBody = true
    let identity: CallerIdentity? = .user(1000)

    func writeFields(into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?) {
        fields.append(name: "Host", value: "bank")
        for field in self.fields { fields.append(name: field.name, value: field.value) }
        cookies?.write(mergedWith: [], to: fields)
    }

    /// Returns and removes the events since the last call.
    func takeEvents() -> [String] {
        defer { events = [] }
        return events
    }

    func exchangeAuthorizes(_ answer: AuthRequestAnswer) {
        var names: [String] = []
        answer.forEachField { name, _ in names.append(name.text(.all(of: name))) }
        events.append("fields \(names.joined(separator: ", ")) for \(answer.lifetime) s")
    }

    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) { events.append("interim \(head.status)") }
    func exchangeDelivers(headOf transfer: Transfer) {
        head = transfer.head.text
        events.append("head \(transfer.answer.status)")
    }

    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        events.append("switched")
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        guard takesBody else { return }
        events.append("body \(transfer.body.text)")
        transfer.body.removeAll()
    }

    func exchangeDelivers(trailersOf transfer: Transfer) { events.append("trailers") }
    func exchangeHasAll() { events.append("whole") }
    func exchangeEnded() { events.append("ended") }

    func exchangeFailed(_ error: ExchangeError) {
        self.error = error
        events.append("failed \(error.kind)")
    }

    func exchangeBroke(_ error: ExchangeError) {
        self.error = error
        events.append("broke \(error.kind)")
    }

    func exchangeWantsBody() { events.append("wants body") }
}
