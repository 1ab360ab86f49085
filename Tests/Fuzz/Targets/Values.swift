// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import HTTPTypes
import Secrets
import Synchronization

@testable import ChallengeHandling

/// Values that come from servers, helpers and configurations. The first byte tells which: `j` JSON, `u` an address and a
/// reference in two lines, `f` a form, `d` a date, `b` base 64, `t` a template, `h` the answer of a login helper, `i` a body
/// that a value is put into, `q` a target and an address that come back.
func fuzzValues(_ input: Span<UInt8>) throws(Violation) {
    guard input.count > 0 else { return }
    let rest = input.extracting(1..<input.count)
    switch input[0] {
    case UInt8(ascii: "j"): try checkJSON(rest.array)
    case UInt8(ascii: "u"): try checkAddress(rest.string)
    case UInt8(ascii: "f"): try checkForm(rest.array)
    case UInt8(ascii: "d"): try checkDate(rest.string)
    case UInt8(ascii: "b"): try checkBase64(rest.array)
    case UInt8(ascii: "t"): try checkTemplate(rest.string)
    case UInt8(ascii: "h"): try checkHelperAnswer(rest.array)
    case UInt8(ascii: "i"): try checkInjectedBody(rest.array)
    case UInt8(ascii: "q"): try checkInjectedTarget(rest.array)
    default: break
    }
}

private func checkJSON(_ bytes: [UInt8]) throws(Violation) {
    let isShort = bytes.count <= JSONLimits.outside.size
    guard let value = JSONValue(parsing: bytes) else { return }
    try require(isShort && depth(of: value) <= JSONLimits.outside.depth, "a value beyond the limits")
    try require(bytes.contains { $0 > 0x20 }, "a value of nothing")
    let written = value.serialized()
    try require(JSONValue(parsing: written) == value, "\(String(decoding: written, as: UTF8.self)) is another value")
    try require(written.allSatisfy { $0 >= 32 }, "a control in the JSON")
    _ = value.integerValue
    guard let template = try? AnswerTemplate(value) else { return }
    let fields = Dictionary(uniqueKeysWithValues: template.fieldNames.map { ($0, Secret(Array("\"\n".utf8))) })
    let credential = Credential(name: "c", fields: fields)
    guard let answer = outcome(of: { try? await template.render(credential) }) ?? nil else { return }
    try require(JSONValue(parsing: answer.text.revealBytes()) != nil, "an answer that is no JSON")
}

