// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import SettingsReading
internal import SharedSessions

/// Checks that need more than one value: duplicate names, unreachable upstreams, secrets in plaintext.
struct SettingsChecks {
    let reading: Reading
    let listeners: [Located<ListenerSettings>]
    let admin: [Located<ListenAddress>]
    let upstreams: [Located<UpstreamSettings>]
    let challenges: [Located<ChallengeSettings>]
    let credentials: CredentialSettings
    let sessions: SharedSessionSettings?
    let limits: LimitSettings

    /// Runs all checks.
    func run() {
        let reach = ChallengeReach(of: challenges, at: upstreams)
        checkAddresses()
        checkUsers()
        checkCallers()
        checkUpstreamsAreUsed()
        checkAuthRequests(reach)
        checkChallengeNames()
        checkConflicts()
        checkReach(reach)
        checkPlaintext(reach)
        checkReplay()
        checkAskedFields()
        checkFiles()
    }

    private func checkAddresses() {
        let addresses = listeners.map { Located(path: "\($0.path).address", value: $0.value.address) } + admin
        var seen: [ListenAddress: String] = [:]
        for address in addresses {
            // Port 0 is a different port each time.
            if case .tcp(_, 0) = address.value { continue }
            if let first = seen[address.value] {
                reading.report("the address is already used by \(first)", atPath: address.path)
            } else {
                seen[address.value] = address.path
            }
        }
    }

    /// Warns about `users` of addresses that other machines reach: only callers on this machine have a known user. With `health`, that is
    /// the purpose.
    private func checkUsers() {
        for listener in listeners where !listener.value.address.isLocal && listener.value.health == nil {
            let message = "callers from other machines have no user on this machine, so this key refuses all of them"
            if listener.value.users != nil {
                reading.report(message, atPath: "\(listener.path).users", severity: .warning)
            }
            for (index, route) in listener.value.routes.enumerated() where route.users != nil {
                reading.report(message, atPath: "\(listener.path).routes[\(index)].users", severity: .warning)
            }
        }
    }

    /// Reports entries of `by-caller` for callers that no listener knows.
    private func checkCallers() {
        let known = Set(listeners.flatMap { $0.value.callers.tokens?.credentials ?? [] })
        for challenge in challenges {
            for case .token(let name) in challenge.value.credentialsByCaller?.named.map(\.caller) ?? []
            where !known.contains(name) {
                reading.report(
                    "no listener has a caller of this name in `callers`",
                    atPath: "\(challenge.path).credential.by-caller.\(name)")
            }
        }
    }

    private func checkUpstreamsAreUsed() {
        guard !listeners.isEmpty else { return }
        let used = Set(listeners.flatMap { [$0.value.upstream].compactMap(\.self) + $0.value.routes.map(\.upstream) })
        for upstream in upstreams where !used.contains(upstream.value.name) {
            reading.report("no listener or route leads to this upstream", atPath: upstream.path, severity: .warning)
        }
    }

    private func checkChallengeNames() {
        var seen: [String: String] = [:]
        for challenge in challenges {
            if let first = seen.updateValue(challenge.path, forKey: challenge.value.name) {
                reading.report(
                    "\"\(challenge.value.name)\" is already the name of \(first)", atPath: "\(challenge.path).name")
            }
        }
    }

    /// Reports a second challenge of one kind and realm at one location.
    private func checkConflicts() {
        struct Place: Hashable {
            let location: ChallengeLocation
            let kind: String
            let group: String
        }
        var known: [Place: [Int]] = [:]
        for (index, challenge) in challenges.enumerated() {
            let kind = challenge.value.kind
            // Paths of the locations that an earlier challenge has as well.
            var common: [Int: [String]] = [:]
            var places: Set<Place> = []
            for (location, path) in challenge.locations {
                let place = Place(location: location, kind: type(of: kind).key, group: kind.conflictGroup)
                for earlier in known[place] ?? [] { common[earlier, default: []].append(path) }
                places.insert(place)
            }
            for (earlier, paths) in common.sorted(by: { $0.key < $1.key })
            where challenges[earlier].value.kind.isInConflict(with: kind) {
                for path in paths {
                    reading.report(
                        "\"\(challenges[earlier].value.name)\" already answers this challenge here; this one would never be used",
                        atPath: path)
                }
            }
            for place in places { known[place, default: []].append(index) }
        }
    }

    private func checkReach(_ reach: ChallengeReach) {
        for challenge in challenges {
            guard case .locations(let patterns) = challenge.value.location, !upstreams.isEmpty else { continue }
            for (pattern, location) in zip(patterns, challenge.locations)
            where !reach.covers(pattern) {
                let advice =
                    pattern.withTLS.map(reach.covers) == true
                    ? "; a pattern without a scheme and a port means port 80: write https:// before it" : ""
                reading.report("covers nothing at any upstream\(advice)", atPath: location.path, severity: .warning)
            }
        }
    }

    private func checkAskedFields() {
        let used = Set(
            [sessions?.key, sessions?.store.credential].compactMap(\.self)
                + listeners.flatMap { $0.value.callers.tokens?.credentials ?? [] }
                + challenges.flatMap(\.value.credentialNames))
        for (name, fields) in credentials.asked where !fields.isEmpty && !used.contains(name) {
            reading.report(
                "nothing uses a credential of this name", atPath: "credentials.ask.\(name)", severity: .warning)
        }
    }

    /// Warns if one body may take more disk than all bodies together.
    private func checkReplay() {
        guard limits.replay > 0 else { return }
        for upstream in upstreams where upstream.value.replay.disk > limits.replay {
            guard upstream.value.replay.disk != ReplayTiers.standard.disk else { continue }
            reading.report(
                "is more than `limits.replay`, which all bodies share: longer bodies are not kept",
                atPath: "\(upstream.path).replay.disk", severity: .warning)
        }
    }
}

extension Located<ChallengeSettings> {
    /// Each location of the challenge with its key path.
    var locations: [(location: ChallengeLocation, path: String)] {
        switch value.location {
        case .locations(let patterns):
            patterns.enumerated().map { (.locations([$1]), patterns.count == 1 ? "\(path).at" : "\(path).at[\($0)]") }
        case .upstream:
            [(value.location, "\(path).upstream")]
        }
    }
}

extension LocationPattern {
    /// The pattern with `https://` before it; nil if that is not a pattern.
    var withTLS: LocationPattern? {
        try? LocationPattern("https://\(text)")
    }
}

extension SettingsChecks {
    /// Warns about the files of `tls` as they are now.
    ///
    /// The daemon may run later or as another user, so problems are errors only when it starts or reloads.
    func checkFiles() {
        for upstream in upstreams { checkFiles(of: upstream.value.connections.tls, at: "\(upstream.path).tls") }
        if let sessions { checkFiles(of: sessions.store.connections.tls, at: "sessions.tls") }
        for challenge in challenges {
            guard let (tls, key) = challenge.value.kind.loginTLS else { continue }
            checkFiles(of: tls, at: "\(challenge.path).\(key)")
        }
    }

    private func checkFiles(of tls: TLSSettings, at path: String) {
        let now = utcDate()
        for (kind, file) in [(TLSFile.Kind.ca, tls.ca), (.certificate, tls.certificate), (.key, tls.key)] {
            guard let file else { continue }
            var messages: [String]
            do {
                var file = try TLSFile(kind, at: file)
                messages = file.warnings(now: now)
                file.wipe()
            } catch {
                messages = [error.reason]
            }
            for message in messages {
                reading.report(message, atPath: "\(path).\(kind.rawValue)", severity: .warning)
            }
        }
    }
}
