// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@testable import Learning

@Suite("A login in a browser's recording")
struct RecordedLoginTests {
    private static let origin = Origin(scheme: .https, host: "www.example.com")
    private static let known = ["username": Secret("ann"), "password": Secret("Right-horse-7")]

    /// An entry of a recording.
    private struct Entry {
        var method = "GET"
        var url: String
        var status = 200
        var fields: [String: String] = [:]
        var form: String?
        var json: String?
        var page = ""

        var value: JSONValue {
            var request: [String: JSONValue] = [
                "method": .string(method), "url": .string(url.hasPrefix("/") ? "https://www.example.com\(url)" : url),
                "headers": .array(fields.map { ["name": .string($0), "value": .string($1)] }),
            ]
            if let form {
                request["postData"] = ["mimeType": "application/x-www-form-urlencoded", "text": .string(form)]
            }
            if let json { request["postData"] = ["mimeType": "application/json", "text": .string(json)] }
            let response: JSONValue = [
                "status": .integer(Int64(status)), "headers": [], "content": ["text": .string(page)],
            ]
            return ["request": .object(request), "response": response]
        }
    }

    private func login(_ entries: Entry..., known: [String: Secret] = known) throws -> RecordedLogin {
        let archive: JSONValue = ["log": ["entries": .array(entries.map(\.value))]]
        return try RecordedLogin(HARRecording(parsing: archive.serialized()), at: Self.origin, known: known)
    }

    private func lines(_ login: RecordedLogin) throws -> [String] {
        let asked = WebURL(origin: Self.origin, path: "/me")
        let refusal = ExaminedResponse(status: 401, fields: [.contentType: "application/json"], url: asked)
        let root = SiteVisit(address: WebURL(origin: Self.origin, path: "/"), responses: [])
        return try LearnedPlan(
            SiteFindings(asked: SiteVisit(address: asked, responses: [refusal]), root: root), recorded: login
        ).lines.map(\.text)
    }

    @Test("a JSON login is learned with the token that later requests carry")
    func token() throws {
        let login = try login(
            Entry(
                method: "POST", url: "/v1/login", json: #"{"user":"ann","password":"Right-horse-7","keep":true}"#,
                page: #"{"data":{"token":"abcdef-123456"}}"#),
            Entry(url: "/me", fields: ["X-Session": "Token abcdef-123456"]))
        #expect(
            try lines(login) == [
                "gateway: none", "detect: { status: 401, content-type: application/json }", "login:",
                "  url: /v1/login", "  body: json", "  parameters: { password: \"{password}\", user: \"{username}\" }",
                "  extract: { token: /data/token }", "inject: { x-session: \"Token {token}\" }",
            ])
        #expect(login.fields == ["username", "password"])
    }

    @Test("a token is learned only for a field that a configuration can set, with braces before it doubled")
    func tokenFields() throws {
        let answer = #"{"token":"abcdef-123456"}"#
        let post = Entry(method: "POST", url: "/in", json: #"{"user":"ann","password":"Right-horse-7"}"#, page: answer)
        let fields = [
            ["Host": "abcdef-123456"], ["a b": "abcdef-123456"], [":path": "/abcdef-123456"],
            ["X-Lines": "a\nabcdef-123456"],
        ]
        for field in fields {
            let token = try login(post, Entry(url: "/me", fields: field)).token
            #expect(token == .init(pointer: "/token", field: "authorization", prefix: "Bearer "), "\(field)")
        }
        let braced = try login(post, Entry(url: "/me", fields: ["X-Token": "{t}abcdef-123456"]))
        #expect(try lines(braced).last == "inject: { x-token: \"{{t}}{token}\" }")
    }

    @Test("a form whose values are the page's hidden inputs is learned without them")
    func hidden() throws {
        let page =
            "<form method=post><input type=hidden name=csrf value=x8f1><input name=u><input type=password name=p>"
            + "<button name=go value='Sign {in}'>Sign in</button></form>"
        let login = try login(
            Entry(url: "/in", page: page),
            Entry(method: "POST", url: "/check", status: 302, form: "csrf=x8f1&u=ann&p=Right-horse-7&go=Sign+%7Bin%7D"))
        #expect(
            try lines(login) == [
                "gateway: none", "detect: { status: 401, content-type: application/json }", "login:",
                "  page: /in", "  url: /check",
                "  parameters: { u: \"{username}\", p: \"{password}\", go: \"Sign {{in}}\" }", "  fields: hidden",
                "prove-at: /me",
            ])
    }

