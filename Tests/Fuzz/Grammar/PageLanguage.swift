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
            form.ownMethod = isPost ? .post : "\(method)" == "dialog" ? .dialog : .get
        }
        if sentence.choices.flip() {
            sentence.putInSomeCase(" action")
            form.ownAction = writeValue(Self.texts)
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
                // A button of an unknown type submits.
                if !isButton { input.type = "\(type)".lowercased() }
            case 2:
                sentence.putInSomeCase("\nvalue")
                input.bytes = Array(writeValue(Self.texts).utf8)
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
        if isButton { sentence.put("</button>") }
        guard isInForm else { return }
        let isBox = input.type == "checkbox" || input.type == "radio"
        if isBox, !hasValue { input.bytes = Array("on".utf8) }
        if input.type == "submit", !isButton, !hasValue { input.bytes = Array("Submit".utf8) }
        if !isBox { input.isChecked = false }
        if input.type == "radio", input.isChecked {
            // Of the selected ones of one name, the last counts.
            let last = expected.count - 1
            for index in expected[last].inputs.indices
            where expected[last].inputs[index].type == "radio" && expected[last].inputs[index].name == input.name {
                expected[last].inputs[index].isChecked = false
            }
        }
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
        let page = HTMLPage(parsing: sentence.bytes.dropFirst(), type: "text/html; charset=utf-8")
        let found = page.forms.map { Shape(of: $0) }
        let wanted = expected.map { Shape(of: $0) }
        try require(found == wanted, "\(found), not \(wanted)")
    }

    /// What the sentences say of a form.
    private struct Shape: Equatable {
        let action: String?
        let method: HTMLPage.Form.Method
        let isEnded: Bool
        let inputs: [[String]]

        init(of form: HTMLPage.Form) {
            action = form.ownAction.map { Shape.trimmed($0) }
            method = form.ownMethod
            isEnded = form.isEnded
            // Elements with raw text have no names.
            inputs = form.inputs.filter { $0.type != "textarea" }.map { input in
                let value = input.type == "email" ? Shape.trimmed(input.value) : input.value
                return [input.name, input.type, value, "\(input.isChecked)", "\(input.isDisabled)"]
            }
        }

        private static func trimmed(_ text: String) -> String {
            let space = [0x20, 0x09, 0x0A, 0x0C, 0x0D] as [UInt8]
            let bytes = Array(text.utf8).drop { space.contains($0) }.reversed().drop { space.contains($0) }
            return String(decoding: Array(bytes.reversed()), as: UTF8.self)
        }
    }

    private static let noise: [StaticString] = [
        "text", "<p>", "</p>", "<svg><input name=s></svg>", "<template><form><input name=t></form></template>",
        "<!-- <form><input name=c> -->", "<!doctype html>", "<?xml <form> ?>", "<!--><p>",
        "<br/>", "&amp;<b>x</b>", "< form>", "<1form>",
        "<div title='<form>'></div>", "<a href=\"?a=b&c\"></a>", "</>", "</ form>", "<p x=<>", "<!---->", "<!-- a --!>",
        "\u{E9}",
        "<formx></formx>", "<inputs></inputs>", "-->", "\0", "<img src='a' alt=\">\">",
        "<!-- - -- > <form> -->", "<![CDATA[<form>]]>",
    ]
    private static let rawElements: [StaticString] = [
        "script", "style", "textarea", "title", "xmp", "iframe", "noembed",
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
        ("", ""), ("a b", "a b"), ("&bogus;&", "&bogus;&"), ("x&#0;y", "x\u{FFFD}y"), ("\u{E9}", "\u{E9}"),
        ("?a=b&c=d", "?a=b&c=d"), ("&#128512;", "\u{1F600}"), ("&#xD800;", "\u{FFFD}"),
        ("https://a.example/x;y", "https://a.example/x;y"), ("&amp;amp;", "&amp;"), (" a ", " a "),
    ]
    private static let tagEnds: [StaticString] = [">", ">", " >", "/>", " / >", "\n>"]
    private static let ends: [StaticString] = [
        "<", "<input name=z", "<form action='", "<!-- ", "</", "<input value=\"a", "<!", "<script><form>",
    ]
}
