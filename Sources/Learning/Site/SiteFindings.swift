// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import HTTPTypes

/// Answers of a site to anonymous requests: at the given address, at its root, and at its login page.
package struct SiteFindings: Sendable {
    /// The visit at the given address.
    package var asked: SiteVisit
    /// The visit at the upstream's address. It is `asked` if that is the same address.
    package var root: SiteVisit
    /// The visit at a login page that neither of them leads to, found by a link or at a usual address.
    package var loginPage: SiteVisit?
    /// The text of the link from the public page at the given address to the login page; `nil` if that was found otherwise.
    package var loginLink: String?
    /// The metadata of the resource (RFC 9728), if the challenge or its well-known address has it.
    package var resourceMetadata: JSONValue?

    /// Creates findings.
    package init(
        asked: SiteVisit, root: SiteVisit, loginPage: SiteVisit? = nil, resourceMetadata: JSONValue? = nil
    ) {
        self.asked = asked
        self.root = root
        self.loginPage = loginPage
        self.resourceMetadata = resourceMetadata
    }
}

extension SiteFindings {
    /// The visit whose page asks for the user's name alone; `nil` if the address is open, or has another form.
    var nameFirst: SiteVisit? {
        if asked.nameForm != nil { return asked }
        return LearnedKind.asks(asked) ? loginPage.flatMap { $0.nameForm == nil ? nil : $0 } : nil
    }

    /// The address at another origin with the same path, to which the given one redirects; `nil` for a login elsewhere.
    var publicAddress: WebURL? {
        guard let origin = asked.otherOrigin, let target = asked.last.redirectTarget, target.origin == origin,
            !SiteProbe.namesLogin(target)
        else { return nil }
        func bare(_ path: String) -> Substring { path.hasSuffix("/") ? path.dropLast() : path[...] }
        return bare(target.path) == bare(asked.last.url.path) ? target : nil
    }

    /// The parts of the address's challenges that were not understood, in words; `nil` if there are none.
    package var unreadText: String? {
        let first = asked.first
        return ChallengeList(in: first.fields).unreadText
            ?? ChallengeList(in: first.fields, name: .proxyAuthenticate).unreadText
    }
}

/// Anonymous visit of a site. It sends a bounded number of GETs and no secret.
package struct SiteProbe: Sendable {
    /// Usual addresses of login pages.
    static let usualPages = [
        "/login", "/login/", "/-/login", "/signin", "/sign_in", "/users/sign_in", "/user/login", "/auth/login",
        "/accounts/login/", "/account/login", "/admin/login/", "/login.php", "/wp-login.php", "/login.html",
    ]
    /// Parts of the addresses of login pages.
    private static let words = ["login", "logon", "log-in", "log_in", "signin", "sign-in", "sign_in"]
    private static let linkLimit = 4

    private let visitor: SiteVisitor

    /// Returns whether an address has a word of a login page.
    static func namesLogin(_ url: WebURL) -> Bool { words.contains { url.target.lowercased().contains($0) } }

    /// Creates a probe.
    package init(_ visitor: SiteVisitor) { self.visitor = visitor }

    /// Visits the site as the address `asked` of the upstream at `base` needs it.
    package func run(_ asked: WebURL, base: WebURL) async throws(SideRequestError) -> SiteFindings {
        let visit = try await visitor.visit(asked)
        let root = asked == base ? visit : (try? await visitor.visit(base)) ?? SiteVisit(address: base, responses: [])
        var findings = SiteFindings(asked: visit, root: root)
        if !LearnedKind.offeredSchemes(in: visit.first).isEmpty {
            findings.resourceMetadata = await metadata(of: visit.first, at: base)
        } else if visit.form == nil, visit.nameForm == nil, visit.otherOrigin == nil {
            findings.loginPage = await loginPage(of: findings, base: base)
            if let page = findings.loginPage, visit.responses.count == 1, visit.last.status == 200,
                !LearnedKind.asks(visit)
            {
                findings.loginLink = Self.link(on: visit.last, to: page.address)
            }
        }
        return findings
    }

    /// Returns the first page with a login form among the root, linked pages, and usual addresses.
    private func loginPage(of findings: SiteFindings, base: WebURL) async -> SiteVisit? {
        var addresses: [WebURL] = []
        if findings.root.form != nil { addresses.append(findings.root.last.url.withoutQuery) }
        for page in [findings.asked.last, findings.root.last] {
            let links = PageLinks(parsing: page.body ?? []).links.compactMap { page.url.resolving($0) }
            addresses += links.filter { link in
                link.origin == base.origin && Self.words.contains { link.target.lowercased().contains($0) }
            }.prefix(Self.linkLimit)
        }
        addresses += Self.usualPages.compactMap { base.resolving($0) }
        var known: Set<WebURL> = []
        for address in addresses where known.insert(address).inserted {
            guard let visit = try? await visitor.visit(address), visit.form != nil || visit.nameForm != nil else {
                continue
            }
            return visit
        }
        return nil
    }

    /// Returns the part of a link to `address` that names the login, as the page has it; `nil` if it has no such link.
    private static func link(on page: ExaminedResponse, to address: WebURL) -> String? {
        let body = String(decoding: page.body ?? [], as: UTF8.self)
        for link in PageLinks(parsing: page.body ?? []).links where page.url.resolving(link) == address {
            // An ampersand is written as a reference in most pages.
            let parts = link.split(separator: "&").map(String.init).filter { $0.utf8.count >= 5 }
            if let part = parts.first(where: { part in
                words.contains { part.lowercased().contains($0) } && body.contains(part)
            }) {
                return part
            }
        }
        return nil
    }

    /// Returns the resource's metadata, from the address that its challenge names or from its well-known one.
    private func metadata(of response: ExaminedResponse, at base: WebURL) async -> JSONValue? {
        guard let bearer = ChallengeList(in: response.fields).challenges(of: "Bearer").first else { return nil }
        let name = "/.well-known/oauth-protected-resource"
        let written = bearer["resource_metadata"].flatMap { try? WebURL(reading: $0.utf8) }
        let usual = WebURL(origin: base.origin, path: base.path == "/" ? name : name + base.path)
        let address = written ?? usual
        guard address.origin == base.origin, let visit = try? await visitor.visit(address), visit.last.status == 200
        else { return nil }
        return JSONValue(parsing: visit.last.body ?? [])
    }
}
