// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Tokens for container registries")
struct RegistryLoginTests {
    private static let user = TokenScript.credential(["refresh-token": nil])
    private static let scope = "repository:a:pull,push repository:b:pull"

    private static func challenge(
        realm: String = TokenScript.address, service: String = "registry.example.com"
    ) throws -> RegistryChallenge {
        let fields: HTTPFields = [.wwwAuthenticate: value(realm: realm, service: service)]
        return try #require(RegistryChallenge(status: 401, fields: fields))
    }

    private static func value(
        realm: String = TokenScript.address, service: String = "registry.example.com", scope: String = scope
    ) -> String {
        "Bearer realm=\"\(realm)\",service=\"\(service)\",scope=\"\(scope)\""
    }

    private static func service(name: String? = nil) throws -> RegistryService {
        RegistryService(
            url: try #require(WebURL(TokenScript.address)),
            registry: try #require(WebURL("https://reg.example.com/base/")),
            name: name)
    }

    private static func login(
        _ challenge: RegistryChallenge?, at service: RegistryService? = nil, scope: String = scope
    ) throws -> RegistryLogin {
        RegistryLogin(
            try service ?? Self.service(), key: TokenScript.key, scope: Scope(text: scope), challenge: challenge,
            refreshTokens: RefreshTokens(credential: "api-client", origin: TokenScript.origin))
    }

    private static func fetched(
        _ body: String = #"{"token":"token-1","expires_in":120,"issued_at":"2026-11-21T16:00:00Z"}"#
    ) -> ScriptedStep {
        ScriptedStep(.get, TokenScript.address, TokenScript.answering(body)) { request in
            // "ann-u:pass&word"
            request.fields[.authorization] == "Basic YW5uLXU6cGFzcyZ3b3Jk" && request.body == nil
        }
    }

