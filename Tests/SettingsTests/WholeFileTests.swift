// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Logging
import Proxy
import Testing

@testable import Settings

@Suite("Whole configurations")
struct WholeFileTests {
    @Test("every listener, upstream and credential source becomes its value")
    func surroundings() throws {
        let settings = try #require(parsed(everything))
        #expect(
            settings.listeners[0]
                == ListenerSettings(
                    address: .tcp(host: "127.0.0.1", port: 8080), upstream: "bank",
                    hosts: ["bank.localhost", "ledger.example"], users: [.name("www-data"), .uid(1001)],
                    routes: [
                        RouteSettings(host: "ledger.localhost", upstream: "ledger", stripPrefix: false),
                        RouteSettings(
                            path: "/accounts/", methods: [.get, .head], users: [.name("ann")], upstream: "bank",
                            stripPrefix: true),
                    ], browsers: .origins(["https://app.example", "http://app.example"])))
        #expect(
            settings.listeners.map(\.address.description).dropFirst() == ["unix:/run/c.sock?mode=0660", "systemd:http"])
        #expect(settings.listeners.map(\.callers.limit) == [nil, 7, nil])
        #expect(settings.admin.addresses.map(\.description) == ["unix:/run/admin.sock", "[::1]:9180"])
        var connections = ConnectionSettings()
        connections.version = .http1
        connections.tls = TLSSettings(
            ca: "/ca.pem", certificate: "/c.pem", key: "/k.pem",
            pins: ["sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE="])
        connections.proxy = "socks5h://[::1]:1080"
        connections.allowsPlaintext = true
        #expect(
            settings.upstream(named: "bank")
                == UpstreamSettings(
                    name: "bank", url: try #require(WebURL("https://mfp.example.com/mfp/api/adapters/")),
                    connections: connections,
                    timeouts: .init(
                        connect: .milliseconds(500), response: .seconds(120), idle: .seconds(3600),
                        login: .seconds(90)),
                    replay: ReplayTiers(memory: 1024, disk: 1_073_741_824),
                    forwarding: ForwardingPolicy(host: .pass, callerCredentials: .keep, caller: .xForwarded),
                    mobileFirst: MobileFirstConfiguration(
                        api: try #require(WebURL("http://mfp.example.com/mfp/api")), application: "com.sample.pincode",
                        platform: .android, version: "2.1", scope: Scope(["one", "two"])),
                    check: UpstreamCheckPlan(path: "/health?deep=1", statuses: [200, 204], period: .seconds(60))))
        #expect(
            settings.credentials.sources
                == [.environment, .systemd, .keyring(path: "/k", keyFile: "/f", asks: true), .exec(["/h", "-x"])])
        #expect(settings.credentials.asked == ["bank-pin": ["pin", "tan"]])
        #expect(
            settings.limits == LimitSettings(callers: 1, exchanges: 2, waiters: 3, head: 4096, replay: 2_147_483_648))
        #expect(settings.audit == .none)
        #expect(settings.workers == .exactly(2))
        #expect(settings.log == LogSettings(level: .debug, format: .json))
    }

    @Test("every challenge becomes its value")
    func challenges() throws {
        let challenges = try #require(parsed(everything)).challenges
        try #require(
            challenges.map(\.name) == ["bank-pin", "portal", "corp", "api", "key", "scripted", "scripted-apart"])
        let answer: JSONValue = ["pin": "{pin}", "rememberMe": true, "n": [1, .double(1.5), nil, "1"]]
        #expect(
            challenges[0]
                == ChallengeSettings(
                    name: "bank-pin", location: .locations([try LocationPattern("mfp.example.com/*")]),
                    credential: "bank-pin",
                    kind: SecurityCheckSettings(
                        check: "PinCodeAttempts", answer: try AnswerTemplate(answer), keepAttempts: 2,
                        answerURL: .path("/login")), login: .atStart, retryRejected: .seconds(1800),
                    proofPath: "/whoami"))
        #expect(
            challenges[2].kind as? SchemeSettings
                == SchemeSettings(
                    schemes: [.negotiate, .digest, .basic], realm: "Corp",
                    servicePrincipal: "HTTP/www.corp.example.com"))
        #expect(
            challenges[3].kind as? SchemeSettings
                == SchemeSettings(
                    schemes: [.bearer],
                    token: TokenSettings(
                        grant: .clientCredentials, url: WebURL("https://id.example.com/token"), issuers: [],
                        scope: ["read", "write"],
                        audience: "https://api.example.com/",
                        parameters: [NamedTemplate(name: "resource", value: try TextTemplate("{tenant}"))],
                        clientAuthentication: .privateKeyJWT, field: try #require(HTTPField.Name("X-Auth")),
                        prefix: "Token")))
        #expect(
            challenges[4].kind as? InjectionSettings
                == InjectionSettings([
                    InjectedTemplate(name: try #require(.init("X-Api-Key")), value: try TextTemplate("{key}")),
                    InjectedTemplate(name: try #require(.init("X-Tenant")), value: try TextTemplate("blue")),
                ]))
        #expect(challenges[4].location == .upstream("ledger"))
    }

    @Test("a login by a helper becomes its value")
    func helpers() throws {
        let challenges = try #require(parsed(everything)).challenges
        let program = LoginHelper(
            .program(["/usr/lib/countersign/browser-login", "--no-sandbox"]), timeout: .seconds(20))
        #expect(
            (challenges[5].kind as? GatewaySettings)?.helper
                == HelperLoginSettings(helper: program, page: .path("/sign-in")))
        #expect(
            (challenges[6].kind as? GatewaySettings)?.helper
                == HelperLoginSettings(helper: LoginHelper(.socket("/run/countersign-browser.sock"))))
        #expect(challenges[5].login == .onDemand && challenges[6].login == .atStart)
    }

    @Test("every step and matcher of a gateway becomes its value")
    func gateway() throws {
        let portal = try #require(parsed(everything)).challenges[1]
        #expect(portal.login == .atStart)
        var second = LoginStep(
            target: .address(.absolute(try #require(WebURL("https://portal.example.com/pkmslogin.form")))), method: .put
        )
        second.body = .json
        second.document = try AnswerTemplate(["username": "{username}", "j_password": "{password}"])
        second.headers = [
            InjectedTemplate(name: try #require(.init("X-Requested-With")), value: try TextTemplate("us"))
        ]
        second.timeout = .seconds(3)
        #expect(
            portal.kind as? GatewaySettings
                == GatewaySettings(
                    preset: .none,
                    detect: [
                        ResponseMatcher(
                            statuses: [200, 403],
                            fields: [FieldMatcher(name: try #require(.init("X-A")), contains: "b")],
                            bodyContains: ["pkmslogin.form"], contentTypes: ["text/html"])
                    ], login: [LoginStep(page: .path("/login"), target: .form, hiddenFields: true), second],
                    success: [
                        ResponseMatcher(cookies: ["PD-S-SESSION-ID"]), ResponseMatcher(redirectTo: ["/home"]),
                    ],
                    failed: [
                        FailureMatcher(
                            matcher: ResponseMatcher(bodyContains: ["HPDIA0200W"]), cause: .wrongPassword),
                        FailureMatcher(
                            matcher: ResponseMatcher(fields: [FieldMatcher(name: try #require(.init("X-Locked")))]),
                            cause: .locked),
                    ], logout: LogoutSettings(url: .path("/pkmslogout")),
                    passedCookies: ["csrftoken", "XSRF-TOKEN"]))
    }

    @Test("missing files and patterns that cover nothing are the only warnings of the complete file")
    func warnings() {
        #expect(
            problems(everything) == [
                "f:17:16: upstreams.bank.tls.ca: warning: /ca.pem: there is no such file",
                "f:17:38: upstreams.bank.tls.certificate: warning: /c.pem: there is no such file",
                "f:17:51: upstreams.bank.tls.key: warning: /k.pem: there is no such file",
                "f:49:10: challenges[1].at[0]: warning: covers nothing at any upstream",
                "f:49:42: challenges[1].at[1]: warning: covers nothing at any upstream",
                "f:105:14: sessions.tls.ca: warning: /ca.pem: there is no such file",
            ])
    }

    @Test("keys that are left out have their defaults")
    func defaults() throws {
        let settings = try #require(parsed(frame()))
        #expect(
            settings
                == Settings(
                    listeners: [
                        ListenerSettings(
                            address: .tcp(host: "127.0.0.1", port: 8080), upstream: "u", hosts: [], routes: [],
                            browsers: .refuse)
                    ], admin: AdminSettings(addresses: []),
                    upstreams: [
                        UpstreamSettings(
                            name: "u", url: try #require(WebURL("https://u.example/")),
                            timeouts: .init(
                                connect: .seconds(5), response: .seconds(60), idle: .seconds(300), login: .seconds(60)),
                            replay: ReplayTiers(memory: 65_536, disk: 16_777_216),
                            mobileFirst: MobileFirstConfiguration(
                                api: try #require(WebURL("https://u.example/mfp/api")), application: "a",
                                platform: .ios,
                                version: "1.0"))
                    ], credentials: CredentialSettings(), challenges: [],
                    limits: LimitSettings(
                        callers: 1024, exchanges: 4096, waiters: 1024, head: 65_536, replay: 268_435_456),
                    audit: .journal, workers: .automatic, log: LogSettings(level: .info, format: .auto)))
    }
}
