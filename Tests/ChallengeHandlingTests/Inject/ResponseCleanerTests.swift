// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Values of a credential are removed from responses")
struct ResponseCleanerTests {
    private static let key = "s3cr3t/k+y"

    private func cleaner(path: String? = nil, query: [(String, String)] = [], secrets: [String] = [Self.key])
        -> ResponseCleaner
    {
        ResponseCleaner(
            parameters: query.map { .init(name: Array($0.0.utf8), value: Secret($0.1)) }, path: path.map { Secret($0) },
            secrets: secrets.map { Secret($0) })
    }

    private func cleaned(
        _ value: String, _ kind: ResponseCleaner.Kind = .other, base: String = "", by cleaner: ResponseCleaner
    ) -> String? {
        let bytes = Array(value.utf8)
        return cleaner.cleaned(bytes.span, kind, base: Array(base.utf8)).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "a secret in any field becomes asterisks, however it is encoded",
        arguments: [
            ("s3cr3t/k+y", "**********"), ("a s3cr3t%2Fk%2By b", "a ************** b"),
            ("%733cr3t%2fk+y", "**************"),
            (#""s3cr3t\/k\u002by""#, #""****************""#), ("s3cr3t&#47;k&#x2B;y", "*******************"),
            ("s3cr3ts3cr3t/k+y", "s3cr3t**********"), ("s3cr3t/k+ys3cr3t/k+y", "********************"),
        ])
    func masked(value: String, wanted: String) {
        #expect(cleaned(value, by: cleaner()) == wanted)
    }

    @Test(
        "what only resembles a secret stays",
        arguments: ["s3cr3t/k y", "S3CR3T/K+Y", "s3cr3t/k+", "%73%", "", "s3cr3t%2/k+y"])
    func others(value: String) { #expect(cleaned(value, by: cleaner()) == nil) }

    @Test("a secret of fewer than 6 bytes is not looked for in texts, as it would be found by accident")
    func short() {
        #expect(cleaned("max-age=12345", by: cleaner(secrets: ["12345"])) == nil)
        #expect(cleaned("max-age=123456", by: cleaner(secrets: ["123456"])) == "max-age=******")
    }

    @Test(
        "the injected path is removed from an address, plain or encoded, and what follows stays",
        arguments: [
            ("/bot12:ab/x?y#z", "/x?y#z"), ("/bot12%3Aab/x", "/x"),
            ("http://u.example/bot12:ab/x", "http://u.example/x"),
            ("//u.example/bot12:ab/", "//u.example/"), ("/bot12:ab", "/"),
            ("https://u.example:1/bot12:ab?x", "https://u.example:1/?x"),
        ])
    func path(value: String, wanted: String) {
        #expect(cleaned(value, .address, by: cleaner(path: "/bot12:ab", secrets: [])) == wanted)
    }

    @Test("a path that only begins with the same letters, or would become a host, keeps its form without the secret")
    func otherPaths() {
        let cleaner = cleaner(path: "/bot12:abcd", secrets: ["12:abcd"])
        #expect(cleaned("/bot12:abcde/x", .address, by: cleaner) == "/bot*******e/x")
        #expect(cleaned("/bot12:abcd//evil.example/", .address, by: cleaner) == "/bot*******//evil.example/")
        #expect(cleaned("/bot12:abcd/\\evil.example/", .address, by: cleaner) == "/bot*******/\\evil.example/")
        #expect(cleaned("../bot12:abcd/x", .address, by: cleaner) == "../bot*******/x")
        #expect(cleaned("/other/x", .address, by: cleaner) == nil)
        #expect(cleaned("mailto:a@b/bot12:abcd", .address, by: cleaner) == "mailto:a@b/bot*******")
    }

    @Test("the injected path is also removed after the upstream's own path")
    func base() {
        let cleaner = cleaner(path: "/bot1", secrets: [])
        #expect(cleaned("/api/bot1/x", .address, base: "/api", by: cleaner) == "/api/x")
        #expect(cleaned("/api/bot1", .address, base: "/api", by: cleaner) == "/api")
        #expect(cleaned("/bot1/x", .address, base: "/api", by: cleaner) == nil)
    }

    @Test(
        "the injected parameter is removed from an address",
        arguments: [
            ("/a?api_key=\(key)", "/a"), ("/a?x=1&api_key=s3cr3t%2Fk%2By&y=2#z", "/a?x=1&y=2#z"),
            ("https://o.example/?%61pi_key=s3cr3t%2fk%2by", "https://o.example/"),
            ("?page=2&api_key=s3cr3t/k%2By", "?page=2"),
            ("/a?x=1;api_key=s3cr3t/k%2By;y=2&z;", "/a?x=1;y=2&z;"),
            ("?page=2&api%255Fkey=s3cr3t%25%32%46k%252By", "?page=2"),
        ])
    func parameter(value: String, wanted: String) {
        #expect(
            cleaned(value, .address, by: cleaner(query: [("api_key", Self.key)], secrets: []))
                == (value.contains("k+y") ? nil : wanted))
        #expect(
            cleaned(value.replacing("k+y", with: "k%2By"), .address, by: cleaner(query: [("api_key", Self.key)]))
                == wanted)
    }

