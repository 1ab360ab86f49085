// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Synchronization

/// Discovery of a resource's token endpoint, restricted to the configured servers. It uses the metadata of the resource
/// (RFC 9728) and of its authorization server (RFC 8414).
///
/// Requests of the discovery carry no secret. An upstream's response only selects among the allowed servers: its
/// metadata is read at its own origin, the endpoint must be at the server's origin, and redirects are not followed.
public final class TokenDiscovery: Sendable {
    fileprivate let name: String
    private let resource: WebURL
    private let servers: [AuthorizationServer]
    private let takesScope: Bool
    private let usesCertificate: Bool
    /// The last discovered endpoint, for renewals. It is discovered again when the resource challenges again.
    private let known = Mutex<DiscoveredEndpoint?>(nil)

    /// Creates a discovery for the challenge `name` of the configuration. `resource` is the upstream's address,
    /// `servers` are the allowed ones in order of preference. With `takesScope` the resource's scope is requested,
    /// since no other is configured. With `usesCertificate` the client authenticates by the certificate of its connection.
    public init(
        name: String, resource: WebURL, servers: [AuthorizationServer], takesScope: Bool = false,
        usesCertificate: Bool = false
    ) {
        self.usesCertificate = usesCertificate
        self.name = name
        self.resource = resource
        self.servers = servers
        self.takesScope = takesScope
    }

    /// True if an endpoint was discovered before.
    fileprivate var isFound: Bool { known.withLock { $0 != nil } }

    /// Stops requesting the resource's scope until the resource names one again.
    fileprivate func forgetScope() { known.withLock { $0 = $0?.unscoped } }

