// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Login at an identity provider")
struct SignOnLoginTests {
    private let app = SignOn.app
    private let provider = SignOn.provider

    @Test("the form is filled in at the provider, and the session is the upstream's cookies alone")
    func login() async throws {
        let rig = Portal.rig(SignOn.toForm() + SignOn.fromForm())
        let session = try await rig.logIn(SignOn.login())
        #expect(try rig.cookies(session, at: app) == "sid=4")
        #expect(try rig.cookies(session, at: provider) == nil)
        #expect(rig.passwords == 1 && rig.latches.all.isEmpty)
    }

    @Test("each server receives its own cookies only, even if one sets them for the whole domain")
    func domainCookies() async throws {
        let domain = "Domain=example.com; Path=/"
        let rig = Portal.rig([
            SignOn.get("\(app)/", 302, set: ["state=1; \(domain)"], to: "\(provider)/login"),
            SignOn.get("\(provider)/login", 200, SignOn.form, set: ["lb=2; \(domain)"]),
            SignOn.post(
                "\(provider)/login", SignOn.filledIn, 302, set: ["sso=3; \(domain)"], to: "\(app)/cb", sends: "lb=2"),
            SignOn.get("\(app)/cb", 200, set: ["sid=4; \(domain)"], sends: "state=1"),
        ])
        let session = try await rig.logIn(SignOn.login())
        #expect(try rig.cookies(session, at: app) == "state=1; sid=4")
    }

    @Test("messages by forms that submit themselves are carried to the provider and back")
    func messages() async throws {
        func page(_ action: String, _ name: String) -> String {
            "<form method=post action='\(action)'><input type=hidden name=\(name) value=m><input type=hidden name=RelayState value=r>"
                + "</form>"
        }
        let rig = Portal.rig([
            SignOn.get("\(app)/", 200, page("\(provider)/sso", "SAMLRequest"), set: ["state=1; Path=/"]),
            SignOn.post("\(provider)/sso", "SAMLRequest=m&RelayState=r", 200, SignOn.form),
            SignOn.post("\(provider)/login", SignOn.filledIn, 200, page("\(app)/acs", "SAMLResponse"), set: ["sso=3"]),
            SignOn.post(
                "\(app)/acs", "SAMLResponse=m&RelayState=r", 303, set: ["sid=4; Path=/"], to: "/home", sends: "state=1"),
            SignOn.get("\(app)/home", 200, "<p>Welcome</p>", sends: "state=1; sid=4"),
        ])
        let session = try await rig.logIn(SignOn.login())
        #expect(try rig.cookies(session, at: app) == "state=1; sid=4")
    }

    @Test("a second upstream at the provider is let in by the provider's session, without the password")
    func shared() async throws {
        let sessions = ProviderSessions()
        let rig = Portal.rig(
            SignOn.toForm() + SignOn.fromForm() + [
                SignOn.get("\(SignOn.wiki)/", 302, set: ["state=1; Path=/"], to: "\(provider)/login?service=wiki"),
                SignOn.get("\(provider)/login", 302, to: "\(SignOn.wiki)/cb", sends: "lb=2; sso=3"),
            ] + SignOn.back(SignOn.wiki))
        _ = try await rig.logInUnfinished(SignOn.login(sessions))
        let session = try await rig.logIn(SignOn.login(from: SignOn.wiki, sessions))
        #expect(try rig.cookies(session, at: SignOn.wiki) == "sid=4")
        #expect(rig.passwords == 1)
    }

