// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Charsets
import Secrets
import TestSupport
import Testing

@Suite("Parsing of a page's forms")
struct HTMLPageTests {
    private func page(_ text: String) -> HTMLPage { HTMLPage(parsing: text.utf8) }

    @Test("a form has its action and its inputs with name, type and value")
    func form() {
        let page = page(
            """
            <!DOCTYPE html><html><body>
            <FORM Method=post ACTION="j_security_check">
              <input name=j_username><input type='PASSWORD' name="j_password" />
              <input type=hidden name=_csrf value="a&amp;b&#x2F;&#47;&quot;">
            </form></body></html>
            """)
        #expect(page.forms.count == 1)
        #expect(page.forms.first?.action == "j_security_check" && page.forms.first?.isPost == true)
        #expect(page.forms.first?.isEnded == true)
        #expect(
            page.forms.first?.inputs.map { [$0.name, $0.type, $0.value] } == [
                ["j_username", "text", ""], ["j_password", "password", ""], ["_csrf", "hidden", "a&b//\""],
            ])
    }

    @Test(
        "comments, scripts and other text of a page contain no form",
        arguments: [
            "<!-- <form action=j_security_check> -->", "<!--><!-- <form action=x> --!>",
            "<script>document.write('<form action=\"j_security_check\">')</script>",
            "<SCRIPT type=x>if (a</b) '<form>'</SCRIPT >", "<style><form></style>", "<textarea><form></textarea>",
            "<title><form></title>", "<template><form></template>", "<xmp><form></xmp>", "<svg><form></svg>",
            "<svg><![CDATA[<form>]]></svg>", "<script><!-- <script> </script> <form> --></script>", "<plaintext><form>",
            "&lt;form&gt;", "<form", "<form action=\"x",
            "< form>",
            "</form>", "<formula>", "<p title='<form>'>", "", "<", "</", "<!", "<!--", "<?form", "<script><form",
            "<script></scriptx><form>",
        ])
    func none(_ text: String) {
        #expect(page(text).forms.isEmpty)
    }

    @Test("a form after a comment or a script is found")
    func behind() {
        #expect(page("<!--><form action=a>").forms.map(\.action) == ["a"])
        #expect(page("<!-- -- > --><form action=a>").forms.map(\.action) == ["a"])
        #expect(page("<script>x</script\n><form action=a>").forms.map(\.action) == ["a"])
        #expect(page("<!doctype html><?x ?><form action=a>").forms.map(\.action) == ["a"])
        #expect(page("<p title=\"a>b\"><form/action=a>").forms.map(\.action) == ["a"])
    }

    @Test("an input belongs to its enclosing form, and a form within a form is ignored")
    func nesting() {
        let page = page(
            "<input name=before><form action=a><input name=one><form action=b><input name=two></form>"
                + "<input name=after><form action=c><input name=three>")
        #expect(page.forms.map(\.action) == ["a", "c"])
        #expect(page.forms.map { $0.inputs.map(\.name) } == [["one", "two"], ["three"]])
    }

    @Test("the first of repeated attributes counts, and one without a value is empty")
    func attributes() {
        let page = page("<form action=a action=b><input disabled name = n value = 'v' type=hidden>")
        let form = page.forms.first
        #expect(page.forms.count == 1 && form?.action == "a" && form?.inputs.count == 1)
        let input = form?.inputs.first
        #expect(input?.name == "n" && input?.type == "hidden" && input?.value == "v" && input?.isDisabled == true)
    }

    @Test("an action's path is without query, fragment and parameters; a form without an action has none")
    func actionPath() {
        #expect(
            page("<form action='/a/j_security_check;jsessionid=1?x#y'>").forms.first?.actionPath
                == "/a/j_security_check")
        #expect(page("<form>").forms.map(\.action) == [nil])
        #expect(page("<base href=' /x/ '><base href=y>").base == "/x/")
    }

    @Test(
        "character references are decoded as browsers do",
        arguments: [
            ("&#0;&nosuch;&amp&#xD800;&#99999999;&#;a&", "\u{FFFD}&nosuch;&\u{FFFD}\u{FFFD}&#;a&"),
            ("&eacute;&eacute&NotEqualTilde;&notin;&not", "éé\u{2242}\u{338}\u{2209}\u{AC}"),
            ("?a=1&copy=2&ampx", "?a=1&copy=2&ampx"),
            ("&#128;&#x9f;&#233&#xE9", "\u{20AC}\u{178}éé"), ("&CounterClockwiseContourIntegral;", "\u{2233}"),
            ("&#4294967296;&#18446744073709551616;", "\u{FFFD}\u{FFFD}"),
        ])
    func references(_ written: String, _ text: String) {
        #expect(page("<form action='\(written)'>").forms.first?.action == text)
    }

    @Test(
        "characters of a page are compared as bytes: a combining accent belongs to the following text"
    )
    func bytes() {
        let page = HTMLPage(
            parsing: "<form action='/a?\u{301}b'><input name='a&amp;\u{301}' value='&amp\u{37E}'>".utf8,
            type: "text/html;charset=utf-8")
        #expect(page.forms.first?.actionPath == "/a")
        #expect(page.forms.first?.inputs.first.map { Array($0.name.utf8) } == Array("a&\u{301}".utf8))
        #expect(page.forms.first?.inputs.first.map { Array($0.value.utf8) } == Array("&\u{37E}".utf8))
        #expect(self.page("<!-->\u{338}<form>").forms.count == 1)
    }

    @Test("forms, inputs and bytes of a page are limited")
    func bounds() {
        let many = String(repeating: "<form><input name=a></form>", count: 2000)
        #expect(page(many).forms.count == HTMLPage.formLimit)
        let inputs = page("<form>" + String(repeating: "<input name=a>", count: 2000)).forms.first?.inputs.count
        #expect(inputs == HTMLPage.inputLimit)
        let long = page(String(repeating: " ", count: HTMLPage.limit) + "<form>")
        #expect(long.forms.isEmpty && !long.isWhole && !page(many).isWhole && page("<form>").isWhole)
    }

    @Test("parsing of hostile pages ends", .timeLimit(.minutes(10)))
    func hostile() {
        for piece in ["<", "<a ", "<!--", "</script", "<a b='", "<script>", "&", "<form action=&&&&&&", "<a/"] {
            let text = String(repeating: piece, count: 32 * 1024 / piece.utf8.count)
            #expect(page(text).forms.isEmpty, "\(piece)")
        }
    }
}

