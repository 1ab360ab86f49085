// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Synchronization

/// Finds the token endpoint for a resource by what the resource says of itself (RFC 9728) and what its authorization server
/// does (RFC 8414), among the servers that the configuration allows.
///
/// Nothing that goes out on the way holds a secret. What an upstream says chooses among the allowed servers and no more: its
/// metadata is read at its own origin only, the endpoint lies at the server's origin, and no redirect is followed.
public final class TokenDiscovery: Sendable {
    fileprivate let name: String
    private let resource: WebURL
    private let servers: [AuthorizationServer]
    private let takesScope: Bool
    /// What was found last, for renewals: it is asked for again when the resource challenges again.
    private let known = Mutex<DiscoveredEndpoint?>(nil)

    /// A search for the challenge `name` of the configuration; `resource` is the upstream's address, `servers` are those
    /// allowed, the preferred first. `takesScope`: whether the resource's word on its scope counts, as no other is configured.
    public init(name: String, resource: WebURL, servers: [AuthorizationServer], takesScope: Bool = false) {
        self.name = name
        self.resource = resource
        self.servers = servers
        self.takesScope = takesScope
    }

    /// True if an endpoint was found before.
    fileprivate var isFound: Bool { known.withLock { $0 != nil } }

    /// The scope that the resource has named is not asked for any more, until it names one again.
    fileprivate func forgetScope() { known.withLock { $0 = $0?.unscoped } }

    /// The token endpoint. `challenge` is the response that asked for a token; without one, what was found last is taken, or
    /// the resource's metadata looked for where they have to be (RFC 9728 §3.1). Throws `login-failed` for whatever is not
    /// as it has to be.
    func endpoint(
        after challenge: ExaminedResponse?, in conversation: Conversation
    ) async throws(LoginFailure) -> DiscoveredEndpoint {
        if !asksAnew(challenge), let known = known.withLock({ $0 }) { return known }
        let addresses = try metadataAddresses(in: challenge)
        let (server, metadata) = try await server(at: addresses, for: challenge?.url ?? resource, in: conversation)
        var endpoint = try await endpoint(of: server, for: metadata, in: conversation)
        conversation.report(
            ConversationStep(challenge: name, text: "token endpoint found: \(endpoint.url.origin)\(endpoint.url.path)"))
        known.withLock { known in
            let former = known?.server == server ? known?.scope : nil
            endpoint.scope = scope(in: challenge, metadata, former: former ?? .empty)
            known = endpoint
        }
        return endpoint
    }

    /// What is asked for on the resource's word: what its challenge names, else what its metadata does, besides what other
    /// challenges have named before. A 403 names what one request wants more; that is no word on all others.
    private func scope(in response: ExaminedResponse?, _ metadata: JSONValue, former: Scope) -> Scope {
        guard takesScope else { return .empty }
        if let response, response.status != 401 { return former }
        var named = Scope(bearerChallenges(in: response).compactMap { $0["scope"] }.flatMap { Scope(text: $0).words })
        if named.isEmpty, case .array(let values)? = metadata["scopes_supported"] {
            named = Scope(values.compactMap(\.stringValue))
        }
        guard named.isShort else { return former }
        let all = former.union(named)
        return all.isShort ? all : named
    }

    /// Whether the resource is asked once more where its tokens come from. A 403 that says nothing of that is only about the scope.
    private func asksAnew(_ response: ExaminedResponse?) -> Bool {
        guard let response else { return false }
        return response.status == 401 || bearerChallenges(in: response).contains { $0["resource_metadata"] != nil }
    }

    private func bearerChallenges(in response: ExaminedResponse?) -> [AuthenticationChallenge] {
        let values = response?.fields[values: .wwwAuthenticate] ?? []
        return ((try? AuthenticationChallenge.parse(values)) ?? []).filter { $0.isScheme("Bearer") }
    }

    /// Where the challenge says that the resource's metadata is (RFC 9728 §5.1); if it does not say, where that of the resource has
    /// to be (§3.1), and that of all its host, which clients of the Model Context Protocol look for next.
    private func metadataAddresses(in response: ExaminedResponse?) throws(LoginFailure) -> [WebURL] {
        let written = Set(bearerChallenges(in: response).compactMap { $0["resource_metadata"] })
        guard let text = written.first else {
            let name = "oauth-protected-resource"
            let addresses = [resource, WebURL(origin: resource.origin, path: "/")].map { $0.wellKnown(name) }
            return addresses[0] == addresses[1] ? [addresses[0]] : addresses
        }
        guard written.count == 1 else { throw failure("The challenge names several `resource_metadata`") }
        guard let address = WebURL(text), address.origin == resource.origin else {
            throw failure(
                "The challenge's `resource_metadata` is not at the upstream's own origin (RFC 9728 section 7.3), so it was not "
                    + "asked for")
        }
        return [address]
    }

    /// The first of the allowed servers that the resource at `url` names (RFC 9728 §3.2, 3.3), and all that it says.
    private func server(
        at addresses: [WebURL], for url: WebURL, in conversation: Conversation
    ) async throws(LoginFailure) -> (AuthorizationServer, JSONValue) {
        let what = "The resource's metadata"
        var found: JSONValue?
        for address in addresses where found == nil {
            found = try await fetch(address, "resource metadata", in: conversation)
        }
        guard let metadata = found else { throw failure("\(what) is not there (status 404)") }
        guard let text = metadata["resource"]?.stringValue, let named = WebURL(text), Self.covers(named, text, url)
        else {
            throw failure("\(what) is that of another resource (RFC 9728 section 3.3)")
        }
        guard case .array(let values)? = metadata["authorization_servers"] else {
            throw failure("\(what) names no authorization server")
        }
        let issuers = Set(values.compactMap(\.stringValue))
        guard let server = servers.first(where: { issuers.contains($0.issuer) }) else {
            throw failure("\(what) names none of `token.issuers` for its authorization server")
        }
        return (server, metadata)
    }