    @Test("a parameter of the name with another value stays")
    func otherValue() {
        #expect(cleaned("/a?api_key=public", .address, by: cleaner(query: [("api_key", Self.key)])) == nil)
    }

    @Test("addresses in Link, Refresh and cookies' paths are cleaned in place")
    func fields() {
        let cleaner = cleaner(path: "/botK", query: [("k", "v")], secrets: [])
        #expect(
            cleaned("</botK/2?k=v>; rel=\"next\", <https://u/botK/9?a&k=v>; rel=last", .links, by: cleaner)
                == "</2>; rel=\"next\", <https://u/9?a>; rel=last")
        #expect(cleaned("5; URL='/botK/x'", .refresh, by: cleaner) == "5; URL='/x'")
        #expect(cleaned("0;url=/botK/x?k=v", .refresh, by: cleaner) == "0;url=/x")
        #expect(
            cleaned("a=path=/botK/; Secure; path=/botK; HttpOnly", .cookie, by: cleaner)
                == "a=path=/botK/; Secure; path=/; HttpOnly")
        #expect(cleaned("a=b", .cookie, by: cleaner) == nil)
    }

    @Test("a text is searched for secrets without being changed")
    func finds() {
        let (hit, miss) = (Array("Link: <s3cr3t%2Fk%2By>".utf8), Array("Link: <s3cr3t>".utf8))
        #expect(cleaner().finds(in: hit.span) == true)
        #expect(cleaner().finds(in: miss.span) == false)
    }

    // MARK: Bodies

    private func body(_ pieces: [String], _ cleaner: ResponseCleaner) -> String {
        var body = cleaner.bodyCleaner()
        var result: [UInt8] = []
        for piece in pieces { result += body.clean(Array(piece.utf8), isEnd: false) }
        result += body.clean([], isEnd: true)
        #expect(!body.isHolding)
        return String(decoding: result, as: UTF8.self)
    }

    @Test("a secret in a page is replaced wherever the page is cut in two")
    func split() {
        let texts = [
            "<a href='/x?k=s3cr3t%2Fk%2By'>s3cr3t/k+y</a>", #"{"k":"s3cr3t\/k\u002by","l":1}"#, "s3cr3t/k&#43;y s3cr3",
            "%%2",
        ]
        let cleaner = cleaner()
        for text in texts {
            let whole = body([text], cleaner)
            #expect(whole.count == text.count && !whole.contains("k+y"))
            for cut in text.indices {
                let parts = [String(text[..<cut]), String(text[cut...])]
                #expect(body(parts, cleaner) == whole)
            }
            #expect(body(text.map { String($0) }, cleaner) == whole)
        }
    }

    @Test("nothing is held back of a page but what may be the beginning of a secret")
    func held() {
        var body = cleaner().bodyCleaner()
        #expect(body.clean(Array("abc".utf8), isEnd: false) == Array("abc".utf8))
        #expect(body.clean(Array("d s3c".utf8), isEnd: false) == Array("d ".utf8))
        #expect(body.isHolding)
        #expect(body.clean(Array("ond".utf8), isEnd: false) == Array("s3cond".utf8))
        #expect(!body.isHolding)
    }

    @Test("after 64 KiB a page passes as it is")
    func limit() {
        let filler = String(repeating: "x", count: BodyCleaner.limit - 10)
        #expect(body([filler, Self.key, Self.key], cleaner()) == filler + "**********" + Self.key)
        #expect(body([filler + Self.key + Self.key], cleaner()) == filler + "**********" + Self.key)
    }

    @Test("random pieces of random texts are cleaned as the whole, and hold no secret afterwards")
    func model() {
        var dice = SplitMix(state: 3)
        let secret = "aabaab%41a"
        let cleaner = cleaner(secrets: [secret])
        let words = ["a", "b", "aab", "%61", "%41", secret, "%25", "aabaab%2541a", "\\u0061", "&#97;"]
        for _ in 0..<2000 {
            let text = (0..<Int.random(in: 1..<12, using: &dice)).map { _ in words.randomElement(using: &dice) ?? "" }
                .joined()
            var pieces: [String] = []
            var rest = text[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...rest.count, using: &dice)
                pieces.append(String(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            let whole = body([text], cleaner)
            #expect(body(pieces, cleaner) == whole, "\(text)")
            #expect(whole.utf8.count == text.utf8.count)
            #expect(!whole.contains(secret), "\(text) became \(whole)")
        }
    }
}
