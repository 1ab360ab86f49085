// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling
@testable import Learning
@testable import Settings

/// Texts of servers, pages, helpers, operators and recordings that may have no end.
extension Growth {
    private static let url = WebURL(origin: Origin(scheme: .https, host: "bank.example"), path: "/a/b")

    static let texts: [Growth] = [
        Growth(
            name: "challenges", most: 1_000,
            read: { bytes in
                let list = ChallengeList([String(decoding: bytes, as: UTF8.self)])
                _ = DigestChallenge.strongest(of: list.challenges)
            },
            texts: [
                ("schemes", repeated("Basic, ")), ("parameters", numbered(from: "Digest ") { "a\($0)=b, " }),
                ("commas", repeated(",", from: "Basic ")),
                ("backslashes", repeated("\\a", from: "Basic realm=\"", to: "\"")),
                ("an open quote", repeated("a", from: "Basic realm=\"")),
                ("a token", repeated("a", from: "Negotiate ")), ("its end", repeated("=", from: "Negotiate a")),
                ("blanks", repeated(" ", from: "Basic ")),
                ("marks", repeated("\u{300}\u{316}", from: "Basic realm=\"a", to: "\"")),
                ("Digests", repeated("Digest realm=a,nonce=b,qop=\"auth\", ")),
                ("single quotes", repeated("a='b ", from: "Basic ")), ("words", repeated("a ", from: "Basic realm=")),
                ("schemes without commas", repeated("Digest ", from: "Basic realm=")),
                ("quotes in words", repeated("a\"b\" ", from: "Basic realm=")),
                ("semicolons", repeated("a=b; ", from: "Basic ")), ("equals", repeated("= ", from: "Basic a")),
            ]),
        Growth(
            name: "structured", most: 1_000,
            read: { bytes in
                let list = StructuredFieldParser.list(bytes)
                if let list { _ = StructuredFieldWriter.text(of: list) }
                _ = StructuredFieldParser.dictionary(bytes)
            },
            texts: [
                ("items", repeated("a,", to: "a")), ("parameters", numbered(from: "a") { ";p\($0)" }),
                ("the same key", repeated("a=1,", to: "a=2")),
                ("inner lists", repeated("(a b),", to: "a")), ("an inner list", repeated("a ", from: "(", to: ")")),
                ("blanks", repeated(" ", to: "a")),
                ("a string", repeated("\\\\", from: "\"", to: "\"")), ("bytes", repeated("YWJj", from: ":", to: ":")),
                ("digits", repeated("1")),
            ]),
        Growth(
            name: "cookies", most: 2_000,
            read: { bytes in
                let text = String(decoding: bytes, as: UTF8.self)
                var jar = CookieJar()
                jar.store(text, from: url, now: 0)
                jar.store("sid=own", from: url, now: 0)
                _ = SessionCookies(jar).merged(with: [text], for: url, now: 0)
                _ = SessionCookies(jar).take(text, from: url, now: 0)
            },
            texts: [
                ("pairs", repeated("a=b; ")), ("the session's own", repeated("sid=b; ")), ("semicolons", repeated(";")),
                ("signs of equality", repeated("=", from: "a")),
                ("attributes", repeated("; Domain=a; Path=/; Secure", from: "a=b")),
                ("dates", repeated("; Expires=1 Jan 1 1:1:1", from: "a=b")),
                ("one date", repeated("1:1:1 ", from: "a=b; Expires=")), ("blanks", repeated(" ", from: "a=", to: "b")),
                ("a name", repeated("a", to: "=b")),
            ]),
        Growth(
            name: "pages", most: 2_000,
            read: { bytes in
                let page = HTMLPage(parsing: bytes)
                _ = page.forms.contains { $0.hasInput(named: "x") }
                _ = SelfSubmittingForm(on: bytes)
            },
            texts: [
                ("forms", repeated("<form></form>")), ("inputs", repeated("<input name=a value=b>", from: "<form>")),
                ("signs", repeated("<")),
                ("comments", repeated("<!-- -->")), ("open comments", repeated("<!--")),
                ("dashes", repeated("-", from: "<!--")), ("ends", repeated("</")),
                ("attributes", numbered(from: "<form ") { "a\($0)=b " }),
                ("the same one", repeated("a=b ", from: "<form ")), ("scripts", repeated("<script></script>")),
                ("a script of ends", repeated("</scrip", from: "<script>")),
                ("references", repeated("&amp;", from: "<form action='", to: "'>")),
                ("open references", repeated("&", from: "<form action='", to: "'>")), ("quotes", repeated("<a b='")),
                ("slashes", repeated("/", from: "<a ")),
                ("titles", repeated("<title>")), ("equal signs", repeated("=", from: "<a ")),
            ]),
        Growth(
            name: "patterns", most: 10_000,
            read: { bytes in
                for source in ["(a*)b", "name=\"([^\"]*)\"", "((?:a|aa)+)b", "(.*.*.*)x", "((?:x+x+)+)y"] {
                    _ = (try? PagePattern(source))?.firstGroup(in: bytes)
                }
            },
            texts: [
                ("one letter", repeated("a")), ("another", repeated("x")), ("nearly", repeated("name=\"")),
                ("lines", repeated("a\n")),
            ]),
        Growth(
            name: "json", most: 1_000,
            read: { bytes in
                let value = JSONValue(parsing: bytes, within: JSONLimits(size: 1 << 20, elements: 1 << 20))
                _ = value?["a"]
                _ = TokenAnswer(bytes).error
            },
            texts: [
                ("lists", repeated("[")), ("numbers", repeated("1,", from: "[", to: "1]")), ("digits", repeated("1")),
                ("members", numbered(from: "{", to: "\"z\":1}") { "\"n\($0)\":1," }),
                ("escapes", repeated("\\u00e9", from: "\"", to: "\"")), ("blanks", repeated(" ")),
            ]),
        Growth(
            name: "addresses", most: 3_000,
            read: { bytes in
                let text = String(decoding: bytes, as: UTF8.self)
                _ = WebURL(text)
                _ = url.resolving(text)
                _ = try? Location(text)
            },
            texts: [
                ("segments", repeated("/a", from: "http://a")), ("dots", repeated("../")),
                ("schemes", repeated("a://")), ("colons", repeated(":")),
                ("labels", repeated("a.", from: "http://")), ("percent signs", repeated("%41", from: "/")),
                ("brackets", repeated("[")), ("slashes", repeated("/")),
                ("questions", repeated("?", from: "http://a/")), ("users", repeated("a@", from: "http://")),
            ]),
        Growth(
            name: "locations", most: 3_000,
            read: { bytes in
                let text = String(decoding: bytes, as: UTF8.self)
                guard let pattern = try? LocationPattern(text), let location = try? Location("a/b") else { return }
                _ = pattern.covers(location)
                _ = try? LocationPattern(pattern.text)
            },
            texts: [
                ("labels", repeated("a.", to: "b")), ("segments", repeated("/a", from: "a")), ("signs", repeated("*")),
                ("coded", repeated("%41", from: "a/")),
                ("labels of signs", repeated("*.", to: "a")), ("slashes", repeated("/", from: "a")),
                ("percent signs", repeated("%", from: "a/")),
            ]),
        Growth(
            name: "forms", most: 3_000,
            read: { bytes in
                let text = String(decoding: bytes, as: UTF8.self)
                _ = FormEncoding.value(of: "x", in: text)
                _ = FormEncoding.body([(name: text, value: Secret(bytes))])
                _ = try? TextTemplate(text)
                _ = Moment.httpDate(text)
                _ = Base64.decode(text)
            },
            texts: [
                ("pairs", repeated("a=b&")), ("signs", repeated("&")), ("coded", repeated("%41")),
                ("equal signs", repeated("=")), ("braces", repeated("{")),
                ("names", repeated("{a}")), ("blanks", repeated(" ")), ("letters", repeated("QUJD")),
            ]),
        Growth(
            name: "redaction", most: 20_000,
            read: { bytes in
                _ = Redaction.text(
                    String(decoding: bytes, as: UTF8.self), without: [MarkedSecret.text, "aaaaaaaaaaaaaaab"])
            },
            texts: [
                ("its beginning", repeated(String(MarkedSecret.text.prefix(12)))),
                ("itself", repeated(MarkedSecret.text)), ("one letter", repeated("a")),
                ("marks", repeated("\u{300}")),
            ]),
        Growth(
            name: "settings", most: 20_000, read: { bytes in _ = Settings.parse(bytes, file: "f", environment: [:]) },
            texts: [
                ("lists", repeated("[")), ("maps", repeated("{a: ")), ("keys", numbered { "k\($0): v\n" }),
                ("the same key", repeated("a: b\n")),
                ("blocks", repeated("- ")), ("comments", repeated("# a\n")),
                ("aliases", repeated("- *a\n", from: "- &a b\n")),
                ("lists of aliases", numbered(from: "- &a0 [x]\n") { "- &a\($0 + 1) [*a\($0), *a\($0)]\n" }),
                ("listeners", repeated("- {}\n", from: "listeners:\n")),
                ("quotes", repeated("'")), ("variables", repeated("${A}", from: "a: ")), ("colons", repeated(":")),
                ("tabs", repeated("\t")),
            ]),
        Growth(
            name: "recordings", most: 5_000,
            read: { bytes in
                guard let recording = try? HARRecording(parsing: bytes) else { return }
                _ = try? RecordedLogin(recording, at: url.origin, known: ["password": Secret("Right-horse-7")])
            },
            texts: [
                (
                    "entries",
                    repeated(
                        #"{"request":{"method":"GET","url":"https://bank.example/","headers":[]},"response":{"status":200,"headers":[],"content":{"text":"a"}}},"#,
                        from: #"{"log":{"entries":["#, to: "1]}}")
                ),
                ("lists", repeated("[", from: #"{"log":{"entries":"#)),
            ]),
        Growth(
            name: "certificates", most: 300,
            read: { bytes in
                _ = CertificateDates(bytes)
                _ = CertificateDates.all(inPEM: String(decoding: bytes, as: UTF8.self))
            },
            texts: [
                ("sequences", repeated("0\u{7F}")), ("begins", repeated("-----BEGIN CERTIFICATE-----\n")),
                ("ends", repeated("-----END CERTIFICATE-----\n")),
                ("dashes", repeated("-")),
                (
                    "letters",
                    repeated("QUJD", from: "-----BEGIN CERTIFICATE-----\n", to: "\n-----END CERTIFICATE-----\n")
                ),
            ]),
        Growth(
            name: "sessions", most: 500, read: { bytes in _ = try? SessionImages.decoded(Secret(bytes)) },
            texts: [
                ("zeros", repeated("\0", from: "CSIGNSE2")), ("texts", repeated("\0\0\0\u{1}a", from: "CSIGNSE2\u{3}")),
            ]),
    ]
}