    /// What the server says of itself (RFC 8414 §3.2, 3.3).
    private func endpoint(
        of server: AuthorizationServer, for resource: JSONValue, in conversation: Conversation
    ) async throws(LoginFailure) -> DiscoveredEndpoint {
        let what = "The metadata of the authorization server \(server.issuer)"
        for address in server.metadataAddresses {
            guard let metadata = try await fetch(address, "server metadata", in: conversation) else { continue }
            guard metadata["issuer"]?.stringValue == server.issuer else {
                throw failure("\(what) is that of another issuer (RFC 8414 section 3.3)")
            }
            guard let endpoint = metadata["token_endpoint"]?.stringValue.flatMap({ WebURL($0) }) else {
                throw failure("\(what) names no token endpoint")
            }
            guard endpoint.origin == server.url.origin else {
                throw failure("\(what) names a token endpoint at another origin, which is not asked with a secret")
            }
            var methods = ["client_secret_basic"]
            if case .array(let values)? = metadata["token_endpoint_auth_methods_supported"] {
                methods = values.compactMap(\.stringValue)
            }
            return DiscoveredEndpoint(
                url: endpoint, server: server, resource: resource["resource"]?.stringValue ?? "", methods: methods,
                scope: .empty)
        }
        throw failure("\(what) is not there (status 404)")
    }

    /// The JSON object at `address`; `nil` for 404.
    private func fetch(
        _ address: WebURL, _ step: String, in conversation: Conversation
    ) async throws(LoginFailure) -> JSONValue? {
        let response: SideResponse
        do throws(SideRequestError) {
            response = try await conversation.sideRequests.send(
                SideRequest(method: .get, url: address, fields: [.accept: "application/json"]))
        } catch {
            conversation.report(ConversationStep(challenge: name, text: "\(step): no answer, \(error.reason)"))
            throw LoginFailure(error, step: step, challenge: name)
        }
        conversation.report(
            ConversationStep(challenge: name, text: "\(step): GET \(address.origin)\(address.path): \(response.status)")
        )
        switch response.status {
        case 404: return nil
        case 200:
            guard let json = JSONValue(parsing: response.body), json.objectValue != nil else {
                throw failure("The \(step) is no JSON object")
            }
            return json
        default:
            throw failure(
                "The request for the \(step) was answered with status \(response.status)",
                retryAt: Moment.retry(after: response.fields, now: conversation.now()))
        }
    }

    /// Whether `named`, written as `text`, is the resource at `url` or stands for all below it, segment by segment.
    private static func covers(_ named: WebURL, _ text: String, _ url: WebURL) -> Bool {
        guard named.origin == url.origin, named.query == nil, !text.contains("#") else { return false }
        let folder = named.path.hasSuffix("/") ? named.path : "\(named.path)/"
        return url.path == named.path || "\(url.path)/" == folder || url.path.hasPrefix(folder)
    }

    private func failure(_ what: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name,
            detail: "\(what). To ask a token endpoint without all that, name it by `token.url`.",
            retryAt: retryAt)
    }
}

/// Wins a token at an endpoint that is found first.
public struct DiscoveredTokenLogin: SessionLogin {
    private let discovery: TokenDiscovery
    private let challenge: ExaminedResponse?
    private let target: WebURL?
    private let makeLogin: @Sendable (DiscoveredEndpoint) -> any SessionLogin

    /// A login by what `makeLogin` makes for the endpoint that `discovery` finds after `challenge`. `target`: the address of the
    /// request that waits for it before any challenge, and is asked for one.
    public init(
        _ discovery: TokenDiscovery, challenge: ExaminedResponse?, target: WebURL? = nil,
        makeLogin: @escaping @Sendable (DiscoveredEndpoint) -> any SessionLogin
    ) {
        self.discovery = discovery
        self.challenge = challenge
        self.target = target
        self.makeLogin = makeLogin
    }

    /// Wins a session, or says why not.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        guard challenge == nil, let target, !discovery.isFound else {
            return try await win(conversation, after: challenge)
        }
        let occasion = SchemeOccasion(name: discovery.name, url: target, use: nil, conversation: conversation)
        guard case .response(let response) = try await SchemeProbe(target, occasion, isTarget: true).look() else {
            return .nothingAsked(at: target, now: conversation.now(), isBrief: true)
        }
        let met = ExaminedResponse(status: response.status, fields: response.fields, method: .head, url: target)
        guard BearerDetector(realm: nil).examine(met, hasSession: false) == .challenged() else {
            return .nothingAsked(at: target, now: conversation.now())
        }
        return try await win(conversation, after: met)
    }

    private func win(
        _ conversation: Conversation, after challenge: ExaminedResponse?
    ) async throws(LoginFailure) -> Session {
        let found = try await discovery.endpoint(after: challenge, in: conversation)
        do throws(LoginFailure) {
            return try await makeLogin(found).win(conversation)
        } catch {
            // The resource may name more than this client is granted: then what the server gives by itself has to do.
            guard error.concernsScope, !found.scope.isEmpty else { throw error }
            discovery.forgetScope()
            return try await makeLogin(found.unscoped).win(conversation)
        }
    }
}
