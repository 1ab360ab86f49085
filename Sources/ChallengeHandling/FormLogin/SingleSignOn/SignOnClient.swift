// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// HTTP client of one single sign-on.
///
/// Each origin has its own cookies, so that no server receives those of another. Only origins of the route are requested.
struct SignOnClient {
    /// Limit of the requests of a visit: a sign-on over two providers needs about a dozen.
    static let requestLimit = 20
    /// Limit of all answers together in bytes.
    static let byteLimit = 4 * 1024 * 1024

    private let route: SignOnRoute
    /// A client for each origin of the route.
    private var clients: [Origin: GatewayClient] = [:]
    /// The origins of the last page that began a request, and of the redirects since.
    private var chain: Set<Origin>
    private var requests = 0
    private var bytes = 0

    /// Creates a client without cookies. `make` creates the client of one origin.
    init(_ route: SignOnRoute, make: () -> GatewayClient) {
        self.route = route
        chain = [route.upstream]
        for origin in route.providers.union([route.upstream]) { clients[origin] = make() }
    }

    /// Replaces the cookies of these origins.
    mutating func begin(with cookies: [Origin: CookieJar]) {
        for (origin, jar) in cookies { clients[origin]?.begin(with: jar) }
    }

    /// Returns the request for a configured address. `base` is the upstream's address.
    func move(to address: WebURL, configuredAt base: WebURL) -> SignOnMove {
        SignOnMove(.configured, fetching(address), "page", from: base)
    }

    /// Returns the request for the page that `page` redirects to.
    func move(to next: WebURL, redirectedBy page: ExaminedResponse) throws(LoginFailure) -> SignOnMove {
        guard page.method == .get || ![307, 308].contains(page.status) else {
            throw failure(
                "\(page.url.origin) asks to send a form again, to another address, which is never done.")
        }
        return SignOnMove(.redirect, fetching(next), "page", from: page.url)
    }

    /// Returns the request that submits a form that submits itself.
    func move(
        submitting form: SelfSubmittingForm, on page: ExaminedResponse
    ) throws(LoginFailure) -> SignOnMove {
        guard let action = form.action(at: page.url) else {
            throw failure(
                "A page of the sign-on at \(page.url.origin) sends its form to an address that is not http or https.")
        }
        guard
            var request = SideRequest.submitting(
                form.submission, to: action, form.isPost ? .post : .get, from: page, timeout: timeout,
                replacingQuery: true)
        else {
            throw failure(
                "A page of the sign-on at \(page.url.origin) has a form in a character set to which this system cannot convert."
            )
        }
        request.allowsPartialBody = true
        return SignOnMove(.form, request, "message", from: page.url)
    }

    /// Sends the request of `move`.
    ///
    /// A provider gets the cookies that a browser would send by `SameSite`. The upstream gets all of its own: they are the
    /// session that is being established.
    mutating func send(_ move: SignOnMove) async throws(LoginFailure) -> ExaminedResponse {
        let (request, page, origin) = (move.request, move.page, move.request.url.origin)
        if let objection = route.objection(to: request.url, from: page) { throw failure(objection) }
        guard var client = clients[origin] else { throw failure("\(origin) is not part of the sign-on.") }
        requests += 1
        guard requests <= Self.requestLimit else {
            throw failure(
                "The sign-on did not end within \(Self.requestLimit) requests: \(page.origin) and \(origin) send it back and "
                    + "forth. Check the upstream's `url`, which must be the address that the provider knows, and the clocks."
            )
        }
        switch move.kind {
        case .configured: chain = [origin]
        case .redirect: chain.insert(page.origin)
        case .form: chain = [page.origin]
        }
        let site =
            route.providers.contains(origin) ? RequestSite(request.method, to: origin, from: chain) : .same
        defer { clients[origin] = client }
        var response = try await client.send(request, "\(move.step) at \(origin)\(request.url.path)", from: site)
        if let again = client.repetition(of: request, after: response), again.isSpelling(of: request.url) {
            var request = request
            request.url = again
            requests += 1
            response = try await client.send(request, "\(move.step) at \(origin)\(again.path)", from: site)
        }
        bytes += response.body?.count ?? 0
        guard bytes <= Self.byteLimit else { throw failure("The pages of the sign-on are too large.") }
        return response
    }

    /// The client of the origin of `address`.
    func client(at address: WebURL) throws(LoginFailure) -> GatewayClient {
        guard let client = clients[address.origin] else { throw failure("The address is not part of the sign-on.") }
        return client
    }

    /// Replaces the client of the upstream, which has searched for the beginning of the sign-on.
    mutating func replaceUpstream(_ client: GatewayClient) { clients[route.upstream] = client }

    /// The cookies that each origin has set.
    var jars: [Origin: CookieJar] { clients.mapValues(\.jar) }

    /// Reports a step of the sign-on.
    func report(_ text: String) { clients[route.upstream]?.report(text) }

    private func fetching(_ address: WebURL) -> SideRequest {
        var request = SideRequest(
            method: .get, url: address, fields: [.accept: SideRequest.pageTypes], timeout: timeout)
        request.allowsPartialBody = true
        return request
    }

    private var timeout: Duration { clients[route.upstream]?.timeout ?? .seconds(10) }

    private func failure(_ detail: String) -> LoginFailure {
        LoginFailure(.failed, challenge: clients[route.upstream]?.name ?? "", detail: detail)
    }
}

/// Next request of a sign-on, and the page that leads to it.
struct SignOnMove: Sendable {
    /// Cause of the request.
    enum Kind { case configured, redirect, form }

    let kind: Kind
    let request: SideRequest
    /// The request in reports.
    let step: String
    /// The address of the page.
    let page: WebURL

    init(_ kind: Kind, _ request: SideRequest, _ step: String, from page: WebURL) {
        self.kind = kind
        self.request = request
        self.step = step
        self.page = page
    }

    /// The origin that gets the request.
    var target: Origin { request.url.origin }
}
