// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import HTTPTypes
internal import System

/// Diagnosis of one upstream, without sending a secret.
///
/// The checks follow the path of a request: name, connection, TLS, clocks, the answer to an anonymous request, and the login for it.
struct UpstreamDiagnosis {
    /// Tolerated difference of the clocks, in milliseconds; `Date` has whole seconds.
    private static let clockTolerance: Int64 = 5_000

    let plan: UpstreamPlan
    /// The path to request, perhaps with a query, below the path of the upstream.
    let path: String
    let loop: CommandLoop
    let context: DaemonContext

    private var part: String { "upstream \(plan.name)" }

    func run() async -> [Diagnosis] {
        var found: [Diagnosis] = []
        let own = await connection(to: plan.base.origin, part, plan.connections.tls.pins)
        found += own
        if own.contains(where: { $0.state == .failed && $0.check != "certificate" && $0.check != "issuer" }) {
            found.append(.note(part, "challenge", "not checked, because there is no connection"))
        } else {
            found += await request()
        }
        for origin in plan.loginOrigins.subtracting([plan.base.origin]).sorted(by: { "\($0)" < "\($1)" }) {
            found += await connection(to: origin, "\(part), login at \(origin)", [])
        }
        found += await credentials()
        return found
    }

    // MARK: Connection

    private func connection(to origin: Origin, _ part: String, _ pins: [String]) async -> [Diagnosis] {
        var found: [Diagnosis] = []
        if let proxy = plan.connections.proxy {
            found.append(.note(part, "name", "resolved by the outbound proxy \(Self.withoutUser(proxy))"))
        } else {
            found += addresses(of: origin, part)
            if found.contains(where: { $0.state == .failed }) { return found }
        }
        let probe = await loop.probe(origin, of: plan, checks: true)
        guard origin.scheme == .https, probe.failure?.isTLS ?? true else {
            guard let failure = probe.failure else { return found }
            return found + [.failed(part, "connection", failure.words, failure.remedy)]
        }
        var chain = probe.certificates
        if probe.failure != nil { chain = await loop.probe(origin, of: plan, checks: false).certificates }
        let certificates = CertificateDiagnosis(part: part, pins: pins, now: SystemClock.wallClock())
        return found + certificates.diagnoses(of: probe, chain: chain)
    }

    private func addresses(of origin: Origin, _ part: String) -> [Diagnosis] {
        let lookup = NameLookup(host: origin.host, port: origin.port)
        guard !lookup.addresses.isEmpty else {
            return [
                .failed(
                    part, "name", "\(origin.host) cannot be resolved: \(lookup.failure ?? "no address")",
                    "check the host in its address, and the resolver of this machine (getent hosts \(origin.host))")
            ]
        }
        var found: [Diagnosis] = [
            .good(part, "name", "\(origin.host): \(lookup.addresses.map(\.text).joined(separator: ", "))")
        ]
        let outcomes = lookup.addresses.map { ($0.text, $0.connect(within: plan.timeouts.connect)) }
        let isAnyConnected = outcomes.contains { if case .connected = $0.1 { true } else { false } }
        for (address, outcome) in outcomes {
            switch outcome {
            case .connected(let milliseconds):
                found.append(.good(part, "connection", "\(address) in \(milliseconds) ms"))
            case .failed(let words):
                let remedy = "check that it runs and listens there, and firewalls between this machine and the server"
                found.append(
                    isAnyConnected
                        ? .warning(part, "connection", "\(address): \(words)", remedy)
                        : .failed(part, "connection", "\(address): \(words)", remedy))
            }
        }
        return found
    }

    /// Returns an address without its user name and password.
    private static func withoutUser(_ address: String) -> String {
        guard let at = address.lastIndex(of: "@") else { return address }
        return String(address[address.index(after: at)...])
    }

    // MARK: An anonymous request

