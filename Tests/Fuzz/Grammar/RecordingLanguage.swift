// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling
@testable import Learning

/// A browser's recording of a login (HAR 1.2): a page with a form, and the form sent. The learned login is the recorded
/// one.
struct RecordingLanguage: Language {
    static let name = "recordings"
    static let period: UInt64 = 8

    var sentence = Sentence()
    private var path = ""
    private var names = (user: "", password: "")
    private var isLogin = true

    mutating func write() {
        path = sentence.choices.pick(Self.paths)
        names = (sentence.choices.pick(Self.userNames), sentence.choices.pick(Self.passwordNames))
        isLogin = !sentence.choices.once(in: 6)
        let hidden = sentence.choices.flip() ? "token\(sentence.choices.below(1_000))abc" : ""
        let password = isLogin ? "Right-horse-7" : "another"
        var form = "\(names.user)=ann&\(names.password)=\(password)"
        if !hidden.isEmpty { form += "&csrf=\(hidden)" }
        let page =
            "<form method='post' action='\(path)'><input name='\(names.user)'><input type='password' name='\(names.password)'>"
            + (hidden.isEmpty ? "" : "<input type='hidden' name='csrf' value='\(hidden)'>") + "</form>"
        var entries = [entry("GET", Self.host + path, form: nil, status: 200, type: "text/html", body: page)]
        if sentence.choices.once(in: 3) {
            entries.append(
                entry("GET", Self.host + "/style.css", form: nil, status: 200, type: "text/css", body: "a{}"))
        }
        entries.append(entry("POST", Self.host + path, form: form, status: 302, type: "text/html", body: ""))
        if sentence.choices.flip() {
            entries.append(
                entry("GET", Self.host + "/home", form: nil, status: 200, type: "text/html", body: "<p>ann</p>"))
        }
        let log: JSONValue = .object([
            "log": .object(["version": .string("1.2"), "entries": .array(entries)])
        ])
        sentence.put(log.serialized())
    }

    private mutating func entry(
        _ method: String, _ url: String, form: String?, status: Int64, type: String, body: String
    ) -> JSONValue {
        var request: [String: JSONValue] = ["method": .string(method), "url": .string(url), "headers": .array([])]
        if let form {
            request["postData"] = .object([
                "mimeType": .string("application/x-www-form-urlencoded"), "text": .string(form),
            ])
        }
        var headers: [JSONValue] = [.object(["name": .string("Content-Type"), "value": .string(type)])]
        if status == 302 { headers.append(.object(["name": .string("location"), "value": .string("/home")])) }
        if sentence.choices.flip() { headers.append(.object(["name": .string("X-A"), "value": .string("b")])) }
        var content: [String: JSONValue] = ["mimeType": .string(type)]
        if sentence.choices.once(in: 4) {
            content["text"] = .string(Base64.encode(Array(body.utf8)))
            content["encoding"] = .string("base64")
        } else {
            content["text"] = .string(body)
        }
        return .object([
            "request": .object(request),
            "response": .object(["status": .integer(status), "headers": .array(headers), "content": .object(content)]),
        ])
    }

    func check() throws(Violation) {
        let known = ["username": Secret("ann"), "password": Secret("Right-horse-7")]
        guard let recording = try? HARRecording(parsing: sentence.bytes) else {
            throw Violation(description: "a recording is not read")
        }
        let origin = Origin(scheme: .https, host: "www.example.com")
        guard let login = try? RecordedLogin(recording, at: origin, known: known) else {
            return try require(!isLogin, "no login is found")
        }
        guard isLogin else { return }
        try require(login.url.path == path, "it logs in at \(login.url), not at \(path)")
        for (name, template) in [(names.user, "{username}"), (names.password, "{password}")] {
            let found = login.parameters.first { $0.name == name }?.template
            try require(found == template, "\(name) is sent as \(found ?? "nothing")")
        }
    }

    private static let host = "https://www.example.com"
    private static let paths = ["/in", "/login", "/a/b/j_security_check", "/auth;x"]
    private static let userNames = ["u", "username", "j_username", "user-name"]
    private static let passwordNames = ["p", "password", "j_password", "pass.word"]
}