    @Test("a changed credential does not use the session of the one before")
    func changed() async throws {
        let sessions = ProviderSessions()
        let before = LoginRig(
            SignOn.toForm() + SignOn.fromForm(), credentials: [.ann])
        _ = try await before.logIn(SignOn.login(sessions))
        let bob = Credential(name: "ann", fields: ["username": Secret("bob-u"), "password": Secret("other")])
        let after = LoginRig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", "lt=1&user=bob-u&pass=other", 302, to: "\(app)/cb", sends: "lb=2")
            ] + SignOn.back(), credentials: [bob])
        _ = try await after.logIn(SignOn.login(sessions))
    }

    @Test("a wrong password is sent once: the form again, or a 401, closes the latch", arguments: [200, 401])
    func rejected(_ status: Int) async throws {
        let sessions = ProviderSessions()
        let rig = Portal.rig(
            SignOn.toForm() + [SignOn.post("\(provider)/login", SignOn.filledIn, status, SignOn.form, sends: "lb=2")])
        #expect(await rig.lose(try SignOn.login(sessions)).code == .rejected)
        #expect(await rig.lose(try SignOn.login(sessions)).code == .latched)
        #expect(rig.latches.keys == [SignOn.key()] && rig.passwords == 1)
    }

    @Test("a password that was rejected for one upstream is not sent for another of the same provider")
    func rejectedForAll() async throws {
        let sessions = ProviderSessions()
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, 302, to: "/login?error", sends: "lb=2")
            ]
                + [SignOn.get("\(provider)/login", 200, SignOn.form, sends: "lb=2")])
        let other = try SignOn.login(from: SignOn.wiki, sessions)
        #expect(await rig.lose(try SignOn.login(sessions)).code == .rejected)
        let failure = await rig.lose(other)
        #expect(failure.code == .latched && failure.challenge == "app.example.com")
    }

    @Test("the credential is never filled into a form of the upstream")
    func formOfUpstream() async throws {
        let rig = Portal.rig([
            SignOn.get("\(app)/", 302, to: "\(provider)/login"),
            SignOn.get("\(provider)/login", 302, to: "\(app)/phish"), SignOn.get("\(app)/phish", 200, SignOn.form),
        ])
        _ = await rig.lose(try SignOn.login())
        #expect(rig.passwords == 0)
    }

    @Test(
        "the credential is never sent to another origin than the provider's",
        arguments: ["https://evil.example.com/login", "https://app.example.com/login", "http://idp.example.com/login"])
    func formElsewhere(_ action: String) async throws {
        let rig = Portal.rig(SignOn.toForm(form: SignOn.form.replacing("/login", with: action)))
        _ = await rig.expectUnknown(try SignOn.login())
        #expect(rig.passwords == 0)
    }

    @Test("a base element of the provider's page does not lead the credential elsewhere")
    func base() async throws {
        let rig = Portal.rig(SignOn.toForm(form: "<base href='https://evil.example.com/'>" + SignOn.form))
        _ = await rig.expectUnknown(try SignOn.login())
        #expect(rig.passwords == 0)
    }

    @Test("an open redirect of the provider ends the login, and nothing is sent there")
    func openRedirect() async throws {
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post(
                    "\(provider)/login", SignOn.filledIn, 302, to: "https://evil.example.com/?ticket=t", sends: "lb=2")
            ])
        let failure = await rig.expectUnknown(try SignOn.login())
        #expect(failure.detail.contains("add https://evil.example.com to `through`"), "\(failure.detail)")
    }

    @Test("a form that submits itself to a third origin ends the login")
    func messageElsewhere() async throws {
        let page =
            "<form method=post action='https://evil.example.com/acs'><input type=hidden name=SAMLResponse value=m></form>"
        let rig = Portal.rig(
            SignOn.toForm() + [SignOn.post("\(provider)/login", SignOn.filledIn, 200, page, sends: "lb=2")])
        let failure = await rig.expectUnknown(try SignOn.login())
        #expect(failure.detail.contains("https://evil.example.com"), "\(failure.detail)")
    }

    @Test("a redirect that would send a form once more is not followed", arguments: [307, 308])
    func formAgain(_ status: Int) async throws {
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, status, to: "\(app)/cb", sends: "lb=2")
            ])
        _ = await rig.expectUnknown(try SignOn.login())
    }

    @Test("servers that send the login back and forth end it after 20 requests")
    func endless() async throws {
        let loop = (0..<10).flatMap { _ in
            [SignOn.get("\(provider)/login", 302, to: "\(app)/"), SignOn.get("\(app)/", 302, to: "\(provider)/login")]
        }
        let rig = Portal.rig([SignOn.get("\(app)/", 302, to: "\(provider)/login")] + loop)
        let failure = await rig.expectUnknown(try SignOn.login())
        #expect(failure.detail.contains("did not end within 20 requests"), "\(failure.detail)")
    }

    @Test("a page of the upstream with a form of its own is where the login ends")
    func ownForms() async throws {
        let page =
            "<form method=post action=/logout><input type=hidden name=csrf></form><script>document.forms[0].submit()</script>"
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, 302, to: "\(app)/cb", sends: "lb=2"),
                SignOn.get("\(app)/cb", 200, page, set: ["sid=4"], sends: "state=1"),
            ])
        _ = try await rig.logIn(SignOn.login())
    }

    @Test("a page of the provider without a form ends the login, and nothing latches")
    func consent() async throws {
        let page = "<form method=post><input type=hidden name=c><button name=allow value=1>Allow</button></form>"
        let rig = Portal.rig(
            SignOn.toForm() + [SignOn.post("\(provider)/login", SignOn.filledIn, 200, page, sends: "lb=2")])
        let failure = await rig.expectUnknown(try SignOn.login())
        #expect(failure.detail.contains("make that once in a browser"), "\(failure.detail)")
    }

    @Test("an error of the upstream in answer to the sign-on is an unknown outcome", arguments: [401, 500, 502])
    func refused(_ status: Int) async throws {
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, 302, to: "\(app)/cb", sends: "lb=2"),
                SignOn.get("\(app)/cb", status, set: ["sid=4"], sends: "state=1"),
            ])
        _ = await rig.expectUnknown(try SignOn.login())
    }

    @Test(
        "what the upstream answers after the sign-on never rejects the credential",
        arguments: [(200, "<p>Wrong password</p>"), (200, SignOn.form), (403, "<p>No</p>"), (401, SignOn.form)])
    func upstreamJudges(_ status: Int, _ page: String) async throws {
        let failed = [FailureMatcher(matcher: ResponseMatcher(bodyContains: ["Wrong password"]), cause: .wrongPassword)]
        for (location, rest) in [
            (nil, []), ("/", [SignOn.get("\(app)/", 200, "<p>Wrong password</p>", sends: "state=1; sid=4")]),
        ] as [(String?, [ScriptedStep])] {
            let rig = Portal.rig(
                SignOn.toForm() + [
                    SignOn.post("\(provider)/login", SignOn.filledIn, 302, to: "\(app)/cb", sends: "lb=2"),
                    SignOn.get(
                        "\(app)/cb", location == nil ? status : 302, page, set: ["sid=4; Path=/"], to: location,
                        sends: "state=1"),
                ] + rest)
            let login = try SignOn.login(rules: SignOn.rules(failed: failed))
            if location == nil, status == 401 {
                _ = await rig.expectUnknown(login)
            } else {
                _ = try await rig.logIn(login)
            }
            #expect(rig.latches.all.isEmpty)
        }
    }

    @Test("`failed` matches the provider's answer to the form, and closes the latch")
    func failed() async throws {
        let failed = [FailureMatcher(matcher: ResponseMatcher(bodyContains: ["Wrong password"]), cause: .wrongPassword)]
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, 200, "<p>Wrong password</p>", sends: "lb=2")
            ])
        #expect(await rig.lose(try SignOn.login(rules: SignOn.rules(failed: failed))).code == .rejected)
    }

    @Test("`success` may be shown by the provider or by the upstream, and a login without it establishes nothing")
    func success() async throws {
        let steps = SignOn.toForm() + SignOn.fromForm()
        for (matcher, isShown) in [
            (ResponseMatcher(cookies: ["sso"]), true), (ResponseMatcher(cookies: ["sid"]), true),
            (ResponseMatcher(cookies: ["other"]), false),
        ] {
            let rig = Portal.rig(steps)
            let login = try SignOn.login(rules: SignOn.rules(success: [matcher]))
            if isShown { _ = try await rig.logIn(login) } else { _ = await rig.expectUnknown(login) }
        }
    }

    @Test("`prove-at` is requested with the new session, which must open it")
    func proof() async throws {
        let toForm = [
            SignOn.get("\(app)/me", 302, set: ["state=1; Path=/"], to: "\(provider)/login"),
            SignOn.get("\(provider)/login", 200, SignOn.form, set: ["lb=2; Path=/"]),
        ]
        let open = Portal.rig(toForm + SignOn.fromForm() + [SignOn.get("\(app)/me", 200, sends: "sid=4")])
        _ = try await open.logIn(SignOn.login(proof: "/me"))
        let closed = Portal.rig(
            toForm + SignOn.fromForm() + [SignOn.get("\(app)/me", 302, to: "\(provider)/login", sends: "sid=4")])
        _ = await closed.expectUnknown(try SignOn.login(proof: "/me"))
    }

    @Test("a second form of the provider, for a code, is filled in as the second step says")
    func secondStep() async throws {
        let page = "<form method=post action=/otp><input type=hidden name=h value=9><input name=code></form>"
        let steps = [
            GatewayStep(
                target: .form,
                parameters: [
                    .init(name: "user", value: try TextTemplate("{username}")),
                    .init(name: "pass", value: try TextTemplate("{password}")),
                ], hiddenFields: true),
            GatewayStep(
                target: .form, parameters: [.init(name: "code", value: try TextTemplate("{username}"))],
                hiddenFields: true),
        ]
        let rig = Portal.rig(
            SignOn.toForm() + [
                SignOn.post("\(provider)/login", SignOn.filledIn, 200, page, sends: "lb=2"),
                SignOn.post("\(provider)/otp", "h=9&code=ann-u", 302, to: "\(app)/cb", sends: "lb=2"),
            ] + SignOn.back())
        _ = try await rig.logIn(SignOn.login(rules: SignOn.rules(steps: steps)))
    }
}
