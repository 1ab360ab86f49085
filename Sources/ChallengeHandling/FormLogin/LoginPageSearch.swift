// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Search for a gateway's login page. It tries configured addresses first, then the address of a caller's request
/// (CONTRIBUTING, rule 11).
struct LoginPageSearch {
    enum Outcome {
        case found(LoginPage)
        /// No login is needed for the waiting request, as the empty session records. `isCertain` if the server was in
        /// no trouble.
        case nothingAsked(Session, isCertain: Bool)
        /// No page was found, and no request waits for a session before any challenge.
        case notFound(Miss)
    }

    /// Observations of a search that found no login page.
    struct Miss {
        var last: ExaminedResponse?
        /// The server's first failure.
        var trouble: LoginFailure?
        /// True if the address of a challenge was requested.
        let followedChallenge: Bool
    }

    /// The configured addresses, in order.
    let configured: [WebURL]
    /// The only origin at which a caller's address is requested.
    let origin: Origin
    /// The address that was answered with the login page; `nil` before any challenge.
    let challenged: WebURL?
    /// The address of the request that waits for the session before any challenge. `nil` if no request waits.
    let target: WebURL?
    /// The source to record for a request's address.
    var callers = LoginPage.Source.challenged
    /// True if a response with a server error can still be the login page.
    var acceptsErrors = false

    /// Requests one address after another, each without the cookies of those before.
    func run(on client: inout GatewayClient) async throws(LoginFailure) -> Outcome {
        var addresses: [(url: WebURL, source: LoginPage.Source)] = configured.map { ($0, .configured) }
        if let plain = (challenged ?? target)?.plain, plain.origin == origin {
            addresses.append((plain, callers))
        }
        var asked: Set<WebURL> = []
        var miss = Miss(followedChallenge: challenged?.plain?.origin == origin)
        for (address, source) in addresses where asked.insert(address).inserted {
            client.clearCookies()
            let page: GatewayClient.Page
            if let target {
                guard let found = try await client.fetchIfReachable(address) else {
                    return nothingAsked(at: target, isCertain: false, client)
                }
                page = found
            } else {
                page = try await client.fetch(address, "page")
            }
            let found = client.trouble(in: page.response, "page")
            if page.asksForLogin, acceptsErrors || found == nil {
                return .found(LoginPage(address: address, source: source, page: page))
            }
            miss.trouble = miss.trouble ?? found
            miss.last = page.response
        }
        guard let target else { return .notFound(miss) }
        return nothingAsked(at: target, isCertain: miss.trouble == nil, client)
    }

    private func nothingAsked(at target: WebURL, isCertain: Bool, _ client: GatewayClient) -> Outcome {
        client.report("no login page, so there is nothing to add yet")
        return .nothingAsked(
            .nothingAsked(at: target, now: client.conversation.now(), isBrief: !isCertain), isCertain: isCertain)
    }
}

/// A login page, the address that shows it, and the source of that address.
struct LoginPage {
    /// Source of the address, the most trusted first.
    enum Source: Equatable {
        /// `login.page` of the configuration, or a step that needs no page. The page is shown with and without a
        /// session.
        case named
        /// Another configured address: `prove-at`, or the upstream's own. It showed the page without a session.
        case configured
        /// A caller, by the request that was challenged.
        case challenged
    }

    /// The requested address; redirects may have led on from there.
    let address: WebURL
    let source: Source
    let page: GatewayClient.Page

    /// True if a caller chose the page to fill in.
    var isCallers: Bool { source == .challenged }

    /// True if the page stands at the requested address itself, where others may write a page too.
    var isInPlace: Bool {
        source != .named && page.response.url.pathWithoutParameters == address.pathWithoutParameters
    }

    /// Returns whether another page is at this page's address and has the same forms.
    func looksLike(_ other: GatewayClient.Page) -> Bool {
        let (own, other) = (page.response, other.response)
        guard own.url.pathWithoutParameters == other.url.pathWithoutParameters else { return false }
        if (300...399).contains(other.status) { return true }
        return HTMLPage(own).outline == HTMLPage(other).outline
    }

    /// Returns whether a caller met the page at `url`. Such an address may always show the form, so the form there
    /// proves nothing.
    func isResource(_ url: WebURL) -> Bool { isCallers && url.path == address.path }

    /// Returns the login page for the step on `page`. A later page is the server's answer to an earlier submission.
    func leading(to page: GatewayClient.Page, isFirst: Bool) -> LoginPage {
        isFirst ? self : LoginPage(address: address, source: .named, page: page)
    }
}

extension HTMLPage {
    /// Actions and visible inputs of all forms, by which a page is recognised.
    fileprivate var outline: [[String]] {
        forms.map { form in
            [String(form.actionPath)] + form.inputs.filter { $0.type != "hidden" }.map { "\($0.type) \($0.name)" }
        }
    }
}

extension WebURL {
    /// True if the path has a word of a login page.
    var namesLogin: Bool {
        let path = Array(path.utf8)
        return GatewayRules.loginWords.contains { path.containsWord(lowercased: Array($0.utf8)) }
    }

    /// The address without its query. `nil` if servers may read its path in more than one way.
    var plain: WebURL? {
        let lowered = path.lowercased()
        let isDoubtful =
            lowered.contains("//") || lowered.contains(";") || lowered.contains("\\")
            || ["%2e", "%2f", "%5c", "%25", "%3b"].contains { lowered.contains($0) }
            || path.split(separator: "/").contains { $0 == "." || $0 == ".." }
        return isDoubtful ? nil : WebURL(origin: origin, path: path)
    }

    /// The folders that contain the address, each without its last slash: `""` and `/app` for `/app/home`.
    var folders: Set<String> {
        var folders: Set<String> = [""]
        var end = path.startIndex
        while let slash = path[end...].dropFirst().firstIndex(of: "/") {
            folders.insert(path[..<slash].lowercased())
            end = slash
        }
        return folders
    }

    /// Returns true if the path is `other`'s but for a slash at its end.
    func isSpelling(of other: WebURL) -> Bool {
        func bare(_ path: String) -> Substring { path.hasSuffix("/") ? path.dropLast() : path[...] }
        return origin == other.origin && bare(path) == bare(other.path)
    }

    /// Returns true if the address is in a folder, and `other` is somewhere in the topmost folder of that.
    func isBeside(_ other: WebURL) -> Bool {
        let own = path.split(separator: "/")
        return own.count > 1 && own[0] == other.path.split(separator: "/").first
    }

    /// The path without parameters (`;jsessionid=…`), in which frameworks keep volatile values.
    var pathWithoutParameters: String { String(path.prefix { $0 != ";" }) }
}
