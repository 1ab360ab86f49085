// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets

/// Logout of a gateway's session by one request with its cookies, after the page that it may need.
public struct GatewayLogout: SessionLogout {
    /// The challenge's name in the configuration.
    public let name: String
    /// The address that ends a session.
    public let url: WebURL
    /// The method.
    public let method: HTTPRequest.Method
    /// The page to fetch first, for values that the request must have.
    public let page: WebURL?
    /// The parameters, whose templates have values of the page and of the session's cookies.
    public let parameters: [NamedTemplate]
    /// Further fields of the request, with the same values.
    public let headers: [InjectedTemplate]

    /// Creates a logout.
    public init(
        name: String, url: WebURL, method: HTTPRequest.Method = .get, page: WebURL? = nil,
        parameters: [NamedTemplate] = [], headers: [InjectedTemplate] = []
    ) {
        self.name = name
        self.url = url
        self.method = method
        self.page = page
        self.parameters = parameters
        self.headers = headers
    }

    /// Sends the request. A redirect, usually to the login page, is an answer like any other. Nothing is sent if no
    /// cookie of the session belongs there.
    public func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure) {
        guard let cookies = session.cookies,
            cookies.snapshot.header(for: url, now: conversation.now()) != nil
        else { return }
        var client = GatewayClient(
            name: name, conversation: conversation, session: session, asksForLogin: { _ in false })
        let shown: ExaminedResponse
        if let page {
            shown = try await client.fetch(page, "page of the logout").response
        } else {
            shown = ExaminedResponse(status: 200, url: url)
        }
        let received = client.received(with: shown, for: url)
        var values: [(name: String, value: Secret)] = []
        for parameter in parameters {
            values.append((parameter.name, try await render(parameter.value, received)))
        }
        var request =
            parameters.isEmpty
            ? SideRequest(method: method, url: url)
            : SideRequest.submitting(values, to: url, method, from: shown, timeout: .seconds(10))
        for header in headers { request.fields[header.name] = try await render(header.value, received).revealText() }
        // The body is not needed.
        request.allowsPartialBody = true
        let response = try await client.send(request, "logout")
        guard response.status < 400 else {
            throw client.failure(
                "The server answered the logout with status \(response.status). Check `logout`.")
        }
    }

    private func render(
        _ template: TextTemplate, _ received: ReceivedValues
    ) async throws(LoginFailure) -> Secret {
        do throws(TemplateError) {
            return try await template.render(Credential(name: "", fields: [:]), received: received.value)
        } catch {
            throw error.loginFailure(challenge: name)
        }
    }
}