    private func request() async -> [Diagnosis] {
        // The request has no secret, so it may be sent without TLS.
        var connections = plan.connections
        connections.allowsPlaintext = true
        let open = UpstreamPlan(name: plan.name, base: plan.base, connections: connections, timeouts: plan.timeouts)
        let url = path.isEmpty ? plan.base : plan.base.appending(target: path)
        var request = SideRequest(method: .get, url: url, fields: [.accept: "text/html, */*;q=0.5"])
        request.allowsPartialBody = true
        request.timeout = plan.timeouts.response
        let began = SystemClock.wallClock()
        do throws(SideRequestError) {
            let answer = try await loop.anonymousRequests(at: open).send(request)
            let now = (began + SystemClock.wallClock()) / 2
            return [clock(answer, now: now), challenge(in: answer, at: url)]
        } catch {
            return [unanswered(url, error)]
        }
    }

    private func unanswered(_ url: WebURL, _ error: SideRequestError) -> Diagnosis {
        let asked = "GET \(url.path) was not answered"
        if error.kind == .timedOut {
            return .failed(
                part, "challenge",
                "\(asked) within \(plan.timeouts.response), the `timeouts.response` of this upstream, after the connection was made",
                "check the load and the log of the server, or raise `timeouts.response` if it needs longer")
        }
        let reason = error.publicReason.isEmpty ? error.reason : error.publicReason
        // A server that speaks TLS answers a request in the clear by ending the connection, or in bytes that are not HTTP.
        let mayBeTLS = url.origin.scheme == .http && error.kind != .originNotAllowed
        return .failed(
            part, "challenge", "\(asked): \(reason)",
            mayBeTLS ? "check the server; if it speaks TLS at this port, write https:// in its url" : "check the server"
        )
    }

    private func clock(_ answer: SideResponse, now: Int64) -> Diagnosis {
        guard let date = answer.fields[.date].flatMap({ Moment.httpDate($0) }) else {
            return .note(part, "clock", "the server sends no Date")
        }
        // The field is rounded down to the second.
        let offset = date + 500 - now
        let seconds = "\(abs(offset) / 1000) s"
        guard abs(offset) > Self.clockTolerance else {
            return .good(part, "clock", "the clocks agree within a few seconds")
        }
        return .warning(
            part, "clock", "the server's clock is \(seconds) \(offset > 0 ? "ahead of" : "behind") this machine's",
            "correct the clock that is wrong (timedatectl): certificates, tokens and one-time passwords depend on it")
    }

    private func challenge(in answer: SideResponse, at url: WebURL) -> Diagnosis {
        let response = ExaminedResponse(answer, url: url)
        let authenticator = plan.logins.matching(Location(url))
        let matching = authenticator.first { login in
            if case .challenged? = login.trigger.detector?.examine(response, hasSession: false) { true } else { false }
        }
        let summary = "GET \(url.path) without a login: \(answer.status)\(Self.challengeText(of: answer))"
        if let matching {
            let kind = matching.trigger.detector?.kind ?? ""
            let sign = matching.trigger.detector?.sign(of: response).map { ", by \($0)" } ?? ""
            return .good(part, "challenge", "\(summary); \(matching.name) (\(kind)) answers it\(sign)")
        }
        let ahead = authenticator.filter { $0.trigger.detector == nil }.map(\.name).joined(separator: ", ")
        if !ahead.isEmpty, answer.status == 401 || answer.status == 403 {
            return .note(
                part, "challenge",
                "\(summary); \(ahead) adds its values to each request, and this one was sent without them: a request through the "
                    + "daemon shows if the server accepts them")
        }
        let names = authenticator.filter { $0.trigger.detector != nil }.map(\.name).joined(separator: ", ")
        let others = Set(plan.logins.all.map(\.name)).sorted().joined(separator: ", ")
        let reason =
            names.isEmpty
            ? others.isEmpty ? "no challenge is configured there" : "the `at` of \(others) does not cover this path"
            : "none of \(names) answers it"
        let hasForm = HTMLPage(response).passwordForm != nil
        if [401, 403].contains(answer.status) || hasForm {
            let learning = "countersign learn \(url) finds out how this server logs in"
            return .warning(
                part, "challenge", "\(summary)\(hasForm ? ", with a login form" : ""); \(reason)",
                names.isEmpty
                    ? learning
                    : (answer.fields[values: .wwwAuthenticate].isEmpty && answer.status == 401
                        ? "the 401 has no WWW-Authenticate, so a challenge with `scheme` needs `detect: { status: 401 }` (of a token, "
                            + "`token.detect`)"
                        : "if this login is intended, check the challenge's scheme, realm, detect and location (countersign "
                            + "explain); \(learning)"))
        }
        if answer.status >= 500 { return .warning(part, "challenge", summary, "check the server") }
        return .note(
            part, "challenge",
            "\(summary): no login is demanded there\(names.isEmpty ? "" : "; give a protected path by --path")")
    }

