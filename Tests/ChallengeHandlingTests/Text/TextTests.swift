// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Texts")
struct TextTests {
    @Test(
        "base 64 of RFC 4648 §10, and both alphabets",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"), ("~~~???", "fn5+Pz8/"),
        ])
    func base64(plain: String, coded: String) {
        let url = String(coded.filter { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        #expect(Base64.encode(plain.utf8) == coded && Base64.encode(plain.utf8, .url) == url)
        #expect(Base64.decode(coded) == Array(plain.utf8) && Base64.decode(url) == Array(plain.utf8))
    }

    @Test("invalid base64 is refused", arguments: ["A", "A===", "AA=A", "A A=", "AAA==", "=", "AA!=", "AAAA===="])
    func notBase64(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test("forms and queries are encoded by their rules, and decoded to the same values")
    func forms() {
        let body = FormEncoding.body([("a b", Secret("1+1=2&ü*~")), ("", Secret("")), ("c", Secret([0xFF, 0x20]))])
        #expect(body.revealText() == "a+b=1%2B1%3D2%26%C3%BC*%7E&=&c=%FF+")
        #expect(FormEncoding.query([("a b", "1+1~*/"), ("c", "")]) == "a%20b=1%2B1~%2A%2F&c=")
        #expect(FormEncoding.value(of: "a b", in: body.revealText()) == "1+1=2&ü*~")
        #expect(FormEncoding.value(of: "c", in: body.revealText()) == nil)
        #expect(FormEncoding.value(of: "x", in: "y=1&x&x=2") == "")
        #expect(FormEncoding.value(of: "x", in: "x=%&x=1") == "%")
        #expect(FormEncoding.value(of: "x", in: "x=%4") == "%4")
        #expect(FormEncoding.value(of: "x", in: "x=%+1") == "% 1")
        #expect(FormEncoding.value(of: "none", in: "") == nil)
        // An accent on a separator belongs to what follows it.
        #expect(FormEncoding.value(of: "x", in: "y=1&\u{301}=2&x=\u{301}3") == "\u{301}3")
        #expect(FormEncoding.value(of: "y", in: "y=1&\u{301}=2") == "1")
    }

    @Test(
        "the three forms of an HTTP-date mean the same moment",
        arguments: ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])
    func dates(text: String) {
        #expect(Moment.httpDate(text) == 784_111_777_000)
    }

    @Test(
        "an invalid HTTP-date is refused",
        arguments: [
            "", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nop 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "1994-11-06",
            "Sun, 06 Nov 99999 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "Thu, 31 Feb 1994 08:49:37 GMT",
        ])
    func notDates(text: String) {
        #expect(Moment.httpDate(text) == nil)
    }

    @Test(
        "moments read as dates, leap days and the time before 1970 too",
        arguments: [
            (0, "1970-01-01 00:00:00 UTC"), (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
            (784_111_777_999, "1994-11-06 08:49:37 UTC"), (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] as [(Int64, String)])
    func moments(moment: Int64, text: String) {
        #expect(Moment.text(moment) == text)
    }

    @Test(
        "Retry-After is a number of seconds or a date, and at most 30 days",
        arguments: [
            ("0", 1000), ("120", 121_000), ("99999999999999999999", 2_592_001_000),
            ("Thu, 01 Jan 1970 00:02:00 GMT", 120_000),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 1000), ("Fri, 31 Dec 9999 23:59:59 GMT", 2_592_001_000), ("-1", nil),
            ("1.5", nil),
            ("", nil), ("soon", nil),
        ] as [(String, Int64?)])
    func retryAfter(value: String, moment: Int64?) {
        #expect(Moment.retry(after: [.retryAfter: value], now: 1000) == moment)
        #expect(Moment.retry(after: [:], now: 1000) == nil)
    }

    @Test("a server's text is limited to one line without control characters")
    func serverText() {
        #expect(ServerText.name("Pin\nCode é\u{1B}[31m") == "Pin?Code????[31m")
        #expect(ServerText.name(String(repeating: "a", count: 100)).count == 64)
        #expect(ServerText.sentence("Für\r\nSie\u{202E}!\u{1B}") == "Für  Sie ! ")
        #expect(ServerText.sentence(String(repeating: "a", count: 500)).count == 200)
    }
}

@Suite("Redacted texts")
struct RedactionTests {
    @Test(
        "a secret is redacted in every spelling that another program may use",
        arguments: [
            "Zq7/x+ w\"k", #"Zq7/x+ w\"k"#, "Zq7%2Fx%2B%20w%22k", "Zq7%2fx%2b%20w%22k", "Zq7%2Fx%2B+w%22k",
            "Zq7%2fx%2b+w%22k",
            "5a71372f782b2077226b", "5A71372F782B2077226B",
        ])
    func forms(_ written: String) {
        #expect(Redaction.text("a\(written)b", without: ["Zq7/x+ w\"k"]) == "a<redacted>b")
    }

    @Test(
        "within longer base64 none of the digits that are the secret's own is left", arguments: ["", "u", "us", "ann:"])
    func base64(before: String) {
        for alphabet in [Base64.Alphabet.standard, .url] {
            let text = Base64.encode(Array("\(before)Right-horse-7?>~ and more".utf8), alphabet)
            let told = Redaction.text(text, without: ["Right-horse-7?>~"])
            // At most one digit at each end also holds bits of the surrounding text.
            #expect(told.contains("<redacted>") && told.utf8.count <= text.utf8.count - 20 + "<redacted>".utf8.count)
        }
    }

    @Test("of a short secret only what is plainly it is taken out")
    func short() {
        #expect(
            Redaction.text("pin 1234, 31323334 and MTIzNA", without: ["1234"]) == "pin <redacted>, 31323334 and MTIzNA")
    }
}
