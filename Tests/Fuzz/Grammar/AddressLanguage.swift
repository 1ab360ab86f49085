// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling

/// An absolute address and a reference, resolved against that address as browsers do (WHATWG URL §4.4), in two lines.
struct AddressLanguage: Language {
    static let name = "addresses"
    static let target = "values"

    var sentence = Sentence()
    private var isBroken = false
    private var expected = ""
    private var resolved: String?
    private var reference = 0

    mutating func write() {
        sentence.put("u")
        isBroken = sentence.choices.once(in: 4)
        if isBroken { return sentence.put(sentence.choices.pick(Self.broken)) }
        let isSecure = sentence.choices.flip()
        sentence.putInSomeCase(isSecure ? "https" : "http")
        sentence.put("://")
        let (host, canonical) = sentence.choices.pick(Self.hosts)
        sentence.put(host)
        var origin = "\(isSecure ? "https" : "http")://\(canonical)"
        switch sentence.choices.below(6) {
        case 0: sentence.put(":")
        case 1: sentence.put(isSecure ? ":443" : ":80")
        case 2:
            sentence.put(":8080")
            origin += ":8080"
        default: break
        }
        // The segments of the path, without the slash in front of each.
        var path: [String] = []
        for _ in 0..<sentence.choices.below(4) {
            let segment = sentence.choices.pick(Self.segments)
            sentence.put("/")
            sentence.put(segment)
            path.append("\(segment)")
        }
        if path.isEmpty { path = [""] }
        var query = ""
        if sentence.choices.once(in: 4) {
            let text = sentence.choices.pick(Self.queries)
            sentence.put("?")
            sentence.put(text)
            query = "?\(text)"
        }
        if sentence.choices.once(in: 8) { sentence.put("#/f?x") }
        expected = origin + path.map { "/\($0)" }.joined() + query
        sentence.put("\n")
        reference = sentence.count
        writeReference(origin, path, query)
    }

    private mutating func writeReference(_ origin: String, _ path: [String], _ query: String) {
        var merged: [String]
        switch sentence.choices.below(8) {
        case 0:
            // Only a query, or nothing.
            guard sentence.choices.flip() else {
                resolved = expected
                return
            }
            sentence.put("?q")
            resolved = origin + path.map { "/\($0)" }.joined() + "?q"
            return
        case 1:
            let (text, host) = sentence.choices.pick(Self.otherSchemes)
            sentence.put(text)
            resolved = host.map { "\(text)".hasPrefix("http") ? $0 : "\(origin.prefix { $0 != ":" }):\($0)" }
            return
        case 2:
            sentence.put("//other.example/x")
            resolved = "\(origin.prefix { $0 != ":" })://other.example/x"
            return
        case 3, 4:
            sentence.put("/")
            merged = []
        default: merged = Self.normalized(path).dropLast()
        }
        let isRooted = sentence.bytes.count > reference
        let count = 1 + sentence.choices.below(3)
        for index in 0..<count {
            if index > 0 { sentence.put("/") }
            var segment = sentence.choices.pick(Self.segments)
            // Two slashes in front would begin a host, and nothing at all is another reference.
            if index == 0, "\(segment)".isEmpty || "\(segment)".contains(":") { segment = isRooted ? "r" : ".." }
            sentence.put(segment)
            merged.append("\(segment)")
        }
        let output = Self.normalized(merged)
        var query = ""
        if sentence.choices.once(in: 4) {
            sentence.put("?a=/../b")
            query = "?a=/../b"
        }
        if sentence.choices.once(in: 8) { sentence.put("#?f") }
        resolved = "\(origin)/\(output.joined(separator: "/"))\(query)"
    }

    /// Removes dot segments, by their effect on a list of segments.
    private static func normalized(_ segments: [String]) -> [String] {
        var output: [String] = []
        for (index, segment) in segments.enumerated() {
            let isUp = segment == ".." || segment == "%2e%2e"
            if isUp { _ = output.popLast() }
            if segment != ".", !isUp {
                output.append(segment)
            } else if index == segments.count - 1 {
                output.append("")
            }
        }
        return output
    }

    func check() throws(Violation) {
        let text = sentence.bytes.dropFirst()
        if isBroken {
            let found = WebURL(String(decoding: text, as: UTF8.self))
            return try require(found == nil, "what is no address is read as \(String(describing: found))")
        }
        let line = String(decoding: text[..<(reference - 1)], as: UTF8.self)
        guard let base = WebURL(line) else { throw Violation(description: "\(line) is refused") }
        try require(base.description == expected, "\(line) is \(base), not \(expected)")
        let second = String(decoding: text[reference...], as: UTF8.self)
        let found = base.resolving(second)?.description
        try require(found == resolved, "\(second) leads from \(base) to \(found ?? "-"), not to \(resolved ?? "-")")
    }

    private static let hosts: [(StaticString, String)] = [
        ("a.example", "a.example"), ("A.Example", "a.example"), ("a.example.", "a.example"), ("[::1]", "[::1]"),
        ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
        ("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("a_b-c.d", "a_b-c.d"),
        ("[::ffff:1.2.3.4]", "[::ffff:102:304]"), ("x", "x"),
    ]
    private static let segments: [StaticString] = [
        "", "a", "b", ".", "..", "%2e%2e", "%2F", "a;b", "a:b", "x.html", "...", ".a", "a@b", "!$&'()*+,=", "~",
    ]
    private static let queries: [StaticString] = ["", "a=b", "?", "/../x", "a=%20&b", "://x"]
    /// Absolute references, and the addresses that they mean; without a scheme if that of the base counts.
    private static let otherSchemes: [(StaticString, String?)] = [
        ("mailto:a@b", nil), ("javascript:alert(1)", nil), ("data:,x", nil), ("x:", nil), ("ftp://a/b", nil),
        ("http://", nil),
        ("//[::1", nil), ("tel:1/2", nil), ("//m\u{FC}nchen.example/", nil),
        ("https://u@h/", "https://h/"), ("//u:p@h/", "//h/"), ("///x", "//x/"), ("http:///x", "http://x/"),
        ("\\\\h\\a b", "//h/a%20b"), (" //h\t/\u{E9}?\u{E9}\n", "//h/%C3%A9?%C3%A9"), ("//0x7f.1", "//127.0.0.1/"),
    ]
    private static let broken: [StaticString] = [
        "", "a", "/a", "//a/b", "ftp://a/", "http:/a", "http:a", "http://", "http:///a", "http://?a", "http://#a",
        "http://u@h/", "http://u:p@h/", "http://h:0/",
        "http://h:65536/", "http://h:1x/", "http://h:+1/", "http://h:-1/", "http://[::1/", "http://[::1]x/",
        "http://[8]/", "http://[::1%25e]/", "http://[]/",
        "http://a b/", "http://a\\b/", "http://a/\\b", "http://a/ b", "http://a/\u{E9}", "http://\u{E9}/",
        "http://a/\"", "http://a/<", "http://a\0/", "http://a/\t",
        "http://a..b/", "http://.a/", "http://a../", "http://./", "http://a%41/", "http://a,b/", "http://a:80:80/",
        "http ://a/", " http://a/", "http://*/",
        "https:\u{2F}a", "httpx://a/", "http://h:80a", "http://[1:2:3]/", "http://[1:2:3:4:5:6:7:8:9]/",
        "http://[:::1]/", "http://[::12345]/", "http://[::1.2.3]/",
    ]
}
