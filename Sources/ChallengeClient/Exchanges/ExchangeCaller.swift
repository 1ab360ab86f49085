// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
package import HTTPWire

/// The caller's side of an exchange: where its request comes from and its response goes. Called on the loop's thread.
package protocol ExchangeCaller: AnyObject {
    /// Writes the request's fields, without those that are hop-by-hop and those that `sessions` override; asked again
    /// for each time that the request is sent.
    func writeFields(into fields: HeaderList, overriddenBy sessions: SessionFields) throws(CurlError)
    /// The response begins; `transfer.head` is the upstream's head, raw. Throws where it cannot be passed on; then
    /// nothing of it has gone to the caller.
    func exchangeDelivers(headOf transfer: Transfer) throws(WireError)
    /// More of the response's body, in `transfer.body`. What is left there is offered again after
    /// `Exchange.resumeResponse`. The exchange must not be cancelled from within.
    func exchangeDelivers(bodyOf transfer: Transfer)
    /// The response is complete.
    func exchangeEnded()
    /// There will be no response from upstream: answer locally.
    func exchangeFailed(_ error: ExchangeError)
    /// The response ends in its middle: it must not look complete.
    func exchangeBroke(_ error: ExchangeError)
    /// There is room for more of the request's body again.
    func exchangeWantsBody()
}

/// What the client needs to know of a request besides its fields.
package struct ExchangeRequest {
    /// The method, known or not.
    package var method: RequestMethod
    /// The method's bytes as text, where it is none of those known.
    package var otherMethod: String
    /// The body's framing.
    package var framing: BodyFraming

    /// A request.
    package init(method: RequestMethod, otherMethod: String = "", framing: BodyFraming) {
        self.method = method
        self.otherMethod = otherMethod
        self.framing = framing
    }

    /// Whether a body follows.
    var hasBody: Bool {
        switch framing {
        case .none: false
        case .length(let length): length > 0
        case .chunked: true
        }
    }
}
