// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
internal import HTTPWire

/// The owner of a transfer: an exchange, or a side request. Called on the loop's thread, never from within libcurl,
/// except for `supplyBody` and `mayResend`, which libcurl asks for in the middle of its own work.
package protocol TransferOwner: AnyObject {
    /// Interim responses have come; `transfer.takeInterims` hands them out.
    func transferHasInterims(_ transfer: Transfer)
    /// The final head is complete; `transfer.head` holds it, and `transfer.answer` what it says.
    func transferHasHead(_ transfer: Transfer)
    /// `transfer.body` holds something. What is left in it counts against the transfer's window.
    func transferHasBody(_ transfer: Transfer)
    /// The answer is whole and all of it has been told, but the transfer goes on: the request's body has not all been sent.
    func transferHasAll(_ transfer: Transfer)
    /// libcurl has taken some of the request's body, so that there may be room for more.
    func transferTookBody(_ transfer: Transfer)
    /// It is over, and everything that came of it has been told before. `nil`: a complete answer.
    func transferEnded(_ transfer: Transfer, error: CurlError?)
    /// The request's body, as much as fits.
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply
    /// libcurl found a reused connection dead before any byte of an answer and asks to send the request on another.
    func mayResend() -> Bool
}

/// A way to an upstream that carries one request after the other: HTTP/1.1 as we speak it ourselves, or what libcurl speaks.
///
/// The course of a request is noted in its `transfer`, which tells the owner in the loop's turn.
protocol UpstreamStream: AnyObject {
    /// The request under way, and its answer.
    var transfer: Transfer { get }
    /// True if the body has waited for 100 in vain, where it waits.
    var hasWaited: Bool { get }

    /// Sends a request. `head` holds all its fields but those that say how long its body is. Nothing is told from within this call.
    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError)
    /// There is more of the request's body.
    func resumeSending()
    /// There is room for more of the answer's body.
    func resumeReceiving()
    /// A field behind the request's body, before its end is told. Throws for what could be taken for two.
    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError)
    /// News is about to be told.
    func willTell()
    /// News was told, and the answer may still be on its way.
    func hasTold()
    /// All that is known of why the request failed.
    func failure(_ error: CurlError) -> TransferFailure
    /// The connection, after a 101, with what came behind it; it is the taker's to close. `nil` where there is none.
    func takeConnection() -> UpstreamConnection?
    /// The request is over, wherever it stands: another may be sent, or the connection ends.
    func release()
}

extension UpstreamStream {
    func willTell() {}
    func hasTold() {}
    func takeConnection() -> UpstreamConnection? { nil }
}