@Suite("Login forms of unknown pages")
struct PasswordFormTests {
    private func form(_ inputs: String) -> PasswordForm? {
        HTMLPage(parsing: "<form method=post action=/go>\(inputs)</form>".utf8).passwordForm
    }

    private func entries(_ form: PasswordForm) -> [String] {
        form.entries(in: .utf8, user: Secret("ann"), password: Secret("secret")).map {
            "\($0.name)=\($0.value.revealText())"
        }
    }

    @Test("the user's name belongs into the text input before the password")
    func fields() {
        let django = form(
            """
            <input type="hidden" name="csrfmiddlewaretoken" value="t1"><input name="username" autofocus>
            <input type="password" name="password"><input type="hidden" name="next" value="/admin/"><input type=submit value="Log in">
            """)
        #expect(django?.userField == "username" && django?.passwordField == "password")
        #expect(django.map(entries) == ["csrfmiddlewaretoken=t1", "username=ann", "password=secret", "next=/admin/"])
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
        "a form that does not ask for one existing password is not a login form",
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
            form.map(entries)
                == ["u=ann", "p=secret", "domain=corp", "terms=on", "r=1", "action=login", "h=1"])
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

@Suite("Forms as Chromium submits them")
struct ChromiumFormTests {
    private static let forms = JudgeTable("chromium-forms").rows.map(SubmittedForm.init)

    @Test("method, address and body are Chromium's, byte for byte, or nothing is sent and the reason is told")
    func forms() {
        var refusals = 0
        for form in Self.forms {
            switch form.outcome {
            case .same: #expect(!form.isHeld, "\(form)")
            case .refused: if !form.isHeld { refusals += 1 }
            case .different(let difference): Issue.record("\(form)\n\(difference)")
            }
        }
        // Named colors, and inputs among suggestions: browsers differ there.
        #expect(Self.forms.count >= 300 && refusals * 20 < Self.forms.count, "\(refusals) refused")
    }
}
