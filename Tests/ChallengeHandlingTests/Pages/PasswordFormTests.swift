// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Login forms of unknown pages")
struct PasswordFormTests {
    private func form(_ inputs: String) -> PasswordForm? {
        HTMLPage(parsing: "<form method=post action=/go>\(inputs)</form>".utf8).passwordForm
    }

    @Test("the user's name belongs into the text input before the password")
    func fields() {
        let django = form(
            """
            <input type="hidden" name="csrfmiddlewaretoken" value="t1"><input name="username" autofocus>
            <input type="password" name="password"><input type="hidden" name="next" value="/admin/"><input type=submit value="Log in">
            """)
        #expect(django?.userField == "username" && django?.passwordField == "password")
        #expect(django?.otherInputs.map(\.name) == ["csrfmiddlewaretoken", "next"])
        #expect(
            form("<input name=domain><input type=email name=mail><input type=password name=p>")?.userField == "mail")
        #expect(
            form("<input name=who autocomplete=username><input name=domain><input type=password name=p>")?.userField
                == "who")
    }

    @Test("a login form may ask for a password alone")
    func passwordOnly() {
        let jupyter = form("<input type=hidden name=_xsrf value=2><input type=password name=password>")
        #expect(jupyter != nil && jupyter?.userField == nil)
        #expect(form("<input type=password name=p><input name=captcha>")?.userField == nil)
    }

    @Test(
        "a form that does not ask for one existing password is no login form",
        arguments: [
            "<input name=q>", "<input type=password>", "<input type=password name=p disabled>",
            "<input name=u><input type=password name=a><input type=password name=b>",
            "<input name=u><input type=password name=p autocomplete=new-password>",
            "<input name=first><input name=last><input type=email name=mail><input type=password name=p>",
        ])
    func others(_ inputs: String) {
        #expect(form(inputs) == nil)
    }

    @Test("what a browser submits with a login form: selected boxes, text, and the first submit button")
    func submission() {
        let form = form(
            """
            <input name=u><input type=password name=p><input name=domain value=corp>
            <input type=checkbox name=remember><input type=checkbox name=terms checked><input type=radio name=r value=1 checked>
            <button name=action value=login>Go</button><button name=action value=cancel>No</button>
            <input type=submit name=late value=x><input type=button name=b value=x><input type=hidden name=h value="1">
            <input type=hidden name=off value=1 disabled>
            """)
        #expect(
            form?.otherInputs.map { "\($0.name)=\($0.value)" }
                == ["domain=corp", "terms=on", "r=1", "action=login", "h=1"])
    }

    @Test("a form without POST is a script's, which sends the password elsewhere", arguments: ["", "method=get"])
    func script(_ method: String) {
        let page = HTMLPage(parsing: "<form \(method)><input name=u><input type=password name=p></form>".utf8)
        #expect(page.forms.count == 1 && page.passwordForm == nil)
    }

    @Test("the first login form of a page counts, after other forms")
    func first() {
        let page = HTMLPage(
            parsing:
                "<form action=/search><input name=q></form><form method=POST action=/in><input name=u><input type=password name=p></form>"
                .utf8)
        #expect(page.passwordForm?.form.action == "/in")
    }
}
