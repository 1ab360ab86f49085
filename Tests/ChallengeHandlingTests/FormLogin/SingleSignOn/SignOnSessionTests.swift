// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import TestSupport
import Testing

@Suite("Sign-on with a session that the provider holds already")
struct SignOnSessionTests {
    private let app = SignOn.app
    private let wiki = SignOn.wiki
    private let provider = SignOn.provider
    private let deletion = """
        <p>Confirm with your password</p><form method=post action="/account/delete"><input type=hidden name=csrf value=t>
        <input type=password name=pass></form>
        """

    @Test("a form in the provider's session is not filled in: the sign-on begins anew without the session")
    func ended() async throws {
        let sessions = ProviderSessions()
        let rig = Portal.rig(
            SignOn.toForm() + SignOn.fromForm() + SignOn.toForm(sends: "lb=2; sso=3") + SignOn.toForm()
                + SignOn.fromForm())
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        _ = try await rig.logIn(SignOn.login(sessions))
        #expect(rig.passwords == 2)
    }

    @Test(
        "an upstream cannot have an action of the provider confirmed with the password",
        arguments: [nil, #"<input type=password name=again>"#])
    func confirmation(_ more: String?) async throws {
        let sessions = ProviderSessions()
        let page = more.map { deletion.replacing("</form>", with: "\($0)</form>") } ?? deletion
        let action = "\(provider)/account/delete"
        let rig = Portal.rig(
            SignOn.toForm() + SignOn.fromForm() + [
                SignOn.get("\(wiki)/", 302, set: ["state=1; Path=/"], to: action),
                SignOn.get(action, 200, page, sends: "lb=2; sso=3"),
                // Without a session, the provider shows its login form first.
                SignOn.get("\(wiki)/", 302, set: ["state=1; Path=/"], to: action),
                SignOn.get(action, 302, to: "/login"),
                SignOn.get("\(provider)/login", 200, SignOn.form, set: ["lb=2; Path=/"]),
                SignOn.post(
                    "\(provider)/login", SignOn.filledIn, 302, set: ["sso=5; Path=/"], to: "/account/delete",
                    sends: "lb=2"),
                SignOn.get(action, 200, page, sends: "lb=2; sso=5"),
            ])
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        let failure = await rig.expectUnknown(try SignOn.login(from: wiki, sessions))
        #expect(failure.detail.contains("/account/delete"), "\(failure.detail)")
        #expect(rig.requests.sent.allSatisfy { $0.method == .get || $0.url.path == "/login" })
    }

    @Test("after the provider has let the user go, it gets no further form filled in")
    func formAfterwards() async throws {
        let steps = [
            GatewayStep(
                target: .form,
                parameters: [
                    .init(name: "user", value: try TextTemplate("{username}")),
                    .init(name: "pass", value: try TextTemplate("{password}")),
                ], hiddenFields: true),
            GatewayStep(target: .form, parameters: [.init(name: "code", value: try TextTemplate("{username}"))]),
        ]
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, 302, set: ["sso=3"], to: "\(app)/cb", sends: "lb=2"),
                SignOn.get("\(app)/cb", 302, to: "\(provider)/disable", sends: "state=1"),
                SignOn.get(
                    "\(provider)/disable", 200, "<form method=post action=/disable><input name=code></form>",
                    sends: "lb=2; sso=3"),
            ])
        _ = await rig.expectUnknown(try SignOn.login(rules: SignOn.rules(steps: steps)))
    }

    @Test("all upstreams of a provider share its form: at another path it is not filled in for any")
    func sharedForm() async throws {
        let sessions = ProviderSessions()
        let other = SignOn.form.replacing("/login", with: "/~mallory")
        let rig = Portal.rig(
            SignOn.toForm() + SignOn.fromForm() + SignOn.toForm(wiki, form: other, sends: "lb=2; sso=3")
                + SignOn.toForm(wiki, form: other))
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        let failure = await rig.expectUnknown(try SignOn.login(from: wiki, sessions))
        #expect(failure.detail.contains("/~mallory"), "\(failure.detail)")
        #expect(rig.passwords == 1)
    }

    @Test("an upstream that refuses the user leaves the provider's session to others, and begins without it next time")
    func refusedInSession() async throws {
        let sessions = ProviderSessions()
        func visit(_ upstream: Origin, _ status: Int) -> [ScriptedStep] {
            [
                SignOn.get("\(upstream)/", 302, set: ["state=1; Path=/"], to: "\(provider)/login"),
                SignOn.get("\(provider)/login", 302, to: "\(upstream)/cb", sends: "lb=2; sso=3"),
                SignOn.get("\(upstream)/cb", status, set: ["sid=4; Path=/"], sends: "state=1"),
            ]
        }
        let rig = Portal.rig(
            SignOn.toForm() + SignOn.fromForm() + visit(wiki, 401) + visit(app, 200) + SignOn.toForm(wiki)
                + SignOn.fromForm(wiki))
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        await #expect(throws: LoginFailure.self) {
            _ = try await rig.logInUnfinished(SignOn.login(from: wiki, sessions))
        }
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        _ = try await rig.logIn(SignOn.login(from: wiki, sessions))
        #expect(rig.passwords == 2 && rig.latches.all.isEmpty)
    }
}

