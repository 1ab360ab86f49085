// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Charsets
internal import HTTPTypes
package import Secrets

/// A form that a page submits by itself, with a message for another server.
///
/// Identity providers send users back by such a page: SAML's POST binding, `response_mode=form_post` of OpenID Connect,
/// WS-Federation.
package struct SelfSubmittingForm: Sendable {
    /// Inputs that only these messages have.
    private static let messages: [Set<String>] = [
        ["SAMLRequest"], ["SAMLResponse"], ["wresult"], ["code", "state"], ["id_token", "state"], ["error", "state"],
        ["response", "state"],
    ]
    /// Inputs of a SAML request (SAML 2.0 Bindings §3.5.4 and §3.6.4). A receiver must not require others.
    private static let requestInputs: Set = ["SAMLRequest", "RelayState", "SigAlg", "Signature", "KeyInfo"]
    /// Calls of a script that submits a form.
    private static let submission = Array(".submit()".utf8)

    /// The inputs, in order.
    package private(set) var inputs: [(name: String, value: Secret)]
    /// True if the form is sent by POST.
    package let isPost: Bool
    private let written: String?
    private let base: String?
    private let body: HTMLPage.Form.Body
    private let charset: Charset

    /// Finds the first such form of a page; `nil` if the page has none.
    ///
    /// All its inputs are hidden. It has a message of a sign-on protocol; or it is the page's only form, has no named button, with
    /// which a page asks for a decision, and the page has a script that submits forms.
    package init?(on page: [UInt8], type: String? = nil) {
        let html = HTMLPage(parsing: page, type: type)
        let form = html.forms.first { form in
            let usable = form.inputs.filter { !$0.isDisabled }
            let hidden = Set(usable.filter { $0.type == "hidden" && !$0.name.isEmpty }.map(\.name))
            guard !hidden.isEmpty, usable.allSatisfy({ $0.type == "hidden" || $0.isButton }) else { return false }
            guard form.ownMethod != .dialog else { return false }
            if form.ownMethod == .post, Self.messages.contains(where: hidden.isSuperset) { return true }
            guard html.forms.count == 1 else { return false }
            let asks = usable.contains { $0.isButton && !$0.name.isEmpty }
            return !asks && page.containsWord(lowercased: Self.submission)
        }
        guard let form else { return nil }
        // A script submits the form without a button.
        charset = form.charset(on: html.encoding)
        inputs = form.entries(in: charset, where: { $0.type == "hidden" }).map { ($0.name, $0.value) }
        isPost = form.ownMethod == .post
        body = form.ownBody
        written = form.ownAction
        base = html.base
    }

    /// Finds the first such form of a response.
    package init?(_ response: ExaminedResponse) {
        self.init(on: response.body ?? [], type: response.fields[.contentType])
    }

    /// Returns the address that the form is sent to from the page at `page`; `nil` if that is not http or https.
    package func action(at page: WebURL) -> WebURL? {
        guard let written, !written.isEmpty else { return page }
        return (base.flatMap(page.resolving) ?? page).resolving(written)
    }

    /// The inputs as the form sends them.
    var submission: FormSubmission {
        FormSubmission(inputs.map { FormEntry($0.name, $0.value) }, as: body, in: charset)
    }

    /// Returns the form with its SAML request alone, and the names of the other inputs. `nil` if it sends no such
    /// request by POST.
    package func request() -> (form: SelfSubmittingForm, omitted: [String])? {
        guard isPost, inputs.contains(where: { $0.name == "SAMLRequest" }) else { return nil }
        var form = self
        form.inputs.removeAll { !Self.requestInputs.contains($0.name) }
        return (form, inputs.map(\.name).filter { !Self.requestInputs.contains($0) })
    }
}
