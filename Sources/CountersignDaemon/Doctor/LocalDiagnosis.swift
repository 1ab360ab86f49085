// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Settings
internal import System

/// Diagnosis of everything that the daemon needs on this machine. Leaves nothing behind.
struct LocalDiagnosis {
    private static let part = "local"

    let settings: Settings
    let environment: [String: String]

    func run() -> [Diagnosis] {
        [state(), runtime()] + settings.credentials.sources.flatMap(source) + [openFiles()]
    }

    // MARK: Directories

    private func state() -> Diagnosis {
        do throws(StateError) {
            return directory(
                try StateDirectory.locate(environment: environment, uid: getuid()), "state",
                "STATE_DIRECTORY overrides the path")
        } catch {
            return .failed(Self.part, "state", error.reason, "set STATE_DIRECTORY", code: EX_CONFIG)
        }
    }

    private func runtime() -> Diagnosis {
        directory(RuntimeDirectory.locate(environment: environment), "runtime", "RUNTIME_DIRECTORY overrides the path")
    }

    private func directory(_ path: String, _ check: String, _ hint: String) -> Diagnosis {
        let owner: uid_t
        do throws(SystemError) {
            owner = try FileSystem.status(of: path).st_uid
        } catch {
            let parent = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
            if error.code == ENOENT, FileSystem.allows(parent, W_OK | X_OK) {
                return .note(Self.part, check, "\(path) does not exist yet; the daemon creates it")
            }
            return .failed(
                Self.part, check, "\(path): \(error), and this user cannot create it",
                "create it, or let the service manager create it; \(hint)", code: EX_NOPERM)
        }
        guard FileSystem.allows(path, R_OK | W_OK | X_OK) else {
            return .failed(
                Self.part, check,
                "\(path): this user (uid \(getuid())) may not write there, the owner is uid \(owner)",
                "run this as the daemon's user, or change the owner of the directory; \(hint)", code: EX_NOPERM)
        }
        do throws(SystemError) {
            try Self.probe(path)
        } catch {
            return .failed(
                Self.part, check, "\(path): no file can be written there: \(error)",
                "\(DirectoryRemedy.text(for: "\(error)")); \(hint)")
        }
        return .good(Self.part, check, "\(path) is writable")
    }

    /// Writes a small file, which shows if the disk is full, and removes it. Throws if that is impossible.
    private static func probe(_ directory: String) throws(SystemError) {
        // The directory may belong to another user, whose links root must not follow.
        let opened = try JudgedDirectory(of: "\(directory)/.doctor-\(getpid())", followingLast: false)
        let file = try opened.create(opened.name)
        defer { try? opened.remove(opened.name) }
        try file.writeAll([UInt8](repeating: 0x20, count: 4096))
    }

    // MARK: Sources of credentials

    private var stateDirectory: String? { try? StateDirectory.locate(environment: environment, uid: getuid()) }

    private var trust: FileTrust { FileTrust(environment: environment, state: stateDirectory) }

    private func source(_ source: CredentialSource) -> [Diagnosis] {
        switch source {
        case .environment:
            let count = environment.keys.count { $0.hasPrefix("COUNTERSIGN_") && $0.contains("__") }
            return [
                .note(Self.part, "source", "env: \(count) fields in this environment, which may not be the daemon's")
            ]
        case .environmentFile(let path):
            do throws(CredentialError) {
                let count = try EnvironmentFileSource(path: path, trust: trust).open()
                return [.good(Self.part, "source", "env: \(path) has \(count) fields")]
            } catch {
                let remedy = "write variables to this file, and let only the daemon's user read it"
                return [.failed(Self.part, "source", "env: \(error.reason)", remedy, code: EX_CONFIG)]
            }
        case .systemd:
            guard let path = environment["CREDENTIALS_DIRECTORY"] else {
                return [
                    .note(
                        Self.part, "source", "systemd: credentials are passed only within the unit, not to this command"
                    )
                ]
            }
            do throws(SystemError) {
                try FileSystem.checkAccess(path, R_OK | X_OK)
            } catch {
                return [
                    .failed(
                        Self.part, "source", "systemd: \(path): \(error)", "run this as the daemon's user",
                        code: EX_NOPERM)
                ]
            }
            return [.good(Self.part, "source", "systemd: \(path) is readable")]
        case .exec(let command):
            let path = command.first ?? ""
            do throws(SystemError) {
                try FileSystem.checkAccess(path, X_OK)
            } catch {
                return [
                    .failed(
                        Self.part, "source", "exec: \(path): \(error)",
                        "check the path and its permissions",
                        code: EX_CONFIG)
                ]
            }
            return [.good(Self.part, "source", "exec: \(path) is executable")]
        case .keyring(let path, let keyFile, let asks):
            return [keyring(path, keyFile, asks)]
        }
    }

    private func keyring(_ path: String, _ keyFile: String?, _ asks: Bool) -> Diagnosis {
        let source = KeyringSource(
            path: path,
            passphrase: KeyringPassphrase(environment: environment, keyFile: keyFile, state: stateDirectory),
            trust: trust)
        do throws(KeyringError) {
            try source.open()
            return .good(Self.part, "source", "keyring: \(path) is readable")
        } catch {
            if error.kind == .noPassphrase, asks {
                return .note(
                    Self.part, "source",
                    "keyring: \(path): this process has no passphrase for it; one that the daemon has asked for is known to it alone"
                )
            }
            let isAccess = error.kind == .denied || error.kind == .exposed
            return .failed(
                Self.part, "source", "keyring: \(error.reason)", error.publicReason,
                code: isAccess ? EX_NOPERM : EX_CONFIG)
        }
    }

    // MARK: Limits

    private func openFiles() -> Diagnosis {
        if let shortage = OpenFiles.shortage(for: settings.limits) {
            return .warning(Self.part, "limits", shortage, "the limits of the unit may differ from those of this shell")
        }
        return .good(Self.part, "limits", "this process may open enough files for \(settings.limits.callers) callers")
    }
}
