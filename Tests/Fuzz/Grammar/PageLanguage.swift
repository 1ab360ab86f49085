// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

@testable import ChallengeHandling

/// Login pages: forms with inputs among everything else that a page has (WHATWG HTML §13.1).
struct PageLanguage: Language {
    static let name = "pages"

    var sentence = Sentence()
    private var expected: [HTMLPage.Form] = []
    private var isInForm = false

    mutating func write() {
        sentence.put("h")
        expected.removeAll(keepingCapacity: true)
        isInForm = false
        for _ in 0...sentence.choices.below(8) { writePiece() }
        if sentence.choices.once(in: 8) { sentence.put(sentence.choices.pick(Self.ends)) }
    }

    private mutating func writePiece() {
        switch sentence.choices.below(8) {
        case 0: sentence.put(sentence.choices.pick(Self.noise))
        case 1:
            sentence.put("<")
            let name = sentence.choices.pick(Self.rawElements)
            sentence.putInSomeCase(name)
            sentence.put(">")
            sentence.put(sentence.choices.pick(Self.markup))
            sentence.put("</")
            sentence.putInSomeCase(name)
            sentence.put(sentence.choices.flip() ? ">" : " x>")
        case 2, 3:
            if isInForm, sentence.choices.flip() {
                sentence.put("</")
                sentence.putInSomeCase("form")
                sentence.put(">")
                isInForm = false
                expected[expected.count - 1].isEnded = true
            } else {
                writeForm()
            }
        default: writeInput()
        }
    }

    private mutating func writeForm() {
        sentence.put("<")
        sentence.putInSomeCase("form")
        var form = HTMLPage.Form(action: nil)
        if sentence.choices.flip() {
            sentence.putInSomeCase(" method")
            let (method, isPost) = sentence.choices.pick(Self.methods)
            _ = writeValue([(method, "\(method)")])
            form.isPost = isPost
        }
        if sentence.choices.flip() {
            sentence.putInSomeCase(" action")
            form.action = writeValue(Self.texts)
            // The first of two attributes counts.
            if sentence.choices.once(in: 8) { sentence.put(" action=\"/second\"") }
        }
        sentence.put(sentence.choices.pick(Self.tagEnds))
        // A form within a form is not one.
        guard !isInForm else { return }
        isInForm = true
        expected.append(form)
    }

    private mutating func writeInput() {
        let isButton = sentence.choices.once(in: 8)
        sentence.put("<")
        sentence.putInSomeCase(isButton ? "button" : "input")
        var input = HTMLPage.Input(name: "", type: isButton ? "submit" : "text", value: "")
        var hasValue = false
        let first = sentence.choices.below(5)
        for index in 0..<5 {
            guard sentence.choices.once(in: 4) == false else { continue }
            switch (index + first) % 5 {
            case 0:
                sentence.putInSomeCase(" name")
                input.name = writeValue(Self.texts)
            case 1:
                sentence.putInSomeCase("\ttype")
                let type = sentence.choices.pick(Self.types)
                _ = writeValue([(type, "\(type)")])
                input.type = "\(type)".lowercased()
            case 2:
                sentence.putInSomeCase("\nvalue")
                input.value = writeValue(Self.texts)
                hasValue = true
            case 3:
                guard sentence.choices.once(in: 3) else { continue }
                sentence.putInSomeCase(" disabled")
                input.isDisabled = true
            default:
                guard sentence.choices.once(in: 3) else { continue }
                sentence.putInSomeCase(" checked")
                input.isChecked = true
            }
        }
        sentence.put(sentence.choices.pick(Self.tagEnds))
        guard isInForm else { return }
        let isBox = input.type == "checkbox" || input.type == "radio"
        if isBox, !hasValue { input.value = "on" }
        if !isBox { input.isChecked = false }
        expected[expected.count - 1].inputs.append(input)
    }

    /// Writes a value in one of the three ways, with some of its characters as references.
    private mutating func writeValue(_ texts: [(StaticString, String)]) -> String {
        let blank = sentence.choices.once(in: 8)
        if blank { sentence.put(" ") }
        sentence.put("=")
        if sentence.choices.once(in: 8) { sentence.put("\n") }
        let (written, text) = sentence.choices.pick(texts)
        let isBare = text.utf8.allSatisfy { $0 > 0x20 && !"\"'<>=`".utf8.contains($0) } && !text.isEmpty
        switch sentence.choices.below(isBare ? 3 : 2) {
        case 0:
            sentence.put("\"")
            sentence.put(written)
            sentence.put("\"")
        case 1:
            sentence.put("'")
            sentence.put(written)
            sentence.put("'")
        default:
            sentence.put(written)
            // A slash after it would belong to the value.
            sentence.put(" ")
        }
        return text
    }

    func check() throws(Violation) {
        let page = HTMLPage(parsing: sentence.bytes.dropFirst())
        let trimmed = expected.map { form in
            var form = form
            form.action = form.action.map { text in
                let space = [0x20, 0x09, 0x0A, 0x0C, 0x0D] as [UInt8]
                let bytes = Array(text.utf8).drop { space.contains($0) }.reversed().drop { space.contains($0) }
                return String(decoding: Array(bytes.reversed()), as: UTF8.self)
            }
            return form
        }
        try require(page.forms == trimmed, "\(page.forms), not \(trimmed)")
    }

    private static let noise: [StaticString] = [
        "text", "<p>", "</p>", "<!-- <form><input name=c> -->", "<!doctype html>", "<?xml <form> ?>", "<!--><p>",
        "<br/>", "&amp;<b>x</b>", "< form>", "<1form>",
        "<div title='<form>'>", "<a href=\"?a=b&c\">", "</>", "</ form>", "<p x=<>", "<!---->", "<!-- a --!>", "\u{E9}",
        "<formx>", "<inputs>", "-->", "\0", "<img src='a' alt=\">\">",
        "<!-- - -- > <form> -->", "<![CDATA[<form>]]>",
    ]
    private static let rawElements: [StaticString] = [
        "script", "style", "textarea", "title", "noscript-x", "iframe", "template",
    ]
    private static let markup: [StaticString] = [
        "", "<b></b>", "a<b", "<!-- x -->", "</scrip>", "</ script>", "\"<p>'",
    ]
    private static let methods: [(StaticString, Bool)] = [
        ("post", true), ("POST", true), ("get", false), ("dialog", false), ("Post", true), ("", false), ("put", false),
    ]
    private static let types: [StaticString] = [
        "hidden", "PASSWORD", "text", "submit", "checkbox", "radio", "email", "Hidden",
    ]
    private static let texts: [(StaticString, String)] = [
        ("a", "a"), ("/login", "/login"), ("j_username", "j_username"), ("a&amp;b", "a&b"), ("&quot;&#39;", "\"'"),
        ("&#x26;&#38;", "&&"), ("&lt;form&gt;", "<form>"),
        ("", ""), ("a b", "a b"), ("&bogus;&", "&bogus;&"), ("x&#0;y", "x&#0;y"), ("\u{E9}", "\u{E9}"),
        ("?a=b&c=d", "?a=b&c=d"), ("&#128512;", "\u{1F600}"), ("&#xD800;", "&#xD800;"),
        ("https://a.example/x;y", "https://a.example/x;y"), ("&amp;amp;", "&amp;"), (" a ", " a "),
    ]
    private static let tagEnds: [StaticString] = [">", ">", " >", "/>", " / >", "\n>"]
    private static let ends: [StaticString] = [
        "<", "<input name=z", "<form action='", "<!-- ", "</", "<input value=\"a", "<!", "<script><form>",
    ]
}
