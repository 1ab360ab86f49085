// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

/// Input is read in time linear in its length, whatever its content: four times the bytes take four times as long.
/// Quadratic time would be sixteen times as long.
@Suite("The time that parsers take", .serialized)
struct LinearTimeTests {
    private static let small = 8_000

    /// Processor time of this thread, in nanoseconds.
    private static func time(_ body: () -> Void) -> Int {
        // The smaller of two: a disturbance only adds time.
        return (0..<2).map { _ in
            let before = threadTime()
            body()
            return threadTime() - before
        }.min() ?? 0
    }

    private static func expectLinear(_ what: String, _ read: ([UInt8]) -> Void, _ make: (Int) -> [UInt8]) {
        let (short, long) = (make(small), make(4 * small))
        var told = ""
        // A busy machine may look slow once, but hardly three times.
        for _ in 0..<3 {
            let (few, many) = (time { read(short) }, time { read(long) })
            // A millisecond is allowed for constant costs and the clock.
            if many < 8 * few + 1_000_000 { return }
            told = "\(what): \(short.count) bytes took \(few) ns, \(long.count) took \(many) ns"
        }
        Issue.record("\(told)")
    }

    private static func repeated(_ text: String, from start: String = "", to end: String = "")
        -> @Sendable (Int) -> [UInt8]
    {
        { count in Array((start + String(repeating: text, count: max(1, count / text.utf8.count)) + end).utf8) }
    }

    private static let texts: [(String, @Sendable (Int) -> [UInt8])] = [
        ("nesting", repeated("[")), ("nesting of objects", repeated(#"{"a":"#)),
        ("nesting and many", repeated("[[[[[[[[1]]]]]]]],", from: "[", to: "1]")),
        ("empty arrays", repeated("[],", from: #"{"challenges":{"PinCheck":["#, to: "1]}}")),
        ("empty objects", repeated("{},", from: "[", to: "1]")), ("numbers", repeated("1,", from: "[", to: "1]")),
        ("digits", repeated("1")), ("a fraction", repeated("1", from: "0.")),
        ("floats", repeated("1.5e9,", from: "[", to: "1]")),
        ("a long string", repeated("a", from: "\"", to: "\"")), ("escapes", repeated(#"\n"#, from: "\"", to: "\"")),
        ("escaped letters", repeated(#"\u00e9"#, from: "\"", to: "\"")),
        ("surrogates", repeated(#"\ud83d\ude00"#, from: "\"", to: "\"")),
        ("combining marks", repeated("\u{300}\u{316}", from: "\"a", to: "\"")),
        ("short runs of marks", repeated("a" + String(repeating: "\u{300}\u{316}", count: 15), from: "\"", to: "\"")),
        ("equal names", repeated(#""a":1,"#, from: "{", to: #""b":1}"#)),
        ("strings", repeated(#""\n","#, from: "[", to: "1]")),
        ("blanks", repeated(" ", to: "1")), ("an open string", repeated("a", from: "\"")), ("zeros", repeated("\u{0}")),
        (
            "names",
            { count in
                Array(("{" + (0..<count / 12).map { "\"\(100_000 + $0)\":1" }.joined(separator: ",") + "}").utf8)
            }
        ),
        (
            "names of marks",
            { count in
                let marks = String(repeating: "\u{300}\u{316}", count: 15)
                return Array(
                    ("{" + (0..<count / 70).map { "\"\(1000 + $0)\(marks)\":1" }.joined(separator: ",") + "}").utf8)
            }
        ),
    ]

    @Test("JSON of the allowed size, however it is made, takes no longer than its length accounts for")
    func json() {
        for (what, make) in Self.texts {
            Self.expectLinear(
                what,
                { bytes in
                    let value = JSONValue(parsing: bytes, within: JSONLimits(size: 1 << 20, elements: 1 << 20))
                    // Comparison and lookup follow in real use.
                    _ = value == "INVALID_CLIENT_ID"
                    _ = value?["challenges"]
                }, make)
        }
    }

    @Test("pages, challenges, cookies, forms and templates take no longer than their length accounts for")
    func others() {
        let marks = String(repeating: "\u{300}\u{316}", count: 8)
        let pieces = [
            "<", "</", "<!--", "<!---", "-->", "--!>", "<a ", "<a b=", "<a b='", "<a b=\"", "<script>", "</script",
            "<form>",
            "<input name=a>", "<form><input>", "&", "&#", "&#768;", "&amp;", "a=", "a='", ">", "a", "a,", "a a", "a=b,",
            "a=\"",
            "\"", "\\", "\\\"", "\\a", ",", ", ", ";", "; ", ";a=b", "=", "%", "%20", "%CC%80", "+", "{", "}", "{a}",
            "{{", "{a",
            " ", "\t", "Basic ", "Basic realm=\"a\", ", marks, "\\\u{300}", "\u{300} ", "Domain=a;", "Expires=1 ",
            "1:1:1 ",
        ]
        let url = WebURL(origin: Origin(scheme: .https, host: "a.example"), path: "/")
        let parsers: [(String, [String], (String, [UInt8]) -> Void)] = [
            (
                "a page", ["", "<form>", "<form action=\""],
                { _, bytes in _ = HTMLPage(parsing: bytes).forms.contains { $0.hasInput(named: "x") } }
            ),
            (
                "a challenge", ["", "Basic realm=\"", "Basic realm='", "Basic realm=a ", "Digest realm=\"a\" "],
                { text, _ in
                    _ = ChallengeList([text]).challenges.contains { $0.isScheme("Basic") && $0["realm"] == "x" }
                }
            ),
            (
                "a cookie", ["", "a=b; "],
                { text, _ in
                    var jar = CookieJar()
                    jar.store(text, from: url, now: 0)
                    _ = jar.contains(name: "x")
                }
            ),
            ("a form", [""], { text, _ in _ = FormEncoding.value(of: "x", in: Substring(text)) == "y" }),
            ("a template", [""], { text, _ in _ = try? TextTemplate(text) }),
            ("a location", [""], { text, _ in _ = Location(WebURL(origin: url.origin, path: "/\(text)")) }),
        ]
        for (name, starts, parse) in parsers {
            for start in starts {
                for piece in pieces {
                    Self.expectLinear(
                        "\(name) of \(start.debugDescription) and \(piece.debugDescription)",
                        { bytes in parse(TextRuns.broken(String(decoding: bytes, as: UTF8.self)), bytes) },
                        Self.repeated(piece, from: start))
                }
            }
        }
    }
}
