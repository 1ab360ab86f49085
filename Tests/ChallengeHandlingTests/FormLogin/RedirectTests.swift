// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Redirects and refreshes of a login are followed as browsers follow them")
struct RedirectTests {
    private static let page = "<form method=post action='/in'><input name=u><input type=password name=p></form>"
    private static let base = "https://portal.example.com/"
    private static let credential = "u=ann-u&p=pass%22word"

    private func login(challenged: String? = nil, _ rules: GatewayRules = .passwordForm) throws -> GatewayLogin {
        try Portal.login(rules, challenged: challenged, base: Self.base)
    }

    private func accepted(_ path: String = "/") -> [ScriptedStep] {
        [
            Portal.post("/in", 302, set: ["sid=1; Path=/"], to: path, sends: nil, form: Self.credential),
            Portal.get(path, sends: "sid=1"),
        ]
    }

    @Test("a redirect and an action with blanks, umlauts, tabs and backslashes lead to their page")
    func encoded() async throws {
        let page = Self.page.replacing("/in", with: " \\d\u{F6} it\t?a=\u{F6} ")
        let rig = Portal.rig([
            Portal.get("/", 302, to: "/login?zur\u{FC}ck=/f\u{FC}r alle"),
            Portal.get("/login", 200, page),
            Portal.post(
                "/d%C3%B6%20it", 302, set: ["sid=1; Path=/"], to: "\\", sends: nil, form: Self.credential),
            Portal.get("/", sends: "sid=1"),
        ])
        _ = try await rig.logIn(login())
        let targets = rig.requests.sent.map(\.url.target)
        #expect(targets == ["/", "/login?zur%C3%BCck=/f%C3%BCr%20alle", "/d%C3%B6%20it?a=%C3%B6", "/"])
    }

    @Test("bytes of a redirect that are not UTF-8 come back as they were")
    func bytes() async throws {
        var fields: HTTPFields = [:]
        fields.append(HTTPField(name: .location, value: Array("/login?zur".utf8) + [0xFC] + Array("ck".utf8)))
        let redirect = ScriptedStep(.get, Self.base, .success(SideResponse(status: 302, fields: fields)))
        let rig = Portal.rig([redirect, Portal.get("/login", 200, Self.page)] + accepted())
        _ = try await rig.logIn(login())
        #expect(rig.requests.sent.dropFirst().first?.url.target == "/login?zur%FCck")
    }

    @Test("a redirect to a host that is not ASCII is not followed, and the reason is told")
    func unreadable() async throws {
        let rig = Portal.rig([Portal.get("/", 302, to: "https://m\u{FC}nchen.example/login")])
        _ = await rig.expectUnknown(try login())
        #expect(rig.steps.contains { $0.contains("xn--") })
    }

    @Test(
        "an action that is no address is told by its reason, and nothing is sent",
        arguments: ["//m\u{FC}n.example/", "//h:0/"])
    func unreadableAction(_ action: String) async throws {
        let rig = Portal.rig([Portal.get("/", 200, Self.page.replacing("/in", with: action))])
        let failure = await rig.expectUnknown(try login())
        #expect(failure.detail.contains("The address of the form"))
    }

    // Whoever writes the redirect or the page would get the password, or the cookies.
    @Test(
        "no spelling of another origin gets the form or the cookies",
        arguments: [
            "//evil.example/in", "\\\\evil.example/in", "/\t/evil.example/in", "https:\\\\evil.example/in",
            "///evil.example",
            "http:/in", "https://portal.example.com@evil.example/in", "https://portal.example.com\\@evil.example:1",
            "https://portal.example.com:444/in", "//portal.example.com.evil.example/", "//%65vil.example",
            "//0x7f.1/in",
        ])
    func otherOrigins(_ address: String) async throws {
        if address.hasPrefix("https://portal.example.com\\") {
            // For browsers, the backslash ends the host.
            #expect(WebURL(Self.base)?.resolving(address)?.origin == Portal.origin)
            return
        }
        let action = Portal.rig([Portal.get("/", 200, Self.page.replacing("/in", with: address), set: ["s=1"])])
        _ = await action.expectUnknown(try login())
        let redirect = Portal.rig([Portal.get("/", 302, set: ["s=1"], to: address)])
        _ = await redirect.expectUnknown(try login())
        let body = "<meta http-equiv=refresh content='0;url=\(address)'>"
        let refresh = Portal.rig([Portal.get("/", 403, body, set: ["s=1"])])
        _ = await refresh.expectUnknown(try login())
    }

    @Test(
        "a page that refreshes itself leads to its login page, as Jenkins' does",
        arguments: [
            "<meta http-equiv='refresh' content='1;url=/login?from=%2F'/>",
            "<META content=\"0; URL = '/login?from=%2F' x\" HTTP-EQUIV=Refresh>",
            "<meta http-equiv=refresh content='0,/login?from=%2F'>",
            "<meta http-equiv=refresh content='.5 login?from=%2F'>",
            "<base href='/login'><meta http-equiv=refresh content='0;url=?from=%2F'>",
        ])
    func refresh(_ body: String) async throws {
        for status in [200, 401, 403] {
            let rig = Portal.rig(
                [Portal.get("/", status, body), Portal.get("/login", 200, Self.page)] + accepted())
            _ = try await rig.logIn(login())
        }
    }