    /// Returns the token endpoint. `challenge` is the response that asked for a token. Without one, the last discovered
    /// endpoint is used, or the resource's metadata is fetched from its well-known address (RFC 9728 §3.1). Throws
    /// `login-failed` for invalid metadata.
    func endpoint(
        after challenge: ExaminedResponse?, in conversation: Conversation
    ) async throws(LoginFailure) -> DiscoveredEndpoint {
        if !needsDiscovery(challenge), let known = known.withLock({ $0 }) { return known }
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

    /// Returns the scope to request for the resource: that of its challenge, else of its metadata, together with those
    /// of earlier challenges. A 403 names the additional scope of one request, which does not apply to others.
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

    /// Returns whether discovery must be repeated. A 403 without `resource_metadata` is only about the scope.
    private func needsDiscovery(_ response: ExaminedResponse?) -> Bool {
        guard let response else { return false }
        return response.status == 401 || bearerChallenges(in: response).contains { $0["resource_metadata"] != nil }
    }

    private func bearerChallenges(in response: ExaminedResponse?) -> [AuthenticationChallenge] {
        response.map { ChallengeList(in: $0.fields).challenges(of: "Bearer") } ?? []
    }

    /// Returns the addresses of the resource's metadata. The challenge may name one (RFC 9728 §5.1). Otherwise they are
    /// the well-known address of the resource (§3.1) and that of its host, which clients of the Model Context Protocol
    /// try next.
    private func metadataAddresses(in response: ExaminedResponse?) throws(LoginFailure) -> [WebURL] {
        let written = Set(bearerChallenges(in: response).compactMap { $0["resource_metadata"] })
        guard let text = written.first else {
            let name = "oauth-protected-resource"
            let addresses = [resource, WebURL(origin: resource.origin, path: "/")].map { $0.wellKnown(name) }
            return addresses[0] == addresses[1] ? [addresses[0]] : addresses
        }
        guard written.count == 1 else { throw failure("The challenge names several `resource_metadata`") }
        guard let address = try? WebURL(reading: text.utf8), address.origin == resource.origin else {
            throw failure(
                "The challenge's `resource_metadata` is not at the upstream's own origin (RFC 9728 §7.3), so it was not "
                    + "requested")
        }
        return [address]
    }

    /// Returns the first allowed server that the resource at `url` names. The resource's metadata (RFC 9728 §3.2, 3.3)
    /// comes with it.
    private func server(
        at addresses: [WebURL], for url: WebURL, in conversation: Conversation
    ) async throws(LoginFailure) -> (AuthorizationServer, JSONValue) {
        let what = "The resource's metadata"
        var found: JSONValue?
        for address in addresses where found == nil {
            found = try await fetch(address, "resource metadata", in: conversation)
        }
        guard let metadata = found else { throw failure("\(what) does not exist (status 404)") }
        guard let text = metadata["resource"]?.stringValue, let named = try? WebURL(reading: text.utf8),
            Self.covers(named, text, url)
        else {
            throw failure("\(what) belongs to another resource (RFC 9728 §3.3)")
        }
        guard case .array(let values)? = metadata["authorization_servers"] else {
            throw failure("\(what) names no authorization server")
        }
        let issuers = Set(values.compactMap(\.stringValue))
        guard let server = servers.first(where: { issuers.contains($0.issuer) }) else {
            throw failure("\(what) names none of `token.issuers` as its authorization server")
        }
        return (server, metadata)
    }

    /// Returns the endpoint from the server's own metadata (RFC 8414 §3.2, 3.3).
    private func endpoint(
        of server: AuthorizationServer, for resource: JSONValue, in conversation: Conversation
    ) async throws(LoginFailure) -> DiscoveredEndpoint {
        let what = "The metadata of the authorization server \(server.issuer)"
        for address in server.metadataAddresses {
            guard let metadata = try await fetch(address, "server metadata", in: conversation) else { continue }
            guard metadata["issuer"]?.stringValue == server.issuer else {
                throw failure("\(what) belongs to another issuer (RFC 8414 §3.3)")
            }
            // Servers may ask for certificates at another address only (RFC 8705 §5).
            let alias = usesCertificate ? metadata["mtls_endpoint_aliases"]?["token_endpoint"] : nil
            guard
                let endpoint = (alias ?? metadata["token_endpoint"])?.stringValue.flatMap({
                    try? WebURL(reading: $0.utf8)
                })
            else {
                throw failure("\(what) names no token endpoint")
            }
            guard endpoint.origin == server.url.origin else {
                throw failure("\(what) names a token endpoint at another origin, to which no secret is sent")
            }
            var methods = ["client_secret_basic"]
            if case .array(let values)? = metadata["token_endpoint_auth_methods_supported"] {
                methods = values.compactMap(\.stringValue)
            }
            return DiscoveredEndpoint(
                url: endpoint, server: server, resource: resource["resource"]?.stringValue ?? "", methods: methods,
                scope: .empty)
        }
        throw failure("\(what) does not exist (status 404)")
    }

    /// Fetches the JSON object at `address`; `nil` for 404.
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
                throw failure("The \(step) is not a JSON object")
            }
            return json
        default:
            throw failure(
                "The request for the \(step) was answered with status \(response.status)",
                retryAt: Moment.retry(after: response.fields, now: conversation.now()))
        }
    }

    /// Returns whether `named` is the resource at `url` or a parent, by whole segments. `text` is its written form.
    private static func covers(_ named: WebURL, _ text: String, _ url: WebURL) -> Bool {
        guard named.origin == url.origin, named.query == nil, !text.contains("#") else { return false }
        let folder = named.path.hasSuffix("/") ? named.path : "\(named.path)/"
        return url.path == named.path || "\(url.path)/" == folder || url.path.hasPrefix(folder)
    }

    private func failure(_ what: String, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(
            .failed, challenge: name,
            detail: "\(what). To use a token endpoint without discovery, set `token.url`.",
            retryAt: retryAt)
    }
}

/// Login with a token from a discovered endpoint.
public struct DiscoveredTokenLogin: SessionLogin {
    private let discovery: TokenDiscovery
    private let challenge: ExaminedResponse?
    private let target: WebURL?
    private let makeLogin: @Sendable (DiscoveredEndpoint) -> any SessionLogin

    /// Creates a login that discovers its endpoint after `challenge`. `makeLogin` makes the login for that endpoint.
    /// `target` is the address of a request that waits before any challenge; it is asked for one.
    public init(
        _ discovery: TokenDiscovery, challenge: ExaminedResponse?, target: WebURL? = nil,
        makeLogin: @escaping @Sendable (DiscoveredEndpoint) -> any SessionLogin
    ) {
        self.discovery = discovery
        self.challenge = challenge
        self.target = target
        self.makeLogin = makeLogin
    }

