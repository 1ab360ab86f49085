// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import HTTPTypes

/// Kind of login that an address asks for, as its answer shows.
package enum LearnedKind: Sendable, Equatable {
    /// An API refuses without saying how to log in.
    case api(status: Int)
    /// Bearer tokens of the authorization servers that the resource names (RFC 9728).
    case bearer(issuers: [String])
    /// A login form. `page` is the address that shows it.
    case form(page: WebURL)
    /// A MobileFirst 8.0 server.
    case mobileFirst
    /// A login form that asks for the user's name alone. `page` is the address that shows it.
    case nameFirst(page: WebURL)
    /// No login is needed at this address.
    case open
    /// The login is at another origin.
    case otherOrigin(Origin)
    /// A proxy in front of the server asks for a login by these schemes.
    case proxy([String])
    /// A container registry's token service at this address.
    case registry(url: String, service: String?)
    /// A page refuses, and has no login form.
    case refusal(status: Int)
    /// Schemes of HTTP, in lower case.
    case schemes([String])
    /// Security checks that the resource lists itself; `isComposite` in the dialect of Worklight 6.x.
    case securityChecks([String], isComposite: Bool)
    /// The address has no page for anonymous requests.
    case unavailable(status: Int)

    /// Schemes that the program can answer or explain.
    private static let known = ["basic", "digest", "negotiate", "ntlm", "bearer", "wl-composite-challenge"]

    /// Returns the schemes of a refusal in lower case, as far as they are known.
    package static func offeredSchemes(in response: ExaminedResponse) -> [String] {
        guard response.status == 401 || response.status == 403 else { return [] }
        var schemes: [String] = []
        for challenge in ChallengeList(in: response.fields).challenges {
            let scheme = challenge.scheme.lowercased()
            if known.contains(scheme), !schemes.contains(scheme) { schemes.append(scheme) }
        }
        return schemes
    }

    /// Returns the kind that the findings show.
    package init(_ findings: SiteFindings) {
        let answer = findings.asked.first
        let message = ResourceCheckMessage(status: answer.status, fields: answer.fields, body: answer.body ?? [])
        let schemes = Self.offeredSchemes(in: answer).filter { $0 != "wl-composite-challenge" }
        if let message, !message.challenges.isEmpty {
            self = .securityChecks(message.challenges.keys.sorted(), isComposite: message.dialect == .composite)
        } else if Self.isMobileFirst(answer) {
            self = .mobileFirst
        } else if answer.status == 407 {
            let challenges = ChallengeList(in: answer.fields, name: .proxyAuthenticate).challenges
            self = .proxy(challenges.map { ServerText.name($0.scheme.lowercased()) })
        } else if let ordinary = Self.ordinary(schemes) {
            self = .schemes(ordinary)
        } else if schemes.contains("bearer") {
            self = Self.bearer(findings)
        } else if let page = [findings.asked, findings.loginPage].compactMap(\.self).first(where: { $0.form != nil }) {
            let asks = Self.asks(findings.asked) || findings.loginLink != nil
            self = asks ? .form(page: page.last.url) : .open
        } else if let page = findings.nameFirst {
            self = .nameFirst(page: page.last.url)
        } else if let origin = findings.asked.otherOrigin {
            self = .otherOrigin(origin)
        } else {
            let status = findings.asked.last.status
            let isRefusal = status == 401 || status == 403
            self =
                isRefusal
                ? findings.asked.last.isPage ? .refusal(status: status) : .api(status: status)
                : status >= 400 ? .unavailable(status: status) : .open
        }
    }

    /// Returns whether a visit shows that the address is not public.
    package static func asks(_ visit: SiteVisit) -> Bool {
        if visit.form != nil || [401, 403].contains(visit.last.status) { return true }
        guard visit.last.status < 400, let title = PageLinks(parsing: visit.last.body ?? []).title else { return false }
        return isLoginTitle(title)
    }

    /// Returns whether a page's title indicates that a login is needed.
    static func isLoginTitle(_ title: String) -> Bool {
        let text = title.lowercased()
        return ["login", "log in", "sign in", "signin", "permission", "denied", "unauthori"].contains {
            text.contains($0)
        }
    }

    private static func ordinary(_ schemes: [String]) -> [String]? {
        let others = schemes.filter { $0 != "bearer" }
        return others.isEmpty ? nil : others
    }

    private static func isMobileFirst(_ response: ExaminedResponse) -> Bool {
        let values = response.fields[values: .wwwAuthenticate].map { $0.lowercased() }
        return values.contains { $0.hasPrefix("mfp-challenge") }
            || response.fields.contains { $0.name.canonicalName.hasPrefix("mfp-") }
    }

    private static func bearer(_ findings: SiteFindings) -> LearnedKind {
        let answer = findings.asked.first
        if case .array(let values)? = findings.resourceMetadata?["authorization_servers"] {
            return .bearer(issuers: values.compactMap(\.stringValue))
        }
        if let challenge = RegistryChallenge(status: answer.status, fields: answer.fields), challenge.service != nil,
            (try? WebURL(reading: challenge.realm.utf8)) != nil
        {
            return .registry(url: challenge.realm, service: challenge.service)
        }
        return .bearer(issuers: [])
    }
}

extension LearnedKind: CustomStringConvertible {
    /// The kind in words.
    package var description: String {
        switch self {
        case .api(let status): "an API that answers \(status) and does not say how to log in"
        case .bearer(let issuers):
            issuers.isEmpty
                ? "bearer tokens, without the name of an authorization server"
                : "bearer tokens of \(issuers.map(ServerText.sentence).joined(separator: ", ")) (RFC 9728)"
        case .form(let page): "a login form at \(page.path)"
        case .nameFirst(let page):
            "a login form at \(page.path) that asks for the name first, and for the password on the next page"
        case .refusal(let status): "a page that answers \(status) and has no login form"
        case .mobileFirst: "a MobileFirst 8.0 server"
        case .open: "no login: the address is open to everybody"
        case .otherOrigin(let origin): "a login at another server, \(origin)"
        case .proxy(let schemes):
            "a proxy that asks for a login" + (schemes.isEmpty ? "" : " by \(schemes.joined(separator: ", "))")
        case .registry(let url, _): "tokens of a container registry, from \(ServerText.sentence(url))"
        case .schemes(let schemes): "HTTP authentication by \(schemes.joined(separator: ", "))"
        case .unavailable(let status): "no page: the answer is \(status)"
        case .securityChecks(let names, let isComposite):
            "security checks \(names.map(ServerText.name).joined(separator: ", "))"
                + (isComposite ? " in the dialect of Worklight" : "")
        }
    }
}
