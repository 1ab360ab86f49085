// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Answers the requests of one connection, one after the other: forwards them, or has an answer of its own.
protocol Service: AnyObject {
    /// Begins with a request, whose head the connection has.
    func begin()
    /// Answers the present request with a local reply, be it one whose head cannot be read.
    func refuse(_ reply: LocalReply)
    /// True if more of the request's body is wanted.
    var wantsBody: Bool { get }
    /// More of the request's body has come.
    func receiveBody(_ bytes: Span<UInt8>)
    /// A field came behind the body; its ranges mean `bytes`.
    func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>)
    /// The request's body is complete.
    func receiveBodyEnd()
    /// The output has room for more of the response.
    func resumeResponse()
    /// The present request is given up. `isAnswered`: its response is whole.
    func cancel(isAnswered: Bool)
    /// The present request is over.
    func requestEnded()
    /// The connection closes, or needs no service for a while. Nothing is called after that.
    func close()
    /// The connection is a tunnel's from now on, which counts as the exchange that it was.
    func becomeTunnel()
    /// The exchange of the present request, if it runs one.
    var exchange: Exchange? { get }
    /// The request that an access log is to show for the present one.
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

/// A caller's connection as a service sees it: the present request, and all that may be done about it.
protocol ServedConnection: AnyObject {
    var caller: AcceptedCaller { get }
    /// Lends the present request, and the bytes that its ranges mean. The head is read in place, not copied, so `body` may not
    /// call what tells the connection something: that is exclusive.
    func withRequest<Result, Failure: Error>(
        _ body: (_ request: RequestHead, _ bytes: Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result
    /// The notes for the access log; `nil` if there is none.
    var accessNote: AccessNote? { get }
    /// Notes what an access log says of a local reply, and the request, where its head cannot be read.
    func noteAccess(_ reply: LocalReply, id: ExchangeID, upstream: String?)

    // MARK: Answers of our own

    /// Answers with `answer`, after the request's body where that is short enough to be read over.
    func deliver(_ answer: LocalAnswer)
    /// Answers when that is there which `answer` waits for, or when it has waited long enough.
    func deliver(_ answer: LaterAnswer)

    // MARK: Responses of the service

    /// The service takes the body, and answers as it goes along.
    func accept()
    /// No request follows the present one.
    func endAfterRequest()
    /// Returns whether the connection may be kept after a response of that status.
    func keepsAlive(after status: Int) -> Bool
    /// Returns whether the connection may be kept after a whole response that is written now.
    func writesWholeResponse() -> Bool
    /// The head of the response is written.
    func responseBegan(keepsAlive: Bool, endsWithConnection: Bool)
    /// The response is written whole.
    func responseIsWhole()
    /// Lends the output, which is written at the end of the turn.
    func write(_ body: (inout ByteQueue) -> Void)
    /// More of the body is wanted: reads on, and tells a caller who waits for that (RFC 9110 §10.1.1).
    func bodyIsWanted()
    /// The upstream's own 100 is written.
    func continueIsPassedOn()
    /// The present request is over. `isBroken`: its response ends in its middle.
    func requestEnded(isBroken: Bool)
    /// Writes what can be written at once, and resets the connection.
    func reset()
    /// The 101 is written: what follows is between the caller and `upstream`.
    func switchProtocol(to upstream: UpstreamConnection)
}
