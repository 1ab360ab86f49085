// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Credentials
internal import Glibc
internal import Settings

/// Looks at what the daemon needs on this machine. Changes nothing.
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
                "STATE_DIRECTORY names another")
        } catch {
            return .failed(Self.part, "state", error.reason, "set STATE_DIRECTORY", code: EX_CONFIG)
        }
    }

    private func runtime() -> Diagnosis {
        directory(RuntimeDirectory.locate(environment: environment), "runtime", "RUNTIME_DIRECTORY names another")
    }

    private func directory(_ path: String, _ check: String, _ other: String) -> Diagnosis {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            let parent = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
            if errno == ENOENT, unsafe access(parent, W_OK | X_OK) == 0 {
                return .note(Self.part, check, "\(path) is not there yet; the daemon makes it")
            }
            return .failed(
                Self.part, check, "\(path): \(Self.words(errno)), and this user cannot make it",
                "make it, or let the service manager do that; \(other)", code: EX_NOPERM)
        }
        guard unsafe access(path, R_OK | W_OK | X_OK) == 0 else {
            return .failed(
                Self.part, check,
                "\(path): this user (\(getuid())) may not write there, it belongs to \(status.st_uid)",
                "run this as the daemon's user, or give it the directory; \(other)", code: EX_NOPERM)
        }
        return .good(Self.part, check, "\(path) can be written")
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
                let remedy = "make it a file of variables that only the daemon's user can read"
                return [.failed(Self.part, "source", "env: \(error.reason)", remedy, code: EX_CONFIG)]
            }
        case .systemd:
            guard let path = environment["CREDENTIALS_DIRECTORY"] else {
                return [.note(Self.part, "source", "systemd: no credentials are passed here, only within the unit")]
            }
            guard unsafe access(path, R_OK | X_OK) == 0 else {
                return [
                    .failed(
                        Self.part, "source", "systemd: \(path): \(Self.words(errno))", "run this as the daemon's user",
                        code: EX_NOPERM)
                ]
            }
            return [.good(Self.part, "source", "systemd: \(path) can be read")]
        case .exec(let command):
            let path = command.first ?? ""
            guard unsafe access(path, X_OK) == 0 else {
                return [
                    .failed(
                        Self.part, "source", "exec: \(path): \(Self.words(errno))",
                        "check the path and its permissions",
                        code: EX_CONFIG)
                ]
            }
            return [.good(Self.part, "source", "exec: \(path) can be run")]
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
            return .good(Self.part, "source", "keyring: \(path) can be read")
        } catch {
            if error.kind == .noPassphrase, asks {
                return .note(Self.part, "source", "keyring: \(path): the daemon asks for its passphrase")
            }
            let isAccess = error.kind == .denied || error.kind == .exposed
            return .failed(
                Self.part, "source", "keyring: \(error.reason)", error.told,
                code: isAccess ? EX_NOPERM : EX_CONFIG)
        }
    }

    // MARK: Limits

    private func openFiles() -> Diagnosis {
        if let shortage = OpenFiles.shortage(for: settings.limits) {
            return .warning(Self.part, "limits", shortage, "the limits of this shell may not be those of the unit")
        }
        return .good(Self.part, "limits", "enough files may be open for \(settings.limits.callers) callers")
    }

    private static func words(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }
}
