// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings

/// The beginning of a simulation: its servers, and the configuration of the daemon.
struct Setting {
    let isUnix: Bool
    /// The number of nodes that share sessions.
    let nodes: Int
    let workers: Int
    let callers: Int
    /// True if a path is routed elsewhere, so that it matters how a path is read.
    let hasRoutes: Bool
    let listeners: Listeners
    let provesAt: Bool
    /// The time limit of a login in ms.
    let loginLimit: Int64
    private let responseLimit: Int
    /// True if sessions are established before the first request: then no request goes without one.
    let isAtStart: Bool
    /// The path that is routed elsewhere.
    private let privatePath: String

    /// Creates a setting of `servers` servers; `file` is the path of a Unix socket. `scene` may ask for several nodes.
    init(_ chance: inout Chance, _ weather: Weather, servers: Int, file: String, scene: Scene?) {
        isUnix = chance.oneIn(3) && scene?.hasNodes != true
        workers = chance.pick(1...3)
        listeners = Listeners(&chance, isUnix: isUnix, file: file)
        // The judge of crowds knows the slots of one process only.
        let allowsNodes = weather.allowsNodes && !isUnix && !listeners.isCrowded
        nodes = allowsNodes && scene?.hasNodes ?? !chance.oneIn(3) ? 2 : 1
        callers = listeners.isCrowded ? chance.pick(2...4) : chance.pick(2...12)
        hasRoutes = isUnix || servers > 1
        provesAt = chance.oneIn(2)
        isAtStart = chance.oneIn(4)
        loginLimit = Int64(chance.pick([6, 25, 60])) * 1_000
        responseLimit = chance.pick([5, 60])
        privatePath = chance.pick(["/private", "/private/"])
    }

    /// Returns the configuration as YAML.
    func configuration(of servers: [SimulatedServer]) -> String {
        let first = servers[0].name
        // Over TCP the kernel names none of these callers.
        var routes = [
            "      - { host: \(first).localhost, path: /staff/, users: [\"\(Listeners.admitted)\"], upstream: \(first) }"
        ]
        if isUnix {
            routes.append(
                "      - { host: \(first).localhost, path: \(privatePath), users: [\"65534\"], upstream: \(first) }")
        } else if servers.count > 1 {
            routes.append("      - { host: \(first).localhost, path: \(privatePath), upstream: \(servers[1].name) }")
        }
        let hosts = servers.map { "      - { host: \($0.name).localhost, upstream: \($0.name) }" }
        var lines = listeners.configuration(routes: routes + hosts, tokenRoutes: hosts, upstream: first)
        lines.append("upstreams:")
        for server in servers {
            let terms = server.habits.terms + server.protection.upstreamConfiguration
            let plaintext = server.protection.allowsPlaintext ? ", plaintext: allow" : ""
            lines.append(
                "  \(server.name): { url: \"\(server.origins[0])\(server.protection.base)\", "
                    + "replay: { memory: 4KiB, disk: 0B }\(plaintext)\(terms), "
                    + "timeouts: { response: \(responseLimit)s, login: \(loginLimit / 1_000)s } }")
        }
        lines.append("challenges:")
        for server in servers {
            let account = server.protection.account
            lines.append("  - name: \(server.protection.challengeName)")
            lines.append("    \(server.habits.place(of: server))")
            if server.protection.usesCredential {
                lines.append("    credential: \(server.protection.credentialChoice)")
            }
            if provesAt { lines.append("    prove-at: /base/whoami") }
            if account.retryRejected != nil, !(server.protection is KeyProtection), server.protection.usesCredential {
                lines.append("    retry-rejected: 1m")
            }
            let hasLogin = server.protection.configuration.contains { $0.hasPrefix("login:") }
            if isAtStart, !hasLogin, !server.protection.isFoundByCallers { lines.append("    login: at-start") }
            for line in server.protection.configuration { lines.append("    \(line)") }
            lines += server.protection.furtherChallenges(server.habits.place(of: server))
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Returns the settings of that configuration, or its problems.
    func settings(of servers: [SimulatedServer]) throws -> Settings {
        let text = configuration(of: servers)
        let (settings, problems) = Settings.parse(Array(text.utf8), file: "simulation.yaml", environment: [:])
        guard let settings else {
            throw SimulationError(problems.map { "\($0)" }.joined(separator: "\n") + "\n" + text)
        }
        return settings
    }
}

/// An error of the simulation itself.
struct SimulationError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Filter for runs of one kind: the kind of their servers, their events, several nodes.
struct Scene {
    /// Returns each kind of server with each choice of at most `most` kinds of events, and the kinds that nodes share
    /// with two nodes.
    static func all(events most: Int) -> [String] {
        let events = Weather.events.map(\.name)
        let choices = (1..<1 << events.count).filter { $0.nonzeroBitCount <= most }.map { choice in
            events.indices.filter { choice & 1 << $0 > 0 }.map { events[$0] }.joined(separator: ", ")
        }
        let single = ServerMaker.Kind.allCases.flatMap { kind in choices.map { "\(kind.rawValue), \($0)" } }
        let nodes = Set(ServerMaker.shared.map(\.rawValue)).sorted().flatMap { kind in
            choices.map { "nodes, \(kind), \($0)" }
        }
        return single + nodes.filter { Scene($0)?.weather?.allowsNodes == true }
    }

    /// The kind of all servers; `nil` for any.
    private(set) var kind: ServerMaker.Kind?
    /// The events, and no others; `nil` for any.
    private(set) var weather: Weather?
    /// True if two nodes share their sessions.
    private(set) var hasNodes = false

    /// Creates the scene of `words`, separated by commas: a kind of server, names of events, `nodes`. Returns `nil` if one
    /// of them is unknown.
    init?(_ words: String) {
        for word in words.split(separator: ",") {
            let word = word.drop { $0 == " " }
            if word == "nodes" {
                hasNodes = true
            } else if let kind = ServerMaker.Kind(rawValue: String(word)) {
                self.kind = kind
            } else if let event = Weather.events.first(where: { $0.name == word }) {
                if weather == nil {
                    weather = Weather()
                    weather?.hasStrangers = false
                }
                weather?[keyPath: event.path] = true
            } else {
                return nil
            }
        }
    }
}
