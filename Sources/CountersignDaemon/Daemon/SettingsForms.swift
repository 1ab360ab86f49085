// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Logging
internal import Settings

extension WorkerCount {
    /// How many loops that is on this machine: `auto` is one per core that the process may use, at most 4.
    static func resolve(_ count: WorkerCount) -> Int {
        switch count {
        case .exactly(let number): return max(1, number)
        case .automatic: return min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        }
    }
}

extension Logger.Level {
    init(_ level: LogSettings.Level) {
        self = Logger.Level(rawValue: level.rawValue) ?? .info
    }
}

extension LogFormat {
    init(_ format: LogSettings.Format) {
        self = LogFormat(rawValue: format.rawValue) ?? .auto
    }
}

extension Settings {
    /// The names of the sockets that the service manager is to pass.
    var systemdNames: [String] {
        (listeners.map(\.address) + admin.addresses).compactMap { address in
            if case .systemd(let name) = address { name } else { nil }
        }
    }

    /// The keys whose values differ from `other` and are looked at when the daemon starts only.
    func keysOfStart(otherThanIn other: Settings) -> [String] {
        var keys: [String] = []
        if WorkerCount.resolve(workers) != WorkerCount.resolve(other.workers) { keys.append("workers") }
        if log.format != other.log.format { keys.append("log.format") }
        if limits.waiters != other.limits.waiters { keys.append("limits.waiters") }
        if sessions != other.sessions { keys.append("sessions") }
        return keys
    }
}

extension LoginLog {
    /// The daemon's, with an audit record where that is wanted.
    convenience init(_ audit: AuditDestination) {
        var auditor = Logger(label: "audit")
        auditor.logLevel = .info
        self.init(logger: Logger(label: "login"), auditor: auditor, isAuditing: audit == .journal)
    }
}
