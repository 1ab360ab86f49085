// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// Lines of a challenge for a site, before its login was tried.
package struct LearnedPlan: Sendable, Equatable {
    /// The lines after the challenge's name and place.
    package var lines: [ConfigurationLine]
    /// The fields that its credential needs; empty if the system has the credential.
    package var fields: [String]
    /// True if a refused password may have another answer than the daemon expects, so that an attempt is informative.
    package var hasUnknownRefusal = false

    /// Creates a plan.
    package init(lines: [ConfigurationLine], fields: [String], hasUnknownRefusal: Bool = false) {
        self.lines = lines
        self.fields = fields
        self.hasUnknownRefusal = hasUnknownRefusal
    }
}

/// Reason why the site could not be configured: the page, its answer, and the remedy.
package struct LearnDefeat: Error, Sendable, Equatable, CustomStringConvertible {
    /// The answer that defeated the command, as a line.
    package let page: String
    /// The missing information, and the remedy.
    package let reason: String

    /// Creates a reason.
    package init(_ page: String, _ reason: String) {
        self.page = page
        self.reason = reason
    }

    /// The page and the reason.
    package var description: String { "\(page): \(reason)" }
}

extension LearnedPlan {
    /// Returns the shortest plan for a site. `known` are the fields of the credential, as far as they are known. `provider` is the
    /// identity provider that may get the credential.
    ///
    /// Throws if the site's demand cannot be configured from its answers alone.
    package init(_ findings: SiteFindings, kind: LearnedKind, known: Set<String>, provider: Origin? = nil)
        throws(LearnDefeat)
    {
        let page = findings.asked.summary
        switch kind {
        case .schemes(let offered):
            self = try Self.scheme(offered, findings, known)
        case .form:
            self = try FormPlan(findings).plan
        case .nameFirst:
            guard let names = NamePlan(findings) else { throw LearnDefeat(page, kind.defeat) }
            self = names.plan(then: nil)
        case .otherOrigin where findings.publicAddress != nil:
            let address = findings.publicAddress.map { "\($0.origin)\($0.path)" } ?? ""
            throw LearnDefeat(
                page,
                "the application redirects to its public address. Name that as the server: countersign learn \(address). To reach it "
                    + "by this address, change the public address in the application's own settings.")
        case .otherOrigin(let origin) where origin == provider:
            self.init(
                lines: [
                    ConfigurationLine("gateway: form", "the identity provider has a login form"),
                    ConfigurationLine(
                        "login: { through: \(ConfigurationLine.scalar(origin.description)) }",
                        "identity provider that the server redirects to, and that gets the credential"),
                ]
                    + (findings.root.otherOrigin == origin
                        ? []
                        : [
                            .proof(findings.asked.address, "shows that a login worked: without one it redirects")
                        ]),
                fields: ["username", "password"])
        case .bearer(let issuers) where !issuers.isEmpty:
            self.init(
                lines: [
                    ConfigurationLine("scheme: bearer", "the server answers 401 with WWW-Authenticate: Bearer"),
                    ConfigurationLine(
                        "token: { grant: client-credentials, issuers: \(ConfigurationLine.list(issuers)) }",
                        "authorization servers that the resource's metadata names"),
                ] + Self.proof(findings), fields: ["client-id", "client-secret"])
        case .registry(let url, let service):
            let audience = service.map { ", audience: \(ConfigurationLine.scalar($0))" } ?? ""
            self.init(
                lines: [
                    ConfigurationLine("scheme: bearer", "the registry answers 401 with WWW-Authenticate: Bearer"),
                    ConfigurationLine(
                        "token: { grant: registry, url: \(ConfigurationLine.scalar(url))\(audience) }",
                        "token service and name of the registry, as its answer names them"),
                ], fields: ["username", "password"])
        case .securityChecks(let names, isComposite: true) where names.count == 1 && !known.isEmpty:
            let answer = known.sorted().map { "\($0): \"{\($0)}\"" }.joined(separator: ", ")
            self.init(
                lines: [
                    ConfigurationLine(
                        "security-check: \(ConfigurationLine.scalar(names[0]))", "realm that the answer names"),
                    ConfigurationLine("answer: { \(answer) }", "the credential's fields"),
                ], fields: known.sorted())
        default:
            throw LearnDefeat(page, kind.defeat + findings.unreadAdvice)
        }
    }

