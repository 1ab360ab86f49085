// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import SettingsReading

/// Configuration, parsed and checked. Every value can be used without further checks.
package struct Settings: Sendable, Equatable {
    /// Listeners; at least one.
    package var listeners: [ListenerSettings]
    /// Admin listener.
    package var admin: AdminSettings
    /// Upstreams in the order of the file, with unique names.
    package var upstreams: [UpstreamSettings]
    /// Sources of credentials.
    package var credentials: CredentialSettings
    /// Challenges with unique names, in the order of the file, which is that of registration.
    package var challenges: [ChallengeSettings]
    /// Limits on concurrent work.
    package var limits: LimitSettings
    /// Destination of the audit record.
    package var audit: AuditDestination
    /// Number of event loops.
    package var workers: WorkerCount
    /// Settings of the log.
    package var log: LogSettings
    /// Settings of the access log.
    package var accessLog = AccessLogSettings()
    /// Settings of shared sessions; nil: sessions are not shared.
    package var sessions: SharedSessionSettings?
    /// Digest of the file's bytes, which changes with every edit; empty if the settings were not read from a file.
    package var version = ""

    /// Returns the upstream of that name. Every upstream that the settings refer to exists.
    package func upstream(named name: String) -> UpstreamSettings? {
        upstreams.first { $0.name == name }
    }

    /// Names of the credentials whose tokens name callers.
    package var callerCredentials: Set<String> {
        Set(listeners.flatMap { $0.callers.tokens?.credentials ?? [] })
    }

    /// Fields that each credential needs for the callers and challenges that use it, by the credential's name.
    package var neededFields: [String: [String]] {
        var fields: [String: [String]] = [:]
        for name in callerCredentials { fields[name] = ["token"] }
        for challenge in challenges {
            // The user name comes first. A one-time password is computed from its seed.
            let needed = challenge.kind.neededFields.map { $0 == "totp" ? "totp-seed" : $0 }.sorted { left, right in
                (left == "username" ? 0 : 1, left) < (right == "username" ? 0 : 1, right)
            }
            for name in challenge.credentialNames {
                for field in needed where fields[name]?.contains(field) != true {
                    fields[name, default: []].append(field)
                }
            }
        }
        return fields
    }
}

extension Settings {
    /// Reads and checks the file at `path`.
    ///
    /// Returns all problems in the order of the file, and the settings if no problem is an error. `environment` has the values
    /// for `${NAME}`, `handlers` the names of the program's handlers, `kinds` the kinds of challenges.
    package static func load(
        path: String, environment: [String: String], handlers: Set<String> = [],
        kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) -> (settings: Settings?, problems: [Problem]) {
        do {
            let bytes = try readFile(path)
            var read = parse(bytes, file: path, environment: environment, handlers: handlers, kinds: kinds)
            read.settings?.version = version(of: bytes)
            return read
        } catch {
            return (nil, [error.problem(of: path)])
        }
    }

