// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets

@testable import ChallengeHandling

/// Reads the inputs of a gateway's login. The first byte chooses the kind: `h` a page, `c` a cookie, `m` a caller's
/// cookies, `t` a template and the response that has its values.
func fuzzPages(_ input: Span<UInt8>) throws(Violation) {
    guard input.count > 0 else { return }
    let rest = input.extracting(1..<input.count)
    switch input[0] {
    case UInt8(ascii: "h"): try checkPage(rest.array)
    case UInt8(ascii: "c"): try checkCookie(rest.string)
    case UInt8(ascii: "m"): try checkMerged(rest.string)
    case UInt8(ascii: "t"): try checkTemplate(rest.array)
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
    if let form = SelfSubmittingForm(on: bytes) {
        try require(!form.inputs.isEmpty && form.inputs.allSatisfy { !$0.name.isEmpty }, "a form that submits nothing")
        if let request = form.request() {
            try require(
                request.form.isPost && request.form.inputs.count + request.omitted.count == form.inputs.count,
                "a request that loses inputs")
        }
    }
    // Compared as bytes throughout: a character with an accent on it is another `Character`.
    let dashes = zip(bytes, bytes.dropFirst()).contains { $0 == UInt8(ascii: "-") && $1 == UInt8(ascii: "-") }
    if !dashes, !bytes.starts(with: ">".utf8), !bytes.starts(with: "->".utf8), bytes.last != UInt8(ascii: "-") {
        let page = HTMLPage(parsing: Array("<!--".utf8) + bytes + Array("-->".utf8))
        try require(page.forms.isEmpty, "a form in a comment")
    }
    if !zip(bytes, bytes.dropFirst()).contains(where: { $0 == UInt8(ascii: "<") && $1 == UInt8(ascii: "/") }) {
        let page = HTMLPage(parsing: Array("<script>".utf8) + bytes + Array("</script>".utf8))
        try require(page.forms.isEmpty, "a form in a script")
    }
}

private let url = WebURL(origin: Origin(scheme: .https, host: "www.example.com"), path: "/a/b")
private let other = WebURL(origin: Origin(scheme: .https, host: "www.example.org"), path: "/a/b")
private let clear = WebURL(origin: Origin(scheme: .http, host: "www.example.com"), path: "/a/b")

/// A cookie, set twice: it is kept once, goes back as it came, and to no other host and not in the clear if it is `Secure`.
private func checkCookie(_ text: String) throws(Violation) {
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

/// Checks a caller's cookies beside the session's cookie `sid`: only the session's cookie of that name is sent, before all
/// others, which are sent as they came unless they could enclose another one. No answer sets it at the caller's.
private func checkMerged(_ text: String) throws(Violation) {
    var jar = CookieJar()
    jar.store("sid=own", from: url, now: 0)
    guard let merged = SessionCookies(jar).merged(with: [text], for: url, now: 0) else {
        throw Violation(description: "no cookie goes out")
    }
    let after = pairs(merged)
    try require(after.first == Array("sid=own".utf8), "the session's cookie is not there")
    let callers = pairs(Array(text.utf8)).filter { name($0) != Array("sid".utf8) }
    try require(
        Array(after.dropFirst()) == callers.filter { $0.first != UInt8(ascii: "$") && isClosed($0) },
        "\(String(decoding: merged, as: UTF8.self)) goes out for \(text)")
    // Without attributes: a cookie of that name under another path is a caller's.
    let value = String(decoding: text.utf8.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
    for line in ["sid=\(value)", " sid\t= \(value)", "sid=\(value); Path=/a"] {
        // Each time anew, as one may remove it.
        try require(SessionCookies(jar).take(line, from: url, now: 0), "the caller gets \(line)")
    }
}

/// Returns true if a pair closes its quotations, with escaped quotation marks and without.
private func isClosed(_ pair: [UInt8]) -> Bool {
    let isEven = pair.count { $0 == UInt8(ascii: "\"") }.isMultiple(of: 2)
    var rest = pair[...]
    while let start = rest.firstIndex(of: UInt8(ascii: "\"")) {
        var end = start + 1
        while end < rest.endIndex, rest[end] != UInt8(ascii: "\"") { end += rest[end] == UInt8(ascii: "\\") ? 2 : 1 }
        guard end < rest.endIndex else { return false }
        rest = rest[(end + 1)...]
    }
    return isEven
}

/// A template in the first line, and a response: `Name: value` in the second line, its body in the rest. What is put in is
/// printable, and the very bytes of the response.
private func checkTemplate(_ bytes: [UInt8]) throws(Violation) {
    let lines = bytes.split(separator: 10, maxSplits: 2, omittingEmptySubsequences: false)
    let source = String(decoding: lines[0], as: UTF8.self)
    guard let template = try? TextTemplate(source) else { return }
    try require((try? TextTemplate(source)) == template, "a template is read in two ways")
    var fields = HTTPFields()
    var jar = CookieJar()
    if lines.count > 1 {
        let value = String(decoding: lines[1].filter { $0 >= 0x20 && $0 < 0x7F }, as: UTF8.self)
        fields[.eTag] = value
        jar.store(value, from: url, now: 0)
    }
    let body = lines.count > 2 ? Array(lines[2]) : []
    let response = ExaminedResponse(status: 200, fields: fields, body: body, url: url)
    let received = ReceivedValues(cookies: jar, url: url, response: response, now: 0)
    for source in template.sources {
        try require((try? TextTemplate("{\(source.text)}"))?.sources == [source], "written, \(source.text) is another")
        guard let value = received.value(source)?.revealBytes() else { continue }
        try require(!value.isEmpty && value.allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "not printable: \(source.text)")
        try require(received.value(source)?.revealBytes() == value, "the same response has two values")
        if case .page = source {
            let isThere = body.indices.contains { body[$0...].starts(with: value) }
            try require(isThere, "\(source.text) finds what is not there")
        }
    }
}

private func pairs(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.split(separator: UInt8(ascii: ";")).map { pair in Array(pair.drop { $0 == 32 || $0 == 9 }) }.filter {
        !$0.isEmpty
    }
}

private func name(_ pair: [UInt8]) -> [UInt8] {
    let name = pair.prefix { $0 != UInt8(ascii: "=") }
    return Array(name.reversed().drop { $0 == 32 || $0 == 9 }.reversed())
}
