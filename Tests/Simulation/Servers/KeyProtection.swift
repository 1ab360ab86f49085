// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets

/// A fixed key (`inject`), which no challenge asks for: in a field, in the query or in the path; the judge of rule 9 for credentials by
/// caller.
final class KeyProtection: Protection {
    private enum Place { case field, query, path }

    /// The field of a request, as it is read here, that contains the key of a query or a path.
    private static let key = ":key"
    private static let parameter = "api-key"

    let account: Account
    /// The path of the upstream's `url`.
    let base: String
    private let place: Place
    /// True if the key is in a field, which replaces a caller's own.
    var isInField: Bool { place == .field }
    /// True if one caller has a key of its own.
    private let isByCaller: Bool

    init(_ account: Account) {
        self.account = account
        let simulation = account.simulation
        place = simulation.chance.pick([.field, .query, .path, .path])
        base = place == .path && simulation.chance.oneIn(2) ? "/" : "/base/"
        // Over TCP no caller of the common listener is named, and so none would have a key.
        isByCaller = simulation.chance.oneIn(2) && simulation.setting.isUnix
    }

    // MARK: Configuration

    var configuration: [String] {
        switch place {
        case .field: ["inject: { X-Api-Key: \"{key}\" }"]
        case .query: ["inject: { query: { \(Self.parameter): \"{key}\" } }"]
        case .path: ["inject: { path: \"/bot{key}\" }"]
        }
    }

    func fields(of value: String) -> [String: String] { ["key": value] }

    private var visitorName: String { "\(account.name)-\(CallerToken.visitor.name)" }
    private var visitorKey: String { "\(Simulation.secretMark)\(visitorName)" }

    var credentialChoice: String {
        isByCaller
            ? "{ by-caller: { \(CallerToken.visitor.name): \(visitorName), \"*\": \(account.name) } }" : account.name
    }

    func otherCredential(named name: String) -> Credential? {
        name == visitorName ? Credential(name: name, fields: ["key": Secret(visitorKey)]) : nil
    }

    // MARK: Requests

    var hasOneSession: Bool { credentialChoice == account.name }

    func alter(_ order: inout Order) {
        guard place == .query, account.simulation.chance.oneIn(2) else { return }
        order.target += order.target.contains("?") ? "&" : "?"
        order.target += account.simulation.chance.pick([
            "\(Self.parameter)=forged", "\(Self.parameter)=forged&q=1", "q=1&api%2Dkey=forged&r=2", "q=1",
        ])
    }

    func withoutOwn(_ target: String) -> String {
        place == .query ? Self.split(target).rest : target
    }

    /// Returns a target without the parameters of the key's name, and their values.
    private static func split(_ target: String) -> (rest: String, keys: [String]) {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2 else { return (target, []) }
        let parameters = parts[1].split(separator: "&", omittingEmptySubsequences: false).map(String.init)
        let names = ["\(parameter)=", "api%2Dkey=", "api%2dkey="]
        let own = parameters.filter { one in names.contains { one.hasPrefix($0) } }
        let others = parameters.filter { !own.contains($0) }
        let keys = own.map { $0.components(after: "=") ?? "" }
        return (others.isEmpty ? parts[0] : parts[0] + "?" + others.joined(separator: "&"), keys)
    }

    func received(_ request: ServerRequest) -> ServerRequest {
        var request = request
        switch place {
        case .field: return request
        case .query:
            let (rest, keys) = Self.split(request.target)
            request.target = rest
            for key in keys { request.fields.append((Self.key, key)) }
        case .path:
            let start = base + "bot"
            guard request.target.hasPrefix(start) else {
                // The key is not needed there.
                if base == "/", !request.isSide { request.target = "/base" + request.target }
                return request
            }
            let key = request.target.dropFirst(start.utf8.count).prefix { $0 != "/" }
            let rest = String(request.target.dropFirst(start.utf8.count + key.utf8.count))
            let segments = rest.prefix { $0 != "?" }.split(separator: "/")
            if segments.contains(where: { [".", "..", "%2e%2e", ".%2e"].contains($0.lowercased()) }) {
                account.simulation.violated("rule 9: dot segments lead out of the path with the key: \(rest)")
            }
            request.target = "/base" + rest
            request.fields.append((Self.key, String(key)))
        }
        return request
    }

    private func keys(of request: ServerRequest) -> [String] {
        let names = place == .field ? ["x-api-key", "x_api_key"] : [Self.key]
        return request.fields.filter { names.contains($0.name.lowercased()) }.map(\.value)
    }

    func examine(_ request: ServerRequest) -> Examination {
        let keys = keys(of: request)
        if keys.contains("forged") || keys.count > 1 {
            account.simulation.violated("a caller's key stands beside ours: \(keys)")
        }
        let order = request.value("x-order").flatMap { Int($0) }.flatMap { account.simulation.orders[$0] }
        if isByCaller, let order, (keys == [visitorKey]) != (order.caller == CallerToken.visitor.name) {
            account.simulation.violated("rule 9: \(order.number) of \(order.caller ?? "nobody") goes with \(keys)")
        }
        return keys == [account.right] || keys == [visitorKey] ? .pass(nil) : .demand(refusal())
    }

    func refusal() -> ServerAnswer { ServerAnswer(403, body: "which key") }

    func isDemand(_ status: Int, _ body: String) -> Bool { false }

    func isRefusal(_ status: Int) -> Bool { status == 403 }

    func endSessions() {}

    // MARK: Answers

    /// A server tells its own addresses, which have the key of the request.
    func finish(_ answer: inout ServerAnswer, to request: ServerRequest, for order: Order) {
        guard place != .field else { return }
        let key = keys(of: request).first { $0 == account.right || $0 == visitorKey }
        let own = base + (place == .path ? key.map { "bot\($0)" } ?? "" : "")
        let prefix = own.hasSuffix("/") ? String(own.dropLast()) : own
        let tail = place == .query ? key.map { "?\(Self.parameter)=\($0)" } ?? "" : ""
        for index in answer.fields.indices where answer.fields[index].name == "Location" {
            answer.fields[index].value = "http://\(host):\(order.server.port)\(prefix)/made/\(order.number)\(tail)"
        }
        guard key != nil else { return }
        answer.fields.append(("X-Echo", "\(prefix)/r/\(order.number)\(tail)"))
        guard place == .path, account.simulation.chance.oneIn(3) else { return }
        let other = account.simulation.chance.pick(["//evil.test/", "/\\evil.test/"])
        answer.fields.append(("Content-Location", "\(prefix)\(other)\(order.number)"))
    }

    func fault(in answer: CallerAnswer, to order: Order) -> String? {
        let place = answer.value("content-location") ?? ""
        return place.hasPrefix("//") || place.hasPrefix("/\\") ? "Content-Location names another server: \(place)" : nil
    }

    func visits(at name: String) -> [Visit] {
        guard place == .path else { return [] }
        return ["/r/../0", "/../r/0", "/r/%2e%2e/0", "/r/./0"].map { path in
            // 502 to 504 without a key, 403 for a path that does not need it, 429 and 500 of a server in trouble.
            Visit(
                "a path that leads out of the one with the key", at: .common,
                "GET \(path) HTTP/1.1\r\nHost: \(name).localhost:8080\r\n\r\n", [400, 403, 429, 500, 502, 503, 504])
        }
    }
}