    @Test("another user's recording is read by the names of its parameters, and the last login counts")
    func names() throws {
        let login = try login(
            Entry(method: "POST", url: "/login", form: "email=bob%40b.example&passwd=first"),
            Entry(method: "POST", url: "/login2", status: 302, form: "email=bob%40b.example&passwd=second"), known: [:])
        #expect(login.url.path == "/login2" && login.passwordName == "passwd")
        #expect(login.parameters.map(\.template) == ["{username}", "{password}"])
    }

    @Test("a recorded login that no configuration can repeat is reported without the value")
    func defeats() throws {
        let cases: [([Entry], String)] = [
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&nonce=8f3a91c2")], "the parameter nonce"),
            ([Entry(method: "POST", url: "https://sso.example/in", form: "p=Right-horse-7")], "another server"),
            ([Entry(method: "POST", url: "/in", json: #"{"auth":{"password":"Right-horse-7"}}"#)], "nested JSON"),
            ([Entry(method: "POST", url: "/in", status: 401, form: "p=Right-horse-7")], "was refused"),
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&p=again")], "is repeated"),
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&client_secret=abc")], "parameter client_secret"),
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&api-key=abc")], "the parameter api-key"),
            ([Entry(method: "POST", url: "/in?Right-horse-7", form: "p=Right-horse-7")], "the password is also in"),
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&x-Right-horse-7=1")], "the password is also in"),
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&memorable=rosebud")], "the parameter memorable"),
            ([Entry(method: "POST", url: "/in", form: "p=Right-horse-7&digit=7")], "the parameter digit"),
            (
                [Entry(method: "POST", url: "/in?Right%2Dhor%73e-7", form: "p=Right-horse-7")],
                "the password is also in"
            ),
            (
                [
                    Entry(method: "POST", url: "/first", form: "word=rosebud", page: "<input name=word value=rosebud>"),
                    Entry(method: "POST", url: "/in", form: "p=Right-horse-7&word=rosebud"),
                ], "the parameter word"
            ),
            ([Entry(url: "/in")], "no request to https://www.example.com carries a password"),
        ]
        for (entries, words) in cases {
            let archive: JSONValue = ["log": ["entries": .array(entries.map(\.value))]]
            let recording = try HARRecording(parsing: archive.serialized())
            let error = #expect(throws: LearnDefeat.self) {
                try RecordedLogin(recording, at: Self.origin, known: Self.known)
            }
            let text = error.map { "\($0)" } ?? ""
            #expect(text.contains(words) && !text.contains("Right-horse-7") && !text.contains("8f3a91c2"), "\(text)")
            #expect(!text.contains("rosebud"), "\(text)")
        }
    }

    @Test("a password that is typed at a prompt, and is in the recording twice, is not in the configuration")
    func typed() throws {
        for (url, form) in [
            ("/in?key=Summer+rain", "user=bob&p=x&password=Summer+rain"),
            ("/in/Summer%20rain", "user=bob&password=Summer+rain"),
            ("/in", "user=bob&password=Summer&Summer=1"),
        ] {
            let error = #expect(throws: LearnDefeat.self) {
                try login(Entry(method: "POST", url: url, form: form), known: [:])
            }
            #expect(error.map { "\($0)".contains("Summer") } == false)
        }
        // The templates of the configuration are its own.
        let other = try login(Entry(method: "POST", url: "/in", form: "user=bob&password=password%7D"), known: [:])
        #expect(other.parameters.map(\.template) == ["{username}", "{password}"])
    }

    @Test("a constant is a word that the server sent, in a page or a script; flags of a browser are none")
    func constants() throws {
        let script = "fetch('/in', {grant_type: \"password\", client: `web app`, other: \"x8f1a\"})"
        let login = try login(
            Entry(url: "/app.js", page: script),
            Entry(
                method: "POST", url: "/token",
                form: "grant_type=password&client=web+app&remember=on&note=&username=ann&password=Right-horse-7"))
        #expect(
            login.parameters.map(\.template) == ["password", "web app", "on", "", "{username}", "{password}"])
    }