private func checkHelperAnswer(_ bytes: [UInt8]) throws(Violation) {
    guard let answer = try? HelperAnswer(parsing: bytes), case .session(let session) = answer else { return }
    let (own, other) = ("a.example.com", "b.example.com")
    let now: Int64 = 1_800_000_000_000
    for cookie in session.cookies {
        guard let line = cookie.setCookie(from: own, now: now) else { continue }
        try require(line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a control in \(line)")
        // Path, and at most domain, secure and age.
        let parts = line.split(separator: ";", omittingEmptySubsequences: false)
        try require((2...5).contains(parts.count) && parts[1].hasPrefix(" Path=/"), "an attribute too many: \(line)")
        var jar = CookieJar()
        guard jar.store(line, from: WebURL(origin: Origin(scheme: .https, host: own), path: "/"), now: now) else {
            continue
        }
        try require(jar.names.isSubset(of: [cookie.name]), "another name than \(cookie.name)")
        let strange = WebURL(origin: Origin(scheme: .https, host: "\(other).test"), path: "/")
        try require(jar.header(for: strange, now: now) == nil, "\(line) goes elsewhere")
        if !line.contains("; Domain=.") {
            let sibling = WebURL(origin: Origin(scheme: .https, host: other), path: "/")
            try require(jar.header(for: sibling, now: now) == nil, "\(line) goes to a sibling")
        }
    }
    for (_, value) in session.fields {
        try require(value.revealBytes().allSatisfy { $0 >= 0x20 && $0 < 0x7F }, "a control in a field")
    }
}

private func depth(of value: JSONValue) -> Int {
    switch value {
    case .array(let values): 1 + (values.map(depth).max() ?? 0)
    case .object(let members): 1 + (members.values.map(depth).max() ?? 0)
    case .bool, .double, .integer, .null, .string: 0
    }
}

private func checkAddress(_ text: String) throws(Violation) {
    let lines = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    let base = WebURL(lines.first ?? "") ?? WebURL(origin: Origin(scheme: .https, host: "a.example"), path: "/b/c")
    let reference = lines.count > 1 ? String(lines[1]) : ""
    try check(base)
    for url in [base.appending(path: reference), base.appending(target: reference)] {
        try require(url.target.utf8.span.isRequestTarget, "\(reference) makes the target \(url.target)")
    }
    if let resolved = base.resolving(reference) {
        try check(resolved)
        // Two slashes begin a host, and so does another scheme, whatever stands between the letters.
        let slashes = String(reference.filter { !"\t\r\n".contains($0) }.map { $0 == "\\" ? "/" : $0 })
        if !slashes.contains("//"), !slashes.contains(":") {
            try require(resolved.origin == base.origin, "\(reference) leads elsewhere")
        }
    }
}

private func check(_ url: WebURL) throws(Violation) {
    try require(WebURL(url.description) == url, "\(url) is read otherwise")
    try require(url.path.hasPrefix("/"), "a path without its slash: \(url)")
    try require(url.target.utf8.allSatisfy { $0 > 32 && $0 < 127 }, "a target that splits a request line")
    try require(url.origin.host == url.origin.host.lowercased() && !url.origin.host.isEmpty, "the host of \(url)")
    try require(url.origin.port > 0, "port 0")
    let same = Origin(scheme: url.origin.scheme, host: url.origin.host.uppercased(), port: url.origin.port)
    try require(same == url.origin && same.isLoopback == url.origin.isLoopback, "\(same) is another origin")
}

private func checkForm(_ bytes: [UInt8]) throws(Violation) {
    let text = String(decoding: bytes, as: UTF8.self)
    _ = FormEncoding.value(of: "code", in: text)
    let body = FormEncoding.body([(name: "first", value: Secret([])), (name: text, value: Secret(bytes))])
    let written = String(decoding: body.revealBytes(), as: UTF8.self)
    try require(written.utf8.allSatisfy { $0 > 32 && $0 < 127 }, "a form with strange signs")
    let value = FormEncoding.value(of: text, in: written)
    let expected = text == "first" ? "" : String(validating: bytes, as: UTF8.self).map(TextRuns.broken)
    try require(value == expected, "a form's value comes back as another")
    let query = FormEncoding.query([(name: "q", value: text)])
    try require(
        FormEncoding.value(of: "q", in: query) == TextRuns.broken(text), "a query's value comes back as another")
}

private func checkDate(_ text: String) throws(Violation) {
    let now: Int64 = 1_700_000_000_000
    if let moment = Moment.httpDate(text) {
        try require((-62_200_000_000_000...253_402_300_800_000).contains(moment), "out of the calendar: \(moment)")
        let printed = Moment.text(moment)
        try require(printed.hasSuffix(" UTC"), printed)
    }
    var fields = HTTPFields()
    fields[.retryAfter] = text
    if let moment = Moment.retry(after: fields, now: now) {
        try require((now...now + 30 * 86_400_000).contains(moment), "a wait until \(moment)")
    }
    for now in [Int64.max, .min] { _ = Moment.retry(after: fields, now: now) }
    if let number = Int64(text) { _ = Moment.text(number) }
}

private func checkBase64(_ bytes: [UInt8]) throws(Violation) {
    for alphabet in [Base64.Alphabet.standard, .url] {
        let text = Base64.encode(bytes, alphabet)
        try require(Base64.decode(text) == bytes, "\(text) comes back as something else")
        try require(alphabet == .url || text.utf8.count % 4 == 0, "\(text) lacks padding")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    guard let decoded = Base64.decode(text) else { return }
    try require(decoded.count == text.utf8.count { $0 != UInt8(ascii: "=") } * 3 / 4, "\(text) has another length")
}

private func checkTemplate(_ text: String) throws(Violation) {
    let name = ServerText.name(text)
    try require(name.utf8.count <= 64 && name.utf8.allSatisfy { $0 > 32 && $0 < 127 }, "the name \(name)")
    let sentence = ServerText.sentence(text)
    try require(sentence.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 }, "the sentence \(sentence)")
    guard let template = try? TextTemplate(text) else { return }
    try require(template.source == text, "another source")
    let fields = Dictionary(uniqueKeysWithValues: template.fieldNames.map { ($0, Secret(Array("<\($0)>".utf8))) })
    let credential = Credential(name: "c", fields: fields)
    guard let rendered = outcome(of: { try? await template.render(credential) }) ?? nil else { return }
    let written = String(decoding: rendered.revealBytes(), as: UTF8.self)
    for name in template.fieldNames { try require(written.contains("<\(name)>"), "\(name) is left out") }
    if !text.contains("{"), !text.contains("}") { try require(written == text, "\(text) becomes \(written)") }
}

/// Returns the result of `body`, which does not suspend, on this thread; `nil` if it suspends all the same.
private func outcome<Value: Sendable>(of body: @escaping @Sendable () async -> Value) -> Value? {
    let value = Mutex<Value?>(nil)
    Task(executorPreference: ThisThread()) {
        let result = await body()
        value.withLock { $0 = result }
    }
    return value.withLock { $0 }
}

/// An executor that runs a task on the thread that creates it.
private final class ThisThread: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
}