    /// Returns a plan for schemes of HTTP: the strongest one for which the credential has fields.
    private static func scheme(
        _ offered: [String], _ findings: SiteFindings, _ known: Set<String>
    ) throws(LearnDefeat) -> LearnedPlan {
        let hasTickets = !known.isDisjoint(with: ["keytab", "principal", "ticket-cache"])
        let passwords = ["digest", "basic", "ntlm"].first { offered.contains($0) }
        guard let scheme = offered.contains("negotiate") && (hasTickets || passwords == nil) ? "negotiate" : passwords
        else {
            throw LearnDefeat(
                findings.asked.summary, "none of the offered schemes is supported\(findings.unreadAdvice)")
        }
        let fields = scheme == "negotiate" ? known.sorted() : ["username", "password"]
        let line = ConfigurationLine(
            "scheme: \(scheme)",
            "\(findings.asked.address.path) answers \(findings.asked.first.status) with WWW-Authenticate: \(offered.joined(separator: ", "))"
        )
        return LearnedPlan(lines: [line] + proof(findings), fields: fields)
    }

    /// Returns `prove-at`, unless the upstream's own address asks for the same login.
    private static func proof(_ findings: SiteFindings) -> [ConfigurationLine] {
        let asked = LearnedKind.offeredSchemes(in: findings.asked.first)
        guard LearnedKind.offeredSchemes(in: findings.root.first) != asked else { return [] }
        return [.proof(findings.asked.address, "needs the login, while \(findings.root.address.path) does not")]
    }
}

extension SiteFindings {
    /// The sentence about challenges that were not understood; empty if there are none.
    fileprivate var unreadAdvice: String {
        unreadText.map { " Not understood in its WWW-Authenticate: \($0)." } ?? ""
    }
}

extension LearnedKind {
    /// The information that a configuration lacks, and the remedy.
    fileprivate var defeat: String {
        switch self {
        case .api:
            "the answer does not say how to log in. An API key goes into `inject`; an OAuth 2 API needs `scheme: bearer` with "
                + "`token.url` and `token.detect: { status: 401 }`. For a login that a browser does, save the recording of its "
                + "network tools as a HAR file, and run `countersign learn URL --har FILE`."
        case .bearer:
            "the answer names no authorization server. Ask the operator of the API for the token endpoint, and set "
                + "`scheme: bearer` with `token.url`."
        case .mobileFirst:
            "a MobileFirst server needs the application's id, platform and version from its console: set `mobilefirst` of "
                + "the upstream, and a `security-check` for each check."
        case .open:
            "the address is open to everybody, so it shows no login. Name an address that needs the login."
        case .otherOrigin(let origin):
            "the login is at \(origin), another server, to which no secret is sent unless you name it: add --through \(origin) "
                + "if that is your identity provider."
        case .proxy:
            "a proxy on the way asks for a login of its own. Set `proxy` of the upstream to its address, with user name and "
                + "password, or have the network let this machine through."
        case .securityChecks:
            "the answer lists security checks, but not where answers go. Set `security-check`, `answer` and `answer-url`."
        case .unavailable:
            "the server has no page there, or hides it from anonymous requests. Name another address that needs the login, or "
                + "record a login in a browser (`--har FILE`)."
        case .refusal:
            "the page has no login form, and no link to one was found. If a script builds the form, record a login in a browser "
                + "(`--har FILE`); if the login page is elsewhere, learn that address."
        case .form, .nameFirst, .registry, .schemes: "the answer is not complete"
        }
    }
}
