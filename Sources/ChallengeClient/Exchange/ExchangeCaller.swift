// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPWire

/// The caller's side of an exchange: where its request comes from and its response goes. Called on the loop's thread.
package protocol ExchangeCaller: AnyObject {
    /// Writes the request's fields, without those that are hop-by-hop and those that `sessions` override, its cookies merged
    /// with those of `cookies`; asked again for each time that the request is sent.
    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    )
    /// The answer to a sub-request; `exchangeEnded` follows.
    func exchangeAuthorizes(_ answer: SubrequestAnswer)
    /// An interim response, well-formed, whose ranges mean `bytes` (RFC 9110 §15.2). More may follow, the final one will.
    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>)
    /// The response begins; `transfer.head` is the upstream's head, raw but well-formed, and `transfer.answer` what it says.
    func exchangeDelivers(headOf transfer: Transfer)
    /// The upstream has switched to another protocol, on `connection`, which is the caller's to close from now on; the
    /// exchange is over. `transfer.head` and `transfer.answer` are of the 101. Throws where that cannot be passed on; then
    /// nothing of it has gone to the caller, and the connection is not the caller's.
    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError)
    /// More of the response's body, in `transfer.body`. What is left there is offered again after
    /// `Exchange.resumeResponse`. The exchange must not be cancelled from within.
    func exchangeDelivers(bodyOf transfer: Transfer)
    /// The response's body is complete, and fields came behind it: `transfer.forEachTrailer`.
    func exchangeDelivers(trailersOf transfer: Transfer)
    /// The response is complete, but the exchange goes on: the request's body still goes upstream.
    func exchangeHasAll()
    /// The exchange is over and the response complete.
    func exchangeEnded()
    /// There will be no response from upstream: answer locally.
    func exchangeFailed(_ error: ExchangeError)
    /// The response ends in its middle: it must not look complete.
    func exchangeBroke(_ error: ExchangeError)
    /// The request's body is wanted, for the first time or again: there is room for more of it, and a caller who waits for 100
    /// is to be told so.
    func exchangeWantsBody()
    /// The caller's uid, asked of the kernel where that is not done yet; `nil` where it does not tell.
    var callerUser: UInt32? { get }
}

extension ExchangeCaller {
    /// Only some ask for it.
    package func exchangeAuthorizes(_ answer: SubrequestAnswer) {}
}
