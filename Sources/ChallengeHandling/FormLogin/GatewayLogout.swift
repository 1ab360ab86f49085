// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes
internal import Secrets
internal import SettingsReading

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

/// Settings of the logout on a clean stop.
package struct LogoutSettings: Sendable, Equatable {
    /// Address.
    package var url: AddressReference
    /// Method.
    package var method: HTTPRequest.Method = .get
    /// Page that is fetched first, for values that the request must have.
    package var page: AddressReference?
    /// Parameters of the request.
    package var parameters: [NamedTemplate] = []
    /// More fields of the request.
    package var headers: [InjectedTemplate] = []

    /// Creates a request to `url`.
    package init(url: AddressReference, method: HTTPRequest.Method = .get) {
        self.url = url
        self.method = method
    }
}

extension LogoutSettings {
    private enum Keys {
        static let url = Key(
            required: "url", .addressOrPath, "Address of the request, which carries the session's own cookies.")
        static let method = Key("method", .method, default: .get, "Method of the request.")
        static let page = Key(
            "page", .addressOrPath, "Page that is fetched before, for a token that the request must have.")
        static let parameters = Key(
            "parameters", ValueForm<[NamedTemplate]>("mapping of templates") { $0.parameters(inLogin: true) },
            "Parameters of the request, with values such as `{page:/expression/}` and `{cookie:NAME}`.")
        static let headers = Key(
            "headers", .fieldTemplatesOfLogin, "More fields of the request, with the same values.")
    }

    /// Table of `challenges.logout`.
    static let section = KeySection(
        "challenges.logout", [Keys.url, Keys.method, Keys.page, Keys.parameters, Keys.headers])

    /// Reads the logout.
    static func read(_ fields: Fields) -> LogoutSettings? {
        guard let url = fields[Keys.url] else { return nil }
        var settings = LogoutSettings(url: url, method: fields[Keys.method])
        settings.page = fields[Keys.page]
        settings.parameters = fields[Keys.parameters] ?? []
        settings.headers = fields[Keys.headers] ?? []
        if let name = settings.parameters.fieldNames.union(settings.headers.fieldNames).min() {
            fields.value.report(
                "{\(name)} is a field of a credential, which a logout does not send: use values of the session, such as "
                    + "{cookie:NAME}")
        }
        return settings
    }

    /// Returns the logout of a challenge, with addresses at its upstream; nil if one is not valid there.
    func logout(of challenge: String, at upstream: WebURL) -> GatewayLogout? {
        guard let url = url.resolved(at: upstream) else { return nil }
        return GatewayLogout(
            name: challenge, url: url, method: method, page: page.flatMap { $0.resolved(at: upstream) },
            parameters: parameters, headers: headers)
    }
}
