// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization
internal import TestSupport
import Testing

@Suite("Single sign-on of two applications at one identity provider")
struct SingleSignOnTests {
    /// An identity provider with a form, and the applications that send their users there.
    private final class Realm: Sendable {
        struct State {
            var provider = "", second = "", password = "right"
            var providerSessions: Set<String> = [], sessions: Set<String> = [], tickets: Set<String> = []
            var passwords: [String] = [], arrived: [String] = [], foreign: [String] = []
            var number = 0
            /// Path of the provider to which the second application sends its users, in place of the login.
            var detour: String?
            /// The second application sends users by a form with these inputs.
            var inputs = ""
            /// Further attributes of the provider's cookie.
            var attributes = ""
            /// The second application's page.
            var page = "Welcome"
            /// True if the second application does not answer after the sign-on.
            var hangs = false
            /// Cookies and bodies of forms that went to other addresses of the provider than its login.
            var others: [String] = []
        }
        let state = Mutex(State())

        /// Answers as the provider: a form, and a page that posts a ticket back by itself.
        func provide(_ request: FakeRequest) -> FakeResponse? {
            note(request, allowing: ["sso"])
            return state.withLock { state in
                let service = request.queryFields["service"] ?? state.second + "/acs"
                if request.method == "POST", request.path != "/login" {
                    state.others.append(
                        "\(request.field("Cookie") ?? "-") \(String(decoding: request.body, as: UTF8.self))")
                }
                if let form = request.form, form["SAMLRequest"] == nil {
                    state.passwords.append("\(form["user"] ?? "") \(form["pass"] ?? "")")
                    guard form["pass"] == state.password else { return Self.form(service) }
                    state.number += 1
                    state.providerSessions.insert("p\(state.number)")
                    return Self.ticket(
                        &state, service, [("Set-Cookie", "sso=p\(state.number); Path=/\(state.attributes)")])
                }
                guard let session = request.cookie("sso"), state.providerSessions.contains(session) else {
                    return Self.form(service)
                }
                if request.path == "/account/delete" {
                    return Self.page(
                        "<form method=post><input type=hidden name=csrf value=t><input type=password name=pass></form>")
                }
                return Self.ticket(&state, service, [])
            }
        }

        /// Answers as an application does: a caller without a session is sent to the provider.
        func serve(_ request: FakeRequest, at origin: String) -> FakeResponse? {
            note(request, allowing: ["sid"])
            return state.withLock { state in
                let isSecond = origin == state.second
                if request.path == "/acs" {
                    if isSecond, state.hangs {
                        var response = FakeResponse(200)
                        response.delivery.hangs = true
                        state.arrived.append("hangs")
                        return response
                    }
                    guard let ticket = request.form?["SAMLResponse"], state.tickets.remove(ticket) != nil else {
                        return FakeResponse(400)
                    }
                    state.number += 1
                    state.sessions.insert("s\(state.number)")
                    if isSecond, state.page != "Welcome" {
                        var response = Self.page(state.page)
                        response.fields.append(("Set-Cookie", "sid=s\(state.number); Path=/; HttpOnly"))
                        return response
                    }
                    return FakeResponse(
                        303, fields: [("Set-Cookie", "sid=s\(state.number); Path=/; HttpOnly"), ("Location", "/")])
                }
                guard let session = request.cookie("sid"), state.sessions.contains(session) else {
                    if isSecond, !state.inputs.isEmpty {
                        return Self.page("<form method=post action='\(state.provider)/sso'>\(state.inputs)</form>")
                    }
                    let path = (isSecond ? state.detour : nil) ?? "/login?service=\(origin)/acs"
                    return FakeResponse(302, fields: [("Location", "\(state.provider)\(path)")])
                }
                if request.method == "POST" { state.arrived.append(String(decoding: request.body, as: UTF8.self)) }
                return Self.page(isSecond ? state.page : "Welcome")
            }
        }

        /// Records cookies that belong to another server.
        private func note(_ request: FakeRequest, allowing names: Set<String>) {
            let cookies = (request.field("Cookie") ?? "").split(separator: ";").map { $0.filter { $0 != " " } }
            let foreign = cookies.filter { !names.contains(String($0.prefix { $0 != "=" })) }
            state.withLock { $0.foreign += foreign }
        }

        private static func form(_ service: String) -> FakeResponse {
            page(
                "<form method=post action='/login?service=\(service)'><input name=user><input type=password name=pass></form>"
            )
        }

        private static func ticket(
            _ state: inout State, _ service: String, _ fields: [(name: String, value: String)]
        ) -> FakeResponse {
            state.number += 1
            state.tickets.insert("t\(state.number)")
            var response = page(
                "<form method=post action='\(service)'><input type=hidden name=SAMLResponse value=t\(state.number)></form>"
            )
            response.fields += fields
            return response
        }

        private static func page(_ text: String) -> FakeResponse {
            FakeResponse(200, fields: [("Content-Type", "text/html")], body: Array(text.utf8))
        }
    }

