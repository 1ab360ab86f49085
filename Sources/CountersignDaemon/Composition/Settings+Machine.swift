// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Settings
internal import System

extension WorkerCount {
    /// Returns the number of workers on this machine: for `auto` one per available core, at most 4.
    static func resolve(_ count: WorkerCount) -> Int {
        switch count {
        case .exactly(let number): return max(1, number)
        case .automatic: return min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        }
    }
}

extension Settings {
    /// Names of the sockets that the service manager must pass.
    var systemdNames: [String] {
        (listeners.map(\.address) + admin.addresses).compactMap { address in
            if case .systemd(let name) = address { name } else { nil }
        }
    }

    /// Names of users that this machine does not have: the daemon would not start with them.
    var unknownUsers: [String] {
        let callers = listeners.flatMap { ($0.users ?? []) + $0.routes.flatMap { $0.users ?? [] } }
        let owners = challenges.flatMap { $0.credentialsByCaller?.named ?? [] }.compactMap { entry in
            if case .user(let user) = entry.caller { user } else { nil }
        }
        var unknown: [String] = []
        for case .name(let name) in callers + owners where !unknown.contains(name) {
            do throws(SystemError) {
                if try Users.uid(named: name) == nil { unknown.append(name) }
            } catch {
                // Nothing is known of it.
                continue
            }
        }
        return unknown
    }

    /// Returns the keys that changed since `other` and need a restart.
    func keysNeedingRestart(since other: Settings) -> [String] {
        var keys: [String] = []
        if WorkerCount.resolve(workers) != WorkerCount.resolve(other.workers) { keys.append("workers") }
        if log.format != other.log.format { keys.append("log.format") }
        if limits.waiters != other.limits.waiters { keys.append("limits.waiters") }
        if sessions != other.sessions { keys.append("sessions") }
        return keys
    }
}

/// Limit of open files of this process (RLIMIT_NOFILE, getrlimit(2)).
enum OpenFiles {
    /// Returns a warning if the process may open too few files for `limits`; `nil` otherwise.
    static func shortage(for limits: LimitSettings) -> String? {
        guard let allowed = OpenFileLimit.current?.soft else { return nil }
        return shortage(for: limits, allowed: allowed)
    }

    /// Returns a warning if `allowed` descriptors are too few for `limits`; `nil` otherwise.
    ///
    /// Each caller needs one descriptor. Each exchange, of which a caller has one at a time, needs one for its upstream and one for a body on
    /// disk. 128 more are for files that are always open.
    static func shortage(for limits: LimitSettings, allowed: UInt64) -> String? {
        let needed = limits.callers + 2 * min(limits.callers, limits.exchanges) + 128
        guard allowed < needed else { return nil }
        return "this process may open \(allowed) files, but \(limits.callers) callers with one exchange each may need "
            + "\(needed): raise LimitNOFILE= of the unit (ulimit -Hn), or lower limits.callers"
    }
}

/// User ids of this machine.
enum UserNumbers {
    /// Returns the uids of `users`; `nil` means every user. Throws if a user does not exist.
    static func uids(_ users: [UserReference]?) throws(CompositionError) -> Set<UInt32>? {
        guard let users else { return nil }
        var result: Set<UInt32> = []
        for user in users { result.insert(try uid(of: user, for: "users")) }
        return result
    }

    /// Returns the uid of `user`. Throws an error with the configuration's `key` if the user does not exist.
    static func uid(of user: UserReference, for key: String) throws(CompositionError) -> UInt32 {
        switch user {
        case .uid(let uid): return uid
        case .name(let name):
            let uid: UInt32?
            do throws(SystemError) {
                uid = try Users.uid(named: name)
            } catch {
                throw CompositionError("\(key): the user \(name) cannot be looked up: \(error)", mayPass: true)
            }
            guard let uid else { throw CompositionError("\(key): there is no user \(name) on this machine") }
            return uid
        }
    }
}

/// Addresses of the admin listener.
enum AdminAddresses {
    /// Returns the configured addresses, or by default a socket in the runtime directory.
    ///
    /// If several daemons of one user use the default, the first one gets the socket.
    static func of(_ settings: Settings) -> [ListenAddress] {
        if !settings.admin.addresses.isEmpty { return settings.admin.addresses }
        return [.unix(path: "\(RuntimeDirectory.locate(environment: Process.environment))/admin.sock", mode: 0o600)]
    }

    /// Returns the path of the first Unix socket; nil without one.
    static func socket(of settings: Settings) -> String? {
        for case .unix(let path, _) in of(settings) { return path }
        return nil
    }

    /// Creates the runtime directory if the default socket is used.
    ///
    /// A failure is reported when the socket cannot be opened.
    static func makeDirectory(for settings: Settings) {
        guard settings.admin.addresses.isEmpty else { return }
        let path = RuntimeDirectory.locate(environment: Process.environment)
        try? JudgedDirectory(of: path, followingLast: false).makeDirectory(mode: 0o755)
    }
}
