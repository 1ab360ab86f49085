// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Callbacks of a transfer while libcurl works on it.
///
/// All of them are called from within a call to the multi handle or `EasyHandle.unpause`, on the same thread, and must
/// not call either: record the event and act afterwards.
package protocol TransferDelegate: AnyObject {
    /// Receives a line of a response head, with its line ending; returns false to abort.
    ///
    /// Status line, fields, and the empty line at the end. Several heads may arrive (100, authentication by libcurl
    /// itself); trailers come last.
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool
    /// Receives a piece of the response's body.
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition
    /// Writes the next piece of the request's body into `buffer`.
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply
    /// Rewinds the request's body to `offset`; returns false if that is impossible, which fails the transfer.
    func transferRewinds(to offset: Int64) -> Bool
    /// Approves sending the request on a connection; returns false to abort.
    ///
    /// `attempt` counts from 1 how often the request was sent without any response: libcurl sends the request again
    /// when a reused connection turns out to be dead. Refusing (`CurlError.abortedByCallback`) the second attempt
    /// prevents a request from being executed twice.
    func transferWillSend(attempt: Int) -> Bool
    /// Receives the end of the transfer, from the code that fetches completions, not from libcurl.
    func transferEnded(_ handle: EasyHandle, error: CurlError?)
}

/// Result of delivering a piece of a response's body.
package enum BodyDisposition: Sendable {
    /// Abort: the transfer fails with `CurlError.writeError`.
    case abort
    /// The piece was consumed.
    case consumed
    /// No room now: the piece was not consumed, and comes again after `EasyHandle.unpause`.
    case pause
}

/// Available part of a request's body.
package enum BodySupply: Sendable, Equatable {
    /// Abort: the transfer fails with `CurlError.abortedByCallback`.
    case abort
    /// Number of bytes written into the buffer, at least one.
    case bytes(Int)
    /// The body is complete.
    case end
    /// No bytes at present; libcurl asks again after `EasyHandle.unpause`.
    case pause
}
