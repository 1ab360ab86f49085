// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
internal import HTTPWire

/// The owner of a transfer: an exchange, or a side request. Called on the loop's thread.
///
/// Never called from within libcurl, except for `supplyBody`, `mayResend` and `carriesEndedSession`, which libcurl needs at once.
package protocol TransferOwner: AnyObject {
    /// Reports interim responses, available from `transfer.takeInterims`.
    func transferHasInterims(_ transfer: Transfer)
    /// Reports the final head: raw in `transfer.head`, parsed in `transfer.answer`.
    func transferHasHead(_ transfer: Transfer)
    /// Reports bytes in `transfer.body`. Those left there count against the transfer's window.
    func transferHasBody(_ transfer: Transfer)
    /// Reports a complete answer while the request's body is still being sent.
    func transferHasAll(_ transfer: Transfer)
    /// Reports that some of the request's body was taken. There may be room for more.
    func transferTookBody(_ transfer: Transfer)
    /// Reports the end, after all other events. `nil` for a complete answer.
    func transferEnded(_ transfer: Transfer, error: CurlError?)
    /// Supplies the request's body, as much as fits.
    func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply
    /// Returns true if the request may be sent again after a reused connection was dead.
    func mayResend() -> Bool
    /// Returns true if a session of the request has ended since its fields were written.
    func carriesEndedSession() -> Bool
}

extension TransferOwner {
    /// Returns false: no session.
    package func carriesEndedSession() -> Bool { false }
}

/// A channel to an upstream for one request after the other, with or without libcurl.
///
/// The course of a request is recorded in its `transfer`, which notifies the owner in the loop's turn.
protocol UpstreamStream: AnyObject {
    /// The request under way, and its answer.
    var transfer: Transfer { get }
    /// True if the wait of the body for 100 has expired.
    var hasWaited: Bool { get }
    /// True if some of the request may have left this machine.
    var hasSent: Bool { get }

    /// Sends a request. `head` holds all fields except the body's framing. The owner is not called from within.
    func start(_ request: ExchangeRequest, head: FieldSink, target: borrowing ByteQueue) throws(CurlError)
    /// Resumes sending after more of the request's body has come.
    func resumeSending()
    /// Resumes receiving after there is room for more of the answer's body.
    func resumeReceiving()
    /// Appends a trailer before the body's end is reported. Throws for a field that could be read as two.
    func appendTrailer(name: Span<UInt8>, value: Span<UInt8>) throws(CurlError)
    /// Called before the owner is notified.
    func willNotify()
    /// Called after the owner was notified, if the answer may still be on its way.
    func didNotify()
    /// Returns the details of a failed request.
    func failure(_ error: CurlError) -> TransferFailure
    /// Returns the connection after a 101, with the bytes after the head, or `nil`. The caller has to close it.
    func takeConnection() -> UpstreamConnection?
    /// Releases the request in any state: another may be sent, or the connection is closed.
    func release()
}

extension UpstreamStream {
    func willNotify() {}
    func didNotify() {}
    func takeConnection() -> UpstreamConnection? { nil }
}