    @Test("the field Refresh leads to a login page")
    func field() async throws {
        let name = try #require(HTTPField.Name("Refresh"))
        let reply = SideResponse(status: 200, fields: [name: "0; url=/login"])
        let rig = Portal.rig(
            [ScriptedStep(.get, Self.base, .success(reply)), Portal.get("/login", 200, Self.page)] + accepted())
        _ = try await rig.logIn(login())
    }

    @Test(
        "a refresh of the same page, after a long time, without scripts, or in a comment is not followed",
        arguments: [
            "<meta http-equiv=refresh content='5'>", "<meta http-equiv=refresh content='0;url=/?x'>",
            "<meta http-equiv=refresh content='1800;url=/logout'>",
            "<meta http-equiv=refresh content='99999999999;url=/a'>",
            "<noscript><meta http-equiv=refresh content='0;url=/login'></noscript>",
            "<!-- <meta http-equiv=refresh content='0;url=/login'> -->",
            "<meta http-equiv=refresh content='x;url=/login'>",
            "<meta http-equiv=refresh content='0url=/login'>", "<meta name=refresh content='0;url=/login'>",
        ])
    func noRefresh(_ body: String) async throws {
        let rig = Portal.rig([Portal.get("/", 200, body)])
        _ = await rig.expectUnknown(try login())
    }

    @Test("two pages that refresh to each other are asked once each")
    func circle() async throws {
        func page(_ path: String) -> String { "<meta http-equiv=refresh content='0;url=\(path)'>" }
        let rig = Portal.rig([Portal.get("/", 200, page("/a")), Portal.get("/a", 200, page("/"))])
        _ = await rig.expectUnknown(try login())
    }

    // Whoever may put pages on the server could lead the daemon from one of his to another.
    @Test("a caller's page with a refresh to a form beside it gets no credential; one of the server's, elsewhere, does")
    func callersRefresh() async throws {
        let open = Portal.get("/", 200, "<p>Open</p>")
        func led(to path: String, _ status: Int = 200) -> [ScriptedStep] {
            [
                open, Portal.get("/~eve/x", status, "<meta http-equiv=refresh content='0;url=\(path)'>"),
                Portal.get(path, 200, Self.page),
            ]
        }
        let eve = Portal.rig(led(to: "/~eve/login"))
        let failure = await eve.expectUnknown(try login(challenged: "\(Portal.origin)/~eve/x"))
        #expect(failure.detail.contains("the server did not lead there"))
        for steps in [led(to: "/login"), led(to: "/~eve/login", 403)] {
            let rig = Portal.rig(steps + accepted("/~eve/x"))
            _ = try? await login(challenged: "\(Portal.origin)/~eve/x").logIn(rig.conversation)
            #expect(rig.requests.sent.contains { $0.method == .post })
        }
    }

    @Test(
        "a form is sent again with its body to the address that 307 or 308 corrects by a slash", arguments: [307, 308])
    func again(_ status: Int) async throws {
        let rig = Portal.rig(
            [
                Portal.get("/", 200, Self.page),
                Portal.post("/in", status, to: "/in/", sends: nil, form: Self.credential),
                Portal.post("/in/", 303, set: ["sid=1; Path=/"], to: "/", sends: nil, form: Self.credential),
                Portal.get("/", sends: "sid=1"),
            ])
        _ = try await rig.logIn(login())
    }

    // A server that copies an address of the visit into such a redirect would hand the password to that address.
    @Test("a form is not sent again to another address, which is no rejection", arguments: [307, 308])
    func notAgain(_ status: Int) async throws {
        let rig = Portal.rig([
            Portal.get("/", 200, Self.page),
            Portal.post("/in", status, to: "/~eve/in", sends: nil, form: Self.credential),
            Portal.get("/~eve/in", 200, Self.page), Portal.get("/", 200, Self.page),
        ])
        _ = try? await login().logIn(rig.conversation)
        #expect(rig.requests.sent.count { $0.body != nil } == 1)
        #expect(rig.latches.all.isEmpty)
    }

    @Test("redirects after the form are followed to their end, and `success` may match any of them")
    func toTheEnd() async throws {
        var rules = GatewayRules.passwordForm
        rules.success = [ResponseMatcher(cookies: ["final"])]
        let rig = Portal.rig([
            Portal.get("/", 200, Self.page),
            Portal.post("/in", 302, to: "/a", sends: nil, form: Self.credential),
            Portal.get("/a", 302, set: ["final=1; Path=/"], to: "/b"),
            Portal.get("/b", 301, to: "/c", sends: "final=1"),
            Portal.get("/c", sends: "final=1"),
        ])
        _ = try await rig.logIn(login(rules))
    }

