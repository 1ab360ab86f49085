// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// HTTP client of one single sign-on.
///
/// Each origin has its own cookies, so that no server receives those of another. Only origins of the route are requested.
struct SignOnClient {
    /// Limit of the requests of a login: a sign-on over two providers needs about a dozen.
    static let requestLimit = 20
    /// Limit of all answers together in bytes.
    static let byteLimit = 4 * 1024 * 1024

    private let route: SignOnRoute
    /// A client for each origin of the route.
    private(set) var clients: [Origin: GatewayClient] = [:]
    private var requests = 0
    private var bytes = 0

    /// Creates a client that begins with `cookies`. `make` creates the client of one origin.
    init(_ route: SignOnRoute, cookies: [Origin: CookieJar], make: () -> GatewayClient) {
        self.route = route
        for origin in route.providers.union([route.upstream]) {
            var client = make()
            client.begin(with: cookies[origin] ?? CookieJar())
            clients[origin] = client
        }
    }

    /// Fetches the page that `page` redirects to.
    mutating func follow(_ next: WebURL, from page: ExaminedResponse) async throws(LoginFailure) -> ExaminedResponse {
        guard page.method == .get || ![307, 308].contains(page.status) else {
            throw failure(
                "\(page.url.origin) asks to send a form again, to another address, which is never done.",
                at: page.url)
        }
        var request = SideRequest(method: .get, url: next, fields: [.accept: SideRequest.pageTypes], timeout: timeout)
        request.allowsPartialBody = true
        return try await send(request, "page", from: page.url)
    }

    /// Submits a form that submits itself.
    mutating func submit(
        _ form: SelfSubmittingForm, on page: ExaminedResponse
    ) async throws(LoginFailure) -> ExaminedResponse {
        guard let action = form.action(at: page.url) else {
            throw failure(
                "A page of the sign-on at \(page.url.origin) sends its form to an address that is not http or https.",
                at: page.url)
        }
        var request = SideRequest.submitting(
            form.inputs, to: action, form.isPost ? .post : .get, from: page, timeout: timeout)
        request.allowsPartialBody = true
        return try await send(request, "message", from: page.url)
    }

    /// Sends a request that the page at `page` leads to.
    mutating func send(
        _ request: SideRequest, _ step: String, from page: WebURL
    ) async throws(LoginFailure) -> ExaminedResponse {
        let origin = request.url.origin
        if let objection = route.objection(to: request.url, from: page) { throw failure(objection, at: page) }
        guard var client = clients[origin] else { throw failure("\(origin) is not part of the sign-on.", at: page) }
        requests += 1
        guard requests <= Self.requestLimit else {
            throw failure(
                "The sign-on did not end within \(Self.requestLimit) requests: \(page.origin) and \(origin) send it back and "
                    + "forth. Check the upstream's `url`, which must be the address that the provider knows, and the clocks.",
                at: page)
        }
        defer { clients[origin] = client }
        let response = try await client.send(request, "\(step) at \(origin)\(request.url.path)")
        bytes += response.body?.count ?? 0
        guard bytes <= Self.byteLimit else { throw failure("The pages of the sign-on are too large.", at: page) }
        return response
    }

    /// The client of the origin of `address`.
    func client(at address: WebURL) throws(LoginFailure) -> GatewayClient {
        guard let client = clients[address.origin] else {
            throw failure("The address is not part of the sign-on.", at: address)
        }
        return client
    }

    /// Replaces the client of the upstream, which has searched for the beginning of the sign-on.
    mutating func replaceUpstream(_ client: GatewayClient) { clients[route.upstream] = client }

    /// The cookies that each origin has set.
    var jars: [Origin: CookieJar] { clients.mapValues(\.jar) }

    private var timeout: Duration { clients[route.upstream]?.timeout ?? .seconds(10) }

    private func failure(_ detail: String, at page: WebURL) -> LoginFailure {
        LoginFailure(.failed, challenge: clients[route.upstream]?.name ?? "", detail: detail)
    }
}