@Suite("SameSite in a sign-on")
struct SignOnSiteTests {
    private let app = SignOn.app
    private let wiki = SignOn.wiki
    private let provider = SignOn.provider

    /// Logs in at the application, and then at the wiki by `steps`.
    private func logIn(_ steps: [ScriptedStep]) async throws {
        let sessions = ProviderSessions()
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post(
                    "\(provider)/login", SignOn.filledIn, 302,
                    set: [
                        "s=1; Path=/; SameSite=Strict", "l=2; Path=/; SameSite=Lax",
                        "n=3; Path=/; SameSite=None; Secure",
                    ],
                    to: "\(app)/cb", sends: "lb=2")
            ] + SignOn.back() + steps + SignOn.back(wiki))
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        _ = try await rig.logIn(SignOn.login(from: wiki, sessions))
        #expect(rig.passwords == 1)
    }

    @Test("a redirect of the upstream carries no Strict cookie to the provider, nor do the redirects after it")
    func redirects() async throws {
        try await logIn([
            SignOn.get("\(wiki)/", 302, set: ["state=1; Path=/"], to: "\(provider)/sso"),
            SignOn.get("\(provider)/sso", 302, to: "/next", sends: "lb=2; l=2; n=3"),
            SignOn.get(
                "\(provider)/next", 200,
                "<form method=post action=/own><input type=hidden name=a value=1></form><script>x.submit()</script>",
                sends: "lb=2; l=2; n=3"),
            SignOn.post("\(provider)/own", "a=1", 302, to: "\(wiki)/cb", sends: "lb=2; s=1; l=2; n=3"),
        ])
    }

    @Test("a form of the upstream carries None cookies, young ones without the attribute, and the message alone")
    func forms() async throws {
        let page = """
            <form method=post action="\(provider)/sso"><input type=hidden name=SAMLRequest value=m>
            <input type=hidden name=delete value=all><input type=hidden name=RelayState value=r></form>
            """
        try await logIn([
            SignOn.get("\(wiki)/", 200, page, set: ["state=1; Path=/"]),
            SignOn.post("\(provider)/sso", "SAMLRequest=m&RelayState=r", 302, to: "\(wiki)/cb", sends: "lb=2; n=3"),
        ])
    }

    @Test(
        "a form of the upstream with any other message is not sent to the provider",
        arguments: [
            "SAMLResponse", "wresult",
        ])
    func otherMessages(_ name: String) async throws {
        let page = "<form method=post action='\(provider)/sso'><input type=hidden name=\(name) value=m></form>"
        let rig = Portal.rig([
            SignOn.get("\(app)/", 302, to: "\(provider)/login"),
            SignOn.get("\(provider)/login", 302, to: "\(app)/cb"), SignOn.get("\(app)/cb", 200, page, set: ["sid=4"]),
        ])
        _ = try await rig.logIn(SignOn.login())
    }
}

@Suite("Turns of sign-ons at one provider", .timeLimit(.minutes(5)))
struct SignOnTurnTests {
    @Test("two logins at once send one password: the second waits for the first, and uses its session")
    func concurrent() async throws {
        let (sessions, realm) = (ProviderSessions(), Realm())
        let (first, second) = (try SignOn.login(sessions), try SignOn.login(from: SignOn.wiki, sessions))
        async let one = first.logIn(realm.conversation())
        async let two = second.logIn(realm.conversation())
        _ = try await (one, two)
        #expect(realm.passwords == 1)
    }

