// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Name of an element in lower case, with what the reader of a page must know of the element.
struct TagName: Equatable {
    /// An element that the reader treats on its own.
    enum Element: UInt8, CaseIterable {
        case a, address, base, body, button, caption, datalist, dd, div, dt, fieldset, form, frameset,
            h1, h2, h3, h4, h5, h6,
            head, html, input, legend, li, math, meta, optgroup, option, other, p, plaintext, script, select, svg,
            table,
            tbody, td, template, textarea, tfoot, th, thead, title, tr
    }

    /// Classes of elements (WHATWG HTML §13.1.2 and §13.2.4.2).
    struct Traits: OptionSet {
        let rawValue: UInt8

        /// Without contents or an end tag.
        static let void = Traits(rawValue: 1)
        /// Without markup: all up to the end tag is text.
        static let raw = Traits(rawValue: 2)
        /// Ends an open paragraph.
        static let block = Traits(rawValue: 4)
        /// An end tag of another name does not reach beyond it.
        static let special = Traits(rawValue: 8)
        /// A boundary of all scopes.
        static let scope = Traits(rawValue: 16)
        /// May be closed while elements in it stay open.
        static let formatting = Traits(rawValue: 32)
        /// Ends SVG and MathML.
        static let breakout = Traits(rawValue: 64)
        /// Ends with the parent.
        static let implied = Traits(rawValue: 128)
    }

    /// Length of the longest name of an element without markup.
    static let longestRaw = 9

    static let noscript = TagName("noscript"), plaintext = TagName("plaintext"), script = TagName("script")

    private let code: UInt64
    private(set) var element: Element
    private(set) var traits: Traits

    init(_ bytes: some Collection<UInt8>) {
        code = Self.code(bytes)
        (element, traits) = Table.shared[code]
    }

    private init(_ name: String) { self.init(name.utf8) }

    var hasNoMarkup: Bool { traits.contains(.raw) }

    /// The name in SVG or MathML, where an element is not the one of HTML.
    var foreign: TagName {
        var name = self
        name.element = .other
        name.traits = isIntegrationPoint ? [.special, .scope] : []
        return name
    }

    /// True for an element of SVG or MathML that contains HTML.
    var isIntegrationPoint: Bool { Self.integrationPoints.contains(self) }

    private static let integrationPoints = ["foreignobject", "desc", "title", "mi", "mo", "mn", "ms", "mtext"].map {
        TagName($0)
    }

    /// True for an element that stands in the head of a page.
    var isInHead: Bool { Self.headNames.contains(self) }

    private static let headNames = [
        "html", "head", "title", "meta", "link", "style", "script", "noscript", "object", "base",
    ].map { TagName($0) }

    static func == (left: TagName, right: TagName) -> Bool { left.code == right.code }

    /// Returns a short name itself, and a digest of a longer one (FNV-1a).
    private static func code(_ bytes: some Collection<UInt8>) -> UInt64 {
        var code: UInt64 = 0
        if bytes.count <= 8 {
            for byte in bytes { code = code << 8 | UInt64(byte.lowercased) }
            return code
        }
        code = 0xCBF2_9CE4_8422_2325
        for byte in bytes { code = (code ^ UInt64(byte.lowercased)) &* 0x100_0000_01B3 }
        return code
    }

    /// Elements by the code of their name: open addressing, since a page may have hundreds of thousands of tags.
    private struct Table {
        static let shared = Table()

        private var codes = [UInt64](repeating: 0, count: 512)
        private var values = [(Element, Traits)](repeating: (.other, []), count: 512)

        init() {
            for (names, traits) in Self.classes {
                for name in names.split(separator: " ") { add(String(name), traits) }
            }
        }

        subscript(code: UInt64) -> (Element, Traits) {
            var slot = Self.slot(code)
            while codes[slot] != 0 {
                if codes[slot] == code { return values[slot] }
                slot = (slot + 1) & 511
            }
            return (.other, [])
        }

        private mutating func add(_ name: String, _ traits: Traits) {
            let code = TagName.code(name.utf8)
            var slot = Self.slot(code)
            while codes[slot] != 0, codes[slot] != code { slot = (slot + 1) & 511 }
            codes[slot] = code
            values[slot] = (Self.elements[name] ?? .other, values[slot].1.union(traits))
        }

        private static func slot(_ code: UInt64) -> Int { Int((code &* 0x9E37_79B9_7F4A_7C15) >> 55) }

        private static let elements: [String: Element] = [
            "a": .a, "address": .address, "base": .base, "body": .body, "button": .button, "caption": .caption,
            "datalist": .datalist, "dd": .dd,
            "div": .div, "dt": .dt, "fieldset": .fieldset, "form": .form,
            "frameset": .frameset,
            "h1": .h1, "h2": .h2, "h3": .h3, "h4": .h4, "h5": .h5, "h6": .h6, "head": .head, "html": .html,
            "input": .input, "legend": .legend, "li": .li, "math": .math, "meta": .meta, "optgroup": .optgroup,
            "option": .option, "p": .p, "plaintext": .plaintext, "script": .script, "select": .select, "svg": .svg,
            "table": .table, "tbody": .tbody, "td": .td, "template": .template, "textarea": .textarea, "tfoot": .tfoot,
            "th": .th, "thead": .thead, "title": .title, "tr": .tr,
        ]

        private static let classes: [(String, Traits)] = [
            (
                "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr",
                .void
            ),
            ("script style textarea title xmp iframe noembed noframes plaintext", .raw),
            (
                "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form "
                    + "header h1 h2 h3 h4 h5 h6 hgroup hr li listing main menu nav ol p plaintext pre search section summary "
                    + "table ul xmp dd dt", .block
            ),
            (
                "address applet area article aside base basefont bgsound blockquote body br button caption center col "
                    + "colgroup dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 "
                    + "h3 h4 h5 h6 head header hgroup hr html iframe img input keygen li link listing main marquee menu "
                    + "meta nav noembed noframes noscript object ol p param plaintext pre script search section select "
                    + "source style summary table tbody td template textarea tfoot th thead title tr track ul wbr xmp",
                .special
            ),
            ("applet caption html marquee object select table td template th", .scope),
            ("a b big code em font i nobr s small strike strong tt u", .formatting),
            (
                "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing "
                    + "menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var", .breakout
            ),
            ("dd dt li optgroup option p rb rp rt rtc", .implied),
            ("datalist legend math svg", []),
        ]
    }
}
