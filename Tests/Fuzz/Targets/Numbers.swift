// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import Basics
import ChallengeClient
import HTTPTypes
import HTTPWire
import Secrets
import Settings

@testable import ChallengeHandling
@testable import Proxy

/// Numbers that callers, servers and files name. The first byte tells what they are: `a` an `Accept`, `h` a request at the admin
/// listener, `r` a `Retry-After`, `m` a cookie's `Max-Age`, `x` a cookie's `Expires`, `e` a token's `expires_in`, `c` a challenge's
/// `remainingAttempts`, `d` a duration, `s` a size, `t` two moments of a session and the time. Nothing traps, and what comes out is
/// within its range.
func fuzzNumbers(_ input: Span<UInt8>) throws(Violation) {
    guard input.count > 0 else { return }
    let rest = input.extracting(1..<input.count)
    switch input[0] {
    case UInt8(ascii: "a"): try checkAccept(rest.string)
    case UInt8(ascii: "h"): try checkAdmin(rest.array)
    case UInt8(ascii: "r"): try checkRetry(rest.string)
    case UInt8(ascii: "m"): try checkCookie("a=b; Max-Age=\(rest.string)", years: 2)
    case UInt8(ascii: "x"): try checkCookie("a=b; Expires=\(rest.string)", years: 9999)
    case UInt8(ascii: "e"): try checkToken(rest.array)
    case UInt8(ascii: "c"): try checkAttempts(rest.array)
    case UInt8(ascii: "d"):
        try checkSetting("upstreams: { u: { url: \"https://u.example/\", timeouts: { login: ", rest.string)
    case UInt8(ascii: "s"):
        try checkSetting("upstreams: { u: { url: \"https://u.example/\", replay: { disk: ", rest.string)
    case UInt8(ascii: "t"): try checkMoments(rest.string)
    default: break
    }
}

private let now: Int64 = 1_700_000_000_000
private let year: Int64 = 366 * 86_400_000

/// By the grammar of RFC 9110 §12.4.2, in words of its own.
private func checkAccept(_ text: String) throws(Violation) {
    _ = MetricsFormat(accept: text)
    guard !text.utf8.contains(where: { ", \t;".utf8.contains($0) }) else { return }
    let format = MetricsFormat(accept: "text/plain;q=\(text), application/openmetrics-text;q=0.5")
    let bytes = Array(text.utf8)
    let isWeight =
        (1...5).contains(bytes.count) && (bytes[0] == 0x30 || bytes[0] == 0x31)
        && (bytes.count == 1 || bytes[1] == 0x2E)
        && bytes.dropFirst(2).allSatisfy { (0x30...0x39).contains($0) && (bytes[0] == 0x30 || $0 == 0x30) }
    let isMore = isWeight && (bytes[0] == 0x31 || bytes.dropFirst(2).lexicographicallyPrecedes("5".utf8) == false)
    // As much is not more.
    let isHalf = isWeight && bytes[0] == 0x30 && ["5", "50", "500"].contains(String(text.dropFirst(2)))
    try require(
        format == (isMore && !isHalf ? .prometheus : .openMetrics), "\(text) as a weight is taken for \(format)")
}

/// A whole head, as it comes from a caller.
private func checkAdmin(_ bytes: [UInt8]) throws(Violation) {
    var parser = RequestHeadParser()
    guard case .complete = parser.parse(bytes.span) else { return }
    let head = parser.head
    let span = bytes.span
    let whole = span.text(head.target.pathAndQuery)
    let path = span.text(head.target.path)
    let accept = head.fields.filter { $0.kind == .accept }.map { span.text($0.value) }.joined(separator: ",")
    for isUnixSocket in [true, false] {
        let request = LocalRequest(
            method: span.text(head.methodRange), path: path,
            query: String(whole.utf8.dropFirst(path.utf8.count + 1)) ?? "",
            isUnixSocket: isUnixSocket, accept: accept)
        let answer = AdminService(sources: .sample).answer(request)
        try require((200...599).contains(answer.status), "the status \(answer.status)")
        try require(!answer.body.isEmpty || answer.status == 204, "an answer without a body")
    }
}

extension AdminService.Sources {
    /// Sessions and latches at the ends of time.
    fileprivate static var sample: AdminService.Sources {
        let latches = [Int64.min, .max, 0].map { moment in
            ClosedLatch(
                Latch(reason: .rejected, closedAt: moment, opensAt: 0 &- moment), challenge: "c", key: nil)
        }
        let health = HealthReport(
            isAccepting: true, upstreams: ["u"], logins: [], latches: latches, figures: [:], now: now, version: "1")
        let report = MetricsReport(
            health: health, proxy: ProxyReading(), logins: LoginReading(), replay: nil,
            process: .now(startedAt: .min), reload: ReloadReading(startedAt: .min))
        return AdminService.Sources(
            report: { health }, ask: { $0() }, metrics: { report },
            page: { StatusPage(report: report, conversations: [], intervals: []) }, unlatch: { _, _, _ in },
            dropSessions: { _ in 0 }, run: { $1(nil) })
    }
}

