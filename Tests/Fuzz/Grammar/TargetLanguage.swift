// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire

@testable import Proxy

/// A request target, a `Host` and a method in lines. What the path leads to is known from its segments, however they are written.
struct TargetLanguage: Language {
    static let name = "targets"

    var sentence = Sentence()
    private var path = ByteRange.empty
    private var isGuarded = false
    private var isPlain = true
    private var host = ByteRange.empty
    private var isHost = true
    private var isServed = true
    private var method: StaticString = "GET"
    private var stack: [Bool] = []

    mutating func write() {
        stack.removeAll(keepingCapacity: true)
        isPlain = true
        let start = sentence.count
        let count = 1 + sentence.choices.below(4)
        for index in 0..<count {
            sentence.put("/")
            if sentence.choices.once(in: 8) {
                // Segments that lead back, or nowhere.
                isPlain = false
                let (text, effect) = sentence.choices.pick(Self.dots)
                sentence.put(text)
                if effect < 0 { _ = stack.popLast() }
                // A path with one of these ends is a folder.
                if index == count - 1 { stack.append(false) }
                continue
            }
            let isAccounts = sentence.choices.once(in: 3)
            // Of a folder there must be something below.
            putSegment(isAccounts ? "accounts" : sentence.choices.pick(Self.segments))
            stack.append(isAccounts)
            if isAccounts, index == count - 1 {
                sentence.put("/")
                stack.append(false)
            }
        }
        path = ByteRange(start: start, end: sentence.count)
        isGuarded = stack.first == true && stack.count > 1
        if sentence.choices.once(in: 4) { sentence.put("?/accounts/..") }
        sentence.put("\n")
        let hostStart = sentence.count
        writeHost()
        host = ByteRange(start: hostStart, end: sentence.count)
        sentence.put("\n")
        method = sentence.choices.flip() ? "GET" : "POST"
        sentence.put(method)
    }

    /// A segment as it is, or with some of its letters percent-coded, which means the same.
    private mutating func putSegment(_ text: StaticString) {
        guard sentence.choices.once(in: 6) else { return sentence.put(text) }
        isPlain = false
        let start = sentence.count
        sentence.put(text)
        let letters = Array(sentence.bytes[start...])
        sentence.cut(to: start)
        for byte in letters {
            if sentence.choices.once(in: 3) {
                sentence.put("%")
                sentence.put(UInt64(byte), radix: 16, isUpper: sentence.choices.flip())
            } else {
                sentence.put(byte)
            }
        }
    }

    private mutating func writeHost() {
        isHost = !sentence.choices.once(in: 6)
        guard isHost else {
            isServed = false
            return sentence.put(sentence.choices.pick(Self.brokenHosts))
        }
        let (text, served) = sentence.choices.pick(Self.hosts)
        sentence.putInSomeCase(text)
        isServed = served
        switch sentence.choices.below(4) {
        case 0: sentence.put(":")
        case 1:
            sentence.put(":")
            sentence.put(UInt64(sentence.choices.below(65_536)))
        default: break
        }
    }

    func check() throws(Violation) {
        let span = sentence.bytes.span
        let text = span.text(path)
        for user in [7, 8] as [UInt32] {
            let decision = Self.router.decide(host: "a", path: text, method: "\(method)", user: user)
            switch decision {
            case .found(let destination):
                try require(
                    !isGuarded || destination.upstream == "guarded" && user == 7, "\(text) walks around the guard")
                if isPlain {
                    try require((destination.upstream == "guarded") == isGuarded, "\(text) goes to \(destination)")
                }
            case .notAllowed: try require(user == 8 && (isGuarded || !isPlain), "\(text) is not allowed")
            case .ambiguous: try require(!isPlain, "\(text) is ambiguous")
            case .none: throw Violation(description: "\(text) leads nowhere")
            }
        }
        try require((Authority(span, host) != nil) == isHost, "the host is one, or not: \(isHost)")
        try require(Self.policy.accepts(host, in: span) == isServed, "the host is served, or not: \(isServed)")
    }

    private static let router = Router(
        routes: [.init(path: "/accounts/", users: [7], upstream: "guarded"), .init(path: "/", upstream: "rest")],
        fallback: nil)
    private static let policy = HostPolicy(names: ["Bank.Example", "[2001:DB8::1]"])
    private static let dots: [(StaticString, Int)] = [
        ("..", -1), (".", 0), ("%2e%2E", -1), ("%2e.", -1), (".%2e", -1), ("%2E", 0),
    ]
    private static let segments: [StaticString] = ["a", "x.html", "acc", "accountsx", "b-c_d~", "0", "...", "z"]
    private static let hosts: [(StaticString, Bool)] = [
        ("bank.example", true), ("bank.example.", true), ("localhost", true), ("a.localhost", true),
        ("127.0.0.1", true), ("127.1.2.3", true), ("[::1]", true),
        ("[2001:db8::1]", true), ("[2001:db8:0:0:0:0:0:1]", true), ("evil.example", false),
        ("bank.example.evil.example", false), ("localhost.evil", false),
        ("xbank.example", false), ("128.0.0.1", false), ("127.0.0.01", false), ("[::2]", false),
        ("notlocalhost", false), ("127.0.0.1.evil", false),
    ]
    private static let brokenHosts: [StaticString] = [
        "", "a b", "a,b", "u@bank.example", "bank.example:65536", "bank.example:1x", "[::1", "[::1]x", "a/b",
        "bank%2eexample", "bank.example:80:80", ":80", "[]", "[:::1]", "[1]",
        "bank.example/", "localhost#", "b\u{E4}nk.example", "[::1%25lo]", "bank.example:+1", "bank.example?",
    ]
}
