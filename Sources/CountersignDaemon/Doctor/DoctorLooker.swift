// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Settings
internal import System

/// The process whose view `countersign doctor` reports, and what the running daemon says of itself.
struct DoctorLooker {
    private static let part = "local"

    /// The options of the command.
    let daemon: DaemonOptions
    /// The admin socket of the daemon that runs with the configuration, if this process may use it.
    private let socket: String?

    init(daemon: DaemonOptions) {
        self.daemon = daemon
        socket = daemon.admin.socket ?? daemon.admin.ownSocket
    }

    /// The process that looks. Files, environment and credentials differ between the daemon and a shell.
    var diagnosis: Diagnosis {
        let parent = getppid()
        let directory = RuntimeDirectory.locate(environment: Process.environment)
        if ReloadRecord.of(parent, in: directory) != nil {
            return .note(
                Self.part, "looked", "by the daemon, process \(parent), as uid \(geteuid()), with its own environment")
        }
        let own = "by this command, as uid \(geteuid()), with the environment of this shell"
        guard socket != nil else {
            return .note(Self.part, "looked", "\(own); no daemon was found that runs with this file")
        }
        let reason = daemon.here ? "--here was given" : "a value is typed at a prompt"
        return .note(Self.part, "looked", "\(own), because \(reason); those of the daemon may differ")
    }

    /// Throws if a daemon has this configuration's admin socket, and this user may not use it: this user's view is another one.
    func requireAccess(_ settings: Settings) throws(Failure) {
        guard !daemon.here, socket == nil else { return }
        var paths = [AdminAddresses.socket(of: settings)].compactMap(\.self)
        if settings.admin.addresses.isEmpty, daemon.configuration.config == ConfigurationOptions.defaultPath {
            paths.append("/run/countersign/admin.sock")
        }
        for path in paths {
            do throws(Failure) {
                _ = try AdminClient(path: path).isListening()
            } catch {
                throw Failure(
                    "\(path): this user may not ask the daemon; run: sudo countersign doctor (--here looks as this user)",
                    code: error.code)
            }
        }
    }

    /// Returns why the running daemon is not ready, and what it could not write, whatever this process finds.
    func problems() -> [Diagnosis] {
        guard let socket else { return [] }
        let client = AdminClient(path: socket)
        let unwritten = Self.sentences("unwritten_state", of: client, "/status").map { sentence in
            Diagnosis.failed(Self.part, "state", "the daemon: \(sentence)", UnwrittenState.remedy)
        }
        // What is not written is among the reasons, too.
        let reasons = Self.sentences("reasons", of: client, "/readyz").filter { !$0.hasPrefix("state: ") }
        return unwritten
            + reasons.map {
                .failed(Self.part, "daemon", "the daemon is not ready: \($0)", "countersign status has details")
            }
    }

    /// Returns the sessions of the running daemon that a server binds to the `User-Agent` of their login.
    func boundSessions() -> [Diagnosis] {
        guard let socket,
            case .object(let upstreams)? = try? AdminClient(path: socket).send("GET", "/status").body["upstreams"]
        else { return [] }
        return upstreams.sorted { $0.key < $1.key }.flatMap { upstream, logins -> [Diagnosis] in
            guard case .array(let logins) = logins else { return [] }
            return logins.compactMap { login in
                guard let userAgent = login["bound_user_agent"]?.stringValue,
                    let name = login["challenge"]?.stringValue
                else { return nil }
                return .note(
                    Self.part, "session",
                    "\(upstream.harmless)/\(name.harmless): the server accepts it under the User-Agent "
                        + "\(userAgent.harmless) only, so callers' requests carry that")
            }
        }
    }

    private static func sentences(_ member: String, of client: AdminClient, _ path: String) -> [String] {
        guard case .array(let sentences)? = try? client.send("GET", path).body[member] else { return [] }
        return sentences.compactMap(\.stringValue)
    }
}

/// Advice for a directory that cannot be used, by the error of the system.
enum DirectoryRemedy {
    private static let full = [ENOSPC, EDQUOT].map(SystemError.message)

    /// Returns the advice for a sentence that has the system's message.
    static func text(for reason: String) -> String {
        if full.contains(where: reason.contains) { return "free space on the disk of this directory" }
        if reason.contains(SystemError.message(EROFS)) {
            return "its file system is mounted read-only: mount it for writing"
        }
        return "run this as the daemon's user, or make the directory writable for it"
    }
}