private func checkRetry(_ text: String) throws(Violation) {
    var fields = HTTPFields()
    fields[.retryAfter] = text
    if let moment = Moment.retry(after: fields, now: now) {
        try require((now...now + 30 * 86_400_000).contains(moment), "a wait until \(moment)")
    }
    for now in [Int64.max, .min, 0] { _ = Moment.retry(after: fields, now: now) }
}

private func checkCookie(_ text: String, years: Int64) throws(Violation) {
    let url = WebURL(origin: Origin(scheme: .https, host: "a.example"), path: "/")
    for now in [now, 0, .max, .min] {
        var jar = CookieJar()
        jar.store(text, from: url, now: now)
        guard let end = jar.expiresAt else { continue }
        // Years of a cookie's date have four digits.
        try require(
            end > now && (end.saturatingSubtract(now) <= years * year || end <= 8100 * year), "it ends at \(end)")
        _ = HeldSession.sample(establishedAt: now, expiresAt: end)
    }
}

private func checkToken(_ number: [UInt8]) throws(Violation) {
    let body = Array("{\"access_token\":\"t\",\"expires_in\":".utf8) + number + Array("}".utf8)
    for sentAt in [now, 0, .max, .min] {
        guard let token = try? TokenAnswer(body).token() else { continue }
        try require((1...10 * 366 * 86_400).contains(token.seconds ?? 1), "it lives for \(token.seconds ?? 0) s")
        let end = token.expiresAt(sentAt: sentAt) ?? sentAt
        try require(end >= sentAt, "it ends before it was asked for")
    }
}

private func checkAttempts(_ number: [UInt8]) throws(Violation) {
    guard let value = JSONValue(parsing: Array("{\"remainingAttempts\":".utf8) + number + Array("}".utf8)) else {
        return
    }
    let count = value["remainingAttempts"]?.integerValue
    if let text = String(validating: number, as: UTF8.self), let whole = Int64(text), !text.hasPrefix("+") {
        try require(count == whole, "\(text) attempts are \(count ?? -1)")
    }
}

private func checkSetting(_ start: String, _ text: String) throws(Violation) {
    let listener = "listeners: [{ address: \"127.0.0.1:1\", upstream: u }]\n"
    let (settings, _) = Settings.parse(Array("\(listener)\(start)\(text) } } }\n".utf8), file: "f", environment: [:])
    guard let upstream = settings?.upstreams.first else { return }
    let login = upstream.timeouts.login
    try require(login > .zero && login <= .seconds(365 * 86_400), "a login of \(login)")
    try require((0...1_099_511_627_776).contains(upstream.replay.disk), "\(upstream.replay.disk) bytes")
}

private func checkMoments(_ text: String) throws(Violation) {
    let numbers = text.split(separator: " ").compactMap { Int64($0) }
    guard numbers.count >= 3 else { return }
    let held = HeldSession.sample(establishedAt: numbers[0], expiresAt: numbers[1])
    if let renewal = held?.renewAt { try require(renewal <= numbers[1], "it is renewed after its end") }
    for (left, right) in [(numbers[0], numbers[1]), (numbers[1], numbers[2]), (numbers[2], numbers[0])] {
        let difference = left.saturatingSubtract(right)
        try require((difference < 0) == (left < right) && (difference == 0) == (left == right), "\(left) - \(right)")
        try require(left.saturatingAdd(0) == left && left.saturatingMultiply(1) == left, "\(left)")
        let (sum, overflow) = left.addingReportingOverflow(right)
        try require(left.saturatingAdd(right) == (overflow ? (right < 0 ? .min : .max) : sum), "\(left) + \(right)")
    }
    _ = SessionLimits().pause(
        after: LoginFailure(.timedOut, challenge: "c", detail: "", retryAt: numbers[0]), failures: .max,
        now: numbers[2],
        chance: 0.5)
}

extension HeldSession {
    /// Returns a session that a table has taken over, unless it has ended.
    fileprivate static func sample(establishedAt: Int64, expiresAt: Int64) -> HeldSession? {
        let key = SessionKey(origin: Origin(scheme: .https, host: "a.example"), challenge: "c", credential: "d")
        var table = SessionTable<Int>()
        _ = table.adopt(key, Session(expiresAt: expiresAt), establishedAt: establishedAt, now: .min, chance: 1)
        return table.held(key)
    }
}