    @Test("an address of the server, and a word with a number, are constants; addresses elsewhere are not")
    func addresses() throws {
        let script = "post({grant: 'oauth2'})"
        let login = try login(
            Entry(url: "/app.js", page: script),
            Entry(
                method: "POST", url: "/token",
                form: "client_id=https%3A%2F%2Fwww.example.com%2F&grant=oauth2&username=ann&password=Right-horse-7"))
        #expect(
            login.parameters.map(\.template) == ["https://www.example.com/", "oauth2", "{username}", "{password}"])
        for value in ["https%3A%2F%2Fother.example%2F", "https%3A%2F%2Fwww.example.com%2F8f3a91c2d4", "k8f3a91c2"] {
            #expect(throws: LearnDefeat.self) {
                try self.login(
                    Entry(method: "POST", url: "/token", form: "client_id=\(value)&username=ann&password=Right-horse-7")
                )
            }
        }
    }

    @Test("a login with the name first and the password on the next page becomes two steps")
    func twoSteps() throws {
        let name = "<form method=post><input type=hidden name=csrf value=a1><input name=login></form>"
        let password = "<form method=post><input type=hidden name=csrf value=b2><input type=password name=word></form>"
        let login = try login(
            Entry(url: "/login", page: name),
            Entry(method: "POST", url: "/login", status: 302, form: "csrf=a1&login=ann"),
            Entry(url: "/password", page: password),
            Entry(method: "POST", url: "/password", status: 302, form: "csrf=b2&word=Right-horse-7"))
        #expect(login.fields == ["username", "password"])
        #expect(
            try lines(login) == [
                "gateway: none", "detect: { status: 401, content-type: application/json }", "login:",
                "  - page: /login", "    url: /login", "    parameters: { login: \"{username}\" }",
                "    fields: hidden", "  - url: /password", "    parameters: { word: \"{password}\" }",
                "    fields: hidden", "prove-at: /me",
            ])
    }

    @Test("a file that is no recording is refused with its reason")
    func faults() {
        #expect(throws: HARRecording.Fault.invalidJSON) { try HARRecording(parsing: Array("{".utf8)) }
        #expect(throws: HARRecording.Fault.notAnArchive) { try HARRecording(parsing: Array("{\"log\": 1}".utf8)) }
        #expect(throws: HARRecording.Fault.empty) {
            try HARRecording(parsing: Array("{\"log\": {\"entries\": []}}".utf8))
        }
        let large = [UInt8](repeating: 0x20, count: HARRecording.sizeLimit + 1)
        #expect(throws: HARRecording.Fault.tooLarge) { try HARRecording(parsing: large) }
    }
}

@Suite("The difference between an accepted and a refused password")
struct RefusalDifferenceTests {
    private func line(_ accepted: SideResponse, _ rejected: SideResponse) throws -> String? {
        let url = try #require(WebURL("https://www.example.com/login"))
        func examined(_ answer: SideResponse) -> ExaminedResponse {
            ExaminedResponse(status: answer.status, fields: answer.fields, body: answer.body, method: .post, url: url)
        }
        return RefusalDifference(accepted: examined(accepted), rejected: examined(rejected)).line?.text
    }

    @Test("another status, another redirect, or a text that says so is the rule of a refusal")
    func rules() throws {
        #expect(
            try line(.redirect(to: "/"), .page("no", status: 400))
                == "failed: { status: 400, because: wrong-password }")
        #expect(
            try line(.redirect(to: "/home"), .redirect(to: "/sorry"))
                == "failed: { redirect-to: /sorry, because: wrong-password }")
        #expect(
            try line(.redirect(to: "/login"), .redirect(to: "/login?error=1"))
                == "failed: { redirect-to: \"/login?error=1\", because: wrong-password }")
        #expect(
            try line(.page("<b>Ok.</b>"), .page("<b>Invalid login</b>"))
                == "failed: { body-contains: \"Invalid login\", because: wrong-password }")
    }

    @Test("answers that are alike yield no rule of a refusal")
    func alike() throws {
        #expect(try line(.page("<b>Hello</b>"), .page("<b>Hello</b>")) == nil)
        #expect(try line(.page("<b>Hello</b>"), .page("<b>One</b><b>Two</b>")) == nil)
    }
}

@Suite("Tokens against forged requests, by a session's cookies")
struct ForgeryTokenTests {
    @Test("a session cookie that scripts copy into a field becomes a line of inject, and other cookies do not")
    func lines() {
        #expect(ForgeryToken.line(for: ["sessionid"]) == nil)
        #expect(
            ForgeryToken.line(for: ["sessionid", "_xsrf"])?.text
                == "inject: { X-XSRFToken: { value: \"{cookie:_xsrf}\", on: [POST, PUT, PATCH, DELETE] } }")
    }
}