    /// Returns a digest that tells an edited file from the one before (FNV-1a, 64 bits). It protects nothing.
    private static func version(of bytes: [UInt8]) -> String {
        String(bytes.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }, radix: 16)
    }

    /// Checks `bytes` as `load` does. Problems name `file`.
    package static func parse(
        _ bytes: [UInt8], file: String, environment: [String: String], handlers: Set<String> = [],
        kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) -> (settings: Settings?, problems: [Problem]) {
        let reading = Reading(file: file, environment: environment, handlers: handlers)
        let settings = parse(bytes, reading, kinds: kinds).settings
        return (reading.hasErrors ? nil : settings, reading.sortedProblems)
    }

    /// Checks `bytes`. Problems are in `reading`, the notes of the reading in `root`.
    static func parse(
        _ bytes: [UInt8], _ reading: Reading, kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) -> (settings: Settings?, root: Value?) {
        do {
            let (root, duplicates) = try YAMLComposer.compose(bytes)
            for duplicate in duplicates {
                reading.report(
                    "is a repeated key: the first one is in line \(duplicate.first.line)", at: duplicate.mark,
                    keyPath: duplicate.keyPath)
            }
            let value = Value(root: root, reading: reading)
            return (value.fields(of: section(kinds)).map { read($0, kinds) }, value)
        } catch {
            reading.report(error.message, at: error.mark, keyPath: "")
            return (nil, nil)
        }
    }

    private enum Keys {
        static let listeners = Key(
            required: "listeners", .mappings(ListenerSettings.section),
            "Listeners, to which programs on this machine connect.")
        static let admin = Key(
            "admin", .mapping(AdminSettings.section, AdminSettings.read),
            without: "a Unix socket in the runtime directory",
            "Admin listener for health, metrics, the status page, and administrative commands.")
        static let upstreams = Key(
            required: "upstreams", ValueForm("mapping of names", section: UpstreamSettings.section) { $0 },
            "Servers that requests are forwarded to, by names of your choice.")
        static let credentials = Key(
            "credentials", .mapping(CredentialSettings.section, CredentialSettings.read), default: CredentialSettings(),
            words: "`env`, then `systemd`", "Sources of credentials.")
        static let sessions = Key(
            "sessions", .mapping(SharedSessionSettings.section, SharedSessionSettings.read),
            without: "none: each node has its own", "Sharing of sessions between nodes, through a session store.")
        static let limits = Key(
            "limits", .mapping(LimitSettings.section, LimitSettings.read), default: LimitSettings(),
            "Limits on connections, exchanges, request heads, and kept request bodies.")
        static let audit = Key<AuditDestination>(
            "audit", .choice, default: .journal,
            "Audit record of each conversation: the caller, the challenge, the credential's name, and the outcome.")
        static let workers = Key<WorkerCount>(
            "workers", .workers, default: .automatic, "Number of event loops; `auto` is one per core, at most 4.")
        static let log = Key(
            "log", .mapping(LogSettings.section, LogSettings.read), default: LogSettings(),
            "Severity and format of the log.")
        static let accessLog = Key<AccessLogSettings>(
            "access-log", .accessLog, default: AccessLogSettings(), "Access log, with one line for each request.")

        static func challenges(_ kinds: [any ChallengeKind.Type]) -> Key<Value?> {
            Key(
                "challenges", .mappings(ChallengeSettings.section(kinds)),
                "Challenges that are answered, with their locations and credentials.")
        }
    }

    /// Returns the table of the whole file, for a program with these kinds of challenges.
    package static func section(_ kinds: [any ChallengeKind.Type] = ChallengeKinds.all) -> KeySection {
        KeySection(
            "",
            [
                Keys.listeners, Keys.admin, Keys.upstreams, Keys.credentials, Keys.challenges(kinds), Keys.sessions,
                Keys.limits, Keys.audit, Keys.workers, Keys.log, Keys.accessLog,
            ])
    }

    private static func read(_ fields: Fields, _ kinds: [any ChallengeKind.Type]) -> Settings {
        let upstreamsValue = fields[Keys.upstreams]
        let reading = fields.value.reading
        reading.upstreamNames = upstreamsValue?.isMapping == true ? upstreamsValue?.members()?.map(\.name) ?? [] : []
        let upstreams = upstreamsValue.map(UpstreamSettings.read) ?? []
        let listeners = fields[Keys.listeners].map(ListenerSettings.read) ?? []
        let admin = fields[Keys.admin] ?? []
        let challenges =
            fields[Keys.challenges(kinds)].map {
                ChallengeSettings.read($0, upstreams: upstreams.map(\.value.protected), kinds: kinds)
            } ?? []
        let settings = Settings(
            listeners: listeners.map(\.value), admin: AdminSettings(addresses: admin.map(\.value)),
            upstreams: upstreams.map(\.value), credentials: fields[Keys.credentials],
            challenges: challenges.map(\.value), limits: fields[Keys.limits], audit: fields[Keys.audit],
            workers: fields[Keys.workers], log: fields[Keys.log], accessLog: fields[Keys.accessLog],
            sessions: fields[Keys.sessions])
        SettingsChecks(
            reading: reading, listeners: listeners, admin: admin, upstreams: upstreams, challenges: challenges,
            credentials: settings.credentials, sessions: settings.sessions, limits: settings.limits
        ).run()
        return settings
    }
}

extension ValueForm where Content == Value {
    /// A list of mappings with the keys of `section`.
    fileprivate static func mappings(_ section: KeySection) -> ValueForm {
        ValueForm("list of mappings", section: section) { $0 }
    }
}
