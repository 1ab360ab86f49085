// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import EventLoop
internal import HTTPWire

// Upstream.
extension DownstreamConnection {
    /// Makes ready the exchange of a request; `false`: it was answered.
    func prepare(_ request: RequestHead, to destination: Router.Destination) -> Bool {
        guard var client = worker.client(named: destination.upstream) else {
            reply(LocalReply(.noRoute, detail: "There is no upstream \(destination.upstream) any more."))
            return false
        }
        if client.dependsOnCaller {
            guard let own = ownClient(at: client) else { return false }
            client = own
        }
        guard setTerms(for: request, of: client), hasOneReading(request, to: destination, of: client) else {
            return false
        }
        guard worker.admitExchange() else {
            reply(
                LocalReply(
                    .overloaded,
                    detail: "As many exchanges run as `limits.exchanges` allows. Try again shortly, or raise it.",
                    retryAfter: 1), of: client)
            return false
        }
        isAdmitted = true
        tally.begin(at: worker.loop.now)
        stripped = destination.stripped
        phase = .exchange
        awaitsContinue = request.expectsContinue && input.isEmpty
        isBodyHeld = awaitsContinue
        setTimeLimit(isBodyComplete || awaitsContinue ? nil : worker.limits.bodyTime)
        let otherMethod = request.method == .other ? head.withSpan { $0.text(request.methodRange) } : ""
        offer = listener.isAuthority ? nil : upgradeOffer(of: request, to: client)
        if offer != nil { keepsAlive = false }
        // The expectation goes along, so that a body which is not wanted does not cross at all (RFC 9110 §10.1.1).
        let outbound = ExchangeRequest(
            method: request.method, otherMethod: otherMethod, framing: request.body,
            expectsContinue: request.expectsContinue && request.first(.expect)?.isNominated == false,
            keepsCredentials: terms.keepsCredentials, isUpgrade: offer != nil, isSubrequest: listener.isAuthority)
        let exchange = makeExchange()
        let path = request.target.pathAndQuery
        if request.method == .options, path.isEmpty {
            // About the server as a whole: the asterisk, or an address without path and query (RFC 9112 §3.2.4).
            exchange.begin(outbound, path: "*".utf8.span, to: client)
        } else {
            let start = min(path.start + destination.stripped, path.end)
            head.withSpan { exchange.begin(outbound, path: $0.extracting(start..<path.end), to: client) }
        }
        return true
    }

    /// Starts what was made ready. Apart, for an exchange that is over at once gives the head up.
    func start() {
        exchange?.start()
        tally.handedOver(by: worker.loop)
    }

    /// The client of an upstream for this very caller; `nil`: it was refused.
    private func ownClient(at client: UpstreamClient) -> UpstreamClient? {
        if let user = callerUser { return client.client(for: user) }
        // One who may be a user with credentials of their own must not pass for everybody else: who has closed its side, say.
        if isStranger { return client.client(for: nil) }
        reply(
            LocalReply(
                .callerNotAllowed,
                detail:
                    "\(Admission.stranger) Challenges of upstream \(client.plan.name) have their credentials by user."
            ))
        return nil
    }

    /// Refuses a path at which challenges differ by how the upstream reads it; `false`: it was refused.
    private func hasOneReading(
        _ request: RequestHead, to destination: Router.Destination, of client: UpstreamClient
    ) -> Bool {
        guard !client.plan.logins.isUniform else { return true }
        let path = request.target.path
        let agree = head.withSpan { bytes in
            let start = min(path.start + destination.stripped, path.end)
            return CredentialReadings.agree(on: bytes.extracting(start..<path.end), at: client.plan)
        }
        if !agree { reply(.ambiguousPath, of: client) }
        return agree
    }

    /// Takes up by what the request is forwarded; `false`: it was refused.
    private func setTerms(for request: RequestHead, of client: UpstreamClient) -> Bool {
        upstream = client
        let policy = client.forwarding
        terms.policy = policy
        terms.keepsCredentials = false
        if policy.caller != .none { terms.peer = SocketName.peer(of: descriptor) }
        switch policy.callerCredentials {
        case .replace:
            break
        case .keep:
            terms.keepsCredentials = request.fields.contains { $0.kind == .authorization && !$0.isHopByHop }
        case .refuse:
            guard request.first(.authorization) == nil else {
                reply(
                    LocalReply(
                        .callerNotAllowed,
                        detail: """
                            Callers bring no credentials of their own to upstream \(client.plan.name) \
                            (`caller-credentials: refuse`). Leave Authorization out.
                            """), of: client)
                return false
            }
        }
        return true
    }
}