    @Test("name and password get a registry token for the registry's own name and each scope separately")
    func fetches() async throws {
        let rig = LoginRig.tokens([Self.fetched()], Self.user)
        let session = try await rig.logIn(try Self.login(try Self.challenge()))
        #expect(
            session.fields.map(\.value) == [Secret("Bearer token-1")] && session.expiresAt == LoginRig.now + 120_000)
        #expect(
            rig.requests.sent.first?.url.query
                == "service=registry.example.com&scope=repository%3Aa%3Apull%2Cpush&scope=repository%3Ab%3Apull&account=ann-u"
        )
    }

    @Test("a registry token without a lifetime expires after a minute, and may be called access_token")
    func answers() async throws {
        for (body, value) in [
            (#"{"token":"t"}"#, "t"), (#"{"access_token":"a"}"#, "a"), (#"{"token":"t","access_token":"a"}"#, "t"),
        ] {
            let session = try await LoginRig.tokens([Self.fetched(body)], Self.user).logIn(
                try Self.login(try Self.challenge()))
            #expect(session.fields.map(\.value) == [Secret("Bearer \(value)")])
            #expect(session.expiresAt == LoginRig.now + 60_000)
        }
    }

    @Test("a realm other than the configured token service gets nothing and is reported")
    func otherRealm() async throws {
        for realm in [
            "https://evil.example.com/token", "http://id.example.com/token", "https://id.example.com/other",
            "https://id.example.com/token?x=1", "https://id.example.com:444/token", "nonsense",
        ] {
            let rig = LoginRig.tokens([], Self.user)
            let failure = await rig.lose(try Self.login(try Self.challenge(realm: realm)))
            #expect(failure.code == .failed && failure.detail.contains("token.url") && rig.latches.all.isEmpty)
        }
    }

    @Test("a registry that calls itself by another name than the configured one gets nothing")
    func otherService() async throws {
        let service = try Self.service(name: "registry.example.com")
        let rig = LoginRig.tokens([], Self.user)
        let failure = await rig.lose(try Self.login(try Self.challenge(service: "victim.example.com"), at: service))
        #expect(failure.code == .failed && failure.detail.contains("token.audience"))
        _ = try await LoginRig.tokens([Self.fetched()], Self.user).logIn(
            try Self.login(try Self.challenge(), at: service))
    }

    @Test("a renewal without a challenge uses the registry's name of the last challenge")
    func renewal() async throws {
        let service = try Self.service()
        for challenge in [try Self.challenge(), nil] {
            let rig = LoginRig.tokens([Self.fetched()], Self.user)
            _ = try await rig.logIn(try Self.login(challenge, at: service, scope: "repository:c:pull"))
            #expect(
                rig.requests.sent.first?.url.query
                    == "service=registry.example.com&scope=repository%3Ac%3Apull&account=ann-u")
        }
    }

    @Test("before any challenge the registry is asked for its name once, without a secret")
    func versionCheck() async throws {
        let service = try Self.service()
        let question = ScriptedStep(
            .get, "https://reg.example.com/base/v2/",
            .success(SideResponse(status: 401, fields: [.wwwAuthenticate: Self.value(scope: "")]))
        ) { $0.fields[.authorization] == nil }
        for steps in [[question, Self.fetched()], [Self.fetched()]] {
            let rig = LoginRig.tokens(steps, Self.user)
            _ = try await rig.logIn(try Self.login(nil, at: service))
            #expect(rig.requests.sent.last?.url.query?.hasPrefix("service=registry.example.com&") == true)
        }
    }

    @Test("a registry's refresh token is sent by POST instead of name and password, and its successor is saved")
    func refreshes() async throws {
        let store = MemoryStore()
        for (sent, next) in [("refresh-1", "refresh-2"), ("refresh-2", "refresh-2")] {
            let step = ScriptedStep(
                .post, TokenScript.address,
                TokenScript.answering(#"{"access_token":"token-1","refresh_token":"\#(next)"}"#)
            ) { request in
                request.form("grant_type") == "refresh_token" && request.form("refresh_token") == sent
                    && request.form("service") == "registry.example.com" && request.form("scope") == Self.scope
                    && request.form("client_id") == "client:1" && request.fields[.authorization] == nil
            }
            _ = try await LoginRig.tokens([step], store: store).logIn(try Self.login(try Self.challenge()))
        }
    }

    @Test("a wrong registry password is sent once, whatever the scope")
    func rejected() async throws {
        let rig = LoginRig.tokens([Self.fetched().replying(401)], Self.user)
        #expect(await rig.lose(try Self.login(try Self.challenge())).code == .rejected)
        #expect(await rig.lose(try Self.login(try Self.challenge(), scope: "repository:z:pull")).code == .latched)
        #expect(rig.requests.sent.count == 1)
    }

    @Test("a repository that is refused to an accepted password latches nothing; without a scope it decides")
    func refusedRepository() async throws {
        let empty = ScriptedStep(.get, TokenScript.address, TokenScript.answering()) { request in
            request.url.query == "service=registry.example.com&account=ann-u"
        }
        for (status, code) in [(200, .failed), (401, .rejected)] as [(Int, LoginFailure.Code)] {
            let confirmation = status == 200 ? empty : empty.replying(status)
            let rig = LoginRig.tokens([Self.fetched(), Self.fetched().replying(401), confirmation], Self.user)
            _ = try await Self.login(try Self.challenge(), scope: "repository:mine:pull").logIn(rig.conversation)
            let failure = await rig.lose(try Self.login(try Self.challenge(), scope: "repository:other:pull"))
            #expect(failure.code == code && failure.concernsScope == (status == 200))
            #expect(rig.latches.all.count == (status == 200 ? 0 : 1))
        }
    }

    @Test("other answers of a registry's token service say nothing about the password")
    func unknown() async throws {
        for status in [403, 404, 429, 500, 302] {
            let rig = LoginRig.tokens([Self.fetched().replying(status)], Self.user)
            #expect(await rig.lose(try Self.login(try Self.challenge())).code == .failed)
            #expect(rig.latches.all.isEmpty)
        }
    }

    @Test("a repository that the token service calls denied concerns that repository, accepted password or not")
    func denied() async throws {
        for (status, body) in [
            (403, #"{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}"#),
            (400, #"{"error":"invalid_scope"}"#),
        ] {
            let rig = LoginRig.tokens([Self.fetched().replying(status, [:], body)], Self.user)
            let failure = await rig.lose(try Self.login(try Self.challenge()))
            #expect(failure.code == .failed && failure.concernsScope && rig.latches.all.isEmpty)
            #expect(failure.retryAt == LoginRig.now + 30_000)
        }
    }

    @Test("a registry's refresh token that its service refuses is latched, also if the status is 200")
    func refusedToken() async throws {
        let step = ScriptedStep(
            .post, TokenScript.address, TokenScript.answering(#"{"error":"invalid_grant"}"#))
        let rig = LoginRig.tokens([step])
        #expect(await rig.lose(try Self.login(try Self.challenge(), scope: "")).code == .rejected)
        #expect(await rig.lose(try Self.login(try Self.challenge(), scope: "")).code == .latched)
    }

    @Test("a name that Basic cannot carry is reported, and the token service gets nothing")
    func colon() async throws {
        let rig = LoginRig.tokens([], TokenScript.credential(["refresh-token": nil, "username": "an:n"]))
        #expect(await rig.lose(try Self.login(try Self.challenge())).code == .noCredential)
    }
}

@Suite("Scopes of container registries")
struct RegistryScopeTests {
    @Test(
        "a registry scope has one word for each resource, with its actions sorted",
        arguments: [
            ([], []), (["repository:a/b:push,pull"], ["repository:a/b:pull,push"]),
            (
                ["repository:a:push", "repository:a:pull,push", "repository:b:pull"],
                ["repository:a:pull,push", "repository:b:pull"]
            ),
            (["registry:catalog:*"], ["registry:catalog:*"]), (["word"], ["word"]), (["a:", "b:,"], ["a:", "b:,"]),
            (["repository:host:5000/a:pull"], ["repository:host:5000/a:pull"]),
        ])
    func canonical(words: [String], expected: [String]) {
        #expect(RegistryScope.canonical(words) == expected)
    }

    @Test(
        "a path of the registry's API determines the scope",
        arguments: [
            ("GET", "/v2/", ""), ("GET", "/v2/a/manifests/latest", "repository:a:pull"),
            ("HEAD", "/v2/a/b/c/blobs/sha256:00", "repository:a/b/c:pull"),
            ("GET", "/v2/a/tags/list", "repository:a:pull"),
            ("POST", "/v2/a/b/blobs/uploads/", "repository:a/b:pull,push"),
            ("PATCH", "/v2/a/b/blobs/uploads/17-ab", "repository:a/b:pull,push"),
            ("PUT", "/v2/a/manifests/latest", "repository:a:pull,push"),
            ("DELETE", "/v2/a/manifests/sha256:00", "repository:a:delete"),
            // A repository may have the name of an endpoint.
            ("GET", "/v2/blobs/tags/manifests/1", "repository:blobs/tags:pull"),
            ("GET", "/v2/manifests/blobs/blobs/sha256:00", "repository:manifests/blobs:pull"),
        ])
    func needed(method: String, path: String, scope: String) {
        #expect(RegistryScope.needed(method: method, path: path) == Scope(text: scope))
    }

    @Test(
        "other paths of a registry determine no scope",
        arguments: [
            "/", "/v2", "/v1/a/manifests/1", "/v2/_catalog", "/v2/a", "/v2/manifests/1", "/v2/a/manifests",
            "/v2//manifests/1", "/v2/a//b/manifests/1", "/v2/A b/manifests/1", "/v2/a:pull/manifests/1", "",
        ])
    func unknown(path: String) {
        #expect(RegistryScope.needed(method: "GET", path: path) == nil)
    }

    @Test("a registry's challenge names the token service and the scope")
    func challenge() {
        let value =
            #"Bearer realm="https://id.example.com/token",service="reg",scope="repository:a:push,pull repository:b:pull""#
        let challenge = RegistryChallenge(status: 401, fields: [.wwwAuthenticate: value])
        #expect(challenge?.realm == "https://id.example.com/token" && challenge?.service == "reg")
        #expect(challenge?.scope == Scope(["repository:a:pull,push", "repository:b:pull"]) && challenge?.error == nil)
        #expect(RegistryChallenge(status: 403, fields: [.wwwAuthenticate: value]) == nil)
        for other in [#"Basic realm="x""#, "Bearer", #"Bearer service="reg""#] {
            #expect(RegistryChallenge(status: 401, fields: [.wwwAuthenticate: other]) == nil)
        }
    }
}
