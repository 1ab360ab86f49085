// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Login forms, submitted as a browser does")
struct SubmissionOfFormsTests {
    private static let inputs = "<input name=u><input type=password name=p>"
    private static let form = "<form method=post action=in>"

    private func answer(
        _ status: Int, _ page: [UInt8] = [], _ type: String = "text/html;charset=UTF-8", cookie: String? = nil,
        to location: String? = nil
    ) -> Result<SideResponse, SideRequestError> {
        var fields: HTTPFields = [.contentType: type]
        fields[values: .setCookie] = [cookie].compactMap(\.self)
        fields[.location] = location
        return .success(SideResponse(status: status, fields: fields, body: page))
    }

    /// Returns the steps of a login at the page, whose form must be sent with a body that `isWanted`.
    private func steps(
        _ page: [UInt8], _ type: String = "text/html;charset=UTF-8",
        isWanted: @escaping @Sendable (SideRequest) -> Bool
    ) -> [ScriptedStep] {
        [
            ScriptedStep(.get, Portal.address, answer(200, page, type)) { _ in true },
            ScriptedStep(
                .post, "\(Portal.origin)/app/in", answer(303, cookie: "sid=1; Path=/app", to: "/app/home"),
                where: isWanted),
            ScriptedStep(.get, Portal.address, answer(200, Array("<p>Welcome</p>".utf8))) { _ in true },
        ]
    }

    private func rig(_ steps: [ScriptedStep], password: String = "pass\"word") -> LoginRig {
        LoginRig(
            steps,
            credentials: [Credential(name: "ann", fields: ["username": Secret("ann-u"), "password": Secret(password)])])
    }

    @Test(
        "the entries are those of the form, in the order of the page",
        arguments: [
            (
                "\(form)\(inputs)<select name=auth><option value=local>L<option value=ldap selected>D</select></form>",
                "u=ann-u&p=pass%22word&auth=ldap"
            ),
            (
                "\(form)<select name=auth><option disabled>Choose<option> Local  users </select>\(inputs)</form>",
                "auth=Local+users&u=ann-u&p=pass%22word"
            ),
            (
                "<form id=f method=post action=in><input type=hidden name=t value='1&eacute;'></form><input name=u form=f><input type=password name=p form=f>",
                "t=1%C3%A9&u=ann-u&p=pass%22word"
            ),
            ("\(form)<input type=username name=u><input type=password name=p></form>", "u=ann-u&p=pass%22word"),
            (
                "\(form)\(inputs)<textarea name=n>\na&amp;b\nc</textarea><button name=b value=1>Go</button></form>",
                "u=ann-u&p=pass%22word&n=a%26b%0D%0Ac&b=1"
            ),
            (
                "\(form)\(inputs)<fieldset disabled><legend><input name=x type=hidden value=1></legend><input name=y type=hidden></fieldset></form>",
                "u=ann-u&p=pass%22word&x=1"
            ),
            ("<form>\(inputs)<button formaction=in formmethod=post>Log in</button></form>", "u=ann-u&p=pass%22word"),
            ("\(form)\(inputs)<input type=image src=x name=go></form>", "u=ann-u&p=pass%22word&go.x=0&go.y=0"),
            (
                "\(form)<input name=u><input type=password name=p autocomplete=new-password><button name=enter value='Sign in'>Sign in</button></form>",
                "u=ann-u&p=pass%22word&enter=Sign+in"
            ),
        ])
    func entries(_ page: String, _ body: String) async throws {
        let rig = rig(steps(Array(page.utf8)) { $0.body?.revealText() == body })
        _ = try await rig.logIn(Portal.login(.passwordForm))
    }

    @Test("a form with `enctype` is sent in that encoding")
    func multipart() async throws {
        let page =
            "<form method=post action=in enctype='multipart/form-data'>\(Self.inputs)<input type=file name=f></form>"
        let multipart = rig(
            steps(Array(page.utf8)) { request in
                guard let type = request.fields[.contentType], type.hasPrefix("multipart/form-data; boundary=") else {
                    return false
                }
                let boundary = type.dropFirst("multipart/form-data; boundary=".count)
                return request.body?.revealText() == """
                    --\(boundary)\r
                    Content-Disposition: form-data; name="u"\r
                    \r
                    ann-u\r
                    --\(boundary)\r
                    Content-Disposition: form-data; name="p"\r
                    \r
                    pass"word\r
                    --\(boundary)\r
                    Content-Disposition: form-data; name="f"; filename=""\r
                    Content-Type: application/octet-stream\r
                    \r
                    \r
                    --\(boundary)--\r\n
                    """
            })
        _ = try await multipart.logIn(Portal.login(.passwordForm))
        let plain = rig(
            steps(Array("<form method=post action=in enctype=text/plain>\(Self.inputs)</form>".utf8)) {
                $0.fields[.contentType] == "text/plain" && $0.body?.revealText() == "u=ann-u\r\np=pass\"word\r\n"
            })
        _ = try await plain.logIn(Portal.login(.passwordForm))
    }

