// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Looks for a gateway's login page: at addresses of the configuration, and only then where a caller met it, or where its request
/// waits (CONTRIBUTING, rule 11).
struct GatewaySearch {
    /// The end of a search.
    enum Outcome {
        case found(GatewayEntrance)
        /// Nobody asks for a login where a request waits, as the empty session says; `isCertain`: and the server was in no trouble.
        case nothingAsked(Session, isCertain: Bool)
        /// No page, and no request waits. `last` is what was looked at last, `trouble` that of the server, if it was in any.
        case notFound(last: ExaminedResponse?, trouble: LoginFailure?)
    }

    /// The addresses of the configuration, in order.
    let configured: [WebURL]
    /// The origin of the addresses of callers that are looked at.
    let origin: Origin
    /// The address that was answered by the login page; `nil` ahead of any.
    let challenged: WebURL?
    /// The address of the request that waits for the session before any challenge; `nil` if none does.
    let target: WebURL?
    /// The source of the addresses of requests.
    var callers = GatewayEntrance.Source.challenged
    /// True if a server that is in trouble by its status can show the page all the same.
    var takesTrouble = false

    /// Looks at one address after the other, without the cookies of those before.
    func run(on visit: inout GatewayVisit) async throws(LoginFailure) -> Outcome {
        var addresses: [(url: WebURL, source: GatewayEntrance.Source)] = configured.map { ($0, .configured) }
        if let plain = (challenged ?? target)?.plain, plain.origin == origin {
            addresses.append((plain, callers))
        }
        var asked: Set<WebURL> = []
        var trouble: LoginFailure?
        var last: ExaminedResponse?
        for (address, source) in addresses where asked.insert(address).inserted {
            visit.forgetCookies()
            let page: GatewayVisit.Page
            if let target {
                guard let found = try await visit.search(address) else {
                    return nothingAsked(at: target, isCertain: false, visit)
                }
                page = found
            } else {
                page = try await visit.look(at: address, "page")
            }
            let found = visit.trouble(in: page.response, "page")
            if page.isMarked, takesTrouble || found == nil {
                return .found(GatewayEntrance(address: address, source: source, page: page))
            }
            trouble = trouble ?? found
            last = page.response
        }
        guard let target else { return .notFound(last: last, trouble: trouble) }
        return nothingAsked(at: target, isCertain: trouble == nil, visit)
    }

    private func nothingAsked(at target: WebURL, isCertain: Bool, _ visit: GatewayVisit) -> Outcome {
        visit.report("no login page, so there is nothing to add yet")
        return .nothingAsked(
            .nothingAsked(at: target, now: visit.conversation.now(), isBrief: !isCertain), isCertain: isCertain)
    }
}
