// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import SettingsReading

extension Settings {
    /// Reads and checks the file at `path`. Every problem of it at once, in the order of the file; the settings where
    /// none of these is an error.
    ///
    /// `environment` is what `${NAME}` in a value stands for, `handlers` what the program brings along for `handler`; `kinds` are those of
    /// challenges.
    package static func load(
        path: String, environment: [String: String], handlers: Set<String> = [],
        kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) -> (settings: Settings?, problems: [Problem]) {
        do {
            return parse(try readFile(path), file: path, environment: environment, handlers: handlers, kinds: kinds)
        } catch {
            return (nil, [Problem(file: path, mark: nil, keyPath: "", message: error.reason, severity: .error)])
        }
    }

    /// Checks `bytes` as `load` does; `file` is what problems call them.
    package static func parse(
        _ bytes: [UInt8], file: String, environment: [String: String], handlers: Set<String> = [],
        kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) -> (settings: Settings?, problems: [Problem]) {
        let reading = Reading(file: file, environment: environment, handlers: handlers)
        let settings = parse(bytes, reading, kinds: kinds)
        return (reading.hasErrors ? nil : settings, reading.sortedProblems)
    }

    /// Checks `bytes`; what is found out of them is in `reading`.
    static func parse(
        _ bytes: [UInt8], _ reading: Reading, kinds: [any ChallengeKind.Type] = ChallengeKinds.all
    ) -> Settings? {
        do {
            let (root, duplicates) = try YAMLComposer.compose(bytes)
            for duplicate in duplicates {
                reading.report(
                    "stands here already, in line \(duplicate.first.line)", at: duplicate.mark,
                    keyPath: duplicate.keyPath)
            }
            return Value(root: root, reading: reading).fields().flatMap { read($0, kinds) }
        } catch {
            reading.report(error.message, at: error.mark, keyPath: "")
            return nil
        }
    }

    private static func read(_ fields: Fields, _ kinds: [any ChallengeKind.Type]) -> Settings {
        let upstreamsValue = fields.required("upstreams")
        let reading = fields.value.reading
        reading.upstreamNames = upstreamsValue?.isMapping == true ? upstreamsValue?.members()?.map(\.name) ?? [] : []
        let upstreams = upstreamsValue.map(UpstreamSettings.read) ?? []
        let listeners = fields.required("listeners").map(ListenerSettings.read) ?? []
        let admin = fields["admin"].map(AdminSettings.read) ?? []
        let challenges =
            fields["challenges"].map {
                ChallengeSettings.read($0, upstreams: upstreams.map(\.value.protected), kinds: kinds)
            } ?? []
        let limits = fields["limits"].map(LimitSettings.read) ?? LimitSettings()
        let settings = Settings(
            listeners: listeners.map(\.value), admin: AdminSettings(addresses: admin.map(\.value)),
            upstreams: upstreams.map(\.value),
            credentials: fields["credentials"].map(CredentialSettings.read) ?? CredentialSettings(),
            challenges: challenges.map(\.value), limits: limits,
            audit: fields["audit"]?.choice(AuditDestination.self) ?? .journal,
            workers: fields["workers"].map(WorkerCount.read) ?? .automatic,
            log: fields["log"].map(LogSettings.read) ?? LogSettings(),
            accessLog: fields["access-log"].map(AccessLogSettings.read) ?? AccessLogSettings(),
            sessions: fields["sessions"].flatMap(SharedSessionSettings.read))
        fields.finish()
        SettingsChecks(
            reading: reading, listeners: listeners, admin: admin, upstreams: upstreams, challenges: challenges,
            credentials: settings.credentials, sessions: settings.sessions, limits: limits
        ).run()
        return settings
    }
}
