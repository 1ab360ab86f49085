// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Credentials
import Settings
import Testing

@testable import CountersignDaemon

/// The texts below must stay stable: their digests identify sessions across an upgrade and among nodes that share sessions.
/// If a text changes while its configuration does not, every session is lost once.
@Suite("Fingerprints of logins")
struct SessionFingerprintTests {
    private func settings(_ challenges: String, upstream: String = "") throws -> Settings {
        let text = """
            listeners: [{ address: "127.0.0.1:8080", upstream: bank }]
            upstreams:
              bank: { url: "https://bank.example.com/api/"\(upstream.isEmpty ? "" : ", ")\(upstream) }
            challenges: [\(challenges)]
            """
        let (settings, problems) = Settings.parse(
            Array(text.utf8), file: "f", environment: [:], handlers: OwnHandlers.names)
        return try #require(settings, "\(problems)")
    }

    /// Returns the texts of all logins of the upstream, by name.
    private func texts(_ challenges: String, upstream: String = "") throws -> [String: String] {
        let settings = try settings(challenges, upstream: upstream)
        let bank = settings.upstreams[0]
        let logins = LoginSite(bank.protected, settings.challenges, LoginMaterial()).authenticators().logins.all
        return Dictionary(
            logins.filter { $0.trigger.detector != nil }.map {
                ($0.name, $0.terms)
            }, uniquingKeysWith: { $1 })
    }

    private func text(_ challenge: String, upstream: String = "") throws -> String? {
        try texts("{ name: c, upstream: bank, \(challenge) }", upstream: upstream)["c"]
    }

    private func digest(_ text: String?) -> String {
        CryptoDigests().digest(.sha256, of: Array((text ?? "").utf8)).prefix(8)
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static let head = "countersign-login=1\norigin=https://bank.example.com\n"

    private static let gateway = """
        gateway: none, credential: ann, detect: { status: 401 }, login: [{ page: /login, url: form, fields: hidden, \
        parameters: { user: "{username}", pass: "{password}" }, extract: { t: /data/token } }, \
        { url: "https://id.example.com/in", method: PUT, body: json, headers: { X-A: "{t}" } }], inject: { X-T: "{t}" }, \
        cookies: { pass: [b, a] }
        """

    private static let token = """
        scheme: [bearer, negotiate], realm: R, spn: HTTP/x, credential: api, token: { grant: password, \
        url: "https://id.example.com/token", scope: [write, read], audience: all, parameters: { tenant: "a=b" }, client-auth: body }
        """

    @Test("the text of a login page's login is pinned")
    func gateway() throws {
        let text = try text(Self.gateway)
        #expect(
            text == Self.head + """
                kind=gateway
                credential=ann
                gateway=none
                login[0].page=/login
                login[0].url=form
                login[0].method=POST
                login[0].parameters.user={username}
                login[0].parameters.pass={password}
                login[0].fields=hidden
                login[0].body=form
                login[0].extract.t=/data/token
                login[1].url=https://id.example.com/in
                login[1].method=PUT
                login[1].body=json
                login[1].headers.x-a={t}
                inject.x-t={t}
                cookies.pass=a
                cookies.pass=b

                """)
        #expect(digest(text) == "26a00171efc50c7f")
        let preset = try self.text("gateway: j-security-check, credential: ann")
        #expect(preset == Self.head + "kind=gateway\ncredential=ann\ngateway=j-security-check\n")
        #expect(digest(preset) == "bab33ef2010c8330")
    }