    @Test(
        "an upstream that hangs before or after the provider's part does not delay the logins of others",
        arguments: ["/", "/cb", "/me"])
    func hangingUpstream(_ path: String) async throws {
        let (sessions, realm) = (ProviderSessions(), Realm(hangsAt: "\(SignOn.wiki)\(path)"))
        let hanging = try SignOn.login(from: SignOn.wiki, sessions, proof: path == "/me" ? path : nil)
        async let late = hanging.logIn(realm.conversation())
        #expect(await eventually { realm.isHanging })
        _ = try await SignOn.login(sessions).logIn(realm.conversation())
        #expect(realm.passwords == 1)
        realm.goOn()
        _ = try await late
        #expect(realm.passwords == 1)
    }

    @Test("a login that waits for another at the provider reports it to its conversation")
    func waiting() async throws {
        let (sessions, realm) = (ProviderSessions(), Realm(hangsAt: "\(SignOn.provider)/login"))
        let waits = Mutex<[Bool]>([])
        let (first, second) = (try SignOn.login(from: SignOn.wiki, sessions), try SignOn.login(sessions))
        async let one = first.logIn(realm.conversation())
        #expect(await eventually { realm.isHanging })
        async let two = second.logIn(realm.conversation { wait in waits.withLock { $0.append(wait) } })
        #expect(await eventually { waits.withLock { $0 == [true] } })
        realm.goOn()
        _ = try await (one, two)
        #expect(waits.withLock { $0 } == [true, false])
    }
}

/// Applications and their identity provider, which answer by address and cookies in any order.
private final class Realm: SideRequests {
    private struct State {
        var passwords = 0
        var hung: CheckedContinuation<Void, Never>?
        var hasHung = false
        var isHanging = false
    }

    private let state = Mutex(State())
    private let address: String?

    /// Creates servers. The first request for `address` is answered when the test says so.
    init(hangsAt address: String? = nil) { self.address = address }

    var passwords: Int { state.withLock { $0.passwords } }
    var isHanging: Bool { state.withLock { $0.isHanging } }

    func goOn() {
        state.withLock { state in
            state.isHanging = false
            return state.hung
        }?.resume()
    }

    func conversation(waiting: @escaping @Sendable (Bool) -> Void = { _ in }) -> Conversation {
        Conversation(
            sideRequests: self, credentials: Credentials([.ann]), attempts: LocalGate(), state: MemoryStore(),
            now: { LoginRig.now }, waiting: waiting)
    }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        let (origin, path) = (request.url.origin, request.url.path)
        if "\(origin)\(path)" == address, state.withLock({ !$0.hasHung }),
            request.fields[.cookie] != nil || path != "/me"
        {
            await withCheckedContinuation { continuation in
                state.withLock { ($0.hung, $0.hasHung, $0.isHanging) = (continuation, true, true) }
            }
        }
        let cookies = request.fields[.cookie] ?? ""
        if origin == SignOn.provider {
            let service = request.url.query?.replacing("service=", with: "") ?? ""
            if request.method == .post {
                state.withLock { $0.passwords += 1 }
                return redirect(to: service, set: "sso=1; Path=/")
            }
            if cookies.contains("sso=1") { return redirect(to: service) }
            return page(SignOn.form.replacing("/login", with: "/login?service=\(service)"))
        }
        if path == "/cb" { return redirect(to: "/", set: "sid=1; Path=/") }
        if cookies.contains("sid=1") { return page("Welcome") }
        return redirect(to: "\(SignOn.provider)/login?service=\(origin)/cb", set: "state=1; Path=/")
    }

    private func page(_ text: String) -> SideResponse {
        SideResponse(status: 200, fields: [.contentType: "text/html"], body: Array(text.utf8))
    }

    private func redirect(to location: String, set cookie: String? = nil) -> SideResponse {
        var fields: HTTPFields = [.location: location]
        fields[.setCookie] = cookie
        return SideResponse(status: 302, fields: fields)
    }
}
