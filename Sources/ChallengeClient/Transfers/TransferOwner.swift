// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl

/// What a transfer works for: an exchange, or a side request. Called on the loop's thread, never from within libcurl,
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
