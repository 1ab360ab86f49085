// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("Forms that submit themselves")
struct SelfSubmittingFormTests {
    private func found(on page: String) -> SelfSubmittingForm? { SelfSubmittingForm(on: Array(page.utf8)) }

    @Test(
        "a form with a message of a sign-on protocol is submitted with its hidden inputs",
        arguments: [
            "SAMLResponse=a RelayState=b", "SAMLRequest=a", "wresult=a wctx=b", "code=a state=b", "id_token=a state=b",
            "error=a state=b",
        ])
    func messages(_ inputs: String) throws {
        let pairs = inputs.split(separator: " ").map { $0.split(separator: "=").map(String.init) }
        let hidden = pairs.map { "<input type=hidden name=\($0[0]) value=\($0[1])>" }.joined()
        let form = try #require(
            found(on: "<form method=post action=/acs>\(hidden)<noscript><input type=submit></noscript></form>"))
        #expect(form.isMessage && form.isPost)
        #expect(form.inputs.map { [$0.name, $0.value.revealText()] } == pairs)
        #expect(form.action(at: try #require(WebURL("https://a/b")))?.description == "https://a/acs")
    }

    @Test(
        "other forms are not submitted",
        arguments: [
            "<form method=post><input type=hidden name=csrf value=1></form>",
            "<form method=post><input type=hidden name=code value=1></form>",
            "<form><input type=hidden name=SAMLResponse value=1></form>",
            "<form method=post><input type=hidden name=SAMLResponse><input name=user></form>",
            "<form method=post><input type=hidden name=SAMLResponse><input type=password name=p></form>",
            "<form method=post><input type=hidden name=SAMLResponse><input type=checkbox name=agree></form>",
            "<form method=post><input type=hidden name=SAMLResponse disabled></form>",
            "<script>'<form method=post><input type=hidden name=SAMLResponse></form>'</script>",
            "<form><input type=hidden name=a><input type=submit name=allow value=yes></form><script>x.submit()</script>",
            "<form><input type=hidden name=a></form><form></form><script>document.forms[0].submit()</script>", "",
        ])
    func others(_ page: String) { #expect(found(on: page) == nil) }

    @Test("the only form of a page, whose script submits it, is submitted")
    func scripted() throws {
        let form = try #require(
            found(
                on:
                    "<body onload='document.forms[0].submit()'><form action='https://x/y'><input type=hidden name=a></form>"
            ))
        #expect(!form.isPost && !form.isMessage)
    }

    @Test("a response of 100 KB is read whole, one beyond the limit not at all")
    func large() {
        func page(_ count: Int) -> String {
            "<form method=post><input type=hidden name=SAMLResponse value=\(String(repeating: "A", count: count))></form>"
        }
        #expect(found(on: page(100_000))?.inputs.first?.value.count == 100_000)
        #expect(found(on: page(SelfSubmittingForm.pageLimit)) == nil)
    }

    @Test(
        "an action that is no http or https address leads nowhere",
        arguments: ["javascript:alert(1)", "mailto:a@b", "data:,"])
    func actions(_ action: String) throws {
        let form = try #require(
            found(on: "<form method=post action='\(action)'><input type=hidden name=SAMLResponse></form>"))
        #expect(form.action(at: try #require(WebURL("https://a/b"))) == nil)
    }
}
