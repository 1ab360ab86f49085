// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling

/// What a gateway's conversation reads. The first byte tells which: `h` a page, `c` a cookie.
func fuzzPages(_ input: Span<UInt8>) throws(Violation) {
    guard input.count > 0 else { return }
    let rest = input.extracting(1..<input.count)
    switch input[0] {
    case UInt8(ascii: "h"): try checkPage(rest.array)
    case UInt8(ascii: "c"): try checkCookie(rest.string)
    default: break
    }
}

/// A page: its forms are bounded, and none are in a comment or a script.
private func checkPage(_ bytes: [UInt8]) throws(Violation) {
    let page = HTMLPage(parsing: bytes)
    try require(page.forms.count <= HTMLPage.formLimit, "\(page.forms.count) forms")
    let inputs = page.forms.reduce(0) { $0 + $1.inputs.count }
    try require(inputs <= HTMLPage.inputLimit, "\(inputs) inputs")
    try require(page == HTMLPage(parsing: bytes), "the same page is read in two ways")
    let text = String(decoding: bytes, as: UTF8.self)
    if !text.contains("--"), !text.hasPrefix(">"), !text.hasPrefix("->"), !text.hasSuffix("-") {
        try require(HTMLPage(parsing: "<!--\(text)-->".utf8).forms.isEmpty, "a form in a comment")
    }
    if !text.lowercased().contains("</") {
        try require(HTMLPage(parsing: "<script>\(text)</script>".utf8).forms.isEmpty, "a form in a script")
    }
}

/// A cookie, set twice: it is kept once, goes back as it came, and to no other host and not in the clear if it is `Secure`.
private func checkCookie(_ text: String) throws(Violation) {
    guard let url = WebURL("https://www.example.com/a/b"), let other = WebURL("https://www.example.org/a/b"),
        let clear = WebURL("http://www.example.com/a/b")
    else { return }
    let now: Int64 = 1_795_276_800_000
    var jar = CookieJar()
    guard jar.store(text, from: url, now: now) else {
        try require(jar.isEmpty, "a cookie that was refused is kept")
        return
    }
    var twice = jar
    try require(twice.store(text, from: url, now: now) && twice == jar, "set twice, it is another")
    try require(jar.names.count <= 1, "two cookies of one line")
    try require(jar.header(for: other, now: now) == nil, "a cookie for another host")
    guard let header = jar.header(for: url, now: now)?.revealText() else { return }
    try require(header.utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }, "a control in a cookie")
    // Of bytes, as the Greek question mark equals a semicolon for a `String`.
    let signs = Array(header.utf8)
    try require(!signs.contains(UInt8(ascii: ";")) && signs.contains(UInt8(ascii: "=")), "not one pair: \(header)")
    let attributes = text.utf8.split(separator: UInt8(ascii: ";")).dropFirst()
    if attributes.contains(where: { $0.elementsEqual("Secure".utf8) || $0.elementsEqual(" secure".utf8) }) {
        try require(jar.header(for: clear, now: now) == nil, "a secure cookie in the clear")
    }
}