    /// Returns the schemes of a refusal with their realms, or the target of a redirect. Other parameters, and queries, are left out.
    private static func challengeText(of answer: SideResponse) -> String {
        let values = answer.fields[values: .wwwAuthenticate]
        if !values.isEmpty {
            let list = ChallengeList(values)
            var schemes = list.challenges.map { challenge in
                ServerText.name(challenge.scheme)
                    + (challenge["realm"].map { " (realm \"\(ServerText.sentence($0))\")" } ?? "")
            }
            if let unread = list.unreadText { schemes.append("not understood: \(unread)") }
            return ", WWW-Authenticate: \(schemes.joined(separator: ", "))"
        }
        guard (300...399).contains(answer.status), let location = answer.fields[.location] else { return "" }
        return " to \(location.prefix { $0 != "?" && $0 != "#" }.prefix(200))"
    }

    // MARK: Credentials

    private func credentials() async -> [Diagnosis] {
        let now = SystemClock.wallClock()
        var found: [Diagnosis] = []
        var seen: Set<String> = []
        for login in plan.forEverybody.flatMap(\.logins.all) where login.refusal == nil {
            for name in login.credentials where seen.insert(name).inserted {
                let challenges = login.asks.isEmpty ? [login.name] : login.asks
                let (diagnosis, credential) = await credential(name, of: login.name)
                found.append(diagnosis)
                guard let credential else { continue }
                let missing = (login.requiredFields[name] ?? []).subtracting(credential.fields.keys).sorted()
                if !missing.isEmpty {
                    let fields = missing.joined(separator: ", ")
                    found.append(
                        .failed(
                            part, "credential", "\(login.name): \(name) lacks \(fields)",
                            context.sources.advice(onMissing: name), code: EX_CONFIG))
                }
                let digest = context.attempts.digest(of: credential)
                let closed = context.services.gate.read {
                    $0.closed(now: now) { other, owner in owner == name && other != digest }
                }
                for var latch in closed where latch.key?.credential == name && challenges.contains(latch.challenge) {
                    latch.source = credential.source
                    found.append(
                        .failed(part, "latch", "\(latch.challenge): \(latch.refusal.why)", latch.refusal.localRemedy))
                }
            }
        }
        return found
    }

    private func credential(_ name: String, of login: String) async -> (Diagnosis, Credential?) {
        do throws(CredentialError) {
            guard let credential = try await context.sources.credential(named: name) else {
                return (
                    .failed(
                        part, "credential", "\(login): no source knows \(name)",
                        context.sources.advice(onMissing: name), code: EX_CONFIG), nil
                )
            }
            let fields = credential.fields.keys.sorted().joined(separator: ", ")
            return (.good(part, "credential", "\(login): \(name) has \(fields)"), credential)
        } catch {
            if error.reason.contains(NoTerminal.reason) {
                return (
                    .note(
                        part, "credential",
                        "\(login): \(name) was not looked up: a value is typed at a prompt, and \(NoTerminal.reason)"),
                    nil
                )
            }
            let code = error.reason.contains("denied") || error.reason.contains("mode 0") ? EX_NOPERM : EX_CONFIG
            return (
                .failed(
                    part, "credential", "\(login): \(error.reason)", "check the credential sources above", code: code),
                nil
            )
        }
    }
}
