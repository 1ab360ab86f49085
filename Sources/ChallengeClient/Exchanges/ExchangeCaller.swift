// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
internal import HTTPWire

/// The caller's side of an exchange: where its request comes from and its response goes. Called on the loop's thread.
package protocol ExchangeCaller: AnyObject {
    /// Writes the request's fields, without those that are hop-by-hop and those that `sessions` override; asked again
    /// for each time that the request is sent.
    func writeFields(into fields: HeaderList, overriddenBy sessions: SessionFields) throws(CurlError)
    /// The response begins; `transfer.head` is the upstream's head, raw but well-formed, and `transfer.answer` what it says.
    func exchangeDelivers(headOf transfer: Transfer)
    /// More of the response's body, in `transfer.body`. What is left there is offered again after
    /// `Exchange.resumeResponse`. The exchange must not be cancelled from within.
    func exchangeDelivers(bodyOf transfer: Transfer)
    /// The response is complete, but the exchange goes on: the request's body still goes upstream.
    func exchangeHasAll()
    /// The exchange is over and the response complete.
    func exchangeEnded()
    /// There will be no response from upstream: answer locally.
    func exchangeFailed(_ error: ExchangeError)
    /// The response ends in its middle: it must not look complete.
    func exchangeBroke(_ error: ExchangeError)
    /// There is room for more of the request's body again.
    func exchangeWantsBody()
}