    @Test("the text of a login by schemes and tokens is pinned")
    func scheme() throws {
        let text = try text(Self.token)
        #expect(
            text == Self.head + """
                kind=scheme
                credential=api
                scheme=bearer
                scheme=negotiate
                realm=R
                spn=HTTP/x
                token.grant=password
                token.url=https://id.example.com/token
                token.scope=read
                token.scope=write
                token.audience=all
                token.parameters.tenant=a=b
                token.client-auth=body
                token.field=authorization
                token.prefix=Bearer

                """)
        #expect(digest(text) == "a699bfdcdbe07466")
        let negotiate = try self.text("scheme: negotiate")
        #expect(negotiate == Self.head + "kind=scheme\nscheme=negotiate\n")
        #expect(digest(negotiate) == "1adb6621131b5982")
    }

    @Test("the text of security checks that a resource names is pinned, in an order that is not the file's")
    func checks() throws {
        let first = """
            { name: pin, upstream: bank, security-check: Pin, credential: p, answer-url: /login, \
            answer: { pin: "{pin}", "a.b": [1, "1", 1.5, true, ~, {}] } }
            """
        let second = #"{ name: c, upstream: bank, security-check: "Ca\\p=", credential: q, answer: { x: y } }"#
        let text = try texts("\(first), \(second)")["pin"]
        #expect(
            text == Self.head + #"""
                kind=security-check
                credential=p
                security-check=Pin
                answer."a.b"[0]=1
                answer."a.b"[1]="1"
                answer."a.b"[2]=1.5
                answer."a.b"[3]=true
                answer."a.b"[4]=null
                answer."a.b"[5]={}
                answer."pin"="{pin}"
                answer-url=https://bank.example.com/login
                kind=security-check
                credential=q
                security-check=Ca\\p=
                answer."x"="y"

                """#)
        #expect(digest(text) == "c413b4caa0a6f671")
        #expect(try texts("\(second), \(first)")["c"] == text)
    }

    @Test("the text of a MobileFirst server's client is pinned")
    func mobileFirst() throws {
        let client = """
            mobilefirst: { application: com.sample, platform: ios, version: "1.0", scope: b a }
            """
        let check = """
            { name: pin, upstream: bank, security-check: Pin, credential: { by-user: { "1001": ann } }, answer: { pin: "{pin}" } }
            """
        let text = try texts(check, upstream: client)["bank"]
        #expect(
            text == Self.head + #"""
                kind=mobilefirst
                mobilefirst.api=https://bank.example.com/mfp/api
                mobilefirst.application=com.sample
                mobilefirst.platform=ios
                mobilefirst.version=1.0
                mobilefirst.scope=a
                mobilefirst.scope=b

                """#)
        #expect(digest(text) == "1e17cfbe4b6dda99")
        let confidential = try self.text(
            "scheme: bearer, credential: api, token: { grant: mobilefirst, scope: x }", upstream: client)
        #expect(confidential?.contains("token.url=https://bank.example.com/mfp/api/az/v1/token\n") == true)
    }

    @Test("fixed fields have no fingerprint, and that of an own handler has the handler's name")
    func others() throws {
        #expect(try text(#"inject: { X-Key: "{key}" }, credential: k"#) == nil)
        let settings = try settings("{ name: c, upstream: bank, scheme: basic, credential: a }")
        var challenge = settings.challenges[0]
        challenge.kind = OwnHandlerSettings("mine")
        challenge.credential = nil
        #expect(challenge.terms(at: settings.upstreams[0].protected).text == "kind=handler\nhandler=mine\n")
    }

    @Test("two different lists of terms never have the same text")
    func escaping() {
        func text(_ terms: (String, String)...) -> String {
            var list = LoginTerms()
            for (key, value) in terms { list.add(key, value) }
            return list.text
        }
        let texts = [
            text(("a", "b"), ("c", "d")), text(("a", "b\nc=d")), text(("a=b\nc", "d")), text(("a", "b\\nc=d")),
            text(("a\nb", "")), text(("a\\nb", "")), text(("a", "b"), ("a", "c")), text(("a", "b=c")),
            text(("a=b", "c")),
            text(("a\\", "b=c")), text(("a\\=b", "c")),
        ]
        #expect(Set(texts).count == texts.count)
    }
}