    /// Discovers the endpoint and establishes a session there.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        guard challenge == nil, let target, !discovery.isFound else {
            return try await logIn(conversation, after: challenge)
        }
        let occasion = SchemeOccasion(name: discovery.name, url: target, use: nil, conversation: conversation)
        guard
            case .response(let response) = try await SchemeProbe(target, occasion, isTarget: true)
                .askWithoutCredential()
        else {
            return .nothingAsked(at: target, now: conversation.now(), isBrief: true)
        }
        let met = ExaminedResponse(status: response.status, fields: response.fields, method: .head, url: target)
        guard BearerDetector(realm: nil).examine(met, hasSession: false) == .challenged() else {
            return .nothingAsked(at: target, now: conversation.now())
        }
        return try await logIn(conversation, after: met)
    }

    private func logIn(
        _ conversation: Conversation, after challenge: ExaminedResponse?
    ) async throws(LoginFailure) -> Session {
        let found = try await discovery.endpoint(after: challenge, in: conversation)
        do throws(LoginFailure) {
            return try await makeLogin(found).logIn(conversation)
        } catch {
            // The resource may name more scope than this client is granted; then the server's default scope must do.
            guard error.concernsScope, !found.scope.isEmpty else { throw error }
            discovery.forgetScope()
            return try await makeLogin(found.unscoped).logIn(conversation)
        }
    }
}

/// A discovered token endpoint with its metadata. The resource (RFC 9728) and its authorization server (RFC 8414)
/// supplied them.
public struct DiscoveredEndpoint: Sendable, Equatable {
    /// The endpoint.
    public let url: WebURL
    /// The authorization server of the endpoint.
    public let server: AuthorizationServer
    /// The resource as its metadata writes it: the audience of the token (RFC 8707).
    public let resource: String
    /// The client authentication methods that the server supports, named as in RFC 7591 §2.
    let methods: [String]
    /// The scope that the resource names; empty if the resource requires none.
    public internal(set) var scope: Scope

    /// The client authentication if it is not configured: by secret with a supported method, the safer one first. A
    /// private key is used only if the server accepts no secret.
    var clientAuthentication: TokenConfiguration.ClientAuthentication {
        let known: [(String, TokenConfiguration.ClientAuthentication)] = [
            ("client_secret_basic", .basic), ("client_secret_post", .body), ("private_key_jwt", .privateKeyJWT),
        ]
        return known.first { methods.contains($0.0) }?.1 ?? .basic
    }

    /// This endpoint without the resource's scope.
    var unscoped: DiscoveredEndpoint {
        var endpoint = self
        endpoint.scope = .empty
        return endpoint
    }
}

extension TokenConfiguration {
    /// Creates a configuration for a discovered endpoint. Without `clientAuthentication` the server's metadata decides.
    public init(
        _ found: DiscoveredEndpoint, grant: Grant, clientAuthentication: ClientAuthentication? = nil,
        audience: String? = nil, parameters: [Parameter] = [], placement: TokenPlacement = TokenPlacement()
    ) {
        self.init(
            url: found.url, grant: grant, clientAuthentication: clientAuthentication ?? found.clientAuthentication,
            audience: audience, parameters: parameters, placement: placement)
        resource = found.resource
        assertionAudience = found.server.issuer
    }
}

/// An OAuth authorization server, named by its issuer identifier (RFC 8414 §2).
public struct AuthorizationServer: Sendable, Hashable {
    /// The issuer identifier as written, since it is compared character by character.
    public let issuer: String
    /// The issuer identifier as an address.
    public let url: WebURL

    /// Creates the server of that identifier. `nil` for an invalid one: a scheme other than https (http only on
    /// loopback), a query, or a fragment (RFC 8414 §2).
    public init?(_ issuer: String) {
        guard !issuer.contains("?"), !issuer.contains("#"), let url = WebURL(issuer) else { return nil }
        guard url.origin.scheme == .https || url.origin.isLoopback else { return nil }
        self.issuer = issuer
        self.url = url
    }

    /// The addresses of its metadata: first that of RFC 8414 §3.1, then those of OpenID Connect. The latter are at the
    /// path of RFC 8414 §5 and, for older servers, at that of OpenID Connect Discovery 1.0 §4.
    var metadataAddresses: [WebURL] {
        let (inserted, appended) = (
            url.wellKnown("openid-configuration"), url.appending(path: "/.well-known/openid-configuration")
        )
        let openID = inserted == appended ? [appended] : [inserted, appended]
        return [url.wellKnown("oauth-authorization-server")] + openID
    }
}

extension WebURL {
    /// Returns the well-known address `name` for this resource or server. The name is inserted between host and path,
    /// without a trailing slash (RFC 8414 §3.1, RFC 9728 §3.1).
    func wellKnown(_ name: String) -> WebURL {
        let rest = path.hasSuffix("/") ? String(path.dropLast()) : path
        return WebURL(origin: origin, path: "/.well-known/\(name)\(rest)", query: query)
    }
}