    @Test(
        "values are in the encoding of the page, or in the one that the form accepts; the server's bytes come back as they were",
        arguments: [
            ("text/html; charset=windows-1251", "", "p=%EF%E0%F0%EE%EB%FC&t=%FF"),
            ("text/html", "<meta charset=koi8-r>", "p=%D0%C1%D2%CF%CC%D8&t=%FF"),
            (
                "text/html", "<meta http-equiv=content-type content='text/html; charset=cp1251'>",
                "p=%EF%E0%F0%EE%EB%FC&t=%FF"
            ),
            ("text/html;charset=utf-8", "", "p=%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C&t=%FF"),
        ])
    func charsets(_ type: String, _ head: String, _ rest: String) async throws {
        let page =
            Array("\(head)\(Self.form)\(Self.inputs)<input type=hidden name=t value=".utf8) + [0xFF]
            + Array("></form>".utf8)
        let rig = rig(steps(page, type) { $0.body?.revealText() == "u=ann-u&\(rest)" }, password: "пароль")
        _ = try await rig.logIn(Portal.login(.passwordForm))
        let accepting = Array("<form method=post action=in accept-charset='x windows-1251'>\(Self.inputs)</form>".utf8)
        let other = self.rig(
            steps(accepting, type) { $0.body?.revealText() == "u=ann-u&p=%EF%E0%F0%EE%EB%FC" }, password: "пароль")
        _ = try await other.logIn(Portal.login(.passwordForm))
    }

    @Test("a page of a megabyte is read to its form")
    func long() async throws {
        let page = String(repeating: "<p>text</p>\n", count: 60_000) + "\(Self.form)\(Self.inputs)</form>"
        let rig = rig(steps(Array(page.utf8)) { $0.body?.revealText() == "u=ann-u&p=pass%22word" })
        _ = try await rig.logIn(Portal.login(.passwordForm))
    }

    @Test(
        "a form that a browser would not send, or that cannot be sent as a browser would, is not sent, and the input is named",
        arguments: [
            ("\(form)\(inputs)<input name=otp required></form>", "requires the field otp"),
            ("\(form)\(inputs)<input type=checkbox name=terms required></form>", "requires the field terms"),
            (
                "\(form)<input type=email name=u><input type=password name=p></form>",
                "field u, which takes a mail address only"
            ),
            ("\(form)<input type=password name=p><input name=who></form>", "field who, which is empty"),
            ("\(form)\(inputs)<input type=color name=c value=red></form>", "field c, which has a color"),
            ("\(form)\(inputs)" + String(repeating: "<p>", count: 400_000), "is not whole"),
        ])
    func refused(_ page: String, _ words: String) async throws {
        let rig = rig([ScriptedStep(.get, Portal.address, answer(200, Array(page.utf8))) { _ in true }])
        let failure = await rig.lose(try Portal.login(.passwordForm))
        #expect(failure.code == .failed && failure.detail.contains(words), "\(failure.detail)")
        #expect(rig.latches.all.isEmpty && rig.requests.sent.count == 1)
    }

    @Test("`novalidate` sends a form with an empty required input")
    func unchecked() async throws {
        let page = "<form method=post action=in novalidate>\(Self.inputs)<input name=otp required></form>"
        let rig = rig(steps(Array(page.utf8)) { $0.body?.revealText() == "u=ann-u&p=pass%22word&otp=" })
        _ = try await rig.logIn(Portal.login(.passwordForm))
    }

    @Test(
        "a refusal after a character that the form's encoding lacks, or without a named one, is no rejection",
        arguments: [("text/html;charset=iso-8859-1", "lacks"), ("text/html", "names no character set")])
    func missing(_ type: String, _ words: String) async throws {
        let page = Array("\(Self.form)\(Self.inputs)</form>".utf8)
        let rig = rig(
            [
                ScriptedStep(.get, Portal.address, answer(200, page, type)) { _ in true },
                ScriptedStep(.post, "\(Portal.origin)/app/in", answer(200, page, type)) { _ in true },
            ], password: words == "lacks" ? "пароль" : "pässword")
        let failure = await rig.lose(try Portal.login(.passwordForm))
        #expect(failure.code == .failed && failure.detail.contains(words), "\(failure.detail)")
        #expect(rig.latches.all.isEmpty)
    }
}
