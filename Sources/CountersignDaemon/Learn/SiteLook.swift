// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Learning
internal import Secrets
internal import System

/// Visit of a site without a secret, to compose the configuration of its login.
struct SiteLook {
    /// Findings of the visit.
    struct Result {
        /// The responses of the site.
        let findings: SiteFindings
        /// The plan of a login that asks for the name first, whose second page is unknown. Nil otherwise.
        var names: NamePlan?
        /// The lines of the challenge.
        let plan: LearnedPlan
        /// A whole configuration, whose login was not tried.
        let block: ConfigurationBlock
        /// The stored fields of the credential.
        let stored: [String: Secret]
    }

    let address: WebURL
    /// The file of the authorities of the site's certificate; nil for the system's.
    let authorities: String?
    /// The identity provider that may get the credential, if one is named.
    let provider: Origin?
    /// The recording of a login, if there is one.
    let recording: HARRecording?
    let credentials: LearnCredential

    /// The configuration that forwards to the site without a login.
    var forwarding: ConfigurationBlock {
        ConfigurationBlock(
            name: credentials.name, url: WebURL(origin: address.origin, path: "/"), authorities: authorities,
            challenge: [], fields: [])
    }

    /// Requests the address. Throws a `LearnDefeat` that names the page with insufficient information. `report` gets
    /// lines.
    func run(report: (String) -> Void) throws -> Result {
        let stored = try credentials.stored()
        let recorded = try recording.map { recording throws(LearnDefeat) in
            try RecordedLogin(recording, at: address.origin, known: stored)
        }
        let findings = try look(page: recorded?.page)
        let kind = LearnedKind(findings)
        report("\(findings.asked.summary)")
        if let unread = findings.unreadText { report("not understood in its WWW-Authenticate: \(unread)") }
        report(recorded.map { "the recording has a login at \($0.url.path)" } ?? "this is \(kind)")
        let plan =
            if let recorded { try LearnedPlan(findings, recorded: recorded) } else {
                try LearnedPlan(findings, kind: kind, known: Set(stored.keys), provider: provider)
            }
        guard address.origin.scheme == .https || address.origin.isLoopback else {
            throw LearnDefeat(
                findings.asked.summary, "no secret is sent over http to another machine. Use the https address.")
        }
        var block = forwarding
        block.challenge = plan.lines
        block.fields = plan.fields
        var result = Result(findings: findings, plan: plan, block: block, stored: stored)
        if recorded == nil, case .nameFirst = kind { result.names = NamePlan(findings) }
        return result
    }

    /// Visits the site. `page` is the login page of a recording.
    private func look(page: WebURL?) throws -> SiteFindings {
        let (address, base, isRecorded) = (address, forwarding.url, recording != nil)
        let found = try LoginTrial.probe(forwarding) { requests -> Swift.Result<SiteFindings, SideRequestError> in
            do throws(SideRequestError) {
                let visitor = SiteVisitor(requests: requests, now: SystemClock.wallClock)
                guard isRecorded else {
                    return .success(try await SiteProbe(visitor).run(address, base: base))
                }
                var findings = SiteFindings(
                    asked: try await visitor.visit(address), root: try await visitor.visit(base))
                if let page, findings.asked.form == nil { findings.loginPage = try await visitor.visit(page) }
                return .success(findings)
            } catch {
                return .failure(error)
            }
        }
        switch found {
        case .success(let findings): return findings
        case .failure(let error):
            throw Failure("GET \(address) was not answered: \(error.reason)", code: EX_UNAVAILABLE)
        }
    }
}
