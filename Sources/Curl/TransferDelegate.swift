// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a transfer asks and tells while libcurl works on it. All of it is called from within a call to the multi handle
/// or `EasyHandle.unpause`, on the same thread, and must not call either of them: take note and act afterwards.
package protocol TransferDelegate: AnyObject {
    /// A line of a response's head, as it came, with its line ending: status line, fields, the empty line at the end.
    /// Several heads may come (100, authentication that libcurl does itself); trailers come last. False aborts.
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool
    /// A piece of the response's body.
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition
    /// Room for the next piece of the request's body.
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply
    /// The body has to be sent again from `offset`. False: it cannot, and the transfer fails.
    func transferRewinds(to offset: Int64) -> Bool
    /// A connection is there and the request is about to be sent. `attempt` counts from 1 how often it was sent without
    /// any answer: libcurl sends it again by itself when a connection that it took up again turns out to be dead.
    /// False aborts (`CurlError.abortedByCallback`): a request that must not be doubled is refused its second attempt.
    func transferWillSend(attempt: Int) -> Bool
    /// The transfer has ended. It is told by whoever takes completions from the multi handle, not by libcurl.
    func transferEnded(_ handle: EasyHandle, error: CurlError?)
}

/// What became of a piece of a response's body.
package enum BodyDisposition: Sendable {
    /// It does not want the rest: the transfer fails with `CurlError.writeError`.
    case abort
    /// It was taken.
    case consumed
    /// There is no room now: the piece was not taken and will come again after `EasyHandle.unpause`.
    case pause
}

/// What there is of a request's body.
package enum BodySupply: Sendable, Equatable {
    /// Nothing good: the transfer fails with `CurlError.abortedByCallback`.
    case abort
    /// So many bytes, at least one, were put into the buffer.
    case bytes(Int)
    /// The body is complete.
    case end
    /// Nothing at the moment; libcurl asks again after `EasyHandle.unpause`.
    case pause
}