    private func withRealm(
        password: String = "right", at host: String = "127.0.0.1", more: String = "",
        _ scenario: (Bank, Realm) async throws -> Void
    ) async throws {
        let (realm, provider, tickets) = (Realm(), FakeUpstream(), FakeUpstream())
        try provider.start()
        defer { provider.stop() }
        try tickets.start()
        defer { tickets.stop() }
        let idp = "http://\(host):\(provider.port)"
        realm.state.withLock { ($0.provider, $0.second) = (idp, "http://127.0.0.1:\(tickets.port)") }
        provider.override { realm.provide($0) }
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.workers = 2
        configuration.environment = ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": password]
        configuration.upstreams = [
            "wiki:\n  url: \"http://127.0.0.1:${UPSTREAM_PORT}/\"",
            "tickets:\n  url: \"http://127.0.0.1:\(tickets.port)/\"",
        ]
        configuration.listeners = """
            address: 127.0.0.1:${PROXY_PORT}
            upstream: wiki
            routes:
              - { path: /tickets/, upstream: tickets, strip-prefix: true }
            """
        configuration.challenges = ["wiki", "tickets"].map {
            "name: \($0)\nupstream: \($0)\ngateway: form\ncredential: ann\nlogin: { through: \"\(idp)\" }\(more)"
        }
        try await withBank(configuration) { bank in
            let (wiki, other) = ("http://127.0.0.1:\(bank.upstream.port)", "http://127.0.0.1:\(tickets.port)")
            bank.upstream.override { realm.serve($0, at: wiki) }
            tickets.override { realm.serve($0, at: other) }
            try await scenario(bank, realm)
        }
        #expect(realm.state.withLock { $0.foreign } == [], "no server receives a cookie of another")
    }

    @Test("20 cold POSTs to both send one password, and each is executed once")
    func once() async throws {
        try await withRealm { bank, realm in
            let answers = try await withThrowingTaskGroup(of: Curl.self) { group in
                for number in 0..<20 {
                    let path = number % 2 == 0 ? "/page" : "/tickets/page"
                    group.addTask { try await bank.curl(path, "-d", "body-\(number)") }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0.status == 200 && $0.text == "Welcome" }, "\(answers.map(\.summary))")
            let state = realm.state.withLock { $0 }
            #expect(state.passwords == ["ann right"])
            #expect(state.arrived.sorted() == (0..<20).map { "body-\($0)" }.sorted())
        }
    }

    @Test("an ended session is replaced by the provider's, and only if that has ended by the password")
    func ended() async throws {
        try await withRealm { bank, realm in
            try await bank.expect("/", status: 200)
            realm.state.withLock { $0.sessions = [] }
            try await bank.expect("/", status: 200)
            #expect(realm.state.withLock { $0.passwords.count } == 1)
            realm.state.withLock { ($0.sessions, $0.providerSessions) = ([], []) }
            try await bank.expect("/tickets/", status: 200)
            #expect(realm.state.withLock { $0.passwords.count } == 2)
        }
    }

    @Test("a wrong password is sent once, for both applications together")
    func wrong() async throws {
        try await withRealm(password: "wrong") { bank, realm in
            try await bank.expect("/", status: 502, code: "login-rejected")
            for path in ["/", "/tickets/", "/tickets/"] {
                try await bank.expect(path, status: 503, code: "login-latched")
            }
            #expect(realm.state.withLock { $0.passwords } == ["ann wrong"])
        }
    }

    @Test("an upstream cannot have the password typed into another page of the provider than its login")
    func confirmation() async throws {
        try await withRealm { bank, realm in
            try await bank.expect("/", status: 200)
            realm.state.withLock { $0.detour = "/account/delete" }
            for path in ["/tickets/", "/"] { try await bank.expect(path, status: 200) }
            let state = realm.state.withLock { $0 }
            #expect(state.others == [] && state.passwords.allSatisfy { $0 == "ann right" })
        }
    }

    @Test("an upstream's form takes neither other inputs than the message to the provider, nor its SameSite cookies")
    func forgery() async throws {
        try await withRealm(at: "localhost") { bank, realm in
            realm.state.withLock { state in
                state.attributes = "; SameSite=Lax"
                state.inputs =
                    "<input type=hidden name=SAMLRequest value=m><input type=hidden name=delete value=all>"
            }
            try await bank.expect("/", status: 200)
            try await bank.expect("/tickets/", status: 200)
            let others = realm.state.withLock { $0.others }
            #expect(!others.isEmpty && others.allSatisfy { $0 == "- SAMLRequest=m" }, "\(others)")
        }
    }

    @Test("words of `failed` on an upstream's page do not reject what the provider has accepted")
    func words() async throws {
        let more = "\nfailed: { body-contains: \"Wrong password\", because: wrong-password }"
        try await withRealm(more: more) { bank, realm in
            realm.state.withLock { $0.page = "Wrong password" }
            for path in ["/tickets/", "/", "/tickets/"] { try await bank.expect(path, status: 200) }
            #expect(realm.state.withLock { $0.passwords } == ["ann right"])
        }
    }

    @Test("an upstream that hangs after the sign-on does not delay the logins of another")
    func hangs() async throws {
        try await withRealm { bank, realm in
            realm.state.withLock { $0.hangs = true }
            async let late = bank.curl("/tickets/", "-m", "3")
            #expect(await eventually { realm.state.withLock { $0.arrived == ["hangs"] } })
            try await bank.expect("/", "-m", "5", status: 200)
            _ = try? await late
            #expect(realm.state.withLock { $0.passwords } == ["ann right"])
        }
    }
}