    @Test("a lost connection while the login page is looked for is tried once more, on a new one, and a form is not")
    func lost() async throws {
        let lost = Result<SideResponse, SideRequestError>.failure(SideRequestError(.unreachable, reason: "lost"))
        let rig = Portal.rig(
            [ScriptedStep(.get, Self.base, lost), Portal.get("/", 200, Self.page)] + accepted())
        _ = try await rig.logIn(login())
        #expect(rig.requests.sent.prefix(2).map(\.needsNewConnection) == [false, true])
        let twice = Portal.rig([ScriptedStep(.get, Self.base, lost), ScriptedStep(.get, Self.base, lost)])
        _ = await twice.expectUnknown(try login())
        let form = Portal.rig([Portal.get("/", 200, Self.page), ScriptedStep(.post, "\(Self.base)in", lost)])
        _ = await form.expectUnknown(try login())
    }

    @Test("`redirect-to` compares the address as written, and the whole one that it means")
    func redirectTo() throws {
        func matches(_ text: String, _ location: String) throws -> Bool {
            let response = ExaminedResponse(
                status: 302, fields: [.location: location], url: try #require(WebURL("https://a.example/app/x")))
            var inspection = ResponseInspection(response)
            return inspection.match(ResponseMatcher(redirectTo: [text])) == .matches
        }
        #expect(try matches("/app/index.php", "index.php?URI=1"))
        #expect(try matches("https://a.example/app/index.php", "index.php?URI=1"))
        #expect(try matches("index.php?uri=1", "index.php?URI=1"))
        #expect(try matches("../index", "../index.php") && matches("a.example/index", "../index.php"))
        #expect(try !matches("/app/index", "../index.php"))
    }

    @Test("a 403 whose page refreshes to a login page is a challenge")
    func detected() throws {
        func examine(_ body: String, _ status: Int = 403) throws -> Challenge {
            GatewayDetector(.passwordForm).examine(
                ExaminedResponse(
                    status: status, fields: [.contentType: "text/html"], body: Array(body.utf8),
                    url: try #require(WebURL("https://a.example/app/x"))), hasSession: false)
        }
        #expect(try examine("<meta http-equiv=refresh content='1;url=/login?from=x'>") == .challenged())
        #expect(try examine("<meta http-equiv=refresh content='1;url=/start?then=login'>") == .pass)
        #expect(try examine("<meta http-equiv=refresh content='1;url=//b.example/login'>") == .pass)
    }
}

@Suite("Extracted values in the address of a step")
struct AddressTemplateTests {
    @Test("a value is a part of one segment or of one value of the query, whatever it contains")
    func encoded() throws {
        let values = ["flow": Secret("a/../?#&= \u{E4}"), "id": Secret("7"), "dots": Secret(".."), "none": Secret("")]
        #expect(AddressTemplate.names(in: "/f/{flow}?id={id}&{") == ["flow", "id"])
        let filled = try #require(AddressTemplate.filled("/f/{flow}?id={id}&x={other}{", with: values))
        #expect(filled == "/f/a%2F..%2F%3F%23%26%3D%20%C3%A4?id=7&x={other}{")
        #expect(AddressTemplate.filled("/f/{dots}/x", with: values) == nil)
        #expect(AddressTemplate.filled("/f/{none}/x", with: values) == nil)
    }

    @Test("the flow's id of the first answer is in the address of the second step, as in Home Assistant")
    func flow() async throws {
        func part(_ name: String, _ text: String) throws -> GatewayStep.Part {
            .init(name: name, value: try TextTemplate(text))
        }
        let pointer = try #require(JSONPointer("/flow_id"))
        let first = GatewayStep(
            target: .address("/auth/login_flow"), parameters: [try part("u", "{username}")],
            extraction: GatewayExtraction([.init(name: "flow", source: .json(pointer))]))
        let second = GatewayStep(target: .address("/auth/login_flow/{flow}"), parameters: [try part("p", "{password}")])
        let rules = GatewayRules(detect: [ResponseMatcher(statuses: [401])], steps: [first, second])
        var json: HTTPFields = [:]
        json[.contentType] = "application/json"
        let answer = SideResponse(status: 200, fields: json, body: Array(#"{"flow_id":"a/b"}"#.utf8))
        let rig = Portal.rig([
            ScriptedStep(.post, "\(Portal.origin)/auth/login_flow", .success(answer)),
            Portal.post("/auth/login_flow/a%2Fb", 200, "{}", set: ["sid=1; Path=/"], sends: nil, form: "p=pass%22word"),
            Portal.get("/app/home", sends: "sid=1"), Portal.get("/app/home", 401),
        ])
        _ = try? await Portal.login(rules, challenged: nil).logIn(rig.conversation)
        #expect(rig.requests.sent.dropFirst().first?.url.target == "/auth/login_flow/a%2Fb")
    }
}
