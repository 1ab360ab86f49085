// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Origins that a single sign-on may visit (CONTRIBUTING, rule 11).
///
/// Every address of the login comes from redirects and pages. Each is checked here before it is requested.
package struct SignOnRoute: Sendable, Equatable {
    /// The upstream's origin.
    package let upstream: Origin
    /// Origins of the identity providers (`login.through`). Only they show a form that is filled in.
    package let providers: Set<Origin>

    /// Creates a route from the upstream, which is not a provider, even if `through` names it.
    package init(from upstream: Origin, through: some Sequence<Origin>) {
        self.upstream = upstream
        providers = Set(through).subtracting([upstream])
    }

    /// Returns the provider's address to which `response` redirects; `nil` if it redirects elsewhere or not at all.
    func redirectToProvider(in response: ExaminedResponse) -> WebURL? {
        guard let next = response.redirectTarget, providers.contains(next.origin) else { return nil }
        return next
    }

    /// Returns whether `response` sends the user to a provider: by a redirect, or by a form that submits itself.
    func leadsToProvider(_ response: ExaminedResponse) -> Bool {
        if redirectToProvider(in: response) != nil { return true }
        return formToProvider(on: response) != nil
    }

    /// Returns the SAML request that a page of the upstream submits to a provider, and the names of the inputs that are no
    /// part of it; `nil` without such a form.
    ///
    /// The upstream chooses the address and the inputs. So nothing but the message is sent, with which the provider expects
    /// other servers to come.
    func formToProvider(on page: ExaminedResponse) -> (form: SelfSubmittingForm, omitted: [String])? {
        guard page.body != nil, !(300...399).contains(page.status),
            let message = SelfSubmittingForm(page)?.request(), let action = message.form.action(at: page.url),
            providers.contains(action.origin)
        else { return nil }
        return message
    }

    /// Returns the reason against a request to `next`, which the page at `page` names. `nil` if it is allowed.
    package func objection(to next: WebURL, from page: WebURL) -> String? {
        guard next.origin == upstream || providers.contains(next.origin) else {
            return
                "The sign-on leads from \(page.origin) to \(next.origin), which is neither the upstream nor in `through`, "
                + "so nothing was sent there. If you trust that server, add \(next.origin) to `through`."
        }
        // Within this machine nothing crosses a network.
        guard page.origin.scheme == .http || next.origin.scheme == .https || next.origin.isLoopback else {
            return
                "The sign-on leads from \(page.origin) to \(next.origin), which is not encrypted, so nothing was sent there. "
                + "Use https:// for that server."
        }
        return nil
    }

    /// Returns the reason not to fill in a form of the page at `page` that is sent to `action`. `nil` if filling in is
    /// allowed.
    package func objection(toFillingIn action: WebURL, on page: WebURL) -> String? {
        for address in [page, action] where !providers.contains(address.origin) {
            return
                "The login form is of \(page.origin) and goes to \(action.origin), but the credential belongs to the origins "
                + "in `through` only, so nothing was sent. If you trust that server, add \(address.origin) to `through`."
        }
        return objection(to: action, from: page)
    }
}
