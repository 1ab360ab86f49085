// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Answers the requests of one connection in order: forwards them, or answers by itself.
protocol Service: AnyObject {
    /// Begins a request, whose head the connection has.
    func begin()
    /// Answers the present request with a local reply, also if its head cannot be read.
    func refuse(_ reply: LocalReply)
    /// True if more of the request's body is wanted.
    var wantsBody: Bool { get }
    /// Receives a part of the request's body.
    func receiveBody(_ bytes: Span<UInt8>)
    /// Receives a field after the body. Its ranges refer to `bytes`.
    func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>)
    /// Receives the end of the request's body.
    func receiveBodyEnd()
    /// Resumes the response, because the output has room again.
    func resumeResponse()
    /// Cancels the present request. `isAnswered`: its response is complete.
    func cancel(isAnswered: Bool)
    /// Ends the present request.
    func requestEnded()
    /// Releases all resources, when the connection closes or becomes quiet. Nothing is called afterwards.
    func close()
    /// Ends the service of a connection that became a tunnel, which still counts as its exchange.
    func becomeTunnel()
    /// The exchange of the present request, if there is one.
    var exchange: Exchange? { get }
    /// Returns the request that an access log shows for the present one.
    func loggedRequest(_ request: RequestHead, in bytes: Span<UInt8>) -> RequestHead
}

extension Service {
    var wantsBody: Bool { false }
    func receiveBody(_ bytes: Span<UInt8>) {}
    func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>) {}
    func receiveBodyEnd() {}
    func resumeResponse() {}
    func cancel(isAnswered: Bool) {}
    func requestEnded() {}
    func close() {}
    func becomeTunnel() {}
    var exchange: Exchange? { nil }
    func loggedRequest(_ request: RequestHead, in bytes: Span<UInt8>) -> RequestHead { request }
}

/// A caller's connection as its service sees it.
protocol ServedConnection: AnyObject {
    var caller: AcceptedCaller { get }
    /// Lends the present request and the bytes that its ranges refer to. The head is read in place, so `body` must not call
    /// mutating members of the connection: access is exclusive.
    func withRequest<Result, Failure: Error>(
        _ body: (_ request: RequestHead, _ bytes: Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result
    /// The access record under way; `nil` if no log wants one.
    var accessBuilder: AccessRecordBuilder? { get }
    /// Adds a local reply to the access record. Begins the record if the head could not be read.
    func recordAccess(_ reply: LocalReply, id: ExchangeID, upstream: String?)

    // MARK: Answers of our own

    /// Answers with `answer`, after a request's body that is short enough to be discarded.
    func deliver(_ answer: LocalAnswer)
    /// Answers once the data of `answer` is there, or after its timeout.
    func deliver(_ answer: LaterAnswer)

    // MARK: Responses of the service

    /// Accepts the request: the service takes the body and writes the response.
    func accept()
    /// Ends the connection after the present request.
    func endAfterRequest()
    /// Returns true if the connection may be kept after a response with that status.
    func keepsAlive(after status: Int) -> Bool
    /// Returns true if the connection may be kept after a complete response that is written now.
    func writesWholeResponse() -> Bool
    /// Records that the head of the response is written.
    func responseBegan(keepsAlive: Bool, endsWithConnection: Bool)
    /// Records that the response is written completely.
    func responseIsWhole()
    /// Lends the output, which is sent at the end of the turn.
    func write(_ body: (inout ByteQueue) -> Void)
    /// Reads more of the body, and sends a 100 to a caller who waits for one (RFC 9110 §10.1.1).
    func bodyIsWanted()
    /// Records that the upstream's own 100 is written.
    func continueIsPassedOn()
    /// Ends the present request. `isBroken`: its response is incomplete.
    func requestEnded(isBroken: Bool)
    /// Sends as much as possible at once, and resets the connection.
    func reset()
    /// Turns the connection into a tunnel to `upstream`, after the 101 is written.
    func switchProtocol(to upstream: UpstreamConnection)
}
